//! The three matrices as tensors.

use cutlet_device::{Global, GlobalMut};
use cutlet_layout_core::{RowMajor, Tensor};
use half::bf16;

/// A as (m, k), B as (n, k) or another operand whose rows follow one another.
pub type Operand = Tensor<Global<bf16>, RowMajor>;
/// C as (m, n).
pub type Output = Tensor<GlobalMut<bf16>, RowMajor>;

/// A as (m, k), B as (n, k) and C as (m, n).
///
/// # Safety
/// Their elements must exist, and nothing else may write A and B or use C.
#[inline(always)]
pub unsafe fn matrices(
    [m, n, k]: [i32; 3],
    a: Global<bf16>,
    b: Global<bf16>,
    c: GlobalMut<bf16>,
) -> (Operand, Operand, Output) {
    // SAFETY: as promised by the caller.
    unsafe {
        (
            Tensor::new(a, RowMajor::new([m, k], k as i64)),
            Tensor::new(b, RowMajor::new([n, k], k as i64)),
            output([m, n], c),
        )
    }
}

/// C as (m, n).
///
/// # Safety
/// Its elements must exist, and nothing else may use them.
#[inline(always)]
pub unsafe fn output([m, n]: [i32; 2], c: GlobalMut<bf16>) -> Output {
    // SAFETY: as promised by the caller.
    unsafe { Tensor::new(c, RowMajor::new([m, n], n as i64)) }
}
