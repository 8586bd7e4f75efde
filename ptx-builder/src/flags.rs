//! The flags by which rustc compiles for the GPU.
//!
//! From Rust 1.97 on, crates of different `-Ctarget-cpu` do not link. So the flags of all crates, `core` included, are
//! made in one place.

use std::process::Command;

use crate::compile::Link;

/// The PTX version for Hopper, which drivers know since CUDA 12.1. By itself rustc would take 8.0, the first version
/// that knows the target, which has no `st.async`.
const HOPPER_ISA: &str = "-Ctarget-feature=+ptx81";

/// Unrolls the loops over a thread's values. In a loop, their arrays end up in memory instead of registers. Only the
/// kernels' own crate gets the flag, because generic code is compiled there. The loops of libraries, such as those over
/// the leaves of a layout, take minutes to compile when unrolled like that.
const UNROLL: &str = "-Cllvm-args=-unroll-threshold=100000";

/// Copies functions of other crates into each text that calls them, as if all were `#[inline]`. A crate's functions can
/// be copied only if the crate itself was compiled with this flag, and so `core` is, too.
const COPY: &str = "-Zcross-crate-inline-threshold=always";

/// Inlines small functions while they are generic, once for all their instances. Layouts consist of such functions, and
/// LLVM would inline them for each instance anew.
const INLINE: &str = "-Zinline-mir-threshold=1000 -Zinline-mir-hint-threshold=1000 -Zinline-mir-forwarder-threshold=1000";

/// rustc makes a text for each module as long as a package has fewer modules than this.
const TEXTS: &str = "-Ccodegen-units=4096";

/// The profile, so that the profile of the user's workspace has no effect. What that workspace sets for single packages
/// is overruled by [`ALIKE`], as far as it changes code. With link-time optimisation no machine code is made of the
/// other crates. Only the rustc of the kernels' own crate is told to go without it, so that the other crates serve for
/// both values of [`Link`].
const PROFILE: [(&str, &str); 8] = [
    ("OPT_LEVEL", "3"),
    ("LTO", "fat"),
    ("CODEGEN_UNITS", "1"),
    ("PANIC", "abort"),
    ("DEBUG_ASSERTIONS", "false"),
    ("OVERFLOW_CHECKS", "false"),
    ("STRIP", "none"),
    ("SPLIT_DEBUGINFO", "off"),
];

/// Overrules what the user's profile may set for single packages, as far as it changes code.
const ALIKE: &str = "-Copt-level=3 -Cdebug-assertions=off -Coverflow-checks=off";

/// Unstable settings of cargo. A library's metadata is in a file beside it. A second copy of it would be a fifth of the
/// folder. The name of the setting was changed between Rust 1.96 and 1.99. A cargo that does not know one ignores it.
const SETTINGS: [(&str, &str); 2] = [
    ("CARGO_UNSTABLE_NO_EMBED_METADATA", "true"),
    ("CARGO_UNSTABLE_EMBED_METADATA", "false"),
];

/// What decides on the flags of all crates that the kernels consist of.
pub(crate) struct Flags<'a> {
    /// The target, as in `sm_90a`.
    pub target: &'a str,
    /// Whether instructions carry their source line.
    pub line_info: bool,
    /// Whether functions of other crates can be copied into each text.
    pub copies: bool,
}

impl Flags<'_> {
    /// Sets them for cargo.
    pub fn set(&self, cargo: &mut Command) {
        for (name, value) in PROFILE {
            cargo.env(format!("CARGO_PROFILE_RELEASE_{name}"), value);
        }
        cargo
            .envs(SETTINGS)
            .env("CARGO_PROFILE_RELEASE_DEBUG", self.debug())
            // The profile does not overrule `[build] incremental`.
            .env("CARGO_INCREMENTAL", "0")
            .env("RUSTFLAGS", self.rustflags());
    }

    /// The level of debug information.
    fn debug(&self) -> &'static str {
        if self.line_info {
            "line-directives-only"
        } else {
            "none"
        }
    }

    /// The flags of rustc. They follow those of the profile.
    fn rustflags(&self) -> String {
        let mut flags = format!(
            "-Ctarget-cpu={} {ALIKE} -Cdebuginfo={} {INLINE}",
            self.target,
            self.debug()
        );
        if self.target == "sm_90a" {
            flags = format!("{flags} {HOPPER_ISA}");
        }
        if self.copies {
            flags = format!("{flags} {COPY}");
        }
        flags
    }
}

/// What the rustc of the kernels' own crate gets besides.
pub(crate) fn of_kernels(link: Link) -> &'static [&'static str] {
    match link {
        Link::Apart => &[UNROLL, "-Clto=off", TEXTS],
        Link::Together => &[UNROLL],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_is_compiled_for_the_same_processor() {
        let flags = |target| Flags {
            target,
            line_info: false,
            copies: true,
        };
        let ampere = flags("sm_80").rustflags();
        assert!(ampere.starts_with("-Ctarget-cpu=sm_80 "), "{ampere}");
        assert!(!ampere.contains("+ptx"), "{ampere}");
        let hopper = flags("sm_90a").rustflags();
        assert!(hopper.contains(HOPPER_ISA), "{hopper}");
        // Not even the kernels' own crate has another one.
        for link in [Link::Apart, Link::Together] {
            assert!(!of_kernels(link).concat().contains("target-cpu"));
        }
    }
}
