//! GEMM kernels and kernels that move data by indices, written in Rust over CuTe layouts, on NVIDIA GPUs or on the CPU.
//!
//! The operations are [`gemm`]; [`gather`](fn@gather), [`scatter`](fn@scatter) and [`scatter_add`](fn@scatter_add) of
//! rows; [`embedding_bag`](fn@embedding_bag); [`take_along_dim`]; [`permute`]; [`attention`](fn@attention); and
//! [`top_k`] with [`MoeRows`] for a mixture of experts. [`Device`], [`Stream`] and [`Buffer`] say where they run; [`Scratch`] and [`PinnedBuffer`] are
//! memory of a stream and of the host, [`layout!`] is CuTe's notation of a [`Layout`], and [`cpu::report`] counts what
//! kernels do on the CPU. A program that multiplies and moves rows needs this crate alone.
//!
//! ```
//! use cutlet::{Device, DeviceTensor, bf16, gemm};
//!
//! let device = Device::auto(); // GPU 0, or the CPU; `Device::gpu(0)?` is the GPU or an error
//! let stream = device.stream()?;
//! let a = DeviceTensor::upload(&stream, &[bf16::from_f32(0.5); 64 * 32], [64, 32])?;
//! let b = DeviceTensor::upload(&stream, &[bf16::from_f32(2.0); 32 * 16], [32, 16])?;
//! let mut c = DeviceTensor::<bf16>::zeroed(&stream, [64, 16])?;
//! gemm(&stream, 1.0, &a, &b, 0.0, &mut c)?;
//! assert_eq!(c.download(&stream)?[0].to_f32(), 32.0);
//! # Ok::<(), cutlet::Error>(())
//! ```
//!
//! Kernels of your own start from the crates `cutlet-device` (what a kernel body can say) and `cutlet-layout-core` (how
//! tensors are tiled and partitioned).

mod attention;
mod batch;
mod capture;
mod contract;
#[cfg(feature = "dlpack")]
mod dlpack_tensor;
mod embedding_bag;
mod error;
mod gather;
mod gemm;
mod interleave;
mod into_tensor;
mod matrix;
mod moe;
mod permute;
mod recently_used;
mod rowops;
mod rows;
mod scatter;
mod swiglu;
mod take_along_dim;
mod tensor;

pub use attention::{Attention, AttentionDecode, AttentionElement, AttentionKernels, attention};
pub use capture::{capture, capture_owned};
pub use contract::{Contraction, contract};
pub use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
pub use cutlet_device::{DeviceData, Float};
#[cfg(feature = "dlpack")]
pub use cutlet_host::dlpack;
pub use cutlet_host::{
    Backend, Buffer, Device, Error as HostError, Event, Graph, IntoView, IntoViewMut, OwnedGraph,
    PinnedBuffer, Scratch, Stream, View, ViewMut, cpu, gpu_count,
};
pub use cutlet_kernels::rows::functions::{AnyBinary, AnyUnary, Binary, Unary};
pub use cutlet_kernels::rows::reduce::Reduction;
pub use cutlet_layout_core::{IntTuple, Layout, Tiler, layout, shape, tile};
pub use embedding_bag::{
    Bags, EmbeddingBag, PooledElement, Pooling, embedding_bag, embedding_bag_checked,
};
pub use error::{Error, Result};
pub use gather::{Gather, gather, gather_checked};
pub use gemm::{
    Activation, BetaKind, Bias, BiasAlong, BlockScaledOperand, DeviceRates, Element, ElementType,
    EpiloguePlan, Gemm, GroupEnds, GroupRows, IndexedRows, KernelFamily, Linear, Operand, Plan,
    Precision, ProblemKey, RowIndices, ScaledOperand, ScalesKind, Tuning, TuningEntry, gemm,
    recorded_problems,
};
pub use half::{bf16, f16};
pub use interleave::interleave_rows;
pub use into_tensor::{IntoTensor, IntoTensorMut};
pub use matrix::{MAX_EXTENT, Matrix, MatrixMut, Order};
pub use moe::{Logit, MoeRows, RouterWeights, top_k};
pub use permute::permute;
pub use rowops::{
    CacheElement, CastElement, MapElement, MapKernels, Norm, NormElement, Pairing, Quantize,
    QuantizedElement, ReducedElement, Rope, RopeElement, RopeTable, SampledElement, Sampling,
    Softmax, SoftmaxElement, add, argmax, argmin, binary, binary_in_place, cast, layer_norm, map1,
    map2, map3, mul, reduce, reduce_modes, rms_norm, softmax, unary, unary_in_place,
};
pub use rows::{Index, OutOfRange, check_indices};
pub use scatter::{
    AddElement, Scatter, ScatterAdd, scatter, scatter_add, scatter_add_checked, scatter_checked,
};
pub use swiglu::{GatedElement, silu_mul, swiglu};
pub use take_along_dim::{TakeAlongDim, take_along_dim, take_along_dim_checked};
pub use tensor::{DeviceTensor, IntoLayout, Tensor, TensorMut};

/// What the package `cutlet-fitting` needs, which fits the choice of a kernel to measured times. It is no part of the
/// public interface.
#[doc(hidden)]
pub mod __choice {
    pub use crate::gemm::choice::REACH;
    pub use crate::gemm::choice::correction::{LEAVES, Question, Tree, Trees, UNIT};
    pub use crate::gemm::choice::cost::{CostInput, FEATURES, Features, by_model};
    pub use crate::gemm::choice::device_speed::DeviceSpeed;
    pub use crate::gemm::choice::fastest;
    pub use crate::gemm::choice::measured::{H100, H200, any_type, extents};
}

/// Pages whose Rust blocks run as tests; a package does not carry them.
macro_rules! pages {
    ($($name:ident: $path:literal;)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!($path)]
            struct $name;
        )*
    };
}

pages! {
    FrontPage: "../README.md";
    Guide: "../docs/README.md";
    AttentionPage: "../docs/attention.md";
    ComingFrom: "../docs/coming-from.md";
    Contractions: "../docs/contractions.md";
    Convolution: "../docs/convolution.md";
    Debugging: "../docs/debugging.md";
    FirstLayouts: "../docs/first-layouts.md";
    GemmAndGather: "../docs/gemm-and-gather.md";
    GemmInNineSteps: "../docs/gemm-in-nine-steps.md";
    Graphs: "../docs/graphs.md";
    Kernels: "../docs/kernels.md";
    Launching: "../docs/launching.md";
    Movement: "../docs/movement.md";
    RmsNormPage: "../docs/rms-norm.md";
    RowsPage: "../docs/rows.md";
    SoftmaxPage: "../docs/softmax.md";
    StickingPoints: "../docs/sticking-points.md";
    Streams: "../docs/streams.md";
    Tensors: "../docs/tensors.md";
    TuningPage: "../docs/tuning.md";
}
