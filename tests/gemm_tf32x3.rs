//! Products of f32 by three products of tf32 on Hopper: their errors beside those of multiply-adds in f32, which few
//! products are left to, and numbers that have no parts in tf32. Needs a Hopper GPU or the CPU backend.

use cutlet::Order::{ColMajor, RowMajor};
use cutlet::{Backend, Device, Gemm, Matrix, MatrixMut, Precision, Stream};

/// The kernels. The CPU backend runs each in two clusters.
fn names(stream: &Stream) -> Vec<&'static str> {
    let backend = stream.device().backend();
    let mut names = Gemm::<f32>::instances(backend, RowMajor, ColMajor, Precision::Tf32x3);
    names.retain(|name| {
        let is_of_few = ["_1x1_", "_1x2_"]
            .iter()
            .any(|cluster| name.contains(cluster));
        name.starts_with("tf32x3_") && (backend == Backend::Gpu || is_of_few)
    });
    names
}

/// A is m×k, B is k×n, and both are K-major.
struct Operands {
    extents: [usize; 3],
    a: Vec<f32>,
    b: Vec<f32>,
}

impl Operands {
    fn new(
        extents: [usize; 3],
        mut a: impl FnMut(&mut fastrand::Rng) -> f32,
        mut b: impl FnMut(&mut fastrand::Rng) -> f32,
    ) -> Self {
        let [m, n, k] = extents;
        let mut random = fastrand::Rng::with_seed(11);
        Self {
            extents,
            a: (0..m * k).map(|_| a(&mut random)).collect(),
            b: (0..n * k).map(|_| b(&mut random)).collect(),
        }
    }

    /// C by the kernel of this name.
    fn product(&self, stream: &Stream, name: &str) -> Vec<f32> {
        let named = |gemm: Gemm<'_, f32>| {
            gemm.precision(Precision::Tf32x3)
                .instance(name)
                .run(stream)
                .unwrap();
        };
        self.product_by(stream, named)
    }

    /// C in this precision, by the kernel that is chosen.
    fn product_in(&self, stream: &Stream, precision: Precision) -> Vec<f32> {
        let chosen = |gemm: Gemm<'_, f32>| gemm.precision(precision).run(stream).unwrap();
        self.product_by(stream, chosen)
    }

    fn product_by(&self, stream: &Stream, run: impl FnOnce(Gemm<'_, f32>)) -> Vec<f32> {
        let [m, n, k] = self.extents;
        let a = stream.upload(&self.a).unwrap();
        let b = stream.upload(&self.b).unwrap();
        let mut c = stream.filled::<f32>(m * n, 0xFF).unwrap();
        run(Gemm::new(
            Matrix::packed(&a, m, k, RowMajor).unwrap(),
            Matrix::packed(&b, k, n, ColMajor).unwrap(),
            MatrixMut::row_major(&mut c, m, n).unwrap(),
        ));
        stream.download(&c).unwrap()
    }

    /// What `of` makes of the factors of each entry of C.
    fn map<R>(&self, of: impl Fn(&[(f32, f32)]) -> R) -> Vec<R> {
        let [m, n, k] = self.extents;
        let mut all = Vec::with_capacity(m * n);
        let mut factors = Vec::with_capacity(k);
        for a in self.a.chunks(k) {
            for b in self.b.chunks(k) {
                factors.clear();
                factors.extend(a.iter().copied().zip(b.iter().copied()));
                all.push(of(&factors));
            }
        }
        all
    }
}

/// The sum of products by multiply-adds of f32.
fn in_f32(factors: &[(f32, f32)]) -> f32 {
    factors.iter().fold(0.0, |sum, (a, b)| a.mul_add(*b, sum))
}

/// The sum of products, and the sum of the magnitudes of those that are finite.
fn in_f64(factors: &[(f32, f32)]) -> [f64; 2] {
    let products = factors.iter().map(|(a, b)| f64::from(*a) * f64::from(*b));
    let magnitudes = products.clone().filter(|it| it.is_finite());
    [products.sum(), magnitudes.map(f64::abs).sum()]
}

