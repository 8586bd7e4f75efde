//! The version of the GEMM kernels of this program.

use std::sync::LazyLock;

use cutlet_host::tuning_file::version_of;
use cutlet_kernels::PTX;

/// The version of the GEMM kernels that this program has, in 16 hexadecimal digits.
pub fn of_kernels() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let families = PTX.families.iter();
        version_of(families.filter(|family| family.name.starts_with("gemm")))
    });
    &VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_number_of_16_digits() {
        assert_eq!(of_kernels().len(), 16);
        assert!(u64::from_str_radix(of_kernels(), 16).is_ok());
    }
}
