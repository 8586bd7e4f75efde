//! The launch of a kernel of the sm_90 family. Its tensor maps and arguments are made once for each place.

use std::sync::{Mutex, PoisonError};

use cutlet_device::collective::{ArrivalCounters, DynamicCluster, SmAffinity, Splits};
use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_device::{DeviceData, PtxLibrary};
use cutlet_host::{Function, LaunchConfig, Stream, TensorMapElement, TensorMapSpec, ViewMut};
use cutlet_kernels::gemm::args::{
    Args, OutputArgs, SchedulerArgs, TableArgs, TmaArgs, raster, read_once,
};
use cutlet_kernels::gemm::epilogue::{Epilogue, EpilogueOperands, Scale};
use cutlet_kernels::gemm::scheduler::GroupArgs;
use cutlet_kernels::gemm::sm90::instance::{Arguments, Instance};
use cutlet_kernels::gemm::sm90::kernel_traits::KernelTraits;
use cutlet_kernels::gemm::sm90::{AccOf, ElementTypes, Scaling};
use cutlet_kernels::gemm::store::PartialOutput;

use super::fixup::FixupCounters;
use super::prefetch::prefetch;
use super::sm_affinity::{InCommon, slots};
use super::{Selected, tma_stores};
use crate::Order::RowMajor;
use crate::gemm::choice::cost::{Candidate, CostInput, OutputPath};
use crate::gemm::partials::Partials;
use crate::matrix::pointer_mut;
use crate::recently_used::RecentlyUsed;
use crate::{Matrix, MatrixMut, Result};

/// The element types of a kernel, of which tensor maps can be made.
pub trait Types: ElementTypes<In: TensorMapElement, Out: TensorMapElement> {}
impl<T: ElementTypes<In: TensorMapElement, Out: TensorMapElement>> Types for T {}

/// A kernel that is loaded.
pub struct Loaded<T: Types, Epi: Epilogue> {
    traits: &'static KernelTraits,
    function: Function<Arguments<T, Epi>>,
}

/// What a launch passes.
pub struct Parameters<Epi> {
    /// Blocks of the grid: whole clusters.
    pub blocks: u32,
    /// Of A, B and C.
    pub maps: [TensorMap; 3],
    /// Address of C, or of the partial output.
    pub output: u64,
    pub workspace: Workspace,
    pub args: Args,
    pub epilogue: Epi,
}

impl<T: Types, Epi: Epilogue> Loaded<T, Epi> {
    /// Loads the instance's kernel from its library.
    pub fn new(
        stream: &Stream,
        library: &PtxLibrary,
        instance: &'static Instance<T, Epi>,
    ) -> Result<Self> {
        let function = stream.device().load(library, instance.kernel)?;
        let traits = &instance.traits;
        Ok(Loaded { traits, function })
    }

    /// Launches the kernel, in its clusters. It may begin early.
    ///
    /// # Safety
    /// The parameters must be those that the kernel needs. All memory must live until the stream has got past the
    /// launch.
    pub unsafe fn launch(&self, stream: &Stream, parameters: Parameters<Epi>) -> Result<()> {
        let [map_a, map_b, map_c] = parameters.maps;
        let Workspace { partials, arrivals } = parameters.workspace;
        let mut args = parameters.args;
        args.output.arrivals = arrivals;
        let config = LaunchConfig {
            cluster: self.traits.blocks_of_cluster(),
            ..LaunchConfig::dependent(parameters.blocks)
        };
        let (c, partials) = (pointer_mut(parameters.output), pointer_mut(partials));
        let all = (map_a, map_b, map_c, c, partials, args, parameters.epilogue);
        // SAFETY: as promised by the caller.
        unsafe { stream.launch(&self.function, config, all)? };
        Ok(())
    }
}

