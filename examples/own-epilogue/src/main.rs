//! Runs the plan on a GPU if there is one, else on the CPU.

use cutlet::{Device, Matrix, MatrixMut, Result};
use cutlet_kernels::gemm::epilogue::gelu;
use half::bf16;
use own_epilogue::GemmBiasGeluCap;

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;

    let (m, n, k) = (3usize, 24usize, 8usize);
    let a = stream.upload(&vec![bf16::from_f32(0.5); m * k])?;
    let b = stream.upload(&vec![bf16::from_f32(0.25); n * k])?;
    let bias: Vec<bf16> = (0..n).map(|c| bf16::from_f32(c as f32 / -8.0)).collect();
    let bias = stream.upload(&bias)?;
    let mut c = stream.zeroed::<bf16>(m * n)?;
    let (a, b) = (Matrix::row_major(&a, m, k)?, Matrix::col_major(&b, k, n)?);
    let plan = GemmBiasGeluCap::new(&stream, a, b, MatrixMut::row_major(&mut c, m, n)?)?;
    plan.run(
        &stream,
        a,
        b,
        &bias,
        0.5,
        MatrixMut::row_major(&mut c, m, n)?,
    )?;

    let c = stream.download(&c)?;
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
