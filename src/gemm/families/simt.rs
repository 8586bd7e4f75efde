//! GEMM of f32 on CUDA cores. Products are exact, which suits every precision. A bias, a residual, an activation or a C of another type takes an epilogue pass.

use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_host::{Device, Function, Stream};
use cutlet_kernels::gemm::simt::{
    self, TileC,
    col_col::{gemm_f32_col_col_x1, gemm_f32_col_col_x4},
    col_row::{gemm_f32_col_row_x1, gemm_f32_col_row_x4},
    row_col::{gemm_f32_row_col_x1, gemm_f32_row_col_x4},
    row_row::{gemm_f32_row_row_x1, gemm_f32_row_row_x4},
};
use cutlet_layout_core::tile_extent;

use crate::Order::{self, ColMajor, RowMajor};
use crate::gemm::epilogue::EpilogueArgs;
use crate::gemm::partials::{Output, Partials};
use crate::gemm::precision::Precision;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Family, Fused, Launch, Planned};
use crate::matrix::Extents;
use crate::{MatrixMut, Result};

macro_rules! family {
    ($(#[$doc:meta])* $name:ident, <$($d:ident: $bound:ident)?> to $c:ty, plan $plan:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl<$($d: $bound)?> Family<f32, $c> for $name {
            fn name(&self) -> &'static str {
                "gemm-simt"
            }

            fn supports(&self, _: &Device) -> Result<()> {
                Ok(())
            }

            fn candidates(
                &self,
                a: Order,
                b: Order,
                _: Precision,
                fused: Fused,
            ) -> Vec<&'static str> {
                match fused {
                    Fused::Nothing => [true, false]
                        .map(|vectors| of_orders(a, b, vectors).name())
                        .to_vec(),
                    Fused::Something(_) => Vec::new(),
                }
            }

            fn plan(
                &self,
                stream: &Stream,
                problem: &Problem<'_, f32, $c>,
                kernel: Option<&str>,
            ) -> Result<Option<Planned<f32, $c>>> {
                $plan(stream, problem, kernel)
            }
        }
    };
}
family! {
    /// C of f32.
    ToF32, <> to f32, plan to_f32
}
family! {
    /// C of another type.
    ToOtherType, <D: Output> to D, plan by_epilogue_pass
}

/// Plans a C of f32. If nothing is fused, the kernel itself writes it.
fn to_f32(
    stream: &Stream,
    problem: &Problem<'_, f32>,
    kernel: Option<&str>,
) -> Result<Option<Planned<f32, f32>>> {
    if !problem.epilogue.are_none() {
        return by_epilogue_pass(stream, problem, kernel);
    }
    let c = &problem.c;
    let is_aligned = is_aligned(problem) && c.starts_runs_at(VECTOR) && whole_vectors(&c.extents);
    let Some(kernel) = instance(problem, is_aligned, kernel) else {
        return Ok(None);
    };
    let launch = Direct(stream.device().load(&cutlet_kernels::PTX, kernel)?);
    Ok(Some(planned(Box::new(launch))))
}

/// Plans any C: an epilogue pass makes it of the product.
fn by_epilogue_pass<D: Output>(
    stream: &Stream,
    problem: &Problem<'_, f32, D>,
    kernel: Option<&str>,
) -> Result<Option<Planned<f32, D>>> {
    // The product's rows are padded to whole vectors.
    let (_, n, _) = problem.extents();
    let is_aligned = is_aligned(problem) && n.is_multiple_of(VECTOR / size_of::<f32>());
    let Some(kernel) = instance(problem, is_aligned, kernel) else {
        return Ok(None);
    };
    let launch = ByEpiloguePass(stream.device().load(&cutlet_kernels::PTX, kernel)?);
    Ok(Some(planned(Box::new(launch))))
}

/// A plan without an estimate: any other family is faster.
fn planned<D: Output>(launch: Box<dyn Launch<f32, D>>) -> Planned<f32, D> {
    Planned {
        clocks: f64::INFINITY,
        launch,
    }
}

