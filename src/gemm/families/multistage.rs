//! Launches of multistage kernels: the choice of an instance and of its splits, and what a launch passes.

use std::num::NonZeroU32;

use cutlet_device::{DeviceData, GlobalMut};
use cutlet_host::{Function, LaunchArgs, Stream};
use cutlet_kernels::gemm::epilogue::Fused;
use cutlet_kernels::gemm::multistage::MultistageArgs;
use cutlet_kernels::gemm::multistage::instance::{self, Read};
use cutlet_layout_core::{Divisor, Raster};

use super::memory_rate;
use crate::gemm::operand::Operand as Elements;
use crate::gemm::partials::{Output, Partials};
use crate::gemm::problem::{Groups, Problem, Sizes, device_groups};
use crate::gemm::registry::{Launch, Planned};
use crate::{Matrix, Order, Result};

/// The arguments of a kernel whose C has elements `O`.
type Arguments<T, O> = instance::Arguments<T, O, Fused<O>>;
/// A kernel whose C has elements `O`.
pub type Instance<T, O> = instance::Instance<T, O, Fused<O>>;

/// Bytes of the widest access.
const WIDEST: usize = 16;
/// Rows of tiles that blocks visit together, so that their reads hit the L2 cache.
const GROUP: u32 = 8;

/// An instance, and how it is launched.
pub struct Candidate<T: Elements, O: Output<Acc = T::Factor>> {
    instance: &'static Instance<T, O>,
    /// Whether it computes Cᵀ = Bᵀ·Aᵀ.
    transposed: bool,
    /// K-tiles of a split.
    split_k_tiles: usize,
    splits: usize,
    clocks: f64,
}

impl<T: Elements, O: Output<Acc = T::Factor>> Clone for Candidate<T, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Elements, O: Output<Acc = T::Factor>> Copy for Candidate<T, O> {}

/// Plans a C of the type that the kernels write: with the fastest of the instances, or with the one of this name. A
/// multiprocessor's peak is `peak` products in a clock.
pub fn to_own_type<T: Elements, O: Output<Acc = T::Factor>>(
    instances: &'static [Instance<T, O>],
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, O>,
    kernel: Option<&str>,
) -> Result<Option<Planned<T, O>>> {
    // TODO rows
    if !problem.rows.are_own() {
        return Ok(None);
    }
    let Some(candidate) = choose(instances, peak, stream, problem, kernel) else {
        return Ok(None);
    };
    let kernel = candidate.load(stream)?;
    Ok(Some(Planned {
        clocks: candidate.clocks,
        launch: match candidate.splits {
            1 => Box::new(Direct(kernel)),
            _ => Box::new(ByPartials(kernel)),
        },
    }))
}

/// Plans a C of any type: a second kernel makes it.
pub fn to_any_type<T: Elements, O: Output<Acc = T::Factor>, D: Output<Acc = T::Factor>>(
    instances: &'static [Instance<T, O>],
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernel: Option<&str>,
) -> Result<Option<Planned<T, D>>> {
    // Partials are of one product.
    if !problem.groups.are_one() {
        return Ok(None);
    }
    // TODO rows
    if !problem.rows.are_own() {
        return Ok(None);
    }
    let Some(candidate) = choose(instances, peak, stream, problem, kernel) else {
        return Ok(None);
    };
    Ok(Some(Planned {
        clocks: candidate.clocks + SECOND_KERNEL,
        launch: Box::new(ByPartials(candidate.load(stream)?)),
    }))
}

impl<T: Elements, O: Output<Acc = T::Factor>> Candidate<T, O> {
    /// Loads the kernel.
    fn load(self, stream: &Stream) -> Result<Multistage<T, O>> {
        let function = stream
            .device()
            .load(&cutlet_kernels::PTX, self.instance.kernel)?;
        Ok(Multistage {
            function,
            candidate: self,
        })
    }
}

/// The names of the instances for operands of these orders.
pub fn names<T: Elements, O: Output<Acc = T::Factor>>(
    instances: &'static [Instance<T, O>],
    a: Order,
    b: Order,
) -> Vec<&'static str> {
    instances
        .iter()
        .filter(|it| {
            let fits =
                |read: Read, order: Order, k_major: Order| read.k_major == (order == k_major);
            let [read_a, read_b] = it.reads;
            fits(read_a, a, Order::RowMajor) && fits(read_b, b, Order::ColMajor)
        })
        .map(|it| it.kernel.name())
        .collect()
}

