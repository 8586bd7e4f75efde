//! A panic inside a kernel on the GPU: the kernel stops with a trap.
//!
//! Panics that the compiler can rule out leave nothing behind; a kernel that keeps one has a slow
//! path that is worth removing. On the CPU backend, panics name block, thread and source line.

/// Ends the kernel; the launch fails with "unspecified launch failure" at the next synchronisation.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the kernel; nothing runs after it.
    unsafe { core::arch::nvptx::trap() }
}
