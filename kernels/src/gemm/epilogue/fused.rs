//! The epilogue of the library's fused instances: factors, a residual and a bias, then an activation, chosen at run
//! time.

use cutlet_device::collective::Group;
use cutlet_device::{DeviceData, Global};
use cutlet_layout_core::Coord;

use super::{
    Accumulator, AnyActivation, ColumnBias, ElementC, Epilogue, OptionalGeluErf, Pair, Residual,
    RowBias, Scale, Then,
};

/// Whether the bias of a [`Linear`] has a number for each row or for each column of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BiasAlong {
    /// A number for each row.
    Rows,
    /// A number for each column.
    Columns,
}

/// Everything that can be fused with a product. Its parts are chosen at run time.
pub type Fused<T> = Then<Linear<T>, AnyActivation<<T as ElementC>::Acc>>;

/// [`Fused`], or GELU by the error function in the place of its activation.
pub type FusedWithErf<T> = Then<Fused<T>, OptionalGeluErf<<T as ElementC>::Acc>>;

/// [`Fused`] after `alpha · acc + beta · old`: for a C whose old elements only the store finds.
pub type FusedWithOld<T> = Then<Scale<<T as ElementC>::Acc>, Fused<T>>;

impl<T: ElementC> Fused<T> {
    /// Leaves accumulators unchanged.
    pub fn identity() -> Self {
        Then {
            first: Linear::new(<T::Acc as Accumulator>::ONE, [0; 2]),
            second: AnyActivation::new(None),
        }
    }
}

/// `alpha · acc + beta · source + bias`. The source and the bias may be absent. A thread branches once for several
/// pairs.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Linear<T: ElementC> {
    source: Global<T>,
    strides: [i64; 2],
    bias: Global<T>,
    extent: Coord,
    alpha: T::Acc,
    beta: T::Acc,
    /// 0 for no bias, or 1 + the [`BiasAlong`].
    along: u32,
    padding: u32,
}

impl<T: ElementC> Linear<T> {
    /// `alpha · acc`, for a C of `extent` = (rows, columns).
    pub fn new(alpha: T::Acc, extent: Coord) -> Self {
        let nowhere = Global::from_ptr(core::ptr::null());
        Self {
            source: nowhere,
            strides: [0; 2],
            bias: nowhere,
            extent,
            alpha,
            beta: T::Acc::ZERO,
            along: 0,
            padding: 0,
        }
    }

    /// Adds `beta` times the matrix of C's extents at `source`. Its rows and columns are `strides` elements apart.
    ///
    /// # Safety
    /// As for [`Residual::new`].
    pub unsafe fn residual(self, beta: T::Acc, source: Global<T>, strides: [i64; 2]) -> Self {
        Self {
            source,
            strides,
            beta,
            ..self
        }
    }

    /// Adds a bias, which has an element for each row or column of C.
    ///
    /// # Safety
    /// As for [`RowBias::new`] or [`ColumnBias::new`].
    pub unsafe fn bias(self, along: BiasAlong, bias: Global<T>) -> Self {
        Self {
            bias,
            along: 1 + along as u32,
            ..self
        }
    }

    #[inline(always)]
    fn has_bias(&self, along: BiasAlong) -> bool {
        self.along == 1 + along as u32
    }

    #[inline(always)]
    fn residual_part(&self) -> Residual<T> {
        // SAFETY: the caller of `residual` promised it.
        unsafe { Residual::new(self.beta, self.source, self.strides, self.extent) }
    }

    #[inline(always)]
    fn row_bias(&self) -> RowBias<T> {
        // SAFETY: the caller of `bias` promised it.
        unsafe { RowBias::new(self.bias, self.extent[0]) }
    }

    #[inline(always)]
    fn column_bias(&self) -> ColumnBias<T> {
        // SAFETY: the caller of `bias` promised it.
        unsafe { ColumnBias::new(self.bias, self.extent[1]) }
    }
}

impl<T: ElementC> Epilogue for Linear<T> {
    type Acc = T::Acc;
    /// The index at which the source's row begins, and the row's bias.
    type Row = (i64, T::Acc);
    type Columns = [T; 2];

    #[inline(always)]
    fn row(&self, row: i32) -> Self::Row {
        let bias = match self.has_bias(BiasAlong::Rows) {
            true => self.row_bias().row(row),
            false => T::Acc::ZERO,
        };
        (self.residual_part().row(row), bias)
    }

    #[inline(always)]
    fn columns(&self, first: i32) -> [T; 2] {
        match self.has_bias(BiasAlong::Columns) {
            true => self.column_bias().columns(first),
            false => Default::default(),
        }
    }

