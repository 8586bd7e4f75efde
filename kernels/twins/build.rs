//! Compiles the twins for the GPU, as the kernels are.

use cutlet_ptx_builder::{Builder, Leftovers};

fn main() {
    Builder::new()
        .target("sm_80")
        .leftovers(Leftovers::Deny)
        .build();
}
