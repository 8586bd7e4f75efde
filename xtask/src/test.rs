//! Passes every test: the workspace's, its documentation's, its examples', and users' packages elsewhere.

use std::path::Path;

use crate::{
    process::{self, Outcome, cargo, root, run_and_read, target_dir},
    setup,
};

/// Sets up what is missing, then runs all tests and counts them.
pub fn run() -> Outcome {
    setup::run()?;
    let mut count = Count::default();
    let result = run_all(&mut count);
    println!(
        "\ntests: {} passed, {} failed, {} skipped",
        count.passed, count.failed, count.ignored
    );
    result
}

fn run_all(count: &mut Count) -> Outcome {
    run_and_read(&mut cargo("test --workspace --no-fail-fast"), |line| {
        count.add(line)
    })?;
    // No package of the workspace turns this feature on.
    run_and_read(
        &mut cargo("test --package cutlet-layout-core --features serde --test serde"),
        |line| count.add(line),
    )?;
    let (examples, packages) = examples()?;
    for example in examples {
        process::run(&mut cargo(&format!("run --example {example}")))?;
    }
    for package in packages {
        users_package(&package, count)?;
    }
    Ok(())
}

/// How many tests ran, summed over the closing lines of every test binary.
#[derive(Default, Debug, PartialEq, Eq)]
struct Count {
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Count {
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        for part in result.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let Some(number) = words.next().and_then(|word| word.parse::<u32>().ok()) else {
                continue;
            };
            match words.next() {
                Some("passed") => self.passed += number,
                Some("failed") => self.failed += number,
                Some("ignored") => self.ignored += number,
                _ => {}
            }
        }
    }
}

/// The numbered examples of the root package, and the examples that are packages, each in order.
fn examples() -> Outcome<(Vec<String>, Vec<String>)> {
    let folder = root().join("examples");
    let (mut numbered, mut packages) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(&folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?
    {
        let Ok(name) = entry.map(|entry| entry.file_name().to_string_lossy().into_owned()) else {
            continue;
        };
        if let Some(name) = name.strip_suffix(".rs") {
            numbered.push(name.to_owned());
        } else if folder.join(&name).join("Cargo.toml").exists() {
            packages.push(name);
        }
    }
    numbered.sort();
    packages.sort();
    Ok((numbered, packages))
}

/// Builds, tests and runs a package of `examples/` outside the repository, as its user would have it.
fn users_package(name: &str, count: &mut Count) -> Outcome {
    let folder = std::env::temp_dir().join(format!("cutlet-{name}-{}", std::process::id()));
    println!("\ncopying examples/{name} to {}", folder.display());
    let result = copy_package(&root().join("examples").join(name), &folder).and_then(|()| {
        // With the versions, the target folder and the optimisation level of the repository, no
        // dependency is compiled twice.
        std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))
            .map_err(|error| format!("cannot copy Cargo.lock to {}: {error}", folder.display()))?;
        let own = |line: &str| {
            let mut command = cargo(line);
            command
                .current_dir(&folder)
                .env("CARGO_TARGET_DIR", target_dir())
                .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
            command
        };
        run_and_read(&mut own("test"), |line| count.add(line))?;
        process::run(&mut own("run"))
    });
    // The copy holds nothing of value; one that can't be removed is the system's to clear.
    let _ = std::fs::remove_dir_all(&folder);
    result
}

/// Copies a package, and makes the paths of its dependencies absolute so that they still lead here.
fn copy_package(from: &Path, to: &Path) -> Outcome {
    let failed = |error| {
        format!(
            "cannot copy {} to {}: {error}",
            from.display(),
            to.display()
        )
    };
    std::fs::create_dir_all(to).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        if name == "target" {
            continue;
        }
        if path.is_dir() {
            copy_package(&path, &to.join(name))?;
        } else if name == "Cargo.toml" {
            let manifest = std::fs::read_to_string(&path).map_err(failed)?;
            let manifest = absolute_paths(&manifest, &root());
            std::fs::write(to.join(name), manifest).map_err(failed)?;
        } else {
            std::fs::copy(&path, to.join(name)).map_err(failed)?;
        }
    }
    Ok(())
}

/// The manifest with every `path = "../../…"` below `root` instead.
fn absolute_paths(manifest: &str, root: &Path) -> String {
    manifest.replace("path = \"../..", &format!("path = \"{}", root.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_counted() {
        let mut count = Count::default();
        for line in [
            "running 3 tests",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.20s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s",
        ] {
            count.add(line);
        }
        let expected = Count {
            passed: 15,
            failed: 2,
            ignored: 1,
        };
        assert_eq!(count, expected);
    }

    #[test]
    fn paths_of_dependencies_become_absolute() {
        assert_eq!(
            absolute_paths(
                "cutlet = { path = \"../..\" }\ndevice = { path = \"../../device\" }\n",
                Path::new("/house")
            ),
            "cutlet = { path = \"/house\" }\ndevice = { path = \"/house/device\" }\n"
        );
    }

    #[test]
    fn the_readme_shows_a_kernel_that_is_compiled() {
        let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
        let readme = read("README.md");
        let shown = readme
            .split_once("```rust\n")
            .and_then(|(_, rest)| rest.split_once("```"))
            .map(|(block, _)| block)
            .unwrap();
        assert!(shown.contains("#[kernel("), "{shown}");
        assert!(
            read("kernels/src/saxpy.rs").contains(shown),
            "the kernel in README.md is no longer the one in kernels/src/saxpy.rs"
        );
    }
}
