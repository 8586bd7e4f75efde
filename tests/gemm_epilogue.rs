//! `Gemm` with a bias, a residual, an activation, and a C of another type, against an f64 reference, on a GPU if there
//! is one. C is filled with NaN before, and elements around it must stay.

use crate::activations::{gelu, gelu_erf};
use crate::by_kernel::by_kernel;
use crate::rounding;
use cutlet::Order::{self, ColMajor, RowMajor};
use cutlet::{
    Activation, Bias, Buffer, Device, Element, Error, Gemm, Matrix, MatrixMut, Operand, Precision,
    Stream, ViewMut,
};
use cutlet_device::DeviceData;
use half::{bf16, f16};

trait Number: DeviceData {
    /// The distance between 1 and the next number.
    const EPSILON: f64;
    /// The allowed error of a number next to 0.
    const LEAST: f64;
    fn of(value: f32) -> Self;
    fn number(self) -> f64;
}

macro_rules! number {
    ($($type:ty, $epsilon:expr, $least:expr, $of:expr;)+) => {$(
        impl Number for $type {
            const EPSILON: f64 = $epsilon;
            const LEAST: f64 = $least;
            fn of(value: f32) -> Self {
                $of(value)
            }
            fn number(self) -> f64 {
                self.into()
            }
        }
    )+};
}
number! {
    bf16, 1.0 / 128.0, f32::MIN_POSITIVE as f64, bf16::from_f32;
    f16, 1.0 / 1024.0, 1.0 / 16_777_216.0, f16::from_f32;
    f32, f32::EPSILON as f64, f32::MIN_POSITIVE as f64, |value| value;
}

/// A matrix on the host, with leading dimension `ld`, `offset` elements into its memory.
struct Host<T> {
    elements: Vec<T>,
    extent: [usize; 2],
    order: Order,
    ld: usize,
    offset: usize,
}

impl<T: Number> Host<T> {
    fn random([rows, columns]: [usize; 2], order: Order, padding: usize, offset: usize) -> Self {
        let (run, count) = match order {
            RowMajor => (columns, rows),
            ColMajor => (rows, columns),
        };
        let ld = run + padding;
        let mut random = fastrand::Rng::with_seed((rows * 7919 + columns + 31 * padding) as u64);
        let elements = (0..offset + ld * count)
            .map(|_| T::of(2.0 * random.f32() - 1.0))
            .collect();
        Host {
            elements,
            extent: [rows, columns],
            order,
            ld,
            offset,
        }
    }

    fn index(&self, row: usize, column: usize) -> usize {
        self.offset
            + match self.order {
                RowMajor => row * self.ld + column,
                ColMajor => column * self.ld + row,
            }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.elements[self.index(row, column)].number()
    }

    fn matrix<'b>(&self, on: &'b Buffer<T>) -> Matrix<'b, T> {
        let [rows, columns] = self.extent;
        let elements = on.slice(self.offset..).unwrap();
        Matrix::with_ld(elements, rows, columns, self.order, self.ld).unwrap()
    }

    fn matrix_mut<'b>(&self, on: &'b mut Buffer<T>) -> MatrixMut<'b, T> {
        let [rows, columns] = self.extent;
        let elements = on.slice_mut(self.offset..).unwrap();
        MatrixMut::with_ld(elements, rows, columns, self.order, self.ld).unwrap()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Along {
    Rows,
    Columns,
}

/// The extents, orders and epilogue of a call.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    orders: [Order; 3],
    /// Elements between the runs of each matrix.
    padding: usize,
    /// Elements in front of C, the bias and the residual.
    offset: usize,
    factors: (f32, f32),
    bias: Option<Along>,
    residual: Option<Order>,
    activation: Option<Activation>,
    instance: Option<&'static str>,
}

/// A linear layer.
const LINEAR: Case = Case {
    extents: [70, 136, 72],
    orders: [RowMajor, ColMajor, RowMajor],
    padding: 0,
    offset: 0,
    factors: (1.0, 0.0),
    bias: Some(Along::Columns),
    residual: None,
    activation: Some(Activation::Gelu),
    instance: None,
};

const ACTIVATIONS: [Option<Activation>; 5] = [
    None,
    Some(Activation::Relu),
    Some(Activation::Gelu),
    Some(Activation::Silu),
    Some(Activation::GeluErf),
];

