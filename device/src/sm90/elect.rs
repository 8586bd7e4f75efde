//! Electing one lane of a warp, in a way that the hardware knows to be one.

/// Whether the running lane is the one that its warp elects. All lanes of the warp call it; it is
/// true for exactly one of them, the same one every time.
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
