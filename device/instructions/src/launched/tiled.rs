//! Tiled operations that read and write shared memory by the instructions of Hopper: products with A in registers,
//! accumulators stored by `stmatrix`, and tiles that TMA copies.

use cutlet_device::mbarrier::{Mbarrier, fence_mbarrier_init};
use cutlet_device::sm80::{Mma884F64, Mma16816};
use cutlet_device::sm90::{Accumulator, Wgmma, warpgroup_arrive};
use cutlet_device::tile::{KMajor, KMajorTile, MnMajor, MnMajorTile};
use cutlet_device::tiled::{
    LdMatrix, LdMatrixTransposed, StMatrix, StMatrixTransposed, TmaLoad, TmaMatrix, TmaStore,
    accumulators_as_registers_a, copy_tile, gemm_from_registers, gemm_shared, load_registers_a,
    store_c, wait_c,
};
use cutlet_device::tma::{TensorMap, tma_store_commit, tma_store_wait};
use cutlet_device::warpgroup::{
    ThreadOfWarpgroups, warpgroup_idx, warpgroup_sync, warpgroup_thread_idx,
};
use cutlet_device::{
    GlobalMut, elect_one, fence_async_shared, fp8::F8E4M3, kernel, sync_threads, thread_idx,
    warp_idx_sync,
};
use cutlet_layout_core::{L, RowMajor, Tensor, TiledMma, Width};
use half::{bf16, f16};

/// Two warpgroups below one another.
type Below = L!((2, 1):(1, 0));
/// 128 queries by 64 keys.
type Scores = TiledMma<Wgmma<64, bf16>, Below>;
/// 128 queries by 64 features, of values whose features are consecutive.
type Outputs = TiledMma<Wgmma<64, bf16, bf16, KMajor, MnMajor>, Below>;
type Queries = L!((128, 64):(1@0, 1@1));
type Keys = L!((64, 64):(1@0, 1@1));
/// Queries, and what is computed of them, in shared memory.
pub type StoredQueries = KMajorTile<bf16, 128, 64>;
/// Keys in shared memory.
pub type StoredKeys = KMajorTile<bf16, 64, 64>;
/// Values in shared memory: features are rows.
pub type StoredValues = MnMajorTile<bf16, 64, 64>;

/// `(Q·Kᵀ)·V` of up to 128 queries and 64 keys, without a softmax: the first product stays in registers. One warpgroup
/// loads, and two multiply.
///
/// # Safety
/// The maps are of Q, K and V by boxes of their tiles, and of the output by boxes of a half of the queries' tile.
#[kernel(threads = 384, arch = "sm_90a")]
pub unsafe fn two_products(
    #[grid_constant] map_q: &TensorMap,
    #[grid_constant] map_k: &TensorMap,
    #[grid_constant] map_v: &TensorMap,
    #[grid_constant] map_o: &TensorMap,
    #[shared] (queries, keys, values): (StoredQueries, StoredKeys, StoredValues),
    #[shared] (output, full): (StoredQueries, Mbarrier),
) {
    let (warp, warpgroup, thread) = (warp_idx_sync(), warpgroup_idx(), warpgroup_thread_idx());
    if warp.is_first() && elect_one() {
        // SAFETY: no thread uses the barrier yet.
        unsafe { full.init(1) };
        fence_mbarrier_init();
    }
    sync_threads();
    if warpgroup.is_first() {
        if warp.is_first() && elect_one() {
            let load = TmaLoad::with(full);
            full.arrive_expect_tx(StoredQueries::BYTES + StoredKeys::BYTES + StoredValues::BYTES);
            // SAFETY: the launcher promises the maps. The tiles are used after the wait.
            unsafe {
                copy_tile(
                    load,
                    TmaMatrix::new(map_q).local_tile::<Queries>((0, 0)),
                    queries,
                );
                copy_tile(load, TmaMatrix::new(map_k).local_tile::<Keys>((0, 0)), keys);
                copy_tile(
                    load,
                    TmaMatrix::new(map_v).local_tile::<Keys>((0, 0)),
                    values,
                );
            }
        }
        return;
    }
    let consumer = warpgroup.after(1);
    let among_both = ThreadOfWarpgroups::<2>::new(consumer, thread);
    let (first, second) = (
        Scores::thread_slice(among_both),
        Outputs::thread_slice(among_both),
    );
    full.wait(0);
    let mut sums = Accumulator::new_array::<1>();
    let group = warpgroup_arrive();
    // SAFETY: the tiles are full, and stay.
    unsafe { gemm_shared(&group, first, queries, keys, &mut sums, false) };
    group.commit();
    let scores = wait_c::<_, _, _, Queries, 1>(first, sums);

    let scores: [[_; 4]; 1] = accumulators_as_registers_a(first, &scores);
    let mut sums = Accumulator::new_array::<1>();
    let group = warpgroup_arrive();
    // SAFETY: as above. The registers live until the wait.
    unsafe { gemm_from_registers(&group, second, &scores, values, &mut sums, false) };
    group.commit();
    let sums = wait_c::<_, _, _, Queries, 1>(second, sums);

    // SAFETY: a warpgroup writes its own rows, and TMA reads them after the barrier.
    store_c(StMatrix, second, unsafe { output.tensor() }, &sums);
    fence_async_shared();
    warpgroup_sync(consumer);
    if thread.is_first() {
        // SAFETY: the launcher promises the map.
        unsafe {
            let to = TmaMatrix::new(map_o).local_tile::<Queries>((0, 0));
            copy_tile(TmaStore::part::<2>(consumer), output, to);
        }
        tma_store_commit();
        tma_store_wait::<0>();
    }
}

