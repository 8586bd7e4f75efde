//! What an index outside of the table means.

use cutlet_kernels::gather::OutOfRange as Policy;

/// What becomes of a row whose index is no row of the table. Whatever it is, a bad index never makes a kernel read or
/// write outside of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutOfRange {
    /// It is an error. A gathered row becomes zero, and a scattered row is left out.
    #[default]
    Error,
    /// The index stands for the nearest row of the table: the first or the last one.
    Clamp,
    /// The row is skipped. A gathered row keeps what the output has there, and a scattered row is left out.
    Skip,
}

impl OutOfRange {
    /// The policy as kernels take it.
    pub(crate) fn policy(self) -> Policy {
        match self {
            OutOfRange::Error => Policy::ERROR,
            OutOfRange::Clamp => Policy::CLAMP,
            OutOfRange::Skip => Policy::SKIP,
        }
    }
}
