//! Hopper's vocabulary on the CPU backend: barriers, TMA, `wgmma` and clusters against plain loops.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cutlet_device::hopper::*;
use cutlet_device::{
    DeviceData, GlobalMut, Shared, SharedMemory, atomic_add, atomic_count, atomic_load,
    atomic_store, block_idx, cluster_rank, sync_threads, sync_warp, thread_idx, wait_until,
    warp_idx,
};
use cutlet_layout_core::{EngineMut, Fragment, L, StaticLayout, StaticSwizzle, each};
use cutlet_simt::{LaunchSpec, SimtError, TensorMapModel};
use half::{bf16, f16};

const SHARED: u32 = 200 * 1024;

fn launch(
    threads: u32,
    blocks: u32,
    cluster: u32,
    body: impl Fn() + Sync,
) -> Result<(), SimtError> {
    cutlet_simt::launch(&spec(threads, blocks, cluster), &body)
}

fn spec(threads: u32, blocks: u32, cluster: u32) -> LaunchSpec<'static> {
    LaunchSpec {
        kernel: "test",
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster,
        shared_bytes: SHARED,
        overlap_previous: false,
    }
}

/// Of a warp that may begin while the kernel before it ends.
fn early() -> LaunchSpec<'static> {
    LaunchSpec {
        overlap_previous: true,
        ..spec(32, 1, 1)
    }
}

/// The message of a launch that must fail.
fn failure(result: Result<(), SimtError>) -> String {
    result.expect_err("the launch must fail").to_string()
}

/// An element that a test can make of a small integer.
trait Element: DeviceData + Sync {
    fn of(value: i32) -> Self;
    fn number(self) -> f32;
}

impl Element for bf16 {
    fn of(value: i32) -> Self {
        bf16::from_f32(value as f32)
    }
    fn number(self) -> f32 {
        self.to_f32()
    }
}

impl Element for f16 {
    fn of(value: i32) -> Self {
        f16::from_f32(value as f32)
    }
    fn number(self) -> f32 {
        self.to_f32()
    }
}

impl Element for f32 {
    fn of(value: i32) -> Self {
        value as f32
    }
    fn number(self) -> f32 {
        self
    }
}

impl Element for F8E4M3 {
    fn of(value: i32) -> Self {
        let bits = (0..=255).find(|&bits| Self::from_bits(bits).to_f32() == value as f32);
        Self::from_bits(bits.unwrap())
    }
    fn number(self) -> f32 {
        self.to_f32()
    }
}

impl Element for F8E5M2 {
    fn of(value: i32) -> Self {
        let bits = (0..=255).find(|&bits| Self::from_bits(bits).to_f32() == value as f32);
        Self::from_bits(bits.unwrap())
    }
    fn number(self) -> f32 {
        self.to_f32()
    }
}

/// Small integers without a pattern.
fn small(i: usize) -> i32 {
    let mixed = (i as u32).wrapping_mul(0x9E37_79B9) ^ 0x85EB_CA6B;
    (mixed.wrapping_mul(0xC2B2_AE35) >> 29) as i32 - 4
}

/// A matrix of `rows` × `columns` in memory, and the element type's numbers.
struct Matrix<T> {
    elements: Vec<T>,
    rows: usize,
    columns: usize,
}

impl<T: Element> Matrix<T> {
    fn new(rows: usize, columns: usize, seed: usize) -> Self {
        let elements = (0..rows * columns)
            .map(|i| T::of(small(i + 77 * seed)))
            .collect();
        Self {
            elements,
            rows,
            columns,
        }
    }

    fn at(&self, row: usize, column: usize) -> f32 {
        self.elements[row * self.columns + column].number()
    }

    /// A map of boxes of `tile`; the matrix is row-major.
    fn map(&self, tile: TmaBox) -> TensorMap {
        let model = TensorMapModel {
            address: self.elements.as_ptr().expose_provenance() as u64,
            element_bytes: size_of::<T>() as u32,
            rank: 2,
            extent: [self.columns as u64, self.rows as u64, 1],
            stride: [(self.columns * size_of::<T>()) as u64, 0],
            box_extent: [tile.extent[0], tile.extent[1], 1],
            span: tile.span,
        };
        TensorMap::from_words(model.encode())
    }
}

/// Writes element (mn, k) of a tile by its layout, all threads of the block together.
fn fill<T: Element, L: StaticLayout, W: StaticSwizzle>(
    tile: SharedTile<T, L, W>,
    value: impl Fn(usize, usize) -> i32,
) {
    let rows = L::LAYOUT.mode(0).size() as usize;
    for i in (thread_idx().get() as usize..L::SIZE).step_by(128) {
        let index = W::apply(L::LAYOUT.at(i as i64) as u32);
        // SAFETY: the layout stays within the tile, each thread has its own elements.
        unsafe {
            tile.start()
                .store(index as i64, T::of(value(i % rows, i / rows)))
        };
    }
}

