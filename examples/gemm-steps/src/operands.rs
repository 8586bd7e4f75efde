//! What every step is given: the operands of a product, checked once.

use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_host::{Buffer, TensorMapSpec, View, ViewMut};
use half::bf16;

/// Why a step does not compute a product.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A buffer is too short.
    #[error(
        "{matrix} has {needed} elements, and its buffer {found}: make the buffer as long as the extents say"
    )]
    Length {
        /// The matrix.
        matrix: &'static str,
        /// Its elements.
        needed: usize,
        /// Those of the buffer.
        found: usize,
    },
    /// An extent is zero, or too large.
    #[error(
        "the product has {name} = {found}: extents are 1 to 2^31 - 1, so skip an empty product and split a larger one"
    )]
    Extent {
        /// The extent.
        name: &'static str,
        /// Its value.
        found: usize,
    },
    /// An extent is not a multiple of what the step moves at a time.
    #[error(
        "step {step} moves {multiple} elements along {name} at a time, and the product has {name} = {found}: pad it \
         with zeros, or take an earlier step"
    )]
    Multiple {
        /// The step.
        step: &'static str,
        /// The extent.
        name: &'static str,
        /// Its value.
        found: usize,
        /// What it must be a multiple of.
        multiple: usize,
    },
    /// The device refused.
    #[error(transparent)]
    Host(#[from] cutlet_host::Error),
}

/// The result of a step.
pub type Result<T> = core::result::Result<T, Error>;

/// A as m×k, B as n×k and C as m×n, all row-major, in buffers that are long enough.
#[derive(Debug)]
pub struct Operands<'a> {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: View<'a, bf16>,
    pub(crate) b: View<'a, bf16>,
    pub(crate) c: ViewMut<'a, bf16>,
}

impl<'a> Operands<'a> {
    /// The operands of a product with these extents: `[m, n, k]`.
    ///
    /// # Errors
    /// [`Error::Extent`] if one is zero or not below 2^31; [`Error::Length`] if a buffer is too short.
    pub fn new(
        [m, n, k]: [usize; 3],
        a: &'a Buffer<bf16>,
        b: &'a Buffer<bf16>,
        c: &'a mut Buffer<bf16>,
    ) -> Result<Self> {
        for (name, found) in [("m", m), ("n", n), ("k", k)] {
            if found == 0 || i32::try_from(found).is_err() {
                return Err(Error::Extent { name, found });
            }
        }
        for (matrix, needed, found) in [
            ("A", m * k, a.len()),
            ("B", n * k, b.len()),
            ("C", m * n, c.len()),
        ] {
            if found < needed {
                return Err(Error::Length {
                    matrix,
                    needed,
                    found,
                });
            }
        }
        Ok(Self {
            m,
            n,
            k,
            a: a.view(),
            b: b.view(),
            c: c.view_mut(),
        })
    }

    /// The extents as a kernel takes them: `[m, n, k]`.
    pub(crate) fn extents(&self) -> [i32; 3] {
        [self.m, self.n, self.k].map(|it| it as i32)
    }

    /// The number of blocks with tiles of so many rows and columns: along x those of a row of tiles, along y the rows.
    pub(crate) fn grid(&self, [rows, columns]: [usize; 2]) -> (u32, u32) {
        (
            self.n.div_ceil(columns) as u32,
            self.m.div_ceil(rows) as u32,
        )
    }

    /// The map by which TMA loads boxes of A.
    pub(crate) fn map_of_a(&self, boxes: TmaBox) -> cutlet_host::Result<TensorMap> {
        let [m, k] = [self.m, self.k].map(|it| it as u64);
        TensorMapSpec::rows(m, k, k).encode(self.a, boxes)
    }

    /// The map by which TMA loads boxes of B.
    pub(crate) fn map_of_b(&self, boxes: TmaBox) -> cutlet_host::Result<TensorMap> {
        let [n, k] = [self.n, self.k].map(|it| it as u64);
        TensorMapSpec::rows(n, k, k).encode(self.b, boxes)
    }

    /// The map by which TMA stores boxes of C.
    pub(crate) fn map_of_c(&self, boxes: TmaBox) -> cutlet_host::Result<TensorMap> {
        let [m, n] = [self.m, self.n].map(|it| it as u64);
        TensorMapSpec::rows(m, n, n).encode(self.c.view(), boxes)
    }
}
