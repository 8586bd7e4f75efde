//! A typed launch: the compiler checks the arguments against the kernel's parameters.

use cutlet::{Device, Result};
use cutlet_kernels::{PTX, saxpy};
use cutlet_layout_core::tile_extent;

fn main() -> Result<()> {
    let device = Device::auto();
    let stream = device.stream()?;
    let saxpy_on_device = device.load(&PTX, &saxpy::saxpy)?; // compiles the PTX for this GPU

    let n = 10_000;
    let x = stream.upload(&vec![1.5f32; n])?;
    let mut y = stream.upload(&vec![2.0f32; n])?;
    let [_, tile] = tile_extent::<saxpy::Tile>();
    let blocks = n.div_ceil(tile as usize) as u32;
    // SAFETY: both buffers have n elements. A missing argument, or &x in place of &mut y, does not
    // compile.
    unsafe { stream.launch(&saxpy_on_device, blocks, (n as i32, 4.0f32, &x, &mut y))? };

    assert!(stream.download(&y)?.iter().all(|&y| y == 8.0));
    println!("4·1.5 + 2 is 8, {n} times, on {}", device.describe());
    Ok(())
}
