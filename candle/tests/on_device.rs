//! The device of the tests, and random tensors on it.

use candle_core::{DType, Device, Result, Shape, Tensor};

/// GPU 0 if the build can use one and there is one, else the CPU.
pub fn device() -> Device {
    Device::cuda_if_available(0).expect("a GPU that is there works")
}

/// Element types of most operations.
pub const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// A tensor with the same elements in every run, from −1 to 1.
pub fn random(seed: u64, shape: impl Into<Shape>, dtype: DType) -> Result<Tensor> {
    let shape = shape.into();
    let mut random = fastrand::Rng::with_seed(seed);
    let elements: Vec<f32> = (0..shape.elem_count())
        .map(|_| 2.0 * random.f32() - 1.0)
        .collect();
    Tensor::from_vec(elements, shape, &device())?.to_dtype(dtype)
}

/// Numbers below `below`, which repeat.
pub fn ids(seed: u64, count: usize, below: u32, dtype: DType) -> Result<Tensor> {
    let mut random = fastrand::Rng::with_seed(seed);
    let ids: Vec<u32> = (0..count).map(|_| random.u32(..below)).collect();
    Tensor::new(ids, &device())?.to_dtype(dtype)
}
