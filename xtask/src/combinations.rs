//! The machines and features for which the packages are compiled. `docs/packaging.md` shows them.

use std::fmt;

use crate::{
    package::Packages,
    process::{self, Outcome, cargo, root},
    rust_std::RustStd,
};

use Chosen::{All, Each, One};
use When::{Change, Release};

/// Packages that are compiled with some features for some machines.
struct Combination {
    packages: Chosen,
    /// The features, as cargo takes them. `default` are those that are on by default.
    features: &'static str,
    /// The targets that are compiled for: [`OWN`], or others.
    targets: &'static [&'static str],
    when: When,
}

/// The packages of a [`Combination`].
#[derive(Clone, Copy)]
enum Chosen {
    /// All of them but [`CANDLE`], one at a time, so that none uses a feature that only another one asks for.
    Each,
    /// All of them but [`CANDLE`] at once.
    All,
    /// The one of this name.
    One(&'static str),
}

/// When a [`Combination`] is compiled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// By `cargo xtask ci`.
    Change,
    /// By `cargo xtask release --dry-run`.
    Release,
}

/// What it depends on takes longer to compile than all of cutlet.
const CANDLE: &str = "cutlet-candle";

/// That of the machine that this runs on.
const OWN: &[&str] = &[];
/// Grace Hopper and Jetson, and Windows.
const OTHERS: &[&str] = &["aarch64-unknown-linux-gnu", "x86_64-pc-windows-msvc"];

const COMBINATIONS: [Combination; 11] = [
    of(Each, "default", OWN, Change),
    of(All, "default", OTHERS, Change),
    // As in the README: one family on a GPU alone.
    of(One("cutlet"), "cuda-bindings,hopper", OWN, Change),
    of(One("cutlet"), "cpu,cuda-bindings,simt", OWN, Change),
    of(One("cutlet"), "cuda-bindings", OWN, Release),
    of(One("cutlet"), "ampere,cuda-bindings", OWN, Release),
    of(One("cutlet"), "cuda-bindings,gather", OWN, Release),
    of(One("cutlet"), "cuda-bindings,simt", OWN, Release),
    of(One(CANDLE), "default", OWN, Release),
    of(One("cutlet-cli"), "cpu", OWN, Release),
    of(One("cutlet-layout-core"), "serde", OWN, Release),
];

const fn of(
    packages: Chosen,
    features: &'static str,
    targets: &'static [&'static str],
    when: When,
) -> Combination {
    Combination {
        packages,
        features,
        targets,
        when,
    }
}

/// Compiles the packages as far as errors and warnings can be found without machine code. `when` is the last kind of
/// combinations that is compiled.
pub fn check(packages: &Packages, when: When) -> Outcome {
    let chosen = COMBINATIONS
        .iter()
        .filter(|combination| combination.when <= when);
    for combination in chosen {
        combination.check(packages)?;
    }
    Ok(())
}

impl Combination {
    fn check(&self, packages: &Packages) -> Outcome {
        let features = match self.features {
            "default" => String::new(),
            features => format!("--no-default-features --features {features}"),
        };
        let one = |chosen: &str| {
            let line = format!("clippy --quiet {chosen} {features}");
            let mut command = match self.targets {
                OWN => cargo(&line),
                others => RustStd::get(others)?.cargo(&line, others),
            };
            packages.enter(&mut command)?;
            command.env("CLIPPY_CONF_DIR", root());
            process::run(command.args(["--", "--deny", "warnings"]))
        };
        match self.packages {
            All => one(&format!("--workspace --exclude {CANDLE}")),
            One(name) => one(&format!("--package {name}")),
            Each => packages
                .published()
                .iter()
                .filter(|package| package.name != CANDLE)
                .try_for_each(|package| one(&format!("--package {}", package.name))),
        }
    }
}

/// A row of the table in `docs/packaging.md`.
impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packages = match self.packages {
            Each => format!("each alone but `{CANDLE}`"),
            All => format!("all but `{CANDLE}`"),
            One(name) => format!("`{name}`"),
        };
        let features: Vec<String> = self
            .features
            .split(',')
            .map(|feature| format!("`{feature}`"))
            .collect();
        let targets = match self.targets {
            OWN => "the machine's own".to_owned(),
            others => others.join(", "),
        };
        let when = match self.when {
            Change => "each change",
            Release => "a release",
        };
        write!(
            f,
            "| {packages} | {} | {targets} | {when} |",
            features.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_on_packaging_shows_all() {
        let page = std::fs::read_to_string(root().join("docs/packaging.md")).unwrap();
        let rows: String = COMBINATIONS.iter().map(|row| format!("{row}\n")).collect();
        assert!(
            page.contains(&rows),
            "docs/packaging.md must have these rows:\n{rows}"
        );
    }
}
