//! TMA copies boxes of tensors of rank 4 and 5, at their edges too.

use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_host::{Device, Result, TensorMapSpec};
use cutlet_instructions::PTX;
use cutlet_instructions::launched::boxes::{BOX, copy_of_rank_4, copy_of_rank_5};
use fastrand::Rng;

use crate::devices;

/// A tensor whose dimensions do not lie in memory in their order. Lines of 13 elements are 16 apart.
struct Shape {
    extent: [usize; 5],
    stride: [usize; 5],
    /// From one element of a loaded box to the next. Stored boxes take all.
    every: [usize; 5],
}

impl Shape {
    /// The elements of its memory.
    fn len(&self) -> usize {
        self.extent[4] * self.stride[4]
    }

    /// The index of the element at a coordinate, if it is in the tensor.
    fn index(&self, at: [i32; 5]) -> Option<usize> {
        (0..5).try_fold(0, |index, d| {
            let coordinate = usize::try_from(at[d]).ok()?;
            (coordinate < self.extent[d]).then_some(index + coordinate * self.stride[d])
        })
    }

    /// The spec of the first `rank` dimensions.
    fn spec(&self, rank: usize) -> TensorMapSpec {
        let number = |n: usize| n as u64;
        let [columns, rows] = [self.extent[0], self.extent[1]].map(number);
        (2..rank).fold(
            TensorMapSpec::rows(rows, columns, number(self.stride[1])),
            |spec, d| spec.stacked(number(self.extent[d]), number(self.stride[d])),
        )
    }

    /// A coordinate at which a box is inside the tensor, across an edge, or outside. The box begins at a multiple of 16
    /// bytes, and before the tensor only if it `may_begin_before`.
    fn random_coordinate(&self, may_begin_before: bool, random: &mut Rng) -> [i32; 5] {
        std::array::from_fn(|d| {
            let least = if may_begin_before {
                -(BOX[d] as i32)
            } else {
                0
            };
            match (d, self.extent[d] as i32) {
                (0, extent) => random.i32(least / 4..=extent / 4 + 1) * 4,
                (_, 1) => 0,
                (_, extent) => random.i32(least..=extent),
            }
        })
    }
}

/// The elements of a box in their order in shared memory, as offsets from its first coordinate.
fn box_offsets(rank: usize) -> impl Iterator<Item = [i32; 5]> {
    let extent = move |d: usize| if d < rank { BOX[d] } else { 1 };
    (0..(0..5).map(extent).product()).map(move |nth| {
        let mut rest: u32 = nth;
        std::array::from_fn(|d| {
            let offset = rest % extent(d);
            rest /= extent(d);
            offset as i32
        })
    })
}

fn sum(a: [i32; 5], b: [i32; 5]) -> [i32; 5] {
    std::array::from_fn(|d| a[d] + b[d])
}

/// The first coordinates, as an argument of a kernel.
fn first<const R: usize>(at: [i32; 5]) -> [i32; R] {
    std::array::from_fn(|d| at[d])
}

/// Copies boxes at random coordinates by a kernel: `launch` launches it with the maps, the coordinates, and the buffer
/// of the elements that it sees.
fn check<const R: usize>(
    device: &Device,
    shape: &Shape,
    launch: impl Fn(
        &cutlet_host::Stream,
        (TensorMap, [i32; R]),
        (TensorMap, [i32; R]),
        &mut cutlet_host::Buffer<f32>,
    ) -> Result<()>,
) -> Result<()> {
    let stream = device.stream()?;
    let mut random = Rng::with_seed(R as u64);
    // What is between the lines must not be read.
    let mut source = vec![f32::NAN; shape.len()];
    for (i, element) in source.iter_mut().enumerate() {
        if i % 16 < shape.extent[0] {
            *element = random.f32() - 0.5;
        }
    }
    let on_source = stream.upload(&source)?;
    let boxes = TmaBox {
        extent: std::array::from_fn::<u32, R, _>(|d| BOX[d]),
        swizzle_bytes: 16,
    };
    let from = (1..R).fold(shape.spec(R), |spec, d| {
        spec.element_stride(d, shape.every[d] as u32)
    });
    let from = from.encode(&on_source, boxes)?;
    let elements = box_offsets(R).count();
    for _ in 0..60 {
        let (from_at, to_at) = (
            shape.random_coordinate(true, &mut random),
            shape.random_coordinate(false, &mut random),
        );
        let on_target = stream.filled::<f32>(shape.len(), 0xff)?;
        let to = shape.spec(R).encode(&on_target, boxes)?;
        let mut seen = stream.filled::<f32>(elements, 0xff)?;
        launch(
            &stream,
            (from, first(from_at)),
            (to, first(to_at)),
            &mut seen,
        )?;

        let (seen, target) = (stream.download(&seen)?, stream.download(&on_target)?);
        let mut expected = vec![f32::NAN; shape.len()];
        for (nth, offset) in box_offsets(R).enumerate() {
            let from_offset = std::array::from_fn(|d| offset[d] * shape.every[d] as i32);
            let value = shape
                .index(sum(from_at, from_offset))
                .map_or(0.0, |i| source[i]);
            assert_eq!(seen[nth], value, "{offset:?} of the box at {from_at:?}");
            if let Some(i) = shape.index(sum(to_at, offset)) {
                expected[i] = value;
            }
        }
        for (i, (found, expected)) in target.iter().zip(&expected).enumerate() {
            // A store fills the line's last 16 bytes.
            if i % 16 < shape.extent[0] {
                let same = found == expected || found.is_nan() && expected.is_nan();
                assert!(
                    same,
                    "element {i} is {found}, not {expected}: box at {to_at:?}"
                );
            }
        }
    }
    Ok(())
}

/// The third dimension lies within the second: heads side by side in a position.
const STRIDE: [usize; 5] = [1, 5 * 16, 16, 7 * 5 * 16, 4 * 7 * 5 * 16];

#[test]
fn boxes_of_rank_4_are_copied() -> Result<()> {
    let shape = Shape {
        extent: [13, 7, 5, 4, 1],
        stride: STRIDE,
        every: [1, 2, 3, 1, 1],
    };
    for device in devices() {
        let function = device.load(&PTX, &copy_of_rank_4)?;
        check::<4>(
            &device,
            &shape,
            |stream, (from, from_at), (to, to_at), seen| {
                // SAFETY: the maps are of the kernel's boxes and of buffers that live, and `seen` has room for a box.
                unsafe { stream.launch(&function, 1, (from, from_at, to, to_at, seen)) }
            },
        )?;
    }
    Ok(())
}

#[test]
fn boxes_of_rank_5_are_copied() -> Result<()> {
    let shape = Shape {
        extent: [13, 7, 5, 4, 3],
        stride: STRIDE,
        every: [1, 1, 1, 2, 8],
    };
    for device in devices() {
        let function = device.load(&PTX, &copy_of_rank_5)?;
        check::<5>(
            &device,
            &shape,
            |stream, (from, from_at), (to, to_at), seen| {
                // SAFETY: as above.
                unsafe { stream.launch(&function, 1, (from, from_at, to, to_at, seen)) }
            },
        )?;
    }
    Ok(())
}
