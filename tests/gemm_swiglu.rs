//! `Gemm::swiglu` against f64, on a GPU if there is one: every kernel, types, orders, extents that fill no tile,
//! alignments and groups.

use crate::batches::batch;
use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::random;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{Activation, Device, Element, Error, GatedElement, Gemm, Matrix, MatrixMut, Order};
use cutlet_host::Backend;
use half::{bf16, f16};

/// What C has where nothing writes it.
const UNTOUCHED: f64 = 77.0;

/// Groups of rows of a product, each with a B of its own. One group is a single product.
struct Case {
    ends: Vec<usize>,
    /// Columns of C.
    n: usize,
    k: usize,
    order_b: Order,
    /// Elements between rows of C.
    gap: usize,
    alpha: f64,
    kernel: Option<&'static str>,
}

/// A case of one group.
fn single([m, n, k]: [usize; 3]) -> Case {
    Case {
        ends: vec![m],
        n,
        k,
        order_b: ColMajor,
        gap: 0,
        alpha: 1.0,
        kernel: None,
    }
}

/// Quarters of whole numbers from −2 to 2, which every element type holds exactly.
fn quarters(len: usize, seed: u64) -> Vec<f64> {
    let mut random = random::generator(seed);
    (0..len)
        .map(|_| f64::from(random.i32(-8..=8)) / 4.0)
        .collect()
}

/// The result of a gate and an up.
fn swiglu(gate: f64, up: f64) -> f64 {
    gate / (1.0 + (-gate).exp()) * up
}

/// Computes the case and compares all of C, with the elements between its rows. The product itself is rounded if it
/// goes through memory, which `tolerance` must allow.
fn check<T: GatedElement + Element + Convert>(case: &Case, tolerance: f64)
where
    T::Factor: Convert,
{
    let Case {
        ends,
        n,
        k,
        order_b,
        gap,
        alpha,
        kernel,
    } = case;
    let (n, k, groups, ld) = (*n, *k, ends.len(), n + gap);
    let m = *ends.last().unwrap();
    let (a, b) = (quarters(m * k, 1), quarters(groups * k * 2 * n, 2));
    let stream = Device::auto().stream().unwrap();
    let upload = |numbers: &[f64]| {
        let elements: Vec<T> = numbers.iter().map(|&it| T::of(it)).collect();
        stream.upload(&elements).unwrap()
    };
    let (on_device_a, on_device_b) = (upload(&a), upload(&b));
    let mut c = upload(&vec![UNTOUCHED; m * ld]);
    let of_ends: Vec<i32> = ends.iter().map(|&end| end as i32).collect();
    let on_device_ends = stream.upload(&of_ends).unwrap();
    let a_of_all = Matrix::row_major(&on_device_a, m, k).unwrap();
    let c_of_all = MatrixMut::with_ld(&mut c, m, n, RowMajor, ld).unwrap();
    let gemm = if groups == 1 {
        let b = Matrix::packed(&on_device_b, k, 2 * n, *order_b).unwrap();
        Gemm::new(a_of_all, b, c_of_all)
    } else {
        let b = batch(&on_device_b, groups, k, 2 * n, *order_b);
        Gemm::new(a_of_all, b, c_of_all).group_ends(&on_device_ends)
    };
    by_kernel(*kernel, gemm)
        .alpha(T::Factor::of(*alpha))
        .swiglu()
        .run(&stream)
        .unwrap();

    let c = stream.download(&c).unwrap();
    let mut group = 0;
    for row in 0..m {
        while row >= ends[group] {
            group += 1;
        }
        let product = |column: usize| {
            let of_b = |i: usize| match order_b {
                ColMajor => b[(group * 2 * n + column) * k + i],
                RowMajor => b[(group * k + i) * 2 * n + column],
            };
            alpha * (0..k).map(|i| a[row * k + i] * of_b(i)).sum::<f64>()
        };
        for column in 0..ld {
            let found = c[row * ld + column].number();
            if column >= n {
                assert_eq!(found, UNTOUCHED, "({row}, {column}) is no element of C");
                continue;
            }
            let (gate, up) = (product(2 * column), product(2 * column + 1));
            let expected = swiglu(gate, up);
            let bound = tolerance * (1.0 + gate.abs()) * (1.0 + up.abs());
            assert!(
                (found - expected).abs() <= bound,
                "{kernel:?}: ({row}, {column}) is {found}, not {expected}"
            );
        }
    }
}

