//! Sums of columns: a pipeline over `cp.async` of 2, 3 or 4 stages.

use cutlet_device::collective::{CpAsyncPipeline, StageCount, StageIdx, Stages, TileRing};
use cutlet_device::cp_async::cp_async;
use cutlet_device::{Global, GlobalMut, ThreadIdx, Threads, instantiate, thread_idx};
use cutlet_layout_core::{L, NoSwizzle, RowMajor, Tensor, Tv};

/// Columns: one for each thread.
pub const COLUMNS: u32 = 128;

type Tile = L!((16, 128):(1@0, 1@1));
type Ring<S> = TileRing<f32, L!((16, 128):(128, 1)), NoSwizzle, S>;
/// A thread copies four neighbours of a row at a time.
type Copies = Tv<L!((32, 4):(4@1, 1@0)), L!((4, 4):(1@1, 4@0)), 4>;
/// A thread reads a column, whose elements four threads have copied.
type Columns = Tv<L!(128:1@1), L!(16:1@0)>;

/// The sums of [`COLUMNS`] columns over `rows` rows.
///
/// # Safety
/// `x` has the elements, and `sums` one for each column.
#[inline(always)]
unsafe fn column_sums<S: StageCount>(
    thread: ThreadIdx<Threads<COLUMNS>>,
    rows: i32,
    x: Global<f32>,
    sums: GlobalMut<f32>,
    ring: Ring<S>,
) {
    // SAFETY: as promised by the caller.
    let x = unsafe { Tensor::new(x, RowMajor::new([rows, COLUMNS as i32], COLUMNS.into())) };
    // SAFETY: threads use the tile as the pipeline says.
    let tile = |stage: StageIdx| unsafe { ring.stage(stage).tensor() };
    let load = |tile_row: u32, stage: StageIdx| {
        let from = x
            .local_tile::<Tile>((tile_row, 0u32))
            .partition::<Copies>(thread);
        from.each_access(&tile(stage).partition(thread), |from, to, count| {
            // SAFETY: so many elements exist. The stage is free.
            unsafe { cp_async::<_, 4>(to, from, count) }
        });
    };
    let mut pipeline = CpAsyncPipeline::<S>::new();
    for tile_row in 0..CpAsyncPipeline::<S>::AHEAD {
        load(tile_row, pipeline.acquire());
        pipeline.commit();
    }
    let mut sum = 0.0;
    for tile_row in 0..x.tiles::<Tile>()[0] {
        let full = pipeline.wait();
        load(tile_row + CpAsyncPipeline::<S>::AHEAD, pipeline.acquire());
        pipeline.commit();
        tile(full)
            .partition::<Columns>(thread)
            .for_each(|_, x| sum += x);
    }
    pipeline.drain();
    // SAFETY: as promised by the caller.
    unsafe { sums.store(thread.get().into(), sum) };
}

macro_rules! kernels {
    ($($name:ident: $stages:literal;)*) => {
        instantiate! {$(
            #[doc = concat!("Sums of columns, with ", $stages, " stages.")]
            #[kernel(threads = COLUMNS)]
            pub unsafe fn $name(
                rows: i32,
                x: Global<f32>,
                sums: GlobalMut<f32>,
                #[shared] ring: Ring<Stages<$stages>>,
            ) = column_sums::<Stages<$stages>>(thread_idx(), ..);
        )*}
    };
}
kernels! {
    column_sums_2: 2;
    column_sums_3: 3;
    column_sums_4: 4;
}
