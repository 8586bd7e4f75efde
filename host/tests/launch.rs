//! Loading, launching and capturing kernels, on the CPU and on a GPU if there is one.
//!
//! The CPU runs kernels in Rust. This crate compiles none for a GPU, so a GPU runs the same kernels
//! written in PTX, in files beside this one.

use cutlet_device::{Kernel, PtxFamily, PtxLibrary, PtxModule, PtxText};
use cutlet_host::{Backend, Buffer, Device, Error, LaunchConfig, Result, Stream};
use cutlet_not_run::not_run;

static PTX: PtxLibrary = PtxLibrary {
    families: &[PtxFamily {
        name: "launch::kernels",
        modules: &[
            PtxModule {
                target: "sm_80",
                ptx: PtxText::Plain(include_str!("ptx/launch_sm_80.ptx")),
            },
            PtxModule {
                target: "sm_90",
                ptx: PtxText::Plain(include_str!("ptx/launch_sm_90.ptx")),
            },
        ],
    }],
};

mod kernels {
    use cutlet_device::{
        Global, GlobalMut, atomic_add, atomic_load, block_idx, cluster_rank, grid_dependency_wait,
        kernel, sync_threads, thread_idx, wait_until,
    };

    /// `y = a·x + y`, one element per thread.
    ///
    /// # Safety
    /// `x` and `y` have `n` elements.
    #[kernel(threads = 256)]
    pub unsafe fn saxpy(n: u32, a: f32, x: Global<f32>, y: GlobalMut<f32>) {
        let i = block_idx().x.get() * 256 + thread_idx().get();
        if i < n {
            let i = i64::from(i);
            // SAFETY: `i` is below `n`, and no two threads have the same.
            unsafe { y.store(i, a * x.load(i) + y.load(i)) };
        }
    }

    /// Every block writes its rank in its cluster.
    ///
    /// # Safety
    /// `out` has an element for each block.
    #[kernel(threads = 1, cluster = 2)]
    pub unsafe fn ranks(out: GlobalMut<u32>) {
        let block = i64::from(block_idx().x.get());
        grid_dependency_wait();
        // SAFETY: `out` has an element for each block, and no two blocks have the same index.
        unsafe { out.store(block, cluster_rank().get()) };
    }

    /// Every block writes its rank in the cluster that the launch chooses.
    ///
    /// # Safety
    /// `out` has an element for each block.
    #[kernel(threads = 1, cluster = 0)]
    pub unsafe fn ranks_of_launch(out: GlobalMut<u32>) {
        let block = i64::from(block_idx().x.get());
        // SAFETY: `out` has an element for each block, and no two blocks have the same index.
        unsafe { out.store(block, cluster_rank().get()) };
    }

    /// Every block arrives, and waits for all others.
    ///
    /// # Safety
    /// `arrived` has one element, which is 0. All blocks run at the same time.
    #[kernel(threads = 1)]
    pub unsafe fn meet(blocks: u32, arrived: GlobalMut<u32>) {
        // SAFETY: `arrived` has the element.
        unsafe {
            atomic_add(arrived, 0, 1);
            wait_until(|| atomic_load(arrived, 0) == blocks);
        }
    }

    /// Its cluster size rarely divides a number of cores.
    #[kernel(threads = 1, cluster = 11)]
    pub fn elevens() {}

    /// Panics in one thread.
    #[kernel(threads = 64)]
    pub fn panics(at: u32) {
        assert!(thread_idx().get() != at, "thread {at} panics");
    }

    /// Half of the threads wait at a barrier for the other half, which exits.
    #[kernel(threads = 64)]
    pub fn waits() {
        if thread_idx().get() < 32 {
            sync_threads();
        }
    }
}

/// A family that is in no library.
mod elsewhere {
    #[cutlet_device::kernel(threads = 1)]
    pub fn nothing() {}
}

fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

fn ramp(stream: &Stream, n: u16) -> Result<Buffer<f32>> {
    let data: Vec<f32> = (0..n).map(f32::from).collect();
    stream.upload(&data)
}

#[test]
fn a_kernel_runs_with_typed_arguments() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let saxpy = device.load(&PTX, &kernels::saxpy)?;
        for n in [1u16, 255, 256, 257, 1000] {
            let (x, mut y) = (ramp(&stream, n)?, ramp(&stream, n)?);
            let n = u32::from(n);
            // SAFETY: both buffers have `n` elements and live past the download.
            unsafe { stream.launch(&saxpy, n.div_ceil(256), (n, 2.0, &x, &mut y))? };
            let expected: Vec<f32> = stream.download(&x)?.iter().map(|x| 3.0 * x).collect();
            assert_eq!(stream.download(&y)?, expected);
        }
        assert_eq!(saxpy.name(), "saxpy");
        assert_eq!(saxpy.bounds().threads(), 256);
        assert!(saxpy.resident_blocks()? > 0);
        let resources = saxpy.resources()?;
        assert_eq!(resources.is_some(), device.backend() == Backend::Gpu);
    }
    Ok(())
}

