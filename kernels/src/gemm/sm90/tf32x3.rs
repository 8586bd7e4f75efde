//! Products of f32 by three products of tf32.
//!
//! A number is the sum of a big and a small number of tf32. The big part is the nearest number of tf32. The small part
//! is the rest: it has at most 12 bits, of which `wgmma` ignores the last. TMA loads B as it is. The warps of the
//! producer warpgroup that load nothing, the *transform warps*, write the small part beside it, and the big part in its
//! place. Consumers read A to registers, and make both parts there.
//!
//! Hopper's tensor cores round sums towards zero. So they add the products of one k-tile, the small ones first, and f32
//! additions add the k-tiles.
//!
//! The parts of some numbers are none of tf32: of infinities, NaN, the largest numbers, and the smallest. If A or B has
//! such a number in a k-tile, the warps that it concerns multiply the k-tile on the CUDA cores.

use cutlet_device::collective::{Filling, Pipeline, StageIdx, TransformBarriers, VectorRing};
use cutlet_device::sm80::Mma1688Tf32;
use cutlet_device::sm90::{AccumulatorLayout, RegisterA, WarpgroupThreads, warpgroup_arrive};
use cutlet_device::tile::{KMajorTile, Major, SwizzleSpan};
use cutlet_device::tiled::{LdMatrix, load_a};
use cutlet_device::warpgroup::{ThreadAtStep, WarpgroupIdx, WarpgroupThread, warpgroup_sync};
use cutlet_device::{Shared, SharedStorage, any, fma, lane_idx, uniform};
use cutlet_layout_core::{
    E, Fixed, L, Layout, StaticLayout, Tensor, ThreadValue, TiledMma, Tv, each,
};

use core::marker::PhantomData;

use super::config::{AtomFragment, Config, ElementA, RingA, RingB, Storage, Values};
use super::kernel::Atoms;
use super::mainloop::{UnderWay, WgmmaMainloop, m_atom};
use super::scaling::{ScaleRing, Scaling};
use crate::gemm::config::{Consumers, StageCount, TileShape};
use crate::gemm::mainloop::{Mainloop, MainloopTile};
use crate::gemm::scheduler::{GroupOrigin, TileScheduler};

/// A product of f32 is three products of tf32.
#[derive(Clone, Copy, Debug)]
pub struct Tf32x3;

/// The k of a k-tile.
const K: usize = 32;
/// Instructions along a k-tile's k.
const K_STEPS: usize = 4;
/// The transform warps: all warps of the producer warpgroup but the first.
const TRANSFORM_WARPS: u32 = 3;

/// A number as the sum of two, of 11 and of 12 bits, by Veltkamp's four operations. Those of integers take twice as
/// long on Hopper.
#[derive(Clone, Copy)]
struct Split {
    /// The nearest number of tf32.
    big: f32,
    /// The rest. It is NaN if the number is from 2¹¹⁵ on, infinite or NaN.
    small: f32,
}

impl Split {
    #[inline(always)]
    fn of(number: f32) -> Self {
        // Of a sum with this multiple, the last 13 bits are rounded away.
        let multiple = number * const { (1 << 13) as f32 + 1.0 };
        let big = multiple - (multiple - number);
        Self {
            big,
            small: number - big,
        }
    }
}

/// Whether numbers are extreme: whether the parts of one may be none of tf32.
#[derive(Clone, Copy)]
struct Extremes {
    /// 0, or NaN if a small part is.
    of_large: f32,
    has_small: bool,
}

impl Extremes {
    const NONE: Self = Self {
        of_large: 0.0,
        has_small: false,
    };

    /// Looks at a number and its small part. From 2⁻¹⁰² on, the small part is a normal number or 0.
    #[inline(always)]
    fn add(&mut self, number: f32, small: f32) {
        const LEAST: u32 = (127 - 102) << 23;
        self.of_large = fma(small, 0.0, self.of_large);
        // 0 becomes the largest one.
        let magnitude = (number.to_bits() << 1).wrapping_sub(1);
        self.has_small |= magnitude < (LEAST << 1) - 1;
    }

    /// Whether any lane of the warp has found one. All of them call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn any(self) -> bool {
        any(self.has_small | self.of_large.is_nan())
    }
}

/// What the stages have besides A and B.
#[derive(Clone, Copy, SharedStorage)]
pub struct SmallRing<S: StageCount, T: TileShape> {
    /// The small parts of B.
    tiles: SmallTiles<S, T>,
    /// Of each transform warp, whether it has found an extreme number.
    extremes: VectorRing<u32, Words, S>,
    transformed: TransformBarriers<S>,
}