/// One tile times one tile, both written element by element, against plain loops.
fn check_product<I, LA, WA, LB, WB>()
where
    I: WgmmaInstruction<A: Element, B: Element>,
    LA: StaticLayout,
    WA: StaticSwizzle,
    LB: StaticLayout,
    WB: StaticSwizzle,
{
    let k = LA::LAYOUT.mode(1).size() as usize;
    let a = |m: usize, k: usize| small(m * 131 + k * 7);
    let b = |n: usize, k: usize| small(n * 37 + k * 1013 + 5);
    let blocks = LA::LAYOUT.mode(0).size() as usize / 64;
    let wrong = AtomicU32::new(0);
    launch(128, 1, 1, || {
        let mut shared = SharedMemory::new();
        let tile_a = SharedTile::<I::A, LA, WA>::take(&mut shared);
        let tile_b = SharedTile::<I::B, LB, WB>::take(&mut shared);
        fill(tile_a, a);
        fill(tile_b, b);
        fence_async_shared();
        sync_threads();
        for block in 0..blocks {
            let operand_a = tile_a.operand_a::<I>().rows(block as u32);
            let operand_b = tile_b.operand_b::<I>();
            let mut sums = Accumulator::<I>::new();
            let batch = warpgroup_arrive();
            for step in 0..k / I::K {
                // SAFETY: the tiles are written, and nobody writes to them any more.
                unsafe {
                    batch.mma(
                        &mut sums,
                        operand_a.k_step(step),
                        operand_b.k_step(step),
                        step > 0,
                    );
                }
            }
            batch.commit();
            let sums = sums.wait();
            let thread = warpgroup_thread_idx().get() as i64;
            each::<I::Values>(|v| {
                let at = |direction| {
                    let start = WarpgroupThreads::LAYOUT.at_basis(thread, direction);
                    (start + I::Values::LAYOUT.at_basis(v as i64, direction)) as usize
                };
                let (m, n) = (64 * block + at(0), at(1));
                let expected: i32 = (0..k).map(|k| a(m, k) * b(n, k)).sum();
                if sums.get(v) != expected as f32 {
                    wrong.fetch_add(1, Relaxed);
                }
            });
        }
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

/// [`check_product`] for tiles of given majors, 128 × `K` and `N` × `K`.
macro_rules! product {
    ($a:ty, $b:ty, $ja:ty, $jb:ty, n $n:literal, k $k:literal, spans $sa:literal $sb:literal) => {
        check_product::<
            Wgmma<$n, $a, $b, $ja, $jb>,
            Blocks<$a, $ja, 128, $k, $sa>,
            Span<$a, $sa>,
            Blocks<$b, $jb, $n, $k, $sb>,
            Span<$b, $sb>,
        >()
    };
}

#[test]
fn products_of_every_swizzle_and_major_are_right() {
    product!(bf16, bf16, KMajor, KMajor, n 64, k 64, spans 128 128);
    product!(bf16, bf16, KMajor, KMajor, n 64, k 128, spans 128 64);
    product!(bf16, bf16, KMajor, KMajor, n 64, k 32, spans 32 64);
    product!(bf16, bf16, KMajor, KMajor, n 64, k 32, spans 16 16);
    product!(bf16, bf16, KMajor, MnMajor, n 128, k 64, spans 128 128);
    product!(bf16, bf16, MnMajor, KMajor, n 64, k 64, spans 128 64);
    product!(f16, f16, MnMajor, MnMajor, n 128, k 48, spans 64 128);
    product!(f16, f16, MnMajor, MnMajor, n 32, k 32, spans 32 32);
    product!(f16, f16, MnMajor, MnMajor, n 32, k 32, spans 16 16);
}

#[test]
fn products_of_every_width_are_right() {
    product!(bf16, bf16, KMajor, KMajor, n 8, k 64, spans 128 128);
    product!(bf16, bf16, KMajor, KMajor, n 24, k 64, spans 128 128);
    product!(bf16, bf16, KMajor, KMajor, n 160, k 64, spans 128 128);
    product!(bf16, bf16, KMajor, KMajor, n 256, k 64, spans 128 128);
    product!(bf16, bf16, KMajor, MnMajor, n 96, k 64, spans 128 64);
    product!(bf16, bf16, KMajor, MnMajor, n 256, k 16, spans 32 128);
}

#[test]
fn products_of_every_type_are_right() {
    product!(f32, f32, KMajor, KMajor, n 64, k 32, spans 128 128);
    product!(f32, f32, KMajor, KMajor, n 32, k 16, spans 64 32);
    product!(F8E4M3, F8E4M3, KMajor, KMajor, n 64, k 128, spans 128 128);
    product!(F8E4M3, F8E5M2, KMajor, KMajor, n 32, k 64, spans 64 32);
    product!(F8E5M2, F8E4M3, KMajor, KMajor, n 16, k 32, spans 16 32);
    product!(F8E5M2, F8E5M2, KMajor, KMajor, n 8, k 32, spans 32 16);
}

#[test]
fn f32_operands_are_rounded_towards_zero_to_tf32() {
    type Mma = Wgmma<8, f32>;
    type TileA = KMajorTile<f32, 64, 8, 32>;
    type TileB = KMajorTile<f32, 8, 8, 32>;
    let one_and_more = 1.0 + f32::EPSILON * 4096.0;
    let seen = AtomicU32::new(0);
    launch(128, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (a, b) = (TileA::take(&mut shared), TileB::take(&mut shared));
        fill(a, |_, _| 1);
        fill(b, |_, _| 0);
        sync_threads();
        if thread_idx().get() == 0 {
            // SAFETY: element (0, 0), which the swizzle leaves in place.
            unsafe { b.start().store(0, one_and_more) };
        }
        sync_threads();
        let mut sums = Accumulator::<Mma>::new();
        let batch = warpgroup_arrive();
        // SAFETY: the tiles are written, and nobody writes to them any more.
        unsafe {
            batch.mma(
                &mut sums,
                a.operand_a().k_step(0),
                b.operand_b().k_step(0),
                false,
            );
        }
        batch.commit();
        let sums = sums.wait();
        if thread_idx().get() == 0 {
            seen.store(sums.get(0).to_bits(), Relaxed);
        }
    })
    .unwrap();
    assert_eq!(f32::from_bits(seen.into_inner()), 1.0);
}

/// A tile of C, computed by a producer and two consumers over a pipeline, stored through shared
/// memory: what a GEMM kernel does.
fn check_gemm<JA: Major, JB: Major>(m: usize, n: usize, k: usize)
where
    Wgmma<64, bf16, bf16, JA, JB>: WgmmaInstruction<A = bf16, B = bf16, MajorA = JA, MajorB = JB>,
{
    type Tile<J, const MN: usize> = OperandTile<bf16, J, MN, 64>;
    type TileC = KMajorTile<bf16, 128, 64>;
    const STAGES: usize = 3;
    let extents = |major: bool, mn: usize| if major { (mn, k) } else { (k, mn) };
    let (rows_a, columns_a) = extents(JA::IS_K_MAJOR, m);
    let (rows_b, columns_b) = extents(JB::IS_K_MAJOR, n);
    let a = Matrix::<bf16>::new(rows_a, columns_a, 1);
    let b = Matrix::<bf16>::new(rows_b, columns_b, 2);
    let c = Matrix {
        elements: vec![bf16::NAN; m * n],
        rows: m,
        columns: n,
    };
    let map_a = a.map(Tile::<JA, 128>::tile_box(1));
    let map_b = b.map(Tile::<JB, 64>::tile_box(1));
    let map_c = c.map(TileC::tile_box(2));
    let (tiles_m, tiles_n, steps) = (m.div_ceil(128), n.div_ceil(64), k.div_ceil(64));
    launch(384, 2, 1, || {
        let mut shared = SharedMemory::new();
        let ring_a = Tile::<JA, 128>::take_ring::<STAGES>(&mut shared);
        let ring_b = Tile::<JB, 64>::take_ring::<STAGES>(&mut shared);
        let tile_c = TileC::take(&mut shared);
        let pipeline = Pipeline::<STAGES>::take(&mut shared);
        if thread_idx().get() == 0 {
            // SAFETY: nobody uses the barriers before the block's barrier.
            unsafe { pipeline.init(1, 2) };
        }
        sync_threads();
        let tiles = (cutlet_device::block_idx().x.get() as usize..tiles_m * tiles_n).step_by(2);
        let warpgroup = warpgroup_idx();
        if warpgroup.get() == 0 {
            decrease_registers::<24>();
            if thread_idx().get() == 0 {
                let mut producer = pipeline.producer();
                for tile in tiles {
                    let (row, column) =
                        ((tile % tiles_m * 128) as i32, (tile / tiles_m * 64) as i32);
                    for step in 0..steps as i32 {
                        let filling = producer.acquire((128 + 64) * 64 * 2);
                        let (stage, barrier) = (filling.stage(), filling.barrier());
                        let options = LoadOptions::DEFAULT.hint(CacheHint::EvictLast);
                        // SAFETY: the maps are of these tiles; the stage is empty.
                        unsafe {
                            ring_a
                                .stage(stage)
                                .load(&map_a, [row, 64 * step], barrier, options);
                            ring_b
                                .stage(stage)
                                .load(&map_b, [column, 64 * step], barrier, options);
                        }
                    }
                }
                producer.drain();
            }
            return;
        }
        increase_registers::<240>();
        let me = warpgroup.after(1).get();
        let thread = warpgroup_thread_idx();
        let mut consumer = pipeline.consumer();
        for tile in tiles {
            let (row, column) = ((tile % tiles_m * 128) as i32, (tile / tiles_m * 64) as i32);
            let mut sums = Accumulator::<Wgmma<64, bf16, bf16, JA, JB>>::new();
            let mut last = None;
            for step in 0..steps {
                let filled = consumer.wait();
                let a = ring_a.operand_a(filled.stage()).rows(me);
                let b = ring_b.operand_b(filled.stage());
                let batch = warpgroup_arrive();
                for i in 0..4 {
                    // SAFETY: the stage is full until it is released.
                    unsafe { batch.mma(&mut sums, a.k_step(i), b.k_step(i), step + i > 0) };
                }
                batch.commit();
                warpgroup_wait::<1>();
                if let Some(done) = last.replace(filled) {
                    consumer.release(done, thread);
                }
            }
            let sums = sums.wait();
            if let Some(done) = last {
                consumer.release(done, thread);
            }
            // The tile of C is free again once the store before has read it.
            if thread.get() == 0 {
                tma_store_wait_read::<0>();
            }
            cutlet_device::barrier_sync(1 + me, 128);
            // SAFETY: these rows of the tile are this warpgroup's.
            unsafe {
                store_accumulator::<Wgmma<64, bf16, bf16, JA, JB>, _, _, _>(
                    tile_c, me, 0, thread, &sums,
                )
            };
            fence_async_shared();
            cutlet_device::barrier_sync(1 + me, 128);
            if thread.get() == 0 {
                // SAFETY: the map is of this tile, which is written.
                unsafe { tile_c.store_part::<2, 2>(me, &map_c, [row, column]) };
                tma_store_commit();
            }
        }
        if thread.get() == 0 {
            tma_store_wait::<0>();
        }
    })
    .unwrap();
    let at = |matrix: &Matrix<bf16>, k_major: bool, mn: usize, k: usize| {
        if k_major {
            matrix.at(mn, k)
        } else {
            matrix.at(k, mn)
        }
    };
    for row in 0..m {
        for column in 0..n {
            let sum: f32 = (0..k)
                .map(|k| at(&a, JA::IS_K_MAJOR, row, k) * at(&b, JB::IS_K_MAJOR, column, k))
                .sum();
            let expected = bf16::from_f32(sum).to_f32();
            assert_eq!(c.at(row, column), expected, "({row}, {column})");
        }
    }
}

#[test]
fn a_pipelined_gemm_is_right_at_odd_sizes() {
    check_gemm::<KMajor, KMajor>(200, 104, 136);
    check_gemm::<KMajor, MnMajor>(136, 72, 72);
    check_gemm::<MnMajor, KMajor>(72, 136, 200);
    check_gemm::<MnMajor, MnMajor>(264, 64, 8);
}

/// Loads nine tiles through a ring of so many stages, two at a time, and compares what consumers find.
fn check_pairs<const STAGES: usize>() {
    type Tile = KMajorTile<f16, 64, 64>;
    const STEPS: i32 = 9;
    let matrix = Matrix::<f16>::new(64, 64 * STEPS as usize, 5);
    let map = matrix.map(Tile::tile_box(1));
    let wrong = AtomicU32::new(0);
    launch(256, 1, 1, || {
        let mut shared = SharedMemory::new();
        let ring = Tile::take_ring::<STAGES>(&mut shared);
        let pipeline = Pipeline::<STAGES>::take(&mut shared);
        if thread_idx().is_first() {
            // SAFETY: nobody uses the barriers before the block's barrier.
            unsafe { pipeline.init(1, 1) };
        }
        sync_threads();
        let thread = warpgroup_thread_idx();
        if warpgroup_idx().is_first() {
            if thread.get() == 0 {
                let mut producer = pipeline.producer();
                for step in 0..STEPS {
                    let filling = producer.acquire_in_pairs(Tile::BYTES);
                    let tile = ring.stage(filling.stage());
                    let (at, barrier) = ([0, 64 * step], filling.barrier());
                    // SAFETY: the map is of this tile; the stage is empty.
                    unsafe {
                        tile.load(&map, at, barrier, LoadOptions::DEFAULT);
                    }
                }
                producer.drain();
            }
            return;
        }
        let mut consumer = pipeline.consumer();
        for step in 0..STEPS {
            let filled = consumer.wait();
            // SAFETY: the tile is loaded. Its first row is not swizzled.
            let value = unsafe { ring.stage(filled.stage()).start().load(0) };
            if value.number() != matrix.at(0, 64 * step as usize) {
                wrong.fetch_add(1, Relaxed);
            }
            consumer.release(filled, thread);
        }
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn a_ring_filled_in_pairs_keeps_its_order() {
    check_pairs::<2>();
    check_pairs::<4>();
    check_pairs::<3>();
}

/// Two blocks load tiles of so many rows together, which both get.
fn check_loads_among<const ROWS: usize>() {
    type Tile<const ROWS: usize> = KMajorTile<f16, ROWS, 64>;
    let matrix = Matrix::<f16>::new(ROWS, 256, 3);
    let map = matrix.map(Tile::<ROWS>::multicast_box(2));
    let wrong = AtomicU32::new(0);
    launch(128, 4, 2, || {
        let mut shared = SharedMemory::new();
        let ring = Tile::<ROWS>::take_ring::<2>(&mut shared);
        let pipeline = Pipeline::<2, 2>::take(&mut shared);
        if thread_idx().get() == 0 {
            // SAFETY: nobody uses the barriers before the cluster's barrier.
            unsafe { pipeline.init(1, 1) };
        }
        cluster_sync();
        let thread = warpgroup_thread_idx();
        let (mut producer, mut consumer) = (pipeline.producer(), pipeline.consumer());
        for step in 0..4 {
            if thread.get() == 0 {
                let filling = producer.acquire(Tile::<ROWS>::BYTES);
                let options = LoadOptions::DEFAULT.multicast(Multicast::first(2));
                let tile = ring.stage(filling.stage());
                // SAFETY: the map is of what a block loads of this tile; the stage is empty in both blocks.
                unsafe {
                    tile.load_multicast::<2, 2>(
                        cluster_rank().get(),
                        step as u32,
                        &map,
                        [0, 64 * step],
                        filling.barrier(),
                        options,
                    );
                }
            }
            let filled = consumer.wait();
            let tile: Shared<f16> = ring.stage(filled.stage()).start();
            type L<const ROWS: usize> = Blocks<f16, KMajor, ROWS, 64, 128>;
            for i in (thread.get()..64 * ROWS as u32).step_by(128) {
                let index = Span::<f16, 128>::apply(L::<ROWS>::LAYOUT.at(i64::from(i)) as u32);
                // SAFETY: the tile is loaded.
                let value = unsafe { tile.load(i64::from(index)) };
                let (row, column) = (i as usize % ROWS, i as usize / ROWS + 64 * step as usize);
                if value.number() != matrix.at(row, column) {
                    wrong.fetch_add(1, Relaxed);
                }
            }
            sync_threads();
            consumer.release(filled, thread);
        }
        if thread.get() == 0 {
            producer.drain();
        }
        cluster_sync();
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn blocks_of_a_cluster_load_tiles_together() {
    check_loads_among::<64>();
    // Half of it is no whole number of groups of 8 rows.
    check_loads_among::<72>();
}

#[test]
fn blocks_of_a_cluster_reach_each_others_memory() {
    launch(32, 4, 4, || {
        let mut shared = SharedMemory::new();
        let mine: Shared<u32> = shared.take(32);
        let (rank, thread) = (cluster_rank().get(), thread_idx().get());
        let next = map_shared(mine.offset(i64::from(thread)), (rank + 1) % 4);
        // SAFETY: every thread writes one word of the next block, which is there until the barrier.
        unsafe {
            store_cluster(next, [100 * rank + thread]);
            cluster_arrive();
            cluster_wait();
            assert_eq!(mine.load(i64::from(thread)), (rank + 3) % 4 * 100 + thread);
            let [same] = load_cluster(next);
            assert_eq!(same, 100 * rank + thread);
        }
        cluster_sync();
    })
    .unwrap();
}

/// The seats that ten clusters of two claim in each of three launches, where block i is on
/// multiprocessor i.
fn seats_claimed(groups: &[u32], seats: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut words = SmAffinity::plan(groups, seats).unwrap();
    let before = words.clone();
    let at = SmAffinity::at(GlobalMut::from_ptr(words.as_mut_ptr()));
    let claimed = (0..3)
        .map(|_| {
            let claimed: Vec<AtomicU32> = (0..20).map(|_| AtomicU32::new(0)).collect();
            launch(32, 20, 2, || {
                let seat = AffinitySlot::take(&mut SharedMemory::new());
                let first = thread_idx().is_first();
                if first {
                    // SAFETY: nobody uses the barrier before the cluster has met.
                    unsafe { seat.init() };
                }
                cluster_sync();
                if first {
                    seat.expect();
                    if cluster_rank().is_first() {
                        // SAFETY: there are ten seats, launches run one after the other, and no block
                        // ends before it has asked.
                        unsafe { seat.tell::<2>(at.claim()) };
                    }
                }
                let seat = seat.which();
                claimed[block_idx().x.get() as usize].store(seat, Relaxed);
            })
            .unwrap();
            claimed.into_iter().map(AtomicU32::into_inner).collect()
        })
        .collect();
    assert_eq!(words, before, "each launch leaves the seats free");
    claimed
}

#[test]
fn clusters_claim_the_seats_of_their_multiprocessors() {
    // Multiprocessors 0 to 3 and 16 to 19 belong together, and the others.
    let groups: Vec<u32> = (0..20).map(|i| u32::from((4..16).contains(&i))).collect();
    for claimed in seats_claimed(&groups, &[vec![1, 3, 5, 7], vec![0, 2, 4, 6, 8, 9]]) {
        for (block, seat) in claimed.iter().enumerate() {
            assert_eq!(*seat, claimed[block ^ 1], "both blocks have the cluster's");
            let first = [1, 3, 5, 7].contains(seat);
            assert_eq!(first, groups[block] == 0, "block {block} has seat {seat}");
        }
        let mut each: Vec<u32> = claimed.iter().copied().step_by(2).collect();
        each.sort_unstable();
        assert_eq!(each, Vec::from_iter(0..10));
    }
}

#[test]
fn clusters_without_a_seat_of_their_own_claim_others() {
    for claimed in seats_claimed(&[0; 20], &[vec![4], (0..4).collect(), (5..10).collect()]) {
        let mut each: Vec<u32> = claimed.iter().copied().step_by(2).collect();
        each.sort_unstable();
        assert_eq!(each, Vec::from_iter(0..10));
    }
}

#[test]
fn impossible_seats_are_refused() {
    assert!(SmAffinity::plan(&[0; 257], &[vec![0]]).is_none());
    assert!(SmAffinity::plan(&[0, 1], &[vec![0]]).is_none());
    assert!(SmAffinity::plan(&[0], &vec![vec![0]; 17]).is_none());
    assert!(SmAffinity::plan(&[0], &[(0..257).collect()]).is_none());
}

/// A mailbox that all blocks of the cluster may use.
fn mailbox<L: StaticLayout>() -> DsmemBuffer<L> {
    let mailbox = DsmemBuffer::take(&mut SharedMemory::new());
    if thread_idx().get() == 0 {
        // SAFETY: nobody uses the barriers before the cluster's barrier.
        unsafe { mailbox.init() };
    }
    cluster_arrive_relaxed();
    cluster_wait();
    mailbox
}

#[test]
fn mailboxes_keep_what_is_sent_until_it_is_received() {
    type Values = L!((2, 4):(4, 1));
    let wrong = AtomicU32::new(0);
    launch(256, 4, 2, || {
        let mailbox = mailbox::<Values>();
        let (rank, thread) = (cluster_rank().get(), warpgroup_thread_idx());
        let number = |rank: u32, round: u32, v: usize| {
            (1000 * (100 * rank + round) + 8 * thread.get()) as f32 + v as f32
        };
        if warpgroup_idx().is_first() {
            // SAFETY: the blocks have met, and the other one receives what is sent.
            let mut sender = unsafe { mailbox.sender(1 - rank) };
            for round in 0..5 {
                sender.send(thread, &Fragment::from_fn(|v| number(rank, round, v)));
            }
            sender.drain();
        } else {
            let mut receiver = mailbox.receiver(1 - rank);
            for round in 0..5 {
                let found: Fragment<f32, Values> = receiver.receive(thread);
                each::<Values>(|v| {
                    let same = found.get(v) == number(1 - rank, round, v);
                    wrong.fetch_add(u32::from(!same), Relaxed);
                });
            }
        }
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

#[test]
fn two_blocks_exchange_sums() {
    type Values = L!(8:1);
    let wrong = AtomicU32::new(0);
    launch(256, 2, 2, || {
        let mailbox = mailbox::<Values>();
        let (rank, group) = (cluster_rank().get(), warpgroup_idx());
        // SAFETY: the two blocks have met, and both groups of each exchange as often.
        let mut exchange = unsafe { mailbox.exchange(group) };
        for round in 1..4 {
            let own = (10 * round + rank) as f32;
            let mut sums = Fragment::<f32, Values>::filled(own);
            let complete = exchange.add(warpgroup_thread_idx(), &mut sums);
            let expected = if complete {
                (20 * round + 1) as f32
            } else {
                own
            };
            let right = complete == (group.get() == rank) && sums.get(7) == expected;
            wrong.fetch_add(u32::from(!right), Relaxed);
        }
        exchange.drain();
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

/// Has the blocks of a launch leave these parts at each of several places, each of them last once, and checks that
/// the one which is has their sum.
fn check_fixup<Values: StaticLayout>(parts: &[f32], sum: f32) {
    const TILES: u32 = 3;
    const AT_TILE: u32 = 2;
    const PLACES: usize = (TILES * AT_TILE) as usize;
    let values = Fixup::<Values>::VALUES;
    let mut memory = vec![f32::NAN; PLACES * parts.len() * values];
    let mut words = vec![0u32; PLACES * ArrivalCounters::WARPS as usize];
    let (memory, words) = (
        GlobalMut::from_ptr(memory.as_mut_ptr()),
        GlobalMut::from_ptr(words.as_mut_ptr()),
    );
    let count = parts.len() as u32;
    for turned in 0..count {
        let whole = [const { AtomicU32::new(0) }; PLACES];
        launch(128, PLACES as u32 * count, 1, || {
            let block = block_idx().x.get();
            let (place, part) = (block / count, (block + turned) % count);
            let thread = warpgroup_thread_idx();
            let number = parts[part as usize] * (1 + place) as f32;
            let mut sums = Fragment::<f32, Values>::filled(number);
            let fixup = Fixup::new(memory, ArrivalCounters::at(words), AT_TILE, count);
            let place_of_tile = (place / AT_TILE, place % AT_TILE);
            // SAFETY: each block has a part of its own, for which there is memory.
            if unsafe { fixup.add(place_of_tile, part, thread, &mut sums) } {
                let expected = sum * (1 + place) as f32;
                each::<Values>(|v| assert_eq!(sums.get(v), expected));
                whole[place as usize].fetch_add(1, Relaxed);
            }
        })
        .unwrap();
        for threads in whole {
            assert_eq!(threads.into_inner(), 128, "one block's, by warps");
        }
    }
}

/// Parts of such different sizes that the sum says in which order they were added: 1 is lost beside 1e8.
#[test]
fn parts_are_added_in_their_order_whoever_is_last() {
    check_fixup::<L!(8:1)>(&[1e8, 1.0, -1e8, 3.0, 0.25], 3.25);
}

#[test]
fn more_parts_than_are_read_at_a_time_are_added() {
    let parts: Vec<f32> = (1..=19).map(|part| part as f32).collect();
    check_fixup::<L!(4:1)>(&parts, 190.0);
    check_fixup::<L!(8:1)>(&parts, 190.0);
    check_fixup::<L!(64:1)>(&parts, 190.0);
}

#[test]
fn a_sender_that_does_not_wait_to_be_received_is_reported() {
    type Values = L!(4:1);
    let message = failure(launch(128, 2, 2, || {
        let mailbox = mailbox::<Values>();
        if cluster_rank().get() == 0 {
            // SAFETY: what becomes of it is what is tested, on the CPU.
            let mut sender = unsafe { mailbox.sender(1) };
            sender.send(warpgroup_thread_idx(), &Fragment::filled(1.0));
        } else {
            let mut receiver = mailbox.receiver(0);
            let _: Fragment<f32, Values> = receiver.receive(warpgroup_thread_idx());
        }
    }));
    says(&message, &["block 0 of the cluster has ended"]);
}

#[test]
fn a_clusters_addresses_say_whose_memory_they_are_in() {
    let place = || SharedMemory::new().take::<u32>(1).address();
    launch(32, 2, 1, || assert_eq!(place(), 0)).unwrap();
    launch(32, 4, 2, || {
        let rank = cluster_rank().get();
        let own = Shared::<u32>::from_address(place());
        assert_eq!(map_shared(own, rank).address(), own.address());
        assert_ne!(map_shared(own, 1 - rank).address(), own.address());
        assert_ne!(own.address(), 0);
    })
    .unwrap();
}

/// What a product in a cluster says, with descriptors whose addresses are not cut to their 18 bits.
fn with_uncut_addresses<JA: Major, JB: Major>() -> String
where
    Wgmma<64, bf16, bf16, JA, JB>: WgmmaInstruction<A = bf16, B = bf16, MajorA = JA, MajorB = JB>,
{
    failure(launch(128, 2, 2, || {
        let mut shared = SharedMemory::new();
        let a = OperandTile::<bf16, JA, 64, 64>::take(&mut shared);
        let b = OperandTile::<bf16, JB, 64, 64>::take(&mut shared);
        let rank_bits = |address: u32| u64::from(address >> 18 << 14);
        let (to_a, to_b) = (
            a.operand_a::<Wgmma<64, bf16, bf16, JA, JB>>()
                .k_step(0)
                .bits()
                + rank_bits(a.start().address()),
            b.operand_b::<Wgmma<64, bf16, bf16, JA, JB>>()
                .k_step(0)
                .bits()
                + rank_bits(b.start().address()),
        );
        let mut sums = Accumulator::<Wgmma<64, bf16, bf16, JA, JB>>::new();
        let batch = warpgroup_arrive();
        // SAFETY: they are wrong, which is what the test is about: the model checks them.
        unsafe {
            let (a, b) = (
                MatrixDescriptor::from_bits(to_a),
                MatrixDescriptor::from_bits(to_b),
            );
            batch.mma(&mut sums, a, b, false);
        }
        batch.commit();
        sums.wait();
    }))
}

#[test]
fn a_descriptor_has_no_room_for_the_rank() {
    for message in [
        with_uncut_addresses::<KMajor, KMajor>(),
        with_uncut_addresses::<MnMajor, KMajor>(),
        with_uncut_addresses::<KMajor, MnMajor>(),
        with_uncut_addresses::<MnMajor, MnMajor>(),
    ] {
        says(&message, &["leading offset", "a block's rank"]);
    }
}

#[test]
fn one_lane_of_a_warp_is_elected() {
    let elected = AtomicU32::new(0);
    launch(96, 2, 1, || {
        if elect_one() {
            elected.fetch_add(1, Relaxed);
        }
        grid_dependency_wait();
        launch_dependents();
    })
    .unwrap();
    assert_eq!(elected.into_inner(), 6);
}

#[test]
fn a_launch_that_may_begin_early_waits_before_it_uses_global_memory() {
    let mut words = [1u32, 2];
    let words = GlobalMut::from_ptr(words.as_mut_ptr());
    let run = |spec: &LaunchSpec, waits: bool| {
        cutlet_simt::launch(spec, &|| {
            // The cache may be asked for it.
            // SAFETY: the word is there.
            unsafe { words.as_global().prefetch(0) };
            if waits {
                grid_dependency_wait();
            }
            if thread_idx().is_first() {
                // SAFETY: there are two words, and one thread uses them.
                unsafe { words.store(1, words.load(0)) };
            }
        })
    };
    run(&spec(32, 1, 1), false).unwrap();
    run(&early(), true).unwrap();
    says(
        &failure(run(&early(), false)),
        &["before grid_dependency_wait", "overlap_previous"],
    );
}

#[test]
fn a_launch_that_may_begin_early_waits_before_it_uses_atomics() {
    let mut word = [0u32];
    let word = GlobalMut::from_ptr(word.as_mut_ptr());
    let run = |waits: bool, operation: fn(GlobalMut<u32>)| {
        cutlet_simt::launch(&early(), &|| {
            if waits {
                grid_dependency_wait();
            }
            operation(word);
        })
    };
    // SAFETY: the word is there.
    let operations: [fn(GlobalMut<u32>); 4] = unsafe {
        [
            |word| {
                atomic_add(word, 0, 1);
            },
            |word| {
                atomic_count(word, 0, 1);
            },
            |word| {
                atomic_load(word, 0);
            },
            |word| atomic_store(word, 0, 1),
        ]
    };
    for operation in operations {
        run(true, operation).unwrap();
        says(
            &failure(run(false, operation)),
            &["before grid_dependency_wait"],
        );
    }
}

/// The kernels before do not use them.
#[test]
fn seats_are_claimed_before_the_wait() {
    let mut words = SmAffinity::plan(&[0], &[vec![7]]).unwrap();
    let seats = SmAffinity::at(GlobalMut::from_ptr(words.as_mut_ptr()));
    let claimed = AtomicU32::new(0);
    cutlet_simt::launch(&early(), &|| {
        if thread_idx().is_first() {
            // SAFETY: there is a seat for the launch's only block.
            claimed.store(unsafe { seats.claim() }, Relaxed);
        }
    })
    .unwrap();
    assert_eq!(claimed.into_inner(), 7);
}

#[test]
fn what_is_stored_is_added() {
    #[repr(align(8))]
    struct Aligned([f32; 3]);
    let mut sums = Aligned([1.0, 2.0, 3.0]);
    let memory = GlobalMut::from_ptr(sums.0.as_mut_ptr());
    let store = |spec: &LaunchSpec, to: ReduceAdd, first: i64| {
        cutlet_simt::launch(spec, &|| {
            if thread_idx().is_first() {
                // SAFETY: there are three elements, and one thread uses them.
                unsafe { to.store_vector(first, [0.5, 0.25]) };
            }
        })
    };
    store(&spec(32, 1, 1), ReduceAdd::to(memory), 0).unwrap();
    assert_eq!(sums.0, [1.5, 2.25, 3.0]);
    store(&spec(32, 1, 1), ReduceAdd::to_if(false, memory), 0).unwrap();
    assert_eq!(sums.0, [0.5, 0.25, 3.0]);

    let misplaced = failure(store(&spec(32, 1, 1), ReduceAdd::to(memory), 1));
    says(&misplaced, &["not a multiple of 8"]);
    let early = failure(store(&early(), ReduceAdd::to(memory), 0));
    says(&early, &["before grid_dependency_wait"]);
}

#[test]
fn boxes_that_may_still_be_written_are_not_loaded() {
    type Tile = KMajorTile<f32, 8, 8, 32>;
    let source = Matrix::<f32>::new(8, 8, 4);
    let map = source.map(Tile::tile_box(1));
    let result = cutlet_simt::launch(&early(), &|| {
        let mut shared = SharedMemory::new();
        let tile = Tile::take(&mut shared);
        let barrier = Mbarrier::take(&mut shared);
        if thread_idx().is_first() {
            // SAFETY: this thread alone uses barrier and tile; the map is of this tile.
            unsafe {
                barrier.init(1);
                barrier.arrive_expect_tx(Tile::BYTES);
                tile.load(&map, [0, 0], barrier, LoadOptions::DEFAULT);
            }
        }
    });
    says(&failure(result), &["before grid_dependency_wait"]);
}

#[test]
fn boxes_are_cut_at_the_edges_of_the_tensor() {
    type Tile = KMajorTile<f32, 8, 8, 32>;
    let source = Matrix::<f32>::new(10, 12, 4);
    let target = Matrix {
        elements: vec![-1.0f32; 10 * 12],
        rows: 10,
        columns: 12,
    };
    let (from, to) = (source.map(Tile::tile_box(1)), target.map(Tile::tile_box(1)));
    launch(32, 1, 1, || {
        let mut shared = SharedMemory::new();
        let tile = Tile::take(&mut shared);
        let barrier = Mbarrier::take(&mut shared);
        if thread_idx().get() == 0 {
            prefetch_tensor_map(&from);
            // SAFETY: this thread alone uses barrier and tile; the maps are of this tile.
            unsafe {
                barrier.init(1);
                barrier.arrive_expect_tx(Tile::BYTES);
                tile.load(&from, [-3, 6], barrier, LoadOptions::DEFAULT);
                barrier.wait(0);
                tile.store(&to, [5, -2]);
                tma_store_commit();
                tma_store_wait_read::<0>();
                barrier.invalidate();
            }
        }
    })
    .unwrap();
    for row in 0..10 {
        for column in 0..12 {
            let expected = match (row >= 5, column < 6) {
                (true, true) => {
                    let (r, c) = (row as i32 - 8, column + 8);
                    if r >= 0 && c < 12 {
                        source.at(r as usize, c)
                    } else {
                        0.0
                    }
                }
                _ => -1.0,
            };
            assert_eq!(target.at(row, column), expected, "({row}, {column})");
        }
    }
}

#[test]
fn stores_fill_lines_up_to_16_bytes() {
    type Tile = KMajorTile<f32, 8, 8, 32>;
    // Lines of 9 elements, 16 apart: the last unit of a line has 3 elements that are not the tensor's.
    let (rows, columns, ld) = (10, 9, 16);
    let target = Matrix {
        elements: vec![-1.0f32; rows * ld],
        rows,
        columns: ld,
    };
    let model = TensorMapModel {
        address: target.elements.as_ptr().expose_provenance() as u64,
        element_bytes: 4,
        rank: 2,
        extent: [columns as u64, rows as u64, 1],
        stride: [4 * ld as u64, 0],
        box_extent: [8, 8, 1],
        span: 32,
    };
    let map = TensorMap::from_words(model.encode());
    launch(32, 1, 1, || {
        let tile = Tile::take(&mut SharedMemory::new());
        if thread_idx().get() == 0 {
            for i in 0..64 {
                // SAFETY: this thread alone uses the tile.
                unsafe { tile.start().store(i, 5.0) };
            }
            fence_async_shared();
            for (row, column) in [(0, 0), (0, 8), (8, 0), (8, 8)] {
                // SAFETY: the map is of this tile, and nobody uses the target.
                unsafe { tile.store(&map, [row, column]) };
            }
            tma_store_commit();
            tma_store_wait::<0>();
        }
    })
    .unwrap();
    for row in 0..rows {
        for column in 0..ld {
            // Memory may end after the last line, where the model writes nothing.
            let end = if row == rows - 1 { columns } else { 12 };
            let expected = if column < end { 5.0 } else { -1.0 };
            assert_eq!(target.at(row, column), expected, "({row}, {column})");
        }
    }
}

#[test]
fn stmatrix_stores_rows_or_columns() {
    launch(32, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (rows, columns): (Shared<u16>, Shared<u16>) = (shared.take(256), shared.take(256));
        let lane = thread_idx().get();
        // Element (r, c) of matrix i is 64 i + 8 r + c.
        let register = |i: usize| {
            let first = 64 * i as u32 + lane / 4 * 8 + lane % 4 * 2;
            first | (first + 1) << 16
        };
        let registers: [u32; 4] = std::array::from_fn(register);
        let line = i64::from(8 * lane);
        // SAFETY: each lane has 16 bytes of its own; 256 elements are all that is used.
        unsafe {
            stmatrix(rows.offset(line), registers);
            stmatrix_transposed(columns.offset(line), registers);
            sync_threads();
            for i in 0..8 {
                let (matrix, r) = (lane as u16 / 8, lane as u16 % 8);
                assert_eq!(rows.load(line + i), 64 * matrix + 8 * r + i as u16);
                assert_eq!(columns.load(line + i), 64 * matrix + 8 * i as u16 + r);
            }
            sync_threads();
            // Two matrices more, the fifth and the sixth, take the place of the first two.
            stmatrix(rows.offset(line), [register(4), register(5)]);
            stmatrix_transposed(columns.offset(line), [register(4), register(5)]);
            sync_threads();
            for i in 0..8 {
                let (matrix, r) = (lane as u16 / 8, lane as u16 % 8);
                let now = if matrix < 2 { matrix + 4 } else { matrix };
                assert_eq!(rows.load(line + i), 64 * now + 8 * r + i as u16);
                assert_eq!(columns.load(line + i), 64 * now + 8 * i as u16 + r);
            }
        }
    })
    .unwrap();
}

#[test]
fn sums_are_stored_along_whatever_is_consecutive() {
    type Mma = Wgmma<64, bf16>;
    // All columns of the sums, in tiles of fewer, too.
    fn check<L: StaticLayout, W: StaticSwizzle>() {
        let columns = L::LAYOUT.mode(1).size();
        launch(128, 1, 1, || {
            let mut shared = SharedMemory::new();
            let tile = SharedTile::<f16, L, W>::take(&mut shared);
            let thread = warpgroup_thread_idx();
            let value = |m: i64, n: i64| small((m * 64 + n) as usize) as f32;
            let sums = cutlet_layout_core::Fragment::from_fn(|v| {
                type Values = <Mma as WgmmaInstruction>::Values;
                let at = |d| {
                    WarpgroupThreads::LAYOUT.at_basis(i64::from(thread.get()), d)
                        + Values::LAYOUT.at_basis(v as i64, d)
                };
                value(at(0), at(1))
            });
            for piece in 0..64 / columns {
                // SAFETY: nobody else uses the tile, and all have read the piece before.
                unsafe {
                    store_accumulator::<Mma, _, _, _>(tile, 1, piece as usize, thread, &sums)
                };
                sync_threads();
                for i in (i64::from(thread.get())..64 * columns).step_by(128) {
                    let (m, n) = (i % 64, i / 64);
                    let index = W::apply(L::LAYOUT.at(128 * n + 64 + m) as u32);
                    // SAFETY: all of the block's second half was written.
                    let stored = unsafe { tile.start().load(i64::from(index)) };
                    assert_eq!(stored.to_f32(), value(m, piece * columns + n), "({m}, {n})");
                }
                sync_threads();
            }
        })
        .unwrap();
    }
    check::<Blocks<f16, KMajor, 128, 64, 128>, Span<f16, 128>>();
    check::<Blocks<f16, KMajor, 128, 64, 64>, Span<f16, 64>>();
    check::<Blocks<f16, MnMajor, 128, 64, 128>, Span<f16, 128>>();
    check::<Blocks<f16, KMajor, 128, 16, 32>, Span<f16, 32>>();
    check::<Blocks<f16, MnMajor, 128, 16, 32>, Span<f16, 32>>();
    check::<Blocks<f16, MnMajor, 128, 8, 32>, Span<f16, 32>>();
}

#[test]
fn a_barrier_goes_through_phases() {
    launch(64, 1, 1, || {
        let barrier = Mbarrier::take(&mut SharedMemory::new());
        if thread_idx().get() == 0 {
            // SAFETY: nobody uses the barrier yet.
            unsafe { barrier.init(64) };
        }
        sync_threads();
        for phase in 0..5 {
            barrier.arrive();
            while !barrier.try_wait(phase % 2) {}
            barrier.wait(phase % 2);
        }
    })
    .unwrap();
}

/// What a block with one barrier for one arrival says when its single warp does `wrong`.
fn misuse(wrong: impl Fn(Mbarrier, Shared<u8>) + Sync) -> String {
    failure(launch(32, 2, 2, || {
        let mut shared = SharedMemory::new();
        let tile: Shared<u8> = shared.take_aligned::<u8, 1024>(4096);
        let barrier = Mbarrier::take(&mut shared);
        if thread_idx().get() == 0 {
            // SAFETY: nobody uses the barrier yet.
            unsafe { barrier.init(1) };
        }
        cluster_sync();
        if thread_idx().get() == 0 && cluster_rank().get() == 0 {
            wrong(barrier, tile);
        }
        cluster_sync();
    }))
}

fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn wrong_byte_counts_are_reported() {
    let matrix = Matrix::<u8Element>::new(64, 64, 5);
    let map = matrix.map(TmaBox {
        extent: [64, 16],
        span: 16,
    });
    let load = |barrier, tile| {
        // SAFETY: the map is of this matrix, and the tile has room for its box.
        unsafe { tma_load(&map, [0, 0], tile, barrier, LoadOptions::DEFAULT) };
    };
    // Announced too many bytes: somebody waits for the rest.
    says(
        &misuse(|barrier, tile| {
            barrier.arrive_expect_tx(1025);
            load(barrier, tile.cast::<u8>());
            barrier.wait(0);
        }),
        &[
            "deadlock",
            "block (0, 0, 0) thread (0, 0, 0)",
            "lacks 0 of 1 arrivals and 1 bytes",
        ],
    );
    // Announced too few.
    says(
        &misuse(|barrier, tile| {
            barrier.arrive_expect_tx(1000);
            load(barrier, tile.cast::<u8>());
        }),
        &["block (0, 0, 0), thread (0, 0, 0)", "24 bytes too many"],
    );
    // Announced none of the second box, which the next phase gets.
    says(
        &misuse(|barrier, tile| {
            barrier.arrive_expect_tx(1024);
            load(barrier, tile.cast::<u8>());
            load(barrier, tile.cast::<u8>().offset(1024));
        }),
        &[
            "the kernel ends while the mbarrier",
            "1024 bytes that no expect_tx announced",
        ],
    );
}

/// Bytes as elements of a test's matrix.
#[allow(non_camel_case_types)]
type u8Element = F8E5M2;

#[test]
fn wrong_phases_and_arrivals_are_reported() {
    says(
        &misuse(|barrier, _| barrier.wait(0)),
        &["deadlock", "the phase of parity 0", "lacks 1 of 1 arrivals"],
    );
    says(
        &misuse(|barrier, _| {
            barrier.arrive();
            barrier.wait(0);
            barrier.wait(1);
        }),
        &["deadlock", "the phase of parity 1", "lacks 1 of 1 arrivals"],
    );
    says(
        &misuse(|barrier, _| while !barrier.try_wait(0) {}),
        &["deadlock", "spins"],
    );
    says(
        &misuse(|barrier, _| {
            barrier.expect_tx(16);
            barrier.arrive();
            barrier.arrive();
        }),
        &["one arrival too many", "waits for 16 more bytes"],
    );
    says(
        &misuse(|_, tile| Mbarrier::from_shared(tile.cast()).arrive()),
        &["is not an mbarrier"],
    );
    says(
        &misuse(|barrier, _| barrier.arrive_remote(2)),
        &["there is no block 2 in a cluster of 2 blocks"],
    );
}

#[test]
fn a_block_that_has_ended_cannot_be_signalled() {
    let message = failure(launch(32, 2, 2, || {
        let barrier = Mbarrier::take(&mut SharedMemory::new());
        if thread_idx().get() == 0 {
            // SAFETY: nobody uses the barrier yet.
            unsafe { barrier.init(1) };
        }
        cluster_sync();
        if cluster_rank().get() == 1 {
            // Others run until they end before this comes to its turn again.
            for _ in 0..3 {
                sync_threads();
            }
            barrier.arrive_remote(0);
        }
    }));
    says(&message, &["block 0 of the cluster has ended"]);
}

#[test]
fn a_missing_thread_at_the_clusters_barrier_is_named() {
    let message = failure(launch(32, 2, 2, || {
        if thread_idx().get() == 5 {
            sync_threads();
        }
        cluster_sync();
    }));
    says(
        &message,
        &[
            "deadlock",
            "the cluster's barrier for 64 threads, of which 62 are there",
        ],
    );
    let message = failure(launch(32, 2, 2, || {
        cluster_arrive();
    }));
    says(&message, &["ended between cluster_arrive and cluster_wait"]);
}

#[test]
fn a_thread_cannot_leave_work_behind() {
    let matrix = Matrix::<f32>::new(8, 8, 6);
    type Tile = KMajorTile<f32, 8, 8, 32>;
    let map = matrix.map(Tile::tile_box(1));
    let message = failure(launch(32, 1, 1, || {
        let tile = Tile::take(&mut SharedMemory::new());
        if thread_idx().get() == 3 {
            // SAFETY: the map is of this tile.
            unsafe { tile.store(&map, [0, 0]) };
            tma_store_commit();
        }
    }));
    says(
        &message,
        &["thread (3, 0, 0)", "1 groups of TMA stores under way"],
    );
}

#[test]
fn threads_of_a_warpgroup_issue_the_same_instructions() {
    type Mma = Wgmma<8, bf16>;
    let run = |different: bool, all: bool| {
        launch(128, 1, 1, || {
            let mut shared = SharedMemory::new();
            let a = KMajorTile::<bf16, 64, 64>::take(&mut shared).operand_a::<Mma>();
            let b = KMajorTile::<bf16, 8, 64>::take(&mut shared).operand_b::<Mma>();
            let odd = thread_idx().get() == 77;
            if odd && !all {
                return;
            }
            let step = usize::from(odd && different);
            let mut sums = Accumulator::<Mma>::new();
            let batch = warpgroup_arrive();
            // SAFETY: nobody writes to the tiles.
            unsafe { batch.mma(&mut sums, a.k_step(step), b.k_step(0), false) };
            batch.commit();
            sums.wait();
        })
    };
    run(false, true).unwrap();
    says(
        &failure(run(true, true)),
        &["have issued different wgmma instructions"],
    );
    says(
        &failure(run(false, false)),
        &[
            "deadlock",
            "waits for wgmma with its warpgroup, of which 127 threads are there",
        ],
    );
}

#[test]
fn a_stage_released_too_early_gives_wrong_sums() {
    type Mma = Wgmma<8, bf16>;
    type TileA = KMajorTile<bf16, 64, 16, 32>;
    type TileB = KMajorTile<bf16, 8, 16, 32>;
    let sum = AtomicU32::new(0);
    launch(128, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (a, b) = (TileA::take(&mut shared), TileB::take(&mut shared));
        fill(a, |_, _| 1);
        fill(b, |_, _| 1);
        sync_threads();
        let mut sums = Accumulator::<Mma>::new();
        let batch = warpgroup_arrive();
        // SAFETY: it is not kept here, which is what the test is about.
        unsafe {
            batch.mma(
                &mut sums,
                a.operand_a().k_step(0),
                b.operand_b().k_step(0),
                false,
            );
        }
        batch.commit();
        fill(a, |_, _| 3);
        let sums = sums.wait();
        if thread_idx().get() == 0 {
            sum.store(sums.get(0).to_bits(), Relaxed);
        }
    })
    .unwrap();
    assert_ne!(f32::from_bits(sum.into_inner()), 16.0);
}

/// What a block of 64 threads says, of which the first loads 1024 bytes to `tile`, which begins at address 0, in
/// phase 0 of the first barrier, and all then do `what`.
fn loaded(what: impl Fn(Shared<f32>, [Mbarrier; 2]) + Sync) -> Result<(), SimtError> {
    let matrix = Matrix::<f32>::new(16, 16, 7);
    let map = matrix.map(TmaBox {
        extent: [16, 16],
        span: 16,
    });
    launch(64, 1, 1, || {
        let mut shared = SharedMemory::new();
        let tile: Shared<f32> = shared.take_aligned::<f32, 1024>(256);
        let barriers = [(); 2].map(|()| Mbarrier::take(&mut shared));
        if thread_idx().is_first() {
            // SAFETY: nobody uses the barriers yet, and the map has the tile's box.
            unsafe {
                for barrier in barriers {
                    barrier.init(1);
                }
                barriers[0].arrive_expect_tx(1024);
                tma_load(&map, [0, 0], tile, barriers[0], LoadOptions::DEFAULT);
            }
        }
        sync_threads();
        what(tile, barriers);
    })
}

/// Reads the first element of a tile.
fn first(tile: Shared<f32>) -> f32 {
    // SAFETY: shared memory has a value from the start.
    unsafe { tile.load(0) }
}

const TOO_EARLY: &[&str] = &[
    "shared memory at address 0",
    "too early",
    "count in phase 0 of the mbarrier at shared address 1024",
    "has not waited for the end of that phase (parity 0)",
];

#[test]
fn what_was_not_waited_for_cannot_be_used() {
    let fails = |parts: &[&str], what: &(dyn Fn(Shared<f32>, [Mbarrier; 2]) + Sync)| {
        let message = failure(loaded(what));
        says(&message, TOO_EARLY);
        says(&message, parts);
    };
    // Its phase has long ended; this thread does not know.
    fails(&["thread (33, 0, 0)", "is used"], &|tile, _| {
        if thread_idx().get() == 33 {
            first(tile);
        }
    });
    fails(&["thread (5, 0, 0)", "is used"], &|tile, _| {
        if thread_idx().get() == 5 {
            // SAFETY: it is not kept here, which is what the test is about.
            unsafe { tile.store(0, 1.0) };
        }
    });
    // The phase before the first has ended for whoever asks for it, which is no news.
    fails(&["is used"], &|tile, barriers| {
        barriers[1].wait(1);
        first(tile);
    });
    let target = Matrix::<f32>::new(16, 16, 8);
    let map = target.map(TmaBox {
        extent: [16, 16],
        span: 16,
    });
    fails(&["is read by a TMA store"], &|tile, barriers| {
        // SAFETY: the map has the tile's box.
        unsafe { tma_store(&map, [0, 0], tile) };
        tma_store_commit();
        // Too late.
        barriers[0].wait(0);
        tma_store_wait_read::<0>();
    });
    fails(&["is overwritten"], &|tile, barriers| {
        if thread_idx().get() == 33 {
            barriers[1].arrive_expect_tx(1024);
            // SAFETY: the map has the tile's box.
            unsafe { tma_load(&map, [0, 0], tile, barriers[1], LoadOptions::DEFAULT) };
        }
    });
}

#[test]
fn who_waited_tells_others_when_they_meet() {
    let value = Matrix::<f32>::new(16, 16, 7).at(0, 0);
    let check = |tile| assert_eq!(first(tile), value);
    loaded(|tile, barriers| {
        barriers[0].wait(0);
        check(tile);
    })
    .unwrap();
    loaded(|tile, barriers| {
        while !barriers[0].try_wait(0) {}
        check(tile);
    })
    .unwrap();
    // One for its block.
    loaded(|tile, barriers| {
        if thread_idx().get() == 33 {
            barriers[0].wait(0);
        }
        sync_threads();
        check(tile);
    })
    .unwrap();
    // One for its warp, and for no other.
    let for_warp = |all: bool| {
        loaded(|tile, barriers| {
            if thread_idx().get() == 33 {
                barriers[0].wait(0);
            }
            sync_warp();
            if all || warp_idx().get() == 1 {
                check(tile);
            }
        })
    };
    for_warp(false).unwrap();
    says(&failure(for_warp(true)), TOO_EARLY);
    // From one to another by a barrier, ...
    loaded(|tile, barriers| match thread_idx().get() {
        33 => {
            barriers[0].wait(0);
            barriers[1].arrive();
        }
        34 => {
            barriers[1].wait(0);
            check(tile);
        }
        _ => {}
    })
    .unwrap();
    // ... or by a flag.
    let mut flag = 0u32;
    let flag = GlobalMut::from_ptr(&raw mut flag)
        .as_ptr()
        .expose_provenance();
    let flag = || GlobalMut::<u32>::from_ptr(std::ptr::with_exposed_provenance_mut(flag));
    // SAFETY: the flag is there.
    loaded(|tile, barriers| unsafe {
        match thread_idx().get() {
            33 => {
                barriers[0].wait(0);
                atomic_store(flag(), 0, 1);
            }
            34 => {
                wait_until(|| atomic_load(flag(), 0) == 1);
                check(tile);
            }
            _ => {}
        }
    })
    .unwrap();
}

#[test]
fn a_barrier_can_be_initialised_again() {
    let matrix = Matrix::<f32>::new(16, 16, 7);
    let map = matrix.map(TmaBox {
        extent: [16, 16],
        span: 16,
    });
    let run = |waits: u32| {
        launch(32, 1, 1, || {
            let mut shared = SharedMemory::new();
            let tile: Shared<f32> = shared.take_aligned::<f32, 1024>(256);
            let barrier = Mbarrier::take(&mut shared);
            for life in 0..3 {
                if thread_idx().is_first() {
                    // SAFETY: nobody uses the barrier, and the map has the tile's box.
                    unsafe {
                        barrier.init(1);
                        barrier.arrive_expect_tx(1024);
                        tma_load(&map, [0, 0], tile, barrier, LoadOptions::DEFAULT);
                    }
                }
                sync_threads();
                if life < waits {
                    barrier.wait(0);
                }
                assert_eq!(first(tile), matrix.at(0, 0));
                sync_threads();
                if thread_idx().is_first() {
                    // SAFETY: nobody uses the barrier any more.
                    unsafe { barrier.invalidate() };
                }
            }
        })
    };
    run(3).unwrap();
    says(&failure(run(2)), &["is used too early", "(parity 0)"]);
}

#[test]
fn what_other_blocks_send_must_be_waited_for() {
    let matrix = Matrix::<f32>::new(16, 16, 7);
    let map = matrix.map(TmaBox {
        extent: [16, 16],
        span: 16,
    });
    // Block 0 sends all it has to block 1, or a value alone.
    let run = |waits: bool, multicast: bool| {
        launch(32, 2, 2, || {
            let mut shared = SharedMemory::new();
            let tile: Shared<f32> = shared.take_aligned::<f32, 1024>(256);
            let words: Shared<u64> = shared.take(1);
            let barrier = Mbarrier::from_shared(words);
            if thread_idx().is_first() {
                // SAFETY: nobody uses the barrier yet.
                unsafe { barrier.init(1) };
                barrier.arrive_expect_tx(if multicast { 1024 } else { 4 });
            }
            cluster_sync();
            if thread_idx().is_first() && cluster_rank().is_first() {
                let options = LoadOptions::DEFAULT.multicast(Multicast::first(2));
                // SAFETY: the map has the tile's box, and all blocks wait below.
                unsafe {
                    if multicast {
                        tma_load(&map, [0, 0], tile, barrier, options);
                    } else {
                        for rank in 0..2 {
                            let (to, full) = (map_shared(tile, rank), map_shared(words, rank));
                            store_async(to, [matrix.at(0, 0)], full);
                        }
                    }
                }
            }
            cluster_sync();
            if waits || cluster_rank().is_first() {
                barrier.wait(0);
            }
            assert_eq!(first(tile), matrix.at(0, 0));
            cluster_sync();
        })
    };
    for multicast in [false, true] {
        run(true, multicast).unwrap();
        let message = failure(run(false, multicast));
        says(&message, &["block (1, 0, 0)", "is used"]);
        says(&message, TOO_EARLY);
    }
}

/// What is wrong with the threads of a [`ring`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrong {
    Nothing,
    ConsumerDoesNotWait,
    ConsumerIsOneParityOff,
    ConsumerForgetsToFlip,
    ConsumerReleasesEarly,
    ProducerDoesNotWait,
}

/// One stage that warpgroup `producer` of two fills and the other one multiplies, three times.
fn ring(producer: u32, wrong: Wrong) -> Result<(), SimtError> {
    type Mma = Wgmma<8, bf16>;
    type TileA = KMajorTile<bf16, 64, 16, 32>;
    type TileB = KMajorTile<bf16, 8, 16, 32>;
    const ROUNDS: i32 = 3;
    let a = Matrix::<bf16>::new(64, 16 * ROUNDS as usize, 9);
    let b = Matrix::<bf16>::new(8, 16 * ROUNDS as usize, 10);
    let (map_a, map_b) = (a.map(TileA::tile_box(1)), b.map(TileB::tile_box(1)));
    let expected: f32 = (0..a.columns).map(|k| a.at(0, k) * b.at(0, k)).sum();
    launch(256, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (tile_a, tile_b) = (TileA::take(&mut shared), TileB::take(&mut shared));
        let (full, empty) = (Mbarrier::take(&mut shared), Mbarrier::take(&mut shared));
        if thread_idx().is_first() {
            // SAFETY: nobody uses the barriers yet.
            unsafe {
                full.init(1);
                empty.init(1);
            }
        }
        sync_threads();
        let thread = warpgroup_thread_idx().get();
        if warpgroup_idx().get() == producer {
            for round in 0..if thread == 0 { ROUNDS } else { 0 } {
                if wrong != Wrong::ProducerDoesNotWait {
                    empty.wait((round as u32 + 1) % 2);
                }
                full.arrive_expect_tx(TileA::BYTES + TileB::BYTES);
                // SAFETY: the maps have these tiles' boxes.
                unsafe {
                    tile_a.load(&map_a, [0, 16 * round], full, LoadOptions::DEFAULT);
                    tile_b.load(&map_b, [0, 16 * round], full, LoadOptions::DEFAULT);
                }
            }
            return;
        }
        let mut sums = Accumulator::<Mma>::new();
        for round in 0..ROUNDS as u32 {
            match wrong {
                Wrong::ConsumerDoesNotWait => {}
                Wrong::ConsumerIsOneParityOff => full.wait((round + 1) % 2),
                Wrong::ConsumerForgetsToFlip => full.wait(0),
                _ => full.wait(round % 2),
            }
            let batch = warpgroup_arrive();
            let (a, b) = (tile_a.operand_a().k_step(0), tile_b.operand_b().k_step(0));
            // SAFETY: the stage is full, if nothing is wrong.
            unsafe { batch.mma(&mut sums, a, b, round > 0) };
            batch.commit();
            let release = || empty.arrive_if(thread == 0);
            if wrong == Wrong::ConsumerReleasesEarly {
                release();
            }
            warpgroup_wait::<0>();
            if wrong != Wrong::ConsumerReleasesEarly {
                release();
            }
        }
        let sums = sums.wait();
        if thread == 0 {
            assert_eq!(sums.get(0), expected);
        }
    })
}

#[test]
fn a_ring_with_a_wrong_phase_ends_in_an_error() {
    let read = "is read by wgmma too early, or was filled too early: the bytes on their way there count in phase 0";
    let stuck = "waits for the phase of parity 1 of the mbarrier at shared address 2304";
    let reused = "has read it by wgmma, and thread";
    let filled = "is overwritten too early: the bytes on their way there count in phase 0";
    // Whoever has the lower index runs first.
    for (wrong, producer_first, consumer_first) in [
        (Wrong::ConsumerDoesNotWait, read, reused),
        (Wrong::ConsumerIsOneParityOff, stuck, reused),
        (Wrong::ConsumerForgetsToFlip, reused, reused),
        (Wrong::ConsumerReleasesEarly, reused, reused),
        (Wrong::ProducerDoesNotWait, filled, filled),
    ] {
        says(&failure(ring(0, wrong)), &[producer_first]);
        says(&failure(ring(1, wrong)), &[consumer_first]);
    }
    ring(0, Wrong::Nothing).unwrap();
    ring(1, Wrong::Nothing).unwrap();
}