fn activated(activation: Option<Activation>, x: f64) -> f64 {
    match activation {
        None => x,
        Some(Activation::Relu) => x.max(0.0),
        Some(Activation::Gelu) => gelu(x),
        Some(Activation::Silu) => x / (1.0 + (-x).exp()),
        Some(Activation::GeluErf) => gelu_erf(x),
    }
}

fn check<T: Element<D> + Operand<Factor = f32> + Number, D: Number>(case: Case) {
    let Case {
        extents: [m, n, k],
        orders,
        padding,
        offset,
        factors: (alpha, beta),
        activation,
        ..
    } = case;
    let stream = Device::auto().stream().unwrap();
    let a = Host::<T>::random([m, k], orders[0], padding, 0);
    let b = Host::<T>::random([k, n], orders[1], padding, 0);
    let mut c = Host::<D>::random([m, n], orders[2], padding, offset);
    if beta == 0.0 || case.residual.is_some() {
        c.elements.fill(D::of(f32::NAN));
    }
    let residual = case
        .residual
        .map(|order| Host::<D>::random([m, n], order, padding, offset));
    let bias = case.bias.map(|along| {
        let len = if along == Along::Rows { m } else { n };
        Host::<D>::random([1, len], RowMajor, 0, offset)
    });
    let on_a = stream.upload(&a.elements).unwrap();
    let on_b = stream.upload(&b.elements).unwrap();
    let mut on_c = stream.upload(&c.elements).unwrap();
    let upload = |host: &Host<D>| stream.upload(&host.elements).unwrap();
    let (on_residual, on_bias) = (residual.as_ref().map(upload), bias.as_ref().map(upload));

    let gemm = Gemm::new(a.matrix(&on_a), b.matrix(&on_b), c.matrix_mut(&mut on_c));
    let mut gemm = by_kernel(case.instance, gemm).alpha(alpha).beta(beta);
    if let Some(on_bias) = &on_bias {
        let elements = on_bias.slice(offset..).unwrap();
        gemm = gemm.bias(match case.bias {
            Some(Along::Rows) => Bias::rows(elements),
            _ => Bias::columns(elements),
        });
    }
    if let (Some(residual), Some(on_residual)) = (&residual, &on_residual) {
        gemm = gemm.source(residual.matrix(on_residual), beta);
    }
    if let Some(activation) = activation {
        gemm = gemm.activation(activation);
    }
    gemm.run(&stream)
        .unwrap_or_else(|error| panic!("{case:?}: {error}"));
    let found = stream.download(&on_c).unwrap();

    let mut inside = vec![false; c.elements.len()];
    for i in 0..m {
        for j in 0..n {
            inside[c.index(i, j)] = true;
            // A small matrix is checked whole. Of a larger one, the last rows and some others are checked.
            if m > 40 && i % 37 != 0 && i + 2 < m {
                continue;
            }
            let (mut sum, mut magnitude) = (0.0, 0.0);
            for l in 0..k {
                let product = a.at(i, l) * b.at(l, j);
                sum += product;
                magnitude += product.abs();
            }
            let old = match &residual {
                _ if beta == 0.0 => 0.0,
                Some(residual) => beta as f64 * residual.at(i, j),
                None => beta as f64 * c.at(i, j),
            };
            let added = match (&bias, case.bias) {
                (Some(bias), Some(Along::Rows)) => bias.at(0, i),
                (Some(bias), _) => bias.at(0, j),
                (None, _) => 0.0,
            };
            let before = alpha as f64 * sum + old + added;
            let expected = activated(activation, before);
            let found = found[c.index(i, j)].number();
            let magnitude = alpha.abs() as f64 * magnitude + old.abs() + added.abs();
            // For elements of 16 bits, GELU uses the GPU's approximate tanh, which has 11 good bits. Other activations
            // are off by a few units in f32's last place.
            let approximate = match activation {
                Some(Activation::Gelu) if D::EPSILON > 1e-6 => before.abs() / 2048.0,
                _ => 8.0 * f32::EPSILON as f64 * before.abs(),
            };
            let allowed = D::EPSILON * expected.abs()
                + approximate
                + rounding::of_sum(k, magnitude)
                + D::LEAST;
            assert!(
                (found - expected).abs() <= allowed,
                "C[{i}, {j}] of {case:?}: found {found}, expected {expected}"
            );
        }
    }
    for (i, (before, after)) in c.elements.iter().zip(&found).enumerate() {
        let same = before.number().to_bits() == after.number().to_bits();
        assert!(
            same || inside[i],
            "element {i} lies outside C and was written: {case:?}"
        );
    }
}

