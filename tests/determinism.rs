//! Operations have the same bits in each run, also if sums are split among blocks.

use cutlet::{Activation, Device, DeviceTensor, Gemm, Stream, bf16};

use crate::random::generator;

/// Numbers whose sums depend on their order.
fn tensor(stream: &Stream, shape: [usize; 2], seed: u64) -> DeviceTensor<bf16> {
    let mut random = generator(seed);
    let number = |_| bf16::from_f32(random.f32() * 2.0 - 1.0);
    let elements: Vec<bf16> = (0..shape[0] * shape[1]).map(number).collect();
    DeviceTensor::upload(stream, &elements, shape).unwrap()
}

#[test]
fn a_product_has_the_same_bits_in_each_run_and_stream() {
    let device = Device::auto();
    for [m, n, k] in [[2, 40, 3000], [30, 40, 2000], [130, 130, 520], [64, 1, 999]] {
        let bits = || {
            let stream = device.stream().unwrap();
            let (a, b) = (tensor(&stream, [m, k], 1), tensor(&stream, [n, k], 2));
            let mut c = DeviceTensor::<bf16>::zeroed(&stream, [m, n]).unwrap();
            let transposed = b.tensor().transpose().unwrap();
            let mut gemm = Gemm::new(&a, transposed, &mut c).activation(Activation::Silu);
            let mut runs = Vec::new();
            for _ in 0..3 {
                gemm.run(&stream).unwrap();
            }
            runs.push(c.download(&stream).unwrap());
            let transposed = b.tensor().transpose().unwrap();
            let mut gemm = Gemm::new(&a, transposed, &mut c).activation(Activation::Silu);
            let plan = gemm.plan(&stream).unwrap();
            plan.run(&stream, &mut gemm).unwrap();
            runs.push(c.download(&stream).unwrap());
            runs
        };
        let first = bits();
        assert!(first[0].iter().any(|it| *it != bf16::ZERO));
        assert_eq!(first[0], first[1], "{m}×{n}×{k}");
        assert_eq!(bits(), first, "{m}×{n}×{k}");
    }
}

/// The order in which the L2 cache adds is no part of it.
#[test]
fn additions_in_order_have_the_same_bits() {
    use cutlet::ScatterAdd;

    let device = Device::auto();
    let stream = device.stream().unwrap();
    let source = tensor(&stream, [3000, 8], 3);
    let indices: Vec<i32> = (0..3000).map(|at| at * at % 7).collect();
    let indices = stream.upload(&indices).unwrap();
    let bits = || {
        let mut table = tensor(&stream, [7, 8], 4);
        let mut add = ScatterAdd::new(&device).unwrap().in_order();
        add.enqueue(&stream, &source, &indices, &mut table).unwrap();
        add.check(&stream).unwrap();
        table.download(&stream).unwrap()
    };
    let first = bits();
    for _ in 0..3 {
        assert_eq!(bits(), first);
    }
}
