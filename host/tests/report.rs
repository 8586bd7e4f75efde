//! Reports of the CPU backend: known costs of known accesses.

use cutlet_device::tile::SharedTile;
use cutlet_device::{
    Global, GlobalMut, PtxLibrary, Threads, block_idx, kernel, sync_threads, thread_idx,
};
use cutlet_host::cpu::{LaunchReport, Memory, MemoryAccess, SiteReport, report};
use cutlet_host::{Device, Result};
use cutlet_layout_core::{L, NoSwizzle, RowMajor, StaticSwizzle, Sw, Tensor, Tv};

static PTX: PtxLibrary = PtxLibrary { families: &[] };

type Tile<W> = SharedTile<f32, L!((32, 32):(32, 1)), W>;
type AlongRows = Tv<L!(32:1@1), L!(32:1@0)>;
type AlongColumns = Tv<L!(32:1@0), L!(32:1@1)>;

/// Transposes a 32 × 32 matrix through a tile with a swizzle. A warp reads and writes along rows.
unsafe fn transpose<W: StaticSwizzle>(x: Global<f32>, y: GlobalMut<f32>, tile: Tile<W>) {
    // SAFETY: the buffers and the tile have 32 × 32 elements.
    let (x, y, tile) = unsafe {
        let by_rows = RowMajor::new([32, 32], 32);
        (
            Tensor::new(x, by_rows),
            Tensor::new(y, by_rows),
            tile.tensor(),
        )
    };
    let thread = thread_idx().of_block::<Threads<32>>();
    let values = x.partition::<AlongRows>(thread).load(0.0);
    tile.partition::<AlongRows>(thread).store(&values);
    sync_threads();
    let values = tile.partition::<AlongColumns>(thread).load(0.0);
    y.partition::<AlongRows>(thread).store(&values);
}

/// A transpose through rows of 32.
#[kernel(threads = 32)]
pub unsafe fn plain(x: Global<f32>, y: GlobalMut<f32>, #[shared] tile: Tile<NoSwizzle>) {
    // SAFETY: as promised by the caller.
    unsafe { transpose(x, y, tile) };
}

/// A transpose through rows of 32, in which columns are xored with their row's number.
#[kernel(threads = 32)]
pub unsafe fn swizzled(x: Global<f32>, y: GlobalMut<f32>, #[shared] tile: Tile<Sw<5, 0, 5>>) {
    // SAFETY: as promised by the caller.
    unsafe { transpose(x, y, tile) };
}

/// The report of a transpose, whose result is checked.
fn of_transpose(
    kernel: &cutlet_device::Kernel<(Global<f32>, GlobalMut<f32>)>,
) -> Result<LaunchReport> {
    let stream = Device::cpu().stream()?;
    let values: Vec<f32> = (0..1024).map(|i| i as f32).collect();
    let (x, mut y) = (stream.upload(&values)?, stream.zeroed::<f32>(1024)?);
    let function = stream.device().load(&PTX, kernel)?;
    // SAFETY: the buffers have 32 × 32 elements.
    let mut reports = report(|| unsafe { stream.launch(&function, 1, (&x, &mut y)) })?;
    let y = stream.download(&y)?;
    assert!((0..1024).all(|i| y[i] == values[i % 32 * 32 + i / 32]));
    assert_eq!(reports.len(), 1);
    Ok(reports.remove(0))
}

fn site(report: &LaunchReport, memory: Memory, access: MemoryAccess) -> &SiteReport {
    let mut sites = report.sites.iter();
    let is_it = |site: &&SiteReport| (site.memory, site.access) == (memory, access);
    sites.find(is_it).expect("the kernel has such an access")
}

#[test]
fn a_transpose_without_swizzle_conflicts_32_ways() -> Result<()> {
    let report = of_transpose(&plain)?;
    assert_eq!((report.barriers, report.bytes(Memory::Shared)), (1, 8192));
    let store = site(&report, Memory::Shared, MemoryAccess::Store);
    assert_eq!(
        (store.requests, store.bank_conflict(), store.worst_conflict),
        (32, 1.0, 1)
    );
    let load = site(&report, Memory::Shared, MemoryAccess::Load);
    assert_eq!(
        (load.requests, load.bank_conflict(), load.worst_conflict),
        (32, 32.0, 32)
    );
    let text = report.to_string();
    assert!(
        text.contains("32.0-way bank conflicts, at worst 32-way"),
        "{text}"
    );
    assert!(text.contains("host/tests/report.rs:"), "{text}");
    Ok(())
}

