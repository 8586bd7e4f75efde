//! The problem: the checked description of a GEMM, in the form that kernels compute, with a row-major C.

use std::fmt;
use std::num::NonZeroU32;

use cutlet_device::collective::{self, SizesAre};
use cutlet_device::{DeviceData, Global};
use cutlet_host::{Stream, View};
use cutlet_kernels::gemm::epilogue::{
    Accumulator, AnyActivation, BiasAlong, ElementC, Fused, FusedWithErf, Linear, OptionalGeluErf,
    OuterScales, Then,
};
use cutlet_layout_core::Divisor;

use super::description::{Gemm, Operands};
use super::epilogue::{Activation, Bias, EpilogueArgs, EpilogueShape};
use super::indexed_rows::{Rows, RowsShape};
use super::operand::{Operand, ScaledOperand};
use super::outer_mode::OuterMode;
use super::precision::Precision;
use super::quantized::QuantizedC;
use super::scales::{Scales, ScalesKind};
use crate::batch::BatchModes;
use crate::matrix::{addresses, alignment, disjoint, in_stream, pointer};
use crate::{Error, MAX_EXTENT, Matrix, MatrixMut, Order, Result};

/// `C = epilogue(alpha·A·B + beta·S)`, where C is row-major, and S is C as it was or the epilogue's source.
#[derive(Debug)]
pub struct Problem<'a, T: Operand, D: DeviceData = T> {
    pub alpha: T::Factor,
    pub a: Matrix<'a, T>,
    pub b: Matrix<'a, T>,
    pub beta: T::Factor,
    pub c: MatrixMut<'a, D>,
    pub precision: Precision,
    pub epilogue: EpilogueArgs<'a, D>,
    pub scales: Scales<'a>,
    pub groups: Groups<'a>,
    /// The outer mode of k. Few kernels sum over one.
    pub outer_k: OuterMode,
    pub rows: Rows<'a>,
    /// How a C of e4m3 is quantised.
    pub quantized: Option<QuantizedC<'a>>,
}

impl<'a, T: Operand, D: DeviceData> Problem<'a, T, D> {
    /// The problem of a description, with a row-major C. Refuses operands that do not fit each other, or that work in
    /// `stream` may not use, and arithmetic that the types do not have.
    pub fn new(stream: &Stream, gemm: &'a mut Gemm<'_, T, D>) -> Result<Self> {
        let problem = Self::in_given_orders(stream, gemm)?;
        // Groups, tables, gates and blocks are of rows, and stay so.
        let is_of_rows = problem.groups.have_sizes()
            || problem.quantized.is_some()
            || !problem.rows.are_own()
            || problem.epilogue.gate.is_some()
            || problem.scales.are_of_blocks();
        Ok(match is_of_rows {
            true => problem,
            false => problem.with_row_major_c(),
        })
    }

