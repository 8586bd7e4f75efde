//! Launches of multistage kernels: the choice of an instance and of its splits, and what a launch passes.

use std::num::NonZeroU32;

use cutlet_device::{DeviceData, Global, GlobalMut, KernelArgs};
use cutlet_host::{Function, LaunchArgs, Stream};
use cutlet_kernels::gather::OutOfRange;
use cutlet_kernels::gemm::epilogue::{Accumulator, Fused, FusedWithOld, Scale, Then};
use cutlet_kernels::gemm::multistage::instance::{self, NamedArguments, Read};
use cutlet_kernels::gemm::multistage::{MultistageArgs, NamedOperands};
use cutlet_kernels::gemm::named_rows::NamedRows;
use cutlet_layout_core::{Divisor, Raster};

use super::memory_rate;
use crate::gemm::choice::cost::overlapped;
use crate::gemm::indexed_rows::{RowIndices, Rows};
use crate::gemm::operand::Operand as Elements;
use crate::gemm::partials::{Output, Partials};
use crate::gemm::problem::{Groups, Problem, Sizes, device_groups};
use crate::gemm::registry::{
    Fused as FusedQuery, IndexedOperand, KernelQuery, Launch, Planned, has_code,
};
use crate::{Matrix, Order, Result};

/// The arguments of a kernel whose C has elements `O`.
type Arguments<T, O> = instance::Arguments<T, O, Fused<O>>;
/// A kernel whose C has elements `O`.
pub type Instance<T, O> = instance::Instance<T, O, Fused<O>>;
/// A kernel for rows of tables.
pub type NamedInstance<T, O> =
    instance::Instance<T, O, FusedWithOld<O>, NamedArguments<T, O, FusedWithOld<O>>>;

/// The kernels of a family for operands `T` and a C of `O`.
pub struct Kernels<T: Elements, O: Output<Acc = T::Factor>> {
    /// Those for matrices.
    pub plain: &'static [Instance<T, O>],
    /// Those for rows of tables.
    pub named: &'static [NamedInstance<T, O>],
}

/// Bytes of the widest access.
const WIDEST: usize = 16;
/// Rows of tiles that blocks visit together, so that their reads hit the L2 cache.
const GROUP: u32 = 8;

/// An instance `I`, and how it is launched.
struct Candidate<I: 'static> {
    instance: &'static I,
    /// Whether it computes Cᵀ = Bᵀ·Aᵀ.
    transposed: bool,
    /// K-tiles of a split.
    split_k_tiles: usize,
    splits: usize,
    clocks: f64,
}

impl<I> Clone for Candidate<I> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<I> Copy for Candidate<I> {}

/// Plans a C of the type that the kernels write: with the fastest of the instances, or with the one of this name. A
/// multiprocessor's peak is `peak` products in a clock.
pub fn to_own_type<T: Elements, O: Output<Acc = T::Factor>>(
    kernels: Kernels<T, O>,
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, O>,
    kernel: Option<&str>,
) -> Result<Option<Planned<T, O>>> {
    if !problem.rows.are_own() {
        let candidate = choose(kernels.named, peak, stream, problem, kernel);
        return planned(candidate, stream, |kernel| match kernel.candidate.splits {
            1 => Box::new(DirectNamed(kernel)),
            _ => Box::new(PartialsNamed(kernel)),
        });
    }
    let candidate = choose(kernels.plain, peak, stream, problem, kernel);
    planned(candidate, stream, |kernel| match kernel.candidate.splits {
        1 => Box::new(Direct(kernel)),
        _ => Box::new(ByPartials(kernel)),
    })
}

