//! The formats of A and B in kernels for 8-bit floats: e4m3, e5m2, and one and the other.
//!
//! Kernels of all formats have the same PTX but for their names and the formats that `wgmma` names. Those of e4m3 are
//! compiled, and `also` has the PTX of the others derived. Names have the formats in the order of `wgmma`: a kernel that
//! computes `Cᵀ = Bᵀ·Aᵀ` has those of B and A. A build with `CUTLET_EACH_FORMAT=1` compiles all, and fails
//! where they differ otherwise.

/// Calls a macro of kernels for each format: `kernels! { its settings } lists: names = { a configuration }; …`, where
/// lists and names are those for e4m3, for e5m2, for an A of e4m3 and a B of e5m2, and for an A of e5m2 and a B of e4m3.
/// The macro gets the element types of A and B, and those of Bᵀ and Aᵀ.
macro_rules! for_formats {
    ($kernels:ident! $settings:tt $e4m3_list:ident, $e5m2_list:ident, $e4m3_e5m2_list:ident, $e5m2_e4m3_list:ident:
        $($e4m3:ident, $e5m2:ident, $e4m3_e5m2:ident, $e5m2_e4m3:ident = $configuration:tt;)+
    ) => {
        $kernels! {
            $settings $e4m3_list of e4m3: F8E4M3 => F8E4M3, compiled if true, also [
                "e5m2_ for e4m3_, e5m2.e5m2 for e4m3.e4m3",
                "e4m3e5m2_ for e4m3_, e4m3.e5m2 for e4m3.e4m3",
                "e5m2e4m3_ for e4m3_, e5m2.e4m3 for e4m3.e4m3"
            ]:
            $($e4m3 = $configuration;)+
        }
        $kernels! {
            $settings $e5m2_list of e5m2: F8E5M2 => F8E5M2, compiled if each_format, also []:
            $($e5m2 = $configuration;)+
        }
        $kernels! {
            $settings $e4m3_e5m2_list of e4m3e5m2:
            MixedF8<F8E4M3, F8E5M2> => MixedF8<F8E5M2, F8E4M3>, compiled if each_format, also []:
            $($e4m3_e5m2 = $configuration;)+
        }
        $kernels! {
            $settings $e5m2_e4m3_list of e5m2e4m3:
            MixedF8<F8E5M2, F8E4M3> => MixedF8<F8E4M3, F8E5M2>, compiled if each_format, also []:
            $($e5m2_e4m3 = $configuration;)+
        }
    };
}

pub(super) use for_formats;
