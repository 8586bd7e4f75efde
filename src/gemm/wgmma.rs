//! GEMM in bf16 and f16 on Hopper's tensor cores: operands as TMA needs them, the tensor maps of a
//! problem, and the launch of the instance that [`choose`] picks.

use std::ptr::with_exposed_provenance_mut;

use cutlet_device::hopper::{TensorMap, TileBox};
use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Scratch, Stream, TensorMapElement, TensorMapSpec};
use cutlet_kernels::gemm_wgmma::instances::{BF16, F16};
use cutlet_kernels::gemm_wgmma::parts::{self, Parts, sum_parts_bf16, sum_parts_f16};
use cutlet_kernels::gemm_wgmma::{self, Instance, Scale};
use cutlet_layout_core::tiles;

use super::choose::{self, Choice, Shape};
use super::operand::{TmaOperand, UNIT};
use super::{GROUP, Problem, sealed};
use crate::Order::{self, ColMajor, RowMajor};
use crate::{Error, Matrix, MatrixMut, Result};

/// The kernel that adds parts.
type SumParts<T> = Kernel<(Global<f32>, GlobalMut<T>, Parts, Scale)>;

/// An element type with instances.
trait Sixteen: TensorMapElement {
    fn all() -> &'static [Instance<Self>];
    fn sum_parts() -> &'static SumParts<Self>;
}

impl Sixteen for half::bf16 {
    fn all() -> &'static [Instance<Self>] {
        BF16
    }
    fn sum_parts() -> &'static SumParts<Self> {
        &sum_parts_bf16
    }
}

impl Sixteen for half::f16 {
    fn all() -> &'static [Instance<Self>] {
        F16
    }
    fn sum_parts() -> &'static SumParts<Self> {
        &sum_parts_f16
    }
}

macro_rules! launch {
    ($($element:ty),+) => {$(
        impl sealed::Launch for $element {
            fn launch(
                stream: &Stream,
                problem: Problem<'_, Self>,
                instance: Option<&str>,
            ) -> Result<()> {
                launch(stream, problem, instance)
            }

            fn instances(a: Order, b: Order) -> Vec<&'static str> {
                of_orders::<$element>(a, b)
                    .map(|instance| instance.kernel.name())
                    .collect()
            }
        }
    )+};
}
launch!(half::bf16, half::f16);

/// The instances for operands of these orders.
fn of_orders<T: Sixteen>(a: Order, b: Order) -> impl Iterator<Item = &'static Instance<T>> {
    let k_major = [a == RowMajor, b == ColMajor];
    T::all()
        .iter()
        .filter(move |instance| instance.k_major == k_major)
}

fn launch<T: Sixteen>(stream: &Stream, problem: Problem<'_, T>, named: Option<&str>) -> Result<()> {
    let (m, n, k) = problem.extents();
    let Problem { a, b, mut c, .. } = problem;
    let mut fitting = of_orders::<T>(a.order(), b.order())
        .filter(|instance| named.is_none_or(|name| instance.kernel.name() == name));
    let Some(first) = fitting.next() else {
        return Err(Error::Instance {
            asked: named.unwrap_or_default().to_string(),
        });
    };
    let (a, b) = (TmaOperand::of(stream, a)?, TmaOperand::of(stream, b)?);
    let (a, b) = (a.matrix(), b.matrix());
    let shape = Shape {
        lines: [&a, &b].map(cache_lines),
        m,
        n,
        // Without any k, zeros are multiplied.
        k: k.max(1),
        processors: stream.device().multiprocessors(),
    };
    let call = Call {
        stream,
        choice: choose::fastest(first, fitting, &shape),
        shape,
        epilogue: Scale {
            alpha: problem.alpha,
            beta: problem.beta,
        },
    };
    if call.choice.splits == 1 {
        return call.multiply(&a, &b, &mut c, None);
    }
    let mut parts = call.parts()?;
    call.multiply(&a, &b, &mut c, Some(&mut parts))?;
    call.sum(&parts, &mut c)
}

/// What all launches of one call share.
struct Call<'a, T: DeviceData> {
    stream: &'a Stream,
    shape: Shape,
    choice: Choice<T>,
    epilogue: Scale,
}

/// The sums of a split GEMM's parts: for each part, whole tiles of C, row-major.
struct Workspace {
    sums: Scratch<f32>,
    /// Rows of a part, and columns.
    extent: [usize; 2],
}

