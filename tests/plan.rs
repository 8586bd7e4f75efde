//! Plans: a plan runs again and again on matrices of the shape that it was made for, and refuses others.

use crate::batches::{batch, batch_mut};
use cutlet::{
    Activation, Bias, Buffer, Device, EpiloguePlan, Error, Gemm, Matrix, MatrixMut, Order, Stream,
    TensorMut,
};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::epilogue::Scale;
use cutlet_kernels::gemm::sm90::instances::BF16;
use half::bf16;

/// Small whole numbers, so that products and sums are exact.
fn numbers(count: usize, seed: usize) -> Vec<bf16> {
    let number = |i: usize| bf16::from_f32(((i * 7 + seed) % 11 % 3) as f32 - 1.0);
    (0..count).map(number).collect()
}

/// `A·B + beta·C`, for a row-major A (m, k), a column-major B and a row-major C.
fn product([m, n, k]: [usize; 3], a: &[bf16], b: &[bf16], beta: f32, c: &[bf16]) -> Vec<bf16> {
    let element = |at: usize| {
        let (row, column) = (&a[at / n * k..][..k], &b[at % n * k..][..k]);
        let products = row.iter().zip(column).map(|(a, b)| a.to_f32() * b.to_f32());
        bf16::from_f32(products.sum::<f32>() + beta * c[at].to_f32())
    };
    (0..m * n).map(element).collect()
}

struct Operands {
    a: Buffer<bf16>,
    b: Buffer<bf16>,
    c: Buffer<bf16>,
    expected: Vec<bf16>,
}

impl Operands {
    fn new(stream: &Stream, [m, n, k]: [usize; 3], beta: f32, seed: usize) -> Self {
        let (a, b) = (numbers(m * k, seed), numbers(k * n, seed + 1));
        let c = numbers(m * n, seed + 2);
        Operands {
            expected: product([m, n, k], &a, &b, beta, &c),
            a: stream.upload(&a).unwrap(),
            b: stream.upload(&b).unwrap(),
            c: stream.upload(&c).unwrap(),
        }
    }

    /// The product, of a row-major A and C, and a column-major B.
    fn gemm(&mut self, [m, n, k]: [usize; 3]) -> Gemm<'_, bf16> {
        Gemm::new(
            Matrix::row_major(&self.a, m, k).unwrap(),
            Matrix::col_major(&self.b, k, n).unwrap(),
            MatrixMut::row_major(&mut self.c, m, n).unwrap(),
        )
    }
}

#[test]
fn a_plan_runs_again_and_on_other_matrices() {
    let stream = Device::auto().stream().unwrap();
    // Whole tiles, splits, rows that TMA cannot read, a C that TMA cannot store, and no k.
    for extents in [
        [128, 256, 64],
        [30, 40, 2000],
        [33, 64, 17],
        [65, 31, 64],
        [8, 8, 0],
    ] {
        for beta in [0.0, 1.0, -2.0] {
            let mut all = [0, 1, 2].map(|seed| Operands::new(&stream, extents, beta, seed));
            let mut planned = all[0].gemm(extents).beta(beta);
            let plan = planned.plan(&stream).unwrap();
            for operands in &mut all {
                let old = stream.download(&operands.c).unwrap();
                for _ in 0..2 {
                    stream.copy_from_host(&old, &mut operands.c).unwrap();
                    let mut gemm = operands.gemm(extents).beta(beta);
                    plan.run(&stream, &mut gemm).unwrap();
                }
                assert_eq!(
                    stream.download(&operands.c).unwrap(),
                    operands.expected,
                    "{extents:?}, beta {beta}"
                );
            }
        }
    }
}

