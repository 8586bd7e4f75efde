//! The kernel on the CPU backend, against a loop.

use cutlet_host::{Autotuner, Device, cpu};

use own_kernel::{INSTANCES, Operands, candidates};

const EPSILON: f64 = 1e-6;

#[test]
fn rows_are_those_of_a_loop() {
    cpu::check_races(true); // also in release builds
    let stream = Device::cpu().stream().unwrap();
    for (rows, columns) in [(1, 1), (7, 129), (9, 128), (20, 300)] {
        let x: Vec<f32> = (0..rows * columns).map(|i| (i % 13) as f32 - 6.0).collect();
        let weight: Vec<f32> = (0..columns).map(|c| (c % 5) as f32 - 2.0).collect();
        let expected = reference(columns, &weight, &x);
        for instance in INSTANCES {
            let mut operands = Operands::new(&stream, &x, &weight).unwrap();
            operands.launch(&stream, instance).unwrap();
            let found = stream.download(&operands.y).unwrap();
            for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    (found - expected).abs() < 1e-5,
                    "{}, element {i}: {found}, not {expected}",
                    instance.name()
                );
            }
        }
    }
}

/// The rows, in the precision of f64.
fn reference(columns: usize, weight: &[f32], x: &[f32]) -> Vec<f32> {
    let row = |x: &[f32]| {
        let squares: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
        let scale = 1.0 / (squares / columns as f64 + EPSILON).sqrt();
        let scaled = x
            .iter()
            .zip(weight)
            .map(move |(&x, &weight)| f64::from(x) * scale * f64::from(weight));
        scaled.map(|y| y as f32).collect::<Vec<f32>>()
    };
    x.chunks(columns).flat_map(row).collect()
}

#[test]
fn the_autotuner_finds_all_instances_right() {
    let stream = Device::cpu().stream().unwrap();
    let mut autotuner = Autotuner::new(stream.device());
    let tuned = autotuner
        .tune(&stream, "rms_norm", candidates(20, 300))
        .unwrap();
    assert_eq!(tuned.left_out().count(), 0, "{tuned}");
    assert_eq!(tuned.name(), "rms_norm_128"); // nothing is measured on the CPU: it is the first
}

#[test]
fn weights_that_are_too_few_are_reported() {
    let stream = Device::cpu().stream().unwrap();
    let mut operands = Operands::new(&stream, &[1.0; 8 * 128], &[1.0; 128]).unwrap();
    operands.weight = stream.zeroed(127).unwrap();
    let launched = operands.launch(&stream, INSTANCES[0]);
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
    for instance in INSTANCES {
        let mut operands = Operands::new(&stream, &[1.0; 16 * 512], &[1.0; 512]).unwrap();
        let reports = cpu::report(|| operands.launch(&stream, instance));
        for site in &reports.unwrap()[0].sites {
            assert_eq!(
                (site.sectors_per_request(), site.sector_use()),
                (4.0, 1.0),
                "{site}"
            );
        }
    }
}
