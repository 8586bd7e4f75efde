//! Launches of multistage kernels: the choice of an instance and of its splits, and what a launch passes.

mod estimate;

use std::num::NonZeroU32;

use cutlet_device::{DeviceData, GlobalMut};
use cutlet_host::{Function, LaunchArgs, Stream};
use cutlet_kernels::gemm::epilogue::{
    Accumulator, Activation, ElementC, Epilogue, Fused, FusedWithOld, Scale, Then,
};
use cutlet_kernels::gemm::multistage::instance;
use cutlet_kernels::gemm::multistage::staging::Read;
use cutlet_kernels::gemm::multistage::{MultistageArgs, NamedOperands};
use cutlet_kernels::gemm::named_rows::NamedRows;
use cutlet_layout_core::{Divisor, Raster};

use crate::gemm::choice::device_speed::DeviceSpeed;
use crate::gemm::indexed_rows::{RowIndices, Rows};
use crate::gemm::operand::Operand as Elements;
use crate::gemm::partials::{Output, Partials};
use crate::gemm::problem::{Groups, Problem, device_groups};
use crate::gemm::registry::{
    Fused as FusedQuery, IndexedOperand, KernelQuery, Launch, LaunchPlan, has_code,
};
use crate::matrix::pointer_mut;
use crate::{Matrix, Order, Result};
use estimate::{Estimate, SECOND_KERNEL};

/// A kernel for matrices, whose C has elements `O`.
pub type Instance<T, O> = instance::Instance<T, O, Fused<O>>;
/// A kernel for rows of tables.
pub type NamedInstance<T, O> = instance::Instance<T, O, FusedWithOld<O>>;

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

/// An instance, and how it is launched.
struct Candidate<T: 'static, O: ElementC, Epi: 'static> {
    instance: &'static instance::Instance<T, O, Epi>,
    /// Whether it computes Cᵀ = Bᵀ·Aᵀ.
    transposed: bool,
    /// K-tiles of a split.
    split_k_tiles: usize,
    splits: usize,
    /// The estimated time.
    microseconds: f64,
}

impl<T, O: ElementC, Epi> Clone for Candidate<T, O, Epi> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, O: ElementC, Epi> Copy for Candidate<T, O, Epi> {}

impl<T, O: ElementC, Epi> Candidate<T, O, Epi> {
    fn name(&self) -> &'static str {
        self.instance.kernel.name()
    }

    /// Whether one product of the problem has a tile for each block that the device runs at a time.
    fn fills<E: Elements, D: DeviceData>(
        &self,
        stream: &Stream,
        problem: &Problem<'_, E, D>,
    ) -> bool {
        let (m, n, _) = problem.extents();
        let [tile_m, tile_n, _] = self.instance.tile.map(|it| it as usize);
        let multiprocessors = DeviceSpeed::of(stream.device()).multiprocessors;
        let at_a_time = multiprocessors as usize * self.instance.blocks as usize;
        m.div_ceil(tile_m) * n.div_ceil(tile_n) >= at_a_time
    }
}

/// Plans a C of the type that the kernels write: with the fastest of the instances, or with the one of this name. A
/// multiprocessor's peak is `peak` products in a clock.
pub fn to_own_type<T: Elements, O: Output<Acc = T::Factor>>(
    kernels: Kernels<T, O>,
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, O>,
    kernel: Option<&str>,
) -> Result<Option<LaunchPlan<T, O>>> {
    // The kernels do not fuse it.
    if problem.epilogue.activation == Some(Activation::GeluErf) {
        return to_any_type(kernels, peak, stream, problem, kernel);
    }
    match problem.rows.are_own() {
        true => own_type_by(kernels.plain, peak, stream, problem, kernel),
        false => own_type_by(kernels.named, peak, stream, problem, kernel),
    }
}

/// [`to_own_type`] with these instances.
fn own_type_by<T: Elements, O: Output<Acc = T::Factor>, Epi: OfProblem<T, O>>(
    instances: &'static [instance::Instance<T, O, Epi>],
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, O>,
    kernel: Option<&str>,
) -> Result<Option<LaunchPlan<T, O>>> {
    let Some(candidate) = choose(instances, peak, stream, problem, kernel, true) else {
        return Ok(None);
    };
    let (name, time) = (candidate.name(), candidate.microseconds);
    let kernel = Multistage::new(stream, candidate)?;
    Ok(Some(match candidate.splits {
        1 => LaunchPlan::new(name, time, Direct(kernel)),
        _ => LaunchPlan::new(name, time, ByPartials(kernel)),
    }))
}

/// Plans a C of any type: a second kernel makes it, also of all products of a batch whose C lie below one another.
pub fn to_any_type<T: Elements, O: Output<Acc = T::Factor>, D: Output<Acc = T::Factor>>(
    kernels: Kernels<T, O>,
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernel: Option<&str>,
) -> Result<Option<LaunchPlan<T, D>>> {
    // The second kernel has one C, whose rows are in order.
    let is_one = problem.groups.are_one() || problem.ld_of_stacked_c().is_some();
    if !is_one || matches!(problem.rows, Rows::OfC(_)) {
        return Ok(None);
    }
    match problem.rows.are_own() {
        true => any_type_by(kernels.plain, peak, stream, problem, kernel),
        false => any_type_by(kernels.named, peak, stream, problem, kernel),
    }
}

