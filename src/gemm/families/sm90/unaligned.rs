//! Products of an A and a B whose rows begin where TMA cannot read them, by kernels that copy words of both: the choice of
//! a kernel, and its launch.

use cutlet_device::DeviceData;
use cutlet_device::collective::{ArrivalCounters, Prefetch, SmAffinity, StreamedTiles};
use cutlet_host::{Function, LaunchConfig, Stream, TensorMapElement};
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::args::{Args, OutputArgs, SchedulerArgs, TmaArgs, raster, read_once};
use cutlet_kernels::gemm::epilogue::Scale;
use cutlet_kernels::gemm::sm90::instance::{Instance, UnalignedArguments};
use cutlet_kernels::gemm::store::PartialOutput;

use super::fixup::FixupCounters;
use super::grouped::scale;
use super::launch::Workspace;
use super::{Sixteen, of_orders, tma_stores};
use crate::gemm::families::speed;
use crate::gemm::problem::Problem;
use crate::gemm::registry::{Launch, Planned};
use crate::gemm::tune::model::{DeviceSpeed, FIXUP, PARTIAL, TMA_UNIT, overlapped};
use crate::matrix::{pointer, pointer_mut};
use crate::{Matrix, Order, Result};

/// A kernel that copies words of A and B.
pub type UnalignedInstance<T> = Instance<T, Scale, UnalignedArguments<T, Scale>>;

/// Plans a product with the fastest of these kernels, or with the one of this name. `otherwise` is the estimate of copies
/// and a kernel with TMA. None if these kernels are not estimated to be clearly faster, if TMA can read both operands and
/// no kernel is named, or if the kernels do not solve the problem.
pub fn unaligned<T: Sixteen>(
    stream: &Stream,
    problem: &Problem<'_, T>,
    kernel: Option<&str>,
    otherwise: f64,
) -> Result<Option<Planned<T, T>>> {
    if !fits(problem) || (kernel.is_none() && tma_reads(problem)) {
        return Ok(None);
    }
    let estimate = Estimate::new(stream, problem);
    let Some(chosen) = estimate.fastest(T::unaligned(), kernel) else {
        return Ok(None);
    };
    if chosen.clocks > CLEARLY * otherwise {
        return Ok(None);
    }
    Ok(Some(Planned {
        kernel: chosen.instance.kernel.name(),
        clocks: chosen.clocks,
        launch: Box::new(UnalignedLaunch {
            function: stream.device().load(&PTX, chosen.instance.kernel)?,
            chosen,
        }),
    }))
}

/// Whether the kernels solve the problem: a K-major A and B with elements, and nothing fused.
fn fits<T: Sixteen>(problem: &Problem<'_, T>) -> bool {
    let (m, n, k) = problem.extents();
    let are_k_major = problem.a.order() == Order::RowMajor && problem.b.order() == Order::ColMajor;
    are_k_major && m > 0 && n > 0 && k > 0 && problem.epilogue.are_none()
}

/// Whether TMA can read both operands.
fn tma_reads<T: Sixteen>(problem: &Problem<'_, T>) -> bool {
    problem.a.starts_runs_at(TMA_UNIT) && problem.b.starts_runs_at(TMA_UNIT)
}

/// A kernel that is chosen, and how it is launched.
struct Chosen<T: 'static> {
    instance: &'static UnalignedInstance<T>,
    /// Splits of each tile's k-tiles.
    splits: u32,
    blocks: u32,
    /// The estimated time.
    clocks: f64,
}

/// What the time of a launch depends on. All times are in clocks of a multiprocessor.
///
/// A warp copies its rows of a k-tile, shifts those that begin at the second element of a word, and does what each k-tile
/// needs once. A tile takes the time of its k-tiles, of its epilogue and of adding splits. Memory brings A and B once.
struct Estimate {
    extents: [usize; 3],
    /// The share of rows of A, and of B, that are shifted.
    shifted: [f64; 2],
    device: DeviceSpeed,
    allows_splits: bool,
}

// The first three constants are counted in the kernels' machine code. None is fitted to times.

/// Clocks for a warp to copy a row of a k-tile.
const COPY_ROW: f64 = 8.0;
/// Clocks for a warp to shift a row of a k-tile.
const SHIFT_ROW: f64 = 10.0;
/// Clocks of a warp's k-tile besides its rows: two barriers, a fence, two reads of shared memory, and the words beside the
/// tile.
const K_TILE: f64 = 250.0;
/// Clocks from the first copy of a tile to its first product.
const FIRST_K_TILE: f64 = 1500.0;
/// Clocks for threads to store 64×64 elements of C.
const EPILOGUE: f64 = 700.0;
/// The share of the memory's stated rate that kernels reach.
const OF_MEMORY_RATE: f64 = 0.85;
/// The most splits. With more, adding partials is more work than multiplying.
const MOST_SPLITS: usize = 16;
/// The share of the other estimate that makes these kernels clearly faster. Estimates of different kernels are compared,
/// so that small differences mean nothing.
const CLEARLY: f64 = 0.8;