/// Roughly a normal deviate.
fn normal(random: &mut fastrand::Rng) -> f32 {
    (0..4).map(|_| 2.0 * random.f32() - 1.0).sum()
}

/// The same times a power of two of a wide range.
fn wide(random: &mut fastrand::Rng) -> f32 {
    normal(random) * 2f32.powi(random.i32(-30..30))
}

/// Operands whose products nearly cancel: those of the second half of k are about the negative ones of the first.
fn cancelling(extents: [usize; 3]) -> Operands {
    let [.., k] = extents;
    let mut operands = Operands::new(extents, normal, normal);
    let half = k / 2;
    for row in operands.a.chunks_mut(k) {
        let (first, second) = row.split_at_mut(half);
        for (first, second) in first.iter().zip(second) {
            *second = -first * (1.0 + 1e-5 * second.abs());
        }
    }
    for column in operands.b.chunks_mut(k) {
        column.copy_within(..half, half);
    }
    operands
}

/// The root of the sum of the squares of errors, relative to the magnitudes of products.
fn root_of_errors(operands: &Operands, found: &[f32]) -> f64 {
    let exact = operands.map(in_f64);
    let errors = exact.iter().zip(found).map(|([exact, magnitudes], found)| {
        let error = (f64::from(*found) - exact).abs() / magnitudes;
        error * error
    });
    errors.sum::<f64>().sqrt()
}

/// Checks that the errors of `operands` are at most `most` times those in f32: the root of their mean square, and the
/// largest. Errors are relative to the magnitudes of products.
fn check_errors(what: &str, operands: &Operands, most: f64) {
    let stream = Device::auto().stream().unwrap();
    let expected = operands.map(|factors| (in_f64(factors), in_f32(factors)));
    for name in names(&stream) {
        let (mut squares, mut worst) = ([0.0; 2], [0f64; 2]);
        for (([exact, magnitudes], sum), found) in
            expected.iter().zip(operands.product(&stream, name))
        {
            for (way, sum) in [found, *sum].into_iter().enumerate() {
                let error = (f64::from(sum) - exact).abs() / magnitudes;
                squares[way] += error * error;
                worst[way] = worst[way].max(error);
            }
        }
        let [root, of_f32] = squares.map(f64::sqrt);
        assert!(
            root <= most * of_f32,
            "{name}, {what}: {root:e}, and {of_f32:e} in f32"
        );
        let [worst, of_f32] = worst;
        assert!(
            worst <= 1.2 * most * of_f32,
            "{name}, {what}: at worst {worst:e}, and {of_f32:e} in f32"
        );
    }
}

const EXTENTS: [usize; 3] = [70, 72, 600];

#[test]
fn errors_are_those_of_f32() {
    check_errors("normal", &Operands::new(EXTENTS, normal, normal), 1.0);
    // Few products make up a sum, so that f32 rounds it few times.
    check_errors("wide", &Operands::new(EXTENTS, wide, wide), 1.5);
    let positive = |random: &mut fastrand::Rng| random.f32();
    check_errors("positive", &Operands::new(EXTENTS, positive, positive), 1.0);
}

#[test]
fn sums_that_cancel_have_the_errors_of_f32() {
    check_errors("cancelling", &cancelling(EXTENTS), 1.0);
}

#[test]
fn errors_are_those_of_f32_for_any_k() {
    let stream = Device::auto().stream().unwrap();
    let few = (1..16).chain([127, 128]);
    for k in few.chain((16..=160).step_by(9)) {
        let extents = [33, 40, k];
        for (what, operands, most) in [
            ("normal", Operands::new(extents, normal, normal), 1.0),
            ("cancelling", cancelling(extents), 1.0),
            // Few products make up a sum, each with the error of three.
            ("wide", Operands::new(extents, wide, wide), 1.8),
        ] {
            let three = operands.product_in(&stream, Precision::Tf32x3);
            let exact = operands.product_in(&stream, Precision::Exact);
            let in_f32 = operands.map(in_f32);
            let [of_three, of_exact, of_f32] =
                [&three, &exact, &in_f32].map(|found| root_of_errors(&operands, found));
            // Exact kernels add in orders of their own.
            let bound = match k {
                ..128 => of_exact,
                _ => most * of_f32.max(of_exact),
            };
            assert!(
                of_three <= bound,
                "{what}, k = {k}: {of_three:e}, exact {of_exact:e}, and {of_f32:e} in f32"
            );
        }
    }
}

