//! Contractions of tensors in einsum's notation: sums of products over modes of two tensors.

mod lowering;
mod modes;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use cutlet_device::DeviceData;
use cutlet_host::{Scratch, Stream, View, ViewMut};
use cutlet_kernels::gemm::epilogue::Accumulator;
use cutlet_layout_core::{Int, Layout};

use crate::batch::{Batch, BatchMut, Repeats};
use crate::gemm::{Operands as Batches, OuterMode};
use crate::matrix::{disjoint, in_stream};
use crate::recently_used::RecentlyUsed;
use crate::{
    Element, Gemm, IntoTensor, IntoTensorMut, Matrix, MatrixMut, Operand, Precision, Result,
    Tensor, TensorMut, permute,
};
use lowering::{Copied, Lowering, Rates, lower};
use modes::{Mode, Role, merged};

const OPERATION: &str = "contract";

/// Enqueues a contraction of two tensors: for each coordinate of C, the sum of the products of A and B over the modes
/// that C does not have. `notation` names the modes, as `einsum` of NumPy and PyTorch does.
///
/// | notation | |
/// |---|---|
/// | `ij,jk->ik` | a matrix product |
/// | `bhqd,bhkd->bhqk` | a product for each b and h |
/// | `ijk,jl->ilk` | rows are i and k |
/// | `bij,bkj->ik` | the sum is over b and j |
/// | `i,j->ij` | an outer product |
///
/// Modes may be tuples, as a layout's, and may have a stride of 0, which repeats elements. Nothing is copied if rows,
/// columns and what is summed can each be one mode of a matrix: other modes are batches, or launches of their own.
/// Otherwise operands are copied to scratch memory first: [`Contraction::explain`] says which and why.
///
/// # Errors
/// - The notation is none of two operands, or has a mode that is in the output alone.
/// - The layouts have other ranks than the notation, or a mode has different extents.
/// - C overlaps A or B. An operand is on another device than the stream, or bound to another stream.
/// - More than 8 modes are left of an operand that has to be copied.
///
/// ```
/// use cutlet::{Device, DeviceTensor, contract, shape};
///
/// let stream = Device::auto().stream()?;
/// // (batch, sequence, q k or v, head, dimension), of which slices are multiplied as they lie.
/// let qkv = DeviceTensor::upload(&stream, &[0.5f32; 2 * 16 * 3 * 4 * 8], [2, 16, 3, 4, 8])?;
/// let qkv = qkv.tensor();
/// let (q, k) = (qkv.slice(&shape!((_, _, 0, _, _)))?, qkv.slice(&shape!((_, _, 1, _, _)))?);
/// let mut scores = DeviceTensor::<f32>::zeroed(&stream, [2, 4, 16, 16])?;
/// contract(&stream, "bshd,bthd->bhst", q, k, &mut scores)?;
/// assert_eq!(scores.download(&stream)?, [2.0; 2 * 4 * 16 * 16]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn contract<'a, T: Element<D>, D: DeviceData>(
    stream: &Stream,
    notation: &str,
    a: impl IntoTensor<'a, Element = T>,
    b: impl IntoTensor<'a, Element = T>,
    c: impl IntoTensorMut<'a, Element = D>,
) -> Result<()> {
    Contraction::new(notation, a, b, c)?.run(stream)
}

/// A contraction, `C = alpha·Σ A·B + beta·C`: see [`contract`].
///
/// ```
/// use cutlet::{Contraction, Device, DeviceTensor};
///
/// let stream = Device::auto().stream()?;
/// let a = DeviceTensor::upload(&stream, &[1.0f32; 3 * 4 * 5], [3, 4, 5])?;
/// let b = DeviceTensor::upload(&stream, &[2.0f32; 3 * 6 * 5], [3, 6, 5])?;
/// let mut c = DeviceTensor::upload(&stream, &[1.0f32; 4 * 6], [4, 6])?;
/// Contraction::new("bij,bkj->ik", &a, &b, &mut c)?.beta(1.0).run(&stream)?;
/// assert_eq!(c.download(&stream)?, [31.0; 4 * 6]);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Contraction<'a, T: Operand, D: DeviceData = T> {
    alpha: T::Factor,
    a: Tensor<'a, T>,
    b: Tensor<'a, T>,
    beta: T::Factor,
    c: TensorMut<'a, D>,
    precision: Precision,
    modes: Vec<Mode>,
}

