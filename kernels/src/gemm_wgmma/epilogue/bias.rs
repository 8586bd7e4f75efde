//! Biases: a number for each column of C, or for each row.

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
    /// They must be there while a kernel with the epilogue runs, and only kernels before it may write
    /// them: it may begin before these end. For [`apply_pairs`](Epilogue::apply_pairs), which
    /// [`gemm`](crate::gemm_wgmma::gemm) calls, `n` is even and the first pair starts at a multiple of
    /// its size.
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
    type Row = ();
    type Columns = [T; 2];

    #[inline(always)]
    fn columns(&self, first: i32) -> [T; 2] {
        if first >= self.n {
            return [T::default(); 2];
        }
        // SAFETY: with `n` even, the second one exists too.
        unsafe { self.bias.load_vec(first.into()) }
    }

    #[inline(always)]
    fn apply(&self, sum: f32, _: Option<f32>, [_, column]: Coord) -> f32 {
        sum + element(self.bias, column, self.n)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        sums: &mut [[f32; 2]; N],
        pair: impl Fn(usize) -> Pair<(), [T; 2]>,
    ) {
        for (nth, sums) in sums.iter_mut().enumerate() {
            let [first, second] = pair(nth).columns;
            *sums = [sums[0] + first.to_f32(), sums[1] + second.to_f32()];
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
    /// They must be there while a kernel with the epilogue runs, and only kernels before it may write
    /// them.
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
    type Row = f32;
    type Columns = ();

    #[inline(always)]
    fn row(&self, row: i32) -> f32 {
        element(self.bias, row, self.m)
    }

    #[inline(always)]
    fn apply(&self, sum: f32, _: Option<f32>, [row, _]: Coord) -> f32 {
        sum + element(self.bias, row, self.m)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        sums: &mut [[f32; 2]; N],
        pair: impl Fn(usize) -> Pair<f32, ()>,
    ) {
        for (nth, sums) in sums.iter_mut().enumerate() {
            let row = pair(nth).row;
            *sums = [sums[0] + row, sums[1] + row];
        }
    }
}

/// Element `index` of `count`, or 0 beyond them.
#[inline(always)]
fn element<T: Float>(elements: Global<T>, index: i32, count: i32) -> f32 {
    if index >= count {
        return 0.0;
    }
    // SAFETY: whoever made the bias promised so many elements. They may have been written after this
    // kernel began, which the read-only cache need not see.
    let [element] = unsafe { elements.load_vec(index.into()) };
    element.to_f32()
}

#[cfg(test)]
mod tests {
    use crate::PTX;

    /// They begin while a kernel before still writes what they read.
    #[test]
    fn nothing_is_read_through_the_read_only_cache() {
        let families = PTX.families.iter();
        let mut modules = families
            .filter(|family| family.name.starts_with("gemm_wgmma"))
            .flat_map(|family| family.modules)
            .peekable();
        assert!(modules.peek().is_some());
        assert!(modules.all(|module| !module.ptx.contains("ld.global.nc")));
    }
}
