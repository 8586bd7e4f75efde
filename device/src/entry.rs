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

/// What `#[kernel]` expands a `#[grid_constant]` parameter to on nvptx64: a reference to the
/// parameter of the entry itself. Taking the address of a Rust argument would make a copy of it.
#[macro_export]
#[doc(hidden)]
#[allow_internal_unstable(asm_experimental_arch)]
macro_rules! __grid_constant {
    ($symbol:literal, $position:expr) => {{
        let address: *const _;
        // SAFETY: the symbol is the entry's parameter, which holds a value of the argument's type
        // and lives as long as the kernel runs.
        unsafe {
            ::core::arch::asm!(
                // What is written for older targets lacks the second instruction.
                "// cutlet-isa 7.7",
                ::core::concat!("mov.b64 {address}, ", $symbol, "{position};"),
                "cvta.param.u64 {address}, {address};",
                address = out(reg64) address,
                position = const $position,
                options(pure, nomem, nostack)
            );
            &*address
        }
    }};
}