#[test]
fn a_swizzle_removes_the_conflicts() -> Result<()> {
    let report = of_transpose(&swizzled)?;
    for access in [MemoryAccess::Load, MemoryAccess::Store] {
        let shared = site(&report, Memory::Shared, access);
        assert_eq!((shared.bank_conflict(), shared.worst_conflict), (1.0, 1));
        let global = site(&report, Memory::Global, access);
        assert_eq!(
            (global.sectors_per_request(), global.sector_use()),
            (4.0, 1.0)
        );
    }
    Ok(())
}

/// Writes an element by each thread of the grid.
#[kernel(threads = 64)]
pub unsafe fn ones(first: i64, y: GlobalMut<f32>) {
    let i = i64::from(block_idx().x.get() * 64 + thread_idx().get());
    // SAFETY: the buffer has the elements.
    unsafe { y.store(first + i, 1.0) };
}

/// A grid that is one block short.
#[test]
fn elements_that_nothing_wrote_are_named() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let function = stream.device().load(&PTX, &ones)?;
    let mut y = stream.zeroed::<f32>(1000)?;
    let mut of = |blocks: u32, first: i64, elements: std::ops::Range<usize>| -> Result<_> {
        // SAFETY: the buffer has the elements.
        let reports = report(|| unsafe {
            stream.launch(&function, blocks, (first, y.slice_mut(elements)?))
        })?;
        Ok(reports[0].clone())
    };
    assert!(of(3, 0, 0..192)?.unwritten.is_empty());
    // The other elements of the buffer are no part of the view.
    assert!(of(3, 0, 100..292)?.unwritten.is_empty());
    let short = of(2, 5, 0..192)?;
    let [rest] = &short.unwritten[..] else {
        panic!("one buffer is not written completely: {short}")
    };
    assert_eq!(
        (rest.elements, rest.unwritten, rest.first.clone()),
        (192, 64, 0..5)
    );
    let text = "argument 2 (`y`): the launch wrote nothing to 64 of 192 elements, first to 0 .. 5";
    assert!(short.to_string().contains(text), "{short}");
    Ok(())
}

/// Reads an element, and writes none.
#[kernel(threads = 1)]
pub unsafe fn nothing(x: Global<f32>, y: GlobalMut<f32>) {
    // SAFETY: there is an element.
    unsafe { x.load(0) };
    let _ = y;
}

#[test]
fn an_output_that_nothing_writes_is_named_and_an_input_is_not() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let function = stream.device().load(&PTX, &nothing)?;
    let (x, mut y) = (stream.zeroed::<f32>(4)?, stream.zeroed::<f32>(8)?);
    // SAFETY: there is an element.
    let reports = report(|| unsafe { stream.launch(&function, 1, (&x, &mut y)) })?;
    let [rest] = &reports[0].unwritten[..] else {
        panic!("one buffer is not written: {}", reports[0])
    };
    assert_eq!(
        (rest.memory.as_str(), rest.unwritten),
        ("argument 2 (`y`)", 8)
    );
    assert_eq!(rest.first, 0..8);
    Ok(())
}

/// Reads every `stride`-th element. Odd lanes read twice.
#[kernel(threads = 64)]
pub unsafe fn strided(stride: i64, x: Global<f32>) {
    let i = i64::from(block_idx().x.get() * 64 + thread_idx().get());
    // SAFETY: there are 128 · `stride` elements.
    unsafe {
        x.load(i * stride); // all lanes
        if i % 2 == 1 {
            x.load(i * stride); // odd lanes
        }
    }
}

#[test]
fn strides_cost_sectors_and_branches_idle_lanes() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let function = stream.device().load(&PTX, &strided)?;
    for (stride, sectors) in [(1i64, 4.0), (2, 8.0), (8, 32.0)] {
        let x = stream.zeroed::<f32>(128 * stride as usize)?;
        // SAFETY: the buffer has as many elements.
        let reports = report(|| unsafe { stream.launch(&function, 2, (stride, &x)) })?;
        let mut sites: Vec<_> = reports[0].sites.iter().collect();
        sites.sort_by_key(|site| site.line.map(|line| line.line()));
        let [all, odd] = sites[..] else {
            panic!("two lines access memory: {}", reports[0])
        };
        assert_eq!((all.requests, all.active_lanes()), (4, 32.0));
        assert_eq!(all.sectors_per_request(), sectors);
        assert_eq!((odd.requests, odd.active_lanes()), (4, 16.0));
    }
    Ok(())
}
