//! The kernel on the CPU backend, against a loop.

use cutlet_host::{Device, cpu};

use own_kernel::{PTX, blocks, rms_norm};

const EPSILON: f32 = 1e-6;

#[test]
fn rows_are_those_of_a_loop() {
    cpu::check_races(true); // also in release builds
    let stream = Device::cpu().stream().unwrap();
    let function = stream.device().load(&PTX, &rms_norm).unwrap();
    for (rows, columns) in [(1usize, 1usize), (7, 129), (9, 128), (20, 300)] {
        let x: Vec<f32> = (0..rows * columns).map(|i| (i % 13) as f32 - 6.0).collect();
        let weight: Vec<f32> = (0..columns).map(|c| (c % 5) as f32 - 2.0).collect();
        let (on_x, on_weight) = (stream.upload(&x).unwrap(), stream.upload(&weight).unwrap());
        let mut y = stream.zeroed::<f32>(rows * columns).unwrap();
        let args = (
            rows as i32,
            columns as i32,
            EPSILON,
            &on_weight,
            &on_x,
            &mut y,
        );
        // SAFETY: the buffers have as many elements as the extents require.
        unsafe { stream.launch(&function, blocks(rows), args).unwrap() };

        let found = stream.download(&y).unwrap();
        for (i, (found, expected)) in found
            .iter()
            .zip(reference(columns, &weight, &x))
            .enumerate()
        {
            assert!(
                (found - expected).abs() < 1e-5,
                "element {i}: {found}, not {expected}"
            );
        }
    }
}

/// The rows, in the precision of f64.
fn reference(columns: usize, weight: &[f32], x: &[f32]) -> Vec<f32> {
    let row = |x: &[f32]| {
        let squares: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
        let scale = 1.0 / (squares / columns as f64 + f64::from(EPSILON)).sqrt();
        let scaled = x
            .iter()
            .zip(weight)
            .map(move |(&x, &weight)| f64::from(x) * scale * f64::from(weight));
        scaled.map(|y| y as f32).collect::<Vec<f32>>()
    };
    x.chunks(columns).flat_map(row).collect()
}

#[test]
fn weights_that_are_too_few_are_reported() {
    let stream = Device::cpu().stream().unwrap();
    let function = stream.device().load(&PTX, &rms_norm).unwrap();
    let weight = stream.zeroed::<f32>(127).unwrap();
    let x = stream.zeroed::<f32>(8 * 128).unwrap();
    let mut y = stream.zeroed::<f32>(8 * 128).unwrap();
    let args = (8, 128, EPSILON, &weight, &x, &mut y);
    // SAFETY: the CPU backend ends a kernel that leaves its buffers.
    let launched = unsafe { stream.launch(&function, 1, args) };
    let error = launched.unwrap_err().to_string();
    assert!(
        error.contains("element 127 of argument 4 (`weight`), which has 127 elements"),
        "{error}"
    );
    assert!(error.contains("src/lib.rs:"), "{error}");
}

#[test]
fn a_warp_uses_all_bytes_that_it_moves() {
    let stream = Device::cpu().stream().unwrap();
    let function = stream.device().load(&PTX, &rms_norm).unwrap();
    let weight = stream.zeroed::<f32>(256).unwrap();
    let x = stream.zeroed::<f32>(16 * 256).unwrap();
    let mut y = stream.zeroed::<f32>(16 * 256).unwrap();
    let args = (16, 256, EPSILON, &weight, &x, &mut y);
    // SAFETY: the buffers have as many elements as the extents require.
    let reports = cpu::report(|| unsafe { stream.launch(&function, 2, args) });
    for site in &reports.unwrap()[0].sites {
        assert_eq!(
            (site.sectors_per_request(), site.sector_use()),
            (4.0, 1.0),
            "{site}"
        );
    }
}
