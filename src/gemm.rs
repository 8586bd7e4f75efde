//! GEMM: from the matrices of a call to the launch of a kernel instance.
//!
//! The steps, each in its place: [`gemm`] checks the problem, [`Problem`] brings it into the form
//! that kernels know (C row-major), and [`simt`] or [`wgmma`], by the element type, picks the kernel
//! instance and launches it.

mod choose;
mod operand;
mod simt;
mod wgmma;

use cutlet_device::DeviceData;
use cutlet_host::Stream;
use half::{bf16, f16};

use crate::matrix::disjoint;
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
pub fn gemm<T: Element>(
    stream: &Stream,
    alpha: f32,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    beta: f32,
    c: MatrixMut<'_, T>,
) -> Result<()> {
    Gemm::new().run(stream, alpha, a, b, beta, c)
}

/// [`gemm`] with options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemm<'a> {
    instance: Option<&'a str>,
}

impl<'a> Gemm<'a> {
    /// As [`gemm`] does it.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the kernel instance of this name, one of [`instances`](Self::instances), instead of the
    /// one that the problem's shape suggests: to compare them.
    pub fn instance(self, name: &'a str) -> Self {
        Gemm {
            instance: Some(name),
        }
    }

    /// The names of the kernel instances that multiply matrices of `T` in these orders into a
    /// row-major one.
    pub fn instances<T: Element>(a: Order, b: Order) -> Vec<&'static str> {
        T::instances(a, b)
    }

    /// `C = alpha·A·B + beta·C`: see [`gemm`].
    ///
    /// # Errors
    /// As [`gemm`]; and if there is no instance of the name asked for, or it is one for operands of
    /// another order.
    pub fn run<T: Element>(
        &self,
        stream: &Stream,
        alpha: f32,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        beta: f32,
        c: MatrixMut<'_, T>,
    ) -> Result<()> {
        let problem = Problem::new(alpha, a, b, beta, c)?;
        let (m, n, _) = problem.extents();
        if m == 0 || n == 0 {
            return Ok(());
        }
        T::launch(stream, problem, self.instance)
    }
}

/// Rows of tiles that blocks visit together, so that the L2 cache serves them.
const GROUP: u32 = 8;

/// An element type of [`gemm`]: `f32` on any GPU; `bf16` and `f16`, with sums in f32, on Hopper's
/// tensor cores.
pub trait Element: DeviceData + sealed::Launch {}
impl Element for f32 {}
impl Element for bf16 {}
impl Element for f16 {}

mod sealed {
    use super::{DeviceData, Order, Problem, Result, Stream};

    /// From a problem to a launch.
    pub trait Launch: DeviceData {
        fn launch(
            stream: &Stream,
            problem: Problem<'_, Self>,
            instance: Option<&str>,
        ) -> Result<()>;

        fn instances(a: Order, b: Order) -> Vec<&'static str>;
    }
}

/// A GEMM in the form that the kernels know: C is row-major.
#[derive(Debug)]
pub struct Problem<'a, T: DeviceData> {
    alpha: f32,
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    beta: f32,
    c: MatrixMut<'a, T>,
}

impl<'a, T: DeviceData> Problem<'a, T> {
    fn new(
        alpha: f32,
        a: Matrix<'a, T>,
        b: Matrix<'a, T>,
        beta: f32,
        c: MatrixMut<'a, T>,
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
}