/// [`to_any_type`] with these instances.
fn any_type_by<T, O, D, Epi>(
    instances: &'static [instance::Instance<T, O, Epi>],
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernel: Option<&str>,
) -> Result<Option<LaunchPlan<T, D>>>
where
    T: Elements,
    O: Output<Acc = T::Factor>,
    D: Output<Acc = T::Factor>,
    Epi: OfProblem<T, O>,
{
    let Some(candidate) = choose(instances, peak, stream, problem, kernel, false) else {
        return Ok(None);
    };
    // Products that fill the device alone lose little by a launch each, which another family may have faster kernels for.
    if kernel.is_none() && !problem.groups.are_one() && candidate.fills(stream, problem) {
        return Ok(None);
    }
    let second = DeviceSpeed::of(stream.device()).microseconds(SECOND_KERNEL);
    let time = candidate.microseconds + second;
    let kernel = Multistage::new(stream, candidate)?;
    Ok(Some(LaunchPlan::new(
        candidate.name(),
        time,
        ByPartials(kernel),
    )))
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
fn names_of<T, O: Output, Epi>(
    instances: &'static [instance::Instance<T, O, Epi>],
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
    /// Of a matrix, which is the first A (0) or B (1) of these products.
    fn new<T: Elements>(matrix: Matrix<'_, T>, operand: usize, groups: &Groups<'_>) -> Self {
        let aligned = |bytes: usize| {
            matrix.starts_runs_at(bytes)
                && groups.are_apart(operand, bytes / size_of::<T>().min(bytes))
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
    let groups = &problem.groups;
    [
        Operand::new(problem.a, 0, groups),
        Operand::new(problem.b.transposed(), 1, groups),
    ]
}

/// The fastest way to launch an instance, which writes C, or only partials.
fn choose<T: Elements, O: Output<Acc = T::Factor>, Epi, D: DeviceData>(
    instances: &'static [instance::Instance<T, O, Epi>],
    peak: f64,
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernel: Option<&str>,
    writes_c: bool,
) -> Option<Candidate<T, O, Epi>> {
    let (m, n, k) = problem.extents();
    let [a, b] = operands(problem);
    let device = DeviceSpeed::of(stream.device());
    let mut fastest: Option<Candidate<_, _, _>> = None;
    for transposed in [false, true] {
        // Groups, tables and the partials of a batch have rows, not columns.
        let has_rows = problem.groups.have_sizes()
            || !problem.rows.are_own()
            || !writes_c && !problem.groups.are_one();
        if transposed && has_rows {
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
                device,
                bytes: size_of::<T>(),
                strided: transposed,
                speed: peak * instance.speed,
            };
            for split_k_tiles in estimate.all_split_k_tiles() {
                let microseconds = estimate.time(split_k_tiles);
                if fastest.is_none_or(|it| microseconds < it.microseconds) {
                    fastest = Some(Candidate {
                        instance,
                        transposed,
                        split_k_tiles,
                        splits: estimate.splits(split_k_tiles),
                        microseconds,
                    });
                }
            }
        }
    }
    fastest
}

/// The epilogue of kernels for matrices, or of those for rows of tables.
trait OfProblem<T: Elements, O: ElementC<Acc = T::Factor>>: Epilogue<Acc = T::Factor> {
    /// The whole epilogue of the problem.
    fn of(problem: Problem<'_, T, O>) -> Self;

    /// Leaves accumulators as they are.
    fn identity() -> Self;
}

impl<T: Elements, O: ElementC<Acc = T::Factor>> OfProblem<T, O> for Fused<O> {
    fn of(problem: Problem<'_, T, O>) -> Self {
        problem.fused()
    }

    fn identity() -> Self {
        Fused::identity()
    }
}

/// The store finds the old elements of C. A residual is found by its rows.
impl<T: Elements, O: ElementC<Acc = T::Factor>> OfProblem<T, O> for FusedWithOld<O> {
    fn of(problem: Problem<'_, T, O>) -> Self {
        let Problem { alpha, beta, .. } = problem;
        let (of_old, of_residual) = match problem.epilogue.residual {
            None => (beta, T::Factor::ZERO),
            Some(_) => (T::Factor::ZERO, beta),
        };
        let without_old = Problem {
            alpha: T::Factor::ONE,
            beta: of_residual,
            ..problem
        };
        Then {
            first: Scale {
                alpha,
                beta: of_old,
            },
            second: without_old.fused(),
        }
    }

    fn identity() -> Self {
        Then {
            first: Scale::ONE,
            second: Fused::identity(),
        }
    }
}

/// A kernel writes C.
struct Direct<T: Elements, O: Output<Acc = T::Factor>, Epi: OfProblem<T, O>>(Multistage<T, O, Epi>);

impl<T: Elements, O: Output<Acc = T::Factor>, Epi: OfProblem<T, O>> Launch<T, O>
    for Direct<T, O, Epi>
{
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, O>) -> Result<()> {
        let Direct(kernel) = self;
        let problem = kernel.oriented(problem);
        let args = kernel.args_to_c(&problem);
        let (a, b, c) = (problem.a.view, problem.b.view, problem.c.view.address());
        let epilogue = Epi::of(problem);
        let nowhere = GlobalMut::from_ptr(std::ptr::null_mut());
        kernel.each_launch(args, |groups, args| {
            // SAFETY: the matrices and sizes were checked against their memory. C overlaps neither A nor B, and is
            // borrowed mutably. There is an index for each row of the product, and the kernel compares each index with
            // the table.
            unsafe {
                let all = (a, b, pointer_mut(c), nowhere, args, epilogue);
                kernel.launch(stream, groups, args, all)
            }
        })
    }
}

/// A kernel writes partials, and a second kernel makes C of them.
struct ByPartials<T: Elements, O: Output<Acc = T::Factor>, Epi: OfProblem<T, O>>(
    Multistage<T, O, Epi>,
);

impl<T, O, D, Epi> Launch<T, D> for ByPartials<T, O, Epi>
where
    T: Elements,
    O: Output<Acc = T::Factor>,
    D: Output<Acc = T::Factor>,
    Epi: OfProblem<T, O>,
{
    fn launch(&self, stream: &Stream, problem: Problem<'_, T, D>) -> Result<()> {
        let ByPartials(kernel) = self;
        let problem = kernel.oriented(problem);
        let (mut partials, args) = kernel.partials(stream, &problem)?;
        let nowhere = GlobalMut::<O>::from_ptr(std::ptr::null_mut());
        let (a, b) = (problem.a.view, problem.b.view);
        let to = partials.elements.view_mut();
        let to = pointer_mut::<T::Factor>(to.address());
        kernel.each_launch(args, |groups, args| {
            // SAFETY: as in `Direct`. The partials have room for each split, or for each product of a batch, and are
            // borrowed until the second kernel is enqueued.
            unsafe {
                let all = (a, b, nowhere, to, args, Epi::identity());
                kernel.launch(stream, groups, args, all)
            }
        })?;
        let problem = match problem.ld_of_stacked_c() {
            Some(ld) if !problem.groups.are_one() => problem.with_stacked_c(ld)?,
            _ => problem,
        };
        // SAFETY: the partials have C's extents.
        unsafe { partials.finish(stream, problem) }
    }
}

/// The rows of the problem's A and C. Rows that no indices name stand for themselves.
fn named_operands<T: Elements, D: DeviceData>(problem: &Problem<'_, T, D>) -> NamedOperands {
    let (a, c) = (&problem.a, &problem.c);
    let own = |rows: usize, ld: usize| NamedRows {
        table_rows: rows as i64,
        ld: ld as i64,
        ..NamedRows::NONE
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

/// A kernel that is loaded, and how it is launched.
struct Multistage<T: Elements, O: Output<Acc = T::Factor>, Epi: OfProblem<T, O>> {
    function: Function<instance::Arguments<T, O, Epi>>,
    candidate: Candidate<T, O, Epi>,
}

impl<T: Elements, O: Output<Acc = T::Factor>, Epi: OfProblem<T, O>> Multistage<T, O, Epi> {
    /// Loads the candidate's kernel.
    fn new(stream: &Stream, candidate: Candidate<T, O, Epi>) -> Result<Self> {
        let kernel = candidate.instance.kernel;
        Ok(Multistage {
            function: stream.device().load(&cutlet_kernels::PTX, kernel)?,
            candidate,
        })
    }

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
            && problem.groups.are_apart(2, 4)
            && c.columns().is_multiple_of(4);
        MultistageArgs {
            strides_c: c.strides(),
            in_fours: in_fours.into(),
            is_identity: problem.is_product_alone().into(),
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
        // Those of a batch, which has one split, lie below one another.
        let rows = m * problem.groups.count();
        let partials = Partials::new(stream, [rows, n.next_multiple_of(4)], splits)?;
        let [_, ld] = partials.extent;
        let mut args = MultistageArgs {
            partial_ld: ld as i64,
            split_stride: (m * ld) as i64,
            ..self.args(problem)
        };
        let [inner, outer] = &mut args.groups.strides;
        inner[2] = (m * ld) as i64;
        outer[2] = (problem.groups.modes[0].count * m * ld) as i64;
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
            rows: named_operands(problem),
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
        all: impl LaunchArgs<instance::Arguments<T, O, Epi>>,
    ) -> Result<()> {
        // SAFETY: as promised by the caller.
        unsafe { stream.launch(&self.function, (args.raster.size(), groups), all)? };
        Ok(())
    }
}
