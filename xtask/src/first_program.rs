//! The first program of a user: that of the README, made from the published packages alone.

use std::time::Instant;

use crate::{
    package::Packages,
    process::{self, Outcome, cargo, output, root},
};

/// The last line that the program prints.
const RESULT: &str = "32";

/// Builds and runs the program in an empty folder, without a device toolchain, and prints how long that takes.
pub fn run(packages: &Packages) -> Outcome {
    let folder = packages.folder().join("first-program");
    let failed = |error| format!("cannot fill {}: {error}", folder.display());
    std::fs::create_dir_all(folder.join("src")).map_err(failed)?;
    std::fs::write(folder.join("src/main.rs"), program()?).map_err(failed)?;
    std::fs::write(folder.join("Cargo.toml"), manifest(packages)).map_err(failed)?;
    let cargo = |line: &str| {
        let mut command = cargo(line);
        command
            .current_dir(&folder)
            .env("CARGO_TARGET_DIR", packages.folder().join("target"));
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
    println!("\n{}", program()?);
    let started = Instant::now();
    let (printed, _) = output(&mut cargo("run --offline"))?;
    println!("{printed}");
    println!(
        "from nothing to this result: {:.0} s, without downloads",
        started.elapsed().as_secs_f64()
    );
    match printed.lines().last() {
        Some(RESULT) => Ok(()),
        _ => Err(format!("the README's program does not print {RESULT}")),
    }
}

/// The manifest of a package that depends on `cutlet` alone.
fn manifest(packages: &Packages) -> String {
    format!(
        "[package]\nname = \"first-program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ncutlet = \"{}\"\n\n{}",
        env!("CARGO_PKG_VERSION"),
        packages.patches()
    )
}

/// The block of the README that is a program.
fn program() -> Outcome<String> {
    let readme = root().join("README.md");
    let text = std::fs::read_to_string(&readme)
        .map_err(|error| format!("cannot read {}: {error}", readme.display()))?;
    let mut blocks = text.split("```rust\n").skip(1);
    blocks
        .find_map(|block| {
            let (block, _) = block.split_once("```")?;
            block.contains("fn main()").then(|| block.to_owned())
        })
        .ok_or_else(|| format!("{} shows no program", readme.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_a_short_program() {
        let program = program().unwrap();
        assert!(program.contains("gemm("), "{program}");
        assert!(program.lines().count() <= 15, "{program}");
    }
}