    /// As [`new`](Self::new), with the operands in the caller's orders.
    pub fn in_given_orders(stream: &Stream, gemm: &'a mut Gemm<'_, T, D>) -> Result<Self> {
        gemm.precision.check::<T>()?;
        gemm.epilogue.check_arithmetic::<T::Factor>()?;
        let rows = Rows::of(&gemm.gathered, &gemm.scattered)?;
        check_rows(gemm, &rows)?;
        let groups = Groups::of(gemm)?;
        check_erf(&gemm.epilogue, &rows, &groups)?;
        let (beta, residual) = gemm.addend()?;
        let epilogue = EpilogueArgs {
            residual,
            ..gemm.epilogue
        };
        check_scaled(gemm, &rows)?;
        check_formats(gemm)?;
        let Operands { a, b, c: of_c } = match &mut gemm.operands {
            Ok(operands) => operands,
            Err(found) => return refuse(found.clone()),
        };
        let (a, b, c) = (*a, *b, of_c.addresses());
        let m = check_extents(&a.first, &b.first, &of_c.first, &rows, &epilogue)?;
        if let Rows::OfA(rows) | Rows::OfC(rows) = &rows {
            rows.in_stream(stream)?;
            disjoint("gemm", "the indices", rows.addresses(), c.clone())?;
        }
        if let Sizes::Ends(sizes) | Sizes::Counts(sizes) = groups.sizes {
            in_stream("gemm", stream, "the sizes of groups", sizes)?;
            disjoint("gemm", "the sizes of groups", addresses(&sizes), c.clone())?;
        }
        let n = epilogue.columns_of_b(of_c.first.columns());
        let counts = [a.repeats.distinct(), b.repeats.distinct()];
        let scales = gemm.scales.checked(
            stream,
            [a.first.rows(), n, a.first.columns()],
            counts,
            c.clone(),
        )?;
        in_stream("gemm", stream, "A", a.first.view)?;
        in_stream("gemm", stream, "B", b.first.view)?;
        in_stream("gemm", stream, "C", of_c.first.view.view())?;
        epilogue.in_stream(stream)?;
        disjoint("gemm", "A", a.addresses(), c.clone())?;
        disjoint("gemm", "B", b.addresses(), c.clone())?;
        let quantized = gemm.quantized.as_mut().map(QuantizedC::reborrow);
        if let Some(quantized) = &quantized {
            let operands = [("A", a.addresses()), ("B", b.addresses()), ("C", c.clone())];
            quantized.check(stream, [m, n], operands)?;
            scales.are_apart_from(quantized.scales.addresses())?;
        }
        epilogue.check(m, of_c.first.columns(), c)?;

        let (a, b, c) = (a.first, b.first, of_c.first.reborrow());
        // Which rows there are is known on the device alone, and of a table, indices name some.
        let (a, b, c) = match (groups.have_sizes(), &rows) {
            (true, _) => (a.in_part(), b.in_part(), c.in_part()),
            (false, Rows::OfA(_)) => (a.in_part(), b, c),
            (false, Rows::OfC(_)) => (a, b, c.in_part()),
            (false, Rows::Own) => (a, b, c),
        };
        Ok(Problem {
            // With k = 0 the product is 0, even if alpha is infinite or NaN.
            alpha: match a.columns() {
                0 => T::Factor::ZERO,
                _ => gemm.alpha,
            },
            a: a.with_wide_run(),
            // Kernels of groups read a B of one column as a run.
            b: match groups.have_sizes() {
                true => b.in_one_run(),
                false => b.with_wide_run(),
            },
            beta,
            precision: gemm.precision,
            c: c.with_wide_run(),
            epilogue,
            // Without k there is nothing to scale.
            scales: match a.columns() {
                0 => Scales::None,
                _ => scales,
            },
            groups,
            outer_k: gemm.outer_k,
            rows,
            quantized,
        })
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
            scales: self.scales.transposed(),
            groups: self.groups.transposed(),
            outer_k: self.outer_k.transposed(),
            ..self
        }
    }

    /// Says that the product, which is about to be enqueued in the stream, uses the operands.
    pub fn use_in(&self, stream: &Stream) -> Result<()> {
        // They may be those of the transposed product.
        self.a.view.use_in(stream, "gemm", "A or B")?;
        self.b.view.use_in(stream, "gemm", "A or B")?;
        self.c.view.use_in(stream, "gemm", "C")?;
        self.epilogue.use_in(stream)?;
        self.scales.use_in(stream)?;
        if let Some(quantized) = &self.quantized {
            quantized.scales.view.use_in(stream, "gemm", "C's scales")?;
        }
        if let Rows::OfA(rows) | Rows::OfC(rows) = &self.rows {
            rows.use_in(stream)?;
        }
        if let Sizes::Ends(sizes) | Sizes::Counts(sizes) = self.groups.sizes {
            sizes.use_in(stream, "gemm", "the sizes of groups")?;
        }
        Ok(())
    }

    /// (m, n, k) of the product. K is that of the matrices, without its outer mode.
    pub fn extents(&self) -> (usize, usize, usize) {
        let m = match self.rows {
            Rows::Own | Rows::OfA(_) => self.c.rows(),
            Rows::OfC(_) => self.a.rows(),
        };
        let n = self.epilogue.columns_of_b(self.c.columns());
        (m, n, self.a.columns())
    }

    /// The least precision of the kernels to choose from. A kernel that was named is not chosen, and may have the
    /// precision that was asked for.
    pub fn least_precision(&self, named: Option<&str>) -> Precision {
        let (.., k) = self.extents();
        match named {
            Some(_) => self.precision,
            None => self.precision.for_k(k),
        }
    }

    /// Whether the product has no elements.
    pub fn is_empty(&self) -> bool {
        let (m, n, _) = self.extents();
        m == 0 || n == 0 || self.groups.count() == 0
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
            scales: self.scales.kind(),
            groups: self.groups.shape(),
            outer_k: self.outer_k,
            rows: self.rows.shape(),
        }
    }
}

