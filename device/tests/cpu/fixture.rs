//! Launches, matrices and tiles that the tests share.

use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::tile::SharedTile;
use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_device::{DeviceData, thread_idx};
use cutlet_layout_core::{StaticLayout, StaticSwizzle};
use cutlet_simt::{LaunchSpec, SimtError, TensorMapModel};
use half::{bf16, f16};

const SHARED: u32 = 200 * 1024;

/// Runs `body` on `blocks` blocks of `threads` threads.
pub fn launch(
    threads: u32,
    blocks: u32,
    cluster: u32,
    body: impl Fn() + Sync,
) -> Result<(), SimtError> {
    cutlet_simt::check_races(true);
    cutlet_simt::launch(&spec(threads, blocks, cluster), &body)
}

/// A launch of `blocks` blocks of `threads` threads.
pub fn spec(threads: u32, blocks: u32, cluster: u32) -> LaunchSpec<'static> {
    LaunchSpec {
        kernel: "test",
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster,
        shared_bytes: SHARED,
        overlap_previous: false,
    }
}

/// One warp, which may begin while the kernel before it ends.
pub fn early() -> LaunchSpec<'static> {
    LaunchSpec {
        overlap_previous: true,
        ..spec(32, 1, 1)
    }
}

/// The message of a launch that fails.
pub fn failure(result: Result<(), SimtError>) -> String {
    result.expect_err("the launch must fail").to_string()
}

/// Checks that a message contains these parts.
pub fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

/// An element type that represents small integers exactly.
pub trait Element: DeviceData + Sync {
    fn of(value: i32) -> Self;
    fn number(self) -> f32;
}

impl Element for bf16 {
    fn of(value: i32) -> Self {
        bf16::from_f32(value as f32)
    }
    fn number(self) -> f32 {
        self.to_f32()
    }
}

impl Element for f16 {
    fn of(value: i32) -> Self {
        f16::from_f32(value as f32)
    }
    fn number(self) -> f32 {
        self.to_f32()
    }
}

impl Element for f32 {
    fn of(value: i32) -> Self {
        value as f32
    }
    fn number(self) -> f32 {
        self
    }
}

impl Element for f64 {
    fn of(value: i32) -> Self {
        value.into()
    }
    fn number(self) -> f32 {
        self as f32
    }
}

impl Element for i8 {
    fn of(value: i32) -> Self {
        value as i8
    }
    fn number(self) -> f32 {
        self.into()
    }
}

impl Element for F8E4M3 {
    fn of(value: i32) -> Self {
        let bits = (0..=255).find(|&bits| Self::from_bits(bits).to_f32() == value as f32);
        Self::from_bits(bits.unwrap())
    }
    fn number(self) -> f32 {
        self.to_f32()
    }
}

impl Element for F8E5M2 {
    fn of(value: i32) -> Self {
        let bits = (0..=255).find(|&bits| Self::from_bits(bits).to_f32() == value as f32);
        Self::from_bits(bits.unwrap())
    }
    fn number(self) -> f32 {
        self.to_f32()
    }
}

/// Small integers without a pattern.
pub fn small(i: usize) -> i32 {
    let mixed = (i as u32).wrapping_mul(0x9E37_79B9) ^ 0x85EB_CA6B;
    (mixed.wrapping_mul(0xC2B2_AE35) >> 29) as i32 - 4
}

/// A row-major matrix in memory.
pub struct Matrix<T> {
    pub elements: Vec<T>,
    pub rows: usize,
    pub columns: usize,
}

impl<T: Element> Matrix<T> {
    pub fn new(rows: usize, columns: usize, seed: usize) -> Self {
        let elements = (0..rows * columns)
            .map(|i| T::of(small(i + 77 * seed)))
            .collect();
        Self {
            elements,
            rows,
            columns,
        }
    }

    pub fn at(&self, row: usize, column: usize) -> f32 {
        self.elements[row * self.columns + column].number()
    }

    /// A tensor map of the matrix, with these boxes.
    pub fn map(&self, boxes: TmaBox) -> TensorMap {
        let model = TensorMapModel {
            address: self.elements.as_ptr().expose_provenance() as u64,
            element_bytes: size_of::<T>() as u32,
            rank: 2,
            extent: [self.columns as u64, self.rows as u64, 1, 1, 1],
            stride: [(self.columns * size_of::<T>()) as u64, 0, 0, 0],
            box_extent: [boxes.extent[0], boxes.extent[1], 1, 1, 1],
            element_stride: [1; 5],
            span: boxes.swizzle_bytes,
            rounds_to_tf32: false,
        };
        TensorMap::from_words(model.encode())
    }
}

/// Writes each element (mn, k) of a tile by its layout. The 128 threads of the block share the work.
pub fn fill<T: Element, L: StaticLayout, W: StaticSwizzle>(
    tile: SharedTile<T, L, W>,
    value: impl Fn(usize, usize) -> i32,
) {
    let rows = L::LAYOUT.mode(0).size() as usize;
    for i in (thread_idx().get() as usize..L::SIZE).step_by(128) {
        let index = W::apply(L::LAYOUT.at(i as i64) as u32);
        // SAFETY: the layout stays within the tile, and each thread has its own elements.
        unsafe {
            tile.start()
                .store(index as i64, T::of(value(i % rows, i / rows)))
        };
    }
}