/// The most blocks of a grid along y, which are groups.
const MOST_GROUPS: u32 = 65535;

/// An operand as kernels see it: (mn, k).
struct Operand {
    /// Elements from one row or column to the next, and from one k to the next.
    strides: [i64; 2],
    is_k_major: bool,
    /// The most bytes that can be read at a time: 16, 8, 4, or those of an element.
    bytes: usize,
    /// Bytes of a line.
    run_bytes: usize,
}

impl Operand {
    /// Of a matrix, and of those `stride` elements apart.
    fn new<T: Elements>(matrix: Matrix<'_, T>, stride: usize) -> Self {
        let aligned = |bytes: usize| {
            matrix.starts_runs_at(bytes) && (stride * size_of::<T>()).is_multiple_of(bytes)
        };
        Operand {
            strides: matrix.strides(),
            is_k_major: matrix.order() == Order::RowMajor,
            bytes: [WIDEST, 8, 4]
                .into_iter()
                .find(|&bytes| aligned(bytes))
                .unwrap_or(size_of::<T>()),
            run_bytes: matrix.extents.run_and_count().0 * size_of::<T>(),
        }
    }

    fn can_be_read(&self, read: Read) -> bool {
        self.is_k_major == read.k_major
            && self.bytes >= read.bytes
            && (!read.in_whole_vectors || self.run_bytes.is_multiple_of(read.bytes))
    }
}

/// A and B as kernels see them.
fn operands<T: Elements, D: DeviceData>(problem: &Problem<'_, T, D>) -> [Operand; 2] {
    let [stride_a, stride_b, _] = problem.groups.strides;
    [
        Operand::new(problem.a, stride_a),
        Operand::new(problem.b.transposed(), stride_b),
    ]
}

/// The fastest way to launch an instance.
fn choose<T: Elements, O: Output<Acc = T::Factor>, D: DeviceData>(
    instances: &'static [Instance<T, O>],
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernel: Option<&str>,
) -> Option<Candidate<T, O>> {
    let (m, n, k) = problem.extents();
    let [a, b] = operands(problem);
    let mut fastest: Option<Candidate<T, O>> = None;
    for transposed in [false, true] {
        // Groups have rows, not columns.
        if transposed && problem.groups.have_sizes() {
            continue;
        }
        let (operands, extents) = match transposed {
            false => ([&a, &b], [m, n]),
            true => ([&b, &a], [n, m]),
        };
        for instance in instances {
            let named = kernel.is_none_or(|name| instance.kernel.name() == name);
            // Some cards have less shared memory than others.
            let limits = stream.device().limits();
            let fits = instance.kernel.bounds().shared_bytes() <= limits.shared_bytes;
            let [read_a, read_b] = instance.reads;
            if !(named
                && fits
                && operands[0].can_be_read(read_a)
                && operands[1].can_be_read(read_b))
            {
                continue;
            }
            let estimate = Estimate {
                tile: instance.tile.map(|it| it as usize),
                blocks: instance.blocks as usize,
                extents: [extents[0], extents[1], k],
                groups: problem.groups,
                multiprocessors: stream.device().multiprocessors() as usize,
                memory_rate: OF_MEMORY_RATE * memory_rate(stream.device()),
                bytes: size_of::<T>(),
                strided: transposed,
                speed: peak * instance.speed,
            };
            for split_k_tiles in estimate.ways() {
                let clocks = estimate.clocks(split_k_tiles);
                if fastest.as_ref().is_none_or(|it| clocks < it.clocks) {
                    fastest = Some(Candidate {
                        instance,
                        transposed,
                        split_k_tiles,
                        splits: estimate.splits(split_k_tiles),
                        clocks,
                    });
                }
            }
        }
    }
    fastest
}

/// What the time of a launch depends on.
struct Estimate<'a> {
    tile: [usize; 3],
    /// Blocks that a multiprocessor runs at the same time.
    blocks: usize,
    /// m, n and k.
    extents: [usize; 3],
    /// The products.
    groups: Groups<'a>,
    multiprocessors: usize,
    /// Bytes that memory brings in a clock.
    memory_rate: f64,
    /// Bytes of an element of A and B.
    bytes: usize,
    /// Whether C is written down its columns.
    strided: bool,
    /// Products that a multiprocessor adds in a clock.
    speed: f64,
}