impl<'a, T: Operand, D: DeviceData> Contraction<'a, T, D> {
    /// The contraction of tensors whose modes are named so.
    ///
    /// # Errors
    /// As [`contract`], if the notation does not fit the tensors.
    pub fn new(
        notation: &str,
        a: impl IntoTensor<'a, Element = T>,
        b: impl IntoTensor<'a, Element = T>,
        c: impl IntoTensorMut<'a, Element = D>,
    ) -> Result<Self> {
        let (a, b, c) = (a.into_tensor()?, b.into_tensor()?, c.into_tensor_mut()?);
        let modes = Mode::of_notation(notation, [a.layout(), b.layout(), c.layout()])?;
        Ok(Contraction {
            alpha: T::Factor::ONE,
            a,
            b,
            beta: T::Factor::ZERO,
            c,
            precision: Precision::Exact,
            modes,
        })
    }

    /// `C = A·Bᵀ` of tensors whose modes are (M, K, L), (N, K, L) and (M, N, L). Each of them may be a tuple, and L may
    /// be left out of all three.
    ///
    /// # Errors
    /// As [`contract`], if the modes do not fit each other.
    ///
    /// ```
    /// use cutlet::{Contraction, Device, DeviceTensor, layout};
    ///
    /// let stream = Device::auto().stream()?;
    /// // Six rows of A are 2×3 rows of C, the other way round.
    /// let a = DeviceTensor::upload(&stream, &[1.0f32; 6 * 4], layout!(((2, 3), 4):((12, 4), 1)))?;
    /// let b = DeviceTensor::upload(&stream, &[1.0f32; 8 * 4], [8, 4])?;
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, layout!(((2, 3), 8):((8, 16), 1)))?;
    /// Contraction::of_modes(&a, &b, &mut c)?.run(&stream)?;
    /// assert_eq!(c.download(&stream)?, [4.0; 6 * 8]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn of_modes(
        a: impl IntoTensor<'a, Element = T>,
        b: impl IntoTensor<'a, Element = T>,
        c: impl IntoTensorMut<'a, Element = D>,
    ) -> Result<Self> {
        let c = c.into_tensor_mut()?;
        let notation = match c.rank() {
            2 => "MK,NK->MN",
            _ => "MKL,NKL->MNL",
        };
        Self::new(notation, a, b, c)
    }

    /// Multiplies the sums by this factor. It is 1 unless it is set.
    pub fn alpha(self, alpha: T::Factor) -> Self {
        Contraction { alpha, ..self }
    }

    /// Adds so many times C as it was. It is 0 unless it is set. With 0, C is not read and may hold anything.
    pub fn beta(self, beta: T::Factor) -> Self {
        Contraction { beta, ..self }
    }

    /// Multiplies operands of `f32` in this precision: see [`Precision`].
    pub fn precision(self, precision: Precision) -> Self {
        Contraction { precision, ..self }
    }

    fn rates(&self) -> Rates {
        // Tensor cores multiply elements of 16 and 8 bits, and CUDA cores those of 32 bits.
        let products = match size_of::<T>() {
            1 | 2 => 300_000,
            _ => 25_000,
        };
        Rates {
            bytes: [size_of::<T>(), size_of::<T>(), size_of::<D>()],
            products,
            sums_outer_k: [self.a.view, self.b.view]
                .iter()
                .all(|view| view.address().is_multiple_of(16)),
        }
    }
}

