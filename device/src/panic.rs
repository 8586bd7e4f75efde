//! A panic of a kernel on the GPU: the kernel traps.
//!
//! Panics that the compiler can rule out leave no code. A panic that remains is a slow path to remove. On the CPU
//! backend, panics name block, thread and source line.

/// Ends the kernel. The launch then fails with "unspecified launch failure" at the next synchronisation.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the kernel.
    unsafe { core::arch::nvptx::trap() }
}
