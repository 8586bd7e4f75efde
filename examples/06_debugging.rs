//! The CPU backend as a debugger: a race, an access out of bounds and bank conflicts, each found by a launch.

use cutlet::{Device, Result};
use cutlet_device::tile::SharedTile;
use cutlet_device::{
    Global, GlobalMut, PtxLibrary, SharedArray, ThreadGroup, ThreadIdx, kernel, sync_threads,
    thread_idx,
};
use cutlet_host::cpu;
use cutlet_layout_core::{L, NoSwizzle, RowMajor, StaticSwizzle, Sw, Tensor, Tv};

/// Reverses `n` elements in steps of 64, through shared memory.
///
/// # Safety
/// `x` must have `n` elements.
#[kernel(threads = 64)]
pub unsafe fn reverse(
    n: i64,
    with_barrier: u32,
    x: GlobalMut<f32>,
    #[shared] tile: SharedArray<f32, 64>,
) {
    let i = i64::from(thread_idx().get());
    // SAFETY: the caller promises the elements.
    unsafe {
        tile.store(i, x.load(n - 64 + i));
        if with_barrier == 1 {
            sync_threads();
        }
        x.store(n - 64 + i, tile.load(63 - i));
    }
}

/// A tile in shared memory, with swizzle `W`.
type Tile<W> = SharedTile<f32, L!((32, 32):(32, 1)), W>;
type AlongRows = Tv<L!(32:1@1), L!(32:1@0)>;
type AlongColumns = Tv<L!(32:1@0), L!(32:1@1)>;

/// Transposes a 32 × 32 matrix through a tile in shared memory.
fn transpose<W: StaticSwizzle>(
    thread: ThreadIdx<impl ThreadGroup>,
    x: Global<f32>,
    y: GlobalMut<f32>,
    tile: Tile<W>,
) {
    let by_rows = RowMajor::new([32, 32], 32);
    // SAFETY: the callers promise that the matrices are there. A barrier orders the tile's writes and reads.
    let (x, y, tile) = unsafe {
        (
            Tensor::new(x, by_rows),
            Tensor::new(y, by_rows),
            tile.tensor(),
        )
    };
    let values = x.partition::<AlongRows>(thread).load(0.0);
    tile.partition::<AlongRows>(thread).store(&values);
    sync_threads();
    let values = tile.partition::<AlongColumns>(thread).load(0.0);
    y.partition::<AlongRows>(thread).store(&values);
}

/// Reads columns of the tile, whose elements are all in one bank.
///
/// # Safety
/// Both matrices must have 32 × 32 elements.
#[kernel(threads = 32)]
pub unsafe fn transpose_plain(x: Global<f32>, y: GlobalMut<f32>, #[shared] tile: Tile<NoSwizzle>) {
    transpose(thread_idx(), x, y, tile);
}

/// Xors the columns of the tile with their row's number.
///
/// # Safety
/// Both matrices must have 32 × 32 elements.
#[kernel(threads = 32)]
pub unsafe fn transpose_swizzled(
    x: Global<f32>,
    y: GlobalMut<f32>,
    #[shared] tile: Tile<Sw<5, 0, 5>>,
) {
    transpose(thread_idx(), x, y, tile);
}

/// The kernels run on the CPU only.
static PTX: PtxLibrary = PtxLibrary { families: &[] };

fn main() -> Result<()> {
    // On already in programs with debug assertions.
    cpu::check_races(true);
    let stream = Device::cpu().stream()?;
    let function = stream.device().load(&PTX, &reverse)?;
    let mut x = stream.upload(&[1.0f32; 64])?;

    // SAFETY: there are 64 elements.
    unsafe { stream.launch(&function, 1, (64i64, 1u32, &mut x))? };

    let mut numbers = stream.upload(&(0..64).map(|i| i as f32).collect::<Vec<_>>())?;
    // SAFETY: there are 64 elements. The CPU backend ends a kernel that has a race.
    let race = unsafe { stream.launch(&function, 1, (64i64, 0u32, &mut numbers)) }.unwrap_err();
    println!("without the barrier: {race}\n");
    assert!(race.to_string().contains("call sync_threads"));

    // SAFETY: the CPU backend ends a kernel that leaves its buffers.
    let outside = unsafe { stream.launch(&function, 1, (65i64, 1u32, &mut x)) }.unwrap_err();
    println!("with a wrong n: {outside}\n");
    assert!(
        outside
            .to_string()
            .contains("element 64 of argument 3 (`x`), which has 64 elements")
    );

    let (x, mut y) = (stream.zeroed::<f32>(1024)?, stream.zeroed::<f32>(1024)?);
    for (kernel, conflict) in [(&transpose_plain, 32), (&transpose_swizzled, 1)] {
        let transpose = stream.device().load(&PTX, kernel)?;
        // SAFETY: both matrices have 32 × 32 elements.
        let reports = cpu::report(|| unsafe { stream.launch(&transpose, 1, (&x, &mut y)) })?;
        println!("{}\n", reports[0]);
        let worst = reports[0].sites.iter().map(|site| site.worst_conflict);
        assert_eq!(worst.max(), Some(conflict));
    }
    Ok(())
}