impl<T: Element<D>, D: DeviceData> Contraction<'_, T, D> {
    /// Enqueues the contraction in the stream. The stream keeps how it is computed, for contractions of the same
    /// layouts.
    ///
    /// # Errors
    /// As [`contract`], and as [`Gemm::run`].
    pub fn run(&mut self, stream: &Stream) -> Result<()> {
        self.check(stream)?;
        let lowering = self.lowered(stream);
        self.launch(stream, &lowering)
    }

    /// How the contraction is computed: its rows, columns, k and batch, the kernel, and the operands that are copied,
    /// with the reasons. No element is read or written.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// ```
    /// use cutlet::{Contraction, Device, DeviceTensor};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let a = DeviceTensor::<f32>::zeroed(&stream, [3, 40, 50])?;
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, [40, 40])?;
    /// let explained = Contraction::new("bij,bkj->ik", &a, &a, &mut c)?.explain(&stream)?;
    /// assert!(explained.contains("M = i 40, N = k 40, K = jb 150"), "{explained}");
    /// assert!(explained.contains("A: copied, 24.0 kB"), "{explained}");
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn explain(&mut self, stream: &Stream) -> Result<String> {
        self.check(stream)?;
        let rates = self.rates();
        let lowering = self.lowered(stream);
        let mut text = format!("{lowering}\n");
        for (operand, name) in ["A", "B", "C"].into_iter().enumerate() {
            let line = match &lowering.copies[operand] {
                None => format!("{name}: as it lies"),
                Some(copy) => {
                    let bytes = copy.bytes(rates.bytes[operand]);
                    format!(
                        "{name}: copied, {}, because {}",
                        in_words(bytes),
                        reason(&self.modes, operand)
                    )
                }
            };
            let _ = writeln!(text, "{line}");
        }
        let kernel = self.kernel(stream, &lowering)?;
        let kernel = kernel.unwrap_or("one for each product of the batch");
        let _ = writeln!(text, "kernel: {kernel}");
        Ok(text)
    }

    /// How the contraction is computed. The stream remembers it.
    fn lowered(&mut self, stream: &Stream) -> Arc<Lowering> {
        let rates = self.rates();
        let lowerings = stream.state::<Lowerings>();
        if let Some(lowering) = lowerings.get(rates, &self.modes) {
            return lowering;
        }
        let merged = merged(self.modes.clone());
        let mut lowering = lower(&merged, rates);
        // Whether there is a kernel for two modes of k depends on addresses, the device and what was built.
        if lowering.outer_k.extent > 1 && self.kernel(stream, &lowering).is_err() {
            let rates = Rates {
                sums_outer_k: false,
                ..rates
            };
            lowering = lower(&merged, rates);
        }
        lowerings.insert(rates, &self.modes, Arc::new(lowering))
    }

    /// Refuses operands that overlap, or that work in the stream may not use.
    fn check(&self, stream: &Stream) -> Result<()> {
        in_stream(OPERATION, stream, "A", self.a.view)?;
        in_stream(OPERATION, stream, "B", self.b.view)?;
        in_stream(OPERATION, stream, "C", self.c.view.view())?;
        disjoint(OPERATION, "A", self.a.addresses(), self.c.addresses())?;
        disjoint(OPERATION, "B", self.b.addresses(), self.c.addresses())
    }

    /// Copies what is copied, and launches the products.
    fn launch(&mut self, stream: &Stream, lowering: &Lowering) -> Result<()> {
        let [copy_a, copy_b, copy_c] = lowering.copies.each_ref().map(Option::as_ref);
        let mut a = Source::of(stream, self.a.view, copy_a)?;
        let mut b = Source::of(stream, self.b.view, copy_b)?;
        a.fill(stream, self.a.view, copy_a)?;
        b.fill(stream, self.b.view, copy_b)?;
        let operands = self.operands(&a, &b);
        let Some(copy) = copy_c else {
            return operands.multiply(stream, lowering, self.c.view.reborrow());
        };
        let mut product = stream.scratch::<D>(copy.elements)?;
        let (in_c, in_copy) = copy.layouts();
        if self.beta != T::Factor::ZERO {
            let old = self.c.view.view();
            let copy = TensorMut::new(product.view_mut(), in_copy)?;
            permute(stream, Tensor::new(old, in_c)?, copy)?;
        }
        operands.multiply(stream, lowering, product.view_mut())?;
        let c = self.c.view.reborrow();
        let copy = Tensor::new(product.view(), in_copy)?;
        permute(stream, copy, TensorMut::new(c, in_c)?)
    }

    /// The name of the kernel that the first launch has. None if each product of the batch has one of its own.
    fn kernel(&mut self, stream: &Stream, lowering: &Lowering) -> Result<Option<&'static str>> {
        let [copy_a, copy_b, copy_c] = lowering.copies.each_ref().map(Option::as_ref);
        let a = Source::of(stream, self.a.view, copy_a)?;
        let b = Source::of(stream, self.b.view, copy_b)?;
        let operands = self.operands(&a, &b);
        let plan = match copy_c {
            None => operands
                .gemm(lowering, 0, self.c.view.reborrow())?
                .plan(stream)?,
            Some(copy) => {
                let mut product = stream.scratch::<D>(copy.elements)?;
                operands
                    .gemm(lowering, 0, product.view_mut())?
                    .plan(stream)?
            }
        };
        Ok(plan.kernel())
    }

    fn operands<'s>(&self, a: &'s Source<'_, T>, b: &'s Source<'_, T>) -> Operands<'s, T> {
        Operands {
            a: a.view(),
            b: b.view(),
            alpha: self.alpha,
            beta: self.beta,
            precision: self.precision,
        }
    }
}