/// Plans a C of any type: a second kernel makes it.
pub fn to_any_type<T: Elements, O: Output<Acc = T::Factor>, D: Output<Acc = T::Factor>>(
    kernels: Kernels<T, O>,
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernel: Option<&str>,
) -> Result<Option<Planned<T, D>>> {
    // Partials are of one product, whose rows are in order.
    if !problem.groups.are_one() || matches!(problem.rows, Rows::OfC(_)) {
        return Ok(None);
    }
    let planned = match problem.rows.are_own() {
        true => {
            let candidate = choose(kernels.plain, peak, stream, problem, kernel);
            planned(candidate, stream, |kernel| {
                Box::new(ByPartials(kernel)) as _
            })?
        }
        false => {
            let candidate = choose(kernels.named, peak, stream, problem, kernel);
            planned(candidate, stream, |kernel| {
                Box::new(PartialsNamed(kernel)) as _
            })?
        }
    };
    Ok(planned.map(|it| Planned {
        clocks: it.clocks + SECOND_KERNEL,
        ..it
    }))
}

/// Loads a candidate's kernel and plans its launch.
fn planned<T: Elements, O: Output<Acc = T::Factor>, Epi, A: KernelArgs, D: DeviceData>(
    candidate: Option<Candidate<instance::Instance<T, O, Epi, A>>>,
    stream: &Stream,
    launch: impl FnOnce(Multistage<instance::Instance<T, O, Epi, A>, A>) -> Box<dyn Launch<T, D>>,
) -> Result<Option<Planned<T, D>>> {
    let Some(candidate) = candidate else {
        return Ok(None);
    };
    let kernel = candidate.instance.kernel;
    let function = stream.device().load(&cutlet_kernels::PTX, kernel)?;
    Ok(Some(Planned {
        kernel: kernel.name(),
        clocks: candidate.clocks,
        launch: launch(Multistage {
            function,
            candidate,
        }),
    }))
}

/// The names of the instances that the query asks for, among those for matrices or those for rows of tables.
pub fn names<T: Elements, O: Output<Acc = T::Factor>>(
    plain: &'static [Instance<T, O>],
    named: &'static [NamedInstance<T, O>],
    query: KernelQuery,
) -> Vec<&'static str> {
    match (query.indexed, query.fused) {
        (_, FusedQuery::Swiglu) => Vec::new(),
        (IndexedOperand::None, _) => names_of(plain, query),
        (IndexedOperand::A | IndexedOperand::C, _) => names_of(named, query),
    }
}

/// The names of the instances that the backend runs, for operands of these orders.
fn names_of<T, O: Output, Epi, A>(
    instances: &'static [instance::Instance<T, O, Epi, A>],
    query: KernelQuery,
) -> Vec<&'static str> {
    let [a, b] = query.orders;
    instances
        .iter()
        .filter(|it| has_code(query.backend, it.kernel))
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
fn choose<T: Elements, O: Output<Acc = T::Factor>, Epi, A, D: DeviceData>(
    instances: &'static [instance::Instance<T, O, Epi, A>],
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernel: Option<&str>,
) -> Option<Candidate<instance::Instance<T, O, Epi, A>>> {
    let (m, n, k) = problem.extents();
    let [a, b] = operands(problem);
    let memory_rate = OF_MEMORY_RATE * memory_rate(stream.device());
    let mut fastest: Option<Candidate<_>> = None;
    for transposed in [false, true] {
        // Groups, and tables, have rows, not columns.
        if transposed && (problem.groups.have_sizes() || !problem.rows.are_own()) {
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
            let fits = instance.kernel.bounds().shared_bytes() <= limits.shared_bytes
                && has_code(stream.device().backend(), instance.kernel);
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
                is_split: problem.groups.are_one() && !matches!(problem.rows, Rows::OfC(_)),
                multiprocessors: stream.device().multiprocessors() as usize,
                memory_rate,
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
    /// Whether k may be split: the partials of one product, whose rows are in order, can be added.
    is_split: bool,
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
        let is_split = self.is_split;
        let few = 1..=if is_split { 8 } else { 1 };
        let filling = (1..=6).map(move |rounds| rounds * at_a_time / 2 / tiles);
        let splits = few.chain(filling.filter(move |&splits| splits > 8 && is_split));
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
        overlapped(computing, memory) + second + strided
    }
}

/// A kernel writes C.
struct Direct<T: Elements, O: Output<Acc = T::Factor>>(Multistage<Instance<T, O>, Arguments<T, O>>);

impl<T: Elements, O: Output<Acc = T::Factor>> Launch<T, O> for Direct<T, O> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, O>) -> Result<()> {
        let Direct(kernel) = self;
        let mut problem = kernel.oriented(problem);
        let args = MultistageArgs {
            is_identity: problem.is_product_alone().into(),
            ..kernel.args_to_c(&problem)
        };
        let fused = problem.fused();
        let nowhere = GlobalMut::from_ptr(std::ptr::null_mut());
        let (a, b) = (problem.a.view, problem.b.view);
        kernel.each_launch(args, |groups, args| {
            let c = &mut problem.c.view;
            // SAFETY: the matrices and sizes were checked against their memory. C overlaps neither A nor B, and is
            // borrowed mutably.
            unsafe { kernel.launch(stream, groups, args, (a, b, c, nowhere, args, fused)) }
        })
    }
}

