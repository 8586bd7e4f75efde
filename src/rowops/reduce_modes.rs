//! Sums, means and extremes along any modes of a tensor.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{Device, LaunchConfig, Scratch, Stream, View};
use cutlet_kernels::PTX;
use cutlet_kernels::rows::reduce::Reduction;
use cutlet_kernels::rows::reduce_columns::{ReduceColumnsArgs, STEP, STRIP};
use cutlet_kernels::rows::{RowStrides, Space};
use cutlet_layout_core::{Int, Layout, Raster};

use super::operand::{Target, check_read, optional_mut, read, written};
use super::reduce::{self, ReducedElement};
use super::{WIDEST, refuse};
use crate::into_tensor::of_leaf;
use crate::matrix::{divisor, in_stream};
use crate::{IntoTensor, IntoTensorMut, MAX_EXTENT, Result, Tensor, TensorMut};

/// The operation's name in errors.
const NAME: &str = "reduce_modes";
/// Modes of matrices that the kernel knows.
const MODES: usize = 3;
/// Blocks of a multiprocessor that hide each other's latency.
const BLOCKS: usize = 4;
/// The fewest steps of a split: fewer take less time than a second launch.
const LEAST_STEPS: usize = 4;

/// A kernel that reduces columns.
pub type ColumnsKernel<T, O> = Kernel<(Global<T>, GlobalMut<O>, GlobalMut<f32>, ReduceColumnsArgs)>;

/// Enqueues the reduction of `x` along some of its modes: `[0]` of a matrix has a result for each column, as the gradient
/// of a bias needs it.
///
/// `y` has the other modes of `x` in their order, or all modes, with one element in those that are reduced. If all modes
/// are reduced, `y` has one element. One mode of `x` is contiguous, kept or reduced. Sums are in f32, and rounded once. A
/// NaN makes its result NaN. The order of additions does not depend on the run.
///
/// # Errors
/// - A mode does not exist, is named twice, or shapes do not agree.
/// - No mode is contiguous, or more than three modes that are left do not continue one another.
/// - `y` overlaps `x`.
/// - An operand is on another device than the stream, or bound to another stream.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Reduction, reduce_modes};
///
/// let stream = Device::auto().stream()?;
/// let x = DeviceTensor::upload(&stream, &[1.0f32, -4.0, 3.0, 2.0, 2.0, 2.0], [2, 3])?;
/// let mut of_columns = DeviceTensor::<f32>::zeroed(&stream, [3])?;
/// reduce_modes(&stream, Reduction::Sum, &x, &[0], &mut of_columns)?;
/// assert_eq!(of_columns.download(&stream)?, [3.0, -2.0, 5.0]);
/// let mut of_all = DeviceTensor::<f32>::zeroed(&stream, [1])?;
/// reduce_modes(&stream, Reduction::Max, &x, &[0, 1], &mut of_all)?;
/// assert_eq!(of_all.download(&stream)?, [3.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn reduce_modes<'a, T: ReducedElement>(
    stream: &Stream,
    reduction: Reduction,
    x: impl IntoTensor<'a, Element = T>,
    modes: &[usize],
    y: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    let (x, mut y) = match (read(x)?, written(y)?) {
        (Some(x), Some(y)) => (x, y),
        (None, None) => return Ok(()),
        _ => {
            let found = "one of the tensors has no elements; give a result for each element of the other modes";
            return refuse(NAME, found.to_string());
        }
    };
    in_stream(NAME, stream, "x", x.view)?;
    in_stream(NAME, stream, "y", y.view.view())?;
    check_read(NAME, stream, "x", &x, &y)?;
    let all = Modes::of(&x.layout, &y.layout, modes)?;
    let job = Job { stream, reduction };
    match all.contiguous()? {
        Contiguous::Kept => job.of_columns(&x, &mut y, &all),
        Contiguous::Reduced if all.reduced.len() == 1 => job.of_rows(&x, &mut y, &all),
        Contiguous::Reduced => job.of_columns_and_rows(&x, &mut y, &all),
    }
}

