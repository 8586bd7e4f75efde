//! One buffer for two arguments, of which the kernel writes one.

use cutlet_device::{Global, GlobalMut, kernel};
use cutlet_host::{Buffer, Function, Result, Stream};

#[kernel(threads = 256)]
pub fn saxpy(n: u32, a: f32, x: Global<f32>, y: GlobalMut<f32>) {
    let _ = (n, a, x, y);
}

fn launch(
    stream: &Stream,
    function: &Function<(u32, f32, Global<f32>, GlobalMut<f32>)>,
    mut y: Buffer<f32>,
) -> Result<()> {
    unsafe { stream.launch(function, 1, (4u32, 2.0f32, &y, &mut y)) }
}

fn main() {}