/// An operand that is multiplied: the tensor, or memory for a copy of it.
enum Source<'a, T: DeviceData> {
    Tensor(View<'a, T>),
    Copy(Scratch<'a, T>),
}

impl<'a, T: DeviceData> Source<'a, T> {
    fn of(stream: &'a Stream, tensor: View<'a, T>, copy: Option<&Copied>) -> Result<Self> {
        Ok(match copy {
            None => Source::Tensor(tensor),
            Some(copy) => Source::Copy(stream.scratch::<T>(copy.elements)?),
        })
    }

    /// Copies the tensor, if it is copied.
    fn fill(&mut self, stream: &Stream, tensor: View<'a, T>, copy: Option<&Copied>) -> Result<()> {
        if let (Source::Copy(scratch), Some(copy)) = (self, copy) {
            let (in_tensor, in_copy) = copy.layouts();
            let copy = TensorMut::new(scratch.view_mut(), in_copy)?;
            permute(stream, Tensor::new(tensor, in_tensor)?, copy)?;
        }
        Ok(())
    }

    fn view(&self) -> View<'_, T> {
        match self {
            Source::Tensor(view) => *view,
            Source::Copy(scratch) => scratch.view(),
        }
    }
}

impl Copied {
    /// The layouts of the tensor and of the copy.
    fn layouts(&self) -> (Layout, Layout) {
        let of = |stride: fn(&(usize, usize, usize)) -> usize| {
            let modes: Vec<Layout> = (self.modes.iter())
                .map(|mode| {
                    Layout::leaf(
                        Int::dynamic(mode.0 as i64),
                        Int::dynamic(stride(mode) as i64),
                    )
                })
                .collect();
            match modes[..] {
                [] => Layout::static_mode(1, 0),
                _ => Layout::concat(&modes),
            }
        };
        (of(|mode| mode.1), of(|mode| mode.2))
    }
}

/// The operands of the products.
struct Operands<'a, T: Operand> {
    a: View<'a, T>,
    b: View<'a, T>,
    alpha: T::Factor,
    beta: T::Factor,
    precision: Precision,
}

