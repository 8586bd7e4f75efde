//! Kernels of several products, of rows of tables and of gates: the choice of a kernel, and its launch.

use std::ptr;

use cutlet_device::DeviceData;
use cutlet_device::collective::{
    ArrivalCounters, DynamicCluster, Prefetch, SmAffinity, Splits, StreamedTiles,
};
use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_host::{Stream, TensorMapElement, TensorMapSpec, View};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::args::{Args, OutputArgs, SchedulerArgs, TableArgs, TmaArgs, raster};
use cutlet_kernels::gemm::epilogue::Scale;
use cutlet_kernels::gemm::scheduler::GroupArgs;
use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::kernel_traits::KernelTraits;
use cutlet_kernels::gemm::store::PartialOutput;

use super::launch::{Loaded, Parameters, Types, Workspace};
use super::{Element, of_orders, tma_stores};
use crate::gemm::choice::cost::TMA_UNIT;
use crate::gemm::choice::device_speed::{DeviceSpeed, Work};
use crate::gemm::indexed_rows::Rows;
use crate::gemm::operand::Operand;
use crate::gemm::outer_mode::OuterMode;
use crate::gemm::problem::{Problem, Sizes, device_groups, divisor};
use crate::gemm::registry::{Launch, LaunchPlan};
use crate::matrix::{Extents, pointer};
use crate::{Matrix, Result};

/// Plans the problem with the fastest kernel, or with the one of this name. None if TMA cannot read the operands, or
/// something is fused besides gates.
pub fn grouped<T: Element>(
    stream: &Stream,
    problem: &Problem<'_, T>,
    kernel: Option<&str>,
) -> Result<Option<LaunchPlan<T, T>>> {
    let instances = match (&problem.rows, problem.epilogue.gate) {
        (Rows::Own, None) => T::grouped(),
        (Rows::Own, Some(_)) => T::swiglu(),
        (Rows::OfA(_), None) => T::gathered(),
        (Rows::OfC(_), None) => T::scattered(),
        (Rows::OfA(_) | Rows::OfC(_), Some(_)) => &[],
    };
    if !fits(problem) {
        return Ok(None);
    }
    let orders = [problem.a.order(), problem.b.order()];
    let instances = of_orders(instances, stream.device().backend(), orders, kernel);
    let traits = instances.iter().map(|instance| &instance.traits);
    let Some(candidate) = choose(stream, problem, traits) else {
        return Ok(None);
    };
    let is_it = |it: &&&'static Instance<T>| ptr::eq(&it.traits, candidate.traits);
    let Some(instance) = instances.iter().find(is_it) else {
        return Ok(None);
    };
    let time = candidate.microseconds;
    let launch = GroupedLaunch {
        kernel: Loaded::new(stream, &PTX, instance)?,
        candidate,
    };
    Ok(Some(LaunchPlan::new(instance.name(), time, launch)))
}

/// Whether 16 bytes of the operands can be read at a time, as TMA does, and nothing is fused.
pub fn fits<T: Operand, D: DeviceData>(problem: &Problem<'_, T, D>) -> bool {
    let is_read = |matrix: &Matrix<'_, T>, operand: usize| {
        let has_elements = matrix.rows() > 0 && matrix.columns() > 0;
        let unit = TMA_UNIT / size_of::<T>();
        let outer_k = problem.outer_k;
        let stride = outer_k.strides[operand];
        let has_k = outer_k.count == 1 || (stride > 0 && stride.is_multiple_of(unit));
        let aligned = problem.groups.are_apart(operand, unit);
        has_elements && has_k && aligned && matrix.starts_runs_at(TMA_UNIT)
    };
    // The rows of a table are copied, without an outer k.
    let can_sum = problem.outer_k.count == 1 || problem.rows.are_own();
    can_sum && problem.epilogue.are_none() && is_read(&problem.a, 0) && is_read(&problem.b, 1)
}

/// A kernel that may solve the problem.
pub struct Candidate {
    pub traits: &'static KernelTraits,
    pub blocks: u32,
    /// The estimated time.
    pub microseconds: f64,
    reads_b_once: bool,
}

/// The fastest of the kernels with these traits for the problem.
pub fn choose<T: Operand<Factor = f32>, D: DeviceData>(
    stream: &Stream,
    problem: &Problem<'_, T, D>,
    kernels: impl Iterator<Item = &'static KernelTraits>,
) -> Option<Candidate> {
    let estimate = Estimate::new(stream, problem);
    let overwrites = problem.beta == 0.0 && stores_c(problem) && !problem.groups.have_sizes();
    let fastest = kernels
        .filter(|traits| overwrites || !traits.overwrites_only)
        .filter(|traits| estimate.tiles(traits) < MOST_TILES)
        .map(|traits| (estimate.time(traits), traits))
        .min_by(|(one, _), (other, _)| one.total_cmp(other));
    let (microseconds, traits) = fastest?;
    let clusters = estimate.tiles(traits) / traits.blocks_of_cluster() as f64;
    let multiprocessors = stream.device().multiprocessors();
    let at_a_time = f64::from(multiprocessors / traits.blocks_of_cluster());
    Some(Candidate {
        traits,
        blocks: clusters.min(at_a_time) as u32 * traits.blocks_of_cluster(),
        microseconds,
        reads_b_once: !estimate.is_ragged && estimate.rows <= f64::from(traits.tile[0]),
    })
}

