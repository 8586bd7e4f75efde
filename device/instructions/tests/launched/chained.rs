//! Two products in a row, of which the first one's accumulators are operand A of the second, compared with `f64`.

use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_device::{GlobalMut, Kernel};
use cutlet_host::{Buffer, Result, TensorMapElement, TensorMapSpec};
use cutlet_instructions::PTX;
use cutlet_instructions::launched::chained::{
    TileK, TileQ, TileV, WIDTH, chained_bf16, chained_f16,
};
use fastrand::Rng;
use half::{bf16, f16};

use crate::devices;

/// A kernel with two products in a row.
type Chained = Kernel<([i32; 2], TensorMap, TensorMap, TensorMap, GlobalMut<f32>)>;

/// Conversions of a 16-bit float.
struct Format<T> {
    of: fn(f64) -> T,
    number: fn(T) -> f64,
}

/// The map of `rows` rows of [`WIDTH`] elements.
fn map<T: TensorMapElement>(buffer: &Buffer<T>, rows: usize, boxes: TmaBox) -> Result<TensorMap> {
    let width = WIDTH as u64;
    TensorMapSpec::rows(rows as u64, width, width).encode(buffer, boxes)
}

/// Compares a kernel with plain loops, of random matrices of odd sizes. Their numbers are integers, so that sums are
/// exact. Rounding to bf16 changes the largest scores.
fn check<T: TensorMapElement>(
    kernel: &Chained,
    format: &Format<T>,
    [box_q, box_k, box_v]: [TmaBox; 3],
) -> Result<()> {
    for device in devices() {
        let function = device.load(&PTX, kernel)?;
        let stream = device.stream()?;
        let mut random = Rng::with_seed(9);
        for (rows, keys) in [(1, 1), (64, 96), (77, 203), (130, 1000)] {
            let mut matrix = |rows: usize| -> Vec<T> {
                let mut number = || (format.of)(random.i32(-4..=4).into());
                (0..rows * WIDTH).map(|_| number()).collect()
            };
            let (q, k, v) = (matrix(rows), matrix(keys), matrix(keys));
            let (on_q, on_k) = (stream.upload(&q)?, stream.upload(&k)?);
            let on_v = stream.upload(&v)?;
            let mut on_o = stream.filled::<f32>(rows * WIDTH, 0xff)?;
            let args = (
                [rows as i32, keys as i32],
                map(&on_q, rows, box_q)?,
                map(&on_k, keys, box_k)?,
                map(&on_v, keys, box_v)?,
                &mut on_o,
            );
            // SAFETY: the maps are of the kernel's tiles. O has as many rows as Q.
            unsafe { stream.launch(&function, rows.div_ceil(64) as u32, args)? };

            let o = stream.download(&on_o)?;
            for row in 0..rows {
                let expected = reference(format, &q[row * WIDTH..][..WIDTH], &k, &v);
                let found = o[row * WIDTH..][..WIDTH].iter().map(|&o| f64::from(o));
                assert!(
                    found.eq(expected),
                    "row {row} of {rows} rows and {keys} keys"
                );
            }
        }
    }
    Ok(())
}

/// A row of O.
fn reference<T: Copy>(format: &Format<T>, q: &[T], k: &[T], v: &[T]) -> [f64; WIDTH] {
    let number = |&element: &T| (format.number)(element);
    let mut sums = [0.0; WIDTH];
    for (k, v) in k.chunks(WIDTH).zip(v.chunks(WIDTH)) {
        let score: f64 = q.iter().zip(k).map(|(q, k)| number(q) * number(k)).sum();
        let rounded = number(&(format.of)(score));
        for (sum, v) in sums.iter_mut().zip(v) {
            *sum += rounded * number(v);
        }
    }
    sums
}

#[test]
fn two_products_of_bf16_are_chained() -> Result<()> {
    let format = Format {
        of: bf16::from_f64,
        number: bf16::to_f64,
    };
    let boxes = [
        TileQ::<bf16>::tile_box(1),
        TileK::<bf16>::tile_box(1),
        TileV::<bf16>::tile_box(1),
    ];
    check(&chained_bf16, &format, boxes)
}

#[test]
fn two_products_of_f16_are_chained() -> Result<()> {
    let format = Format {
        of: f16::from_f64,
        number: f16::to_f64,
    };
    let boxes = [
        TileQ::<f16>::tile_box(1),
        TileK::<f16>::tile_box(1),
        TileV::<f16>::tile_box(1),
    ];
    check(&chained_f16, &format, boxes)
}
