//! The instances' times beside that of a copy of as many bytes, which is as fast as the memory allows: `cargo bench`.

use cutlet_host::{Autotuner, Backend, Device, Result};

use own_kernel::candidates;

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let shapes = match device.backend() {
        Backend::Gpu => [(8192, 4096), (64, 8192)],
        Backend::Cpu => [(8, 512), (3, 700)], // so that it ends
    };
    let stream = device.stream()?;
    let mut autotuner = Autotuner::new(&device);
    for (rows, columns) in shapes {
        let key = format!("rms_norm rows={rows} columns={columns}");
        let tuned = autotuner.tune(&stream, key, candidates(rows, columns))?;
        println!("{tuned}");
        if let Some(microseconds) = tuned.microseconds() {
            let bytes = 2 * rows * columns * size_of::<f32>();
            println!("  {:.0} GB/s", bytes as f64 / microseconds / 1e3);
        }
    }
    Ok(())
}
