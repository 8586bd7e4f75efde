//! The kernel on the CPU backend, against a loop.

use cutlet_host::Device;
use own_kernel::{PTX, bias_relu};

#[test]
fn bias_is_added_and_negative_sums_become_zero() {
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
