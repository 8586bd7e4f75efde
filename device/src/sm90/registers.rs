//! Moving registers between warpgroups: producers give theirs up, consumers take them.

/// Lowers the registers that each thread of the warpgroup has to `COUNT`: 24 to 256, a multiple of
/// 8.
///
/// All warps of the warpgroup call it. The kernel needs launch bounds with `threads` and
/// `min_blocks`, or the compiler ignores it.
#[inline(always)]
pub fn decrease_registers<const COUNT: u32>() {
    const { check(COUNT) };
    imp::decrease::<COUNT>();
}

/// Raises the registers that each thread of the warpgroup has to `COUNT`, as soon as other
/// warpgroups have given up as many; see [`decrease_registers`].
#[inline(always)]
pub fn increase_registers<const COUNT: u32>() {
    const { check(COUNT) };
    imp::increase::<COUNT>();
}

const fn check(count: u32) {
    assert!(
        count >= 24 && count <= 256 && count.is_multiple_of(8),
        "a thread can be given 24 to 256 registers, in steps of 8"
    );
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn decrease<const COUNT: u32>() {
        // SAFETY: registers above the count are not in use: the compiler, which knows the
        // instruction, sees to that.
        unsafe { asm!("setmaxnreg.dec.sync.aligned.u32 {};", const COUNT, options(nostack)) };
    }

    #[inline(always)]
    pub fn increase<const COUNT: u32>() {
        // SAFETY: more registers change no value.
        unsafe { asm!("setmaxnreg.inc.sync.aligned.u32 {};", const COUNT, options(nostack)) };
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub fn decrease<const COUNT: u32>() {}
    pub fn increase<const COUNT: u32>() {}
}