/// A mode of `x` that is kept, with its stride in `y`, or that is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode {
    extent: usize,
    x: usize,
    y: usize,
}

impl Mode {
    /// A mode of one element.
    const SINGLE: Mode = Mode {
        extent: 1,
        x: 1,
        y: 1,
    };
}

/// The modes of a reduction, merged, those with the smallest strides first.
#[derive(Debug, PartialEq, Eq)]
struct Modes {
    kept: Vec<Mode>,
    reduced: Vec<Mode>,
}

/// What the contiguous mode of a tensor is.
enum Contiguous {
    Kept,
    Reduced,
}

impl Modes {
    /// Those of these layouts, of which some are reduced.
    ///
    /// # Errors
    /// If there are no such modes, or if `y` has others.
    fn of(x: &Layout, y: &Layout, reduced: &[usize]) -> Result<Self> {
        let rank = x.rank();
        let is_fit = |&mode: &usize| {
            mode < rank && reduced.iter().filter(|&&other| other == mode).count() == 1
        };
        if !reduced.iter().all(is_fit) {
            return refuse(
                NAME,
                format!(
                    "the modes {reduced:?} of {} are reduced; give different modes from 0 to {}",
                    x.to_dynamic(),
                    rank - 1
                ),
            );
        }
        let has_all = y.rank() == rank && reduced.iter().all(|&mode| y.mode(mode).size() == 1);
        let mut in_y = (0..y.rank()).filter(|mode| !(has_all && reduced.contains(mode)));
        let mut modes = Modes {
            kept: Vec::new(),
            reduced: Vec::new(),
        };
        for mode in 0..rank {
            let of_x = x.mode(mode);
            if reduced.contains(&mode) {
                modes.reduced.extend(leaves(&of_x, None));
                continue;
            }
            match in_y.next().map(|mode| y.mode(mode)) {
                Some(of_y) if of_y.shape() == of_x.shape() => {
                    modes.kept.extend(leaves(&of_x, Some(&of_y)));
                }
                _ => return differ(x, y, reduced),
            }
        }
        if in_y.any(|mode| y.mode(mode).size() != 1 || reduced.len() < rank) {
            return differ(x, y, reduced);
        }
        merge(&mut modes.kept);
        merge(&mut modes.reduced);
        Ok(modes)
    }

    /// The columns, which are the first kept mode, and the others.
    fn split_kept(&self) -> (Mode, &[Mode]) {
        match self.kept.split_first() {
            Some((columns, others)) => (*columns, others),
            None => (Mode::SINGLE, &[]),
        }
    }

    /// What the contiguous mode is: the first kept or the first reduced one. A single element is a kept mode.
    fn contiguous(&self) -> Result<Contiguous> {
        let is_contiguous = |modes: &[Mode]| modes.first().is_some_and(|mode| mode.x == 1);
        match (is_contiguous(&self.kept), is_contiguous(&self.reduced)) {
            (true, _) => Ok(Contiguous::Kept),
            (_, true) => Ok(Contiguous::Reduced),
            _ if self.kept.is_empty() && self.reduced.is_empty() => Ok(Contiguous::Kept),
            _ => refuse(
                NAME,
                "no mode of x is contiguous; copy it with `permute`".to_string(),
            ),
        }
    }
}

fn differ<R>(x: &Layout, y: &Layout, reduced: &[usize]) -> Result<R> {
    refuse(
        NAME,
        format!(
            "the modes {reduced:?} of {} are reduced, and y is {}; give y the other modes, or one element in those",
            x.to_dynamic(),
            y.to_dynamic()
        ),
    )
}

