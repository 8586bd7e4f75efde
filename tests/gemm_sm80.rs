//! `gemm` on tensor cores against an f64 reference, on a GPU if there is one: every kernel by `mma.sync` of each element
//! type, every kernel by `wgmma` that reads K-major operands alone, every order, awkward extents, padded leading dimensions, offsets that break alignment, splits, and
//! everything that is fused.

use crate::by_kernel::by_kernel;
use crate::convert::Convert;
use crate::rounding;
use crate::turns::has_turn;
use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{
    Activation, Bias, Device, DeviceData, Element, F8E4M3, Gemm, Matrix, MatrixMut, Operand, Order,
    Precision, Stream,
};
use half::{bf16, f16};

/// A number of a type that matrices or factors have.
trait Number: Convert + Default + PartialEq + std::fmt::Debug {
    /// Half of the distance between 1 and the next number.
    const ROUNDING: f64;
    /// A number that must not reach C.
    fn poison() -> Self;
    /// A random number. Integers have all of their range.
    fn random(random: &mut fastrand::Rng) -> Self;
}

macro_rules! number {
    ($($type:ty: $rounding:expr, poison $poison:expr, random $random:expr;)+) => {$(
        impl Number for $type {
            const ROUNDING: f64 = $rounding;
            fn poison() -> Self {
                $poison
            }
            fn random(random: &mut fastrand::Rng) -> Self {
                $random(random)
            }
        }
    )+};
}
fn between<T: Number>(random: &mut fastrand::Rng) -> T {
    T::of(2.0 * random.f64() - 1.0)
}
number! {
    bf16: 1.0 / 256.0, poison bf16::NAN, random between;
    f16: 1.0 / 2048.0, poison f16::NAN, random between;
    F8E4M3: 1.0 / 16.0, poison F8E4M3::from_bits(0x7F), random between;
    f32: f32::EPSILON as f64 / 2.0, poison f32::NAN, random between;
    f64: f64::EPSILON / 2.0, poison f64::NAN, random between;
    i8: 0.0, poison i8::MIN, random |random: &mut fastrand::Rng| random.i8(..);
    i32: 0.0, poison 0x7EAD_BEEF, random |random: &mut fastrand::Rng| random.i32(-1000..1000);
}

/// A matrix on the host.
struct Host<T> {
    elements: Vec<T>,
    order: Order,
    /// Elements of a run.
    run: usize,
    ld: usize,
    offset: usize,
}

impl<T: Number> Host<T> {
    /// A random matrix with runs of a multiple of `align` and `padding` more elements, after `offset` elements.
    fn random(extents: [usize; 2], order: Order, [align, padding, offset]: [usize; 3]) -> Self {
        let (run, count) = match order {
            RowMajor => (extents[1], extents[0]),
            ColMajor => (extents[0], extents[1]),
        };
        let ld = run.next_multiple_of(align) + padding;
        let mut random = fastrand::Rng::with_seed((extents[0] * 7919 + extents[1]) as u64);
        Host {
            elements: (0..offset + ld * count)
                .map(|_| T::random(&mut random))
                .collect(),
            order,
            run,
            ld,
            offset,
        }
    }

    /// Whether a kernel reads it that reads so many bytes at a time. Along m or n, which is along runs of `mn_order`,
    /// it reads no bytes beyond them.
    fn can_be_read(&self, bytes: usize, mn_order: Order) -> bool {
        let reaches = |elements: usize| (elements * size_of::<T>()).is_multiple_of(bytes);
        reaches(self.offset) && reaches(self.ld) && (self.order != mn_order || reaches(self.run))
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
}

/// What is computed.
#[derive(Clone, Copy, Debug)]
struct Case {
    extents: [usize; 3],
    orders: [Order; 3],
    /// Elements that runs are a multiple of, elements between runs, and elements before a matrix.
    memory: [usize; 3],
    factors: [f64; 2],
    bias: Option<Order>,
    residual: Option<Order>,
    activation: Option<Activation>,
    precision: Precision,
}

const PLAIN: Case = Case {
    extents: [33, 34, 35],
    orders: [RowMajor, ColMajor, RowMajor],
    memory: [16, 0, 0],
    factors: [1.0, 0.0],
    bias: None,
    residual: None,
    activation: None,
    precision: Precision::Exact,
};

fn flipped(order: Order) -> Order {
    match order {
        RowMajor => ColMajor,
        ColMajor => RowMajor,
    }
}

/// What the names of the kernels begin with.
const FAMILIES: [&str; 5] = ["mma_", "e4m3_", "i8_", "tf32_", "tf32x3_"];

/// The kernels for A and B in these orders. A kernel may compute Cᵀ = Bᵀ·Aᵀ.
fn names<T: Element<D>, D: DeviceData>(
    a: Order,
    b: Order,
    precision: Precision,
) -> Vec<&'static str> {
    let backend = Device::auto().backend();
    let mut names = Gemm::<T, D>::instances(backend, a, b, precision);
    let transposed = Gemm::<T, D>::instances(backend, flipped(b), flipped(a), precision);
    names.extend(transposed);
    names.retain(|name| FAMILIES.iter().any(|family| name.starts_with(family)));
    names.sort_unstable();
    names.dedup();
    names
}

