//! GEMM in bf16 and f16 on Hopper's tensor cores: operands as TMA needs them, the tensor maps of a
//! problem, and the launch of the instance that [`choose`] picks.
//!
//! An instance writes C of its operands' type itself. Any other C, and what the instances at hand
//! cannot fuse, is made of sums in f32 that it leaves: in C itself where those are all that is asked
//! for, else in scratch memory, from where another kernel takes them to C. Where blocks share a tile's steps, the
//! parts of its sums go to scratch memory, too, and either the last of these blocks adds them or that kernel does.

use std::fmt::Display;

use cutlet_device::DeviceData;
use cutlet_device::collective::{ArrivalCounters, SmAffinity};
use cutlet_device::sm90::{TensorMap, TmaBox};
use cutlet_host::{LaunchConfig, Stream, TensorMapElement, TensorMapSpec, ViewMut};
use cutlet_kernels::gemm_wgmma::instances::{
    BF16, F16, GELU_BF16, GELU_F16, LINEAR_BF16, LINEAR_F16, SILU_BF16, SILU_F16,
};
use cutlet_kernels::gemm_wgmma::parts::{sum_parts_bf16, sum_parts_f16};
use cutlet_kernels::gemm_wgmma::{
    self, Activation, AtLeast, Epilogue, Gelu, GeluForBf16, Instance, Leave, Linear, Scale, Silu,
    Then,
};
use half::{bf16, f16};

use super::choose::{self, Choice, Finish, Shape};
use super::fixups::Fixups;
use super::operand::{LINE, TmaOperand, UNIT};
use super::prefetch::prefetch;
use super::seats::{Common, seats};
use super::sums::{Output, SumParts, Sums};
use super::{Problem, no_instance, sealed};
use crate::Order::{self, ColMajor, RowMajor};
use crate::matrix::pointer_mut;
use crate::{Error, Matrix, MatrixMut, Result};

/// The share of the time of an instance that fuses, by the model, below which another one leaves its sums to another
/// kernel. Where they are as fast by the model, fusing is: 0.99 of cuBLASLt's speed against
/// 0.86 at 2048×5120×20480 with a bias.
const SUMS_PAY: f64 = 0.95;

/// An instance that fuses something, the activation `A` at last.
type Fusing<T, A> = Instance<T, Then<Linear<T>, A>>;

/// An element type with instances.
trait Sixteen: TensorMapElement + Output {
    /// Those without anything fused.
    fn all() -> &'static [Instance<Self>];
    /// Those that fuse something and no activation, or relu.
    fn linear() -> &'static [Fusing<Self, AtLeast>];
    /// What computes gelu.
    type Gelu: Epilogue;
    const GELU: Self::Gelu;
    /// Those that fuse something and gelu.
    fn gelu() -> &'static [Fusing<Self, Self::Gelu>];
    /// Those that fuse something and silu.
    fn silu() -> &'static [Fusing<Self, Silu>];
    /// What adds the parts of sums where nothing is fused.
    const SUM_PARTS_PLAIN: &'static SumParts<Self, Scale>;
}

macro_rules! sixteen {
    ($($element:ty: $all:ident, $linear:ident, $gelu:ident by $gelu_type:ident, $silu:ident,
        $sum_parts:ident;)+) => {$(
        impl Sixteen for $element {
            fn all() -> &'static [Instance<Self>] {
                $all
            }
            fn linear() -> &'static [Fusing<Self, AtLeast>] {
                $linear
            }
            type Gelu = $gelu_type;
            const GELU: $gelu_type = $gelu_type;
            fn gelu() -> &'static [Fusing<Self, $gelu_type>] {
                $gelu
            }
            fn silu() -> &'static [Fusing<Self, Silu>] {
                $silu
            }
            const SUM_PARTS_PLAIN: &'static SumParts<Self, Scale> = &$sum_parts;
        }
    )+};
}
sixteen! {
    bf16: BF16, LINEAR_BF16, GELU_BF16 by GeluForBf16, SILU_BF16, sum_parts_bf16;
    f16: F16, LINEAR_F16, GELU_F16 by Gelu, SILU_F16, sum_parts_f16;
}

