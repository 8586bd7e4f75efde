//! The host's side: a plan for the kernel.

use core::ptr::with_exposed_provenance;

use cutlet::{Buffer, DeviceTensor, EpiloguePlan, Result, Stream};
use cutlet_device::Global;
use cutlet_kernels::gemm::epilogue::{ColumnBias, Gelu, Then};
use cutlet_kernels::gemm::sm90::instance::Instance;
use half::bf16;

use crate::{BiasGeluCap, Cap, Kernel, PTX, gemm_bias_gelu_cap};

static INSTANCE: Instance<bf16, BiasGeluCap> = Instance::new::<Kernel>(&gemm_bias_gelu_cap);

/// `C = min(gelu(A·B + bias), cap)`, planned once and run again and again.
#[derive(Debug)]
pub struct GemmBiasGeluCap(EpiloguePlan<bf16, BiasGeluCap>);

impl GemmBiasGeluCap {
    /// A plan for tensors like these.
    ///
    /// # Errors
    /// As [`EpiloguePlan::new`].
    pub fn new(
        stream: &Stream,
        a: &DeviceTensor<bf16>,
        b: &DeviceTensor<bf16>,
        c: &mut DeviceTensor<bf16>,
    ) -> Result<Self> {
        EpiloguePlan::new(stream, &PTX, &INSTANCE, a, b, c).map(Self)
    }

    /// Computes C.
    ///
    /// # Panics
    /// If the bias is shorter than C's rows, or on another device than the stream.
    ///
    /// # Errors
    /// As [`EpiloguePlan::run`].
    pub fn run(
        &self,
        stream: &Stream,
        a: &DeviceTensor<bf16>,
        b: &DeviceTensor<bf16>,
        bias: &Buffer<bf16>,
        cap: f32,
        c: &mut DeviceTensor<bf16>,
    ) -> Result<()> {
        let n = c.layout().mode(1).size() as usize;
        assert!(bias.len() >= n && bias.device() == stream.device());
        let read = bias.view();
        let bias = Global::from_ptr(with_exposed_provenance(read.address() as usize));
        // SAFETY: the bias has n elements. The plan's kernel stores C by TMA, so n is a multiple of 8. A buffer is
        // aligned.
        let first = unsafe { ColumnBias::new(bias, n as i32) };
        let (most, padding) = (cap, 0);
        let second = Then {
            first: Gelu,
            second: Cap { most, padding },
        };
        // The epilogue has an address alone. This keeps the bias until the kernel is done.
        read.use_in(stream, "gemm", "the bias")?;
        // SAFETY: the epilogue reads the bias, which is as long as C's rows and on the stream's device.
        unsafe { self.0.run(stream, a, b, c, Then { first, second }) }
    }
}