/// A kernel for rows of tables writes C.
struct DirectNamed<T: Elements, O: Output<Acc = T::Factor>>(NamedKernel<T, O>);

/// A kernel for rows of tables, and how it is launched.
type NamedKernel<T, O> = Multistage<NamedInstance<T, O>, NamedArguments<T, O, FusedWithOld<O>>>;

impl<T: Elements, O: Output<Acc = T::Factor>> Launch<T, O> for DirectNamed<T, O> {
    fn launch(&self, stream: &Stream, mut problem: Problem<'_, T, O>) -> Result<()> {
        let DirectNamed(kernel) = self;
        let args = kernel.args_to_c(&problem);
        let rows = named_operands(&problem);
        let fused = fused_with_old(&mut problem);
        let nowhere = GlobalMut::from_ptr(std::ptr::null_mut());
        let (a, b) = (problem.a.view, problem.b.view);
        kernel.each_launch(args, |groups, args| {
            let c = &mut problem.c.view;
            // SAFETY: as in `Direct`. There is an index for each row of the product, and the kernel compares each index
            // with the table.
            unsafe { kernel.launch(stream, groups, args, (a, b, c, nowhere, args, rows, fused)) }
        })
    }
}

/// The rows of the problem's A and C. Rows that no indices name stand for themselves.
fn named_operands<T: Elements, D: DeviceData>(problem: &Problem<'_, T, D>) -> NamedOperands {
    let (a, c) = (&problem.a, &problem.c);
    let own = |rows: usize, ld: usize| NamedRows {
        indices: Global::from_ptr(std::ptr::null()),
        first_miss: GlobalMut::from_ptr(std::ptr::null_mut()),
        table_rows: rows as i64,
        ld: ld as i64,
        wide_indices: 0,
        out_of_range: OutOfRange::SKIP,
    };
    let (rows_a, rows_c) = match &problem.rows {
        Rows::Own => (None, None),
        Rows::OfA(rows) => (Some(rows), None),
        Rows::OfC(rows) => (None, Some(rows)),
    };
    let named = |rows: Option<&RowIndices<'_>>, count: usize, ld: usize| match rows {
        None => own(count, ld),
        Some(rows) => rows.named(count, ld),
    };
    NamedOperands {
        a: named(rows_a, a.rows(), a.ld()),
        c: named(rows_c, c.rows(), c.ld()),
    }
}

/// The whole epilogue of a problem in which the store finds the old elements of C. A residual is found by its rows.
fn fused_with_old<T: Elements, O: Output<Acc = T::Factor>>(
    problem: &mut Problem<'_, T, O>,
) -> FusedWithOld<O> {
    let (alpha, beta) = (problem.alpha, problem.beta);
    problem.alpha = T::Factor::ONE;
    let mut of_old = T::Factor::ZERO;
    if problem.epilogue.residual.is_none() {
        (of_old, problem.beta) = (beta, T::Factor::ZERO);
    }
    Then {
        first: Scale {
            alpha,
            beta: of_old,
        },
        second: problem.fused(),
    }
}

/// A kernel writes partials, and a second kernel makes C of them.
struct ByPartials<T: Elements, O: Output<Acc = T::Factor>>(
    Multistage<Instance<T, O>, Arguments<T, O>>,
);

