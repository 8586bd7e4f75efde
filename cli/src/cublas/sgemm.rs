//! f32 GEMM through cuBLAS.

use cutlet_host::{Stream, View, ViewMut};

use super::{Cublas, CublasError, Problem, check};

impl Cublas {
    /// Puts `C = alpha·A·B + beta·C` in f32 (without TF32) into the stream.
    ///
    /// # Errors
    /// [`CublasError::BadProblem`] if an operand does not fit its buffer, [`CublasError::Device`] if it is not on the
    /// stream's device, [`CublasError::Status`].
    pub fn sgemm(
        &self,
        stream: &Stream,
        problem: &Problem,
        a: View<'_, f32>,
        b: View<'_, f32>,
        c: &mut ViewMut<'_, f32>,
    ) -> Result<(), CublasError> {
        self.expect(&[
            ("the stream", stream.device()),
            ("A", a.device()),
            ("B", b.device()),
            ("C", c.device()),
        ])?;
        if problem.batch != 1 {
            return Err(CublasError::BadProblem(format!(
                "cublasSgemm computes one product, not {}",
                problem.batch
            )));
        }
        let it = problem.column_major([a.len(), b.len(), c.len()])?;
        let (first, second) = if it.swapped { (b, a) } else { (a, b) };
        let int = |extent: usize| i32::try_from(extent).unwrap_or(i32::MAX);
        let (alpha, beta) = (problem.alpha as f32, problem.beta as f32);
        self.bind()?;
        let raw_stream = stream.as_raw().ok_or(CublasError::NoGpu)?;
        // SAFETY: handle and stream are alive and of the current device.
        let status = unsafe { (self.library.set_stream)(self.handle, raw_stream) };
        check("cublasSetStream", status)?;
        // SAFETY: the extents were checked against the buffers and against i32. The factors are on the host, where
        // cuBLAS expects them by default.
        let status = unsafe {
            (self.library.sgemm)(
                self.handle,
                i32::from(it.first.transposed),
                i32::from(it.second.transposed),
                int(it.m),
                int(it.n),
                int(it.k),
                &alpha,
                std::ptr::with_exposed_provenance(first.address() as usize),
                int(it.first.leading),
                std::ptr::with_exposed_provenance(second.address() as usize),
                int(it.second.leading),
                &beta,
                std::ptr::with_exposed_provenance_mut(c.address() as usize),
                int(it.result.leading),
            )
        };
        check("cublasSgemm", status)
    }
}
