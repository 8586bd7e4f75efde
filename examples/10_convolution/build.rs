//! Compiles the kernel of this package for the GPU.

fn main() {
    cutlet_ptx_builder::Builder::new().target("sm_90a").build();
}
