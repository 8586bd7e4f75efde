//! Products by `wgmma` with A in registers, compared with a plain loop of integers.

use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::tile::{KMajorTile, MnMajorTile};
use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_host::{Result, TensorMapElement, TensorMapSpec};
use cutlet_instructions::PTX;
use cutlet_instructions::launched::register_operand::{
    product_of_bf16, product_of_e4m3_e5m2, product_of_f16, product_of_tf32,
    product_with_row_major_b,
};
use fastrand::Rng;
use half::{bf16, f16};

use crate::devices;

/// An element type that has the integers up to `MOST`.
trait Element: TensorMapElement {
    const MOST: i32;
    fn of(value: i32) -> Self;
}

macro_rules! element {
    ($($type:ty: $most:literal, $of:expr;)*) => {$(
        impl Element for $type {
            const MOST: i32 = $most;
            fn of(value: i32) -> Self {
                $of(value as f32)
            }
        }
    )*};
}
element! {
    bf16: 64, bf16::from_f32;
    f16: 64, f16::from_f32;
    f32: 64, |value| value;
    F8E4M3: 15, |value| with_value(F8E4M3::from_bits, F8E4M3::to_f32, value);
    F8E5M2: 4, |value| with_value(F8E5M2::from_bits, F8E5M2::to_f32, value);
}

/// The number of 8 bits with this value.
fn with_value<T: Copy>(from_bits: fn(u8) -> T, to_f32: fn(T) -> f32, value: f32) -> T {
    let mut all = (0..=255).map(from_bits);
    all.find(|&number| to_f32(number) == value).unwrap()
}

/// A random matrix of integers.
fn matrix<T: Element>(rows: usize, columns: usize, random: &mut Rng) -> Vec<i32> {
    let mut integer = || random.i32(-T::MOST..=T::MOST);
    (0..rows * columns).map(|_| integer()).collect()
}

/// The rows of a matrix, `ld` elements apart. Between them are numbers that no product may contain.
fn in_rows<T: Element>(matrix: &[i32], columns: usize, ld: usize) -> Vec<T> {
    let mut elements = vec![T::of(T::MOST); matrix.len() / columns * ld];
    for (to, from) in elements.chunks_mut(ld).zip(matrix.chunks(columns)) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = T::of(*from);
        }
    }
    elements
}

/// A kernel that multiplies A and a B in a tensor map.
type Product<A> = Kernel<([i32; 3], Global<A>, TensorMap, GlobalMut<f32>, i64)>;

/// Whether B is an n × k matrix or a k × n one.
#[derive(Clone, Copy, PartialEq)]
enum MajorB {
    K,
    N,
}

/// Multiplies matrices of odd sizes by a kernel whose tiles have `tile_n` columns of C.
fn check<A: Element, B: Element>(
    kernel: &Product<A>,
    major: MajorB,
    boxes: TmaBox,
    tile_n: usize,
) -> Result<()> {
    for device in devices() {
        let function = device.load(&PTX, kernel)?;
        let stream = device.stream()?;
        let mut random = Rng::with_seed(tile_n as u64);
        for [m, n, k] in [
            [1, 1, 1],
            [64, tile_n, 64],
            [77, tile_n + 5, 203],
            [130, 3, 300],
        ] {
            let (a, b) = (
                matrix::<A>(m, k, &mut random),
                matrix::<B>(n, k, &mut random),
            );
            let at_b = |row: usize, column: usize| b[row * k + column];
            let stored: Vec<i32> = match major {
                MajorB::K => b.clone(),
                MajorB::N => (0..n * k).map(|i| at_b(i % n, i / n)).collect(),
            };
            let (rows, columns) = if major == MajorB::K { (n, k) } else { (k, n) };
            let (ldb, ldc) = (columns.next_multiple_of(16), n + 3);
            let on_a = stream.upload(&in_rows::<A>(&a, k, k))?;
            let on_b = stream.upload(&in_rows::<B>(&stored, columns, ldb))?;
            let mut on_c = stream.filled::<f32>(m * ldc, 0xff)?;
            let map = TensorMapSpec::rows(rows as u64, columns as u64, ldb as u64);
            let map = map.encode(&on_b, boxes)?;
            let grid = (m.div_ceil(64) as u32, n.div_ceil(tile_n) as u32);
            let shape = [m, n, k].map(|extent| extent as i32);
            // SAFETY: the map is of the kernel's tile. The buffers have the elements that the shape says.
            unsafe { stream.launch(&function, grid, (shape, &on_a, map, &mut on_c, ldc as i64))? };

            for (i, found) in stream.download(&on_c)?.into_iter().enumerate() {
                let (row, column) = (i / ldc, i % ldc);
                if column >= n {
                    assert!(found.is_nan(), "element {column} of row {row} is beyond C");
                    continue;
                }
                let expected: i32 = (0..k).map(|k_| a[row * k + k_] * at_b(column, k_)).sum();
                assert_eq!(found, expected as f32, "({row}, {column}) of {m}×{n}×{k}");
            }
        }
    }
    Ok(())
}

#[test]
fn products_of_bf16_are_right() -> Result<()> {
    let boxes = KMajorTile::<bf16, 256, 64>::tile_box(1);
    check::<bf16, bf16>(&product_of_bf16, MajorB::K, boxes, 256)
}

#[test]
fn products_with_a_row_major_b_are_right() -> Result<()> {
    let boxes = MnMajorTile::<bf16, 128, 64>::tile_box(1);
    check::<bf16, bf16>(&product_with_row_major_b, MajorB::N, boxes, 128)
}

#[test]
fn products_of_f16_are_right() -> Result<()> {
    let boxes = KMajorTile::<f16, 40, 64>::tile_box(1);
    check::<f16, f16>(&product_of_f16, MajorB::K, boxes, 40)
}

#[test]
fn products_of_tf32_are_right() -> Result<()> {
    let boxes = KMajorTile::<f32, 24, 32>::tile_box(1);
    check::<f32, f32>(&product_of_tf32, MajorB::K, boxes, 24)
}

#[test]
fn products_of_8_bit_floats_are_right() -> Result<()> {
    let boxes = KMajorTile::<F8E5M2, 16, 128>::tile_box(1);
    check::<F8E4M3, F8E5M2>(&product_of_e4m3_e5m2, MajorB::K, boxes, 16)
}
