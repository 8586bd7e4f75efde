//! The buffers that a launch is given, and pointers that say which of them they lead into.
//!
//! A pointer of a kernel is 64 bits wide on every device, and has no room for an extent. A host's address has 48 bits.
//! The other 16 bits hold a tag: the launch, and the number of a buffer among its arguments. Arithmetic keeps the tag,
//! so an access is checked against the view that was passed, not against whatever lies at its address.

use std::sync::atomic::{AtomicU16, Ordering};

use crate::live_memory::find;

/// Bits of an address. The tag is above them.
const ADDRESS_BITS: u32 = 48;
/// Bits of the tag that number a buffer.
const NUMBER_BITS: u32 = 4;
/// The most buffers of a launch, as many as a kernel has arguments.
const MOST: usize = 12;

/// One buffer of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    pub(crate) element_bytes: usize,
    /// Which argument of the kernel it is, counted from 1.
    pub(crate) argument: usize,
    /// Whether its memory was known to be alive when the launch was given it. It must then still be.
    pub(crate) is_known: bool,
    /// Whether the launch may write it.
    pub(crate) is_output: bool,
}

impl Buffer {
    const NONE: Self = Self {
        start: 0,
        bytes: 0,
        element_bytes: 1,
        argument: 0,
        is_known: false,
        is_output: false,
    };

    /// Bytes that are no argument.
    pub(crate) fn of_bytes(start: usize, bytes: usize) -> Self {
        Self {
            start,
            bytes,
            ..Self::NONE
        }
    }

    /// Whether these bytes are in the buffer.
    #[inline]
    pub(crate) fn has(&self, address: usize, bytes: usize) -> bool {
        let offset = address.wrapping_sub(self.start);
        offset <= self.bytes && bytes <= self.bytes - offset
    }
}

/// The buffers that a launch is given. Its threads can use no other global memory, except what
/// [`LiveMemory`](crate::LiveMemory) knows.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Number of the launch in its pointers' tags. It is not 0, and repeats after 4095 launches.
    launch: u16,
    count: usize,
    all: [Buffer; MOST],
    /// The names of the kernel's parameters, for messages.
    parameters: &'static [&'static str],
}

impl Buffers {
    /// No buffers.
    pub fn new() -> Self {
        Self::of_kernel(&[])
    }

    /// No buffers, of a kernel whose parameters have these names. Messages name the buffers by them.
    pub fn of_kernel(parameters: &'static [&'static str]) -> Self {
        Self {
            launch: 0,
            count: 0,
            all: [Buffer::NONE; MOST],
            parameters,
        }
    }

    /// The kernel's `argument`-th argument, counted from 1, as messages call it: "argument 3 (`x`)".
    pub fn name(&self, argument: usize) -> String {
        let parameter = argument.checked_sub(1).and_then(|i| self.parameters.get(i));
        match parameter.filter(|parameter| !parameter.is_empty()) {
            Some(parameter) => format!("argument {argument} (`{parameter}`)"),
            None => format!("argument {argument}"),
        }
    }

    /// Adds `bytes` bytes at `address` for reading, which are elements of `element_bytes` bytes and the kernel's
    /// `argument`-th argument, counted from 1. Returns the address that the kernel gets.
    pub fn add(
        &mut self,
        argument: usize,
        address: usize,
        bytes: usize,
        element_bytes: usize,
    ) -> usize {
        self.push(argument, (address, bytes), element_bytes, false)
    }

    /// [`add`](Self::add) of elements that the kernel may write.
    pub fn add_output(
        &mut self,
        argument: usize,
        address: usize,
        bytes: usize,
        element_bytes: usize,
    ) -> usize {
        self.push(argument, (address, bytes), element_bytes, true)
    }

    fn push(
        &mut self,
        argument: usize,
        (address, bytes): (usize, usize),
        element_bytes: usize,
        is_output: bool,
    ) -> usize {
        // A kernel has at most 12 arguments. The address of a host with wider addresses has no room for a tag: its
        // accesses are checked by address.
        if self.count == MOST || address >> ADDRESS_BITS != 0 {
            return address;
        }
        if self.launch == 0 {
            self.launch = next_launch();
        }
        self.all[self.count] = Buffer {
            start: address,
            bytes,
            element_bytes: element_bytes.max(1),
            argument,
            is_known: bytes > 0 && find(address, bytes).is_some(),
            is_output,
        };
        let tag = usize::from(self.launch) << NUMBER_BITS | self.count;
        self.count += 1;
        tag << ADDRESS_BITS | address
    }

    /// The buffer that a pointer leads into by its tag; `None` for a pointer without a tag of this launch.
    #[inline]
    pub(crate) fn of(&self, tagged: usize) -> Option<&Buffer> {
        let tag = tagged >> ADDRESS_BITS;
        let number = tag & ((1 << NUMBER_BITS) - 1);
        let is_own = tag >> NUMBER_BITS == usize::from(self.launch) && self.launch != 0;
        (is_own && number < self.count).then(|| &self.all[number])
    }

    /// The buffers, in the order of the arguments.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Buffer> {
        self.all[..self.count].iter()
    }

    /// Those that the launch may write.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Buffer> {
        self.all().filter(|buffer| buffer.is_output)
    }

    /// A buffer that has these bytes.
    pub(crate) fn with(&self, address: usize, bytes: usize) -> Option<&Buffer> {
        self.all().find(|buffer| buffer.has(address, bytes))
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}

fn next_launch() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const LAUNCHES: u16 = (1 << (usize::BITS - ADDRESS_BITS - NUMBER_BITS)) - 1;
    NEXT.fetch_add(1, Ordering::Relaxed) % LAUNCHES + 1
}

/// The address in a pointer of a kernel, without its tag.
#[inline]
pub fn untagged(address: usize) -> usize {
    address & ((1 << ADDRESS_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_into_its_own_buffer_wherever_it_points() {
        let mut buffers = Buffers::new();
        let first = buffers.add(1, 0x1000, 16, 4);
        let second = buffers.add(3, 0x1010, 16, 4);
        assert_eq!((untagged(first), untagged(second)), (0x1000, 0x1010));
        for (pointer, argument) in [(first, 1), (first + 16, 1), (second - 16, 3)] {
            assert_eq!(buffers.of(pointer).unwrap().argument, argument);
        }
        assert!(buffers.of(0x1000).is_none());
        let mut others = Buffers::new();
        let other = others.add(1, 0x1000, 16, 4);
        assert!(buffers.of(other).is_none());
        assert_eq!(buffers.with(0x101c, 4).unwrap().argument, 3);
        assert!(buffers.with(0x101c, 8).is_none());
    }

    #[test]
    fn an_argument_is_called_by_its_number_and_its_name_if_it_has_one() {
        let buffers = Buffers::of_kernel(&["n", "x", ""]);
        assert_eq!(buffers.name(2), "argument 2 (`x`)");
        assert_eq!(buffers.name(3), "argument 3");
        assert_eq!(buffers.name(4), "argument 4");
        assert_eq!(Buffers::new().name(1), "argument 1");
    }

    #[test]
    fn the_bytes_of_an_access_are_within_a_buffer_or_not() {
        let buffer = Buffer {
            start: 100,
            bytes: 8,
            element_bytes: 4,
            argument: 1,
            is_known: false,
            is_output: false,
        };
        assert!(buffer.has(100, 8) && buffer.has(104, 4) && buffer.has(108, 0));
        assert!(!buffer.has(104, 8) && !buffer.has(96, 4) && !buffer.has(usize::MAX, 4));
    }
}
