//! GEMM in bf16 and f16 on Hopper's tensor cores: the instance of `gemm_wgmma` for a problem, its
//! tensor maps, and its launch.

use cutlet_device::hopper::{KMajor, MnMajor, TensorMap, TileBox};
use cutlet_device::{GlobalMut, Kernel};
use cutlet_host::{Stream, TensorMapElement, TensorMapSpec};
use cutlet_kernels::gemm_wgmma::{self, CLUSTER, TileC, bf16, box_a, box_b, box_c, f16};
use cutlet_layout_core::tiles;

use super::{Problem, sealed};
use crate::Order::{self, ColMajor, RowMajor};
use crate::{Error, Matrix, Result};

/// Rows of tiles that blocks visit together, so that the L2 cache serves them.
const GROUP: u32 = 8;

/// A kernel of the family.
type Instance<T> = Kernel<(
    TensorMap,
    TensorMap,
    TensorMap,
    GlobalMut<T>,
    gemm_wgmma::Problem,
)>;

impl sealed::Launch for half::bf16 {
    fn launch(stream: &Stream, problem: Problem<'_, Self>) -> Result<()> {
        let instance = match (problem.a.order(), problem.b.order()) {
            (RowMajor, RowMajor) => &bf16::gemm_bf16_row_row,
            (RowMajor, ColMajor) => &bf16::gemm_bf16_row_col,
            (ColMajor, RowMajor) => &bf16::gemm_bf16_col_row,
            (ColMajor, ColMajor) => &bf16::gemm_bf16_col_col,
        };
        launch(stream, instance, problem)
    }
}

impl sealed::Launch for half::f16 {
    fn launch(stream: &Stream, problem: Problem<'_, Self>) -> Result<()> {
        let instance = match (problem.a.order(), problem.b.order()) {
            (RowMajor, RowMajor) => &f16::gemm_f16_row_row,
            (RowMajor, ColMajor) => &f16::gemm_f16_row_col,
            (ColMajor, RowMajor) => &f16::gemm_f16_col_row,
            (ColMajor, ColMajor) => &f16::gemm_f16_col_col,
        };
        launch(stream, instance, problem)
    }
}

fn launch<T: TensorMapElement>(
    stream: &Stream,
    instance: &'static Instance<T>,
    problem: Problem<'_, T>,
) -> Result<()> {
    let (m, n, k) = problem.extents();
    if k == 0 {
        return Err(Error::Extents {
            operation: "gemm",
            found: "k is 0, which 16-bit matrices have no kernel for".to_string(),
        });
    }
    let Problem {
        alpha,
        a,
        b,
        beta,
        c,
    } = problem;
    let map_a = operand_map(a, RowMajor, box_a::<T, KMajor>(), box_a::<T, MnMajor>())?;
    let map_b = operand_map(b, ColMajor, box_b::<T, KMajor>(), box_b::<T, MnMajor>())?;
    let ldc = c.ld();
    let map_c =
        TensorMapSpec::rows(m as u64, n as u64, ldc as u64).encode(c.view.view(), box_c::<T>())?;
    let extents = gemm_wgmma::Problem {
        ldc: ldc as i64,
        m: m as i32,
        n: n as i32,
        k: k as i32,
        group: GROUP,
        alpha,
        beta,
    };
    // One block a multiprocessor stays for the whole launch; a cluster takes neighbouring rows.
    let [rows, columns] = tiles::<TileC>([m as i32, n as i32]);
    let clusters = (rows.div_ceil(CLUSTER) as u64 * columns as u64)
        .min((stream.device().multiprocessors() / CLUSTER).max(1) as u64) as u32;
    let function = stream.device().load(&cutlet_kernels::PTX, instance)?;
    // SAFETY: the maps describe the matrices, which were checked against the memory behind them; C
    // overlaps neither A nor B and is borrowed mutably.
    unsafe {
        let args = (map_a, map_b, map_c, c.view, extents);
        stream.launch(&function, clusters * CLUSTER, args)?;
    }
    Ok(())
}

/// The tensor map of an operand: `along_k` is the order in which its k is consecutive.
fn operand_map<T: TensorMapElement>(
    operand: Matrix<'_, T>,
    along_k: Order,
    k_major: TileBox,
    mn_major: TileBox,
) -> Result<TensorMap> {
    let (rows, columns) = match operand.order() {
        RowMajor => (operand.rows(), operand.columns()),
        ColMajor => (operand.columns(), operand.rows()),
    };
    let tile = if operand.order() == along_k {
        k_major
    } else {
        mn_major
    };
    let spec = TensorMapSpec::rows(rows as u64, columns as u64, operand.ld() as u64);
    Ok(spec.encode(operand.view, tile)?)
}