/// The words of a stage, of which each transform warp has one.
type Words = L!(32:1);

/// Room for the small parts of B. Its layout is that of B.
#[derive(Clone, Copy)]
struct SmallTiles<S, T> {
    address: u32,
    of: PhantomData<(S, T)>,
}

impl<S: StageCount, T: TileShape> SharedStorage for SmallTiles<S, T> {
    const BYTES: u32 = (S::STAGES * T::N * T::K * size_of::<f32>()) as u32;
    const ALIGN: u32 = 1024;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self {
            address,
            of: PhantomData,
        }
    }
}

/// The small parts of B in the stages.
#[inline(always)]
fn small_tiles<C: Config<Scaling = Tf32x3>>(ring: ScaleRing<C>) -> RingB<C> {
    SharedStorage::at(ring.tiles.address)
}

impl Scaling for Tf32x3 {
    type Sum = f32;
    type Acc = f32;
    type Operands<'a> = ();
    type Ring<S: StageCount, T: TileShape> = SmallRing<S, T>;
    type Mainloop<C: Config<Scaling = Self>> = Tf32x3Mainloop<C>;
    const PRODUCTS: u32 = 3;
    const THREADS_READ_OPERANDS: bool = true;

    #[inline(always)]
    fn bytes<T: TileShape>() -> u32 {
        0
    }