macro_rules! launch {
    ($($element:ty => $c:ty: $launch:ident;)+) => {$(
        impl sealed::Launch<$c> for $element {
            fn launch(
                stream: &Stream,
                problem: Problem<'_, Self, $c>,
                named: Option<&str>,
            ) -> Result<()> {
                let device = stream.device();
                can_run(device.compute_capability(), || device.describe())?;
                $launch(stream, problem, named)
            }

            fn instances(a: Order, b: Order) -> Vec<&'static str> {
                names(of_orders(<$element>::all(), a, b, None))
            }

            fn fused_instances(
                a: Order,
                b: Order,
                activation: Option<Activation>,
            ) -> Vec<&'static str> {
                match activation {
                    None | Some(Activation::Relu) => {
                        names(of_orders(<$element>::linear(), a, b, None))
                    }
                    Some(Activation::Gelu) => names(of_orders(<$element>::gelu(), a, b, None)),
                    Some(Activation::Silu) => names(of_orders(<$element>::silu(), a, b, None)),
                }
            }
        }
    )+};
}
launch! {
    bf16 => bf16: to_same_type;
    f16 => f16: to_same_type;
    bf16 => f32: to_f32;
    f16 => f32: to_f32;
    bf16 => f16: to_other_type;
    f16 => bf16: to_other_type;
}

/// The compute capability that has `wgmma`, and that the instances are compiled for.
const HOPPER: (u32, u32) = (9, 0);

/// Refuses a GPU of this compute capability if it cannot run the instances.
fn can_run<D: Display>(capability: Option<(u32, u32)>, describe: impl FnOnce() -> D) -> Result<()> {
    match capability {
        Some((major, minor)) if (major, minor) != HOPPER => Err(Error::Device {
            asked: "gemm of bf16 or f16, whose kernels are for Hopper (compute capability 9.0),",
            found: format!("{}, compute capability {major}.{minor}", describe()),
        }),
        _ => Ok(()),
    }
}

/// The instances for operands of these orders, or the one of them that is named.
fn of_orders<T, Epi>(
    all: &'static [Instance<T, Epi>],
    a: Order,
    b: Order,
    named: Option<&str>,
) -> Vec<&'static Instance<T, Epi>> {
    let k_major = [a == RowMajor, b == ColMajor];
    all.iter()
        .filter(|instance| instance.k_major == instance.oriented(k_major))
        .filter(|instance| named.is_none_or(|name| instance.kernel.name() == name))
        .collect()
}