/// Checks every kernel for the case's operands.
fn check<T, D>(stream: &Stream, case: Case)
where
    T: Element<D> + Operand<Factor: Number> + Number,
    D: Number,
{
    let [a, b, _] = case.orders;
    let problem = Problem::<T, D>::random(case);
    let mut run = 0;
    if case.extents.contains(&1) {
        // A matrix of one run has both orders.
        return check_by::<T, D>(stream, case, None).unwrap();
    }
    // The kernels of Hopper multiply whole tiles, however small the problem is, and have tests of their own. So each of
    // them has a third of the cases.
    let by_rows = case.orders.iter().filter(|order| **order == RowMajor);
    let turn = case.extents.iter().chain(&case.memory).sum::<usize>() + by_rows.count();
    for (nth, name) in names::<T, D>(a, b, case.precision).into_iter().enumerate() {
        let bytes = bytes_at_a_time::<T>(name);
        if problem.a.can_be_read(bytes, ColMajor) && problem.b.can_be_read(bytes, RowMajor) {
            run += 1;
            if name.starts_with("mma_") || has_turn(turn + nth, 3) {
                check_by::<T, D>(stream, case, Some(name)).unwrap();
            }
        } else {
            let refused = check_by::<T, D>(stream, case, Some(name));
            assert!(refused.is_err(), "{name} cannot read {case:?}");
        }
    }
    assert!(run > 0, "no kernel for {case:?}");
}

/// Bytes that the kernel of this name reads at a time.
fn bytes_at_a_time<T>(name: &str) -> usize {
    match name {
        // Operands that it does not read are copied.
        _ if !name.starts_with("mma_") => size_of::<T>(),
        _ if name.contains("_any_") => size_of::<T>(),
        _ if name.contains("_words_") => 4,
        _ => 16,
    }
}

/// Checks the kernel of this name.
fn check_by<T, D>(stream: &Stream, case: Case, name: Option<&str>) -> cutlet::Result<()>
where
    T: Element<D> + Operand<Factor: Number> + Number,
    D: Number,
{
    let problem = Problem::<T, D>::random(case);
    let found = problem.run(stream, name)?;
    let [m, n, _] = case.extents;
    let mut inside = vec![false; found.len()];
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        let (expected, allowed) = problem.expected(i, j);
        let at = problem.c.index(i, j);
        inside[at] = true;
        let is = found[at].number();
        assert!(
            (is - expected).abs() <= allowed,
            "C[{i}, {j}] by {name:?} of {case:?}: found {is}, expected {expected} ± {allowed}"
        );
    }
    for (at, inside) in inside.into_iter().enumerate() {
        let bits = |number: D| number.number().to_bits();
        let same = bits(found[at]) == bits(problem.c.elements[at]);
        assert!(
            inside || same,
            "element {at}, which is not of C, was written: {case:?}"
        );
    }
    Ok(())
}

/// A case's matrices before the kernel runs.
struct Problem<T, D> {
    case: Case,
    a: Host<T>,
    b: Host<T>,
    c: Host<D>,
    bias: Host<D>,
    residual: Option<Host<D>>,
}

