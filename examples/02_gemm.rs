//! A GEMM: multiplies two matrices on a GPU if there is one, else on the CPU.

use cutlet::{Device, DeviceTensor, Result, gemm, layout};

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;

    let (m, n, k) = (300, 200, 100);
    let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32).collect();
    let b: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32).collect();
    let on_a = DeviceTensor::upload(&stream, &a, [m, k])?; // by rows
    let on_b = DeviceTensor::upload(&stream, &b, layout!((dyn k, dyn n):(1, dyn k)))?; // no order needs a copy
    let mut on_c = DeviceTensor::<f32>::zeroed(&stream, [m, n])?;

    gemm(&stream, 1.0, &on_a, &on_b, 0.0, &mut on_c)?;

    let c = on_c.download(&stream)?;
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