    #[inline(always)]
    fn of_group(self, group: Group, to_c: i64) -> Self {
        let to_bias = match self.has_bias(BiasAlong::Rows) {
            true => i64::from(group.first_row),
            false => 0,
        };
        Self {
            source: self.source.offset(to_c),
            bias: self.bias.offset(to_bias),
            extent: [group.rows, self.extent[1]],
            ..self
        }
    }

    #[inline(always)]
    fn apply(&self, acc: T::Acc, _: Option<T::Acc>, at: Coord) -> T::Acc {
        let mut value = self.alpha.times(acc);
        if self.beta != T::Acc::ZERO {
            value = self.residual_part().apply(value, None, at);
        }
        if self.has_bias(BiasAlong::Rows) {
            value = self.row_bias().apply(value, None, at);
        }
        if self.has_bias(BiasAlong::Columns) {
            value = self.column_bias().apply(value, None, at);
        }
        value
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[T::Acc; 2]; N],
        pair: impl Fn(usize) -> Pair<Self::Row, [T; 2]>,
    ) {
        if self.alpha != T::Acc::ONE {
            for accs in &mut *accs {
                *accs = [self.alpha.times(accs[0]), self.alpha.times(accs[1])];
            }
        }
        if self.beta != T::Acc::ZERO {
            self.residual_part()
                .apply_pairs(accs, |nth| pair(nth).for_part(|row, _| (row.0, ())));
        }
        if self.has_bias(BiasAlong::Rows) {
            self.row_bias()
                .apply_pairs(accs, |nth| pair(nth).for_part(|row, _| (row.1, ())));
        }
        if self.has_bias(BiasAlong::Columns) {
            self.column_bias()
                .apply_pairs(accs, |nth| pair(nth).for_part(|_, columns| ((), columns)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::epilogue::{Activation, AtLeast, Scale};

    /// Stops the build if a kernel could not take these types.
    const _: () = {
        let () = <FusedWithErf<f64> as DeviceData>::CHECK;
        let () = <FusedWithErf<i32> as DeviceData>::CHECK;
        let () = <Then<Linear<f64>, AtLeast<f64>> as DeviceData>::CHECK;
        let () = <Then<Residual<f64>, RowBias<f64>> as DeviceData>::CHECK;
        let () = <Then<ColumnBias<i32>, AtLeast<i32>> as DeviceData>::CHECK;
        let () = <Scale<f64> as DeviceData>::CHECK;
    };

    /// `relu(alpha · acc + beta · source + bias)` at (1, 2) of a 2×4 C, alone and as the first of a pair.
    fn fused<T: ElementC>(
        alpha: T::Acc,
        acc: T::Acc,
        (beta, source): (T::Acc, [T; 8]),
        (along, bias): (BiasAlong, [T; 4]),
    ) -> [T::Acc; 2] {
        let (source, bias) = (
            Global::from_ptr(source.as_ptr()),
            Global::from_ptr(bias.as_ptr()),
        );
        let linear = Linear::<T>::new(alpha, [2, 4]);
        // SAFETY: the arrays outlive the calls and have the extents.
        let linear = unsafe { linear.residual(beta, source, [4, 1]).bias(along, bias) };
        let fused = Then {
            first: linear,
            second: AnyActivation::new(Some(Activation::Relu)),
        };
        let mut pairs = [[acc, T::Acc::ZERO]];
        fused.apply_pairs(&mut pairs, |_| Pair {
            at: [1, 2],
            row: fused.row(1),
            columns: fused.columns(2),
        });
        [fused.apply(acc, None, [1, 2]), pairs[0][0]]
    }

    #[test]
    fn the_epilogue_is_computed_in_the_accumulators_type() {
        let tiny = f64::EPSILON;
        let source = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0];
        for (along, bias) in [
            (BiasAlong::Rows, [0.0, tiny, 0.0, 0.0]),
            (BiasAlong::Columns, [0.0, 0.0, tiny, 0.0]),
        ] {
            let found = fused::<f64>(3.0, 1.0, (-4.0, source), (along, bias));
            assert_eq!(found, [1.0 + tiny; 2]);
            let found = fused::<f64>(-3.0, 1.0, (-4.0, source), (along, bias));
            assert_eq!(found, [0.0; 2]);
        }
        // f32 has no number between 2²⁴ and 2²⁴ + 2.
        let source = [0, 0, 0, 0, 0, 0, 1 << 24, 0];
        for (along, bias) in [
            (BiasAlong::Rows, [0, 1, 0, 0]),
            (BiasAlong::Columns, [0, 0, 1, 0]),
        ] {
            let found = fused::<i32>(2, -4, (1, source), (along, bias));
            assert_eq!(found, [(1 << 24) - 7; 2]);
        }
    }
}
