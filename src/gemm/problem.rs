//! The problem: the checked description of a GEMM, in the form that kernels compute, with a row-major C.

use std::fmt;

use cutlet_device::DeviceData;
use cutlet_host::Stream;
use cutlet_kernels::gemm::epilogue::{
    Accumulator, AnyActivation, BiasAlong, ElementC, Fused, Linear, Then,
};

use super::epilogue::{Bias, EpilogueArgs, EpilogueShape};
use super::operand::Operand;
use super::precision::Precision;
use crate::matrix::{alignment, disjoint, in_stream, pointer};
use crate::{Error, Matrix, MatrixMut, Order, Result};

/// `C = epilogue(alpha·A·B + beta·R)`, where C is row-major.
#[derive(Debug)]
pub struct Problem<'a, T: Operand, D: DeviceData = T> {
    pub alpha: T::Factor,
    pub a: Matrix<'a, T>,
    pub b: Matrix<'a, T>,
    pub beta: T::Factor,
    pub c: MatrixMut<'a, D>,
    pub precision: Precision,
    pub epilogue: EpilogueArgs<'a, D>,
}

impl<'a, T: Operand, D: DeviceData> Problem<'a, T, D> {
    /// The problem of these operands, with a row-major C. Refuses operands that do not fit each other, or that work in
    /// `stream` may not use.
    pub fn new(
        stream: &Stream,
        alpha: T::Factor,
        a: Matrix<'a, T>,
        b: Matrix<'a, T>,
        beta: T::Factor,
        c: MatrixMut<'a, D>,
        epilogue: EpilogueArgs<'a, D>,
    ) -> Result<Self> {
        let problem = Self::in_given_orders(stream, alpha, a, b, beta, c, epilogue)?;
        Ok(problem.with_row_major_c())
    }

    /// As [`new`](Self::new), with the operands in the caller's orders.
    pub fn in_given_orders(
        stream: &Stream,
        alpha: T::Factor,
        a: Matrix<'a, T>,
        b: Matrix<'a, T>,
        beta: T::Factor,
        c: MatrixMut<'a, D>,
        epilogue: EpilogueArgs<'a, D>,
    ) -> Result<Self> {
        let agree = |what: &str, left: usize, right: usize| {
            if left == right {
                return Ok(());
            }
            Err(Error::Extents {
                operation: "gemm",
                found: format!("{what} are {left} and {right}; make them agree"),
            })
        };
        agree("the rows of A and C", a.rows(), c.rows())?;
        agree("the columns of A and the rows of B", a.columns(), b.rows())?;
        agree("the columns of B and C", b.columns(), c.columns())?;
        in_stream("gemm", stream, "A", a.view)?;
        in_stream("gemm", stream, "B", b.view)?;
        in_stream("gemm", stream, "C", c.view.view())?;
        epilogue.in_stream(stream)?;
        disjoint("gemm", "A", a.addresses(), c.addresses())?;
        disjoint("gemm", "B", b.addresses(), c.addresses())?;
        epilogue.check(c.rows(), c.columns(), c.addresses())?;
        epilogue.check_arithmetic::<T::Factor>()?;

        // With k = 0 the product is 0, even if alpha is infinite or NaN.
        let alpha = if a.columns() == 0 {
            T::Factor::ZERO
        } else {
            alpha
        };
        Ok(Problem {
            alpha,
            a,
            b,
            beta,
            c,
            precision: Precision::Exact,
            epilogue,
        })
    }

    /// The problem in this precision. Refuses a precision that the operands' type does not have.
    pub fn in_precision(self, precision: Precision) -> Result<Self> {
        precision.check::<T>()?;
        Ok(Problem { precision, ..self })
    }

    fn with_row_major_c(self) -> Self {
        let (a, b) = (self.a.in_one_run(), self.b.in_one_run());
        let c = self.c.in_one_run();
        match c.order() {
            Order::RowMajor => Problem { a, b, c, ..self },
            // The transposed C is row-major.
            Order::ColMajor => Problem { a, b, c, ..self }.transposed(),
        }
    }

    /// The same product as Cᵀ = Bᵀ·Aᵀ.
    pub fn transposed(self) -> Self {
        Problem {
            a: self.b.transposed(),
            b: self.a.transposed(),
            c: self.c.transposed(),
            epilogue: self.epilogue.transposed(),
            ..self
        }
    }

    /// (m, n, k).
    pub fn extents(&self) -> (usize, usize, usize) {
        (self.c.rows(), self.c.columns(), self.a.columns())
    }

    /// Whether C has no elements.
    pub fn is_empty(&self) -> bool {
        self.c.rows() == 0 || self.c.columns() == 0
    }