impl<T: Sixteen> Call<'_, T> {
    /// Computes C, or the sums of parts of it.
    fn multiply(
        &self,
        a: &Matrix<'_, T>,
        b: &Matrix<'_, T>,
        c: &mut MatrixMut<'_, T>,
        parts: Option<&mut Workspace>,
    ) -> Result<()> {
        let (shape, choice) = (&self.shape, &self.choice);
        let [box_a, box_b, box_c] = choice.instance.boxes;
        // Rows that A does not have need not be filled with zeros: what becomes of them is not
        // stored. Where the box's lines run along m, it is not rows that are left out.
        let rows = match a.order() {
            RowMajor if choice.instance.cluster[1] == 1 => {
                shape.m.next_multiple_of(8).min(box_a.extent[1] as usize) as u32
            }
            RowMajor => box_a.extent[1],
            ColMajor => box_a.extent[1],
        };
        let box_a = TileBox {
            extent: [box_a.extent[0], rows],
            ..box_a
        };
        let map_a = operand_map(a, box_a)?;
        let map_b = operand_map(b, box_b)?;
        let tma_c = tma_stores(c);
        // Where the map is not used, any will do.
        let map_c = match tma_c {
            true => TensorMapSpec::rows(shape.m as u64, shape.n as u64, c.ld() as u64)
                .encode(c.view.view(), box_c)?,
            false => map_a,
        };
        let [part_rows, ld_parts] = parts.as_ref().map_or([0, 0], |parts| parts.extent);
        let problem = gemm_wgmma::Problem {
            ldc: c.ld() as i64,
            ld_parts: ld_parts as i64,
            parts: [part_rows as i32 * choice.splits as i32, ld_parts as i32],
            m: shape.m as i32,
            n: shape.n as i32,
            k: shape.k as i32,
            group: GROUP,
            splits: choice.splits,
            split_steps: choice.split_steps,
            bytes_a: choice.instance.bytes_a(rows),
            b_once: (shape.m <= choice.instance.tile[0] as usize).into(),
            tma_c: tma_c.into(),
            padding: 0,
        };
        let launch = LaunchConfig {
            grid: choice.blocks.into(),
            overlap_previous: true,
        };
        let device = self.stream.device();
        let function = device.load(&cutlet_kernels::PTX, choice.instance.kernel)?;
        // SAFETY: the maps describe the matrices, which were checked against the memory behind
        // them; C overlaps neither A nor B and is borrowed mutably; the workspace has room for
        // every part. All of it is there until the stream has got past the launch.
        unsafe {
            let sums = match parts {
                Some(parts) => parts.sums.view_mut().address() as usize,
                None => 0,
            };
            let sums = GlobalMut::<f32>::from_ptr(with_exposed_provenance_mut(sums));
            let args = (
                map_a,
                map_b,
                map_c,
                &mut c.view,
                sums,
                problem,
                self.epilogue,
            );
            self.stream.launch(&function, launch, args)?;
        }
        Ok(())
    }

    /// Room for the sums of all parts.
    fn parts(&self) -> Result<Workspace> {
        let [rows, columns] = self.choice.instance.tile.map(|extent| extent as usize);
        let [cluster_rows, cluster_columns] =
            self.choice.instance.cluster.map(|blocks| blocks as usize);
        let (rows, columns) = (rows * cluster_rows, columns * cluster_columns);
        let extent = [
            self.shape.m.next_multiple_of(rows),
            self.shape.n.next_multiple_of(columns),
        ];
        let sums = extent[0] * extent[1] * self.choice.splits as usize;
        Ok(Workspace {
            sums: self.stream.scratch(sums)?,
            extent,
        })
    }

    /// C, from the sums of its parts.
    fn sum(&self, parts: &Workspace, c: &mut MatrixMut<'_, T>) -> Result<()> {
        let [part_rows, ld] = parts.extent;
        let extents = Parts {
            ldc: c.ld() as i64,
            ld: ld as i64,
            distance: (part_rows * ld) as i64,
            m: self.shape.m as i32,
            n: self.shape.n as i32,
            count: self.choice.splits,
            padding: 0,
        };
        let [rows, columns] = tiles::<parts::Tile>([extents.m, extents.n]);
        let launch = LaunchConfig {
            grid: (columns, rows).into(),
            overlap_previous: true,
        };
        let device = self.stream.device();
        let function = device.load(&cutlet_kernels::PTX, T::sum_parts())?;
        // SAFETY: as for the multiplication, which comes before in the stream.
        unsafe {
            let args = (parts.sums.view(), &mut c.view, extents, self.epilogue);
            self.stream.launch(&function, launch, args)?;
        }
        Ok(())
    }
}

/// Lines of the cache that 128 bytes of a row of the operand lie in.
fn cache_lines<T: DeviceData>(operand: &Matrix<'_, T>) -> usize {
    match operand.starts_runs_at(128) {
        true => 1,
        false => 2,
    }
}

/// Whether TMA can store C, which it writes in units of 16 bytes of a row.
fn tma_stores<T: DeviceData>(c: &MatrixMut<'_, T>) -> bool {
    c.starts_runs_at(UNIT) && c.columns().is_multiple_of(UNIT / size_of::<T>())
}

/// The tensor map of an operand, for boxes of `tile`.
fn operand_map<T: TensorMapElement>(operand: &Matrix<'_, T>, tile: TileBox) -> Result<TensorMap> {
    let (run, count) = operand.extents.run_and_count();
    let spec = TensorMapSpec::rows(count as u64, run as u64, operand.ld() as u64);
    Ok(spec.encode(operand.view, tile)?)
}
