//! Compiles the kernels to PTX, for the same targets as the library's kernels.

use cutlet_ptx_builder::{Builder, Leftovers};

fn main() {
    Builder::new()
        .target("sm_80")
        .target("sm_90a")
        .leftovers(Leftovers::Deny)
        .build();
}