/// A kernel that is chosen for a problem, loaded, and ready to be launched.
pub struct Prepared<T: Types, Epi: Epilogue> {
    candidate: Candidate,
    /// The problem as the kernel solves it.
    input: CostInput,
    kernel: Loaded<T, Epi>,
    /// The tensor maps and arguments of earlier launches.
    encoded: Mutex<RecentlyUsed<Place, Encoded, MOST_ENCODED>>,
}

/// The most launches whose tensor maps and arguments are kept: a model's layers are launched again and again, each
/// with its own weights. When there are more, those go whose last use is the longest ago.
const MOST_ENCODED: usize = 256;

/// What tensor maps and arguments depend on besides the plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    /// Addresses of A, B and the output.
    addresses: [u64; 3],
    /// Whether the epilogue reads C.
    reads_old: bool,
}

/// Tensor maps and arguments.
#[derive(Clone, Copy)]
struct Encoded {
    maps: [TensorMap; 3],
    args: Args,
}

/// Where a launch writes.
pub enum To<'a, 'c, T: DeviceData, Acc: DeviceData> {
    /// To C.
    C(&'a mut MatrixMut<'c, T>),
    /// To row-major matrices of accumulators that contain C's rows and columns, one below the other, one for each split.
    Partial {
        elements: ViewMut<'a, Acc>,
        output: PartialOutput,
        extent: [usize; 2],
    },
}

impl<T: DeviceData, Acc: DeviceData> To<'_, '_, T, Acc> {
    fn address(&self) -> u64 {
        match self {
            To::C(c) => c.view.address(),
            To::Partial { elements, .. } => elements.address(),
        }
    }
}

/// The fixup's memory.
pub struct Workspace {
    /// Address of the partials.
    partials: u64,
    arrivals: ArrivalCounters,
}

impl Workspace {
    /// No fixup runs.
    pub const NONE: Self = Self {
        partials: 0,
        arrivals: ArrivalCounters::NONE,
    };
}

impl<T: Types, Epi: Epilogue> Prepared<T, Epi> {
    /// Loads the instance's kernel from its library, to be launched as the candidate says.
    pub fn new(
        stream: &Stream,
        library: &PtxLibrary,
        (instance, candidate): Selected<T, Epi>,
        input: CostInput,
    ) -> Result<Self> {
        Ok(Self {
            candidate,
            input: input.oriented(candidate.instance),
            kernel: Loaded::new(stream, library, instance)?,
            encoded: Mutex::default(),
        })
    }

    /// How accumulators become C.
    pub fn path(&self) -> OutputPath {
        self.candidate.path
    }

    /// Whether the kernel computes Cᵀ.
    pub fn is_transposed(&self) -> bool {
        self.candidate.instance.transposed
    }

    /// Whether the kernel never reads C, whatever the epilogue says.
    pub fn never_reads_c(&self) -> bool {
        self.candidate.instance.overwrites_only || !EpilogueOperands::<Epi>::ARE_NONE
    }

