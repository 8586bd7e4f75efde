//! GEMM through cuBLASLt, with each of the algorithms that its heuristics propose.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;

use cutlet_device::DeviceData;
use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_host::{Buffer, Stream, View, ViewMut};
use half::{bf16, f16};

use super::problem::{ColumnMajor, Stored};
use super::{Cublas, CublasError, Library, Problem, WORKSPACE_BYTES, check};

/// `CUBLASLT_MATMUL_DESC_TRANSA`.
const TRANSPOSE_FIRST: i32 = 3;
/// `CUBLASLT_MATMUL_DESC_TRANSB`.
const TRANSPOSE_SECOND: i32 = 4;
/// `CUBLASLT_MATMUL_DESC_EPILOGUE`.
const EPILOGUE: i32 = 7;
/// `CUBLASLT_MATMUL_DESC_BIAS_POINTER`.
const BIAS_POINTER: i32 = 8;
/// `CUBLASLT_MATMUL_DESC_A_SCALE_POINTER`.
const SCALE_POINTER_FIRST: i32 = 17;
/// `CUBLASLT_MATMUL_DESC_B_SCALE_POINTER`.
const SCALE_POINTER_SECOND: i32 = 18;
/// `CUBLASLT_MATMUL_DESC_A_SCALE_MODE`.
const SCALE_MODE_FIRST: i32 = 31;
/// `CUBLASLT_MATMUL_DESC_B_SCALE_MODE`.
const SCALE_MODE_SECOND: i32 = 32;
/// `CUBLASLT_MATMUL_DESC_FAST_ACCUM`.
const FAST_ACCUMULATION: i32 = 25;
/// `CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT`.
const BATCH_COUNT: i32 = 5;
/// `CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET`.
const BATCH_STRIDE: i32 = 6;
/// `CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`.
const MAX_WORKSPACE: i32 = 1;

/// How products are computed and accumulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compute {
    /// Operands as they are, accumulated in f32.
    #[default]
    F32,
    /// f32 operands rounded to tf32, accumulated in f32.
    Tf32,
    /// fp8 operands, accumulated in the tensor cores' shorter format ("fast accumulation").
    FastF8,
    /// f64 operands, accumulated in f64.
    F64,
    /// i8 operands, accumulated in i32.
    I32,
}

impl Compute {
    /// Its `cublasComputeType_t`.
    fn code(self) -> i32 {
        match self {
            Compute::F32 | Compute::FastF8 => 68,
            Compute::Tf32 => 77,
            Compute::F64 => 70,
            Compute::I32 => 72,
        }
    }

    /// The `cudaDataType_t` of the factors.
    fn factor_type(self) -> i32 {
        match self {
            Compute::F32 | Compute::Tf32 | Compute::FastF8 => f32::CUDA_TYPE,
            Compute::F64 => f64::CUDA_TYPE,
            Compute::I32 => i32::CUDA_TYPE,
        }
    }

    /// A factor of this type.
    fn factor(self, value: f64) -> Factor {
        match self {
            Compute::F32 | Compute::Tf32 | Compute::FastF8 => Factor {
                of_f32: value as f32,
            },
            Compute::F64 => Factor { of_f64: value },
            Compute::I32 => Factor {
                of_i32: value as i32,
            },
        }
    }
}

/// alpha or beta, in the type of the sums.
#[derive(Clone, Copy)]
#[repr(C)]
union Factor {
    of_f32: f32,
    of_f64: f64,
    of_i32: i32,
}

impl Factor {
    fn pointer(&self) -> *const c_void {
        ptr::from_ref(self).cast()
    }
}

/// An element type of cuBLASLt.
pub trait Element: DeviceData {
    /// Its `cudaDataType_t`.
    const CUDA_TYPE: i32;
    /// How it is multiplied exactly.
    const COMPUTE: Compute = Compute::F32;
}

impl Element for f32 {
    const CUDA_TYPE: i32 = 0;
}

impl Element for f16 {
    const CUDA_TYPE: i32 = 2;
}

impl Element for bf16 {
    const CUDA_TYPE: i32 = 14;
}

impl Element for F8E4M3 {
    const CUDA_TYPE: i32 = 28;
}

impl Element for F8E5M2 {
    const CUDA_TYPE: i32 = 29;
}

impl Element for f64 {
    const CUDA_TYPE: i32 = 1;
    const COMPUTE: Compute = Compute::F64;
}

impl Element for i8 {
    const CUDA_TYPE: i32 = 3;
    const COMPUTE: Compute = Compute::I32;
}

impl Element for i32 {
    const CUDA_TYPE: i32 = 10;
    const COMPUTE: Compute = Compute::I32;
}

