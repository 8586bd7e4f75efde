//! Biases: a number for each column or for each row of C.

use cutlet_device::{DeviceData, Float, Global};
use cutlet_layout_core::Coord;

use super::{Epilogue, Pair};

/// `x + bias[column]`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct ColumnBias<T: Float + Default> {
    bias: Global<T>,
    n: i32,
    padding: i32,
}

impl<T: Float + Default> ColumnBias<T> {
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

impl<T: Float + Default> Epilogue for ColumnBias<T> {
    type Acc = f32;
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
    fn apply(&self, acc: f32, _: Option<f32>, [_, column]: Coord) -> f32 {
        acc + element(self.bias, column, self.n)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[f32; 2]; N],
        pair: impl Fn(usize) -> Pair<(), [T; 2]>,
    ) {
        for (nth, accs) in accs.iter_mut().enumerate() {
            let [first, second] = pair(nth).columns;
            *accs = [accs[0] + first.to_f32(), accs[1] + second.to_f32()];
        }
    }
}

/// `x + bias[row]`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct RowBias<T: Float> {
    bias: Global<T>,
    m: i32,
    padding: i32,
}

impl<T: Float> RowBias<T> {
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

impl<T: Float> Epilogue for RowBias<T> {
    type Acc = f32;
    type Row = f32;
    type Columns = ();

    #[inline(always)]
    fn row(&self, row: i32) -> f32 {
        element(self.bias, row, self.m)
    }

    #[inline(always)]
    fn apply(&self, acc: f32, _: Option<f32>, [row, _]: Coord) -> f32 {
        acc + element(self.bias, row, self.m)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[f32; 2]; N],
        pair: impl Fn(usize) -> Pair<f32, ()>,
    ) {
        for (nth, accs) in accs.iter_mut().enumerate() {
            let row = pair(nth).row;
            *accs = [accs[0] + row, accs[1] + row];
        }
    }
}

/// Element `index`, or 0 beyond `count` elements.
#[inline(always)]
fn element<T: Float>(elements: Global<T>, index: i32, count: i32) -> f32 {
    if index >= count {
        return 0.0;
    }
    // SAFETY: the caller of `new` promised `count` elements. They may be written after this kernel began, so they must
    // not be read through the read-only cache.
    let [element] = unsafe { elements.load_vec(index.into()) };
    element.to_f32()
}

#[cfg(test)]
mod tests {
    use crate::PTX;

    /// A kernel may begin while an earlier one still writes the bias.
    #[test]
    fn nothing_is_read_through_the_read_only_cache() {
        let families = PTX.families.iter();
        let mut modules = families
            .filter(|family| family.name.starts_with("gemm"))
            .flat_map(|family| family.modules)
            .peekable();
        assert!(modules.peek().is_some());
        assert!(modules.all(|module| !module.ptx.contains("ld.global.nc")));
    }
}