/// The most that a result of these 16 bits is off, relative to 1 + |gate| and 1 + |up|, if it is rounded once.
const BF16: f64 = 1.0 / 256.0;
const F16: f64 = 1.0 / 2048.0;

#[test]
fn every_kernel() {
    let kernels = [
        (ColMajor, "128x256x64_2x1_coop"),
        (ColMajor, "128x256x64_1x2_coop"),
        (ColMajor, "128x128x64_1x1_coop"),
        (RowMajor, "128x256x64_2x1_coop_km"),
        (RowMajor, "128x128x64_1x1_coop_km"),
    ];
    for (order_b, name) in kernels {
        for extents in [[128, 128, 64], [300, 136, 200], [1, 8, 8], [130, 264, 72]] {
            let of = |format: &str| {
                let name: &'static str = format!("{format}_swiglu_{name}").leak();
                runs_here(name).then(|| Case {
                    order_b,
                    kernel: Some(name),
                    ..single(extents)
                })
            };
            if let Some(case) = of("bf16") {
                check::<bf16>(&case, BF16);
            }
            if let Some(case) = of("f16") {
                check::<f16>(&case, F16);
            }
        }
    }
}

/// Gates and ups are rows of a matrix that few vectors are multiplied with.
#[test]
fn few_rows() {
    for extents in [[1, 128, 64], [1, 33, 2056], [3, 9, 4104], [2, 500, 8]] {
        let of = |kernel| Case {
            kernel,
            gap: 3,
            alpha: 0.5,
            ..single(extents)
        };
        check::<bf16>(&of(Some("gemv_bf16_4x1_swiglu")), BF16);
        check::<f16>(&of(Some("gemv_f16_4x1_swiglu")), F16);
        check::<bf16>(&of(None), 4.0 * BF16);
    }
}

/// Whether the kernel has a body for the CPU, or there is a GPU.
fn runs_here(kernel: &str) -> bool {
    let on_cpu = [
        "bf16_swiglu_128x256x64_2x1_coop",
        "bf16_swiglu_128x128x64_1x1_coop",
        "bf16_swiglu_128x128x64_1x1_coop_km",
        "f16_swiglu_128x128x64_1x1_coop",
    ];
    Device::auto().backend() == Backend::Gpu || on_cpu.contains(&kernel)
}

#[test]
fn every_type_and_extents_of_any_size() {
    for extents in [[5, 7, 9], [64, 33, 24], [1, 1, 1], [17, 128, 65], [3, 4, 0]] {
        for order_b in [RowMajor, ColMajor] {
            let case = Case {
                order_b,
                alpha: 0.5,
                ..single(extents)
            };
            check::<f32>(&case, 1e-5);
            // Gates and ups may go through memory, where they are rounded, too.
            check::<bf16>(&case, 4.0 * BF16);
            check::<f16>(&case, 4.0 * F16);
        }
    }
}

#[test]
fn c_of_any_alignment() {
    for gap in [1, 3, 8] {
        for n in [64, 100] {
            let case = Case {
                gap,
                kernel: Some("bf16_swiglu_128x128x64_1x1_coop"),
                ..single([70, n, 64])
            };
            check::<bf16>(&case, BF16);
        }
    }
}

#[test]
fn groups_of_rows() {
    let kernels = [
        None,
        Some("bf16_swiglu_128x256x64_2x1_coop"),
        Some("bf16_swiglu_128x256x64_1x2_coop"),
        Some("bf16_swiglu_128x128x64_1x1_coop"),
    ];
    for kernel in kernels.into_iter().filter(|it| it.is_none_or(runs_here)) {
        let case = Case {
            ends: vec![0, 5, 5, 150, 290],
            n: 136,
            k: 72,
            alpha: 0.25,
            kernel,
            ..single([1, 1, 1])
        };
        check::<bf16>(&case, BF16);
    }
    let case = Case {
        ends: vec![3, 3, 40],
        ..single([1, 20, 30])
    };
    check::<f32>(&case, 1e-5);
    check::<f16>(&case, 4.0 * F16);
}

