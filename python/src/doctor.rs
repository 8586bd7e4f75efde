//! What a machine has for kernels, in words: the driver, its GPUs, and the kernels that run on them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cutlet::{Device, Gemm, HostError, KernelFamily};
use pyo3::prelude::*;

/// The version, the driver, the GPUs, and the families of kernels that run on the first of them or else on the CPU.
#[pyfunction]
pub fn report() -> String {
    let mut text = format!(
        "cutlet {} for {}-{}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        std::env::consts::OS
    );
    let driver = match cutlet_host::driver_version() {
        Ok((major, minor)) => format!("NVIDIA, supports CUDA {major}.{minor}"),
        Err(HostError::NoDriver { found, .. }) => found,
        Err(error) => error.to_string(),
    };
    let _ = writeln!(text, "driver: {driver}");
    let count = cutlet::gpu_count().unwrap_or(0);
    for number in 0..count {
        let _ = writeln!(text, "{}", gpu(number));
    }
    if count == 0 {
        text += "gpu: none; kernels run on the CPU, for finding bugs\n";
    }
    let device = Device::gpu(0).unwrap_or_else(|_| Device::cpu());
    let _ = writeln!(text, "kernels on {}:", device.name());
    for (types, names) in families(&Gemm::families(&device)) {
        let _ = writeln!(text, "  gemm {types}: {}", names.join(", "));
    }
    text
}

fn gpu(number: usize) -> String {
    match Device::gpu(number) {
        Ok(device) => {
            let (major, minor) = device.compute_capability().unwrap_or_default();
            format!(
                "{}, compute capability {major}.{minor}, {} multiprocessors",
                device.name(),
                device.multiprocessors()
            )
        }
        Err(error) => format!("gpu {number}: {error}"),
    }
}

/// The families that run, by the types that they multiply. Where none runs, the reason of one of them.
fn families(all: &[KernelFamily]) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for family in all {
        let types = format!("{} into {}", family.operands, family.c);
        let names = found.entry(types).or_default();
        // Families that differ in the precision have one name.
        let name = family.name.to_string();
        if family.refusal.is_none() && !names.contains(&name) {
            names.push(name);
        }
    }
    for family in all {
        let types = format!("{} into {}", family.operands, family.c);
        if let (Some(names), Some(refusal)) = (found.get_mut(&types), &family.refusal)
            && names.is_empty()
        {
            names.push(format!("none: {refusal}"));
        }
    }
    found
}
