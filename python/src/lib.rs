//! The extension module of the Python package `cutlet`.
//!
//! A function of the module reads its arrays in place (`array`), finds the caller's stream (`stream`), and calls
//! the function of the same name of the library. Code in Python runs only where a framework makes an output.

mod array;
mod attention;
mod attention_backward;
mod attention_decode;
mod call;
mod cast;
mod contract;
mod data_type;
mod doctor;
mod driver;
mod error;
mod gemm;
mod grouped_gemm;
mod interleave;
mod layout;
mod moe;
mod options;
mod output;
mod own_kernels;
mod permute;
mod plan;
mod product;
mod rope;
mod rowops;
mod rows;
mod sample;
mod stream;
mod swiglu;
mod tune;
mod tuning;
mod words;

use pyo3::prelude::*;

/// The functions of `cutlet`.
#[pymodule]
mod _cutlet {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::output::note_package(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use crate::attention::attention;
    #[pymodule_export]
    use crate::attention_backward::attention_backward;
    #[pymodule_export]
    use crate::attention_decode::attention_decode;
    #[pymodule_export]
    use crate::cast::cast;
    #[pymodule_export]
    use crate::contract::contract;
    #[pymodule_export]
    use crate::doctor::report;
    #[pymodule_export]
    use crate::gemm::{gemm, gemm_batched};
    #[pymodule_export]
    use crate::grouped_gemm::grouped_gemm;
    #[pymodule_export]
    use crate::interleave::interleave_rows;
    #[pymodule_export]
    use crate::layout::{Layout, LayoutError, call, evaluate, explain, signatures};
    #[pymodule_export]
    use crate::moe::{moe, moe_rows, top_k};
    #[pymodule_export]
    use crate::own_kernels::{Kernel, Module, load};
    #[pymodule_export]
    use crate::permute::permute;
    #[pymodule_export]
    use crate::plan::{Plan, plan_gemm};
    #[pymodule_export]
    use crate::rope::rope;
    #[pymodule_export]
    use crate::rowops::{argmax, layer_norm, quantize, reduce, rms_norm, softmax};
    #[pymodule_export]
    use crate::rows::{check, embedding_bag, gather, scatter, scatter_add};
    #[pymodule_export]
    use crate::sample::sample;
    #[pymodule_export]
    use crate::swiglu::{silu_mul, swiglu};
    #[pymodule_export]
    use crate::tune::{Tuned, tune};
    #[pymodule_export]
    use crate::tuning::install_tuning;
}