/// Refuses GELU by the error function where the rows of C are known on the device alone. A second kernel applies it, which
/// does not know them.
fn check_erf<D: DeviceData>(
    epilogue: &EpilogueArgs<'_, D>,
    rows: &Rows<'_>,
    groups: &Groups<'_>,
) -> Result<()> {
    let has_own_rows = !groups.have_sizes() && !matches!(rows, Rows::OfC(_));
    match epilogue.activation {
        Some(Activation::GeluErf) if !has_own_rows => Err(Error::Arithmetic {
            asked: "GELU by the error function, of groups or into a table".to_string(),
            found: "no kernel fuses it; use `Activation::Gelu`, or `unary` after the product",
        }),
        _ => Ok(()),
    }
}

/// Refuses a column-major matrix whose rows mean something, and gates beside other epilogues.
fn check_rows<T: Operand, D: DeviceData>(gemm: &Gemm<'_, T, D>, rows: &Rows<'_>) -> Result<()> {
    let Operands { a, c, .. } = operands_of(gemm)?;
    let (a, c) = (a.first.order(), c.first.order());
    if !rows.are_own() && [a, c] != [Order::RowMajor; 2] {
        return refuse(
            "the rows of a table are copied, and A or C is column-major; make both row-major"
                .to_string(),
        );
    }
    let (beta, added) = gemm.addend()?;
    if matches!(rows, Rows::OfC(_)) && added.is_some() {
        return refuse(
            "a scattered product has no residual; use the table, and `beta`".to_string(),
        );
    }
    let is_gated = gemm.epilogue.gate.is_some();
    let is_quantized = gemm.quantized.is_some();
    if c == Order::ColMajor && (is_gated || is_quantized || !matches!(gemm.sizes, Sizes::None)) {
        let what = match (is_gated, is_quantized) {
            (true, _) => "gates",
            (false, true) => "blocks of C",
            (false, false) => "groups",
        };
        return refuse(format!(
            "C is column-major, and {what} have rows; make C row-major"
        ));
    }
    let is_gate_alone =
        gemm.epilogue.are_none() && beta == T::Factor::ZERO && !matches!(rows, Rows::OfC(_));
    match is_gated && !is_gate_alone {
        true => Err(Error::Arithmetic {
            asked: "a gated product with a beta, a bias, a residual, an activation or a table of C"
                .to_string(),
            found: "SwiGLU is applied to the product alone; multiply, and then use `swiglu`",
        }),
        false => Ok(()),
    }
}

/// Refuses scales of a product that is scattered or has two modes of k, and scales of blocks with a column-major C.
fn check_scaled<T: Operand, D: DeviceData>(gemm: &Gemm<'_, T, D>, rows: &Rows<'_>) -> Result<()> {
    if gemm.scales.kind() == ScalesKind::None {
        return Ok(());
    }
    if gemm.outer_k.count > 1 || matches!(rows, Rows::OfC(_)) {
        return Err(Error::Arithmetic {
            asked: "scales of a product with rows of C's table, or with two modes of k".to_string(),
            found: "no kernel has them; scatter C afterwards, or copy operands so that k is one mode",
        });
    }
    match operands_of(gemm)?.c.first.order() {
        Order::ColMajor if gemm.scales.are_of_blocks() => refuse(
            "C is column-major, and blocks of A have scales of rows; make C row-major".to_string(),
        ),
        _ => Ok(()),
    }
}

