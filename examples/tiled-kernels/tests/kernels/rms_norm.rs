//! RMSNorm.

use cutlet_host::{Device, cpu};
use half::bf16;
use tiled_kernels::PTX;
use tiled_kernels::rms_norm::{rms_norm_by_element, rms_norm_by_vector};

#[test]
fn rows_of_any_length_are_normalised() {
    cpu::check_races(true);
    let stream = Device::auto().stream().unwrap();
    let by_vector = stream.device().load(&PTX, &rms_norm_by_vector).unwrap();
    let by_element = stream.device().load(&PTX, &rms_norm_by_element).unwrap();
    for [rows, columns] in [[1, 1], [3, 8], [2, 2048], [5, 3000], [2, 4099]] {
        let x: Vec<_> = (0..rows * columns)
            .map(|i| bf16::from_f64((i % 97) as f64 / 20.0 - 2.0))
            .collect();
        let weight: Vec<_> = (0..columns)
            .map(|i| bf16::from_f64((i % 13) as f64 / 6.0))
            .collect();
        let [on_x, on_weight] = [&x, &weight].map(|v| stream.upload(v).unwrap());
        let mut y = stream.upload(&vec![bf16::NAN; rows * columns]).unwrap();
        let args = (
            [rows as i32, columns as i32],
            1e-5f32,
            &on_x,
            &on_weight,
            &mut y,
        );
        // SAFETY: the buffers have as many elements as the extents say; rows of 8 elements are aligned.
        unsafe {
            match columns % 8 {
                0 => stream.launch(&by_vector, rows as u32, args).unwrap(),
                _ => stream.launch(&by_element, rows as u32, args).unwrap(),
            }
        };
        for (i, found) in stream.download(&y).unwrap().into_iter().enumerate() {
            let row = &x[i / columns * columns..][..columns];
            let mean = row.iter().map(|x| x.to_f64().powi(2)).sum::<f64>() / columns as f64;
            let expected = x[i].to_f64() / (mean + 1e-5).sqrt() * weight[i % columns].to_f64();
            let error = (found.to_f64() - expected).abs();
            assert!(
                error <= 0.004 * expected.abs() + 1e-6,
                "{rows}×{columns}, {i}: {found}, {expected}"
            );
        }
    }
}