/// The leaves of a mode that have several elements.
fn leaves(x: &Layout, y: Option<&Layout>) -> impl Iterator<Item = Mode> {
    let all: Vec<Mode> = (0..x.num_leaves())
        .map(|leaf| {
            let (extent, stride) = of_leaf(x, leaf);
            Mode {
                extent,
                x: stride,
                y: y.map_or(0, |y| of_leaf(y, leaf).1),
            }
        })
        .collect();
    all.into_iter().filter(|mode| mode.extent > 1)
}

/// Sorts modes by their strides in x, and makes one of those that continue one another.
fn merge(modes: &mut Vec<Mode>) {
    modes.sort_by_key(|mode| mode.x);
    let mut merged: Vec<Mode> = Vec::new();
    for mode in modes.drain(..) {
        match merged.last_mut() {
            Some(last) if mode.x == last.extent * last.x && mode.y == last.extent * last.y => {
                last.extent *= mode.extent;
            }
            _ => merged.push(mode),
        }
    }
    *modes = merged;
}

/// The layout of modes, the first one innermost, in front of a last mode.
fn layout_of(modes: &[Mode], stride: fn(&Mode) -> usize, last: Option<Mode>) -> Layout {
    let leaf = |extent: usize, stride: usize| {
        Layout::leaf(Int::dynamic(extent as i64), Int::dynamic(stride as i64))
    };
    let all: Vec<Layout> = modes
        .iter()
        .rev()
        .chain(&last)
        .map(|mode| leaf(mode.extent, stride(mode)))
        .collect();
    match all.is_empty() {
        true => leaf(1, 0),
        false => Layout::concat(&all),
    }
}

/// The extents and the strides of up to three modes, the first one innermost, as kernels have rows of so many columns.
///
/// # Errors
/// If there are more.
fn space_of(modes: &[Mode], columns: usize) -> Result<(Space, [RowStrides; 2])> {
    let mut all = [Mode::SINGLE; MODES];
    let count: usize = modes.iter().map(|mode| mode.extent).product();
    if modes.len() > MODES || count.max(columns) > MAX_EXTENT {
        return refuse(
            NAME,
            format!(
                "{} modes of {count} elements beside {columns} do not continue one another, and the kernel has {MODES} of \
                 up to {MAX_EXTENT}; reduce in two steps, or copy x with `permute`",
                modes.len()
            ),
        );
    }
    all[..modes.len()].copy_from_slice(modes);
    let [inner, middle, outer] = all;
    let space = Space {
        middle: divisor(middle.extent),
        inner: divisor(inner.extent),
        rows: count as i32,
        columns: columns as i32,
        last_columns: columns as i32,
        ahead: 0,
    };
    let strides = |stride: fn(&Mode) -> usize| [outer, middle, inner].map(|it| stride(&it) as i64);
    Ok((space, [strides(|it| it.x), strides(|it| it.y)]))
}

/// Matrices whose columns are reduced.
struct Matrices<'m> {
    /// The modes of matrices, the innermost first.
    matrices: &'m [Mode],
    /// The modes of rows, the innermost first.
    rows: &'m [Mode],
    /// The columns, which are contiguous in x.
    columns: Mode,
}

/// The product of extents.
fn count(modes: &[Mode]) -> usize {
    modes.iter().map(|mode| mode.extent).product()
}

impl Matrices<'_> {
    /// Whether vectors of these elements are aligned in all rows.
    fn is_aligned<T>(&self, address: u64) -> bool {
        let width = WIDEST / size_of::<T>();
        let mut strides = self.matrices.iter().chain(self.rows);
        address.is_multiple_of(WIDEST as u64)
            && self.columns.extent.is_multiple_of(width)
            && strides.all(|mode| mode.x.is_multiple_of(width))
    }

    /// The steps of a split, and the splits: enough for all multiprocessors, if there are enough rows.
    fn split(&self, device: &Device) -> [usize; 2] {
        let strips = self.columns.extent.div_ceil(STRIP);
        let steps = count(self.rows).div_ceil(STEP);
        let blocks = BLOCKS * device.multiprocessors() as usize;
        let wanted = blocks / (strips * count(self.matrices));
        let of_split = steps.div_ceil(wanted.clamp(1, steps)).max(LEAST_STEPS);
        [of_split, steps.div_ceil(of_split)]
    }
}