    #[inline(always)]
    unsafe fn load<C: Config<Scaling = Self>>(
        _: ScaleRing<C>,
        (): (),
        _: &Filling,
        _: (u32, u32),
        _: u32,
        _: Option<GroupOrigin>,
    ) {
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn init<C: Config<Scaling = Self>>(ring: ScaleRing<C>) {
        // SAFETY: as promised by the caller.
        unsafe { ring.transformed.init(TRANSFORM_WARPS) };
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn transform<C: Config<Scaling = Self>, S: TileScheduler>(
        block: Storage<C>,
        scheduler: &S,
        thread: WarpgroupThread,
    ) {
        let nth = thread.warp() - 1;
        let ring = block.scales;
        let mut stages = block.pipeline.transformer(ring.transformed);
        for work in scheduler.work_tiles() {
            for _ in 0..scheduler.k_tile_count(work) {
                let filled = stages.wait();
                let stage = filled.stage();
                let big = block.rings.1.stage(stage).start();
                let small = small_tiles::<C>(ring).stage(stage).start();
                // SAFETY: the stage is full until consumers release it, which is after this warp hands it over. No
                // other warp has these rows or this word.
                unsafe {
                    let found = split::<C>(big.cast(), small.cast(), nth);
                    if lane_idx().is_first() {
                        ring.extremes
                            .stage(stage)
                            .store(i64::from(nth), u32::from(found));
                    }
                }
                stages.hand_over(filled);
            }
        }
    }

    #[inline(always)]
    fn mainloop<C: Config<Scaling = Self>>(
        rings: (RingA<C>, RingB<C>),
        ring: ScaleRing<C>,
        (): (),
        pipeline: Pipeline<C::Stages, C::Cluster>,
        (consumer, thread): (WarpgroupIdx, WarpgroupThread),
    ) -> Tf32x3Mainloop<C> {
        const {
            assert!(
                size_of::<C::In>() == size_of::<f32>()
                    && C::MajorA::IS_K_MAJOR
                    && C::MajorB::IS_K_MAJOR,
                "A and B are of f32 and K-major"
            );
        }
        let stages = pipeline.consumer_after(ring.transformed);
        let products = WgmmaMainloop::new(rings, stages, consumer, thread);
        Tf32x3Mainloop { products, ring }
    }
}

/// Lines of 128 bytes.
type Swizzle = SwizzleSpan<f32, 128>;
/// Rows of B that a warp transforms at a time.
const ROWS: usize = 8;
/// These rows in shared memory.
type Rows = L!((8, 32):(32, 1));
/// A lane's numbers of them: two vectors of four.
type Lanes = Tv<L!((8, 4):(4@1, 1@0)), L!((4, 2):(1@1, 4@0)), 4>;

/// Splits the `nth` transform warp's rows of B into the big parts, which take B's place, and the small ones. Rows with
/// an extreme number stay, and have small parts of 0: the sum of both parts is always the number. Returns whether there
/// are such rows.
///
/// # Safety
/// The tiles must be in shared memory. No other thread may access the warp's rows.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
unsafe fn split<C: Config>(b: Shared<f32>, small: Shared<f32>, nth: u32) -> bool {
    let mut found = false;
    let mut group = nth;
    while group < const { (C::Tile::N / ROWS) as u32 } {
        let first = i64::from(group) * const { Rows::SIZE as i64 };
        let [b, small] = [b, small].map(|tile| {
            // SAFETY: as promised by the caller.
            let rows = unsafe { Tensor::new(tile.offset(first), Fixed::<Rows, Swizzle>::new()) };
            rows.partition::<Lanes>(lane_idx())
        });
        let numbers = b.load(0.0);
        let (mut big, mut rest) = (numbers, numbers);
        let mut extremes = Extremes::NONE;
        each::<<Lanes as ThreadValue>::Val>(|v| {
            let parts = Split::of(numbers.get(v));
            extremes.add(numbers.get(v), parts.small);
            big.set(v, parts.big);
            rest.set(v, parts.small);
        });
        if extremes.any() {
            small.store_with(|_| 0.0);
            found = true;
        } else {
            b.store(&big);
            small.store(&rest);
        }
        group += TRANSFORM_WARPS;
    }
    found
}

/// Multiplies k-tiles by three products of tf32, and adds their products in f32.
pub struct Tf32x3Mainloop<C: Config<Scaling = Tf32x3>> {
    products: WgmmaMainloop<C>,
    ring: ScaleRing<C>,
}

/// The warps of a warpgroup, which have 16 rows of A each.
type Warps = TiledMma<Mma1688Tf32, L!((4, 1):(1, 0))>;

/// The big and the small parts of a thread's A in registers, for each instruction of a k-tile.
type Parts<T> = [[RegisterA<T>; K_STEPS]; 2];

impl<C: Config<Scaling = Tf32x3>> Tf32x3Mainloop<C> {
    /// The stage's A of the consumer's `nth` M atom.
    #[inline(always)]
    fn atom_of_a(&self, nth: usize, stage: StageIdx) -> KMajorTile<f32, 64, K> {
        let first = 64 * K as i64 * i64::from(m_atom::<C>(self.products.consumer, nth));
        let tile = self.products.rings.0.stage(stage).start().cast::<f32>();
        KMajorTile::from_shared(tile.offset(first))
    }

    /// Whether a transform warp has found an extreme number in the stage's B.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn b_is_extreme(&self, stage: StageIdx) -> bool {
        let found = self.ring.extremes.stage(stage);
        // SAFETY: the transform warps wrote the words before they handed over the stage.
        let [first, second, third] = [0, 1, 2].map(|warp| unsafe { found.load(warp) });
        first | second | third != 0
    }

    /// Reads the thread's A of an M atom. Also returns whether the warp's has an extreme number.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load_parts(&self, tile: KMajorTile<f32, 64, K>) -> (Parts<ElementA<C>>, bool) {
        // SAFETY: the stage is full until it is released.
        let tile = unsafe { tile.tensor() };
        let warps = Warps::thread_slice(self.products.thread);
        let mut extremes = Extremes::NONE;
        let parts: [[Split; 4]; K_STEPS] = core::array::from_fn(|step| {
            let numbers = load_a(LdMatrix, warps, tile, step).get(0);
            numbers.map(|number| {
                let number = f32::from_bits(number);
                let parts = Split::of(number);
                extremes.add(number, parts.small);
                parts
            })
        });
        let big = parts.map(|of| RegisterA::of_words(of.map(|parts| parts.big.to_bits())));
        let small = parts.map(|of| RegisterA::of_words(of.map(|parts| parts.small.to_bits())));
        ([big, small], extremes.any())
    }

