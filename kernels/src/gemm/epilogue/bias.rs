//! Biases: a number for each column or for each row of C.

use cutlet_device::{DeviceData, Global};
use cutlet_layout_core::Coord;

use super::{Accumulator, ElementC, Epilogue, Pair};

/// `x + bias[column]`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct ColumnBias<T: ElementC> {
    bias: Global<T>,
    n: i32,
    padding: i32,
}

impl<T: ElementC> ColumnBias<T> {
    /// The `n` elements at `bias`.
    ///
    /// # Safety
    /// The elements must exist while a kernel with the epilogue runs. Only earlier kernels may write them. (They may
    /// still run when this one begins.) [`gemm`](crate::gemm::sm90::gemm) calls [`apply_pairs`](Epilogue::apply_pairs),
    /// for which `n` must be even and the first pair aligned to its size.
    #[inline(always)]
    pub unsafe fn new(bias: Global<T>, n: i32) -> Self {
        Self {
            bias,
            n,
            padding: 0,
        }
    }
}

impl<T: ElementC> Epilogue for ColumnBias<T> {
    type Acc = T::Acc;
    type Row = ();
    type Columns = [T; 2];

    #[inline(always)]
    fn columns(&self, first: i32) -> [T; 2] {
        if first >= self.n {
            return [T::default(); 2];
        }
        // SAFETY: `n` is even, so that the second element exists too.
        unsafe { self.bias.load_vec(first.into()) }
    }

    #[inline(always)]
    fn apply(&self, acc: T::Acc, _: Option<T::Acc>, [_, column]: Coord) -> T::Acc {
        acc.plus(element(self.bias, column, self.n))
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[T::Acc; 2]; N],
        pair: impl Fn(usize) -> Pair<(), [T; 2]>,
    ) {
        for (nth, accs) in accs.iter_mut().enumerate() {
            let [first, second] = pair(nth).columns;
            *accs = [accs[0].plus(first.widen()), accs[1].plus(second.widen())];
        }
    }
}

/// `x + bias[row]`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct RowBias<T: ElementC> {
    bias: Global<T>,
    m: i32,
    padding: i32,
}

impl<T: ElementC> RowBias<T> {
    /// The `m` elements at `bias`.
    ///
    /// # Safety
    /// The elements must exist while a kernel with the epilogue runs. Only earlier kernels may write them.
    #[inline(always)]
    pub unsafe fn new(bias: Global<T>, m: i32) -> Self {
        Self {
            bias,
            m,
            padding: 0,
        }
    }
}

impl<T: ElementC> Epilogue for RowBias<T> {
    type Acc = T::Acc;
    type Row = T::Acc;
    type Columns = ();

    #[inline(always)]
    fn row(&self, row: i32) -> T::Acc {
        element(self.bias, row, self.m)
    }

    #[inline(always)]
    fn apply(&self, acc: T::Acc, _: Option<T::Acc>, [row, _]: Coord) -> T::Acc {
        acc.plus(element(self.bias, row, self.m))
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[T::Acc; 2]; N],
        pair: impl Fn(usize) -> Pair<T::Acc, ()>,
    ) {
        for (nth, accs) in accs.iter_mut().enumerate() {
            let row = pair(nth).row;
            *accs = [accs[0].plus(row), accs[1].plus(row)];
        }
    }
}

/// Element `index`, or 0 beyond `count` elements.
#[inline(always)]
fn element<T: ElementC>(elements: Global<T>, index: i32, count: i32) -> T::Acc {
    if index >= count {
        return T::Acc::ZERO;
    }
    // SAFETY: the caller of `new` promised `count` elements. They may be written after this kernel began, so they must
    // not be read through the read-only cache.
    let [element] = unsafe { elements.load_vec(index.into()) };
    element.widen()
}
