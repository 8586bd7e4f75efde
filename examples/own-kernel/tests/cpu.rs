//! The kernel on the CPU backend, against a loop.

use cutlet_host::{Device, cpu};
use own_kernel::{PTX, bias_relu};

#[test]
fn bias_is_added_and_negative_sums_become_zero() {
    cpu::check_races(true); // also in release builds
    let device = Device::cpu();
    let stream = device.stream().unwrap();
    let function = device.load(&PTX, &bias_relu).unwrap();
    for (rows, columns) in [(1usize, 1usize), (7, 129), (9, 128), (20, 300)] {
        let x: Vec<f32> = (0..rows * columns).map(|i| (i % 13) as f32 - 6.0).collect();
        let bias: Vec<f32> = (0..columns).map(|c| (c % 5) as f32 - 2.0).collect();
        let mut on_x = stream.upload(&x).unwrap();
        let on_bias = stream.upload(&bias).unwrap();
        let grid = (columns.div_ceil(128) as u32, rows.div_ceil(8) as u32);
        let args = (rows as i32, columns as i32, &on_bias, &mut on_x);
        // SAFETY: the buffers have as many elements as the extents require.
        unsafe { stream.launch(&function, grid, args).unwrap() };

        let found = stream.download(&on_x).unwrap();
        for (i, (found, x)) in found.into_iter().zip(x).enumerate() {
            assert_eq!(found, (x + bias[i % columns]).max(0.0), "element {i}");
        }
    }
}

#[test]
fn a_bias_that_is_too_short_is_reported() {
    let stream = Device::cpu().stream().unwrap();
    let function = stream.device().load(&PTX, &bias_relu).unwrap();
    let bias = stream.zeroed::<f32>(127).unwrap();
    let mut x = stream.zeroed::<f32>(8 * 128).unwrap();
    // SAFETY: the CPU backend ends a kernel that leaves its buffers.
    let launched = unsafe { stream.launch(&function, 1, (8, 128, &bias, &mut x)) };
    let error = launched.unwrap_err().to_string();
    assert!(
        error.contains("element 127 of argument 3 (`bias`), which has 127 elements"),
        "{error}"
    );
    assert!(error.contains("src/lib.rs:"), "{error}");
}

#[test]
fn a_warp_uses_all_bytes_that_it_moves() {
    let stream = Device::cpu().stream().unwrap();
    let function = stream.device().load(&PTX, &bias_relu).unwrap();
    let bias = stream.zeroed::<f32>(256).unwrap();
    let mut x = stream.zeroed::<f32>(16 * 256).unwrap();
    // SAFETY: the buffers have as many elements as the extents require.
    let reports =
        cpu::report(|| unsafe { stream.launch(&function, (2, 2), (16, 256, &bias, &mut x)) });
    for site in &reports.unwrap()[0].sites {
        assert_eq!(
            (site.sectors_per_request(), site.sector_use()),
            (4.0, 1.0),
            "{site}"
        );
    }
}
