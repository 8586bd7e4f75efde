//! A launch into a GPU's stream, and copies, fills and the preparation of a launch on any device, allocate nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use cutlet_device::{Global, GlobalMut};
use cutlet_device::{Kernel, LaunchBounds, PtxFamily, PtxLibrary, PtxModule, PtxText};
use cutlet_host::{Backend, Device, Error, Event, Result};
use cutlet_not_run::not_run;

/// The system's allocator, with a count of this thread's allocations.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static PTX: PtxLibrary = PtxLibrary {
    families: &[PtxFamily {
        name: "no_allocation",
        modules: &[PtxModule {
            target: "sm_80",
            ptx: PtxText::Plain(include_str!("ptx/launch_sm_80.ptx")),
        }],
    }],
};

type Arguments = (u32, f32, Global<f32>, GlobalMut<f32>);

static SAXPY: Kernel<Arguments> =
    // SAFETY: the entry in the PTX takes these arguments and blocks of 256 threads.
    unsafe {
        Kernel::new(
            "saxpy",
            "no_allocation",
            &["n", "a", "x", "y"],
            LaunchBounds::new(256, 0, 1, 0),
            Some(|_| unreachable!("the CPU loads the kernel, and no test launches it there")),
        )
    };

#[test]
fn launches_allocate_nothing() -> Result<()> {
    let device = Device::auto();
    if device.backend() == Backend::Cpu {
        not_run("there is no GPU");
        return Ok(());
    }
    let stream = device.stream()?;
    let (x, mut y) = (stream.zeroed::<f32>(256)?, stream.zeroed::<f32>(256)?);
    let saxpy = device.load(&PTX, &SAXPY)?;
    let mut launch = || {
        // SAFETY: the buffers have 256 elements and live past `synchronize` below.
        unsafe { stream.launch(&saxpy, 1, (256, 1.0, &x, &mut y)) }
    };
    launch()?;
    drop(stream.scratch::<u8>(100)?);
    let before = ALLOCATIONS.get();
    for _ in 0..10 {
        launch()?;
        device.load(&PTX, &SAXPY)?;
        drop(stream.scratch::<u8>(100)?);
    }
    assert_eq!(ALLOCATIONS.get(), before);
    stream.synchronize()
}

#[test]
fn copies_and_fills_in_an_order_allocate_nothing() -> Result<()> {
    for device in [Device::cpu(), Device::auto()] {
        let (first, second) = (device.stream()?, device.stream()?);
        let (filled, copied) = (Event::new(&device)?, Event::new(&device)?);
        let (mut x, mut y) = (first.zeroed::<f32>(256)?, second.zeroed::<f32>(256)?);
        let mut work = || {
            first.fill_bytes(x.slice_mut(..100)?, 1)?;
            first.fill_bytes(x.slice_mut(100..)?, 2)?;
            filled.record(&first)?;
            second.wait(&filled)?;
            second.copy(&x, &mut y)?;
            copied.record(&second)?;
            first.wait(&copied)?;
            first.synchronize()
        };
        work()?;
        let before = ALLOCATIONS.get();
        (0..100).try_for_each(|_| work())?;
        assert_eq!(ALLOCATIONS.get(), before, "on {}", device.name());
    }
    Ok(())
}

#[test]
fn preparing_a_launch_again_allocates_nothing() -> Result<()> {
    for device in [Device::cpu(), Device::auto()] {
        let stream = device.stream()?;
        let prepare = || {
            let function = device.load(&PTX, &SAXPY)?;
            let words = stream.resident("words", || Ok(Some(vec![1])))?;
            Ok::<_, Error>((function.clone(), words, stream.is_capturing()?))
        };
        drop(prepare()?);
        let before = ALLOCATIONS.get();
        for _ in 0..10 {
            drop(prepare()?);
        }
        assert_eq!(ALLOCATIONS.get(), before, "on {}", device.name());
    }
    Ok(())
}
