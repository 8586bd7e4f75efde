//! Accesses: the elements that a call uses, whether it writes them, and its name.

use std::fmt;

use cutlet_device::DeviceData;

use crate::{View, ViewMut};

/// The use of elements by a call.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    /// The address of the first element.
    pub(crate) first: u64,
    /// The address behind the last element.
    pub(crate) end: u64,
    /// Number of elements.
    pub(crate) len: usize,
    /// The elements' type.
    pub(crate) element: &'static str,
    pub(crate) kind: AccessKind,
    pub(crate) by: Caller,
}

impl Access {
    /// A read of a view's elements.
    pub(crate) fn read<T: DeviceData>(view: &View<'_, T>, by: Caller) -> Self {
        Access {
            first: view.address(),
            end: view.address() + view.bytes() as u64,
            len: view.len(),
            element: std::any::type_name::<T>(),
            kind: AccessKind::Read,
            by,
        }
    }

    /// A write of a view's elements.
    pub(crate) fn write<T: DeviceData>(view: &ViewMut<'_, T>, by: Caller) -> Self {
        Access {
            kind: AccessKind::Write,
            ..Access::read(&view.view(), by)
        }
    }

    /// Whether there are elements that have bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.end
    }

    /// Whether it is of all bytes of another access.
    pub(crate) fn covers(&self, other: &Access) -> bool {
        self.first <= other.first && other.end <= self.end
    }

    /// Whether both are of a byte.
    pub(crate) fn overlaps(&self, other: &Access) -> bool {
        self.first < other.end && other.first < self.end
    }

    pub(crate) fn writes(&self) -> bool {
        self.kind == AccessKind::Write
    }
}

/// Whether elements are read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
}

/// What uses elements.
#[derive(Clone, Copy)]
pub(crate) enum Caller {
    /// A kernel of this name.
    Kernel(&'static str),
    /// A call, in words.
    Call(&'static str),
}

impl Caller {
    pub(crate) const fn kernel(name: &'static str) -> Self {
        Caller::Kernel(name)
    }

    pub(crate) const fn call(name: &'static str) -> Self {
        Caller::Call(name)
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caller::Kernel(name) => write!(f, "kernel `{name}`"),
            Caller::Call(name) => f.write_str(name),
        }
    }
}