/// cuBLASLt's epilogue of a product.
#[derive(Debug)]
pub struct Epilogue<D: DeviceData> {
    /// A number for each place in a contiguous run of C: for each column if C is row-major.
    pub bias: Option<Rc<Buffer<D>>>,
    /// The function applied last.
    pub activation: Option<Activation>,
}

/// The scales of an A and a B of 8-bit floats. There must be as many as the mode says.
#[derive(Clone, Debug)]
pub struct Scales {
    /// Which elements have a scale in common.
    pub mode: ScaleMode,
    /// A's.
    pub a: Rc<Buffer<f32>>,
    /// B's.
    pub b: Rc<Buffer<f32>>,
}

/// Which elements of A, and of B, have a scale in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleMode {
    /// All of them.
    Tensor,
    /// A row of A, and a column of B.
    Outer,
    /// 1×128 elements of A, whose scales for 128 of k are neighbours, and 128×128 of B, whose scales for 128 columns are
    /// neighbours and begin at multiples of four.
    Blocks,
}

impl ScaleMode {
    /// The `cublasLtMatmulMatrixScale_t` of A, and of B.
    fn codes(self) -> [i32; 2] {
        match self {
            ScaleMode::Tensor => [0; 2],
            ScaleMode::Outer => [3; 2],
            ScaleMode::Blocks => [4, 5],
        }
    }
}

/// The activations of cuBLASLt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `max(x, 0)`.
    Relu,
    /// `x · Φ(x)`.
    Gelu,
}

impl<D: DeviceData> Default for Epilogue<D> {
    fn default() -> Self {
        Epilogue {
            bias: None,
            activation: None,
        }
    }
}

impl<D: DeviceData> Epilogue<D> {
    /// Its `cublasLtEpilogue_t`.
    fn code(&self) -> u32 {
        let activation = match self.activation {
            None => 0,
            Some(Activation::Relu) => 2,
            Some(Activation::Gelu) => 32,
        };
        let bias = if self.bias.is_some() { 4 } else { 0 };
        // `CUBLASLT_EPILOGUE_DEFAULT` is 1.
        (activation | bias).max(1)
    }
}

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(super) struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    status: i32,
    waves: f32,
    reserved: [i32; 4],
}

/// A product set up in cuBLASLt, with elements `T` in and `D` out, and the algorithms that its heuristics propose. The
/// first is cuBLASLt's own choice.
pub struct Matmul<'a, T, D: DeviceData> {
    cublas: &'a Cublas,
    problem: Problem,
    /// alpha and beta.
    factors: [Factor; 2],
    shape: ColumnMajor,
    operation: Described<'a>,
    first: Described<'a>,
    second: Described<'a>,
    result: Described<'a>,
    heuristics: Vec<Heuristic>,
    /// Kept because the operation holds their addresses.
    _bias: Option<Rc<Buffer<D>>>,
    _scales: Option<Scales>,
    elements: PhantomData<fn(T) -> D>,
}

