//! The modes of a contraction: which tensors have each, how large it is, and how far its elements lie apart.

use core::fmt;

use super::layouts::Layouts;
use super::names::Names;
use crate::error::{ErrorKind, LayoutError};
use crate::{CAPACITY, Int};

/// What a mode is for the product: one of M, N, K and L.
///
/// The roles are constants. A public variant of the name `M` would have compilers call the type [`M`](crate::M) by its
/// whole path in each error about a layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Role(u8);

impl Role {
    /// Rows of A and C.
    pub const M: Role = Role(0);
    /// Columns of B and C.
    pub const N: Role = Role(1);
    /// What is summed: of A and B, or of one of them.
    pub const K: Role = Role(2);
    /// Products of their own: of C and both operands.
    pub const L: Role = Role(3);

    /// All roles, in the order in which they are printed.
    pub const ALL: [Role; 4] = [Role::M, Role::N, Role::K, Role::L];

    /// Whether a tensor has modes of the role: A (0), B (1) or C (2).
    ///
    /// # Panics
    /// If there is no such tensor.
    pub const fn is_of(self, tensor: usize) -> bool {
        const LACKS: [Option<usize>; 4] = [Some(1), Some(0), Some(2), None];
        assert!(tensor < 3, "is_of: the tensors are A (0), B (1) and C (2)");
        match LACKS[self.0 as usize] {
            Some(lacks) => tensor != lacks,
            None => true,
        }
    }

    /// Equality, in `const`.
    pub(super) const fn is(self, other: Role) -> bool {
        self.0 == other.0
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["M", "N", "K", "L"][self.0 as usize])
    }
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A mode, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Its names, of which the first one is the innermost.
    pub names: Names,
    /// What it is for the product.
    pub role: Role,
    /// How many coordinates it has.
    pub extent: Int,
    /// Elements from one coordinate to the next in A, B and C. `_0` in a tensor that does not have the mode.
    pub strides: [Int; 3],
}

impl Mode {
    /// A mode that no tensor needs.
    const UNIT: Mode = Mode {
        names: Names::EMPTY,
        role: Role::L,
        extent: Int::ONE,
        strides: [Int::ZERO; 3],
    };

    /// Whether this mode begins where `inner` ends, in all tensors: the two are one mode then.
    ///
    /// Numbers decide, static or not.
    pub const fn continues(&self, inner: &Mode) -> bool {
        let mut tensor = 0;
        while tensor < 3 {
            let stride = self.strides[tensor];
            match inner.strides[tensor].checked_mul(inner.extent) {
                Some(end) if end.eq(stride) || (end.value() == 0 && stride.value() == 0) => {}
                _ => return false,
            }
            tensor += 1;
        }
        self.role.is(inner.role)
    }

    /// Whether elements lie closer together than those of another mode of the same role, in the first tensor that
    /// tells.
    const fn is_inside(&self, other: &Mode) -> bool {
        let mut tensor = 0;
        while tensor < 3 {
            let (own, others) = (self.strides[tensor], other.strides[tensor]);
            if !own.same_direction(others) {
                return false;
            }
            let (own, others) = (own.value().unsigned_abs(), others.value().unsigned_abs());
            if own != others {
                return own < others;
            }
            tensor += 1;
        }
        false
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.names, self.extent.value())
    }
}

/// A list of modes.
///
/// ```
/// use cutlet_layout_core::contraction::Notation;
/// use cutlet_layout_core::layout;
///
/// let notation = Notation::parse("bij,bkj->ik").unwrap();
/// // Rows of b and j lie behind one another in both operands.
/// let (a, b) = (layout!((3, 4, 5):(5, 15, 1)), layout!((3, 6, 5):(5, 15, 1)));
/// let modes = notation.modes([&a, &b, &layout!((4, 6):(6, 1))]).unwrap();
/// assert_eq!(modes.as_slice().len(), 4);
/// assert_eq!(modes.merged().to_string(), "M = i 4, N = k 6, K = jb 15, L = 1");
/// ```
#[derive(Clone, Copy)]
pub struct Modes {
    list: [Mode; CAPACITY],
    len: usize,
}

