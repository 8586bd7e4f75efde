//! `elect.sync`: the hardware elects one lane of a warp.

/// Whether the running lane is the elected one. All lanes of the warp call it. The result is true for exactly one lane,
/// which is the same every time. Hopper and newer GPUs have the instruction.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn elect_one() -> bool {
    imp::elect_one()
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn elect_one() -> bool {
        let elected: u32;
        // SAFETY: touches registers only.
        unsafe {
            asm!(
                "{{",
                ".reg .pred p;",
                "elect.sync _|p, 0xffffffff;",
                "selp.u32 {}, 1, 0, p;",
                "}}",
                out(reg32) elected,
                options(nostack)
            );
        }
        elected != 0
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    #[track_caller]
    pub fn elect_one() -> bool {
        cutlet_simt::warp_exchange("elect_one", 0).lane() == 0
    }
}