/// Refuses a column-major C of an A and a B of different formats: the transposed product would have the formats of B and
/// A.
fn check_formats<T: Operand, D: DeviceData>(gemm: &Gemm<'_, T, D>) -> Result<()> {
    match operands_of(gemm)?.c.first.order() {
        Order::ColMajor if T::IS_MIXED => refuse(
            "C is column-major, and A and B have different formats; make C row-major".to_string(),
        ),
        _ => Ok(()),
    }
}

/// Refuses extents that do not agree. Returns the rows of the product.
fn check_extents<T: Operand, D: DeviceData>(
    a: &Matrix<'_, T>,
    b: &Matrix<'_, T>,
    c: &MatrixMut<'_, D>,
    rows: &Rows<'_>,
    epilogue: &EpilogueArgs<'_, D>,
) -> Result<usize> {
    let agree = |what: &str, left: usize, right: usize| {
        if left == right {
            return Ok(());
        }
        refuse(format!("{what} are {left} and {right}; make them agree"))
    };
    let m = match rows {
        Rows::Own => {
            agree("the rows of A and C", a.rows(), c.rows())?;
            c.rows()
        }
        Rows::OfA(rows) => {
            agree("the indices and the rows of C", rows.len(), c.rows())?;
            c.rows()
        }
        Rows::OfC(rows) => {
            agree("the rows of A and the indices", a.rows(), rows.len())?;
            a.rows()
        }
    };
    agree("the columns of A and the rows of B", a.columns(), b.rows())?;
    let what = match epilogue.gate {
        None => "the columns of B and C",
        Some(_) => "the columns of B, and twice those of C,",
    };
    agree(what, b.columns(), epilogue.columns_of_b(c.columns()))?;
    Ok(m)
}

/// The operands of a description, if they are matrices.
fn operands_of<'g, 'a, T: Operand, D: DeviceData>(
    gemm: &'g Gemm<'a, T, D>,
) -> Result<&'g Operands<'a, T, D>> {
    match &gemm.operands {
        Ok(operands) => Ok(operands),
        Err(found) => refuse(found.clone()),
    }
}

/// Refuses operands because of what was found.
pub(super) fn refuse<T>(found: String) -> Result<T> {
    Err(Error::Extents {
        operation: "gemm",
        found,
    })
}

/// The products of a problem, which have the same n and k. Its matrices are those of the first one.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    /// The inner and the outer mode of the batch. Products with sizes have the inner one alone.
    pub modes: [OuterMode; 2],
    /// Which rows each has.
    pub sizes: Sizes<'a>,
}

