//! The layouts that a contraction becomes: A as (M, K, L), B as (N, K, L) and C as (M, N, L).

use core::fmt;

use super::modes::{Modes, Role};
use super::notation::Notation;
use crate::error::{LayoutError, or_panic, tri};
use crate::flat_modes;
use crate::layout::LayoutBuilder;
use crate::{Int, Layout};

/// The roles of the modes of A, B and C.
const ROLES: [[Role; 3]; 3] = [
    [Role::M, Role::K, Role::L],
    [Role::N, Role::K, Role::L],
    [Role::M, Role::N, Role::L],
];

/// The layouts of A as (M, K, L), of B as (N, K, L) and of C as (M, N, L), as CUTLASS orders them.
///
/// A mode is a tuple if several modes have its role that do not continue each other in all tensors, and `_1:_0` if none
/// has. Equal coordinates of M, N, K and L are equal coordinates of the named modes: `C(m, n, l)` is the sum of
/// `A(m, k, l) * B(n, k, l)` over k.
///
/// ```
/// use cutlet_layout_core::contraction::Layouts;
/// use cutlet_layout_core::layout;
///
/// const LAYOUTS: Layouts = Layouts::new(
///     "ijk,jl->ilk",
///     &layout!((2, 3, 4):(12, 4, 1)),
///     &layout!((3, 5):(5, 1)),
///     &layout!((2, 5, 4):(20, 4, 1)),
/// );
/// assert_eq!(
///     LAYOUTS.to_string(),
///     "\
/// M = (k 4, i 2), N = l 5, K = j 3, L = 1
/// A (M,K,L) = ((_4,_2),_3,_1):((_1,_12),_4,_0)
/// B (N,K,L) = (_5,_3,_1):(_1,_5,_0)
/// C (M,N,L) = ((_4,_2),_5,_1):((_1,_20),_4,_0)"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layouts {
    modes: Modes,
    layouts: [Layout; 3],
}

impl Layouts {
    /// The layouts of a contraction of tensors with the layouts `a`, `b` and `c`.
    ///
    /// # Panics
    /// If [`try_new`](Self::try_new) returns an error; in a `const`, its message is a compile error.
    #[track_caller]
    pub const fn new(notation: &str, a: &Layout, b: &Layout, c: &Layout) -> Layouts {
        or_panic(Layouts::try_new(notation, a, b, c))
    }

    /// The layouts of a contraction of tensors with the layouts `a`, `b` and `c`.
    ///
    /// # Errors
    /// As [`Notation::parse`], [`Notation::modes`] and [`Modes::layouts`].
    pub const fn try_new(
        notation: &str,
        a: &Layout,
        b: &Layout,
        c: &Layout,
    ) -> Result<Layouts, LayoutError> {
        let notation = tri!(Notation::parse(notation));
        tri!(notation.modes([a, b, c])).layouts()
    }

    /// The layouts of modes that are merged and lie by roles.
    pub(super) const fn of_modes(modes: Modes) -> Result<Layouts, LayoutError> {
        let mut layouts = [Layout::UNIT; 3];
        let mut tensor = 0;
        while tensor < 3 {
            layouts[tensor] = tri!(layout(&modes, tensor));
            tensor += 1;
        }
        Ok(Layouts { modes, layouts })
    }

    /// A, as (M, K, L).
    pub const fn a(&self) -> &Layout {
        &self.layouts[0]
    }

    /// B, as (N, K, L).
    pub const fn b(&self) -> &Layout {
        &self.layouts[1]
    }

    /// C, as (M, N, L).
    pub const fn c(&self) -> &Layout {
        &self.layouts[2]
    }

    /// The modes by roles, merged.
    pub const fn modes(&self) -> &Modes {
        &self.modes
    }
}

const fn layout(modes: &Modes, tensor: usize) -> Result<Layout, LayoutError> {
    let mut builder = LayoutBuilder::new();
    builder.open();
    let mut nth = 0;
    while nth < 3 {
        let of_role = of_role(modes, ROLES[tensor][nth], tensor);
        match of_role.len {
            0 => builder.leaf(Int::ONE, Int::ZERO),
            _ => builder.append_list(&of_role),
        }
        nth += 1;
    }
    builder.close();
    builder.finish()
}

/// A tensor's modes of a role.
const fn of_role(modes: &Modes, role: Role, tensor: usize) -> flat_modes::Modes {
    let mut list = flat_modes::Modes::EMPTY;
    let modes = modes.as_slice();
    let mut i = 0;
    while i < modes.len() {
        if modes[i].role.is(role) {
            list.push(modes[i].extent, modes[i].strides[tensor]);
        }
        i += 1;
    }
    list
}

impl fmt::Display for Layouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layouts { modes, layouts } = self;
        let [a, b, c] = layouts;
        write!(
            f,
            "{modes}\nA (M,K,L) = {a}\nB (N,K,L) = {b}\nC (M,N,L) = {c}"
        )
    }
}