#[test]
fn every_bias_residual_and_activation() {
    for bias in [None, Some(Along::Rows), Some(Along::Columns)] {
        for residual in [None, Some(RowMajor)] {
            for activation in ACTIVATIONS {
                let case = Case {
                    extents: [70, 40, 72],
                    factors: (1.5, 0.5),
                    bias,
                    residual,
                    activation,
                    ..LINEAR
                };
                check::<bf16, bf16>(case);
                check::<f16, f16>(case);
                check::<f32, f32>(case);
            }
        }
    }
}

#[test]
fn a_bias_alone_and_an_activation_alone() {
    check::<bf16, bf16>(LINEAR);
    check::<f16, f16>(Case {
        bias: None,
        ..LINEAR
    });
    check::<bf16, bf16>(Case {
        activation: None,
        ..LINEAR
    });
    check::<f16, f16>(Case {
        bias: Some(Along::Rows),
        activation: None,
        ..LINEAR
    });
}

#[test]
fn every_order() {
    for a in [RowMajor, ColMajor] {
        for b in [RowMajor, ColMajor] {
            for c in [RowMajor, ColMajor] {
                let case = Case {
                    extents: [72, 40, 64],
                    orders: [a, b, c],
                    factors: (1.0, 2.0),
                    residual: Some(ColMajor),
                    ..LINEAR
                };
                check::<bf16, bf16>(case);
                check::<f16, f16>(Case {
                    bias: Some(Along::Rows),
                    residual: Some(RowMajor),
                    ..case
                });
                check::<f32, f32>(case);
                check::<bf16, f32>(case);
            }
        }
    }
}

/// Different cases in each run. A failure prints the whole case.
#[test]
fn random_cases() {
    let mut random = fastrand::Rng::new();
    for _ in 0..100 {
        let mut pick = |most: usize| random.usize(..most);
        let mut extent = |most: usize| (1 + pick(most)).next_multiple_of([1, 2, 8, 64][pick(4)]);
        let extents = [extent(200), extent(200), extent(400)];
        let elements = [0, 0, 8, 8, 1, 2, 3, 4];
        let order = |nth| [RowMajor, ColMajor][nth];
        let case = Case {
            extents,
            orders: [pick(2), pick(2), pick(2)].map(order),
            padding: elements[pick(8)],
            offset: elements[pick(8)],
            factors: (
                [1.0, 0.5, -2.0, 0.0][pick(4)],
                [0.0, 1.0, 0.5, -1.0][pick(4)],
            ),
            bias: [None, None, Some(Along::Rows), Some(Along::Columns)][pick(4)],
            residual: (pick(3) == 0).then(|| order(pick(2))),
            activation: ACTIVATIONS[pick(4)],
            instance: None,
        };
        match pick(9) {
            0 => check::<bf16, bf16>(case),
            1 => check::<bf16, f16>(case),
            2 => check::<bf16, f32>(case),
            3 => check::<f16, f16>(case),
            4 => check::<f16, bf16>(case),
            5 => check::<f16, f32>(case),
            6 => check::<f32, f32>(case),
            7 => check::<f32, bf16>(case),
            _ => check::<f32, f16>(case),
        }
    }
}

/// Columns, leading dimensions and addresses that are no multiples of a pair of elements.
#[test]
fn odd_extents_leading_dimensions_and_addresses() {
    for (extents, padding, offset) in [
        ([1, 1, 1], 0, 0),
        ([33, 35, 17], 0, 0),
        ([129, 257, 40], 0, 0),
        ([40, 130, 24], 1, 0),
        ([40, 130, 24], 0, 1),
        ([67, 129, 65], 3, 5),
    ] {
        let case = Case {
            extents,
            padding,
            offset,
            factors: (1.0, -1.0),
            ..LINEAR
        };
        check::<bf16, bf16>(case);
        check::<f16, f16>(Case {
            bias: Some(Along::Rows),
            residual: Some(RowMajor),
            activation: Some(Activation::Silu),
            ..case
        });
        check::<f32, f32>(case);
        check::<f16, f32>(case);
    }
}