    /// The products of a k-tile and an M atom.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn multiply(&self, parts: Parts<ElementA<C>>, stage: StageIdx) -> AtomFragment<C> {
        let big_b = self.products.rings.1.operand_b::<C::Mma>(stage);
        let small_b = small_tiles::<C>(self.ring).operand_b::<C::Mma>(stage);
        let [big_a, small_a] = &parts;
        let mut products = UnderWay::<C>::new();
        let group = warpgroup_arrive();
        // SAFETY: the stage is full until it is released. A's registers were made before the group, and are dropped
        // after the wait. The first instruction replaces the accumulators.
        unsafe {
            for (step, a) in small_a.iter().enumerate() {
                group.mma_from_registers(&mut products, a, big_b.k_step(step), step > 0);
            }
            for (step, a) in big_a.iter().enumerate() {
                group.mma_from_registers(&mut products, a, small_b.k_step(step), true);
            }
            for (step, a) in big_a.iter().enumerate() {
                group.mma_from_registers(&mut products, a, big_b.k_step(step), true);
            }
        }
        group.commit();
        let products = products.wait();
        drop(parts);
        products
    }

    /// Adds the products of a k-tile and an M atom by multiply-adds of f32.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn add_exactly(
        &self,
        tile: KMajorTile<f32, 64, K>,
        stage: StageIdx,
        sums: &mut AtomFragment<C>,
    ) {
        let parts_of_b = [self.products.rings.1, small_tiles::<C>(self.ring)];
        // SAFETY: the stage is full until it is released.
        let (a, parts_of_b) = unsafe {
            (
                Tensor::new(tile.start(), Fixed::<RowsOfA<C>, Swizzle>::new()),
                parts_of_b.map(|ring| {
                    let part = ring.stage(stage).start().cast::<f32>();
                    Tensor::new(part, Fixed::<ColumnsOfB<C>, Swizzle>::new())
                }),
            )
        };
        // A loop of 32 would be unrolled.
        for k in 0..uniform(K as u32) {
            let at = ThreadAtStep::<{ K as u32 }>::new(self.products.thread, k);
            let a = a.partition_broadcast::<SumsAtK<C>>(at);
            let [big, small] = parts_of_b.map(|part| part.partition_broadcast::<SumsAtK<C>>(at));
            let (upper, lower) = (a.value(0, 0.0), a.value(2, 0.0));
            let (mut left, mut right) = (0.0, 0.0);
            each::<Values<C>>(|v| {
                // Two columns of the upper row, and the same two of the lower one.
                let (is_lower, is_right) = (v / 2 % 2 == 1, v % 2 == 1);
                if !is_lower {
                    let column = big.value(v, 0.0) + small.value(v, 0.0);
                    if is_right {
                        right = column;
                    } else {
                        left = column;
                    }
                }
                let row = if is_lower { lower } else { upper };
                let column = if is_right { right } else { left };
                sums.set(v, fma(row, column, sums.get(v)));
            });
        }
    }
}

impl<C: Config<Scaling = Tf32x3>> Mainloop for Tf32x3Mainloop<C> {
    type Accumulators = Atoms<C>;

    #[inline(always)]
    fn takes_next(&mut self, k_tiles: u32) -> bool {
        self.products.takes_next(k_tiles)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn pass_over(&mut self, k_tiles: u32) {
        self.products.pass_over(k_tiles);
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn mma(&mut self, tile: MainloopTile) -> Atoms<C> {
        let mut sums = C::Consumers::atoms(AtomFragment::<C>::filled(0.0));
        self.products.begin();
        for _ in 0..tile.count {
            let filled = self.products.stages.wait();
            let stage = filled.stage();
            let b_is_extreme = self.b_is_extreme(stage);
            // One M atom after the other: there are registers for the products of one.
            for (nth, sums) in sums.as_mut().iter_mut().enumerate() {
                let tile = self.atom_of_a(nth, stage);
                let (parts, a_is_extreme) = self.load_parts(tile);
                let products = self.multiply(parts, stage);
                if a_is_extreme | b_is_extreme {
                    self.add_exactly(tile, stage, sums);
                } else {
                    each::<Values<C>>(|v| sums.set(v, sums.get(v) + products.get(v)));
                }
            }
            warpgroup_sync(self.products.consumer);
            self.products.stages.release(filled, self.products.thread);
        }
        self.products.end();
        sums
    }
}

/// A thread's accumulators at a k of a k-tile, by (m, n, k).
type SumsAtK<C> =
    Tv<(WarpgroupThreads, E<K, 1, 2>), <AccumulatorLayout<<C as Config>::Mma> as ThreadValue>::Val>;

/// The A of an M atom's accumulators in shared memory, by (m, n, k).
#[derive(Clone, Copy)]
struct RowsOfA<C>(PhantomData<C>);

impl<C: Config> StaticLayout for RowsOfA<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_mode(64, K as i64),
        Layout::static_mode(C::Tile::N as i64, 0),
        Layout::static_mode(K as i64, 1),
    ]);
}

/// Their B.
#[derive(Clone, Copy)]
struct ColumnsOfB<C>(PhantomData<C>);

impl<C: Config> StaticLayout for ColumnsOfB<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_mode(64, 0),
        Layout::static_mode(C::Tile::N as i64, K as i64),
        Layout::static_mode(K as i64, 1),
    ]);
}
