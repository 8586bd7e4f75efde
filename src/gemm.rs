//! GEMM: from the matrices of a call to the launch of a kernel instance.
//!
//! The steps, each in its place: [`gemm`] checks the problem, [`Problem`] brings it into the form
//! that kernels know (C row-major), [`dispatch`](mod@dispatch) picks the instance, and the launch
//! hands it the arguments.

mod dispatch;

use cutlet_host::Stream;
use cutlet_kernels::gemm_f32::{self, TileC};
use cutlet_layout_core::tile_extent;

use crate::matrix::{Extents, disjoint};
use crate::{Error, Matrix, MatrixMut, Order, Result};

/// `C = alpha·A·B + beta·C`, on the stream's device.
///
/// A is m×k, B is k×n, C is m×n, each row- or column-major with any leading dimension. Where `beta`
/// is 0, C is not read, so that it may hold anything. A problem with m = 0 or n = 0 does nothing;
/// one with k = 0 scales C.
///
/// # Errors
/// If extents disagree, C overlaps A or B, or the matrices are not on the stream's device.
///
/// ```
/// use cutlet::{Device, Matrix, MatrixMut, gemm};
///
/// let device = Device::auto();
/// let stream = device.stream()?;
/// let a = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?; // 2×2
/// let b = stream.upload(&[1.0f32, 0.0, 0.0, 2.0])?;
/// let mut c = stream.zeroed::<f32>(4)?;
/// gemm(
///     &stream,
///     1.0,
///     Matrix::row_major(&a, 2, 2)?,
///     Matrix::row_major(&b, 2, 2)?,
///     0.0,
///     MatrixMut::row_major(&mut c, 2, 2)?,
/// )?;
/// assert_eq!(stream.download(&c)?, [1.0, 4.0, 3.0, 8.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn gemm(
    stream: &Stream,
    alpha: f32,
    a: Matrix<'_, f32>,
    b: Matrix<'_, f32>,
    beta: f32,
    c: MatrixMut<'_, f32>,
) -> Result<()> {
    let problem = Problem::new(alpha, a, b, beta, c)?;
    let (m, n, _) = problem.extents();
    if m == 0 || n == 0 {
        return Ok(());
    }
    let function = stream
        .device()
        .load(&cutlet_kernels::PTX, dispatch::instance(&problem))?;
    let (blocks, extents) = (problem.blocks()?, problem.kernel_problem());
    // SAFETY: the matrices were checked against the memory behind them, and C, which overlaps
    // neither A nor B, is borrowed mutably.
    unsafe {
        stream.launch(
            &function,
            blocks,
            (problem.a.view, problem.b.view, problem.c.view, extents),
        )?;
    }
    Ok(())
}

/// A GEMM in the form that the kernels know: C is row-major.
struct Problem<'a> {
    alpha: f32,
    a: Matrix<'a, f32>,
    b: Matrix<'a, f32>,
    beta: f32,
    c: MatrixMut<'a, f32>,
}

impl<'a> Problem<'a> {
    fn new(
        alpha: f32,
        a: Matrix<'a, f32>,
        b: Matrix<'a, f32>,
        beta: f32,
        c: MatrixMut<'a, f32>,
    ) -> Result<Self> {
        let agree = |what: &str, left: usize, right: usize| {
            if left == right {
                return Ok(());
            }
            Err(Error::Extents {
                operation: "gemm",
                found: format!("{what} are {left} and {right}"),
            })
        };
        agree("the rows of A and C", a.rows(), c.rows())?;
        agree("the columns of A and the rows of B", a.columns(), b.rows())?;
        agree("the columns of B and C", b.columns(), c.columns())?;
        disjoint("gemm", "A", &a, &c)?;
        disjoint("gemm", "B", &b, &c)?;

        Ok(match c.order() {
            Order::RowMajor => Problem {
                alpha,
                a,
                b,
                beta,
                c,
            },
            // Cᵀ = Bᵀ·Aᵀ, and the transposed C is row-major.
            Order::ColMajor => Problem {
                alpha,
                a: b.transposed(),
                b: a.transposed(),
                beta,
                c: c.transposed(),
            },
        })
    }

    /// (m, n, k).
    fn extents(&self) -> (usize, usize, usize) {
        (self.c.rows(), self.c.columns(), self.a.columns())
    }

    /// Blocks to launch: one for each tile of C.
    fn blocks(&self) -> Result<u32> {
        let (m, n, _) = self.extents();
        let [tile_m, tile_n] = const { tile_extent::<TileC>() };
        let tiles = m.div_ceil(tile_m as usize) * n.div_ceil(tile_n as usize);
        u32::try_from(tiles).map_err(|_| Error::Extents {
            operation: "gemm",
            found: format!("a {m}×{n} C has more than 2^32 tiles of {tile_m}×{tile_n}"),
        })
    }

    fn kernel_problem(&self) -> gemm_f32::Problem {
        let (m, n, k) = self.extents();
        gemm_f32::Problem {
            lda: self.a.ld() as i64,
            ldb: self.b.ld() as i64,
            ldc: self.c.ld() as i64,
            m: m as i32,
            n: n as i32,
            k: k as i32,
            alpha: self.alpha,
            beta: self.beta,
            group: dispatch::GROUP,
        }
    }
}

/// Whether all runs of a matrix begin at, and are as long as, a multiple of 16 bytes.
fn aligned(extents: &Extents, address: u64) -> bool {
    let run = match extents.order {
        Order::RowMajor => extents.columns,
        Order::ColMajor => extents.rows,
    };
    let words = 16 / size_of::<f32>();
    address.is_multiple_of(16) && run.is_multiple_of(words) && extents.ld.is_multiple_of(words)
}
