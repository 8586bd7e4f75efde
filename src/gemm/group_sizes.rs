//! Which rows the groups of a product have: the ends of groups, and the numbers of their rows. Each has a type, so that
//! one is not taken for the other.

use cutlet_host::{Buffer, IntoView, View};

macro_rules! sizes {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a>(pub(crate) View<'a, i32>);

        impl<'a> IntoView<'a> for $name<'a> {
            type Element = i32;
            fn into_view(self) -> View<'a, i32> {
                self.0
            }
        }

        impl<'a> From<View<'a, i32>> for $name<'a> {
            fn from(view: View<'a, i32>) -> Self {
                $name(view)
            }
        }

        impl<'a> From<&'a Buffer<i32>> for $name<'a> {
            fn from(buffer: &'a Buffer<i32>) -> Self {
                $name(buffer.view())
            }
        }
    };
}
sizes! {
    /// Where groups of rows end, for [`Gemm::group_ends`](crate::Gemm::group_ends): group `g` has the rows from
    /// `ends[g - 1]` to `ends[g]`. Buffers and views become ends, but [`GroupRows`] do not:
    ///
    /// ```compile_fail,E0277
    /// # use cutlet::{Gemm, MoeRows};
    /// fn multiply(gemm: Gemm<'_, f32>, rows: &MoeRows) {
    ///     gemm.group_ends(rows.counts()); // `rows.ends()` is meant
    /// }
    /// ```
    GroupEnds
}
sizes! {
    /// How many rows each group has, for [`Gemm::group_rows`](crate::Gemm::group_rows).
    GroupRows
}