impl<T, D> Problem<T, D>
where
    T: Element<D> + Operand<Factor: Number> + Number,
    D: Number,
{
    /// Random matrices. A C that is not read is poisoned.
    fn random(case: Case) -> Self {
        let [m, n, k] = case.extents;
        let a = Host::random([m, k], case.orders[0], case.memory);
        let b = Host::random([k, n], case.orders[1], case.memory);
        let mut c = Host::<D>::random([m, n], case.orders[2], case.memory);
        if case.factors[1] == 0.0 || case.residual.is_some() {
            c.elements.fill(D::poison());
        }
        let residual = case
            .residual
            .map(|order| Host::random([m, n], order, case.memory));
        Self {
            case,
            a,
            b,
            c,
            bias: Host::random([1, m.max(n)], RowMajor, [1, 0, 0]),
            residual,
        }
    }

    /// C's memory after the kernel of this name.
    fn run(&self, stream: &Stream, name: Option<&str>) -> cutlet::Result<Vec<D>> {
        let Self { case, a, b, c, .. } = self;
        let [m, n, k] = case.extents;
        let [alpha, beta] = case.factors;
        let (on_a, on_b) = (stream.upload(&a.elements)?, stream.upload(&b.elements)?);
        let on_bias = stream.upload(&self.bias.elements)?;
        let on_residual = self
            .residual
            .as_ref()
            .map(|it| stream.upload(&it.elements))
            .transpose()?;
        let mut on_c = stream.upload(&c.elements)?;
        let gemm = Gemm::new(
            Matrix::with_ld(on_a.slice(a.offset..)?, m, k, a.order, a.ld)?,
            Matrix::with_ld(on_b.slice(b.offset..)?, k, n, b.order, b.ld)?,
            MatrixMut::with_ld(on_c.slice_mut(c.offset..)?, m, n, c.order, c.ld)?,
        );
        let mut gemm = by_kernel(name, gemm)
            .alpha(T::Factor::of(alpha))
            .beta(T::Factor::of(beta))
            .precision(case.precision);
        match case.bias {
            Some(RowMajor) => gemm = gemm.bias(Bias::columns(on_bias.slice(..n)?)),
            Some(ColMajor) => gemm = gemm.bias(Bias::rows(on_bias.slice(..m)?)),
            None => {}
        }
        if let (Some(host), Some(elements)) = (&self.residual, &on_residual) {
            let elements = elements.slice(host.offset..)?;
            let source = Matrix::with_ld(elements, m, n, host.order, host.ld)?;
            gemm = gemm.source(source, T::Factor::of(beta));
        }
        if let Some(activation) = case.activation {
            gemm = gemm.activation(activation);
        }
        gemm.run(stream)?;
        Ok(stream.download(&on_c)?)
    }

    /// C[i, j] in f64, and how far the kernel's may be from it.
    fn expected(&self, i: usize, j: usize) -> (f64, f64) {
        let Self { case, a, b, .. } = self;
        let k = case.extents[2];
        let [alpha, beta] = case.factors;
        let products = (0..k).map(|l| a.at(i, l) * b.at(l, j));
        let (sum, magnitude, squares) = products
            .fold((0.0, 0.0, 0.0), |(sum, magnitude, squares), it| {
                (sum + it, magnitude + it.abs(), squares + it * it)
            });
        let source = self.residual.as_ref().unwrap_or(&self.c);
        let old = if beta == 0.0 {
            0.0
        } else {
            beta * source.at(i, j)
        };
        let added = match case.bias {
            Some(RowMajor) => self.bias.at(0, j),
            Some(ColMajor) => self.bias.at(0, i),
            None => 0.0,
        };
        let mut expected = alpha * sum + old + added;
        expected = match case.activation {
            Some(Activation::Relu) => expected.max(0.0),
            Some(Activation::Silu) => expected / (1.0 + (-expected).exp()),
            Some(other) => panic!("the test does not compute {other:?}"),
            None => expected,
        };
        let magnitude = alpha.abs() * magnitude + old.abs() + added.abs();
        let allowed = self.rounding(magnitude, alpha.abs() * squares.sqrt());
        (expected, allowed + expected.abs() * D::ROUNDING * 1.01)
    }

    /// What the accumulators may be off, for the sum of the terms' magnitudes and the root of the sum of the products'
    /// squares.
    fn rounding(&self, magnitude: f64, root: f64) -> f64 {
        let k = self.case.extents[2];
        // A bound for f32 sums, in the accumulators' type.
        let sums =
            rounding::of_sum(k, magnitude) / f64::from(f32::EPSILON / 2.0) * T::Factor::ROUNDING;
        let products = match self.case.precision {
            // The tensor cores add the products of a k-tile with 14 bits.
            Precision::Exact if size_of::<T>() == 1 && D::ROUNDING > 0.0 => root * 2.0 / 1024.0,
            Precision::Exact => 0.0,
            Precision::FastAccumulation => root * (k as f64 / 128.0).sqrt().max(1.0) * 2.0 / 1024.0,
            Precision::Tf32 => root * 4.0 / 1024.0,
            Precision::Tf32x3 => root * 4.0 / 1024.0 / 1024.0,
        };
        let least = if T::Factor::ROUNDING == 0.0 {
            0.0
        } else {
            1e-30
        };
        1.2 * (sums + products) + least
    }
}

