//! Launches the fastest instance of the kernel, on a GPU if there is one, else on the CPU.

use cutlet_host::{Autotuner, Device, Result};

use own_kernel::{INSTANCES, Operands, candidates};

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;

    let (rows, columns) = (20, 300);
    let mut autotuner = Autotuner::new(&device); // `in_folder` remembers for the next run
    let key = format!("rms_norm rows={rows} columns={columns}");
    let tuned = autotuner.tune(&stream, key, candidates(rows, columns))?;
    println!("{tuned}");

    let x: Vec<f32> = (0..rows * columns).map(|i| (i % 7) as f32).collect();
    let mut operands = Operands::new(&stream, &x, &vec![2.0; columns])?;
    operands.launch(&stream, INSTANCES[tuned.index()])?;

    let y = stream.download(&operands.y)?;
    let squares: f32 = y[..columns].iter().map(|y| y * y).sum();
    let norm = (squares / columns as f32).sqrt();
    println!("the root mean square of the first row is {norm:.3}, and the weights are 2");
    Ok(())
}