/// The share of the memory's stated rate that kernels reach.
const OF_MEMORY_RATE: f64 = 0.8;
/// Clocks that a block takes besides its k-tiles.
const BLOCK: f64 = 2500.0;
/// Clocks of a second kernel.
const SECOND_KERNEL: f64 = 4000.0;
/// The most splits.
const MOST_SPLITS: usize = 128;
/// The fewest k-tiles of a split: a block needs some to fill its ring.
const LEAST_K_TILES: usize = 4;

impl Estimate<'_> {
    fn k_tiles(&self) -> usize {
        self.extents[2].div_ceil(self.tile[2])
    }

    fn tiles(&self) -> usize {
        let columns = self.extents[1].div_ceil(self.tile[1]);
        let rows = match self.groups.sizes {
            // As many as if all groups had as many rows.
            Sizes::Ends(_) => self.extents[0].div_ceil(self.groups.count),
            _ => self.extents[0],
        };
        rows.div_ceil(self.tile[0]) * columns * self.groups.count
    }

    fn splits(&self, split_k_tiles: usize) -> usize {
        self.k_tiles().div_ceil(split_k_tiles).max(1)
    }

    /// The k-tiles of a split in each way to split: in one to eight, or in so many that blocks fill the device once or
    /// several times.
    fn ways(&self) -> impl Iterator<Item = usize> {
        let (tiles, k_tiles) = (self.tiles(), self.k_tiles());
        let at_a_time = self.multiprocessors * self.blocks;
        // The splits of one product alone can be added.
        let few = 1..=if self.groups.are_one() { 8 } else { 1 };
        let filling = (1..=6).map(move |rounds| rounds * at_a_time / 2 / tiles);
        let are_one = self.groups.are_one();
        let splits = few.chain(filling.filter(move |&splits| splits > 8 && are_one));
        splits
            .map(move |splits| k_tiles.div_ceil(splits.min(MOST_SPLITS)).max(1))
            .take_while(move |&split_k_tiles| split_k_tiles >= LEAST_K_TILES.min(k_tiles).max(1))
    }

    /// The estimated time.
    fn clocks(&self, split_k_tiles: usize) -> f64 {
        let [m, n, k] = self.tile.map(|it| it as f64);
        let [rows, columns, length] = self.extents.map(|it| it as f64);
        let splits = self.splits(split_k_tiles);
        let blocks = (self.tiles() * splits).div_ceil(self.multiprocessors);
        // One block does not keep a multiprocessor busy if there is room for more.
        let at_a_time = blocks.min(self.blocks) as f64;
        let busy = (0.5 + 0.5 * at_a_time / self.blocks as f64).min(1.0);
        let rounds = blocks.div_ceil(self.blocks) as f64;
        let k_tile = m * n * k / self.speed / busy;
        let computing = blocks as f64 * split_k_tiles as f64 * k_tile + rounds * BLOCK;
        let bytes = (rows + columns) * length * self.bytes as f64 + rows * columns * 4.0;
        let bytes = bytes * self.groups.count as f64;
        let memory = bytes / self.memory_rate + BLOCK;
        let second = match splits {
            1 => 0.0,
            _ => {
                let partials = rows * columns * splits as f64 * 8.0;
                SECOND_KERNEL + partials / (2.0 * self.memory_rate)
            }
        };
        let strided = if self.strided { 0.1 * BLOCK } else { 0.0 };
        (computing.powi(4) + memory.powi(4)).sqrt().sqrt() + second + strided
    }
}

/// A kernel writes C.
struct Direct<T: Elements, O: Output<Acc = T::Factor>>(Multistage<T, O>);

