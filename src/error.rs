//! The error type of the library: what was asked, what was found, what to do.

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device, its driver or a launch failed.
    #[error(transparent)]
    Host(#[from] cutlet_host::Error),

    /// A matrix does not fit the memory it is said to lie in.
    #[error(
        "a {rows}×{columns} matrix with leading dimension {ld} was asked for: {found}; \
         give smaller extents, another leading dimension or a larger buffer"
    )]
    Matrix {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        columns: usize,
        /// Leading dimension asked for, in elements.
        ld: usize,
        /// What is wrong with that.
        found: String,
    },

    /// The extents or orders of a call's operands are not what it needs.
    #[error("{operation}: {found}")]
    Extents {
        /// The operation.
        operation: &'static str,
        /// Which are not, and what to do.
        found: String,
    },

    /// The device cannot run what was asked for.
    #[error(
        "{asked} was asked for on {found}; use a device that can, `Device::cpu()`, or another \
         element type"
    )]
    Device {
        /// What was asked for, and what it needs.
        asked: &'static str,
        /// The device.
        found: String,
    },

    /// There is no such kernel instance for the operands.
    #[error(
        "gemm: the instance `{asked}` was asked for, and none of that name solves this problem: it \
         must be for the matrices' types, orders and alignment, and one that fuses for what is \
         fused; `Gemm::instances` and `Gemm::fused_instances` list those for a type and order"
    )]
    Instance {
        /// The name asked for.
        asked: String,
    },

    /// A plan was run on what it was not made for.
    #[error(
        "gemm: a plan for {m}×{n}×{k} on {device} was run with {found}; make a plan for each shape, order, \
         leading dimension, alignment and kind of beta (0, 1 or another)"
    )]
    Plan {
        /// Rows of the plan's C.
        m: usize,
        /// Columns of the plan's C.
        n: usize,
        /// The plan's k.
        k: usize,
        /// The plan's device.
        device: String,
        /// What it was run with.
        found: String,
    },

    /// An operand lies in the memory that the call writes: between the first of its elements and the last.
    #[error("{operation}: the output overlaps {operand}; write to memory of its own")]
    Overlap {
        /// The operation.
        operation: &'static str,
        /// The operand.
        operand: &'static str,
    },

    /// An index is not a row of the table.
    #[error(
        "gather: index {index} at position {position} is not a row of a table of {table_rows} rows; \
         its output row was set to zero"
    )]
    IndexOutOfRange {
        /// The first position that holds such an index.
        position: u64,
        /// The index there.
        index: i64,
        /// Rows of the table.
        table_rows: usize,
    },

    /// An index was not a row of its table, in a gather that was enqueued.
    #[error(
        "gather: the index at position {position} was not a row of its table, in a gather since the last \
         report; its output row was set to zero"
    )]
    IndexMissed {
        /// The first position where one of the gathers had such an index.
        position: u64,
    },
}