impl Estimate {
    fn new<T: Sixteen>(stream: &Stream, problem: &Problem<'_, T>) -> Self {
        let (m, n, k) = problem.extents();
        Estimate {
            extents: [m, n, k],
            shifted: [&problem.a, &problem.b].map(shifted),
            device: speed(stream.device()),
            allows_splits: FixupCounters::of(stream).is_some(),
        }
    }

    /// The fastest way to launch one of these kernels, or the one of this name.
    fn fastest<T>(
        &self,
        instances: &'static [UnalignedInstance<T>],
        kernel: Option<&str>,
    ) -> Option<Chosen<T>> {
        let named = of_orders(instances, Order::RowMajor, Order::ColMajor, kernel);
        let ways = named.into_iter().flat_map(|instance| {
            let splits = 1..=self.most_splits(instance);
            splits.map(move |splits| self.chosen(instance, splits))
        });
        ways.min_by(|one, other| one.clocks.total_cmp(&other.clocks))
    }

    /// Splits for which there is a multiprocessor and a k-tile each.
    fn most_splits<T>(&self, instance: &UnalignedInstance<T>) -> usize {
        let [_, _, k] = self.extents;
        let at_once = self.multiprocessors() / self.tiles(instance);
        let k_tiles = k.div_ceil(instance.tile_k as usize);
        match self.allows_splits {
            true => at_once.min(k_tiles).clamp(1, MOST_SPLITS),
            false => 1,
        }
    }

    fn multiprocessors(&self) -> usize {
        self.device.multiprocessors as usize
    }

    fn tiles<T>(&self, instance: &UnalignedInstance<T>) -> usize {
        let [m, n, _] = self.extents;
        let [rows, columns] = instance.cluster_tile();
        m.div_ceil(rows) * n.div_ceil(columns)
    }

    /// The launch with this number of splits, and its estimated time.
    fn chosen<T>(&self, instance: &'static UnalignedInstance<T>, splits: usize) -> Chosen<T> {
        let [m, n, k] = self.extents;
        let [rows, columns] = instance.tile.map(f64::from);
        let size = rows * columns / 4096.0;
        let fixup = match splits {
            1 => 0.0,
            _ => FIXUP + PARTIAL * size * splits as f64,
        };
        let k_tiles = k.div_ceil(instance.tile_k as usize).div_ceil(splits) as f64;
        let tile = k_tiles * self.k_tile(instance) + EPILOGUE * size + fixup;
        let shares = self.tiles(instance) * splits;
        let blocks = shares.min(self.multiprocessors());
        let computing = shares.div_ceil(blocks) as f64 * tile;
        let rate = OF_MEMORY_RATE * self.device.memory_rate * self.multiprocessors() as f64;
        let memory = 2.0 * (m as f64 * k as f64 + n as f64 * k as f64 + m as f64 * n as f64) / rate;
        Chosen {
            instance,
            splits: splits as u32,
            blocks: blocks as u32,
            clocks: FIRST_K_TILE + overlapped(computing, memory),
        }
    }

    /// Clocks of a k-tile. Each of four warps has a quarter of the tile's rows, if they exist, and a scheduler of its own.
    fn k_tile<T>(&self, instance: &UnalignedInstance<T>) -> f64 {
        let [m, n, _] = self.extents;
        let rows = |operand: usize, extent: usize| {
            let of_warp = extent.min(instance.tile[operand] as usize / 4);
            of_warp as f64 * (COPY_ROW + SHIFT_ROW * self.shifted[operand])
        };
        K_TILE + rows(0, m) + rows(1, n)
    }
}

/// The share of an operand's rows that begin at the second element of a word.
fn shifted<T: DeviceData>(operand: &Matrix<'_, T>) -> f64 {
    let begins_odd = operand.view.address() / size_of::<T>() as u64 % 2 == 1;
    match (operand.ld().is_multiple_of(2), begins_odd) {
        (true, false) => 0.0,
        (true, true) => 1.0,
        (false, _) => 0.5,
    }
}

/// A kernel that is chosen and loaded.
struct UnalignedLaunch<T: TensorMapElement> {
    function: Function<UnalignedArguments<T, Scale>>,
    chosen: Chosen<T>,
}

