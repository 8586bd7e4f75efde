//! PTX entries in crates that use no unstable feature themselves.
//!
//! The ABI of entries and module-level assembly are unstable on nvptx64. A macro of this crate may use them on behalf
//! of the crate that calls it. So a kernel crate is plain stable Rust, and can depend on another one.

/// The expansion of `#[kernel]` on nvptx64. It takes the parts of a function before and after its ABI, and the
/// arguments of the `global_asm!` with the kernel's launch bounds.
#[macro_export]
#[doc(hidden)]
#[allow_internal_unstable(abi_ptx, asm_experimental_arch)]
macro_rules! __ptx_entry {
    ({ $($head:tt)* } { $($function:tt)* } { $($bounds:tt)* }) => {
        $($head)* extern "ptx-kernel" $($function)*
        ::core::arch::global_asm!($($bounds)*);
    };
}

/// The expansion of a `#[grid_constant]` parameter on nvptx64: a reference to the parameter of the entry itself. The
/// address of a Rust argument would be that of a copy.
#[macro_export]
#[doc(hidden)]
#[allow_internal_unstable(asm_experimental_arch)]
macro_rules! __grid_constant {
    ($symbol:literal, $position:expr) => {{
        let address: *const _;
        // SAFETY: the symbol is the entry's parameter, which has a value of the argument's type and exists while the
        // kernel runs.
        unsafe {
            ::core::arch::asm!(
                // PTX versions for older targets lack the second instruction.
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