/// The k-tiles are split.
#[test]
fn few_tiles_with_many_k_tiles() {
    let case = Case {
        extents: [30, 40, 4100],
        factors: (0.25, 1.0),
        ..LINEAR
    };
    check::<bf16, bf16>(case);
    check::<f16, f16>(Case {
        orders: [ColMajor, RowMajor, ColMajor],
        ..case
    });
    check::<bf16, f32>(case);
    check::<bf16, f32>(Case {
        factors: (1.0, 0.0),
        bias: None,
        activation: None,
        ..case
    });
}

/// The kernels that fuse a bias or a residual, and this activation, for a C of any extents.
fn fusing<T: Element>(activation: Option<Activation>) -> Vec<&'static str> {
    let (backend, exact) = (Device::auto().backend(), Precision::Exact);
    let mut names = Gemm::<T>::fused_instances(backend, RowMajor, ColMajor, exact, activation);
    names.retain(|name| !name.starts_with("gemv_"));
    names
}

#[test]
fn every_instance_that_fuses() {
    for activation in ACTIVATIONS {
        for name in fusing::<bf16>(activation) {
            check::<bf16, bf16>(Case {
                extents: [150, 288, 200],
                factors: (2.0, 1.0),
                residual: Some(RowMajor),
                activation,
                instance: Some(name),
                ..LINEAR
            });
        }
        for name in fusing::<f16>(activation) {
            check::<f16, f16>(Case {
                extents: [70, 304, 136],
                bias: Some(Along::Rows),
                activation,
                instance: Some(name),
                ..LINEAR
            });
        }
    }
}

#[test]
fn a_c_of_another_type() {
    let plain = Case {
        bias: None,
        activation: None,
        ..LINEAR
    };
    for case in [
        plain,
        LINEAR,
        Case {
            factors: (0.5, 2.0),
            ..plain
        },
        Case {
            orders: [ColMajor, RowMajor, ColMajor],
            ..plain
        },
        Case {
            extents: [33, 35, 17],
            ..plain
        },
        Case {
            padding: 1,
            ..plain
        },
        Case {
            extents: [300, 520, 64],
            ..plain
        },
    ] {
        check::<bf16, f32>(case);
        check::<f16, f32>(case);
        check::<bf16, f16>(case);
        check::<f16, bf16>(case);
        check::<f32, bf16>(case);
        check::<f32, f16>(case);
    }
}

#[test]
fn accumulators_are_added_to_a_c_of_f32() {
    let added = Case {
        factors: (1.0, 1.0),
        bias: None,
        activation: None,
        ..LINEAR
    };
    for case in [
        added,
        Case {
            factors: (-0.25, 1.0),
            ..added
        },
        // Only a factor.
        Case {
            factors: (3.0, 0.0),
            ..added
        },
        Case {
            orders: [ColMajor, ColMajor, RowMajor],
            ..added
        },
        Case {
            orders: [ColMajor, RowMajor, ColMajor],
            ..added
        },
        // Rows to which threads cannot write pairs.
        Case {
            padding: 1,
            ..added
        },
        Case {
            extents: [33, 35, 17],
            ..added
        },
        // Something is fused as well.
        Case {
            bias: LINEAR.bias,
            ..added
        },
        Case {
            residual: Some(RowMajor),
            ..added
        },
        // With splits, and with several tiles.
        Case {
            extents: [16, 24, 4096],
            ..added
        },
        Case {
            extents: [300, 520, 64],
            padding: 2,
            ..added
        },
    ] {
        check::<bf16, f32>(case);
        check::<f16, f32>(case);
    }
    for orders in [[RowMajor, ColMajor], [ColMajor, RowMajor]] {
        let (backend, exact) = (Device::auto().backend(), Precision::Exact);
        for instance in Gemm::<bf16>::instances(backend, orders[0], orders[1], exact) {
            // Kernels that multiply vectors have a C of their own type.
            if instance.starts_with("gemv_") {
                continue;
            }
            // Kernels for `mma.sync` do not copy operands to align them.
            let extents = match instance.starts_with("mma_") {
                true => [152, 280, 200],
                false => [150, 276, 200],
            };
            check::<bf16, f32>(Case {
                extents,
                orders: [orders[0], orders[1], RowMajor],
                factors: (0.5, 1.0),
                instance: Some(instance),
                ..added
            });
        }
    }
}

