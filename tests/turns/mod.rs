//! Cases of which the CPU backend has some, in turns, because all of them would take it minutes. A GPU has all.

use cutlet::Device;

/// Whether the case of this number has its turn: one of `of` on the CPU backend, each one on a GPU.
pub fn has_turn(nth: usize, of: usize) -> bool {
    Device::auto().compute_capability().is_some() || nth.is_multiple_of(of)
}