fn names<T, Epi>(instances: Vec<&'static Instance<T, Epi>>) -> Vec<&'static str> {
    let names = instances.into_iter().map(|instance| instance.kernel.name());
    names.collect()
}

/// Refuses a name that none of the instances that fit the problem has.
fn at_least_one(count: usize, named: Option<&str>) -> Result<()> {
    match count {
        0 => Err(no_instance(named)),
        _ => Ok(()),
    }
}

/// C of the operands' type.
fn to_same_type<T: Sixteen>(
    stream: &Stream,
    mut problem: Problem<'_, T>,
    named: Option<&str>,
) -> Result<()> {
    if problem.extras.are_none() {
        let plain = of_orders(T::all(), problem.a.order(), problem.b.order(), named);
        at_least_one(plain.len(), named)?;
        let call = Call::new(stream, &problem)?;
        let scale = Scale {
            alpha: problem.alpha,
            beta: problem.beta,
        };
        let overwrites = problem.beta == 0.0 && tma_stores(&problem.c);
        let (writing, leaving): (Vec<_>, Vec<_>) = plain
            .into_iter()
            .partition(|instance| overwrites || !instance.overwrites_only);
        let c = &mut problem.c;
        return match call.fastest(&writing) {
            Some((choice, Some(fixups))) => call.fix_up(&choice, scale, To::C(c), &fixups),
            Some((choice, None)) if choice.finish == Finish::Block => {
                call.multiply(&choice, scale, To::C(c), Workspace::NONE)
            }
            Some((choice, None)) => {
                let sums = call.leave_sums(&choice)?;
                // SAFETY: the factors are all that there is, and the sums are of C.
                unsafe { sums.add(stream, T::SUM_PARTS_PLAIN, scale, c) }
            }
            // The one that was named cannot write C by itself.
            None => call.by_sums(&leaving, problem, named),
        };
    }
    let at_least = |floor| AtLeast { floor, padding: 0 };
    match problem.extras.activation {
        None => fuse(
            stream,
            problem,
            named,
            T::linear(),
            at_least(f32::NEG_INFINITY),
        ),
        Some(Activation::Relu) => fuse(stream, problem, named, T::linear(), at_least(0.0)),
        Some(Activation::Gelu) => fuse(stream, problem, named, T::gelu(), T::GELU),
        Some(Activation::Silu) => fuse(stream, problem, named, T::silu(), Silu),
    }
}

/// C of the operands' type, with something fused: by an instance that does it, or by way of sums.
fn fuse<T: Sixteen, A: Epilogue>(
    stream: &Stream,
    mut problem: Problem<'_, T>,
    named: Option<&str>,
    fusing: &'static [Fusing<T, A>],
    activation: A,
) -> Result<()> {
    let fusing = match problem.reads_pairs() && tma_stores(&problem.c) {
        true => of_orders(fusing, problem.a.order(), problem.b.order(), named),
        false => Vec::new(),
    };
    let leaving = of_orders(T::all(), problem.a.order(), problem.b.order(), named);
    at_least_one(fusing.len() + leaving.len(), named)?;
    let call = Call::new(stream, &problem)?;
    let by_itself = choose::fastest(&fusing, &call.shape);
    let by_sums = choose::fastest(&leaving, &call.shape_for_sums());
    match (by_itself, by_sums) {
        (Some(choice), other)
            if other
                .as_ref()
                .is_none_or(|it| SUMS_PAY * choice.clocks <= it.clocks) =>
        {
            let epilogue = Then {
                first: problem.linear(),
                second: activation,
            };
            call.multiply(&choice, epilogue, To::C(&mut problem.c), Workspace::NONE)
        }
        (_, Some(choice)) => call.finish_sums(&choice, problem),
        (_, None) => Err(no_instance(named)),
    }
}

/// C of f32: the sums themselves, times alpha, where they are what is asked for, or is to be added to C, and threads can
/// write them there.
fn to_f32<T: Sixteen>(
    stream: &Stream,
    mut problem: Problem<'_, T, f32>,
    named: Option<&str>,
) -> Result<()> {
    let Problem { alpha, beta, .. } = problem;
    let c = &problem.c;
    let pairs = c.starts_runs_at(2 * size_of::<f32>()) && c.columns().is_multiple_of(2);
    let adds = beta == 1.0;
    let are_sums = problem.extras.are_none() && (adds || beta == 0.0);
    if !(are_sums && pairs) {
        return to_other_type(stream, problem, named);
    }
    let leaving = of_orders(T::all(), problem.a.order(), problem.b.order(), named);
    at_least_one(leaving.len(), named)?;
    let mut call = Call::new(stream, &problem)?;
    call.shape.c_is_sums = true;
    if adds {
        call.shape.bytes_c *= 2;
    }
    match choose::fastest(&leaving, &call.shape) {
        Some(choice) if choice.finish == Finish::Block => {
            let c = &mut problem.c;
            let to = To::Sums {
                leave: Leave::rows(c.ld(), adds),
                extent: [c.rows(), c.columns()],
                elements: c.view.reborrow(),
            };
            call.multiply(&choice, Scale { alpha, beta: 0.0 }, to, Workspace::NONE)
        }
        Some(choice) => call.finish_sums(&choice, problem),
        None => Err(no_instance(named)),
    }
}

/// C of a type that no instance writes.
fn to_other_type<T: Sixteen, D: Output>(
    stream: &Stream,
    problem: Problem<'_, T, D>,
    named: Option<&str>,
) -> Result<()> {
    let leaving = of_orders(T::all(), problem.a.order(), problem.b.order(), named);
    at_least_one(leaving.len(), named)?;
    Call::new(stream, &problem)?.by_sums(&leaving, problem, named)
}

/// What all launches of one call share: the operands, as TMA reads them.
struct Call<'a, T: DeviceData> {
    stream: &'a Stream,
    a: TmaOperand<'a, T>,
    b: TmaOperand<'a, T>,
    shape: Shape,
}