/// Which rows of A and C each product has.
#[derive(Clone, Copy, Debug)]
pub enum Sizes<'a> {
    /// All.
    None,
    /// Those up to its end, from the end of the product before on. All are in one A and C.
    Ends(View<'a, i32>),
    /// So many of the first rows of its own A and C.
    Counts(View<'a, i32>),
}

/// The groups as kernels see them.
pub fn device_groups(groups: &Groups<'_>) -> collective::Groups {
    let (sizes_are, sizes) = match groups.sizes {
        Sizes::None => (SizesAre::NONE, Global::from_ptr(std::ptr::null())),
        Sizes::Ends(ends) => (SizesAre::ENDS, pointer(ends)),
        Sizes::Counts(counts) => (SizesAre::COUNTS, pointer(counts)),
    };
    let [inner, _] = groups.modes;
    collective::Groups {
        strides: groups
            .modes
            .map(|mode| mode.strides.map(|stride| stride as i64)),
        sizes,
        sizes_are,
        count: groups.count() as u32,
        inner: divisor(inner.count),
        _unused: 0,
    }
}

/// A divisor of a number of coordinates. Where there is none, nothing is divided.
pub fn divisor(count: usize) -> Divisor {
    Divisor::new(NonZeroU32::new(count as u32).unwrap_or(NonZeroU32::MIN))
}

impl<'a> Groups<'a> {
    /// Those of a description. Refuses batches of different lengths, too many groups, and other sizes than one for each
    /// B.
    fn of<T: Operand, D: DeviceData>(gemm: &Gemm<'a, T, D>) -> Result<Self> {
        let Operands { a, b, c } = operands_of(gemm)?;
        let (a, b, c) = (&a.repeats, &b.repeats, &c.repeats);
        let sizes = gemm.sizes;
        let (products, whole) = match sizes {
            Sizes::Ends(_) => ("groups", "a grouped product"),
            Sizes::None | Sizes::Counts(_) => ("products", "a batch"),
        };
        let modes = match sizes {
            // All groups lie in one A and one C.
            Sizes::Ends(_) if (a.count(), c.count()) == (1, 1) => BatchModes::of([a, b, b], true),
            Sizes::Ends(_) => Err(
                "the groups of A's rows are in one A and one C; give no batches of them"
                    .to_string(),
            ),
            Sizes::Counts(_) => BatchModes::of([a, b, c], true),
            // Scales have the numbers of their products.
            Sizes::None => BatchModes::of([a, b, c], gemm.scales.kind() != ScalesKind::None),
        };
        let modes = modes.and_then(|it| match sizes {
            Sizes::None => it.at_most(),
            Sizes::Ends(_) | Sizes::Counts(_) => Ok([it.at_most::<1>()?[0], OuterMode::ONE]),
        });
        let mut modes = modes.or_else(refuse)?;
        if let Sizes::Ends(_) = sizes {
            modes[0].strides[2] = 0;
        }
        let count = modes[0].count.saturating_mul(modes[1].count);
        if count > MAX_EXTENT {
            return refuse(format!(
                "there are {count} {products}; {whole} has at most {MAX_EXTENT}"
            ));
        }
        let is_one = count == 1 && matches!(sizes, Sizes::None);
        let (_, added) = gemm.addend()?;
        if added.is_some() && !is_one {
            return refuse(format!("{whole} has no residual; use C, and `beta`"));
        }
        if let Sizes::Ends(sizes) | Sizes::Counts(sizes) = sizes
            && sizes.len() != count
        {
            return refuse(format!(
                "there are {} sizes of groups, and {count} matrices B; make them agree",
                sizes.len()
            ));
        }
        Ok(Groups { modes, sizes })
    }

    /// One product.
    pub const ONE: Groups<'static> = Groups {
        modes: [OuterMode::ONE; 2],
        sizes: Sizes::None,
    };

    /// How many products there are.
    pub fn count(&self) -> usize {
        self.modes.iter().map(|mode| mode.count).product()
    }

    /// Elements from the first A, B and C to those of the `nth` product.
    pub fn offsets(&self, nth: usize) -> [usize; 3] {
        let [inner, outer] = self.modes;
        let at = [nth % inner.count.max(1), nth / inner.count.max(1)];
        [0, 1, 2].map(|operand| at[0] * inner.strides[operand] + at[1] * outer.strides[operand])
    }

    /// Whether A (0), B (1) or C (2) of each product begins a multiple of `unit` elements after the first one.
    pub fn are_apart(&self, operand: usize, unit: usize) -> bool {
        let mut strides = self.modes.iter().map(|mode| mode.strides[operand]);
        strides.all(|stride| stride.is_multiple_of(unit))
    }

    /// How many products have an A (0), a B (1) or a C (2) of their own.
    pub fn own(&self, operand: usize) -> usize {
        // Groups have rows of their own in what they share.
        let shares = |mode: &&OuterMode| mode.strides[operand] == 0 && !self.have_sizes();
        let own = self.modes.iter().filter(|mode| !shares(mode));
        own.map(|mode| mode.count).product()
    }

    /// Whether there is one product, of all rows.
    pub fn are_one(&self) -> bool {
        self.count() == 1 && !self.have_sizes()
    }

    /// Whether the rows of a product are known on the device alone.
    pub fn have_sizes(&self) -> bool {
        !matches!(self.sizes, Sizes::None)
    }

    fn transposed(self) -> Self {
        Groups {
            modes: self.modes.map(OuterMode::transposed),
            ..self
        }
    }

    fn shape(&self) -> GroupsShape {
        GroupsShape {
            modes: self.modes,
            sizes: match self.sizes {
                Sizes::None => "",
                Sizes::Ends(_) => " by ends",
                Sizes::Counts(_) => " by counts",
            },
        }
    }
}

