//! Plans for kernels with an epilogue of one's own, which another package compiles.

use std::fmt;

use cutlet_device::PtxLibrary;
use cutlet_host::Stream;
use cutlet_kernels::gemm::epilogue::{Epilogue, EpilogueOperands};
use cutlet_kernels::gemm::sm90::instance::Instance;

use super::fixup::FixupCounters;
use super::launch::{Prepared, To, Types, Workspace};
use super::tma_operand::TmaOperand;
use super::{cost_input, fastest, supports, tma_stores};
use crate::gemm::choice::cost::{CostInput, OutputPath};
use crate::gemm::choice::decomposition::Named;
use crate::gemm::description::Gemm;
use crate::gemm::operand::Operand;
use crate::gemm::problem::{Problem, ProblemShape};
use crate::{Error, IntoTensor, IntoTensorMut, Order, Result};

/// `C = epilogue(A·B)` by a kernel of the sm_90 family with an epilogue of one's own.
///
/// Like a [`Plan`](crate::Plan), it holds no matrices, and runs on all matrices with the extents, orders, leading
/// dimensions and alignments of those that it was made for. The package `examples/own-epilogue/` has such a kernel and
/// its plan.
pub struct EpiloguePlan<T: Types, Epi: Epilogue> {
    prepared: Prepared<T, Epi>,
    shape: ProblemShape,
}

impl<T: Types, Epi: Epilogue> fmt::Debug for EpiloguePlan<T, Epi> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.shape.extents;
        write!(f, "EpiloguePlan({m}×{n}×{k})")
    }
}

impl<T: Types<In: Operand>, Epi: Epilogue> EpiloguePlan<T, Epi> {
    /// Makes a plan for matrices like these, with the kernel of `instance`, whose PTX is in `library`. The matrices'
    /// elements are neither read nor written.
    ///
    /// # Errors
    /// If extents disagree, if C has no elements, if the matrices are not on the stream's device or overlap, or if the
    /// device cannot run the kernel. [`Error::Extents`] if the kernel is for other orders, or if C is not row-major.
    /// Also if the kernel stores C by TMA, and C's rows do not start at, or do not have, a multiple of 16 bytes.
    pub fn new<'a>(
        stream: &Stream,
        library: &PtxLibrary,
        instance: &'static Instance<T, Epi>,
        a: impl IntoTensor<'a, Element = T::In>,
        b: impl IntoTensor<'a, Element = T::In>,
        c: impl IntoTensorMut<'a, Element = T::Out>,
    ) -> Result<Self> {
        let device = stream.device();
        supports(device.compute_capability(), || device.describe())?;
        // C is not transposed: the epilogue gets the caller's rows and columns.
        let mut gemm = Gemm::new(a, b, c);
        let problem = Problem::in_given_orders(stream, &mut gemm)?;
        check(&problem, instance)?;
        let input = CostInput {
            allows_fixup: FixupCounters::of(stream).is_some(),
            allows_second_kernel: false,
            ..cost_input(stream, &problem, Named::default())
        };
        let Some(selected) = fastest(&[instance], &input) else {
            return Err(Error::Instance {
                asked: instance.name().to_string(),
                names: Vec::new(),
            });
        };
        Ok(Self {
            prepared: Prepared::new(stream, library, selected, input)?,
            shape: problem.shape(),
        })
    }

    /// Computes `C = epilogue(A·B)`, or `epilogue(A·B, C)` if the epilogue reads old elements.
    ///
    /// # Safety
    /// The epilogue's operands must be on the stream's device, as large as the epilogue assumes for this C, and alive
    /// until the stream has got past the launch.
    ///
    /// # Errors
    /// [`Error::Plan`] if the shape of the matrices is not the plan's. Otherwise as [`new`](Self::new).
    pub unsafe fn run<'a>(
        &self,
        stream: &Stream,
        a: impl IntoTensor<'a, Element = T::In>,
        b: impl IntoTensor<'a, Element = T::In>,
        c: impl IntoTensorMut<'a, Element = T::Out>,
        epilogue: Epi,
    ) -> Result<()> {
        let mut gemm = Gemm::new(a, b, c);
        let mut problem = Problem::in_given_orders(stream, &mut gemm)?;
        self.shape.check(&problem.shape())?;
        if epilogue.reads_old() && self.prepared.never_reads_c() {
            return Err(Error::Extents {
                operation: "gemm",
                found: "the epilogue reads old elements of C, and the plan's kernel does not; use a kernel with one M \
                        atom and an epilogue without operands"
                    .to_string(),
            });
        }
        problem.use_in(stream)?;
        let operands = TmaOperand::both(stream, &problem)?;
        let matrices = operands.each_ref().map(TmaOperand::matrix);
        let c = &mut problem.c;
        match (self.prepared.path(), FixupCounters::of(stream)) {
            (OutputPath::Fixup, Some(counters)) => self
                .prepared
                .launch_with_fixup(stream, matrices, c, epilogue, &counters),
            (OutputPath::Fixup, None) => Err(Error::Extents {
                operation: "gemm",
                found: "the plan's kernel splits k, and this stream cannot keep its counters; make the plan with \
                        this stream"
                    .to_string(),
            }),
            _ => self
                .prepared
                .launch(stream, matrices, To::C(c), epilogue, Workspace::NONE),
        }
    }
}

/// Refuses matrices that the kernel cannot multiply.
fn check<T: Types<In: Operand>, Epi: Epilogue>(
    problem: &Problem<'_, T::In, T::Out>,
    instance: &Instance<T, Epi>,
) -> Result<()> {
    let name = instance.name();
    let refuse = |found: String| {
        Err(Error::Extents {
            operation: "gemm",
            found,
        })
    };
    let (a, b) = (problem.a.order(), problem.b.order());
    if problem.is_empty() {
        return refuse("C has no elements; leave the product out".to_string());
    }
    if problem.c.order() == Order::ColMajor {
        return refuse(format!(
            "`{name}` was asked for a column-major C; use a row-major one"
        ));
    }
    if instance.traits.k_major
        != instance
            .traits
            .oriented([a == Order::RowMajor, b == Order::ColMajor])
    {
        return refuse(format!(
            "`{name}` was asked for a {a:?} A and a {b:?} B, but is for other orders; use matrices of other \
             orders, or another kernel"
        ));
    }
    let needs_tma = instance.traits.overwrites_only || !EpilogueOperands::<Epi>::ARE_NONE;
    if needs_tma && !tma_stores(&problem.c) {
        return refuse(format!(
            "`{name}` stores C by TMA, which needs rows that start at multiples of 16 bytes and have a multiple of \
             16 bytes; pad C's rows"
        ));
    }
    Ok(())
}