#[test]
fn three_products_are_chosen_from_128_of_k_on() {
    let stream = Device::auto().stream().unwrap();
    let kernel = |k: usize, named: Option<&str>| {
        let extents @ [m, n, _] = [2048, 2048, k];
        let elements = stream.zeroed::<f32>(m.max(n) * k).unwrap();
        let mut c = stream.zeroed::<f32>(m * n).unwrap();
        let [m, n, k] = extents;
        let mut gemm = Gemm::new(
            Matrix::packed(elements.slice(..m * k).unwrap(), m, k, RowMajor).unwrap(),
            Matrix::packed(elements.slice(..k * n).unwrap(), k, n, ColMajor).unwrap(),
            MatrixMut::row_major(&mut c, m, n).unwrap(),
        )
        .precision(Precision::Tf32x3);
        let candidates = gemm.candidates(&stream).unwrap();
        if let Some(name) = named {
            gemm = gemm.instance(name);
        }
        let kernel = gemm.plan(&stream).unwrap().kernel().unwrap();
        let is_of_tf32 = |name: &str| name.contains("tf32x3") || name.contains("3xtf32");
        (
            is_of_tf32(kernel),
            candidates.iter().any(|it| is_of_tf32(it)),
        )
    };
    assert_eq!(kernel(124, None), (false, false));
    assert_eq!(kernel(128, None), (true, true));
    // A kernel that is named runs.
    for name in names(&stream) {
        assert_eq!(kernel(64, Some(name)), (true, false));
    }
}

#[test]
fn small_numbers_keep_their_bits() {
    // All products are those of f32, and the sums of splits are added.
    let large = |random: &mut fastrand::Rng| normal(random) * 2f32.powi(100);
    let denormal = |random: &mut fastrand::Rng| f32::from_bits(random.u32(..1 << 23));
    check_errors("denormal", &Operands::new(EXTENTS, large, denormal), 1.1);
    check_errors("denormal", &Operands::new(EXTENTS, denormal, large), 1.1);
    let small = |random: &mut fastrand::Rng| normal(random) * 2f32.powi(-104);
    check_errors("small", &Operands::new(EXTENTS, small, large), 1.1);
}

/// Few numbers are extreme, so that there are k-tiles with them and without them.
fn with_extremes(random: &mut fastrand::Rng) -> f32 {
    let extremes = [
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
        1e-40,
        0.0,
    ];
    match random.usize(..4000) {
        nth if nth < extremes.len() => extremes[nth],
        _ => normal(random),
    }
}

#[test]
fn infinities_and_nan_are_those_of_f32() {
    let stream = Device::auto().stream().unwrap();
    let operands = Operands::new([140, 200, 150], with_extremes, with_extremes);
    let all = operands.map(|factors| (in_f64(factors), in_f32(factors)));
    let mut seen = [0; 4];
    for name in names(&stream) {
        let found = operands.product(&stream, name);
        for (([exact, magnitudes], expected), found) in all.iter().copied().zip(found) {
            if magnitudes > f64::from(f32::MAX) {
                // Sums of finite products may overflow on the way, in one order or the other.
                continue;
            }
            let is_right = match expected {
                _ if expected.is_nan() => found.is_nan(),
                _ if expected.is_infinite() => found == expected,
                _ => (f64::from(found) - exact).abs() <= 1e-6 * magnitudes,
            };
            assert!(is_right, "{name}: {found}, and {expected} in f32");
            let kind = match expected {
                _ if expected.is_nan() => 0,
                f32::INFINITY => 1,
                f32::NEG_INFINITY => 2,
                _ => 3,
            };
            seen[kind] += 1;
        }
    }
    assert!(
        names(&stream).is_empty() || seen.iter().all(|count| *count > 20),
        "{seen:?}"
    );
}