#[test]
fn rows_of_no_group_do_no_harm() {
    let stream = Device::auto().stream().unwrap();
    fn check<T: GatedElement + Element + Convert>(stream: &cutlet::Stream, k: usize) {
        let (m, n) = (40, 8);
        let a = stream.upload(&vec![T::of(1.0); m * k]).unwrap();
        let b = stream.upload(&vec![T::of(1.0); 2 * k * 2 * n]).unwrap();
        let ends = stream.upload(&[3, 17]).unwrap();
        let mut c = stream.zeroed::<T>(m * n).unwrap();
        Gemm::new(
            Matrix::row_major(&a, m, k).unwrap(),
            batch(&b, 2, k, 2 * n, ColMajor),
            MatrixMut::row_major(&mut c, m, n).unwrap(),
        )
        .group_ends(&ends)
        .swiglu()
        .run(stream)
        .unwrap();
        let expected = T::of(swiglu(k as f64, k as f64)).number();
        for found in &stream.download(&c).unwrap()[..17 * n] {
            assert!(
                (found.number() - expected).abs() < 0.01 * expected,
                "{}",
                found.number()
            );
        }
    }
    check::<f32>(&stream, 5);
    // Two kernels, and one.
    check::<bf16>(&stream, 5);
    check::<bf16>(&stream, 8);
}

#[test]
fn graphs_compute_what_the_operands_are_at_a_launch() {
    let stream = Device::auto().stream().unwrap();
    let mut a = stream.upload(&[bf16::ZERO; 8]).unwrap();
    let b = stream.upload(&[bf16::ONE; 8 * 16]).unwrap();
    let mut c = stream.zeroed::<bf16>(8).unwrap();
    let graph = stream
        .device()
        .capture(|stream| {
            Gemm::new(
                Matrix::row_major(&a, 1, 8)?,
                Matrix::col_major(&b, 8, 16)?,
                MatrixMut::row_major(&mut c, 1, 8)?,
            )
            .swiglu()
            .run(stream)
        })
        .unwrap();
    for (element, expected) in [(0.0, 0.0), (2.0, 256.0)] {
        let elements = [bf16::from_f32(element); 8];
        stream.copy_from_host(&elements, &mut a).unwrap();
        // SAFETY: the matrices live until the download.
        unsafe { graph.launch(&stream).unwrap() };
        assert_eq!(stream.download(&c).unwrap(), [bf16::from_f32(expected); 8]);
    }
}

#[test]
fn wrong_operands_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let (a, b) = (
        stream.zeroed::<f32>(64).unwrap(),
        stream.zeroed::<f32>(64).unwrap(),
    );
    let mut c = stream.zeroed::<f32>(64).unwrap();
    let mut run = |with: fn(Gemm<'_, f32>) -> Gemm<'_, f32>, columns, order| {
        let (a, b) = (
            Matrix::row_major(&a, 4, 4).unwrap(),
            Matrix::row_major(&b, 4, 8).unwrap(),
        );
        let c = MatrixMut::packed(&mut c, 4, columns, order).unwrap();
        with(Gemm::new(a, b, c)).swiglu().run(&stream)
    };
    run(|it| it, 4, RowMajor).unwrap();
    assert_eq!(
        run(|it| it, 8, RowMajor).unwrap_err().to_string(),
        "gemm: the columns of B, and twice those of C, are 8 and 16; make them agree"
    );
    let error = run(|it| it, 4, ColMajor).unwrap_err().to_string();
    assert!(error.contains("C is column-major"), "{error}");
    let gelu = run(|it| it.activation(Activation::Gelu), 4, RowMajor);
    assert!(matches!(gelu, Err(Error::Arithmetic { .. })));
    let unknown = run(|it| it.instance("no_such_kernel"), 4, RowMajor);
    assert!(matches!(unknown, Err(Error::Instance { .. })));
    let half = stream.zeroed::<bf16>(64).unwrap();
    let mut c = stream.zeroed::<bf16>(16).unwrap();
    let gemm = Gemm::new(
        Matrix::row_major(&half, 4, 4).unwrap(),
        Matrix::col_major(&half, 4, 8).unwrap(),
        MatrixMut::row_major(&mut c, 4, 4).unwrap(),
    );
    let error = gemm.swiglu().instance("no_such_kernel").run(&stream);
    let Err(Error::Instance { names, .. }) = error else {
        panic!("{error:?}")
    };
    // Those that fuse SwiGLU, and those that only multiply.
    assert!(names.contains(&"mma_bf16_64x64x64_kk"), "{names:?}");
    let runs_fused = names.contains(&"bf16_swiglu_128x128x64_1x1_coop");
    assert_eq!(
        runs_fused,
        names.contains(&"bf16_128x256x64_2x1_coop"),
        "{names:?}"
    );
}
