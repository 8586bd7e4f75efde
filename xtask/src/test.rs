//! Runs every test: of the workspace, its documentation and its examples, and of packages that stand outside as a
//! user's would.

use crate::{
    examples::{Examples, UsersPackage},
    process::{self, Outcome, cargo, run_and_read},
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
    // No package of the workspace turns on this feature. `--workspace` has dependencies compiled as before.
    run_and_read(
        &mut cargo("test --workspace --features cutlet-layout-core/serde --test serde"),
        |line| count.add(line),
    )?;
    let Examples { programs, packages } = Examples::find()?;
    for program in programs {
        process::run(&mut cargo(&format!("run --example {program}")))?;
    }
    for package in packages {
        let copy = UsersPackage::copy_of(&package)?;
        run_and_read(&mut copy.cargo("test"), |line| count.add(line))?;
        process::run(&mut copy.cargo("run"))?;
    }
    Ok(())
}

/// How many tests ran, summed over the last lines of all test programs.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::root;

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