/// Where results go: one of both.
struct Results<'r, O: DeviceData> {
    y: Target<'r, O>,
    partials: Target<'r, f32>,
    to_partials: bool,
}

impl<'r, O: DeviceData> Results<'r, O> {
    fn y(tensor: &'r mut TensorMut<'_, O>) -> Self {
        Results {
            y: Target::View(tensor.view.reborrow()),
            partials: optional_mut(None),
            to_partials: false,
        }
    }

    fn partials(scratch: &'r mut Scratch<'_, f32>) -> Self {
        Results {
            y: optional_mut(None),
            partials: Target::View(scratch.view_mut()),
            to_partials: true,
        }
    }
}

/// What is done, and in which stream.
#[derive(Clone, Copy)]
struct Job<'s> {
    stream: &'s Stream,
    reduction: Reduction,
}

impl<'s> Job<'s> {
    /// Reduces rows: the reduced mode is contiguous.
    fn of_rows<T: ReducedElement>(
        self,
        x: &Tensor<'_, T>,
        y: &mut TensorMut<'_, T>,
        modes: &Modes,
    ) -> Result<()> {
        let rows = Tensor {
            view: x.view,
            layout: layout_of(&modes.kept, |mode| mode.x, Some(modes.reduced[0])),
        };
        let results = TensorMut {
            view: y.view.reborrow(),
            layout: layout_of(&modes.kept, |mode| mode.y, None),
        };
        reduce::launch(
            NAME,
            self.stream,
            self.reduction,
            &rows,
            (Some(results), None),
            None,
        )
    }

    /// Reduces columns: the contiguous mode is kept.
    fn of_columns<T: ReducedElement>(
        self,
        x: &Tensor<'_, T>,
        y: &mut TensorMut<'_, T>,
        modes: &Modes,
    ) -> Result<()> {
        let (columns, matrices) = modes.split_kept();
        let of_x = Matrices {
            matrices,
            rows: &modes.reduced,
            columns,
        };
        let [_, splits] = of_x.split(self.stream.device());
        if splits == 1 {
            return self.reduce_x(x, &of_x, Results::y(y), count(&modes.reduced));
        }
        let mut partials = self
            .stream
            .scratch(splits * count(matrices) * columns.extent)?;
        self.reduce_x(x, &of_x, Results::partials(&mut partials), 1)?;
        self.finish(&partials, modes, splits, y)
    }

    /// Reduces columns and then rows: the contiguous mode is reduced, and others are, too.
    fn of_columns_and_rows<T: ReducedElement>(
        self,
        x: &Tensor<'_, T>,
        y: &mut TensorMut<'_, T>,
        modes: &Modes,
    ) -> Result<()> {
        let of_x = Matrices {
            matrices: &modes.kept,
            rows: &modes.reduced[1..],
            columns: modes.reduced[0],
        };
        let results = count(&modes.kept);
        let [_, splits] = of_x.split(self.stream.device());
        // All partials of a result are neighbours, as a row is.
        let row = Mode {
            extent: splits * of_x.columns.extent,
            ..Mode::SINGLE
        };
        let mut partials = self.stream.scratch(results * row.extent)?;
        self.reduce_x(x, &of_x, Results::partials(&mut partials), 1)?;
        let all = Mode {
            extent: results,
            x: row.extent,
            y: 1,
        };
        let mut sums = self.stream.scratch::<f32>(results)?;
        let (rows, of_rows) = (
            layout_of(&[all], |mode| mode.x, Some(row)),
            layout_of(&[all], |mode| mode.y, None),
        );
        let reduction = match self.reduction {
            Reduction::Mean => Reduction::Sum,
            other => other,
        };
        reduce::launch(
            NAME,
            self.stream,
            reduction,
            &Tensor {
                view: partials.view(),
                layout: rows,
            },
            (
                Some(TensorMut {
                    view: sums.view_mut(),
                    layout: of_rows,
                }),
                None,
            ),
            None,
        )?;
        self.finish(&sums, modes, 1, y)
    }

