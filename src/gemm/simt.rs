//! GEMM in f32 on the CUDA cores: the instance of `gemm_f32` for a problem, and its launch. A bias, a
//! residual, an activation and a C of another type are another kernel's, which reads the sums.

use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_host::Stream;
use cutlet_kernels::gemm_f32::{
    self, TileC,
    col_col::{gemm_f32_col_col_x1, gemm_f32_col_col_x4},
    col_row::{gemm_f32_col_row_x1, gemm_f32_col_row_x4},
    row_col::{gemm_f32_row_col_x1, gemm_f32_row_col_x4},
    row_row::{gemm_f32_row_row_x1, gemm_f32_row_row_x4},
};

use cutlet_layout_core::tile_extent;
use half::{bf16, f16};

use super::epilogue::Extras;
use super::sums::{Output, Sums};
use super::{Activation, Problem, no_instance, sealed};
use crate::Order::{self, ColMajor, RowMajor};
use crate::matrix::Extents;
use crate::{MatrixMut, Result};

macro_rules! launch {
    ($($c:ty: $launch:ident;)+) => {$(
        impl sealed::Launch<$c> for f32 {
            fn launch(
                stream: &Stream,
                problem: Problem<'_, f32, $c>,
                named: Option<&str>,
            ) -> Result<()> {
                $launch(stream, problem, named)
            }

            fn instances(a: Order, b: Order) -> Vec<&'static str> {
                [true, false]
                    .map(|vectors| of_orders(a, b, vectors).name())
                    .to_vec()
            }

            fn fused_instances(_: Order, _: Order, _: Option<Activation>) -> Vec<&'static str> {
                Vec::new()
            }
        }
    )+};
}
launch! {
    f32: to_f32;
    bf16: by_sums;
    f16: by_sums;
}

/// C of f32: by the kernel itself, if nothing is fused.
fn to_f32(stream: &Stream, mut problem: Problem<'_, f32>, named: Option<&str>) -> Result<()> {
    match problem.extras.are_none() {
        true => multiply(stream, &mut problem, named),
        false => by_sums(stream, problem, named),
    }
}

/// C of any type, with anything fused: by way of sums.
fn by_sums<D: Output>(
    stream: &Stream,
    problem: Problem<'_, f32, D>,
    named: Option<&str>,
) -> Result<()> {
    let (m, n, _) = problem.extents();
    let mut sums = Sums::new(stream, [m, n.next_multiple_of(4)], 1)?;
    let ld = sums.extent[1];
    let product = MatrixMut::with_ld(sums.elements.view_mut(), m, n, RowMajor, ld)?;
    let mut plain = Problem {
        alpha: 1.0,
        a: problem.a,
        b: problem.b,
        beta: 0.0,
        c: product,
        extras: Extras::default(),
    };
    multiply(stream, &mut plain, named)?;
    // SAFETY: the sums are of the problem's C.
    unsafe { sums.finish(stream, problem) }
}

/// `C = alpha·A·B + beta·C`.
fn multiply(stream: &Stream, problem: &mut Problem<'_, f32>, named: Option<&str>) -> Result<()> {
    let instance = instance(problem, named)?;
    let function = stream.device().load(&cutlet_kernels::PTX, instance)?;
    let (blocks, extents) = (blocks(problem), kernel_problem(problem));
    let args = (problem.a.view, problem.b.view, &mut problem.c.view, extents);
    // SAFETY: the matrices were checked against the memory behind them, and C, which overlaps
    // neither A nor B, is borrowed mutably.
    unsafe { stream.launch(&function, blocks, args)? };
    Ok(())
}

/// Rows of tiles that blocks visit together, so that the L2 cache serves them.
const GROUP: u32 = 8;
/// Bytes of the widest access.
const VECTOR: usize = 16;

/// A kernel of the family.
type Instance = Kernel<(Global<f32>, Global<f32>, GlobalMut<f32>, gemm_f32::Problem)>;

/// The instance for the problem's orders and alignment, or the one of that name, if it can do with that alignment.
fn instance(problem: &Problem<'_, f32>, named: Option<&str>) -> Result<&'static Instance> {
    let Problem { a, b, c, .. } = problem;
    let aligned = [
        (a.starts_runs_at(VECTOR), &a.extents),
        (b.starts_runs_at(VECTOR), &b.extents),
        (c.starts_runs_at(VECTOR), &c.extents),
    ]
    .into_iter()
    .all(|(starts, extents)| starts && whole_vectors(extents));
    let mut possible = [true, false]
        .into_iter()
        .filter(|&vectors| aligned || !vectors)
        .map(|vectors| of_orders(a.order(), b.order(), vectors))
        .filter(|instance| named.is_none_or(|name| instance.name() == name));
    possible.next().ok_or_else(|| no_instance(named))
}

/// The instance for operands of these orders, with vector accesses or without.
fn of_orders(a: Order, b: Order, vectors: bool) -> &'static Instance {
    match (a, b, vectors) {
        (RowMajor, RowMajor, true) => &gemm_f32_row_row_x4,
        (RowMajor, RowMajor, false) => &gemm_f32_row_row_x1,
        (RowMajor, ColMajor, true) => &gemm_f32_row_col_x4,
        (RowMajor, ColMajor, false) => &gemm_f32_row_col_x1,
        (ColMajor, RowMajor, true) => &gemm_f32_col_row_x4,
        (ColMajor, RowMajor, false) => &gemm_f32_col_row_x1,
        (ColMajor, ColMajor, true) => &gemm_f32_col_col_x4,
        (ColMajor, ColMajor, false) => &gemm_f32_col_col_x1,
    }
}

/// Blocks to launch: one for each tile of C.
fn blocks(problem: &Problem<'_, f32>) -> u32 {
    let (m, n, _) = problem.extents();
    let [tile_m, tile_n] = const { tile_extent::<TileC>() };
    let tiles = m.div_ceil(tile_m as usize) * n.div_ceil(tile_n as usize);
    // No grid has as many, so that the launch is refused.
    u32::try_from(tiles).unwrap_or(u32::MAX)
}

fn kernel_problem(problem: &Problem<'_, f32>) -> gemm_f32::Problem {
    let (m, n, k) = problem.extents();
    gemm_f32::Problem {
        lda: problem.a.ld() as i64,
        ldb: problem.b.ld() as i64,
        ldc: problem.c.ld() as i64,
        m: m as i32,
        n: n as i32,
        k: k as i32,
        alpha: problem.alpha,
        beta: problem.beta,
        group: GROUP,
    }
}

/// Whether all runs of a matrix are as long as a multiple of the widest access.
fn whole_vectors(extents: &Extents) -> bool {
    let (run, _) = extents.run_and_count();
    run.is_multiple_of(VECTOR / size_of::<f32>())
}
