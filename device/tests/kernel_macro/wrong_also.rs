use cutlet_device::kernel;

#[kernel(threads = 32, also = ["f16 for bf16"])]
fn scale_f32() {}

#[kernel(threads = 32, also = ["f16 instead of bf16"])]
fn scale_bf16() {}

#[kernel(threads = 32, also = "f16 for bf16")]
fn add_bf16() {}

fn main() {}