impl Modes {
    /// No modes.
    pub const EMPTY: Modes = Modes {
        list: [Mode::UNIT; CAPACITY],
        len: 0,
    };

    /// The modes in their order.
    pub const fn as_slice(&self) -> &[Mode] {
        self.list.split_at(self.len).0
    }

    /// Adds a mode.
    ///
    /// # Errors
    /// If there are [`CAPACITY`] already.
    pub const fn try_push(&mut self, mode: Mode) -> Result<(), LayoutError> {
        if self.len == CAPACITY {
            return Err(LayoutError::of(
                ErrorKind::Capacity,
                "the modes of A, B and C have more than 32 parts; give the same modes the same shapes",
            ));
        }
        self.list[self.len] = mode;
        self.len += 1;
        Ok(())
    }

    const fn remove(&mut self, mode: usize) {
        self.len -= 1;
        let mut i = mode;
        while i < self.len {
            self.list[i] = self.list[i + 1];
            i += 1;
        }
    }

    /// The modes with neighbours merged: those of the same role of which one continues the other in all tensors. Modes
    /// of one element are left out.
    pub const fn merged(&self) -> Modes {
        let mut modes = *self;
        let mut i = 0;
        while i < modes.len {
            if modes.list[i].extent.value() == 1 {
                modes.remove(i);
            } else {
                i += 1;
            }
        }
        while modes.merge_one() {}
        modes
    }

    /// Merges the first two modes that are one.
    const fn merge_one(&mut self) -> bool {
        let mut inner = 0;
        while inner < self.len {
            let mut outer = 0;
            while outer < self.len {
                if inner != outer
                    && self.list[outer].continues(&self.list[inner])
                    && let Some(extent) =
                        self.list[inner].extent.checked_mul(self.list[outer].extent)
                {
                    let names = self.list[inner].names.followed_by(&self.list[outer].names);
                    self.list[inner].extent = extent;
                    self.list[inner].names = names;
                    self.remove(outer);
                    return true;
                }
                outer += 1;
            }
            inner += 1;
        }
        false
    }

    /// The modes by roles, M first. Those of a role are in the order in which they lie: in A, or else in B.
    pub const fn by_role(&self) -> Modes {
        let mut modes = *self;
        let mut i = 1;
        while i < modes.len {
            let mut at = i;
            while at > 0 && modes.comes_before(at, at - 1) {
                (modes.list[at], modes.list[at - 1]) = (modes.list[at - 1], modes.list[at]);
                at -= 1;
            }
            i += 1;
        }
        modes
    }

    const fn comes_before(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.list[one], &self.list[other]);
        match one.role.is(other.role) {
            true => one.is_inside(other),
            false => one.role.0 < other.role.0,
        }
    }

    /// The layouts of A, B and C that have these modes, which are merged first.
    ///
    /// # Errors
    /// If a layout has more than [`CAPACITY`] leaves, or a size or an index does not fit 64 bits.
    pub const fn layouts(&self) -> Result<Layouts, LayoutError> {
        Layouts::of_modes(self.merged().by_role())
    }
}

impl PartialEq for Modes {
    fn eq(&self, other: &Modes) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Modes {}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The modes of each role: `M = s 2048, N = t 2048, K = d 128, L = (h 16, b 16)`.
impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, role) in Role::ALL.into_iter().enumerate() {
            let before = if nth == 0 { "" } else { ", " };
            write!(f, "{before}{role} = ")?;
            let of_role = || self.as_slice().iter().filter(|it| it.role == role);
            let count = of_role().count();
            if count == 0 {
                f.write_str("1")?;
            }
            let [open, close] = if count > 1 { ["(", ")"] } else { ["", ""] };
            f.write_str(open)?;
            for (nth, mode) in of_role().enumerate() {
                let before = if nth == 0 { "" } else { ", " };
                write!(f, "{before}{mode}")?;
            }
            f.write_str(close)?;
        }
        Ok(())
    }
}