/// TMA stores a C of f32, or threads do if it cannot, or if old elements are read.
#[test]
fn kernels_that_store_f32_store_any_c() {
    fn check_all<T: Element<f32> + Operand<Factor = f32> + Number>() {
        let (backend, exact) = (Device::auto().backend(), Precision::Exact);
        let all = Gemm::<T, f32>::instances(backend, RowMajor, ColMajor, exact);
        let storing_f32: Vec<_> = all.into_iter().filter(|it| it.ends_with("_f32")).collect();
        assert!(!storing_f32.is_empty());
        for instance in storing_f32 {
            let stored = Case {
                extents: [150, 276, 200],
                bias: None,
                activation: None,
                instance: Some(instance),
                ..LINEAR
            };
            let stored_by_tma = [
                stored,
                Case {
                    factors: (-2.0, 0.0),
                    extents: [300, 520, 72],
                    padding: 4,
                    ..stored
                },
                // With splits.
                Case {
                    extents: [60, 72, 1000],
                    ..stored
                },
            ];
            let stored_by_threads = [
                Case {
                    padding: 1,
                    ..stored
                },
                Case {
                    extents: [67, 35, 17],
                    offset: 1,
                    ..stored
                },
                Case {
                    factors: (0.5, -1.5),
                    ..stored
                },
                Case {
                    factors: (0.5, 1.0),
                    extents: [67, 135, 80],
                    padding: 3,
                    ..stored
                },
            ];
            stored_by_tma.into_iter().for_each(check::<T, f32>);
            // A consumer with two M atoms has no registers for it.
            if !instance.contains("pingpong") {
                stored_by_threads.into_iter().for_each(check::<T, f32>);
            }
        }
    }
    check_all::<bf16>();
    check_all::<f16>();
}

/// A launch begins while the one before still runs, which writes the bias.
#[test]
fn a_bias_may_be_written_by_the_launch_before() {
    const SIDE: usize = 136;
    let stream = Device::auto().stream().unwrap();
    let ones = stream.upload(&[bf16::ONE; 8 * SIDE]).unwrap();
    let zeros = stream.zeroed::<bf16>(8 * SIDE).unwrap();
    let row = Matrix::row_major(ones.slice(..8).unwrap(), 1, 8).unwrap();
    let columns = Matrix::col_major(&ones, 8, SIDE).unwrap();
    let nothing = Matrix::row_major(&zeros, SIDE, 8).unwrap();
    let mut bias = stream.zeroed::<bf16>(SIDE).unwrap();
    let mut outputs = Vec::new();
    for name in fusing::<bf16>(None) {
        for along in [Along::Rows, Along::Columns] {
            let factor = 1.0 + outputs.len() as f32;
            let mut c = stream.zeroed::<bf16>(SIDE * SIDE).unwrap();
            let written = MatrixMut::row_major(&mut bias, 1, SIDE).unwrap();
            cutlet::gemm(&stream, factor, row, columns, 0.0, written).unwrap();
            let bias = match along {
                Along::Rows => Bias::rows(&bias),
                Along::Columns => Bias::columns(&bias),
            };
            let to = MatrixMut::row_major(&mut c, SIDE, SIDE).unwrap();
            let fused = Gemm::new(nothing, columns, to).bias(bias);
            fused.instance(name).run(&stream).unwrap();
            outputs.push((8.0 * factor, name, c));
        }
    }
    for (expected, name, c) in outputs {
        let c = stream.download(&c).unwrap();
        assert!(c.iter().all(|entry| entry.to_f32() == expected), "{name}");
    }
}

#[test]
fn with_k_of_0_the_epilogue_is_applied() {
    for residual in [None, Some(RowMajor)] {
        let case = Case {
            extents: [20, 34, 0],
            factors: (1.0, 0.5),
            residual,
            ..LINEAR
        };
        check::<bf16, bf16>(case);
        check::<f32, f32>(case);
        check::<bf16, f32>(case);
    }
    check::<bf16, f32>(Case {
        extents: [20, 34, 0],
        bias: None,
        activation: None,
        ..LINEAR
    });
}

#[test]
fn without_rows_or_columns_nothing_is_written() {
    for [m, n] in [[0, 8], [8, 0], [0, 0]] {
        let case = Case {
            extents: [m, n, 72],
            factors: (1.0, 2.0),
            residual: Some(RowMajor),
            ..LINEAR
        };
        check::<bf16, bf16>(case);
        check::<f16, f32>(case);
        check::<bf16, f16>(case);
        check::<f32, bf16>(case);
    }
}

