//! The READMEs of the published packages: their Rust blocks run as documentation tests.

macro_rules! readmes {
    ($($name:ident: $path:literal;)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!($path)]
            pub struct $name;
        )*
    };
}

readmes! {
    Calculator: "../../../calculator/README.md";
    Cli: "../../../cli/README.md";
    Device: "../../../device/README.md";
    DeviceMacros: "../../../device-macros/README.md";
    Host: "../../../host/README.md";
    Kernels: "../../../kernels/README.md";
    LayoutCore: "../../../layout-core/README.md";
    PtxBuilder: "../../../ptx-builder/README.md";
    Simt: "../../../simt/README.md";
}
