//! Stack overflow of a GPU thread: the guard page's signal ends the thread's coroutine instead of
//! the process.
//!
//! This works on Linux on x86-64 and AArch64. Elsewhere the guard page still stops the thread from
//! writing over other memory, but the operating system ends the process.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub(crate) use linux::watch_this_thread;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(crate) fn watch_this_thread() {}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod linux {
    use std::cell::OnceCell;
    use std::ffi::c_void;
    use std::mem;
    use std::ptr;
    use std::sync::OnceLock;

    use corosensei::trap::TrapHandlerRegs;
    use libc::{c_int, sigaction, siginfo_t, stack_t, ucontext_t};

    use crate::cluster::Outcome;
    use crate::context::current_or_null;

    /// The signals by which a guard page can answer, and who handled them before us.
    static PREVIOUS: [(c_int, OnceLock<sigaction>); 2] = [
        (libc::SIGSEGV, OnceLock::new()),
        (libc::SIGBUS, OnceLock::new()),
    ];

    /// Memory for the signal handler to run on, for OS threads that Rust did not start.
    struct SignalStack {
        memory: *mut c_void,
    }

    const SIGNAL_STACK_BYTES: usize = 64 * 1024;

    impl SignalStack {
        /// Gives the calling OS thread a signal stack if it has none.
        fn ensure() -> Option<Self> {
            // SAFETY: plain system calls on memory that is ours; every result is checked.
            unsafe {
                let mut present: stack_t = mem::zeroed();
                if libc::sigaltstack(ptr::null(), &mut present) != 0
                    || present.ss_flags & libc::SS_DISABLE == 0
                {
                    return None;
                }
                let memory = libc::mmap(
                    ptr::null_mut(),
                    SIGNAL_STACK_BYTES,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                );
                if memory == libc::MAP_FAILED {
                    return None;
                }
                let stack = stack_t {
                    ss_sp: memory,
                    ss_flags: 0,
                    ss_size: SIGNAL_STACK_BYTES,
                };
                libc::sigaltstack(&stack, ptr::null_mut());
                Some(Self { memory })
            }
        }
    }

    impl Drop for SignalStack {
        fn drop(&mut self) {
            // SAFETY: the thread is ending; its signal stack is switched off before the memory
            // goes.
            unsafe {
                let none = stack_t {
                    ss_sp: ptr::null_mut(),
                    ss_flags: libc::SS_DISABLE,
                    ss_size: SIGNAL_STACK_BYTES,
                };
                libc::sigaltstack(&none, ptr::null_mut());
                libc::munmap(self.memory, SIGNAL_STACK_BYTES);
            }
        }
    }

    /// Makes stack overflows of GPU threads that run on this OS thread end in an error.
    pub(crate) fn watch_this_thread() {
        thread_local! {
            static SIGNAL_STACK: OnceCell<Option<SignalStack>> = const { OnceCell::new() };
        }
        SIGNAL_STACK.with(|stack| {
            stack.get_or_init(SignalStack::ensure);
        });
        for (signal, previous) in &PREVIOUS {
            previous.get_or_init(|| {
                // SAFETY: the handler has the signature that SA_SIGINFO asks for, and is
                // async-signal-safe (see there). Zeroed `sigaction`s are valid.
                unsafe {
                    let mut ours: sigaction = mem::zeroed();
                    let mut theirs: sigaction = mem::zeroed();
                    ours.sa_sigaction = handle as *const () as usize;
                    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                    libc::sigemptyset(&mut ours.sa_mask);
                    libc::sigaction(*signal, &ours, &mut theirs);
                    theirs
                }
            });
        }
    }

    /// Ends the running GPU thread if the fault is in its stack's guard page, and leaves every
    /// other fault to whoever handled it before.
    ///
    /// Reads only thread-locals without destructors and memory that the interrupted OS thread does
    /// not write at that moment; takes no lock and allocates nothing.
    unsafe extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let thread = current_or_null();
        // SAFETY: the pointer is to a thread of a running cluster or null, see `context::current`.
        let trap = unsafe { thread.as_ref() }.and_then(|thread| thread.trap.get());
        // SAFETY: the kernel passes valid pointers to handlers with SA_SIGINFO.
        let (fault, registers) = unsafe {
            (
                (*info).si_addr() as usize,
                &mut *context.cast::<ucontext_t>(),
            )
        };
        if let Some(trap) = trap
            && trap.stack_ptr_in_bounds(fault)
            && trap.stack_ptr_in_bounds(stack_pointer(registers))
        {
            // All of a stack but its guard page can be written, so a fault inside its range is an
            // overflow. Rust probes a frame's pages as it enters a function: what is cut off here
            // is a function that has not begun. Its callers' locals are not dropped, and nothing
            // reads them again.
            //
            // SAFETY: the fault and the stack pointer are in the coroutine's stack, and the
            // registers are set as `setup_trap_handler` asks. The coroutine never runs again.
            let regs = unsafe { trap.setup_trap_handler(|| Outcome::StackOverflow) };
            enter(registers, regs);
            return;
        }
        // SAFETY: calls the handler that was installed before ours in the way it was installed, or
        // restores the default action, after which the faulting instruction is run again.
        unsafe { pass_on(signal, info, context) };
    }

    unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        let previous = PREVIOUS
            .iter()
            .find(|(of, _)| *of == signal)
            .and_then(|(_, p)| p.get());
        // SAFETY: as promised by the caller; zeroed `sigaction`s mean the default action.
        unsafe {
            match previous {
                Some(action)
                    if action.sa_sigaction != libc::SIG_DFL
                        && action.sa_sigaction != libc::SIG_IGN =>
                {
                    if action.sa_flags & libc::SA_SIGINFO != 0 {
                        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                            mem::transmute(action.sa_sigaction);
                        handler(signal, info, context);
                    } else {
                        let handler: extern "C" fn(c_int) = mem::transmute(action.sa_sigaction);
                        handler(signal);
                    }
                }
                _ => {
                    let default: sigaction = mem::zeroed();
                    libc::sigaction(signal, &default, ptr::null_mut());
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
    }

    #[cfg(target_arch = "x86_64")]
    fn enter(context: &mut ucontext_t, regs: TrapHandlerRegs) {
        let TrapHandlerRegs {
            rip,
            rsp,
            rbp,
            rdi,
            rsi,
        } = regs;
        let gregs = &mut context.uc_mcontext.gregs;
        for (register, value) in [
            (libc::REG_RIP, rip),
            (libc::REG_RSP, rsp),
            (libc::REG_RBP, rbp),
            (libc::REG_RDI, rdi),
            (libc::REG_RSI, rsi),
        ] {
            gregs[register as usize] = value as i64;
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn stack_pointer(context: &ucontext_t) -> usize {
        context.uc_mcontext.sp as usize
    }

    #[cfg(target_arch = "aarch64")]
    fn enter(context: &mut ucontext_t, regs: TrapHandlerRegs) {
        let TrapHandlerRegs {
            pc,
            sp,
            x0,
            x1,
            x29,
            lr,
        } = regs;
        let machine = &mut context.uc_mcontext;
        machine.pc = pc;
        machine.sp = sp;
        machine.regs[0] = x0;
        machine.regs[1] = x1;
        machine.regs[29] = x29;
        machine.regs[30] = lr;
    }
}