#[test]
fn views_are_arguments_too() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let saxpy = device.load(&PTX, &kernels::saxpy)?;
        let x = ramp(&stream, 8)?;
        let (mut y, mut z) = (stream.zeroed::<f32>(4)?, stream.zeroed::<f32>(1)?);
        let z = z.view_mut();
        let (middle, mut last) = (x.slice(2..4)?, y.slice_mut(2..)?);
        // SAFETY: both views have two elements and live past the download.
        unsafe {
            stream.launch(&saxpy, 1, (2, 1.0, middle, &mut last))?;
            stream.launch(&saxpy, (1, 1), (2, 10.0, &middle, last.reborrow()))?;
            stream.launch(&saxpy, [1, 1, 1], (1, 0.0, &z, &mut last.reborrow()))?;
        }
        assert_eq!(stream.download(&y)?, [0.0, 0.0, 22.0, 33.0]);
    }
    Ok(())
}

/// Whether kernels in clusters run on the device.
fn has_clusters(device: &Device) -> bool {
    let capability = device.compute_capability();
    capability.is_none_or(|capability| capability >= (9, 0))
}

#[test]
fn clusters_know_their_blocks() -> Result<()> {
    for device in devices() {
        if !has_clusters(&device) {
            let refused = device.load(&PTX, &kernels::ranks).unwrap_err();
            assert!(matches!(refused, Error::NoTarget { .. }), "{refused}");
            continue;
        }
        let stream = device.stream()?;
        let ranks = device.load(&PTX, &kernels::ranks)?;
        let mut out = stream.filled::<u32>(6, 0xff)?;
        let early = LaunchConfig {
            overlap_previous: true,
            ..LaunchConfig::from(6)
        };
        // SAFETY: `out` has an element for each block and lives past the download.
        unsafe { stream.launch(&ranks, early, (&mut out,))? };
        assert_eq!(stream.download(&out)?, [0, 1, 0, 1, 0, 1]);

        // SAFETY: refused before anything runs.
        let refused = unsafe { stream.launch(&ranks, 5, (&mut out,)) };
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("clusters are of 2 blocks"), "{message}");
    }
    Ok(())
}

#[test]
fn a_launch_chooses_the_cluster_of_a_kernel_that_has_none() -> Result<()> {
    for device in devices().into_iter().filter(has_clusters) {
        let stream = device.stream()?;
        let ranks = device.load(&PTX, &kernels::ranks_of_launch)?;
        let in_clusters_of = |cluster| LaunchConfig {
            cluster,
            ..LaunchConfig::from(16)
        };
        for cluster in [0, 1, 2, 4, 16] {
            let mut out = stream.filled::<u32>(16, 0xff)?;
            // SAFETY: `out` has an element for each block and lives past the download.
            unsafe { stream.launch(&ranks, in_clusters_of(cluster), (&mut out,))? };
            let expected: Vec<u32> = (0..16).map(|block| block % cluster.max(1)).collect();
            assert_eq!(stream.download(&out)?, expected, "{cluster}");
        }

        let mut out = stream.filled::<u32>(16, 0xff)?;
        let expected = [
            (3, "clusters are of 3 blocks"),
            (17, "launched in clusters of 17 blocks"),
        ];
        for (cluster, expected) in expected {
            // SAFETY: refused before anything runs.
            let refused = unsafe { stream.launch(&ranks, in_clusters_of(cluster), (&mut out,)) };
            let message = refused.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
    Ok(())
}

/// A launch whose blocks all run at the same time.
fn cooperative(blocks: u32) -> LaunchConfig {
    LaunchConfig {
        cooperative: true,
        ..LaunchConfig::from(blocks)
    }
}

#[test]
fn blocks_of_cooperative_launches_wait_for_each_other() -> Result<()> {
    for device in devices() {
        // If both launches had a part of the device, each would wait for ever for blocks that have no room.
        let streams = [device.stream()?, device.stream()?];
        let meet = device.load(&PTX, &kernels::meet)?;
        let blocks = meet.resident_blocks()?;
        let mut arrived = [streams[0].zeroed::<u32>(1)?, streams[1].zeroed::<u32>(1)?];
        for _ in 0..20 {
            for (stream, arrived) in streams.iter().zip(&mut arrived) {
                stream.fill_bytes(arrived.view_mut(), 0)?;
                // SAFETY: the counter is 0, and lives past the download.
                unsafe { stream.launch(&meet, cooperative(blocks), (blocks, arrived))? };
            }
        }
        for (stream, arrived) in streams.iter().zip(&arrived) {
            assert_eq!(stream.download(arrived)?, [blocks]);
        }
    }
    Ok(())
}

#[test]
fn cooperative_launches_are_captured() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let blocks = device.load(&PTX, &kernels::meet)?.resident_blocks()?;
        let mut arrived = stream.zeroed::<u32>(1)?;
        let graph = device.capture(|stream| {
            let meet = stream.device().load(&PTX, &kernels::meet)?;
            stream.fill_bytes(arrived.view_mut(), 0)?;
            // SAFETY: the counter is 0, and lives past the last download.
            unsafe { stream.launch(&meet, cooperative(blocks), (blocks, &mut arrived)) }
        })?;
        for _ in 0..2 {
            // SAFETY: as above.
            unsafe { graph.launch(&stream)? };
            assert_eq!(stream.download(&arrived)?, [blocks]);
        }
    }
    Ok(())
}

