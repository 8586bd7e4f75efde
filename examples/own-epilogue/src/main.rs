//! Runs the plan on a GPU if there is one, else on the CPU.

use cutlet::{Device, DeviceTensor, Result, layout};
use cutlet_kernels::gemm::epilogue::gelu;
use half::bf16;
use own_epilogue::GemmBiasGeluCap;

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;

    let (m, n, k) = (3usize, 24usize, 8usize);
    let a = DeviceTensor::upload(&stream, &vec![bf16::from_f32(0.5); m * k], [m, k])?;
    let in_b = layout!((dyn k, dyn n):(1, dyn k));
    let b = DeviceTensor::upload(&stream, &vec![bf16::from_f32(0.25); n * k], in_b)?;
    let bias: Vec<bf16> = (0..n).map(|c| bf16::from_f32(c as f32 / -8.0)).collect();
    let bias = stream.upload(&bias)?;
    let mut c = DeviceTensor::<bf16>::zeroed(&stream, [m, n])?;
    let plan = GemmBiasGeluCap::new(&stream, &a, &b, &mut c)?;
    plan.run(&stream, &a, &b, &bias, 0.5, &mut c)?;

    let c = c.download(&stream)?;
    println!(
        "columns 0, 8 and 16 of the last row: {}, {} and {}; gelu of 1, 0 and -1, no more than 0.5: \
         {}, {} and {}",
        c[48],
        c[56],
        c[64],
        gelu(1.0).min(0.5),
        gelu(0.0),
        gelu(-1.0)
    );
    Ok(())
}
