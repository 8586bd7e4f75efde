//! The kernel on the host: its operands, its launch, and its instances for the autotuner.

use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_host::{Buffer, Candidates, Result, Stream};
use cutlet_layout_core::tile_extent;

use crate::{PTX, Tile, rms_norm_128, rms_norm_256, rms_norm_512};

/// An instance of the kernel, with its parameters.
pub type RmsNorm = Kernel<(i32, i32, f32, Global<f32>, Global<f32>, GlobalMut<f32>)>;

/// The instances. They compute the same.
pub static INSTANCES: [&RmsNorm; 3] = [&rms_norm_128, &rms_norm_256, &rms_norm_512];

/// A row-major matrix `x`, and memory for its norm `y`.
pub struct Operands {
    pub rows: usize,
    pub columns: usize,
    pub weight: Buffer<f32>,
    pub x: Buffer<f32>,
    pub y: Buffer<f32>,
}

impl Operands {
    /// A matrix of these numbers, and a weight for each column.
    pub fn new(stream: &Stream, x: &[f32], weight: &[f32]) -> Result<Operands> {
        Ok(Operands {
            rows: x.len() / weight.len(),
            columns: weight.len(),
            weight: stream.upload(weight)?,
            x: stream.upload(x)?,
            y: stream.zeroed(x.len())?,
        })
    }

    /// Computes the norm.
    pub fn launch(&mut self, stream: &Stream, instance: &RmsNorm) -> Result<()> {
        let function = stream.device().load(&PTX, instance)?; // compiled once
        let [rows_of_tile, _] = tile_extent::<Tile<4>>();
        let blocks = self.rows.div_ceil(rows_of_tile as usize) as u32;
        let (rows, columns) = (self.rows as i32, self.columns as i32);
        let args = (rows, columns, 1e-6, &self.weight, &self.x, &mut self.y);
        // SAFETY: `new` makes buffers of as many elements as the extents require.
        unsafe { stream.launch(&function, blocks, args) }
    }
}

/// All instances for a matrix of these extents, beside a copy of as many bytes.
pub fn candidates<'a>(rows: usize, columns: usize) -> Candidates<'a, Operands> {
    let bytes = 2 * rows * columns * size_of::<f32>();
    let make = move |stream: &Stream| {
        let x = (0..rows * columns).map(|i| (i % 7) as f32);
        Operands::new(stream, &x.collect::<Vec<f32>>(), &vec![2.0; columns])
    };
    let mut candidates = Candidates::new(bytes, make)
        .output(1e-5, |operands| operands.y.view_mut())
        .baseline("copy", |stream, Operands { x, y, .. }| stream.copy(&*x, y));
    for instance in INSTANCES {
        let launch = |stream: &Stream, operands: &mut Operands| operands.launch(stream, instance);
        candidates = candidates.candidate(instance.name(), launch);
    }
    candidates
}
