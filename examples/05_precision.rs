//! Precisions: the same product of f32 matrices, multiplied exactly, in tf32 and in three products of tf32.

use cutlet::{Device, DeviceTensor, Gemm, Precision, Result, layout};

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    let stream = device.stream()?;

    let (m, n, k) = (128, 128, 256);
    let mut random = fastrand::Rng::with_seed(1);
    let mut numbers = |count: usize| -> Vec<f32> {
        let numbers = std::iter::repeat_with(|| 2.0 * random.f32() - 1.0);
        numbers.take(count).collect()
    };
    let (a, b) = (numbers(m * k), numbers(k * n));
    let on_a = DeviceTensor::upload(&stream, &a, [m, k])?;
    let on_b = DeviceTensor::upload(&stream, &b, layout!((dyn k, dyn n):(1, dyn k)))?;
    let mut on_c = DeviceTensor::<f32>::zeroed(&stream, [m, n])?;

    for precision in [Precision::Exact, Precision::Tf32, Precision::Tf32x3] {
        Gemm::new(&on_a, &on_b, &mut on_c)
            .precision(precision)
            .run(&stream)?;
        let error = error(&a, &b, &on_c.download(&stream)?, k);
        println!("{precision:>6}: the relative error is {error:.1e}");
        // A precision is a lower bound: kernels without tensor cores multiply exactly.
        let most = match precision {
            Precision::Tf32 => 5e-4,
            _ => 1e-6,
        };
        assert!(error < most);
    }
    Ok(())
}

/// ‖A·B − C‖ / ‖A·B‖, with A·B in f64. Rows of A and columns of B have `k` consecutive elements.
fn error(a: &[f32], b: &[f32], c: &[f32], k: usize) -> f64 {
    let entries = a
        .chunks_exact(k)
        .flat_map(|row| b.chunks_exact(k).map(move |column| (row, column)));
    let (mut errors, mut squares) = (0.0, 0.0);
    for ((row, column), found) in entries.zip(c) {
        let products = row.iter().zip(column);
        let exact: f64 = products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        errors += (exact - f64::from(*found)).powi(2);
        squares += exact.powi(2);
    }
    (errors / squares).sqrt()
}