impl<T: Operand> Operands<'_, T> {
    /// Launches the products, a batch at a time.
    fn multiply<D: DeviceData>(
        &self,
        stream: &Stream,
        lowering: &Lowering,
        mut c: ViewMut<'_, D>,
    ) -> Result<()>
    where
        T: Element<D>,
    {
        for nth in 0..lowering.launches() {
            self.gemm(lowering, nth, c.reborrow())?.run(stream)?;
        }
        Ok(())
    }

    /// The products of the `nth` launch.
    fn gemm<'c, D: DeviceData>(
        &'c self,
        lowering: &Lowering,
        nth: usize,
        c: ViewMut<'c, D>,
    ) -> Result<Gemm<'c, T, D>> {
        let [inner, outer] = &lowering.batch;
        let [of_a, of_b, of_c] = [0, 1, 2].map(|operand| {
            let mut repeats = Repeats::of(inner.extent, inner.strides[operand]);
            // A batch has room for four modes.
            let _ = repeats.push(outer.extent, outer.strides[operand]);
            repeats
        });
        let [like_a, like_b, like_c] = lowering.matrices;
        let [to_a, to_b, to_c] = offsets(&lowering.loops, nth);
        let matrix = |view: View<'c, T>, extents| Matrix { view, extents }.in_part();
        let a = Batch {
            first: matrix(self.a.slice(to_a..)?, like_a),
            repeats: of_a,
        };
        let b = Batch {
            first: matrix(self.b.slice(to_b..)?, like_b),
            repeats: of_b,
        };
        let (_, view) = c.split_at(to_c)?;
        let extents = like_c;
        let c = BatchMut {
            first: MatrixMut { view, extents }.in_part(),
            repeats: of_c,
        };
        let gemm = Gemm::of(Ok(Batches { a, b, c })).outer_k((&lowering.outer_k).into());
        let gemm = gemm.alpha(self.alpha).beta(self.beta);
        Ok(gemm.precision(self.precision))
    }
}

impl From<&Mode> for OuterMode {
    fn from(mode: &Mode) -> Self {
        OuterMode {
            count: mode.extent,
            strides: mode.strides,
        }
    }
}

/// Elements from the first product's operands to those of the `nth` launch.
fn offsets(loops: &[Mode], mut nth: usize) -> [usize; 3] {
    let mut offsets = [0; 3];
    for mode in loops {
        let at = nth % mode.extent;
        nth /= mode.extent;
        for (offset, stride) in offsets.iter_mut().zip(mode.strides) {
            *offset += at * stride;
        }
    }
    offsets
}

/// How contractions are computed that the stream has met.
#[derive(Default)]
struct Lowerings(Mutex<HashMap<Rates, OfTypes>>);

/// Those of the same element types.
type OfTypes = RecentlyUsed<Vec<Mode>, Arc<Lowering>, MOST_LOWERINGS>;

/// The most contractions of the same element types that a stream remembers. When there are more, the one goes whose last
/// use is the longest ago.
const MOST_LOWERINGS: usize = 1024;

impl Lowerings {
    fn get(&self, rates: Rates, modes: &[Mode]) -> Option<Arc<Lowering>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get_mut(&rates)?.get(modes)
    }

    fn insert(&self, rates: Rates, modes: &[Mode], lowering: Arc<Lowering>) -> Arc<Lowering> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_types = known.entry(rates).or_default();
        of_types.insert(modes.to_vec(), lowering.clone());
        lowering
    }
}

/// Why an operand is copied.
fn reason(modes: &[Mode], operand: usize) -> String {
    let merged = merged(modes.to_vec());
    let of = |role| {
        merged
            .iter()
            .filter(move |it: &&Mode| it.role == role && it.role.is_of(operand))
    };
    let ks: Vec<&str> = of(Role::K).map(|it| it.names.as_str()).collect();
    if operand != 2 && ks.len() > 1 {
        return format!(
            "the modes that are summed, {}, do not lie behind one another in A and in B",
            ks.join(" and ")
        );
    }
    let mut own = merged.iter().filter(|it| it.role.is_of(operand));
    let is_contiguous = own.any(|it| it.strides[operand] == 1 && it.role != Role::L);
    match is_contiguous {
        false => "none of its rows, columns and k is contiguous".to_string(),
        true => "a copy takes less time than products of it as it lies".to_string(),
    }
}

/// A number of bytes.
fn in_words(bytes: usize) -> String {
    match bytes as f64 {
        few if few < 1e6 => format!("{:.1} kB", few / 1e3),
        many => format!("{:.1} MB", many / 1e6),
    }
}