impl<'a, T: Operand, D: DeviceData> Problem<'a, T, D> {
    /// The `nth` problem of a batch alone.
    pub fn nth(&mut self, nth: usize) -> Result<Problem<'_, T, D>> {
        let [a, b, c] = self.groups.offsets(nth);
        Ok(Problem {
            a: Matrix {
                view: self.a.view.slice(a..)?,
                ..self.a
            },
            b: Matrix {
                view: self.b.view.slice(b..)?,
                ..self.b
            },
            c: MatrixMut {
                view: self.c.view.slice_mut(c..)?,
                extents: self.c.extents,
            },
            groups: Groups::ONE,
            outer_k: self.outer_k,
            rows: Rows::Own,
            alpha: self.alpha,
            beta: self.beta,
            precision: self.precision,
            epilogue: self.epilogue,
            scales: self.scales.of_product(nth)?,
            quantized: None,
        })
    }
}

impl<T: Operand, D: DeviceData> Problem<'_, T, D> {
    /// Elements from one row to the next of the batch's C as one matrix, which has them below one another. None if they
    /// do not lie so, or if each of them has the same bias for its rows.
    pub(super) fn ld_of_stacked_c(&self) -> Option<usize> {
        let (m, _, _) = self.extents();
        let [inner, outer] = self.groups.modes;
        let ld = match m {
            1 if inner.count > 1 => inner.strides[2],
            _ => self.c.ld(),
        };
        let follow = |mode: OuterMode, rows: usize| mode.count == 1 || mode.strides[2] == rows * ld;
        let has_row_bias = matches!(
            self.epilogue.bias,
            Some(Bias {
                along: BiasAlong::Rows,
                ..
            })
        );
        let is_stacked = !self.groups.have_sizes()
            && self.c.order() == Order::RowMajor
            && ld >= self.c.columns()
            && m * self.groups.count() <= MAX_EXTENT
            && follow(inner, m)
            && follow(outer, m * inner.count);
        (is_stacked && !has_row_bias).then_some(ld)
    }
}

impl<'a, T: Operand, D: DeviceData> Problem<'a, T, D> {
    /// The problem as its epilogue has it, with all C of its batch as one matrix, whose rows are so many elements apart.
    pub(super) fn with_stacked_c(self, ld: usize) -> Result<Self> {
        let (rows, columns) = (self.c.rows() * self.groups.count(), self.c.columns());
        Ok(Problem {
            c: MatrixMut::with_ld(self.c.view, rows, columns, Order::RowMajor, ld)?,
            groups: Groups::ONE,
            ..self
        })
    }
}

/// The part of [`Groups`] that a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct GroupsShape {
    modes: [OuterMode; 2],
    sizes: &'static str,
}

impl<T: Operand, D: ElementC<Acc = T::Factor>> Problem<'_, T, D> {
    /// The whole epilogue of this problem, but for [`Activation::GeluErf`].
    pub(super) fn fused(&self) -> Fused<D> {
        Then {
            first: self.linear(),
            second: AnyActivation::new(self.epilogue.activation),
        }
    }

    /// The whole epilogue of this problem, of kernels that have all activations.
    pub(super) fn fused_with_erf(&self) -> FusedWithErf<D> {
        Then {
            first: self.fused(),
            second: OptionalGeluErf::new(self.epilogue.activation),
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
        self.linear_with(self.alpha, self.beta)
    }
}

impl<T: ScaledOperand, D: ElementC<Acc = f32>> Problem<'_, T, D> {
    /// The epilogue that multiplies by alpha and by scales of rows and columns, if there are some.
    pub(super) fn outer_scaled(&self) -> OuterScales {
        let (m, n, _) = self.extents();
        self.outer_scaled_by(&self.scales, [m, n])
    }

    /// The same for Cᵀ.
    pub(super) fn transposed_outer_scaled(&self) -> OuterScales {
        let (m, n, _) = self.extents();
        self.outer_scaled_by(&self.scales.transposed(), [n, m])
    }

    /// The same for these scales and a C of these rows and columns.
    fn outer_scaled_by(&self, scales: &Scales<'_>, extents: [usize; 2]) -> OuterScales {
        let alpha = T::to_f32(self.alpha);
        match scales {
            // SAFETY: the scales are on C's device and are borrowed for the call.
            Scales::Outer(scales) => unsafe { scales.epilogue(alpha, extents) },
            Scales::None | Scales::Blocks(_) => OuterScales::one(alpha),
        }
    }
}

