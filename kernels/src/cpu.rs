//! What is compiled of the kernels for the CPU.
//!
//! The unit tests of this package run no kernel, so none is compiled for them. A build without the CPU backend uses
//! neither constant, and one without some families may use one of them.
#![allow(dead_code)]

use cutlet_device::CpuBody;

/// The body, once.
pub(crate) const BODY: CpuBody = if cfg!(test) {
    CpuBody::None
} else {
    CpuBody::Plain
};

/// The body of a kernel that mostly multiplies and adds, a second time for processors with AVX2 and FMA.
pub(crate) const VECTOR_BODY: CpuBody = if cfg!(test) {
    CpuBody::None
} else {
    CpuBody::Vector
};