/// Whether TMA can store each C.
fn stores_c<T: Operand, D: DeviceData>(problem: &Problem<'_, T, D>) -> bool {
    tma_stores(&problem.c) && problem.groups.are_apart(2, TMA_UNIT / size_of::<D>())
}

/// The most tiles that the scheduler can count.
const MOST_TILES: f64 = (1u32 << 31) as f64;

/// What the time of a launch depends on.
struct Estimate {
    /// Rows of a group, on average.
    rows: f64,
    columns: f64,
    length: f64,
    groups: f64,
    /// Those that have an A, a B and a C of their own.
    own: [f64; 3],
    /// Whether groups have different numbers of rows.
    is_ragged: bool,
    device: DeviceSpeed,
}

/// Products of 16-bit elements that a multiprocessor adds in a clock, at its peak.
const PEAK: f64 = 2048.0;
/// The share of the memory's stated rate that kernels reach when they read.
const OF_MEMORY_RATE: f64 = 0.85;
/// How much longer C takes than as many bytes that are read, by tiles of 64 rows, which are stored in smaller pieces, and
/// by larger ones. Measured on an H100 where C is most of the bytes: 2048×2048×128, of which 256 took 0.91 ms and 1.06 ms
/// or more.
const C_OF_64_ROWS: f64 = 1.1;
const C_OF_MORE_ROWS: f64 = 1.3;
/// Clocks of a launch besides its tiles.
const LAUNCH: f64 = 3000.0;

impl Estimate {
    fn new<T: Operand, D: DeviceData>(stream: &Stream, problem: &Problem<'_, T, D>) -> Self {
        let (m, n, k) = problem.extents();
        let count = problem.groups.count();
        let rows = match problem.groups.sizes {
            Sizes::Ends(_) => m as f64 / count as f64,
            _ => m as f64,
        };
        Estimate {
            rows,
            columns: n as f64,
            length: (k.max(1) * problem.outer_k.count) as f64,
            groups: count as f64,
            own: [0, 1, 2].map(|operand| problem.groups.own(operand) as f64),
            is_ragged: problem.groups.have_sizes(),
            device: DeviceSpeed::of(stream.device()),
        }
    }

    /// Tiles of whole clusters. Groups of several sizes end in a part of a tile, mostly about half of one.
    fn tiles(&self, instance: &KernelTraits) -> f64 {
        let [rows, columns] = instance.cluster_tile().map(|extent| extent as f64);
        let down = match self.is_ragged {
            true => (self.rows / rows + 0.5).max(1.0),
            false => (self.rows / rows).ceil(),
        };
        let across = (self.columns / columns).ceil();
        down * across * self.groups * f64::from(instance.blocks_of_cluster())
    }

    /// The estimated time in microseconds.
    fn time(&self, instance: &KernelTraits) -> f64 {
        let [rows, columns] = instance.tile.map(f64::from);
        // What is stored while the next tile is multiplied, and what is multiplied while the one before is stored.
        let (speed, store) = match (instance.is_pingpong, instance.consumers, instance.tile) {
            (true, _, [128, _]) => (0.64, 500.0),
            (true, ..) => (0.55, 400.0),
            (_, 1, _) => (0.45, 900.0),
            (.., [_, 256]) => (0.80, 2600.0),
            _ => (0.70, 1500.0),
        };
        let shared = if instance.blocks_of_cluster() > 1 {
            1.03
        } else {
            1.0
        };
        let tile = rows * columns * self.length / (PEAK * speed * shared) + store;
        let rounds = (self.tiles(instance) / f64::from(self.device.multiprocessors)).ceil();
        let of_c = match instance.tile {
            [..=64, _] => C_OF_64_ROWS,
            _ => C_OF_MORE_ROWS,
        };
        let [own_a, own_b, own_c] = self.own;
        let elements = (self.rows * own_a + self.columns * own_b) * self.length
            + self.rows * self.columns * of_c * own_c;
        self.device.time_of(Work {
            computing: rounds * tile,
            bytes: 2.0 * elements,
            of_memory_rate: OF_MEMORY_RATE,
            latency: 0.0,
            overhead: LAUNCH,
        })
    }
}

/// A kernel that is chosen and loaded.
struct GroupedLaunch<T: Types> {
    kernel: Loaded<T, Scale>,
    candidate: Candidate,
}