impl Cublas {
    /// Sets up a product and asks for the first `top` algorithms.
    ///
    /// # Errors
    /// [`CublasError::BadProblem`] if cuBLASLt does not support it, [`CublasError::Status`].
    pub fn matmul<T: Element, D: Element>(
        &self,
        problem: Problem,
        top: usize,
    ) -> Result<Matmul<'_, T, D>, CublasError> {
        self.matmul_by(problem, T::COMPUTE, Epilogue::default(), None, top)
    }

    /// [`matmul`](Self::matmul) with a way of computing, an epilogue and scales of 8-bit floats.
    ///
    /// # Errors
    /// As [`matmul`](Self::matmul); [`CublasError::Device`] if the bias or the scales are not on the stream's device.
    pub fn matmul_by<T: Element, D: Element>(
        &self,
        problem: Problem,
        compute: Compute,
        epilogue: Epilogue<D>,
        scales: Option<Scales>,
        top: usize,
    ) -> Result<Matmul<'_, T, D>, CublasError> {
        self.bind()?;
        // `run` checks the buffers.
        let shape = problem.column_major([usize::MAX; 3])?;
        let operation = self.operation(&shape, compute, &epilogue)?;
        if let Some(scales) = &scales {
            self.set_scales(&operation, &shape, scales)?;
        }
        let layout = |cuda_type, stored| layout(self.library, cuda_type, stored, problem.batch);
        let first = layout(T::CUDA_TYPE, shape.first)?;
        let second = layout(T::CUDA_TYPE, shape.second)?;
        let result = layout(D::CUDA_TYPE, shape.result)?;
        let heuristics = self.heuristics(top, [&operation, &first, &second, &result, &result])?;
        Ok(Matmul {
            cublas: self,
            problem,
            factors: [problem.alpha, problem.beta].map(|value| compute.factor(value)),
            shape,
            operation,
            first,
            second,
            result,
            heuristics,
            _bias: epilogue.bias,
            _scales: scales,
            elements: PhantomData,
        })
    }

    /// The descriptor of a product.
    fn operation<D: Element>(
        &self,
        shape: &ColumnMajor,
        compute: Compute,
        epilogue: &Epilogue<D>,
    ) -> Result<Described<'_>, CublasError> {
        let library = self.library;
        let operation =
            Described::new(library.lt_desc_destroy, "cublasLtMatmulDescCreate", |out| {
                // SAFETY: the function writes one handle.
                unsafe { (library.lt_desc_create)(out, compute.code(), compute.factor_type()) }
            })?;
        for (attribute, stored) in [
            (TRANSPOSE_FIRST, shape.first),
            (TRANSPOSE_SECOND, shape.second),
        ] {
            operation.set(library, attribute, &i32::from(stored.transposed))?;
        }
        if compute == Compute::FastF8 {
            operation.set(library, FAST_ACCUMULATION, &1i8)?;
        }
        operation.set(library, EPILOGUE, &epilogue.code())?;
        if let Some(bias) = &epilogue.bias {
            self.expect(&[("the bias", bias.device())])?;
            if bias.len() < shape.m {
                return Err(CublasError::BadProblem(format!(
                    "the bias has {} elements, {} are needed",
                    bias.len(),
                    shape.m
                )));
            }
            operation.set(library, BIAS_POINTER, &bias.view().address())?;
        }
        Ok(operation)
    }

    /// Gives an operation the scales of its operands.
    fn set_scales(
        &self,
        operation: &Described<'_>,
        shape: &ColumnMajor,
        Scales { mode, a, b }: &Scales,
    ) -> Result<(), CublasError> {
        self.expect(&[("A's scales", a.device()), ("B's scales", b.device())])?;
        let [of_a, of_b] = mode.codes();
        let [first, second] = match shape.swapped {
            false => [(of_a, a), (of_b, b)],
            true => [(of_b, b), (of_a, a)],
        };
        for (mode, pointer, (code, scales)) in [
            (SCALE_MODE_FIRST, SCALE_POINTER_FIRST, first),
            (SCALE_MODE_SECOND, SCALE_POINTER_SECOND, second),
        ] {
            operation.set(self.library, mode, &code)?;
            operation.set(self.library, pointer, &scales.view().address())?;
        }
        Ok(())
    }

    fn heuristics(
        &self,
        top: usize,
        [operation, a, b, c, d]: [&Described<'_>; 5],
    ) -> Result<Vec<Heuristic>, CublasError> {
        let library = self.library;
        let preference = Described::new(
            library.lt_preference_destroy,
            "cublasLtMatmulPreferenceCreate",
            |out| {
                // SAFETY: the function writes one handle.
                unsafe { (library.lt_preference_create)(out) }
            },
        )?;
        let bytes: *const usize = &WORKSPACE_BYTES;
        // SAFETY: the attribute is a u64 that outlives the call.
        let status = unsafe {
            (library.lt_preference_set)(preference.handle, MAX_WORKSPACE, bytes.cast(), 8)
        };
        check("cublasLtMatmulPreferenceSetAttribute", status)?;

        let mut found = vec![Heuristic::default(); top.max(1)];
        let mut count = 0;
        // SAFETY: there is room for as many results as are asked for, and all handles are alive.
        let status = unsafe {
            (library.lt_heuristics)(
                self.lt_handle,
                operation.handle,
                a.handle,
                b.handle,
                c.handle,
                d.handle,
                preference.handle,
                i32::try_from(found.len()).unwrap_or(i32::MAX),
                found.as_mut_ptr(),
                &mut count,
            )
        };
        check("cublasLtMatmulAlgoGetHeuristic", status)?;
        found.truncate(usize::try_from(count).unwrap_or(0));
        found.retain(|heuristic| {
            heuristic.status == 0 && heuristic.workspace_bytes <= WORKSPACE_BYTES
        });
        if found.is_empty() {
            return Err(CublasError::BadProblem(
                "its heuristics know no algorithm for these types and layouts".to_string(),
            ));
        }
        Ok(found)
    }
}