    /// The part of the problem that a plan depends on.
    pub fn shape(&self) -> ProblemShape {
        let (m, n, k) = self.extents();
        ProblemShape {
            extents: [m, n, k],
            operands: [
                OperandShape::new(self.a.order(), self.a.ld(), self.a.view.address()),
                OperandShape::new(self.b.order(), self.b.ld(), self.b.view.address()),
                OperandShape::new(self.c.order(), self.c.ld(), self.c.view.address()),
            ],
            beta: BetaKind::of(self.beta),
            precision: self.precision,
            epilogue: self.epilogue.shape(),
        }
    }
}

impl<T: Operand, D: ElementC<Acc = T::Factor>> Problem<'_, T, D> {
    /// The whole epilogue of this problem.
    pub(super) fn fused(&self) -> Fused<D> {
        Then {
            first: self.linear(),
            second: AnyActivation::new(self.epilogue.activation),
        }
    }

    /// Whether the epilogue leaves accumulators as they are.
    pub(super) fn is_product_alone(&self) -> bool {
        self.alpha == T::Factor::ONE
            && self.beta == T::Factor::ZERO
            && self.epilogue.bias.is_none()
            && self.epilogue.activation.is_none()
    }

    /// The epilogue without the activation.
    pub(super) fn linear(&self) -> Linear<D> {
        let extent = [self.c.rows() as i32, self.c.columns() as i32];
        let mut linear = Linear::new(self.alpha, extent);
        // SAFETY: the operands were checked against C's extents and their own memory. They are on C's device and are
        // borrowed for the call.
        unsafe {
            if self.beta != T::Factor::ZERO {
                let source = self.source();
                let strides = source.strides();
                linear = linear.residual(self.beta, pointer(source.view), strides);
            }
            if let Some(Bias { along, elements }) = self.epilogue.bias {
                linear = linear.bias(along, pointer(elements));
            }
        }
        linear
    }

    /// Whether threads may read the bias and the residual of [`linear`](Self::linear) in pairs of neighbouring columns.
    pub(super) fn reads_pairs(&self) -> bool {
        let pair = 2 * size_of::<D>();
        let bias = match self.epilogue.bias {
            Some(Bias {
                along: BiasAlong::Columns,
                elements,
            }) => elements.address().is_multiple_of(pair as u64),
            _ => true,
        };
        let source = self.source();
        let residual = self.beta == T::Factor::ZERO
            || (source.order() == Order::RowMajor && source.starts_runs_at(pair));
        self.c.columns().is_multiple_of(2) && bias && residual
    }

    /// What `beta` multiplies: the residual, or C as it was.
    fn source(&self) -> Matrix<'_, D> {
        self.epilogue.residual.unwrap_or(Matrix {
            view: self.c.view.view(),
            extents: self.c.extents,
        })
    }
}

/// The part of a problem that a plan depends on: everything but addresses and factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemShape {
    /// m, n and k.
    pub extents: [usize; 3],
    /// A, B and C.
    operands: [OperandShape; 3],
    beta: BetaKind,
    precision: Precision,
    epilogue: EpilogueShape,
}

impl ProblemShape {
    /// Refuses a problem of another shape than this one, the shape of a plan.
    pub fn check(&self, found: &ProblemShape) -> Result<()> {
        match self == found {
            true => Ok(()),
            false => Err(Error::Plan {
                planned: self.to_string(),
                found: found.to_string(),
            }),
        }
    }
}

impl fmt::Display for ProblemShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.extents;
        write!(f, "{m}×{n}×{k}")?;
        for (name, operand) in ["A", "B", "C"].into_iter().zip(&self.operands) {
            let OperandShape {
                order,
                ld,
                alignment,
            } = operand;
            write!(
                f,
                ", {order:?} {name} with leading dimension {ld} at a multiple of {alignment} bytes"
            )?;
        }
        let beta = match self.beta {
            BetaKind::Zero => "0",
            BetaKind::One => "1",
            BetaKind::Other => "neither 0 nor 1",
        };
        write!(
            f,
            ", beta {beta}, {} products, {}",
            self.precision, self.epilogue
        )
    }
}

/// An operand's layout and alignment in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OperandShape {
    order: Order,
    ld: usize,
    alignment: u64,
}

impl OperandShape {
    fn new(order: Order, ld: usize, address: u64) -> Self {
        OperandShape {
            order,
            ld,
            alignment: alignment(address),
        }
    }
}

/// The kinds of `beta` that the choice of a kernel depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BetaKind {
    /// C is overwritten.
    Zero,
    /// C is added to.
    One,
    /// C is scaled and added to.
    Other,
}

impl BetaKind {
    fn of<F: Accumulator>(beta: F) -> Self {
        match beta {
            zero if zero == F::ZERO => Self::Zero,
            one if one == F::ONE => Self::One,
            _ => Self::Other,
        }
    }
}
