//! fill: random numbers in memory, as inputs for measurements. They depend on seed and index alone.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::{
    DeviceData, Float, GlobalMut, ThreadGroup, ThreadIdx, block_idx, fma, instantiate, log2_approx,
    rsqrt_approx, thread_idx,
};
use cutlet_layout_core::{Engine, L, RowMajor, StaticLayout, Tensor, Tv};
use half::{bf16, f16};

/// The tile of a block: one row.
pub type Tile = L!((1, 4096):(1@0, 1@1));
/// Elements of a row. Memory is filled in whole rows.
pub const ROW: usize = Tile::SIZE;
/// 256 threads, each with four groups of four elements, in vectors of `WIDTH`.
type Threads<const WIDTH: usize> = Tv<L!(256:4@1), L!((4, 4):(1@1, 1024@1)), WIDTH>;

/// Memory that is computed instead of stored: element `i` is `i`.
#[derive(Clone, Copy)]
struct Counting {
    first: i64,
}

impl Engine for Counting {
    type Element = i64;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Counting {
            first: self.first + index,
        }
    }

    #[inline(always)]
    unsafe fn load(self, index: i64) -> i64 {
        self.first + index
    }
}

/// 64 random bits for element `index` of the sequence `seed`: SplitMix64 from a mixed seed. If the seed were only
/// added, sequences would overlap.
#[inline(always)]
pub const fn bits(seed: u64, index: u64) -> u64 {
    mix(mix(seed).wrapping_add(index))
}

/// The step and finaliser of SplitMix64.
#[inline(always)]
const fn mix(x: u64) -> u64 {
    let mut x = x.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A type that memory can be filled with.
pub trait Random: DeviceData + Default {
    /// Makes a value of 64 random bits.
    fn random(bits: u64) -> Self;
}

impl Random for u32 {
    /// All values are equally likely.
    #[inline(always)]
    fn random(bits: u64) -> Self {
        (bits >> 32) as u32
    }
}

impl Random for i8 {
    /// All values are equally likely.
    #[inline(always)]
    fn random(bits: u64) -> Self {
        (bits >> 56) as i8
    }
}

impl Random for i32 {
    /// From −128 to 127, all equally likely, so that sums of them do not wrap around.
    #[inline(always)]
    fn random(bits: u64) -> Self {
        i8::random(bits).into()
    }
}

impl Random for f64 {
    /// N(0, 1), with all bits.
    #[inline(always)]
    fn random(bits: u64) -> Self {
        // The number in f32, with 30 more bits of mantissa.
        let more = (mix(bits) >> 34) as f64 * (1.0 / (1u64 << 30) as f64);
        f64::from(normal(bits)) * fma(more, 1.0 / f64::from(1 << 23), 1.0)
    }
}

macro_rules! normal {
    ($($float:ty),*) => {$(
        impl Random for $float {
            /// N(0, 1).
            #[inline(always)]
            fn random(bits: u64) -> Self {
                <$float as Float>::from_f32(normal(bits))
            }
        }
    )*};
}
normal!(f32, f16, bf16);

impl Random for F8E4M3 {
    /// N(0, 1).
    #[inline(always)]
    fn random(bits: u64) -> Self {
        // All values are far below 448, the largest number of e4m3.
        F8E4M3::from_f32(normal(bits))
    }
}

/// A number from N(0, 1), by the Box–Muller transform.
#[inline(always)]
fn normal(bits: u64) -> f32 {
    // 23 bits plus one half: exact, never 0 and never 1.
    let unit = |bits: u64| ((bits & 0x7f_ffff) as f32 + 0.5) * (1.0 / 8_388_608.0);
    let square = -2.0 * core::f32::consts::LN_2 * log2_approx(unit(bits));
    let radius = square * rsqrt_approx(square);
    radius * cos_turns(unit(bits >> 32))
}

/// The cosine of an angle in turns, from 0 to 1.
#[inline(always)]
fn cos_turns(turns: f32) -> f32 {
    // The sine of at most a quarter turn: five terms of its series err by 4e-6.
    let x = ((turns - 0.5).abs() - 0.25) * core::f32::consts::TAU;
    let square = x * x;
    let series = fma(square, 1.0 / 362_880.0, -1.0 / 5040.0);
    let series = fma(square, series, 1.0 / 120.0);
    let series = fma(square, series, -1.0 / 6.0);
    x * fma(square, series, 1.0)
}

/// Fills `rows` rows of [`ROW`] elements. Each block fills one row.
///
/// # Safety
/// `output` must have `rows · ROW` elements and be aligned for vectors of `WIDTH`.
#[inline(always)]
unsafe fn fill<T: Random, const WIDTH: usize>(
    thread: ThreadIdx<impl ThreadGroup>,
    rows: i32,
    seed: u64,
    output: GlobalMut<T>,
) {
    let matrix = RowMajor::new([rows, ROW as i32], ROW as i64);
    // SAFETY: the launcher promises the rows. `Counting` reads no memory.
    let (indices, output) = unsafe {
        (
            Tensor::new(Counting { first: 0 }, matrix),
            Tensor::new(output, matrix),
        )
    };
    let row = (block_idx().x, 0u32);
    let indices = indices
        .local_tile::<Tile>(row)
        .partition::<Threads<WIDTH>>(thread);
    let output = output
        .local_tile::<Tile>(row)
        .partition::<Threads<WIDTH>>(thread);

    let values = indices
        .load(0)
        .map(|_, index| T::random(bits(seed, index as u64)));
    output.store(&values);
}

instantiate! {
    /// N(0, 1) in f32.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn fill_f32(rows: i32, seed: u64, output: GlobalMut<f32>) = fill::<f32, 4>(thread_idx(), ..);

    /// N(0, 1) in f16.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn fill_f16(rows: i32, seed: u64, output: GlobalMut<f16>) = fill::<f16, 4>(thread_idx(), ..);

    /// N(0, 1) in bf16.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn fill_bf16(rows: i32, seed: u64, output: GlobalMut<bf16>) = fill::<bf16, 4>(thread_idx(), ..);

    /// N(0, 1) in e4m3.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn fill_e4m3(rows: i32, seed: u64, output: GlobalMut<F8E4M3>) = fill::<F8E4M3, 4>(thread_idx(), ..);

    /// Random bits.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn fill_u32(rows: i32, seed: u64, output: GlobalMut<u32>) = fill::<u32, 4>(thread_idx(), ..);

    /// N(0, 1) in f64.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn fill_f64(rows: i32, seed: u64, output: GlobalMut<f64>) = fill::<f64, 2>(thread_idx(), ..);

    /// Any i8.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn fill_i8(rows: i32, seed: u64, output: GlobalMut<i8>) = fill::<i8, 4>(thread_idx(), ..);

    /// Any i8, as i32.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn fill_i32(rows: i32, seed: u64, output: GlobalMut<i32>) = fill::<i32, 4>(thread_idx(), ..);
}