/// Where a launch writes.
enum To<'a, 'c, T: DeviceData> {
    /// To C of the operands' type.
    C(&'a mut MatrixMut<'c, T>),
    /// To row-major rows and columns of f32 that contain C's, those of each part of the steps below those of the part
    /// before.
    Sums {
        elements: ViewMut<'a, f32>,
        leave: Leave,
        extent: [usize; 2],
    },
}

/// What the blocks have that add parts of sums.
struct Workspace {
    /// Where they leave them to each other.
    parts: u64,
    /// Where they count themselves.
    arrivals: ArrivalCounters,
}

impl Workspace {
    /// Nobody adds any.
    const NONE: Self = Self {
        parts: 0,
        arrivals: ArrivalCounters::NONE,
    };
}

impl<'a, T: Sixteen> Call<'a, T> {
    fn new<D: DeviceData>(stream: &'a Stream, problem: &Problem<'a, T, D>) -> Result<Self> {
        let (m, n, k) = problem.extents();
        let a = TmaOperand::of(stream, problem.a)?;
        let b = TmaOperand::of(stream, problem.b)?;
        let shape = Shape {
            lines: [&a, &b].map(|operand| cache_lines(&operand.matrix())),
            bytes_c: size_of::<D>(),
            fixes_up: false,
            // Without any k, zeros are multiplied.
            ..Shape::plain([m, n, k.max(1)], stream.device().multiprocessors())
        };
        Ok(Call {
            stream,
            a,
            b,
            shape,
        })
    }

    /// The shape, for instances that leave all sums to another kernel.
    fn shape_for_sums(&self) -> Shape {
        Shape {
            leaves_sums: true,
            ..self.shape
        }
    }

