//! The error type of the library.

use std::fmt;

/// The result type of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. A message says what was asked for, what was found and what to do. `Debug` prints it as well, so that
/// `unwrap` shows it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device, its driver or a launch failed.
    #[error(transparent)]
    Host(#[from] cutlet_host::Error),

    /// A matrix does not fit in its memory.
    #[error(
        "a {rows}×{columns} matrix with leading dimension {ld} was asked for, but {found}; \
         use smaller extents, another leading dimension or a larger buffer"
    )]
    Matrix {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
        /// Its leading dimension in elements.
        ld: usize,
        /// Why it does not fit.
        found: String,
    },

    /// A tensor does not fit in its memory, or an operation on its layout has no result.
    #[error("a tensor of layout {layout} was asked for, but {found}")]
    Tensor {
        /// The layout.
        layout: String,
        /// Why there is no such tensor, and what to do.
        found: String,
    },

    /// The extents or orders of a call's operands are wrong.
    #[error("{operation}: {found}")]
    Extents {
        /// The operation.
        operation: &'static str,
        /// Which extents or orders were found, and what to do.
        found: String,
    },

    /// The device cannot run the operation.
    #[error(
        "{asked} was asked for on {found}; use a device that can run it, `Device::cpu()`, or another \
         element type"
    )]
    Device {
        /// The operation, and what it needs.
        asked: &'static str,
        /// The device.
        found: String,
    },

    /// The build has no kernels of a family.
    #[error(
        "{operation}: kernels of the family {family} are needed, but this build has none; enable the feature \
         `{feature}` of cutlet"
    )]
    NotBuilt {
        /// The operation.
        operation: &'static str,
        /// The family.
        family: &'static str,
        /// The feature that has it built.
        feature: &'static str,
    },

    /// The element types have no such arithmetic.
    #[error("gemm: {asked} was asked for, but {found}")]
    Arithmetic {
        /// The precision or the activation.
        asked: String,
        /// The types that have it, and what to do.
        found: &'static str,
    },

    /// No kernel instance of this name solves the problem.
    #[error(
        "gemm: instance `{asked}` was asked for, but no instance of that name solves this problem; {}",
        existing(names)
    )]
    Instance {
        /// The name that was asked for.
        asked: String,
        /// The names of the instances for the matrices' types and orders, the precision and what is fused.
        names: Vec<&'static str>,
    },

    /// A tuning file, or a file of recorded problems, cannot be read or written.
    #[error("{place}: {found}")]
    TuningFile {
        /// The file, with the line that is wrong if it is a line.
        place: String,
        /// What was found, and what to do.
        found: String,
    },

    /// A plan was run on matrices of another shape than it was made for.
    #[error("gemm: the plan was made for {planned}, and was run on {found}; make a plan for each")]
    Plan {
        /// What the plan was made for, as far as the run differs.
        planned: String,
        /// What it was run on instead.
        found: String,
    },

    /// The address ranges of the output and an operand overlap.
    #[error("{operation}: the output overlaps {operand}; give the output memory of its own")]
    Overlap {
        /// The operation.
        operation: &'static str,
        /// The overlapping operand.
        operand: &'static str,
    },

    /// An index is not a row of the table.
    #[error(
        "{operation}: index {index} at position {position} is not a row of the table of {table_rows} rows, and \
         {outcome}; use indices i with 0 <= i < {table_rows}, or `OutOfRange::Clamp` or `OutOfRange::Skip`"
    )]
    IndexOutOfRange {
        /// The operation.
        operation: &'static str,
        /// The first position of such an index.
        position: u64,
        /// The index at this position.
        index: i64,
        /// Number of rows of the table.
        table_rows: usize,
        /// What became of the row.
        outcome: &'static str,
    },

    /// An index of an enqueued operation was not a row of its table.
    #[error(
        "{operation}: in an operation since the last check, the index at position {position} was not a row of its \
         table, and {outcome}; use indices i with 0 <= i < rows, or `OutOfRange::Clamp` or `OutOfRange::Skip`"
    )]
    IndexMissed {
        /// The operation.
        operation: &'static str,
        /// The first position of such an index in any of the operations.
        position: u64,
        /// What became of the row.
        outcome: &'static str,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What to do about the name of an instance that is none of those that exist.
fn existing(names: &[&str]) -> String {
    match names {
        [] => "leave out the name: there is none for the matrices' types and orders, the precision and what is fused"
            .to_string(),
        _ => format!(
            "name one that suits the matrices' alignment and extents, of those for their types and orders, the \
             precision and what is fused: {}",
            names.join(", ")
        ),
    }
}
