//! The kernel against a loop in f64.

use cutlet::{Device, DeviceTensor, layout};
use half::bf16;
use own_epilogue::GemmBiasGeluCap;

/// Pseudorandom numbers from -1 to 1.
fn numbers(count: usize, seed: u32) -> Vec<bf16> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bf16::from_f32((state >> 16) as f32 / 32768.0 - 1.0)
    };
    (0..count).map(|_| next()).collect()
}

fn gelu(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    0.5 * x * (1.0 + inner.tanh())
}

/// The largest entry of C.
const CAP: f32 = 1.5;

fn check(device: &Device, [m, n, k]: [usize; 3]) {
    let stream = device.stream().unwrap();
    let (a, b, bias) = (numbers(m * k, 1), numbers(n * k, 2), numbers(n, 3));
    let on_a = DeviceTensor::upload(&stream, &a, [m, k]).unwrap();
    let in_b = layout!((dyn k, dyn n):(1, dyn k));
    let on_b = DeviceTensor::upload(&stream, &b, in_b).unwrap();
    let on_bias = stream.upload(&bias).unwrap();
    let mut on_c = DeviceTensor::upload(&stream, &vec![bf16::NAN; m * n], [m, n]).unwrap();
    let plan = GemmBiasGeluCap::new(&stream, &on_a, &on_b, &mut on_c).unwrap();
    for _ in 0..2 {
        plan.run(&stream, &on_a, &on_b, &on_bias, CAP, &mut on_c)
            .unwrap();
    }

    let found = on_c.download(&stream).unwrap();
    for (i, found) in found.into_iter().enumerate() {
        let (row, column) = (i / n, i % n);
        let sum: f64 = (0..k)
            .map(|l| a[row * k + l].to_f64() * b[column * k + l].to_f64())
            .sum();
        let expected = gelu(sum + bias[column].to_f64()).min(CAP.into());
        // C is rounded to bf16, and the GPU's tanh has 11 bits.
        let tolerance = expected.abs() / 128.0 + sum.abs() / 2048.0 + 1e-3;
        assert!(
            (found.to_f64() - expected).abs() <= tolerance,
            "C[{row}, {column}] of {m}×{n}×{k} is {found}, expected {expected}"
        );
    }
}

#[test]
fn on_the_cpu() {
    let device = Device::cpu();
    check(&device, [70, 40, 72]);
    // Several tiles in both directions, with edge tiles.
    check(&device, [130, 264, 8]);
}

#[test]
fn on_whatever_there_is() {
    check(&Device::auto(), [300, 520, 200]);
}