impl<T: Elements, O: Output<Acc = T::Factor>> Launch<T, O> for Direct<T, O> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, O>) -> Result<()> {
        let Direct(kernel) = self;
        let mut problem = kernel.oriented(problem);
        let c = &problem.c;
        let in_fours = problem.reads_pairs()
            && c.order() == Order::RowMajor
            && c.starts_runs_at(4 * size_of::<O>())
            && problem.groups.strides[2].is_multiple_of(4)
            && c.columns().is_multiple_of(4);
        let args = MultistageArgs {
            strides_c: c.strides(),
            in_fours: in_fours.into(),
            is_identity: problem.is_product_alone().into(),
            ..kernel.args(&problem)
        };
        let fused = problem.fused();
        let nowhere = GlobalMut::from_ptr(std::ptr::null_mut());
        let (a, b) = (problem.a.view, problem.b.view);
        for first_group in (0..problem.groups.count as u32).step_by(MOST_GROUPS as usize) {
            let args = MultistageArgs {
                first_group,
                ..args
            };
            let groups = (problem.groups.count as u32 - first_group).min(MOST_GROUPS);
            let c = &mut problem.c.view;
            // SAFETY: the matrices and sizes were checked against their memory. C overlaps neither A nor B, and is
            // borrowed mutably.
            unsafe { kernel.launch(stream, groups, args, (a, b, c, nowhere, args, fused))? };
        }
        Ok(())
    }
}

/// A kernel writes partials, and a second kernel makes C of them.
struct ByPartials<T: Elements, O: Output<Acc = T::Factor>>(Multistage<T, O>);

impl<T: Elements, O: Output<Acc = T::Factor>, D: Output<Acc = T::Factor>> Launch<T, D>
    for ByPartials<T, O>
{
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()> {
        let ByPartials(kernel) = self;
        let problem = kernel.oriented(problem);
        let (m, n, _) = problem.extents();
        let splits = kernel.candidate.splits as u32;
        let mut partials = Partials::new(stream, [m, n.next_multiple_of(4)], splits)?;
        let [_, ld] = partials.extent;
        let args = MultistageArgs {
            partial_ld: ld as i64,
            split_stride: (m * ld) as i64,
            ..kernel.args(&problem)
        };
        let nowhere = GlobalMut::<O>::from_ptr(std::ptr::null_mut());
        let (a, b) = (problem.a.view, problem.b.view);
        let to = partials.elements.view_mut();
        // SAFETY: the matrices were checked against their memory. The partials have room for each split.
        unsafe {
            let all = (a, b, nowhere, to, args, Fused::identity());
            kernel.launch(stream, 1, args, all)?;
        }
        // SAFETY: the partials have C's extents.
        unsafe { partials.finish(stream, problem) }
    }
}

/// A kernel, and how it is launched.
struct Multistage<T: Elements, O: Output<Acc = T::Factor>> {
    function: Function<Arguments<T, O>>,
    candidate: Candidate<T, O>,
}

impl<T: Elements, O: Output<Acc = T::Factor>> Multistage<T, O> {
    /// The problem as the kernel solves it.
    fn oriented<'a, D: DeviceData>(&self, problem: Problem<'a, T, D>) -> Problem<'a, T, D> {
        match self.candidate.transposed {
            true => problem.transposed(),
            false => problem,
        }
    }

    /// The arguments for an oriented problem, except for where the result goes.
    fn args<D: DeviceData>(&self, problem: &Problem<'_, T, D>) -> MultistageArgs {
        let Candidate {
            instance,
            split_k_tiles,
            splits,
            ..
        } = self.candidate;
        let (m, n, k) = problem.extents();
        let [a, b] = operands(problem);
        let [tile_m, tile_n, _] = instance.tile;
        let rows = (m as u32).div_ceil(tile_m);
        let columns = (n as u32).div_ceil(tile_n);
        MultistageArgs {
            strides_a: a.strides,
            strides_b: b.strides,
            strides_c: [0; 2],
            partial_ld: 0,
            split_stride: 0,
            extents: [m as i32, n as i32, k as i32],
            split_k_tiles: split_k_tiles as u32,
            in_fours: 0,
            raster: Raster::planned([rows * splits as u32, columns], GROUP),
            tile_rows: Divisor::new(NonZeroU32::new(rows).unwrap_or(NonZeroU32::MIN)),
            is_identity: 0,
            groups: device_groups(&problem.groups),
            first_group: 0,
            _unused: 0,
        }
    }

    /// Launches the kernel for so many groups.
    ///
    /// # Safety
    /// The arguments must be those of a problem.
    unsafe fn launch(
        &self,
        stream: &Stream,
        groups: u32,
        args: MultistageArgs,
        all: impl LaunchArgs<Arguments<T, O>>,
    ) -> Result<()> {
        // SAFETY: as promised by the caller.
        unsafe { stream.launch(&self.function, (args.raster.size(), groups), all)? };
        Ok(())
    }
}
