//! Launches the kernel on a GPU if there is one, else on the CPU.

use cutlet_host::{Device, Result};

use own_kernel::{PTX, blocks, rms_norm};

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;
    let function = device.load(&PTX, &rms_norm)?;

    let (rows, columns) = (20usize, 300usize);
    let x: Vec<f32> = (0..rows * columns).map(|i| (i % 7) as f32).collect();
    let x = stream.upload(&x)?;
    let weight = stream.upload(&vec![2.0f32; columns])?;
    let mut y = stream.zeroed::<f32>(rows * columns)?;
    let extents = (rows as i32, columns as i32);
    // SAFETY: the buffers have as many elements as the extents require.
    unsafe {
        stream.launch(
            &function,
            blocks(rows),
            (extents.0, extents.1, 1e-6f32, &weight, &x, &mut y),
        )?
    };

    let y = stream.download(&y)?;
    let squares: f32 = y[..columns].iter().map(|y| y * y).sum();
    let norm = (squares / columns as f32).sqrt();
    println!("the root mean square of the first row is {norm:.3}, and the weights are 2");
    Ok(())
}