const ORDERS: [Order; 2] = [RowMajor, ColMajor];

/// Everything for an element type that its kernels write.
fn check_all<T, D>(precision: Precision)
where
    T: Element<D> + Operand<Factor: Number> + Number,
    D: Number,
{
    let stream = Device::auto().stream().unwrap();
    let plain = Case { precision, ..PLAIN };
    for (nth_orders, orders) in ORDERS
        .map(|a| ORDERS.map(|b| ORDERS.map(|c| [a, b, c])))
        .as_flattened()
        .as_flattened()
        .iter()
        .enumerate()
    {
        for (nth, (extents, memory)) in [
            ([67, 69, 45], PLAIN.memory),
            ([80, 112, 45], PLAIN.memory),
            ([66, 70, 45], [2, 0, 0]),
            ([67, 69, 45], [1, 2, 0]),
            ([67, 69, 45], [16, 0, 1]),
        ]
        .into_iter()
        .enumerate()
        {
            if !has_turn(nth + nth_orders, 3) {
                continue;
            }
            let factors = [3.0, if orders[2] == RowMajor { 0.0 } else { -2.0 }];
            check::<T, D>(
                &stream,
                Case {
                    orders: *orders,
                    memory,
                    factors,
                    extents,
                    ..plain
                },
            );
        }
    }
    for extents in [
        [1, 1, 1],
        [7, 129, 65],
        [129, 1, 17],
        [65, 7, 129],
        [16, 8, 300],
        [128, 128, 64],
        [130, 260, 40],
    ] {
        check::<T, D>(&stream, Case { extents, ..plain });
        check::<T, D>(
            &stream,
            Case {
                extents,
                memory: [1, 0, 0],
                orders: [ColMajor, RowMajor, RowMajor],
                ..plain
            },
        );
    }
    for extents in [[5, 6, 0], [0, 5, 5], [5, 0, 5]] {
        check_by::<T, D>(
            &stream,
            Case {
                extents,
                factors: [1.0, 2.0],
                ..plain
            },
            None,
        )
        .unwrap();
    }
    // Such a k is split.
    check::<T, D>(
        &stream,
        Case {
            extents: [17, 20, 4100],
            bias: Some(RowMajor),
            ..plain
        },
    );
}

/// What is fused.
fn check_fused<T, D>(precision: Precision, activation: Activation)
where
    T: Element<D> + Operand<Factor: Number> + Number,
    D: Number,
{
    let stream = Device::auto().stream().unwrap();
    let on_gpu = stream.device().compute_capability().is_some();
    let activation = Some(activation);
    for (bias, residual, c) in [
        (Some(RowMajor), None, RowMajor),
        (Some(ColMajor), Some(RowMajor), RowMajor),
        (None, Some(ColMajor), ColMajor),
        (Some(RowMajor), Some(ColMajor), ColMajor),
    ] {
        let orders = [RowMajor, ColMajor, c];
        for (extents, memory) in [
            ([36, 40, 20], PLAIN.memory),
            ([33, 41, 21], [1, 0, 1]),
            ([9, 12, 2100], PLAIN.memory),
        ] {
            // The CPU backend splits k with one epilogue that reads old elements, and with one that does not.
            if !on_gpu && extents[2] > 1000 && c == ColMajor {
                continue;
            }
            let factors = [2.0, 3.0];
            let case = Case {
                extents,
                memory,
                orders,
                factors,
                bias,
                residual,
                activation,
                precision,
            };
            check::<T, D>(&stream, case);
        }
    }
}

