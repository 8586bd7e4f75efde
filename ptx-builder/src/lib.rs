//! Compiles the kernels of a package to PTX from its build script, with no CUDA toolkit.
//!
//! A package with kernels builds itself twice: for the host, as cargo was asked, and for the GPU,
//! from its own `build.rs`:
//!
//! ```no_run
//! cutlet_ptx_builder::Builder::new()
//!     .target("sm_80")
//!     .target("sm_90a")
//!     .build();
//! ```
//!
//! The library embeds the PTX as a static `PTX` of type `cutlet_device::PtxLibrary`:
//!
//! ```ignore
//! #[cfg(not(target_arch = "nvptx64"))]
//! include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
//! ```
//!
//! The build has these steps, with a module of this crate for each:
//!
//! 1. [`Toolchain::find`] looks for a rustc that has the source of its own `core`.
//! 2. A nested cargo compiles the package for `nvptx64-nvidia-cuda`, once for each target, into a PTX
//!    text for each module. It shares no setting with the outer build. If a text cannot stand on its
//!    own, everything is linked into one text.
//! 3. `#[kernel]` leaves comment lines in the text with what rustc has no attribute for: launch bounds,
//!    cluster size, alignment of parameters, and their names and types. They are written into the entries.
//! 4. Each family (a module of the crate) gets a PTX module of its own, so that a first launch
//!    compiles no other family. Its PTX version is the compiler's, or a later one that assembly asks
//!    for (`// cutlet-isa 8.3`). Kernels with `also = ["f16 for bf16"]` are written a second time with
//!    the words replaced, and listed in the file `copies`.
//! 5. What a target's GPUs do not have is an error: an instruction of newer ones, or too much shared memory.
//! 6. Whatever slows kernels down unseen is reported, such as a call that was not inlined, or a conversion of numbers in
//!    software.
//! 7. Each text is compressed, to a sixth, and embedded. The host unpacks those that it loads. Copies are neither
//!    compressed nor embedded: the host makes them, too.
//!
//! The build script runs again when a source file of the package or of a path dependency changes, a manifest or lock
//! file above them, a variable that the kernels read by `env!` or `option_env!`, or one of these:
//!
//! | variable | meaning |
//! |---|---|
//! | `CUTLET_RUSTC` | path of the rustc that compiles the kernels |
//! | `CUTLET_LINE_INFO` | `1`: line information for profilers, as [`Builder::line_info`]; shipped PTX has none |
//!
//! The texts stay as files. The variable `CUTLET_PTX_FOLDER`, which the package's own code reads by `env!` and which
//! `cargo build -vv` shows, names their folder.
//!
//! A published package carries its PTX in a folder `ptx/`, with the files of [`Built::shipped`], and needs no device
//! toolchain. [`Builder::shipped_by`] refuses to package it without.

mod at_once;
mod builder;
mod built;
mod compile;
mod complete;
mod conversions;
mod copies;
mod demangle;
mod entry;
mod environment;
mod error;
mod families;
mod flags;
mod isa;
mod leftovers;
mod library;
mod limits;
mod metadata;
mod module;
mod packed;
mod parameter;
mod replacement;
mod shipped;
mod sources;
mod toolchain;

pub use builder::{Builder, Leftovers};
pub use built::{Built, BuiltModule};
pub use error::BuildError;
pub use toolchain::{NoToolchain, Toolchain};
