//! One call turns the search for races off. The choice is the whole process's, so this test has a program of its own.

use cutlet_device::{GlobalMut, PtxLibrary, kernel, thread_idx};
use cutlet_host::{Device, Result, cpu};

static PTX: PtxLibrary = PtxLibrary { families: &[] };

/// All threads write their number to one element.
#[kernel(threads = 64)]
pub unsafe fn all_to_one(y: GlobalMut<u32>) {
    // SAFETY: there is an element.
    unsafe { y.store(0, thread_idx().get()) };
}

#[test]
fn one_call_turns_the_search_off_and_on() -> Result<()> {
    if std::env::var_os("CUTLET_SIMT_RACES").is_none() {
        assert_eq!(cpu::checks_races(), cfg!(debug_assertions));
    }
    let stream = Device::cpu().stream()?;
    let function = stream.device().load(&PTX, &all_to_one)?;
    let mut y = stream.zeroed::<u32>(1)?;
    // SAFETY: there is an element.
    let mut launch = || unsafe { stream.launch(&function, 1, (&mut y,)) };
    for on in [true, false, true] {
        cpu::check_races(on);
        assert_eq!(launch().is_err(), on);
    }
    Ok(())
}