#[test]
fn with_beta_of_0_the_source_is_not_read() {
    let stream = Device::auto().stream().unwrap();
    let a = stream.zeroed::<bf16>(64).unwrap();
    let mut c = stream.filled::<bf16>(64, 0xff).unwrap();
    let poison = stream.filled::<bf16>(64, 0xff).unwrap();
    Gemm::new(
        Matrix::row_major(&a, 8, 8).unwrap(),
        Matrix::col_major(&a, 8, 8).unwrap(),
        MatrixMut::row_major(&mut c, 8, 8).unwrap(),
    )
    .source(Matrix::row_major(&poison, 8, 8).unwrap(), 0.0)
    .run(&stream)
    .unwrap();
    let c = stream.download(&c).unwrap();
    assert!(c.iter().all(|&entry| entry == bf16::ZERO));
}

/// `C += A·A`, for 8×8 matrices.
fn square<'a>(a: &'a Buffer<bf16>, c: &'a mut Buffer<bf16>) -> Gemm<'a, bf16> {
    let a = Matrix::row_major(a, 8, 8).unwrap();
    Gemm::new(a, a, MatrixMut::row_major(c, 8, 8).unwrap()).beta(1.0)
}

/// The error of `run`.
fn refusal(stream: &Stream, mut gemm: Gemm<'_, bf16>) -> String {
    gemm.run(stream).unwrap_err().to_string()
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let stream = Device::auto().stream().unwrap();
    let elements = stream.zeroed::<bf16>(64).unwrap();
    let mut c = stream.zeroed::<bf16>(64).unwrap();
    let seven = Bias::columns(elements.slice(..7).unwrap());
    let said = refusal(&stream, square(&elements, &mut c).bias(seven));
    assert!(
        said.contains("the bias has 7 elements, and C has 8 columns"),
        "{said}"
    );
    let narrow = Matrix::row_major(&elements, 8, 7).unwrap();
    let said = refusal(&stream, square(&elements, &mut c).source(narrow, 1.0));
    assert!(said.contains("the residual is 8×7, and C is 8×8"), "{said}");

    let many = Bias::columns(&elements);
    let said = refusal(&stream, square(&elements, &mut c).bias(many));
    assert!(
        said.contains("the bias has 64 elements, and C has 8 columns"),
        "{said}"
    );

    let elsewhere = Device::cpu().stream().unwrap();
    if elsewhere.device() != stream.device() {
        let bias = elsewhere.zeroed::<bf16>(8).unwrap();
        let there = Bias::columns(&bias);
        let said = refusal(&stream, square(&elements, &mut c).bias(there));
        assert!(said.contains("gemm: the bias is on"), "{said}");
        // The message has the caller's names, also if Cᵀ is computed.
        let there = elsewhere.zeroed::<bf16>(64).unwrap();
        let gemm = Gemm::new(
            Matrix::row_major(&elements, 8, 8).unwrap(),
            Matrix::row_major(&there, 8, 8).unwrap(),
            MatrixMut::col_major(&mut c, 8, 8).unwrap(),
        );
        let said = refusal(&stream, gemm);
        assert!(said.contains("gemm: B is on"), "{said}");
    }
    let backend = Device::auto().backend();
    let plain = Gemm::<bf16>::instances(backend, RowMajor, ColMajor, Precision::Exact)[0];
    let gemm = square(&elements, &mut c).activation(Activation::Relu);
    let said = refusal(&stream, gemm.instance(plain));
    assert!(said.contains(plain), "{said}");
}

#[test]
fn a_residual_is_added_once_and_beta_is_of_c_or_of_a_source() {
    let stream = Device::auto().stream().unwrap();
    let all_ones = stream.upload(&[1.0f32; 64]).unwrap();
    type Description<'a> = Gemm<'a, f32>;
    let product = |of: &dyn for<'a> Fn(Description<'a>, Matrix<'a, f32>) -> Description<'a>| {
        let mut c = stream.upload(&[5.0f32; 64]).unwrap();
        let ones = Matrix::row_major(&all_ones, 8, 8).unwrap();
        let to = MatrixMut::row_major(&mut c, 8, 8).unwrap();
        of(Gemm::new(ones, ones, to), ones).run(&stream)?;
        Ok::<_, Error>(stream.download(&c)?[17])
    };
    assert_eq!(product(&|gemm, ones| gemm.residual(ones)).unwrap(), 9.0);
    assert_eq!(
        product(&|gemm, ones| gemm.beta(0.0).residual(ones)).unwrap(),
        9.0
    );
    assert_eq!(product(&|gemm, _| gemm.beta(2.0)).unwrap(), 18.0);
    for (beta, expected) in [(0.0, 8.0), (1.0, 9.0), (2.0, 10.0)] {
        assert_eq!(
            product(&|gemm, ones| gemm.source(ones, beta)).unwrap(),
            expected
        );
    }
    for refused in [
        product(&|gemm, ones| gemm.beta(1.0).residual(ones)),
        product(&|gemm, ones| gemm.residual(ones).source(ones, 2.0)),
    ] {
        let said = refused.unwrap_err().to_string();
        assert!(
            said.contains("a product with a residual and a beta"),
            "{said}"
        );
    }
}

