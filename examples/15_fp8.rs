//! 8-bit floats: matrices of f32 are quantised to e4m3 with a scale for each block, multiplied, and compared with the
//! exact product. On a GPU the speed is printed, for weights of models.

use std::time::Duration;

use cutlet::{Device, DeviceTensor, F8E4M3, Gemm, Precision, Result, Stream, bf16, layout};
use cutlet_host::Event;

/// Elements of a block's k, and of the columns that share a block of B.
const BLOCK: usize = 128;
/// The largest number of e4m3.
const LARGEST: f32 = 448.0;

fn main() -> Result<()> {
    let device = Device::auto();
    println!("running on {}", device.describe());
    if device.compute_capability().is_some_and(|it| it != (9, 0)) {
        println!(
            "8-bit floats are multiplied on Hopper (compute capability 9.0), and by the CPU backend"
        );
        return Ok(());
    }
    let stream = device.stream()?;
    let error = relative_error(&stream, [64, 128, 512])?;
    println!("the relative error of a quantised product is {error:.4}");
    assert!(error < 0.05);
    if device.compute_capability().is_none() {
        return Ok(());
    }
    println!("\n| m × n × k | accumulation in f32 | fast accumulation | scales of blocks |");
    println!("|---|---|---|---|");
    for extents in [
        [4096, 4096, 4096],
        [4096, 7168, 16384],
        [8192, 8192, 8192],
        [2112, 4096, 7168],
        [128, 18432, 7168],
        [16, 18432, 7168],
    ] {
        let [m, n, k] = extents;
        let [exact, fast, scaled] = times(&stream, extents)?;
        let rate = |time: Duration| 2e-12 * (m * n * k) as f64 / time.as_secs_f64();
        let cell = |time: Duration| {
            format!(
                "{:.1} µs, {:.0} TFLOP/s",
                1e6 * time.as_secs_f64(),
                rate(time)
            )
        };
        println!(
            "| {m}×{n}×{k} | {} | {} | {} |",
            cell(exact),
            cell(fast),
            cell(scaled)
        );
    }
    Ok(())
}

/// Quantises random matrices, multiplies them, and returns ‖C − A·B‖ / ‖A·B‖.
fn relative_error(stream: &Stream, [m, n, k]: [usize; 3]) -> Result<f64> {
    let mut random = fastrand::Rng::with_seed(1);
    // Rows of A, and columns of B, of sizes that differ.
    let mut lines = |count: usize| -> Vec<f32> {
        let line = |nth: usize| 2.0f32.powi(nth as i32 % 7 - 3);
        let number = |nth: usize| line(nth / k) * (2.0 * random.f32() - 1.0);
        (0..count * k).map(number).collect()
    };
    let (a, b) = (lines(m), lines(n));
    let (quantised_a, of_a) = quantise(&a, k, 1);
    let (quantised_b, of_b) = quantise(&b, k, BLOCK);

    let blocks = k / BLOCK;
    let on_a = DeviceTensor::upload(stream, &quantised_a, [m, k])?;
    let on_b = DeviceTensor::upload(stream, &quantised_b, layout!((dyn k, dyn n):(1, dyn k)))?;
    let on_of_a = DeviceTensor::upload(stream, &of_a, [m, blocks])?;
    let columns = n.div_ceil(BLOCK);
    let of_b_layout = layout!((dyn blocks, dyn columns):(1, dyn blocks));
    let on_of_b = DeviceTensor::upload(stream, &of_b, of_b_layout)?;
    let mut on_c = DeviceTensor::<f32>::zeroed(stream, [m, n])?;
    Gemm::new(&on_a, &on_b, &mut on_c)
        .block_scales(&on_of_a, &on_of_b)
        .run(stream)?;

    let (mut errors, mut squares) = (0.0, 0.0);
    for (place, found) in on_c.download(stream)?.into_iter().enumerate() {
        let (row, column) = (&a[place / n * k..][..k], &b[place % n * k..][..k]);
        let products = row.iter().zip(column);
        let exact: f64 = products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        errors += (exact - f64::from(found)).powi(2);
        squares += exact.powi(2);
    }
    Ok((errors / squares).sqrt())
}

/// Lines of `k` numbers as e4m3, and the scale of each block of `height` lines and [`BLOCK`] of k: a block's scales
/// along k are neighbours.
fn quantise(lines: &[f32], k: usize, height: usize) -> (Vec<F8E4M3>, Vec<f32>) {
    let (count, blocks) = (lines.len() / k, k / BLOCK);
    let mut scales = vec![0.0f32; count.div_ceil(height) * blocks];
    let block = |place: usize| place / k / height * blocks + place % k / BLOCK;
    for (place, number) in lines.iter().enumerate() {
        let scale = &mut scales[block(place)];
        *scale = scale.max(number.abs() / LARGEST);
    }
    let quantised = (lines.iter().enumerate()).map(|(place, number)| {
        F8E4M3::from_f32(number / scales[block(place)].max(f32::MIN_POSITIVE))
    });
    (quantised.collect(), scales)
}

/// The median times of a product with sums in f32, with fast accumulation, and with scales of blocks.
fn times(stream: &Stream, [m, n, k]: [usize; 3]) -> Result<[Duration; 3]> {
    let mut random = fastrand::Rng::with_seed(2);
    let mut numbers = |count: usize| -> Vec<F8E4M3> {
        let some: Vec<_> = (0..4099)
            .map(|_| F8E4M3::from_f32(4.0 * random.f32() - 2.0))
            .collect();
        some.into_iter().cycle().take(count).collect()
    };
    let a = DeviceTensor::upload(stream, &numbers(m * k), [m, k])?;
    let b = DeviceTensor::upload(stream, &numbers(n * k), layout!((dyn k, dyn n):(1, dyn k)))?;
    let mut c = DeviceTensor::<bf16>::zeroed(stream, [m, n])?;
    let (blocks, columns) = (k.div_ceil(BLOCK), n.div_ceil(BLOCK));
    // A's scales lie as kernels read them: those of the rows of a block of k are neighbours.
    let of_a_layout = layout!((dyn m, dyn blocks):(1, dyn m));
    let of_a = DeviceTensor::upload(stream, &vec![0.5f32; m * blocks], of_a_layout)?;
    let of_b_layout = layout!((dyn blocks, dyn columns):(1, dyn blocks));
    let of_b = DeviceTensor::upload(stream, &vec![0.5f32; blocks * columns], of_b_layout)?;

    let mut launch = |which: usize| {
        let gemm = Gemm::new(&a, &b, &mut c);
        match which {
            0 => gemm,
            1 => gemm.precision(Precision::FastAccumulation),
            _ => gemm.block_scales(&of_a, &of_b),
        }
        .run(stream)
    };
    let mut samples = [const { Vec::new() }; 3];
    for round in 0..11 {
        for (which, samples) in samples.iter_mut().enumerate() {
            let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
            start.record(stream)?;
            for _ in 0..20 {
                launch(which)?;
            }
            end.record(stream)?;
            let time = end.elapsed_since(&start)? / 20;
            // The first launch loads the kernel.
            samples.extend((round > 0).then_some(time));
        }
    }
    Ok(samples.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    }))
}
