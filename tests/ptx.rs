//! The PTX that the library embeds.

use std::borrow::Cow;

use cutlet_device::PtxFamily;
use cutlet_host::ptx_text;
use cutlet_kernels::PTX;
use cutlet_kernels::gemm::sm90::ElementTypes;
use cutlet_kernels::gemm::sm90::instance::Instance;
use cutlet_kernels::gemm::sm90::instances::{
    BF16, BF16_TO_F32, F16, F16_TO_F32, GELU_BF16, GELU_F16, LINEAR_BF16, LINEAR_F16, SILU_BF16,
    SILU_F16,
};

fn texts(family: &PtxFamily) -> impl Iterator<Item = Cow<'static, str>> {
    let modules = family.modules.iter();
    modules.map(|module| ptx_text(module.ptx).expect("the builder packed the text"))
}

/// A kernel may begin while an earlier one still writes the bias.
#[test]
fn no_gemm_reads_through_the_read_only_cache() {
    let families = PTX.families.iter();
    let mut gemm = families
        .filter(|family| family.name.starts_with("gemm"))
        .peekable();
    assert!(gemm.peek().is_some());
    for family in gemm {
        let reads = texts(family).any(|text| text.contains("ld.global.nc"));
        assert!(!reads, "{}", family.name);
    }
}

/// The kernels that have no PTX of their own format.
fn without_ptx<T: ElementTypes, E>(instances: &'static [Instance<T, E>]) -> Vec<&'static str> {
    let has_ptx = |instance: &&Instance<T, E>| {
        let kernel = instance.kernel;
        let format = match kernel.name().split('_').next() {
            Some("bf16") => ".f32.bf16.bf16",
            _ => ".f32.f16.f16",
        };
        let entry = format!(".entry {}(", kernel.name());
        let family = PTX.family(kernel.family());
        family.is_some_and(|family| {
            texts(family).any(|text| text.contains(&entry) && text.contains(format))
        })
    };
    let missing = instances.iter().filter(|instance| !has_ptx(instance));
    missing.map(|instance| instance.name()).collect()
}

/// Some are compiled, and some are derived from those.
#[test]
fn every_wgmma_instance_has_ptx_of_its_format() {
    let none: [&str; 0] = [];
    assert_eq!(without_ptx(BF16), none);
    assert_eq!(without_ptx(F16), none);
    assert_eq!(without_ptx(BF16_TO_F32), none);
    assert_eq!(without_ptx(F16_TO_F32), none);
    assert_eq!(without_ptx(LINEAR_BF16), none);
    assert_eq!(without_ptx(LINEAR_F16), none);
    assert_eq!(without_ptx(GELU_BF16), none);
    assert_eq!(without_ptx(GELU_F16), none);
    assert_eq!(without_ptx(SILU_BF16), none);
    assert_eq!(without_ptx(SILU_F16), none);
}
