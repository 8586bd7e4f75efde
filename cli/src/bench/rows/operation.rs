//! The operations, and which bytes they move.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use super::Shape;
use super::expected::TOP_K;

/// Columns of a head that is rotated.
pub const HEAD: usize = 128;

/// An operation on rows of bf16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// RMSNorm with weights.
    RmsNorm,
    /// A residual is added and written, and normalised.
    RmsNormResidual,
    /// LayerNorm with weights and biases.
    LayerNorm,
    /// Softmax.
    Softmax,
    /// Heads are rotated by their positions.
    Rope,
    /// The sum of two tensors.
    Add,
    /// bf16 becomes f32.
    Cast,
    /// The function of elements that returns them.
    Copy,
    /// Blocks of 128 elements become e4m3 with a scale.
    Quantize,
    /// The place of each row's largest element.
    Argmax,
    /// The sum of each row.
    Reduce,
    /// The sum of each column.
    ReduceColumns,
    /// The places of each row's 50 largest elements, and their softmax.
    TopK,
    /// A token of each row by temperature, top-k and top-p.
    Sampling,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.pad(name.as_ref().map_or("", |name| name.get_name()))
    }
}

impl Operation {
    /// The shapes that are measured by default.
    pub fn shapes(self, on_gpu: bool) -> Vec<Shape> {
        let shapes: &[[usize; 2]] = match (self, on_gpu) {
            (Operation::Sampling | Operation::TopK, true) => &[[16, 128_256]],
            (_, true) => &[[8192, 4096], [64, 4096]],
            (Operation::TopK, false) => &[[2, 640]],
            (_, false) => &[[9, 1280]],
        };
        let shapes = shapes
            .iter()
            .map(|&[rows, columns]| Shape { rows, columns });
        shapes.collect()
    }

    /// Whether the operation has this shape.
    pub fn fits(self, shape: Shape) -> bool {
        self != Operation::Rope || shape.columns.is_multiple_of(HEAD)
    }

    /// Bytes that are read and written.
    pub fn bytes(self, Shape { rows, columns }: Shape) -> usize {
        let of_elements = match self {
            Operation::RmsNorm | Operation::LayerNorm | Operation::Softmax => 4,
            Operation::Rope | Operation::Copy => 4,
            Operation::RmsNormResidual => 8,
            Operation::Add | Operation::Cast => 6,
            Operation::Quantize => 3,
            Operation::Argmax | Operation::Reduce | Operation::ReduceColumns => 2,
            Operation::TopK | Operation::Sampling => 2,
        };
        let of_rows = match self {
            Operation::Quantize => 4 * columns.div_ceil(128),
            Operation::Argmax | Operation::Sampling => 4,
            Operation::Reduce => 2,
            Operation::TopK => 8 * TOP_K,
            _ => 0,
        };
        let of_columns = match self {
            Operation::ReduceColumns => 2,
            _ => 0,
        };
        rows * (columns * of_elements + of_rows) + columns * of_columns
    }

    /// What PyTorch's script calls the operation, if it has it.
    pub fn in_pytorch(self) -> Option<&'static str> {
        Some(match self {
            Operation::RmsNorm => "rms_norm",
            Operation::RmsNormResidual => "rms_norm_residual",
            Operation::LayerNorm => "layer_norm",
            Operation::Softmax => "softmax",
            Operation::Add => "add",
            Operation::Cast => "cast",
            Operation::Argmax => "argmax",
            Operation::Reduce => "sum",
            Operation::ReduceColumns => "column_sum",
            Operation::TopK => "top_k",
            _ => return None,
        })
    }
}
