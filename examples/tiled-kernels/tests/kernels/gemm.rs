//! The GEMM.

use cutlet_host::{Device, cpu};
use tiled_kernels::PTX;
use tiled_kernels::gemm::gemm_bf16;

use crate::random;

#[test]
fn it_multiplies_matrices_of_any_extents() {
    cpu::check_races(true);
    let stream = Device::auto().stream().unwrap();
    let function = stream.device().load(&PTX, &gemm_bf16).unwrap();
    for [m, n, k] in [
        [64, 64, 32],
        [1, 1, 8],
        [65, 130, 104],
        [100, 63, 0],
        [3, 200, 264],
    ] {
        let (a, b) = (random(m * k, 1), random(n * k, 2));
        let on_device = [&a, &b].map(|x| stream.upload(x).unwrap());
        let mut c = stream.upload(&vec![f32::NAN; m * n]).unwrap();
        let grid = (n.div_ceil(64) as u32, m.div_ceil(64) as u32);
        let args = (
            [m, n, k].map(|x| x as i32),
            &on_device[0],
            &on_device[1],
            &mut c,
        );
        // SAFETY: the buffers have as many elements as the extents say.
        unsafe { stream.launch(&function, grid, args).unwrap() };
        for (i, found) in stream.download(&c).unwrap().into_iter().enumerate() {
            let (row, column) = (i / n, i % n);
            let product = |l: usize| a[row * k + l].to_f64() * b[column * k + l].to_f64();
            let expected: f64 = (0..k).map(product).sum();
            let bound = 1e-6 * (k as f64).sqrt().max(1.0);
            assert!(
                (f64::from(found) - expected).abs() <= bound,
                "{m}×{n}×{k}: {row}, {column}: {found}, {expected}"
            );
        }
    }
}
