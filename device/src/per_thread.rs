//! The opposite of [`uniform`](crate::uniform): a value that each thread keeps for itself.

/// `value`, which is the same for all threads, in a register of each thread.
///
/// The assembler computes with a value that it knows to be uniform in the uniform datapath, whose operations have more than
/// twice the latency. That costs a chain of operations which everything else waits for.
#[inline(always)]
pub fn per_thread(value: u32) -> u32 {
    imp::per_thread(value)
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    /// Adds 0 in a way that the assembler does not see through: no block has 4096 threads.
    #[inline(always)]
    pub fn per_thread(value: u32) -> u32 {
        let own;
        // SAFETY: arithmetic alone.
        unsafe {
            asm!(
                "{{ .reg .b32 zero; mov.u32 zero, %tid.x; shr.u32 zero, zero, 12; add.u32 {own}, {value}, zero; }}",
                own = out(reg32) own, value = in(reg32) value, options(pure, nomem, nostack)
            );
        }
        own
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub fn per_thread(value: u32) -> u32 {
        value
    }
}