#[test]
fn a_cooperative_launch_needs_room_for_all_blocks() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let meet = device.load(&PTX, &kernels::meet)?;
        let blocks = meet.resident_blocks()?;
        let mut arrived = stream.zeroed::<u32>(1)?;
        let config = cooperative(blocks + 1);
        // SAFETY: refused before anything runs.
        let refused = unsafe { stream.launch(&meet, config, (blocks + 1, &mut arrived)) };
        let message = refused.unwrap_err().to_string();
        let expected = format!("at most {blocks} of its blocks at the same time");
        assert!(message.contains(&expected), "{message}");
        assert!(message.contains("`Function::resident_blocks`"), "{message}");
    }
    Ok(())
}

#[test]
fn resident_blocks_are_whole_clusters() -> Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let elevens = device.load(&PTX, &kernels::elevens)?;
    let blocks = elevens.resident_blocks()?;
    assert_eq!(blocks, (device.multiprocessors() / 11).max(1) * 11);
    // SAFETY: the kernel touches no memory.
    unsafe { stream.launch(&elevens, blocks, ()) }
}

#[test]
fn a_captured_graph_replays() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let x = ramp(&stream, 100)?;
        let mut y = stream.zeroed::<f32>(100)?;
        let mut copy = stream.zeroed::<f32>(100)?;
        let graph = device.capture(|stream| {
            let saxpy = stream.device().load(&PTX, &kernels::saxpy)?;
            // SAFETY: the buffers have 100 elements and live past the last download.
            unsafe { stream.launch(&saxpy, 1, (100, 1.0, &x, &mut y))? };
            stream.copy(&y, &mut copy)
        })?;
        assert_eq!(
            stream.download(&y)?,
            vec![0.0; 100],
            "a capture runs nothing"
        );
        for _ in 0..3 {
            // SAFETY: as above.
            unsafe { graph.launch(&stream)? };
        }
        let expected: Vec<f32> = stream.download(&x)?.iter().map(|x| 3.0 * x).collect();
        assert_eq!(stream.download(&y)?, expected);
        assert_eq!(stream.download(&copy)?, expected);
    }
    Ok(())
}

#[test]
fn launches_in_a_fork_are_captured() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let saxpy = device.load(&PTX, &kernels::saxpy)?;
        let x = ramp(&stream, 100)?;
        let mut y = stream.zeroed::<f32>(100)?;
        let mut copy = stream.zeroed::<f32>(100)?;
        let graph = device.capture(|stream| {
            stream.fill_bytes(&mut y, 0)?;
            let fork = stream.fork()?;
            assert!(fork.is_capturing()?);
            // SAFETY: the buffers have 100 elements and live past the last download.
            unsafe { fork.launch(&saxpy, 1, (100, 2.0, &x, &mut y))? };
            fork.join()?;
            stream.copy(&y, &mut copy)
        })?;
        assert_eq!(
            stream.download(&y)?,
            vec![0.0; 100],
            "a capture runs nothing"
        );
        let expected: Vec<f32> = stream.download(&x)?.iter().map(|x| 2.0 * x).collect();
        for _ in 0..2 {
            stream.fill_bytes(&mut copy, 0xff)?;
            // SAFETY: as above.
            unsafe { graph.launch(&stream)? };
            assert_eq!(stream.download(&copy)?, expected);
        }
    }
    Ok(())
}

#[test]
fn grids_outside_the_limits_are_errors() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let saxpy = device.load(&PTX, &kernels::saxpy)?;
        let (x, mut y) = (ramp(&stream, 1)?, ramp(&stream, 1)?);
        for (grid, expected) in [
            ([0, 1, 1], "there are no blocks along x"),
            ([1, 65_536, 1], "at most 65535 blocks along y"),
            ([1, 1, 65_536], "at most 65535 blocks along z"),
            ([1 << 31, 1, 1], "at most 2147483647 blocks along x"),
        ] {
            // SAFETY: refused before anything runs.
            let refused = unsafe { stream.launch(&saxpy, grid, (1, 1.0, &x, &mut y)) };
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("kernel `saxpy`"), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }
    Ok(())
}