impl<T: Operand, D: ElementC> Problem<'_, T, D> {
    /// The epilogue without the activation, with these factors of the accumulators' type.
    pub(super) fn linear_with(&self, alpha: D::Acc, beta: D::Acc) -> Linear<D> {
        let (m, n, _) = self.extents();
        let extent = [m as i32, n as i32];
        let mut linear = Linear::new(alpha, extent);
        // SAFETY: the operands were checked against C's extents and their own memory. They are on C's device and are
        // borrowed for the call.
        unsafe {
            if beta != D::Acc::ZERO {
                let source = self.source();
                let strides = source.strides();
                linear = linear.residual(beta, pointer(source.view), strides);
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProblemShape {
    /// m, n and k.
    pub extents: [usize; 3],
    /// A, B and C.
    operands: [OperandShape; 3],
    beta: BetaKind,
    precision: Precision,
    epilogue: EpilogueShape,
    /// Which scales A and B have.
    scales: ScalesKind,
    groups: GroupsShape,
    outer_k: OuterMode,
    rows: RowsShape,
}

impl ProblemShape {
    /// Refuses a problem of another shape than this one, the shape of a plan. The error has what differs.
    pub fn check(&self, found: &ProblemShape) -> Result<()> {
        if self == found {
            return Ok(());
        }
        let differ = self.parts().into_iter().zip(found.parts());
        let (planned, found): (Vec<_>, Vec<_>) = differ.filter(|(one, other)| one != other).unzip();
        Err(Error::Plan {
            planned: planned.join(", "),
            found: found.join(", "),
        })
    }

    /// What the shape consists of, in words.
    fn parts(&self) -> [String; 13] {
        let [m, n, k] = self.extents;
        let [a, b, c] = &self.operands;
        let beta = match self.beta {
            BetaKind::Zero => "0",
            BetaKind::One => "1",
            BetaKind::Other => "neither 0 nor 1",
        };
        let indexed = match self.rows {
            RowsShape::Own => "no indices of rows".to_string(),
            RowsShape::OfA(count) => format!("{count} indices of A's rows"),
            RowsShape::OfC(count) => format!("{count} indices of C's rows"),
        };
        let GroupsShape {
            modes: [inner, outer],
            sizes,
        } = self.groups;
        let apart = |mode: OuterMode| {
            let [of_a, of_b, of_c] = mode.strides;
            format!("{of_a}, {of_b} and {of_c} elements apart")
        };
        [
            format!("m = {m}"),
            format!("n = {n}"),
            format!("k = {k}"),
            format!("{a} of A"),
            format!("{b} of B"),
            format!("{c} of C"),
            format!("beta {beta}"),
            format!("{} products, {}", self.precision, self.epilogue),
            self.scales.to_string(),
            indexed,
            format!("{} products{sizes}, {}", inner.count, apart(inner)),
            format!("{} batches of them, {}", outer.count, apart(outer)),
            format!(
                "{} times so many k, {}",
                self.outer_k.count,
                apart(self.outer_k)
            ),
        ]
    }
}

/// An operand's layout and alignment in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OperandShape {
    order: Order,
    ld: usize,
    alignment: u64,
}

impl fmt::Display for OperandShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            Order::RowMajor => "row-major",
            Order::ColMajor => "column-major",
        };
        let OperandShape { ld, alignment, .. } = self;
        write!(
            f,
            "{order} elements with leading dimension {ld} at a multiple of {alignment} bytes"
        )
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BetaKind {
    /// C is overwritten.
    Zero,
    /// C is added to.
    One,
    /// C is scaled and added to.
    Other,
}

impl BetaKind {
    pub(super) fn of<F: Accumulator>(beta: F) -> Self {
        match beta {
            zero if zero == F::ZERO => Self::Zero,
            one if one == F::ONE => Self::One,
            _ => Self::Other,
        }
    }
}
