//! Element types of a GEMM, with their names in suites and on the command line, and their tolerances.

use clap::ValueEnum;
use cutlet::Activation;
use serde::{Deserialize, Serialize};

use super::scales::Scales;

/// Types of a GEMM's operands and result, and the precision of its products. Accumulation is in f32 unless a type says
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// f32 throughout, every product exact to f32.
    F32,
    /// f32 in and out, operands rounded to tf32 by the tensor cores.
    Tf32,
    /// f32 in and out, each product by three products of tf32. cuBLAS has the exact ones alone.
    #[serde(rename = "3xtf32")]
    #[value(name = "3xtf32")]
    Tf32x3,
    /// f16 in and out.
    F16,
    /// bf16 in and out.
    Bf16,
    /// fp8 (e4m3) in, bf16 out.
    E4m3,
    /// The same, accumulated with the bits that the tensor cores keep.
    #[serde(rename = "e4m3-fast")]
    E4m3Fast,
    /// fp8 (e4m3) in, bf16 out, with a scale for each row of A and for each column of B.
    #[serde(rename = "e4m3-outer")]
    E4m3Outer,
    /// fp8 (e4m3) in, bf16 out, with a scale for 1×128 elements of A, and for 128×128 of B.
    #[serde(rename = "e4m3-blocks")]
    E4m3Blocks,
    /// f64 throughout.
    F64,
    /// i8 in, i32 out, accumulated in i32.
    I8,
}

impl Dtype {
    /// The name in suites, in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::Tf32 => "tf32",
            Dtype::Tf32x3 => "3xtf32",
            Dtype::F16 => "f16",
            Dtype::Bf16 => "bf16",
            Dtype::E4m3 => "e4m3",
            Dtype::E4m3Fast => "e4m3-fast",
            Dtype::E4m3Outer => "e4m3-outer",
            Dtype::E4m3Blocks => "e4m3-blocks",
            Dtype::F64 => "f64",
            Dtype::I8 => "i8",
        }
    }

    /// Whether this activation is computed in the type of the accumulators.
    pub fn has(self, activation: Activation) -> bool {
        !matches!(self, Dtype::F64 | Dtype::I8) || activation == Activation::Relu
    }

    /// The scales of A and B.
    pub fn scales(self) -> Scales {
        match self {
            Dtype::E4m3Outer => Scales::Outer,
            Dtype::E4m3Blocks => Scales::Blocks,
            _ => Scales::None,
        }
    }

    /// The largest ‖C − C₆₄‖ / ‖C₆₄‖ of a right kernel, for sums of `k` products of N(0, 1).
    pub fn tolerance(self, k: usize) -> f64 {
        let epsilon = match self {
            Dtype::F64 => f64::EPSILON,
            // f64 holds the sums exactly, too.
            Dtype::I8 => 0.0,
            _ => f64::from(f32::EPSILON),
        };
        // Errors of sums grow like a random walk. The rounding of operands and results does not grow with k.
        let sums = epsilon * (k as f64).sqrt().max(4.0);
        let rounding = match self {
            Dtype::F32 | Dtype::F64 | Dtype::I8 => 0.0,
            Dtype::Tf32 => 2e-3,
            Dtype::Tf32x3 => 1e-6,
            Dtype::F16 => 1e-3,
            Dtype::Bf16 => 4e-3,
            // C is of bf16.
            Dtype::E4m3 | Dtype::E4m3Outer | Dtype::E4m3Blocks => 4e-3,
            // The tensor cores accumulate fp8 products with about 14 bits.
            Dtype::E4m3Fast => 1e-2,
        };
        sums + rounding
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_command_line_and_of_results() {
        for &dtype in Dtype::value_variants() {
            assert_eq!(Dtype::from_str(dtype.name(), false), Ok(dtype));
            let json = serde_json::to_string(&dtype).unwrap();
            assert_eq!(json, format!("\"{dtype}\""));
        }
    }
}