impl<T: Element> Launch<T, T> for GroupedLaunch<T> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T>) -> Result<()> {
        let parameters = Parameters {
            blocks: self.candidate.blocks,
            maps: maps(&problem, self.candidate.traits)?,
            output: problem.c.view.address(),
            workspace: Workspace::NONE,
            args: args(&problem, &self.candidate),
            epilogue: Scale {
                alpha: problem.alpha,
                beta: problem.beta,
            },
        };
        // SAFETY: the maps describe the matrices, which were checked against their memory. C overlaps no operand and is
        // borrowed mutably. There is a size for each group, if there are any, and an index for each row of a table's
        // product. The kernel compares each index with the table.
        unsafe { self.kernel.launch(stream, parameters) }
    }
}

/// The maps of A, B and C. An unused map may be any map.
pub fn maps<T: Operand + TensorMapElement, D: TensorMapElement>(
    problem: &Problem<'_, T, D>,
    traits: &KernelTraits,
) -> Result<[TensorMap; 3]> {
    let Problem { a, b, c, rows, .. } = problem;
    let [box_a, box_b, box_c] = traits.boxes;
    let map_b = map(problem, 1, b.view, &b.extents, box_b)?;
    let map_a = match rows {
        Rows::OfA(_) => map_b,
        _ => map(problem, 0, a.view, &a.extents, box_a)?,
    };
    let map_c = match rows {
        Rows::Own | Rows::OfA(_) if stores_c(problem) => {
            map(problem, 2, c.view.view(), &c.extents, box_c)?
        }
        _ => map_b,
    };
    Ok([map_a, map_b, map_c])
}

/// The arguments of a launch.
pub fn args<T: Operand, D: DeviceData>(problem: &Problem<'_, T, D>, candidate: &Candidate) -> Args {
    let traits = candidate.traits;
    let (m, n, k) = problem.extents();
    let [box_a, ..] = traits.boxes;
    let [_, cluster_columns] = traits.cluster_tile();
    let inner_k_tiles = (k as u32).div_ceil(traits.tile_k);
    let k_tiles = inner_k_tiles * problem.outer_k.count as u32;
    Args {
        scheduler: SchedulerArgs {
            affinity: SmAffinity::NONE,
            cluster: DynamicCluster::new(traits.cluster),
            raster: raster([m, n], traits.tile, traits.cluster),
            splits: Splits::interleaved(1, k_tiles, 1),
            k_tiles,
            streamed: StreamedTiles::NONE,
            last: [u32::MAX; 2],
        },
        prefetch: [Prefetch::NOTHING; 2],
        output: OutputArgs {
            arrivals: ArrivalCounters::NONE,
            ldc: problem.c.ld() as i64,
            partial: PartialOutput::NONE,
            partial_extent: [0, 0],
            extent: [m as i32, problem.c.columns() as i32],
        },
        tma: TmaArgs {
            bytes_a: traits.bytes_a(box_a.extent[1]),
            read_once: [0, candidate.reads_b_once.into()],
            stores_c: stores_c(problem).into(),
        },
        groups: GroupArgs {
            groups: device_groups(&problem.groups),
            stacked: [0, 1, 2].map(|operand| {
                let modes = &problem.groups.modes;
                modes.map(|mode| (extent_of(&mode, operand) > 1).into())
            }),
            columns: n.div_ceil(cluster_columns) as u32,
            inner_k_tiles: divisor(inner_k_tiles as usize),
        },
        table: table_args(problem),
    }
}

/// The table of the problem, if there is one.
fn table_args<T: Operand, D: DeviceData>(problem: &Problem<'_, T, D>) -> TableArgs {
    let Problem { a, c, rows, .. } = problem;
    match rows {
        Rows::Own => TableArgs::NONE,
        Rows::OfA(rows) => TableArgs {
            elements: pointer(a.view),
            rows: rows.named(a.rows(), a.ld()),
            columns: a.columns() as i64,
        },
        Rows::OfC(rows) => TableArgs {
            rows: rows.named(c.rows(), c.ld()),
            ..TableArgs::NONE
        },
    }
}

/// The extent of a mode in the map of A (0), B (1) or C (2): 1 if the operand is the same along it.
fn extent_of(mode: &OuterMode, operand: usize) -> usize {
    match mode.strides[operand] {
        0 => 1,
        _ => mode.count,
    }
}

/// The map of A (0), B (1) or C (2): the matrix, the outer mode of k, which C does not have, and the modes of the batch.
fn map<T: Operand, D: DeviceData, E: TensorMapElement>(
    problem: &Problem<'_, T, D>,
    operand: usize,
    view: View<'_, E>,
    extents: &Extents,
    tile: TmaBox,
) -> Result<TensorMap> {
    let (run, lines) = extents.run_and_count();
    let mut spec = TensorMapSpec::rows(lines as u64, run as u64, extents.ld as u64);
    let outer_k = (operand < 2).then_some(&problem.outer_k);
    for mode in outer_k.into_iter().chain(&problem.groups.modes) {
        let extent = extent_of(mode, operand) as u64;
        spec = spec.stacked(extent, mode.strides[operand] as u64);
    }
    Ok(spec.encode(view, tile)?)
}