    /// Computes C by the fastest of these, which leaves sums, and another kernel.
    fn by_sums<D: Output>(
        &self,
        leaving: &[&'static Instance<T>],
        problem: Problem<'_, T, D>,
        named: Option<&str>,
    ) -> Result<()> {
        match choose::fastest(leaving, &self.shape_for_sums()) {
            Some(choice) => self.finish_sums(&choice, problem),
            None => Err(no_instance(named)),
        }
    }

    /// Computes C by way of sums.
    fn finish_sums<D: Output>(
        &self,
        choice: &Choice<T, Scale>,
        problem: Problem<'_, T, D>,
    ) -> Result<()> {
        let sums = self.leave_sums(choice)?;
        // SAFETY: the sums are of the problem's C.
        unsafe { sums.finish(self.stream, problem) }
    }

    /// Leaves sums, which another kernel takes to C.
    fn leave_sums(&self, choice: &Choice<T, Scale>) -> Result<Sums> {
        let instance = choice.instance;
        let shape = self.shape.oriented(instance);
        let [cluster_rows, cluster_columns] = instance.cluster_tile();
        let [rows, columns] = instance.oriented([
            shape.m.next_multiple_of(cluster_rows),
            shape.n.next_multiple_of(cluster_columns),
        ]);
        let mut sums = Sums::new(self.stream, [rows, columns], choice.splits)?;
        let to = To::Sums {
            elements: sums.elements.view_mut(),
            leave: Leave::rows(columns, false),
            extent: [rows * choice.splits as usize, columns],
        };
        self.multiply(choice, Scale::ONE, to, Workspace::NONE)?;
        Ok(sums)
    }

    /// The choice among instances that write C, and where their blocks count themselves if they add parts, which a
    /// stream may have no words for.
    fn fastest(
        &self,
        instances: &[&'static Instance<T>],
    ) -> Option<(Choice<T, Scale>, Option<Fixups>)> {
        let with_fixups = Shape {
            fixes_up: true,
            ..self.shape
        };
        let choice = choose::fastest(instances, &with_fixups)?;
        if choice.finish != Finish::LastBlock {
            return Some((choice, None));
        }
        match Fixups::of(self.stream) {
            Some(fixups) => Some((choice, Some(fixups))),
            None => Some((choose::fastest(instances, &self.shape)?, None)),
        }
    }

    /// Computes C, the last block of each tile adding its parts.
    fn fix_up<Epi: Epilogue>(
        &self,
        choice: &Choice<T, Epi>,
        epilogue: Epi,
        to: To<'_, '_, T>,
        fixups: &Fixups,
    ) -> Result<()> {
        let [rows, columns] = choice.instance.tile.map(|extent| extent as usize);
        let parts = self.stream.scratch::<f32>(choice.pieces * rows * columns)?;
        let workspace = Workspace {
            parts: parts.view().address(),
            arrivals: fixups.arrivals(),
        };
        self.multiply(choice, epilogue, to, workspace)
    }

    /// The seats that the instance's clusters claim, which visit groups of so many rows of clusters.
    fn seats<Epi: Epilogue>(&self, choice: &Choice<T, Epi>, group: u32) -> SmAffinity {
        if !choice.seated {
            return SmAffinity::NONE;
        }
        let (blocks, common) = match choice.instance.cluster {
            [rows, 1] => (rows, Common::Rows(group)),
            [_, columns] => (columns, Common::Columns(group)),
        };
        seats(self.stream, choice.blocks / blocks, blocks, common)
    }

    /// Computes C, or leaves its sums.
    fn multiply<Epi: Epilogue>(
        &self,
        choice: &Choice<T, Epi>,
        epilogue: Epi,
        to: To<'_, '_, T>,
        workspace: Workspace,
    ) -> Result<()> {
        let instance = choice.instance;
        let [a, b] = match instance.transposed {
            false => [self.a.matrix(), self.b.matrix()],
            true => [self.b.matrix().transposed(), self.a.matrix().transposed()],
        };
        let shape = self.shape.oriented(instance);
        let [box_a, box_b, box_c] = instance.boxes;
        // Rows that A does not have need not be filled with zeros: what becomes of them is not
        // stored. Where the box's lines run along m, it is not rows that are left out.
        let rows = match a.order() {
            RowMajor if instance.cluster[1] == 1 => {
                shape.m.next_multiple_of(8).min(box_a.extent[1] as usize) as u32
            }
            _ => box_a.extent[1],
        };
        let box_a = TmaBox {
            extent: [box_a.extent[0], rows],
            ..box_a
        };
        let map_a = operand_map(&a, box_a)?;
        let map_b = operand_map(&b, box_b)?;
        // Where the map is not used, any will do.
        let (ldc, tma_c, map_c) = match &to {
            To::C(c) if tma_stores(c) => {
                let spec = TensorMapSpec::rows(c.rows() as u64, c.columns() as u64, c.ld() as u64);
                (c.ld(), true, spec.encode(c.view.view(), box_c)?)
            }
            To::C(c) => (c.ld(), false, map_a),
            To::Sums { .. } => (0, false, map_a),
        };
        let (c, leave, left) = match to {
            To::C(c) => (c.view.address(), Leave::NOTHING, [0, 0]),
            To::Sums {
                elements,
                leave,
                extent,
            } => (elements.address(), leave, extent),
        };
        let overwrites = tma_c && !epilogue.reads_old();
        let leaves_parts = choice.finish == Finish::Kernel && choice.splits > 1;
        let raster = gemm_wgmma::raster([shape.m, shape.n], instance.tile, instance.cluster);
        let problem = gemm_wgmma::Problem {
            seats: self.seats(choice, raster.group()),
            prefetch: prefetch([a, b], &shape, choice, raster.group()),
            ldc: ldc as i64,
            leave,
            last: match overwrites || leaves_parts {
                true => instance.last([shape.m, shape.n]),
                false => [u32::MAX; 2],
            },
            left: instance.oriented(left).map(|extent| extent as i32),
            m: shape.m as i32,
            n: shape.n as i32,
            k: shape.k as i32,
            raster,
            splits: choice.splits,
            arrivals: workspace.arrivals,
            split_steps: (shape.k.div_ceil(gemm_wgmma::K) as u32)
                .div_ceil(choice.splits * instance.depth),
            bytes_a: instance.bytes_a(rows),
            once: gemm_wgmma::once([shape.m, shape.n], instance.tile),
            tma_c: tma_c.into(),
        };
        let launch = LaunchConfig {
            grid: choice.blocks.into(),
            overlap_previous: true,
        };
        let device = self.stream.device();
        let function = device.load(&cutlet_kernels::PTX, instance.kernel)?;
        // SAFETY: the maps describe the matrices, which were checked against the memory behind
        // them; C, like what the epilogue reads, was checked with the problem; it overlaps neither
        // A nor B and is borrowed mutably; where sums go, and parts, there is room for all of them. The seats
        // are of as many clusters as the launch has, and arrivals of as many tiles as there can be; the words of
        // either are changed by launches of this stream alone, each of which leaves them ready for the next.
        // All of it is there until the stream has got past the launch.
        unsafe {
            let args = (
                map_a,
                map_b,
                map_c,
                pointer_mut(c),
                pointer_mut(workspace.parts),
                problem,
                epilogue,
            );
            self.stream.launch(&function, launch, args)?;
        }
        Ok(())
    }
}

/// Lines of the cache that 128 bytes of a row of the operand lie in.
fn cache_lines<T: DeviceData>(operand: &Matrix<'_, T>) -> usize {
    match operand.starts_runs_at(LINE) {
        true => 1,
        false => 2,
    }
}

/// Whether TMA can store C, which it writes in units of 16 bytes of a row.
fn tma_stores<T: DeviceData>(c: &MatrixMut<'_, T>) -> bool {
    c.starts_runs_at(UNIT) && c.columns().is_multiple_of(UNIT / size_of::<T>())
}

/// The tensor map of an operand, for boxes of `tile`.
fn operand_map<T: TensorMapElement>(operand: &Matrix<'_, T>, tile: TmaBox) -> Result<TensorMap> {
    let (run, count) = operand.extents.run_and_count();
    let spec = TensorMapSpec::rows(count as u64, run as u64, operand.ld() as u64);
    Ok(spec.encode(operand.view, tile)?)
}

#[cfg(test)]
mod tests {
    use cutlet_host::{Buffer, Device};

    use super::*;
    use crate::gemm::Extras;

    /// Numbers whose products and sums are exact.
    fn small(count: usize) -> Vec<bf16> {
        let small = |i: usize| bf16::from_f32((i * 7 % 11 % 3) as f32 - 1.0);
        (0..count).map(small).collect()
    }

    /// C = A·B + beta·C by that instance, each tile's steps in so many parts.
    fn multiply_in_parts(
        stream: &Stream,
        instance: &'static Instance<bf16>,
        (splits, finish): (u32, Finish),
        [a, b]: [Matrix<'_, bf16>; 2],
        beta: f32,
        c: &mut Buffer<bf16>,
    ) -> Result<()> {
        let c = MatrixMut::row_major(c, a.rows(), b.columns())?;
        let extras = Extras::default();
        let mut problem = Problem::new(stream.device(), 1.0, a, b, beta, c, extras)?;
        let call = Call::new(stream, &problem)?;
        let [below, beside] = call.shape.oriented(instance).clusters(instance);
        let tiles = below * beside * instance.tiles_of_cluster() as usize;
        let pieces = tiles * splits as usize;
        let choice = Choice {
            instance,
            splits,
            finish,
            pieces,
            blocks: pieces as u32,
            seated: false,
            clocks: 0.0,
        };
        if finish == Finish::Kernel {
            return call.finish_sums(&choice, problem);
        }
        let fixups = Fixups::of(stream).expect("the stream is of our own");
        let scale = Scale { alpha: 1.0, beta };
        call.fix_up(&choice, scale, To::C(&mut problem.c), &fixups)
    }

    /// Again and again, as each launch leaves the counters as it found them, and in a graph.
    fn check_parts(name: &str, [m, n, k]: [usize; 3], parts: (u32, Finish), beta: f32) {
        let mut instances = BF16.iter().filter(|it| it.kernel.name() == name);
        let instance = instances.next().expect("there is such an instance");
        match parts.1 {
            Finish::Kernel => assert!(instance.leaves_sums && !instance.transposed, "{name}"),
            _ => assert!(instance.fixes_up, "{name}"),
        }
        let stream = Device::auto().stream().unwrap();
        let (a, b, old) = (small(m * k), small(k * n), small(m * n));
        let mut expected = old.clone();
        for (i, c) in expected.iter_mut().enumerate() {
            let (row_a, column_b) = (&a[i / n * k..][..k], &b[i % n * k..][..k]);
            let products = row_a.iter().zip(column_b);
            let sum: f32 = products.map(|(a, b)| a.to_f32() * b.to_f32()).sum();
            *c = bf16::from_f32(sum + beta * c.to_f32());
        }
        let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        let operands = [
            Matrix::row_major(&on_a, m, k).unwrap(),
            Matrix::col_major(&on_b, k, n).unwrap(),
        ];
        let mut on_c = stream.upload(&old).unwrap();
        for _ in 0..2 {
            stream.copy_from_host(&old, &mut on_c).unwrap();
            multiply_in_parts(&stream, instance, parts, operands, beta, &mut on_c).unwrap();
            assert_eq!(stream.download(&on_c).unwrap(), expected, "{name}");
        }
        let captured = stream.capture(|stream| {
            multiply_in_parts(stream, instance, parts, operands, beta, &mut on_c)
        });
        let graph = captured.unwrap();
        for _ in 0..2 {
            stream.copy_from_host(&old, &mut on_c).unwrap();
            // SAFETY: the matrices live past the download.
            unsafe { graph.launch(&stream).unwrap() };
            assert_eq!(
                stream.download(&on_c).unwrap(),
                expected,
                "{name}, in a graph"
            );
        }
    }

    #[test]
    fn only_hopper_and_the_cpu_run_the_instances() {
        assert!(can_run(None, || "cpu").is_ok() && can_run(Some((9, 0)), || "gpu").is_ok());
        for capability in [(8, 0), (10, 0), (12, 0)] {
            let refused = can_run(Some(capability), || "gpu 0")
                .unwrap_err()
                .to_string();
            let (major, minor) = capability;
            let found = format!("was asked for on gpu 0, compute capability {major}.{minor};");
            assert!(refused.contains(&found), "{refused}");
        }
    }

    #[test]
    fn the_last_block_adds_the_parts_of_a_tile() {
        for (name, beta) in [
            ("bf16_1x64x32_c1_kk", 0.0),
            ("bf16_1x64x64_c1_kk", 2.0),
            ("bf16_1x64x96_c2_kk", 0.0),
            ("bf16_2x128x128_c1_kk", -1.0),
            ("bf16_2x128x104_c4_kkm", 0.0),
            ("bf16_2x128x96_r2_kkm", 0.0),
        ] {
            check_parts(name, [70, 200, 640], (2, Finish::LastBlock), beta);
            check_parts(name, [129, 72, 200], (3, Finish::LastBlock), beta);
            check_parts(name, [30, 40, 1000], (9, Finish::LastBlock), beta);
        }
    }

    #[test]
    fn another_kernel_adds_the_parts_of_tiles_that_overlap() {
        for (name, beta) in [
            ("bf16_1x64x80_r4_kk", 0.0),
            ("bf16_1x64x160_c2_kk", 2.0),
            ("bf16_2t128x128_c2_kk", 0.0),
            ("bf16_2x128x112_c1_kk", -1.0),
            ("bf16_3x192x192_r2_kk", 0.0),
        ] {
            check_parts(name, [140, 300, 640], (2, Finish::Kernel), beta);
            check_parts(name, [201, 202, 200], (3, Finish::Kernel), beta);
            check_parts(name, [30, 40, 1000], (9, Finish::Kernel), beta);
        }
    }
}