    /// Computes C, or writes partial output.
    pub fn launch(
        &self,
        stream: &Stream,
        operands: [Matrix<'_, T::In>; 2],
        to: To<'_, '_, T::Out, AccOf<T>>,
        epilogue: Epi,
        workspace: Workspace,
    ) -> Result<()> {
        let output = to.address();
        let Encoded { maps, mut args } = self.encoded(operands, to, &epilogue)?;
        args.scheduler.affinity = self.slots(stream);
        let parameters = Parameters {
            blocks: self.candidate.blocks,
            maps,
            output,
            workspace,
            args,
            epilogue,
        };
        // SAFETY: the maps describe the matrices, which were checked against their memory. C and the epilogue's
        // operands were checked with the problem. C overlaps neither A nor B and is borrowed mutably. Partials have
        // room. There are as many slots as clusters, and counters for as many M atoms as there can be. Only launches of
        // this stream change slots and counters, and each launch leaves them ready for the next one.
        unsafe { self.kernel.launch(stream, parameters) }
    }

    /// The tensor maps and arguments of a launch: those of an earlier launch at the same place, or new ones.
    fn encoded(
        &self,
        operands: [Matrix<'_, T::In>; 2],
        to: To<'_, '_, T::Out, AccOf<T>>,
        epilogue: &Epi,
    ) -> Result<Encoded> {
        let [a, b] = operands.map(|operand| operand.view.address());
        let place = Place {
            addresses: [a, b, to.address()],
            reads_old: epilogue.reads_old(),
        };
        let mut earlier = self.encoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(encoded) = earlier.get(&place) {
            return Ok(encoded);
        }
        let encoded = self.encode(operands, to, epilogue)?;
        earlier.insert(place, encoded);
        Ok(encoded)
    }

    fn encode(
        &self,
        [a, b]: [Matrix<'_, T::In>; 2],
        to: To<'_, '_, T::Out, AccOf<T>>,
        epilogue: &Epi,
    ) -> Result<Encoded> {
        let (instance, input) = (self.candidate.instance, &self.input);
        let [a, b] = match instance.transposed {
            false => [a, b],
            true => [b.transposed(), a.transposed()],
        };
        let [_, box_b, box_c] = instance.boxes;
        let box_a = self.box_a(&a);
        let map_a = operand_map::<T>(&a, box_a)?;
        let map_b = operand_map::<T>(&b, box_b)?;
        // An unused map may be any map.
        let (ldc, stores_c, map_c) = match &to {
            To::C(c) if tma_stores(c) => {
                let spec = TensorMapSpec::rows(c.rows() as u64, c.columns() as u64, c.ld() as u64);
                (c.ld(), true, spec.encode(c.view.view(), box_c)?)
            }
            To::C(c) => (c.ld(), false, map_a),
            To::Partial { .. } => (0, false, map_a),
        };
        let (partial, partial_extent) = match to {
            To::C(_) => (PartialOutput::NONE, [0, 0]),
            To::Partial { output, extent, .. } => (output, extent),
        };
        let overwrites = stores_c && !epilogue.reads_old();
        let scheduler = self.scheduler_args(overwrites);
        let args = Args {
            prefetch: prefetch([a, b], input, &self.candidate, scheduler.raster.group()),
            scheduler,
            output: OutputArgs {
                arrivals: ArrivalCounters::NONE,
                ldc: ldc as i64,
                partial,
                partial_extent: instance.oriented(partial_extent).map(|it| it as i32),
                extent: [input.m as i32, input.n as i32],
            },
            tma: TmaArgs {
                bytes_a: instance.bytes_a(box_a.extent[1]),
                read_once: read_once([input.m, input.n], instance.tile),
                stores_c: stores_c.into(),
            },
            groups: GroupArgs::ONE,
            table: TableArgs::NONE,
        };
        Ok(Encoded {
            maps: [map_a, map_b, map_c],
            args,
        })
    }

    /// How the work is dealt out to blocks.
    fn scheduler_args(&self, overwrites: bool) -> SchedulerArgs {
        let (instance, input) = (self.candidate.instance, &self.input);
        let Candidate {
            splits: count,
            path,
            ..
        } = self.candidate;
        let writes_splits = path == OutputPath::SecondKernel && count > 1;
        let k_tiles = input.k_tiles(instance) as u32;
        SchedulerArgs {
            affinity: SmAffinity::NONE,
            cluster: DynamicCluster::new(instance.cluster),
            raster: raster([input.m, input.n], instance.tile, instance.cluster),
            splits: splits(&self.candidate, input, k_tiles),
            k_tiles,
            streamed: self.candidate.streamed,
            last: match (overwrites && self.candidate.streamed.count == 0) || writes_splits {
                true => instance.last([input.m, input.n]),
                false => [u32::MAX; 2],
            },
        }
    }

    /// The box of A's map. It ends at A's last row where it can: rows of C beyond are not stored, so that their A need
    /// not be zeros, unless threads read them. The lines of a box of column-major A run along m and cannot be left out.
    fn box_a(&self, a: &Matrix<'_, T::In>) -> TmaBox {
        let instance = self.candidate.instance;
        let [box_a, ..] = instance.boxes;
        let [line, lines] = box_a.extent;
        let lines = match a.order() {
            RowMajor if instance.cluster[1] == 1 && !T::Scaling::THREADS_READ_OPERANDS => {
                self.input.m.next_multiple_of(8).min(lines as usize) as u32
            }
            _ => lines,
        };
        TmaBox {
            extent: [line, lines],
            ..box_a
        }
    }

    /// The slots that the kernel's clusters claim, if they claim any.
    fn slots(&self, stream: &Stream) -> SmAffinity {
        if !self.candidate.claims_slots {
            return SmAffinity::NONE;
        }
        let instance = self.candidate.instance;
        let raster = raster(
            [self.input.m, self.input.n],
            instance.tile,
            instance.cluster,
        );
        let (blocks, in_common) = match instance.cluster {
            [rows, 1] => (rows, InCommon::Rows(raster.group())),
            [_, columns] => (columns, InCommon::Columns(raster.group())),
        };
        slots(stream, self.candidate.blocks / blocks, blocks, in_common)
    }

    /// Computes C with the fixup.
    pub fn launch_with_fixup(
        &self,
        stream: &Stream,
        operands: [Matrix<'_, T::In>; 2],
        c: &mut MatrixMut<'_, T::Out>,
        epilogue: Epi,
        counters: &FixupCounters,
    ) -> Result<()> {
        let [rows, columns] = self.candidate.instance.tile.map(|extent| extent as usize);
        let partials = stream.scratch::<AccOf<T>>(self.candidate.shares() * rows * columns)?;
        let workspace = Workspace {
            partials: partials.view().address(),
            arrivals: counters.arrivals(),
        };
        self.launch(stream, operands, To::C(c), epilogue, workspace)
    }
}

impl<T: Types> Prepared<T, Scale<AccOf<T>>> {
    /// Writes partial output to scratch memory, for a second kernel.
    pub fn launch_for_partials<'s>(
        &self,
        stream: &'s Stream,
        operands: [Matrix<'_, T::In>; 2],
    ) -> Result<Partials<'s, AccOf<T>>> {
        let Candidate {
            instance, splits, ..
        } = self.candidate;
        let [cluster_rows, cluster_columns] = instance.cluster_tile();
        let [rows, columns] = instance.oriented([
            self.input.m.next_multiple_of(cluster_rows),
            self.input.n.next_multiple_of(cluster_columns),
        ]);
        let mut partials = Partials::new(stream, [rows, columns], splits)?;
        let to = To::Partial {
            elements: partials.elements.view_mut(),
            output: PartialOutput::rows(columns, false),
            extent: [rows * splits as usize, columns],
        };
        self.launch(stream, operands, to, Scale::ONE, Workspace::NONE)?;
        Ok(partials)
    }
}

/// How a candidate splits k-tiles. Where rows do not start at cache lines, one line is in two k-tiles.
pub fn splits(candidate: &Candidate, input: &CostInput, k_tiles: u32) -> Splits {
    let count = candidate.splits;
    match input.lines.contains(&2) {
        true => Splits::consecutive(count, k_tiles),
        false => Splits::interleaved(count, k_tiles, 1),
    }
}

/// The tensor map of an operand of a kernel of these types, for boxes of `tile`.
pub fn operand_map<T: Types>(operand: &Matrix<'_, T::In>, tile: TmaBox) -> Result<TensorMap> {
    let (run, count) = operand.extents.run_and_count();
    let spec = TensorMapSpec::rows(count as u64, run as u64, operand.ld() as u64);
    let spec = match size_of::<T::In>() {
        // `wgmma` multiplies f32 as tf32.
        4 if !T::Scaling::THREADS_READ_OPERANDS => spec.as_tf32(),
        _ => spec,
    };
    Ok(spec.encode(operand.view, tile)?)
}