    /// Reduces the columns of x in one launch.
    fn reduce_x<T: ReducedElement>(
        self,
        x: &Tensor<'_, T>,
        of_x: &Matrices<'_>,
        to: Results<'_, T>,
        divisor: usize,
    ) -> Result<()> {
        let is_aligned = of_x.is_aligned::<T>(x.view.address());
        let kernel = T::COLUMNS[usize::from(!is_aligned)];
        let shape = of_x.split(self.stream.device());
        // SAFETY: the modes are those of x, which was compared with its memory, and of results that have room for them.
        unsafe { self.launch(kernel, x.view, of_x, shape, to, divisor) }
    }

    /// Makes y of the partials of each result: so many rows for each of the kept matrices.
    fn finish<T: ReducedElement>(
        self,
        partials: &Scratch<'_, f32>,
        modes: &Modes,
        splits: usize,
        y: &mut TensorMut<'_, T>,
    ) -> Result<()> {
        let (columns, matrices) = modes.split_kept();
        let rows = Mode {
            extent: splits,
            x: columns.extent,
            y: 0,
        };
        let mut packed = splits * columns.extent;
        let matrices: Vec<Mode> = matrices
            .iter()
            .map(|mode| {
                let x = packed;
                packed *= mode.extent;
                Mode { x, ..*mode }
            })
            .collect();
        let of_partials = Matrices {
            matrices: &matrices,
            rows: &[rows],
            columns,
        };
        let steps = splits.div_ceil(STEP);
        let all = count(&modes.reduced);
        // SAFETY: the partials have these extents, and y was compared with its memory.
        unsafe {
            let x = partials.view();
            self.launch(
                T::OF_PARTIALS,
                x,
                &of_partials,
                [steps, 1],
                Results::y(y),
                all,
            )
        }
    }

    /// Enqueues a reduction of columns. Sums are divided by `divisor` if a mean is asked for.
    ///
    /// # Safety
    /// The matrices must exist, and be aligned for the kernel. There must be room for the results.
    unsafe fn launch<T: DeviceData, O: DeviceData>(
        self,
        kernel: &'static ColumnsKernel<T, O>,
        x: View<'_, T>,
        matrices: &Matrices<'_>,
        [steps, splits]: [usize; 2],
        to: Results<'_, O>,
        divides_by: usize,
    ) -> Result<()> {
        let columns = matrices.columns;
        let (of_matrices, [x_matrices, values]) = space_of(matrices.matrices, 1)?;
        let (of_rows, [x_rows, _]) = space_of(matrices.rows, columns.extent)?;
        let blocks = [
            count(matrices.matrices) * splits,
            columns.extent.div_ceil(STRIP),
        ];
        let args = ReduceColumnsArgs {
            x: x_matrices,
            x_rows,
            values,
            to_next_value: columns.y as i64,
            matrices: of_matrices,
            rows: of_rows,
            raster: Raster::planned(blocks.map(|it| it as u32), 1),
            splits: divisor(splits),
            steps: steps as u32,
            reduction: self.reduction as u32,
            divisor: match self.reduction {
                Reduction::Mean => divides_by as f32,
                _ => 1.0,
            },
            to_partials: u32::from(to.to_partials),
        };
        let kernel = self.stream.device().load(&PTX, kernel)?;
        let all = (x, to.y, to.partials, args);
        let config = LaunchConfig::dependent(args.raster.size());
        // SAFETY: as promised by the caller.
        Ok(unsafe { self.stream.launch(&kernel, config, all) }?)
    }
}
