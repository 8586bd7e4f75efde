//! Dispatch: which kernel instance solves a problem.

use cutlet_device::{Global, GlobalMut, Kernel};
use cutlet_kernels::gemm_f32::{
    self,
    col_col::{gemm_f32_col_col_x1, gemm_f32_col_col_x4},
    col_row::{gemm_f32_col_row_x1, gemm_f32_col_row_x4},
    row_col::{gemm_f32_row_col_x1, gemm_f32_row_col_x4},
    row_row::{gemm_f32_row_row_x1, gemm_f32_row_row_x4},
};

use super::{Problem, aligned};
use crate::Order::{ColMajor, RowMajor};

/// Rows of tiles that blocks visit together, so that the L2 cache serves them.
pub(super) const GROUP: u32 = 8;

/// A kernel of the family.
pub(super) type Instance = Kernel<(Global<f32>, Global<f32>, GlobalMut<f32>, gemm_f32::Problem)>;

/// The instance for the problem's orders and alignment.
pub(super) fn instance(problem: &Problem<'_>) -> &'static Instance {
    let Problem { a, b, c, .. } = problem;
    let vectors = aligned(&a.extents, a.view.address())
        && aligned(&b.extents, b.view.address())
        && aligned(&c.extents, c.view.address());
    match (a.order(), b.order(), vectors) {
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
