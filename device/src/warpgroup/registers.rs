//! `setmaxnreg`: producer warpgroups release registers, and consumer warpgroups request them.

/// Decreases the number of registers of each thread of the warpgroup to `COUNT`: 24 to 256, a multiple of 8.
///
/// All warps of the warpgroup call it. The kernel's target is `sm_90a`, or a later one with the instruction, such as
/// `sm_100a`. The assembler ignores it unless the kernel's launch bounds have `threads` and `min_blocks`.
#[inline(always)]
pub fn decrease_registers<const COUNT: u32>() {
    const { check(COUNT) };
    imp::decrease::<COUNT>();
}

/// Increases the number of registers of each thread of the warpgroup to `COUNT`, once other warpgroups have released as
/// many. See [`decrease_registers`].
#[inline(always)]
pub fn increase_registers<const COUNT: u32>() {
    const { check(COUNT) };
    imp::increase::<COUNT>();
}

const fn check(count: u32) {
    assert!(
        count >= 24 && count <= 256 && count.is_multiple_of(8),
        "a thread can have 24 to 256 registers, in steps of 8"
    );
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn decrease<const COUNT: u32>() {
        // SAFETY: the assembler knows the instruction, and keeps no value in a released register.
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