/// C may begin where an operand ends, but must not overlap one.
#[test]
fn a_c_that_overlaps_an_operand_is_refused() {
    let stream = Device::auto().stream().unwrap();
    let buffer = stream.zeroed::<bf16>(5 * 64).unwrap();
    let address = buffer.view().address();
    let operand = |nth: usize| buffer.slice(64 * nth..64 * (nth + 1)).unwrap();
    let matrix = |nth| Matrix::row_major(operand(nth), 8, 8).unwrap();
    let bias = operand(2).slice(..8).unwrap();
    let run = |first: usize| {
        let device = stream.device();
        // SAFETY: the memory is the buffer's, which nothing else uses before the download below.
        let c = unsafe { ViewMut::from_raw(device, address + 2 * first as u64, 64) }.unwrap();
        let c = MatrixMut::row_major(c, 8, 8).unwrap();
        Gemm::new(matrix(0), matrix(1), c)
            .bias(Bias::columns(bias))
            .residual(matrix(3))
            .run(&stream)
    };
    for (first, overlapped) in [
        (0, "A"),
        (63, "A"),
        (127, "B"),
        (135, "the bias"),
        (192, "the residual"),
        (255, "the residual"),
    ] {
        let said = run(first).unwrap_err().to_string();
        let expected = format!("gemm: the output overlaps {overlapped};");
        assert!(said.starts_with(&expected), "{first}: {said}");
    }
    run(256).unwrap();
    stream.synchronize().unwrap();
}

/// Sums of −∞, ∞ and NaN, each in some rows of a C of 16 bits, by every kernel that fuses the activation.
#[test]
fn activations_of_infinite_sums_are_their_limits() {
    let stream = Device::auto().stream().unwrap();
    let [m, n, k] = [64, 16, 16];
    let sums = [f32::NEG_INFINITY, f32::INFINITY, f32::NAN, f32::MIN];
    let mut a = vec![bf16::ZERO; m * k];
    for row in 0..m {
        a[row * k] = bf16::from_f32(sums[row % 4]);
    }
    let mut b = vec![bf16::ZERO; k * n];
    for column in b.chunks_mut(k) {
        column[0] = bf16::ONE;
    }
    let (a, b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    for activation in ACTIVATIONS.into_iter().flatten() {
        let (backend, exact) = (Device::auto().backend(), Precision::Exact);
        let fused = Some(activation);
        let names = Gemm::<bf16>::fused_instances(backend, RowMajor, ColMajor, exact, fused);
        for name in names.into_iter().map(Some).chain([None]) {
            let mut c = stream.zeroed::<bf16>(m * n).unwrap();
            let gemm = Gemm::new(
                Matrix::row_major(&a, m, k).unwrap(),
                Matrix::col_major(&b, k, n).unwrap(),
                MatrixMut::row_major(&mut c, m, n).unwrap(),
            );
            let mut gemm = by_kernel(name, gemm).activation(activation);
            match gemm.run(&stream) {
                // A GPU's kernels are not all for this shape.
                Err(Error::Instance { .. }) => continue,
                result => result.unwrap(),
            }
            for (at, found) in stream.download(&c).unwrap().into_iter().enumerate() {
                let sum = sums[at / n % 4];
                let expected = if sum.is_nan() { sum } else { sum.max(0.0) };
                let is_right = match expected.is_nan() {
                    true => found.is_nan(),
                    false => found.to_f32() == expected,
                };
                assert!(is_right, "{activation:?} of {sum} by {name:?} is {found}");
            }
        }
    }
}