#[test]
fn a_plan_runs_with_another_bias() {
    let stream = Device::auto().stream().unwrap();
    let extents = [64, 128, 64];
    let mut operands = Operands::new(&stream, extents, 0.0, 3);
    let biases = [0.0, 16.0].map(|bias| stream.upload(&[bf16::from_f32(bias); 128]).unwrap());
    fn with<'a>(bias: &'a Buffer<bf16>, operands: &'a mut Operands) -> Gemm<'a, bf16> {
        let gemm = operands.gemm([64, 128, 64]);
        gemm.bias(Bias::columns(bias)).activation(Activation::Relu)
    }
    let plan = with(&biases[0], &mut operands).plan(&stream).unwrap();
    for (bias, added) in biases.iter().zip([0.0, 16.0]) {
        plan.run(&stream, &mut with(bias, &mut operands)).unwrap();
        let expected = operands.expected.iter();
        let expected = expected.map(|sum| bf16::from_f32((sum.to_f32() + added).max(0.0)));
        assert_eq!(
            stream.download(&operands.c).unwrap(),
            expected.collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_plan_refuses_matrices_of_another_shape() {
    let stream = Device::cpu().stream().unwrap();
    let elements = stream.zeroed::<bf16>(64 * 64 + 1).unwrap();
    let mut out = stream.zeroed::<bf16>(64 * 64).unwrap();
    let matrix = |rows, columns| Matrix::row_major(&elements, rows, columns).unwrap();
    let c = MatrixMut::row_major(&mut out, 32, 32).unwrap();
    let mut planned = Gemm::new(matrix(32, 32), matrix(32, 32), c);
    let plan = planned.plan(&stream).unwrap();
    let shifted = Matrix::row_major(elements.slice(1..).unwrap(), 32, 32).unwrap();
    let wide = Matrix::with_ld(&elements, 32, 32, Order::RowMajor, 64).unwrap();
    for (a, beta, said) in [
        (
            shifted,
            0.0,
            "row-major elements with leading dimension 32 at a multiple of 2 bytes of A",
        ),
        (wide, 0.0, "row-major elements with leading dimension 64"),
        (matrix(32, 32).transposed(), 0.0, "column-major elements"),
        (matrix(32, 32), 1.0, "beta 1"),
    ] {
        let c = MatrixMut::row_major(&mut out, 32, 32).unwrap();
        let refused = plan.run(&stream, &mut Gemm::new(a, matrix(32, 32), c).beta(beta));
        let error = refused.unwrap_err();
        assert!(matches!(error, Error::Plan { .. }));
        assert!(error.to_string().contains(said), "{error}");
    }
    let c = MatrixMut::row_major(&mut out, 16, 32).unwrap();
    let refused = plan.run(&stream, &mut Gemm::new(matrix(16, 32), matrix(32, 32), c));
    let error = refused.unwrap_err().to_string();
    // Nothing else differs.
    assert_eq!(
        error,
        "gemm: the plan was made for m = 32, and was run on m = 16; make a plan for each"
    );
}

#[test]
fn a_plan_for_a_batch_runs_again_and_refuses_another_batch() {
    let stream = Device::auto().stream().unwrap();
    let (count, [m, n, k]) = (3, [20, 24, 32]);
    let (a, b) = (numbers(count * m * k, 1), numbers(count * k * n, 2));
    let zeros = vec![bf16::ZERO; m * n];
    let products = a.chunks(m * k).zip(b.chunks(k * n));
    let expected: Vec<bf16> = products
        .flat_map(|(a, b)| product([m, n, k], a, b, 0.0, &zeros))
        .collect();
    let (a, b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
    let mut c = stream.zeroed::<bf16>(count * m * n).unwrap();
    let of_a = |count| batch(&a, count, m, k, Order::RowMajor);
    let of_b = |count| batch(&b, count, k, n, Order::ColMajor);
    fn of_c(c: &mut Buffer<bf16>, count: usize) -> TensorMut<'_, bf16> {
        batch_mut(c, count, 20, 24, Order::RowMajor)
    }

    let mut planned = Gemm::new(of_a(count), of_b(count), of_c(&mut c, count));
    let plan = planned.plan(&stream).unwrap();
    for _ in 0..2 {
        stream.fill_bytes(&mut c, 0xff).unwrap();
        let mut gemm = Gemm::new(of_a(count), of_b(count), of_c(&mut c, count));
        plan.run(&stream, &mut gemm).unwrap();
        assert_eq!(stream.download(&c).unwrap(), expected);
    }
    let refused = plan.run(&stream, &mut Gemm::new(of_a(2), of_b(2), of_c(&mut c, 2)));
    let error = refused.unwrap_err().to_string();
    assert!(
        error.contains("3 products") && error.contains("2 products"),
        "{error}"
    );
}

/// A plan for C = epilogue(A·B) by the library's kernel of this name.
fn scale_plan(
    stream: &Stream,
    name: &str,
    a: Matrix<'_, bf16>,
    b: Matrix<'_, bf16>,
    c: MatrixMut<'_, bf16>,
) -> cutlet::Result<EpiloguePlan<bf16, Scale>> {
    let mut instances = BF16.iter().filter(|it| it.name() == name);
    let instance = instances.next().expect("the instance exists");
    EpiloguePlan::new(stream, &PTX, instance, a, b, c)
}

/// Edge tiles shift back only if C is overwritten. If they shifted in the second run, the overlap would be added to
/// twice.
#[test]
fn each_run_of_an_epilogue_plan_may_read_old_elements_or_not() {
    let stream = Device::auto().stream().unwrap();
    for [m, n, k] in [[144, 136, 64], [144, 264, 64], [40, 1, 64]] {
        let mut operands = Operands::new(&stream, [m, n, k], 0.0, 5);
        let a = Matrix::row_major(&operands.a, m, k).unwrap();
        let b = Matrix::col_major(&operands.b, k, n).unwrap();
        let on_c = &mut operands.c;
        let c = MatrixMut::row_major(&mut *on_c, m, n).unwrap();
        let plan = scale_plan(&stream, "bf16_128x112x64_1x1_coop", a, b, c).unwrap();
        for beta in [0.0, 1.0] {
            let c = MatrixMut::row_major(&mut *on_c, m, n).unwrap();
            // SAFETY: the epilogue has no operands.
            unsafe { plan.run(&stream, a, b, c, Scale { alpha: 1.0, beta }) }.unwrap();
        }
        let expected = operands.expected.iter();
        let twice = expected.map(|sum| bf16::from_f32(2.0 * sum.to_f32()));
        assert_eq!(
            stream.download(&*on_c).unwrap(),
            twice.collect::<Vec<_>>(),
            "{m}×{n}×{k}"
        );
    }
}

#[test]
fn an_epilogue_plan_refuses_what_its_kernel_cannot_do() {
    let stream = Device::cpu().stream().unwrap();
    let (m, n, k) = (64, 64, 64);
    let mut operands = Operands::new(&stream, [m, n, k], 0.0, 6);
    let a = Matrix::row_major(&operands.a, m, k).unwrap();
    let b = Matrix::col_major(&operands.b, k, n).unwrap();
    let c = MatrixMut::col_major(&mut operands.c, m, n).unwrap();
    let refused = scale_plan(&stream, "bf16_128x128x64_2x1_pingpong", a, b, c);
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("column-major C"), "{error}");

    let c = MatrixMut::row_major(&mut operands.c, m, n).unwrap();
    let plan = scale_plan(&stream, "bf16_256x160x64_1x2_coop", a, b, c).unwrap();
    let mut run = |beta| {
        let c = MatrixMut::row_major(&mut operands.c, m, n).unwrap();
        // SAFETY: the epilogue has no operands.
        unsafe { plan.run(&stream, a, b, c, Scale { alpha: 1.0, beta }) }
    };
    run(0.0).unwrap();
    let error = run(1.0).unwrap_err().to_string();
    assert!(error.contains("reads old elements"), "{error}");
}