impl<T: Elements, O: Output<Acc = T::Factor>, D: Output<Acc = T::Factor>> Launch<T, D>
    for ByPartials<T, O>
{
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()> {
        let ByPartials(kernel) = self;
        let problem = kernel.oriented(problem);
        let (mut partials, args) = kernel.partials(stream, &problem)?;
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

/// A kernel writes partials of rows of a table, and a second kernel makes C of them.
struct PartialsNamed<T: Elements, O: Output<Acc = T::Factor>>(NamedKernel<T, O>);

impl<T: Elements, O: Output<Acc = T::Factor>, D: Output<Acc = T::Factor>> Launch<T, D>
    for PartialsNamed<T, O>
{
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()> {
        let PartialsNamed(kernel) = self;
        let (mut partials, args) = kernel.partials(stream, &problem)?;
        let nowhere = GlobalMut::<O>::from_ptr(std::ptr::null_mut());
        let (a, b) = (problem.a.view, problem.b.view);
        let to = partials.elements.view_mut();
        let rows = named_operands(&problem);
        let identity = Then {
            first: Scale::ONE,
            second: Fused::identity(),
        };
        // SAFETY: as in `ByPartials`. There is an index for each row of the product, and the kernel compares each index
        // with the table.
        unsafe {
            let all = (a, b, nowhere, to, args, rows, identity);
            kernel.launch(stream, 1, args, all)?;
        }
        // SAFETY: the partials have C's extents.
        unsafe { partials.finish(stream, problem) }
    }
}

/// A kernel with arguments `A` of an instance `I`, and how it is launched.
struct Multistage<I: 'static, A: KernelArgs> {
    function: Function<A>,
    candidate: Candidate<I>,
}

impl<T: Elements, O: Output<Acc = T::Factor>, Epi, A: KernelArgs>
    Multistage<instance::Instance<T, O, Epi, A>, A>
{
    /// The problem as the kernel solves it.
    fn oriented<'a, D: DeviceData>(&self, problem: Problem<'a, T, D>) -> Problem<'a, T, D> {
        match self.candidate.transposed {
            true => problem.transposed(),
            false => problem,
        }
    }

    /// The arguments for an oriented problem whose C the kernel writes.
    fn args_to_c(&self, problem: &Problem<'_, T, O>) -> MultistageArgs {
        let c = &problem.c;
        let in_fours = problem.reads_pairs()
            && c.order() == Order::RowMajor
            && c.starts_runs_at(4 * size_of::<O>())
            && problem.groups.strides[2].is_multiple_of(4)
            && c.columns().is_multiple_of(4);
        MultistageArgs {
            strides_c: c.strides(),
            in_fours: in_fours.into(),
            ..self.args(problem)
        }
    }

    /// Partials for an oriented problem, and the arguments of the launch that writes them.
    fn partials<'s, D: DeviceData>(
        &self,
        stream: &'s Stream,
        problem: &Problem<'_, T, D>,
    ) -> Result<(Partials<'s, T::Factor>, MultistageArgs)> {
        let (m, n, _) = problem.extents();
        let splits = self.candidate.splits as u32;
        let partials = Partials::new(stream, [m, n.next_multiple_of(4)], splits)?;
        let [_, ld] = partials.extent;
        let args = MultistageArgs {
            partial_ld: ld as i64,
            split_stride: (m * ld) as i64,
            ..self.args(problem)
        };
        Ok((partials, args))
    }

    /// Calls `launch` with as many groups as a grid can have, and the arguments for them, until all are launched.
    fn each_launch(
        &self,
        args: MultistageArgs,
        mut launch: impl FnMut(u32, MultistageArgs) -> Result<()>,
    ) -> Result<()> {
        let count = args.groups.count;
        for first_group in (0..count).step_by(MOST_GROUPS as usize) {
            let args = MultistageArgs {
                first_group,
                ..args
            };
            launch((count - first_group).min(MOST_GROUPS), args)?;
        }
        Ok(())
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
        all: impl LaunchArgs<A>,
    ) -> Result<()> {
        // SAFETY: as promised by the caller.
        unsafe { stream.launch(&self.function, (args.raster.size(), groups), all)? };
        Ok(())
    }
}