#[test]
fn bf16_into_bf16() {
    check_all::<bf16, bf16>(Precision::Exact);
    check_fused::<bf16, bf16>(Precision::Exact, Activation::Silu);
}

#[test]
fn f16_into_f16() {
    check_all::<f16, f16>(Precision::Exact);
}

#[test]
fn sixteen_bits_into_other_types() {
    check_fused::<bf16, f32>(Precision::Exact, Activation::Silu);
    check_fused::<f16, f32>(Precision::Exact, Activation::Relu);
    check_fused::<bf16, f16>(Precision::Exact, Activation::Relu);
    check_fused::<f16, bf16>(Precision::Exact, Activation::Relu);
}

#[test]
fn e4m3_into_all_types() {
    check_all::<F8E4M3, bf16>(Precision::Exact);
    check_all::<F8E4M3, f32>(Precision::FastAccumulation);
    check_fused::<F8E4M3, bf16>(Precision::FastAccumulation, Activation::Silu);
    check_fused::<F8E4M3, f16>(Precision::Exact, Activation::Relu);
}

/// The error of a sum of so many products, relative to the root of the sum of their squares.
fn error_of_e4m3(stream: &Stream, k: usize, precision: Precision) -> f64 {
    let case = Case {
        extents: [64, 64, k],
        precision,
        ..PLAIN
    };
    let problem = Problem::<F8E4M3, f32>::random(case);
    let found = problem.run(stream, None).unwrap();
    let error = |(i, j): (usize, usize)| {
        let products = (0..k).map(|l| problem.a.at(i, l) * problem.b.at(l, j));
        let (sum, squares) = products.fold((0.0, 0.0), |(sum, squares), it| {
            (sum + it, squares + it * it)
        });
        (found[problem.c.index(i, j)].number() - sum).abs() / squares.sqrt()
    };
    let places = (0..64).map(|i| (i, i * 7 % 64));
    places.map(error).fold(0.0, f64::max)
}

#[test]
fn promoted_sums_keep_the_error_of_a_k_tile() {
    let stream = Device::auto().stream().unwrap();
    let promoted = error_of_e4m3(&stream, 16384, Precision::Exact);
    assert!(promoted < 1e-3, "{promoted}");
    // The CPU backend adds in f32.
    if stream.device().compute_capability().is_some() {
        let fast = error_of_e4m3(&stream, 16384, Precision::FastAccumulation);
        // K is split, so that each sum is shorter.
        assert!(fast > 1.5 * promoted && fast < 0.05, "{fast}, {promoted}");
    }
}

#[test]
fn tf32() {
    check_all::<f32, f32>(Precision::Tf32);
    check_fused::<f32, f32>(Precision::Tf32, Activation::Relu);
}

#[test]
fn three_products_of_tf32() {
    check_all::<f32, f32>(Precision::Tf32x3);
    check_fused::<f32, bf16>(Precision::Tf32x3, Activation::Relu);
}

#[test]
fn f64_into_f64() {
    check_all::<f64, f64>(Precision::Exact);
    check_fused::<f64, f64>(Precision::Exact, Activation::Relu);
}

#[test]
fn i8_into_i32() {
    check_all::<i8, i32>(Precision::Exact);
    check_fused::<i8, i32>(Precision::Exact, Activation::Relu);
}

#[test]
fn exact_products_of_f32_are_not_rounded_to_tf32() {
    let names =
        |precision| Gemm::<f32>::instances(Device::auto().backend(), RowMajor, ColMajor, precision);
    let exact = names(Precision::Exact);
    assert!(exact.iter().all(|name| !name.contains("tf32")), "{exact:?}");
    let names = names(Precision::Tf32x3);
    assert!(
        names.iter().all(|name| !name.contains("mma_tf32")),
        "{names:?}"
    );
    assert!(
        names.iter().any(|name| name.contains("mma_3xtf32")),
        "{names:?}"
    );
}