#[test]
fn the_error_of_a_kernel_on_the_cpu_names_block_and_thread() -> Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let panics = device.load(&PTX, &kernels::panics)?;
    // SAFETY: the kernel touches no memory.
    let message = unsafe { stream.launch(&panics, 1, (33,)) }
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("`panics`, block (0, 0, 0), thread (33, 0, 0)"),
        "{message}"
    );
    assert!(message.contains("thread 33 panics"), "{message}");

    let waits = device.load(&PTX, &kernels::waits)?;
    // SAFETY: the kernel touches no memory.
    let message = unsafe { stream.launch(&waits, 1, ()) }
        .unwrap_err()
        .to_string();
    assert!(message.contains("kernel `waits`"), "{message}");

    // SAFETY: the kernel touches no memory.
    unsafe { stream.launch(&panics, 3, (64,)) }
}

#[test]
fn ptx_that_does_not_run_on_the_gpu_is_an_error() -> Result<()> {
    static BROKEN: PtxLibrary = PtxLibrary {
        families: &[PtxFamily {
            name: "launch::kernels",
            modules: &[PtxModule {
                target: "sm_80",
                ptx: PtxText::Plain(
                    ".version 7.0\n.target sm_80\n.address_size 64\n\
                      .visible .entry saxpy() { nonsense; ret; }\n",
                ),
            }],
        }],
    };
    static FUTURE: PtxLibrary = PtxLibrary {
        families: &[PtxFamily {
            name: "launch::kernels",
            modules: &[PtxModule {
                target: "sm_999",
                ptx: PtxText::Plain(".visible .entry saxpy() { ret; }\n"),
            }],
        }],
    };
    let device = Device::auto();
    if device.backend() == Backend::Cpu {
        not_run("there is no GPU, and the CPU loads no PTX");
        return Ok(());
    }
    let refused = device.load(&BROKEN, &kernels::saxpy).unwrap_err();
    assert!(
        matches!(&refused, Error::Jit { log, .. } if log.contains("nonsense")),
        "{refused}"
    );
    let refused = device.load(&FUTURE, &kernels::saxpy).unwrap_err();
    assert!(matches!(refused, Error::NoTarget { .. }), "{refused}");
    let refused = device.load(&PTX, &elsewhere::nothing).unwrap_err();
    assert!(
        refused.to_string().contains("only launch::kernels"),
        "{refused}"
    );
    Ok(())
}

#[test]
fn functions_stay_on_their_device() -> Result<()> {
    let auto = Device::auto();
    if auto.backend() == Backend::Cpu {
        not_run("there is no GPU, only one device");
        return Ok(());
    }
    let (gpu, cpu) = (auto.stream()?, Device::cpu().stream()?);
    let function = auto.load(&PTX, &kernels::saxpy)?;
    let (x, mut y) = (ramp(&cpu, 1)?, ramp(&cpu, 1)?);
    // SAFETY: refused before anything runs.
    let refused = unsafe { cpu.launch(&function, 1, (1, 1.0, &x, &mut y)) }.unwrap_err();
    let message = refused.to_string();
    assert!(
        message.starts_with("kernel `saxpy` is on gpu 0"),
        "{message}"
    );
    // SAFETY: as above.
    let refused = unsafe { gpu.launch(&function, 1, (1, 1.0, &x, &mut y)) }.unwrap_err();
    let message = refused.to_string();
    assert!(
        message.starts_with("argument 3 (`x`) of kernel `saxpy` is on cpu"),
        "{message}"
    );
    Ok(())
}

#[test]
fn kernels_are_families_by_their_module() {
    let family = |kernel: &Kernel<()>| kernel.family();
    assert_eq!(family(&kernels::waits), "launch::kernels");
    assert_eq!(family(&elsewhere::nothing), "launch::elsewhere");
}

#[test]
fn memory_of_another_stream_is_no_argument() -> Result<()> {
    for device in devices() {
        let (stream, other) = (device.stream()?, device.stream()?);
        let saxpy = device.load(&PTX, &kernels::saxpy)?;
        let (x, mut y) = (ramp(&stream, 4)?, stream.scratch::<f32>(4)?);
        // SAFETY: refused before anything runs.
        let refused = unsafe { other.launch(&saxpy, 1, (4, 1.0, &x, y.view_mut())) };
        let message = refused.unwrap_err().to_string();
        assert!(
            message.starts_with("argument 4 (`y`) of kernel `saxpy` is memory of another stream"),
            "{message}"
        );
    }
    Ok(())
}
