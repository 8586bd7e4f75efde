//! A PTX entry, for a crate that uses no unstable feature itself.
//!
//! The ABI of entries and module-level assembly are unstable on nvptx64. A macro of this crate may
//! use them on behalf of the crate that calls it, so that a kernel crate is plain stable Rust and
//! can depend on another one.

/// What `#[kernel]` expands to on nvptx64: the head and the rest of a function around its ABI, and
/// the arguments of the `global_asm!` that carries the kernel's launch bounds.
#[macro_export]
#[doc(hidden)]
#[allow_internal_unstable(abi_ptx, asm_experimental_arch)]
macro_rules! __ptx_entry {
    ({ $($head:tt)* } { $($function:tt)* } { $($bounds:tt)* }) => {
        $($head)* extern "ptx-kernel" $($function)*
        ::core::arch::global_asm!($($bounds)*);
    };
}