/// A product of one warpgroup whose A is loaded by TMA, and then to registers.
macro_rules! through_registers {
    ($($(#[$doc:meta])* $name:ident: $wgmma:ty, $atom:expr, A: $a:ty, B: $b:ty, [$n:literal, $k:literal],
        $steps:literal steps;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The maps are of A and B by boxes of their tiles. C has 128 rows.
        #[kernel(threads = 128, arch = "sm_90a")]
        pub unsafe fn $name(
            #[grid_constant] map_a: &TensorMap,
            #[grid_constant] map_b: &TensorMap,
            c: GlobalMut<f32>,
            #[shared] (a, b, full): ($a, $b, Mbarrier),
        ) {
            type Product = TiledMma<$wgmma, L!((1, 1):(0, 0))>;
            type TileC = L!((128, $n):(1@0, 1@1));
            if thread_idx().is_first() {
                // SAFETY: no thread uses the barrier yet.
                unsafe { full.init(1) };
                fence_mbarrier_init();
                full.arrive_expect_tx(<$a>::BYTES + <$b>::BYTES);
                let load = TmaLoad::with(full);
                // SAFETY: the launcher promises the maps.
                unsafe {
                    let from = TmaMatrix::new(map_a).local_tile::<L!((128, $k):(1@0, 1@1))>((0, 0));
                    copy_tile(load, from, a);
                    let from = TmaMatrix::new(map_b).local_tile::<L!(($n, $k):(1@0, 1@1))>((0, 0));
                    copy_tile(load, from, b);
                }
            }
            sync_threads();
            full.wait(0);
            let mma = Product::thread_slice(thread_idx());
            // SAFETY: the tile is full.
            let a: [[_; $steps]; 2] = load_registers_a($atom, mma, unsafe { a.tensor() });
            let mut sums = Accumulator::new_array::<2>();
            let group = warpgroup_arrive();
            // SAFETY: the tile is full. The registers live until the wait.
            unsafe { gemm_from_registers(&group, mma, &a, b, &mut sums, false) };
            group.commit();
            let sums = wait_c::<_, _, _, TileC, 2>(mma, sums);
            // SAFETY: the launcher promises C.
            let c = unsafe { Tensor::new(c, RowMajor::new([128, $n], $n)) };
            store_c(Width::<2>, mma, c.local_tile::<TileC>((0, 0)), &sums);
        }
    )*};
}
through_registers! {
    /// A of bf16, along k.
    registers_of_bf16: Wgmma<96, bf16>, LdMatrix,
        A: KMajorTile<bf16, 128, 64>, B: KMajorTile<bf16, 96, 64>, [96, 64], 4 steps;
    /// A of f16, along m.
    registers_of_columns: Wgmma<32, f16>, LdMatrixTransposed,
        A: MnMajorTile<f16, 128, 32>, B: KMajorTile<f16, 32, 32, 64>, [32, 32], 2 steps;
    /// A of 8-bit floats.
    registers_of_e4m3: Wgmma<64, F8E4M3>, LdMatrix,
        A: KMajorTile<F8E4M3, 128, 128>, B: KMajorTile<F8E4M3, 64, 128>, [64, 128], 4 steps;
    /// A of tf32.
    registers_of_tf32: Wgmma<8, f32>, LdMatrix,
        A: KMajorTile<f32, 128, 32>, B: KMajorTile<f32, 8, 32>, [8, 32], 4 steps;
}

/// Stores a number for each place of a tile by `stmatrix`, and copies what a load of each element reads to C.
macro_rules! stored {
    ($(
        $(#[$doc:meta])*
        $name:ident: $threads:literal, $product:ty, $atom:expr, $stored:ty, [$m:literal, $n:literal];
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// C has as many elements as the tile.
        #[kernel(threads = $threads, arch = "sm_90a")]
        pub unsafe fn $name(c: GlobalMut<bf16>, #[shared] tile: $stored) {
            type Tile = L!(($m, $n):(1@0, 1@1));
            let mma = <$product>::thread_slice(thread_idx());
            // SAFETY: the launcher promises C. The barrier orders the accesses to the tile.
            let (c, tile) = unsafe { (Tensor::new(c, RowMajor::new([$m, $n], $n)), tile.tensor()) };
            let c = mma.partition_c(c.local_tile::<Tile>((0, 0)));
            let values = mma.fragment_c::<Tile, f32>(0.0);
            let values = values.map(|v, _| {
                let [row, column] = c.coordinate(v);
                (row * 31 + column * 7) as f32
            });
            store_c($atom, mma, tile, &values);
            sync_threads();
            c.store(&mma.partition_c(tile).load(bf16::ZERO));
        }
    )*};
}
stored! {
    /// Four matrices at a time.
    stored_by_four: 128, TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>, StMatrix, KMajorTile<bf16, 64, 64>, [64, 64];
    /// Two matrices at a time.
    stored_by_two: 128, TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>, StMatrix, KMajorTile<bf16, 32, 16, 32>, [32, 16];
    /// A matrix at a time.
    stored_by_one: 64, TiledMma<Mma884F64, L!((2, 1):(1, 0))>, StMatrix, KMajorTile<bf16, 16, 8, 16>, [16, 8];
    /// Columns.
    stored_transposed: 128, TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>, StMatrixTransposed,
        MnMajorTile<bf16, 64, 64>, [64, 64];
    /// Accumulators of a warpgroup.
    stored_by_a_warpgroup: 128, TiledMma<Wgmma<128, bf16>, L!((1, 1):(0, 0))>, StMatrix,
        KMajorTile<bf16, 64, 128>, [64, 128];
}