/// `C = alpha·A·B + beta·C`, by one kernel.
struct Direct(Function<Arguments>);

impl Launch<f32, f32> for Direct {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, f32>) -> Result<()> {
        multiply(stream, &self.0, &mut problem)
    }
}

/// Any C, by an epilogue pass over a product in scratch memory.
struct ByEpiloguePass(Function<Arguments>);

impl<D: Output> Launch<f32, D> for ByEpiloguePass {
    fn launch(&self, stream: &Stream, problem: Problem<'_, f32, D>) -> Result<()> {
        let (m, n, _) = problem.extents();
        let mut partials = Partials::new(stream, [m, n.next_multiple_of(4)], 1)?;
        let ld = partials.extent[1];
        let product = MatrixMut::with_ld(partials.elements.view_mut(), m, n, RowMajor, ld)?;
        let mut plain = Problem {
            alpha: 1.0,
            a: problem.a,
            b: problem.b,
            beta: 0.0,
            c: product,
            precision: problem.precision,
            epilogue: EpilogueArgs::default(),
        };
        multiply(stream, &self.0, &mut plain)?;
        // SAFETY: the product has the extents of the problem's C.
        unsafe { partials.finish(stream, problem) }
    }
}

/// Launches a kernel.
fn multiply(
    stream: &Stream,
    function: &Function<Arguments>,
    problem: &mut Problem<'_, f32>,
) -> Result<()> {
    let (blocks, extents) = (blocks(problem), kernel_problem(problem));
    let args = (problem.a.view, problem.b.view, &mut problem.c.view, extents);
    // SAFETY: the matrices were checked against their memory. C overlaps neither A nor B, and is borrowed mutably.
    unsafe { stream.launch(function, blocks, args)? };
    Ok(())
}

/// Rows of tiles that blocks visit together, so that their reads hit the L2 cache.
const GROUP: u32 = 8;
/// Bytes of the widest access.
const VECTOR: usize = 16;

/// The arguments of a kernel of the family.
type Arguments = (Global<f32>, Global<f32>, GlobalMut<f32>, simt::Problem);
/// A kernel of the family.
type Instance = Kernel<Arguments>;

/// Whether A and B can be read with the widest accesses.
fn is_aligned<D: Output>(problem: &Problem<'_, f32, D>) -> bool {
    [&problem.a, &problem.b]
        .into_iter()
        .all(|operand| operand.starts_runs_at(VECTOR) && whole_vectors(&operand.extents))
}

/// The instance for the problem's orders. It has the widest accesses if all matrices are aligned for them. With a name,
/// only the instance of this name is returned.
fn instance<D: Output>(
    problem: &Problem<'_, f32, D>,
    is_aligned: bool,
    kernel: Option<&str>,
) -> Option<&'static Instance> {
    [true, false]
        .into_iter()
        .filter(|&vectors| is_aligned || !vectors)
        .map(|vectors| of_orders(problem.a.order(), problem.b.order(), vectors))
        .find(|instance| kernel.is_none_or(|name| instance.name() == name))
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

/// The blocks of the grid: one for each tile of C.
fn blocks(problem: &Problem<'_, f32>) -> u32 {
    let (m, n, _) = problem.extents();
    let [tile_m, tile_n] = const { tile_extent::<TileC>() };
    let tiles = m.div_ceil(tile_m as usize) * n.div_ceil(tile_n as usize);
    // No grid has so many blocks: the launch is refused.
    u32::try_from(tiles).unwrap_or(u32::MAX)
}

fn kernel_problem(problem: &Problem<'_, f32>) -> simt::Problem {
    let (m, n, k) = problem.extents();
    simt::Problem {
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

/// Whether the length of a matrix's runs is a multiple of the widest access.
fn whole_vectors(extents: &Extents) -> bool {
    let (run, _) = extents.run_and_count();
    run.is_multiple_of(VECTOR / size_of::<f32>())
}
