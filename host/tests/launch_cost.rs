//! The host's time for a launch and for its preparation, printed with `--nocapture`. Needs a GPU.

use std::time::{Duration, Instant};

use cutlet_device::{
    Global, GlobalMut, Kernel, LaunchBounds, PtxFamily, PtxLibrary, PtxModule, PtxText,
};
use cutlet_host::{Backend, Device, Result, Stream};
use cutlet_not_run::not_run;

static PTX: PtxLibrary = PtxLibrary {
    families: &[PtxFamily {
        name: "launch_cost",
        modules: &[PtxModule {
            target: "sm_80",
            ptx: PtxText::Plain(include_str!("ptx/launch_sm_80.ptx")),
        }],
    }],
};

static SAXPY: Kernel<(u32, f32, Global<f32>, GlobalMut<f32>)> =
    // SAFETY: the entry in the PTX takes these arguments and blocks of 256 threads.
    unsafe {
        Kernel::new(
            "saxpy",
            "launch_cost",
            &["n", "a", "x", "y"],
            LaunchBounds::new(256, 0, 1, 0),
            None,
        )
    };

/// Calls between two waits: few enough that the driver's queue of launches is never full.
const CALLS: u32 = 100;
const BATCHES: usize = 51;
/// A launch takes about 2 µs of the driver and a tenth of that here. The rest is for slow and busy hosts.
const MOST: Duration = Duration::from_micros(20);

/// The median time of a call, printed.
fn cost(what: &str, stream: &Stream, mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut batch = || {
        let start = Instant::now();
        (0..CALLS).try_for_each(|_| call())?;
        let time = start.elapsed() / CALLS;
        stream.synchronize()?;
        Ok(time)
    };
    let mut times: Vec<Duration> = (0..BATCHES).map(|_| batch()).collect::<Result<_>>()?;
    times.sort_unstable();
    let median = times[BATCHES / 2];
    println!("{what}: {} ns", median.as_nanos());
    Ok(median)
}

#[test]
fn a_launch_costs_the_host_little() -> Result<()> {
    let device = Device::auto();
    if device.backend() == Backend::Cpu {
        not_run("there is no GPU");
        return Ok(());
    }
    let stream = device.stream()?;
    let (x, mut y) = (stream.zeroed::<f32>(256)?, stream.zeroed::<f32>(256)?);
    let saxpy = device.load(&PTX, &SAXPY)?;
    let launch = cost("launch of a loaded kernel", &stream, || {
        // SAFETY: the buffers have 256 elements, and `cost` waits for the launches.
        unsafe { stream.launch(&saxpy, 1, (256, 1.0, &x, &mut y)) }
    })?;
    cost("load of a loaded kernel", &stream, || {
        device.load(&PTX, &SAXPY).map(drop)
    })?;
    cost("resident words", &stream, || {
        let words = stream.resident("words", || Ok(Some(vec![0])));
        words.map(drop)
    })?;
    cost("scratch memory", &stream, || {
        stream.scratch::<u8>(1 << 20).map(drop)
    })?;
    cost("is the stream being captured", &stream, || {
        stream.is_capturing().map(drop)
    })?;
    assert!(launch < MOST, "a launch takes {launch:?}");
    Ok(())
}