impl<T: Sixteen> Launch<T, T> for UnalignedLaunch<T> {
    fn launch(&self, stream: &Stream, problem: Problem<'_, T>) -> Result<()> {
        let Chosen {
            instance, splits, ..
        } = self.chosen;
        // The plan's stream had counters. Without counters, tiles have no splits.
        let counters = FixupCounters::of(stream).filter(|_| splits > 1);
        let Some(counters) = counters else {
            return self.launch_with(stream, &problem, 1, Workspace::NONE);
        };
        let tile: usize = instance
            .tile
            .iter()
            .map(|extent| *extent as usize)
            .product();
        let (m, n, _) = problem.extents();
        let [rows, columns] = instance.cluster_tile();
        let shares = m.div_ceil(rows) * n.div_ceil(columns) * splits as usize;
        let partials = stream.scratch::<f32>(shares * tile)?;
        let workspace = Workspace::new(&partials, &counters);
        self.launch_with(stream, &problem, splits, workspace)
    }
}

impl<T: Sixteen> UnalignedLaunch<T> {
    /// Launches the kernel with this number of splits.
    fn launch_with(
        &self,
        stream: &Stream,
        problem: &Problem<'_, T>,
        splits: u32,
        workspace: Workspace,
    ) -> Result<()> {
        let Problem { a, b, c, .. } = problem;
        let config = LaunchConfig {
            grid: self.chosen.blocks.into(),
            overlap_previous: true,
        };
        // SAFETY: the operands were checked against their memory, and have elements. C overlaps neither A nor B and is
        // borrowed mutably. The workspace has room for the partials of all shares, and only launches of this stream change
        // its counters, each of which leaves them zero. All memory lives until the stream has got past the launch.
        unsafe {
            let all = (
                pointer(a.view),
                pointer(b.view),
                pointer_mut(c.view.address()),
                pointer_mut(workspace.partials),
                a.ld() as i64,
                b.ld() as i64,
                a.columns() as i32,
                self.args(problem, splits, workspace.arrivals),
                scale(problem),
            );
            stream.launch(&self.function, config, all)?;
        }
        Ok(())
    }

    /// The arguments of a launch besides matrices.
    fn args(&self, problem: &Problem<'_, T>, splits: u32, arrivals: ArrivalCounters) -> Args {
        let instance = self.chosen.instance;
        let (m, n, k) = problem.extents();
        let k_tiles = (k as u32).div_ceil(instance.tile_k);
        Args {
            scheduler: SchedulerArgs {
                affinity: SmAffinity::NONE,
                raster: raster([m, n], instance.tile, instance.cluster),
                splits,
                split_k_tiles: k_tiles.div_ceil(splits),
                k_tiles,
                streamed: StreamedTiles::NONE,
                last: [u32::MAX; 2],
            },
            prefetch: [Prefetch::NOTHING; 2],
            output: OutputArgs {
                arrivals,
                ldc: problem.c.ld() as i64,
                partial: PartialOutput::NONE,
                partial_extent: [0, 0],
                extent: [m as i32, n as i32],
            },
            tma: TmaArgs {
                bytes_a: 0,
                read_once: read_once([m, n], instance.tile),
                stores_c: tma_stores(&problem.c).into(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use cutlet_kernels::gemm::sm90::unaligned_instances::UNALIGNED_BF16;

    use super::*;
    use crate::gemm::tune::table::H200;

    /// The estimate for packed operands on an H200.
    fn on_h200(extents: [usize; 3]) -> Chosen<half::bf16> {
        let estimate = Estimate {
            extents,
            shifted: [0.5; 2],
            device: H200,
            allows_splits: true,
        };
        estimate
            .fastest(UNALIGNED_BF16, None)
            .expect("a kernel fits")
    }

    /// Memory takes 64000 clocks to bring B to an H200.
    #[test]
    fn a_row_takes_little_longer_than_memory() {
        let clocks = on_h200([1, 8192, 8191]).clocks;
        assert!((64e3..96e3).contains(&clocks), "{clocks}");
    }

    /// Tensor cores take 90000 clocks for the product on an H200, and copies of the operands take about as long.
    #[test]
    fn a_large_product_takes_longer_than_copies_and_tma() {
        let clocks = on_h200([4096, 4096, 4095]).clocks;
        assert!(clocks > 300e3, "{clocks}");
    }

    #[test]
    fn few_tiles_of_a_long_k_are_split() {
        let Chosen { splits, blocks, .. } = on_h200([64, 64, 16001]);
        assert!(
            splits > 4 && blocks <= 132,
            "{splits} splits, {blocks} blocks"
        );
        assert_eq!(on_h200([4096, 4096, 257]).splits, 1);
    }
}
