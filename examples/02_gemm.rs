//! A GEMM: multiplies two matrices on a GPU if there is one, else on the CPU.

use cutlet::{Device, Matrix, MatrixMut, Result, gemm};

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;

    let (m, n, k) = (300, 200, 100);
    let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32).collect();
    let b: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32).collect();
    let (on_a, on_b) = (stream.upload(&a)?, stream.upload(&b)?);
    let mut on_c = stream.zeroed::<f32>(m * n)?;

    gemm(
        &stream,
        1.0,
        Matrix::row_major(&on_a, m, k)?,
        Matrix::col_major(&on_b, k, n)?, // no order needs a copy
        0.0,
        MatrixMut::row_major(&mut on_c, m, n)?,
    )?;

    let c = stream.download(&on_c)?;
    let expected: f32 = (0..k)
        .map(|l| a[(m - 1) * k + l] * b[(n - 1) * k + l])
        .sum();
    println!(
        "the last entry of C is {}, a loop finds {expected}",
        c[m * n - 1]
    );
    assert_eq!(c[m * n - 1], expected);
    Ok(())
}