impl<T: Element, D: Element> Matmul<'_, T, D> {
    /// How many algorithms there are: at least one.
    pub fn algorithms(&self) -> usize {
        self.heuristics.len()
    }

    /// Puts the product into the stream, by algorithm number `pick` of [`algorithms`](Self::algorithms). Number 0 is
    /// cuBLASLt's own choice.
    ///
    /// # Errors
    /// [`CublasError::BadProblem`] if an operand does not fit its buffer, there is no such algorithm, or it does not
    /// support the product; [`CublasError::Device`] if an operand is not on the stream's device;
    /// [`CublasError::Status`].
    pub fn run(
        &self,
        stream: &Stream,
        pick: usize,
        a: View<'_, T>,
        b: View<'_, T>,
        c: &mut ViewMut<'_, D>,
    ) -> Result<(), CublasError> {
        let heuristic = self.heuristics.get(pick).ok_or_else(|| {
            let count = self.heuristics.len();
            CublasError::BadProblem(format!("there are {count} algorithms, not {}", pick + 1))
        })?;
        let cublas = self.cublas;
        cublas.expect(&[
            ("the stream", stream.device()),
            ("A", a.device()),
            ("B", b.device()),
            ("C", c.device()),
        ])?;
        self.problem.column_major([a.len(), b.len(), c.len()])?;
        let (first, second) = if self.shape.swapped { (b, a) } else { (a, b) };
        let pointer = |address: u64| ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        let result = pointer(c.address());
        cublas.bind()?;
        let raw_stream = stream.as_raw().ok_or(CublasError::NoGpu)?;
        // SAFETY: all handles are alive, the extents were checked against the buffers, and the factors are on the host
        // and have the type that the operation expects. The workspace has the size that is passed, and its uses are
        // ordered by the stream.
        let status = unsafe {
            (cublas.library.lt_matmul)(
                cublas.lt_handle,
                self.operation.handle,
                self.factors[0].pointer(),
                pointer(first.address()),
                self.first.handle,
                pointer(second.address()),
                self.second.handle,
                self.factors[1].pointer(),
                result,
                self.result.handle,
                result,
                self.result.handle,
                &heuristic.algorithm,
                pointer(cublas.workspace.view().address()),
                WORKSPACE_BYTES,
                raw_stream,
            )
        };
        check("cublasLtMatmul", status)
    }
}

/// A descriptor of cuBLASLt, destroyed when dropped.
struct Described<'a> {
    handle: *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void) -> i32,
    library: PhantomData<&'a Library>,
}

impl Described<'_> {
    fn new(
        destroy: unsafe extern "C" fn(*mut c_void) -> i32,
        call: &'static str,
        create: impl FnOnce(*mut *mut c_void) -> i32,
    ) -> Result<Self, CublasError> {
        let mut handle = ptr::null_mut();
        check(call, create(&mut handle))?;
        Ok(Described {
            handle,
            destroy,
            library: PhantomData,
        })
    }

    /// Sets an attribute of an operation.
    fn set<T>(&self, library: &Library, attribute: i32, value: &T) -> Result<(), CublasError> {
        let bytes: *const T = value;
        // SAFETY: the attribute is of this type, and the value outlives the call.
        let status =
            unsafe { (library.lt_desc_set)(self.handle, attribute, bytes.cast(), size_of::<T>()) };
        check("cublasLtMatmulDescSetAttribute", status)
    }
}

impl Drop for Described<'_> {
    fn drop(&mut self) {
        // SAFETY: the matching function made the handle, which is destroyed once.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// `batch` matrices of this layout, one behind the other.
fn layout(
    library: &Library,
    cuda_type: i32,
    stored: Stored,
    batch: usize,
) -> Result<Described<'_>, CublasError> {
    let Ok(count) = i32::try_from(batch) else {
        return Err(CublasError::BadProblem(format!(
            "a batch of {batch} matrices was asked for, but cuBLASLt counts them in 32 bits; use a smaller batch"
        )));
    };
    let leading = i64::try_from(stored.leading).unwrap_or(i64::MAX);
    let layout = Described::new(
        library.lt_layout_destroy,
        "cublasLtMatrixLayoutCreate",
        |out| {
            // SAFETY: the function writes one handle.
            unsafe {
                (library.lt_layout_create)(
                    out,
                    cuda_type,
                    stored.rows as u64,
                    stored.columns as u64,
                    leading,
                )
            }
        },
    )?;
    let set = |attribute, bytes: *const c_void, len| {
        // SAFETY: the attribute is of this type, and the value outlives the call.
        let status = unsafe { (library.lt_layout_set)(layout.handle, attribute, bytes, len) };
        check("cublasLtMatrixLayoutSetAttribute", status)
    };
    let stride = stored.len() as i64;
    set(BATCH_COUNT, ptr::from_ref(&count).cast(), size_of::<i32>())?;
    set(
        BATCH_STRIDE,
        ptr::from_ref(&stride).cast(),
        size_of::<i64>(),
    )?;
    Ok(layout)
}
