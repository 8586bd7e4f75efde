//! Launches the kernel on a GPU if there is one, else on the CPU.

use cutlet_host::{Device, Result};
use own_kernel::{PTX, bias_relu};

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;
    let function = device.load(&PTX, &bias_relu)?;

    let (rows, columns) = (3usize, 200usize);
    let mut x = stream.upload(&vec![1.0f32; rows * columns])?;
    let bias: Vec<f32> = (0..columns).map(|c| 1.0 - c as f32 / 50.0).collect();
    let bias = stream.upload(&bias)?;
    let grid = (columns.div_ceil(128) as u32, rows.div_ceil(8) as u32);
    // SAFETY: the buffers have as many elements as the extents require.
    unsafe {
        stream.launch(
            &function,
            grid,
            (rows as i32, columns as i32, &bias, &mut x),
        )?
    };

    let x = stream.download(&x)?;
    println!(
        "columns 0, 50 and 150 of the last row: {}, {}, {}",
        x[400], x[450], x[550]
    );
    Ok(())
}
