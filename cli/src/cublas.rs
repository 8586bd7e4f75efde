//! NVIDIA's cuBLAS and cuBLASLt as the baseline, loaded at run time where present.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cutlet_cli::cublas::{Cublas, Major, Operand, Problem};
//! use half::bf16;
//!
//! let stream = cutlet_host::Device::gpu(0)?.stream()?;
//! let square = Operand { major: Major::Row, leading: 512 };
//! let (m, n, k) = (512, 512, 512);
//! let (a, b, c) = (square, square, square);
//! let problem = Problem { m, n, k, a, b, c, alpha: 1.0, beta: 0.0, batch: 1 };
//!
//! let cublas = Cublas::new(stream.device())?;
//! let (a, mut c) = (stream.zeroed(512 * 512)?, stream.zeroed(512 * 512)?);
//! cublas.sgemm(&stream, &problem, a.view(), a.view(), &mut c.view_mut())?;
//!
//! // cuBLASLt, with each of the first 8 algorithms that its heuristics propose.
//! let matmul = cublas.matmul::<bf16, bf16>(problem, 8)?;
//! let (a, mut c) = (stream.zeroed(512 * 512)?, stream.zeroed(512 * 512)?);
//! for pick in 0..matmul.algorithms() {
//!     matmul.run(&stream, pick, a.view(), a.view(), &mut c.view_mut())?;
//! }
//! # Ok(()) }
//! ```

mod library;
mod matmul;
mod problem;
mod sgemm;

use std::ffi::c_void;

use cutlet_host::{Backend, Buffer, Device};

pub use library::{Library, Place};
pub use matmul::{Activation, Compute, Element, Epilogue, Matmul, ScaleMode, Scales};
pub use problem::{Major, Operand, Problem};

/// cuBLASLt's workspace in bytes: twice PyTorch's on Hopper. Algorithms that need more are not proposed.
pub const WORKSPACE_BYTES: usize = 64 << 20;

/// Why the baseline did not run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CublasError {
    /// The libraries were not found.
    #[error(
        "cuBLAS was asked for, but {found}; `pip install nvidia-cublas` brings it, or set {} to the folder that holds it",
        library::FOLDER_VARIABLE
    )]
    Missing {
        /// What was found instead.
        found: String,
    },
    /// The baseline needs a GPU.
    #[error("cuBLAS was asked for on the CPU backend; it needs a GPU")]
    NoGpu,
    /// The problem does not fit its buffers or cuBLAS' integers, or cuBLAS does not support it.
    #[error("cuBLAS: {0}")]
    BadProblem(String),
    /// A call failed.
    #[error("cuBLAS: {call} returned status {status}; another version of cuBLAS may support it")]
    Status {
        /// The function.
        call: &'static str,
        /// Its `cublasStatus_t`.
        status: i32,
    },
    /// A buffer or stream failed.
    #[error("cuBLAS: {0}")]
    Device(String),
}

impl CublasError {
    /// Why there is no baseline although nothing failed: no library, no GPU or no such product.
    ///
    /// # Errors
    /// The error itself, if a call failed.
    pub fn absence(self) -> Result<String, CublasError> {
        match self {
            CublasError::Missing { .. } | CublasError::NoGpu | CublasError::BadProblem(_) => {
                Ok(self.to_string())
            }
            CublasError::Status { .. } | CublasError::Device(_) => Err(self),
        }
    }
}

impl From<cutlet_host::Error> for CublasError {
    fn from(error: cutlet_host::Error) -> Self {
        CublasError::Device(error.to_string())
    }
}

/// cuBLAS and cuBLASLt on a device. Work of one stream at a time may use it, because all work has the same workspace.
pub struct Cublas {
    library: &'static Library,
    device: Device,
    handle: *mut c_void,
    lt_handle: *mut c_void,
    workspace: Buffer<u8>,
}

impl Cublas {
    /// Loads the libraries, once a process, and makes handles for this device.
    ///
    /// # Errors
    /// [`CublasError::NoGpu`] on the CPU, [`CublasError::Missing`] without the libraries,
    /// [`CublasError::Status`], [`CublasError::Device`].
    pub fn new(device: &Device) -> Result<Cublas, CublasError> {
        if device.backend() == Backend::Cpu {
            return Err(CublasError::NoGpu);
        }
        let library = Library::load()?;
        let workspace = device.stream()?.zeroed(WORKSPACE_BYTES)?;
        let mut made = Cublas {
            library,
            device: device.clone(),
            handle: std::ptr::null_mut(),
            lt_handle: std::ptr::null_mut(),
            workspace,
        };
        // SAFETY: allocating the workspace made the device current in this thread. Each call writes one handle
        // or takes the handle just made.
        unsafe {
            check("cublasCreate", (library.create)(&mut made.handle))?;
            check("cublasLtCreate", (library.lt_create)(&mut made.lt_handle))?;
        }
        Ok(made)
    }

    /// The version of cuBLASLt as a number: 130200 is 13.2.0.
    pub fn version(&self) -> usize {
        self.library.version()
    }

