//! The first programs of users, as READMEs show them, made from the published packages alone.

use std::time::Instant;

use crate::{
    package::Packages,
    process::{self, Outcome, cargo, output, root},
};

/// A program of a README.
struct FirstProgram {
    /// The name of its package.
    name: &'static str,
    /// The README, from the repository's folder.
    readme: &'static str,
    /// What its block contains that no other one does.
    block: &'static str,
    /// The lines of its dependencies. `VERSION` stands for that of the published packages.
    dependencies: &'static str,
    /// The last line that it prints.
    result: &'static str,
}

/// Those that [`run`] makes: one with cutlet alone, and one with candle.
const PROGRAMS: [FirstProgram; 2] = [
    FirstProgram {
        name: "first-program",
        readme: "README.md",
        block: "fn main()",
        dependencies: "cutlet = \"VERSION\"",
        result: "32",
    },
    FirstProgram {
        name: "with-candle",
        readme: "candle/README.md",
        block: "Linear::new(",
        dependencies: "candle-core = \"0.11\"\ncutlet-candle = \"VERSION\"",
        result: "",
    },
];

/// Builds and runs each program in an empty folder, without a device toolchain, and prints how long that takes.
pub fn run(packages: &Packages) -> Outcome {
    PROGRAMS
        .iter()
        .try_for_each(|program| program.run(packages))
}

impl FirstProgram {
    fn run(&self, packages: &Packages) -> Outcome {
        let folder = packages.folder().join(self.name);
        let failed = |error| format!("cannot fill {}: {error}", folder.display());
        let text = self.text()?;
        std::fs::create_dir_all(folder.join("src")).map_err(failed)?;
        std::fs::write(folder.join("src/main.rs"), &text).map_err(failed)?;
        std::fs::write(folder.join("Cargo.toml"), self.manifest(packages)).map_err(failed)?;
        let cargo = |line: &str| {
            let mut command = cargo(line);
            command
                .current_dir(&folder)
                // Nothing is compiled before, not even for another of the programs.
                .env("CARGO_TARGET_DIR", folder.join("target"));
            packages.hide_device_toolchain(&mut command);
            command
        };
        process::run(&mut cargo("fetch --quiet"))?;
        let metadata = output(&mut cargo("metadata --format-version 1 --offline"))?.0;
        if metadata.contains(&root().display().to_string()) {
            return Err(format!(
                "the program in {} takes a file from the repository",
                folder.display()
            ));
        }
        println!("\n{text}");
        let started = Instant::now();
        let (printed, _) = output(&mut cargo("run --offline"))?;
        println!("{printed}");
        println!(
            "from nothing to this result: {:.0} s, without downloads",
            started.elapsed().as_secs_f64()
        );
        match printed.lines().last().unwrap_or_default() {
            last if last == self.result => Ok(()),
            _ => Err(format!(
                "the program of {} does not print `{}`",
                self.readme, self.result
            )),
        }
    }

    /// The manifest of a package with these dependencies.
    fn manifest(&self, packages: &Packages) -> String {
        format!(
            "[package]\nname = {:?}\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n{}\n\n{}",
            self.name,
            self.dependencies
                .replace("VERSION", env!("CARGO_PKG_VERSION")),
            packages.patches()
        )
    }

    /// The block of the README. One without `main` becomes its body, as in a documentation test.
    fn text(&self) -> Outcome<String> {
        let readme = root().join(self.readme);
        let text = std::fs::read_to_string(&readme)
            .map_err(|error| format!("cannot read {}: {error}", readme.display()))?;
        let block = text
            .split("```rust\n")
            .skip(1)
            .filter_map(|block| Some(block.split_once("```")?.0))
            .find(|block| block.contains(self.block))
            .ok_or_else(|| format!("{} shows no program", readme.display()))?;
        if block.contains("fn main()") {
            return Ok(block.to_owned());
        }
        let (body, result) = block
            .rsplit_once("# Ok::<(), ")
            .ok_or_else(|| format!("the block of {} has no result", readme.display()))?;
        let (error, _) = result.split_once('>').unwrap_or_default();
        Ok(format!(
            "fn main() -> Result<(), {error}> {{\n{body}Ok(())\n}}\n"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readmes_have_short_programs() {
        let [cutlet, candle] = PROGRAMS.map(|program| program.text().unwrap());
        assert!(cutlet.contains("gemm("), "{cutlet}");
        assert!(cutlet.lines().count() <= 15, "{cutlet}");
        assert!(
            candle.starts_with("fn main() -> Result<(), candle_core::Error> {\nuse "),
            "{candle}"
        );
        assert!(candle.ends_with("[2, 5, 32]);\nOk(())\n}\n"), "{candle}");
    }
}
