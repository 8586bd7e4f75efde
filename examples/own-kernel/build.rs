//! Compiles the kernels of this package for the GPU.

use cutlet_ptx_builder::{Builder, Leftovers};

fn main() {
    Builder::new()
        .target("sm_80") // Ampere and later
        .leftovers(Leftovers::Deny) // calls and arrays in local memory, which make kernels slow, are errors
        .build();
}
