//! Compiles the kernels of this package for the GPU.

fn main() {
    cutlet_ptx_builder::Builder::new()
        .target("sm_80")
        .target("sm_90a")
        .build();
}