    /// Refuses a stream and memory of another device, as a launch does.
    fn expect(&self, places: &[(&str, &Device)]) -> Result<(), CublasError> {
        match places.iter().find(|(_, device)| **device != self.device) {
            None => Ok(()),
            Some((what, device)) => Err(cutlet_host::Error::WrongDevice {
                what: format!("{what} of a product by cuBLAS"),
                found: device.name().to_string(),
                expected: self.device.name().to_string(),
            }
            .into()),
        }
    }

    /// Makes the device current in this thread, as every call needs it.
    fn bind(&self) -> Result<(), CublasError> {
        Ok(self.device.make_current()?)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        if self.bind().is_err() {
            return;
        }
        // SAFETY: handles that are not null were made in `new` and are destroyed once. Errors cannot be reported here.
        unsafe {
            if !self.handle.is_null() {
                (self.library.destroy)(self.handle);
            }
            if !self.lt_handle.is_null() {
                (self.library.lt_destroy)(self.lt_handle);
            }
        }
    }
}

/// `CUBLAS_STATUS_NOT_SUPPORTED`: the call is right, but there is no such algorithm.
const NOT_SUPPORTED: i32 = 15;

/// Turns a `cublasStatus_t` into a result.
fn check(call: &'static str, status: i32) -> Result<(), CublasError> {
    match status {
        0 => Ok(()),
        NOT_SUPPORTED => Err(CublasError::BadProblem(format!(
            "{call} does not support these types, these layouts or this epilogue"
        ))),
        status => Err(CublasError::Status { call, status }),
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use cutlet_host::Stream;
    use cutlet_not_run::not_run;
    use half::{bf16, f16};

    use super::*;

    /// A stream and cuBLAS on it, where there is a GPU and cuBLAS.
    fn cublas() -> Option<(Stream, Cublas)> {
        let device = Device::auto();
        if device.backend() == Backend::Cpu {
            not_run("there is no GPU");
            return None;
        }
        let stream = device.stream().unwrap();
        match Cublas::new(&device) {
            Ok(cublas) => Some((stream, cublas)),
            Err(error) => {
                not_run(&error.to_string());
                None
            }
        }
    }

    /// Every combination of majors, with leading dimensions larger than needed.
    fn problems() -> Vec<Problem> {
        let (m, n, k) = (24, 16, 40);
        let operand = |row: bool, rows: usize, columns: usize| {
            let (major, least) = if row {
                (Major::Row, columns)
            } else {
                (Major::Column, rows)
            };
            Operand {
                major,
                leading: least + 8,
            }
        };
        let all = (0..8).map(|bits| Problem {
            m,
            n,
            k,
            a: operand(bits & 1 != 0, m, k),
            b: operand(bits & 2 != 0, k, n),
            c: operand(bits & 4 != 0, m, n),
            alpha: 2.0,
            beta: -1.0,
            batch: 1,
        });
        all.collect()
    }

    fn at(operand: Operand, row: usize, column: usize) -> usize {
        match operand.major {
            Major::Row => row * operand.leading + column,
            Major::Column => row + column * operand.leading,
        }
    }

    /// Small whole numbers, so that all sums are exact; enough for any operand.
    fn data(seed: usize) -> Vec<f32> {
        (0..48 * 48)
            .map(|at| ((at * 7 + seed * 13) % 5) as f32 - 2.0)
            .collect()
    }

    fn expected(problem: &Problem, a: &[f32], b: &[f32], c: &[f32]) -> Vec<f32> {
        let mut result = c.to_vec();
        for (i, j) in (0..problem.m).flat_map(|i| (0..problem.n).map(move |j| (i, j))) {
            let sum: f32 = (0..problem.k)
                .map(|l| a[at(problem.a, i, l)] * b[at(problem.b, l, j)])
                .sum();
            let entry = at(problem.c, i, j);
            result[entry] = problem.alpha as f32 * sum + problem.beta as f32 * c[entry];
        }
        result
    }

    #[test]
    fn what_it_does_not_support_is_no_failed_call() {
        assert!(check("cublasLtMatmul", 0).is_ok());
        let unsupported = check("cublasLtMatmulAlgoGetHeuristic", 15);
        assert!(matches!(unsupported, Err(CublasError::BadProblem(_))));
        let failed = check("cublasLtMatmulAlgoGetHeuristic", 14);
        assert!(matches!(
            failed,
            Err(CublasError::Status { status: 14, .. })
        ));
    }

    #[test]
    fn what_is_not_there_is_no_failure_and_a_failed_call_is_one() {
        let missing = CublasError::Missing {
            found: "it is nowhere".to_string(),
        };
        let unsupported = check("cublasLtMatmulAlgoGetHeuristic", 15).unwrap_err();
        for absent in [missing, CublasError::NoGpu, unsupported] {
            let said = absent.to_string();
            assert_eq!(absent.absence().unwrap(), said);
        }
        let status = check("cublasCreate", 1).unwrap_err();
        for failed in [status, CublasError::Device("out of memory".to_string())] {
            let said = failed.to_string();
            assert_eq!(failed.absence().unwrap_err().to_string(), said);
        }
    }

    #[test]
    fn sgemm_is_the_product() {
        let Some((stream, cublas)) = cublas() else {
            return;
        };
        let (a, b, c) = (data(1), data(2), data(3));
        let (on_a, on_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());
        for problem in problems() {
            let mut on_c = stream.upload(&c).unwrap();
            cublas
                .sgemm(
                    &stream,
                    &problem,
                    on_a.view(),
                    on_b.view(),
                    &mut on_c.view_mut(),
                )
                .unwrap();
            let found = stream.download(&on_c).unwrap();
            assert_eq!(found, expected(&problem, &a, &b, &c), "{problem:?}");
        }
    }

    #[test]
    fn memory_of_another_device_is_refused() {
        let Some((stream, cublas)) = cublas() else {
            return;
        };
        let elsewhere = Device::cpu().stream().unwrap();
        let problem = problems()[0];
        let here = stream.upload(&data(1)).unwrap();
        let there = elsewhere.upload(&data(1)).unwrap();
        let matmul = cublas.matmul::<f32, f32>(problem, 1).unwrap();
        for (a, b, c, what) in [
            (&there, &here, &stream, "A"),
            (&here, &there, &stream, "B"),
            (&here, &here, &elsewhere, "C"),
        ] {
            let mut c = c.upload(&data(3)).unwrap();
            let by_cublas = cublas.sgemm(&stream, &problem, a.view(), b.view(), &mut c.view_mut());
            let by_lt = matmul.run(&stream, 0, a.view(), b.view(), &mut c.view_mut());
            for refused in [by_cublas, by_lt] {
                let error = refused.unwrap_err().to_string();
                let expected = format!("cuBLAS: {what} of a product by cuBLAS is on ");
                assert!(error.starts_with(&expected), "{error}");
            }
        }
        let epilogue = Epilogue {
            bias: Some(Rc::new(there)),
            activation: None,
        };
        let refused = cublas.matmul_by::<f32, f32>(problem, Compute::F32, epilogue, None, 1);
        let error = refused.err().unwrap().to_string();
        assert!(error.starts_with("cuBLAS: the bias of"), "{error}");
    }

    fn every_algorithm_is_the_product<T: Element, D: Element>(
        narrow: fn(f32) -> T,
        narrow_result: fn(f32) -> D,
        wide: fn(D) -> f32,
    ) {
        let Some((stream, cublas)) = cublas() else {
            return;
        };
        let (a, b, c) = (data(1), data(2), data(3));
        let upload = |data: &[f32]| {
            let narrowed: Vec<T> = data.iter().map(|&x| narrow(x)).collect();
            stream.upload(&narrowed).unwrap()
        };
        let (on_a, on_b) = (upload(&a), upload(&b));
        let mut supported = 0;
        let start: Vec<D> = c.iter().map(|&x| narrow_result(x)).collect();
        for problem in problems() {
            let expected = expected(&problem, &a, &b, &c);
            let matmul = match cublas.matmul::<T, D>(problem, 4) {
                // Integers are multiplied in one combination of orders alone.
                Err(CublasError::BadProblem(_)) if T::COMPUTE == Compute::I32 => continue,
                matmul => matmul.unwrap(),
            };
            supported += 1;
            for pick in 0..matmul.algorithms() {
                let mut on_c = stream.upload(&start).unwrap();
                matmul
                    .run(
                        &stream,
                        pick,
                        on_a.view(),
                        on_b.view(),
                        &mut on_c.view_mut(),
                    )
                    .unwrap();
                let found = stream.download(&on_c).unwrap();
                let found: Vec<f32> = found.into_iter().map(wide).collect();
                assert_eq!(found, expected, "{problem:?}, algorithm {pick}");
            }
            let none = matmul.run(
                &stream,
                matmul.algorithms(),
                on_a.view(),
                on_b.view(),
                &mut stream.upload(&start).unwrap().view_mut(),
            );
            assert!(matches!(none, Err(CublasError::BadProblem(_))));
        }
        assert!(supported > 0);
    }

    #[test]
    fn f32_algorithms_are_the_product() {
        every_algorithm_is_the_product::<f32, f32>(|x| x, |x| x, |x| x);
    }

    #[test]
    fn f16_algorithms_are_the_product() {
        every_algorithm_is_the_product::<f16, f16>(f16::from_f32, f16::from_f32, f16::to_f32);
    }

    #[test]
    fn f64_algorithms_are_the_product() {
        every_algorithm_is_the_product::<f64, f64>(f64::from, f64::from, |x| x as f32);
    }

    #[test]
    fn i8_algorithms_are_the_product() {
        every_algorithm_is_the_product::<i8, i32>(|x| x as i8, |x| x as i32, |x| x as f32);
    }

    #[test]
    fn bf16_algorithms_are_the_product() {
        every_algorithm_is_the_product::<bf16, f32>(bf16::from_f32, |x| x, |x| x);
    }
}
