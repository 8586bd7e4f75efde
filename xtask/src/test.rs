//! Runs every test: of the workspace, its documentation and its examples, and of packages that stand outside as a
//! user's would.

use std::collections::BTreeMap;
use std::fmt;
use std::process::Command;

use crate::{
    examples::{Examples, TEMPLATE, UsersPackage},
    process::{self, Outcome, cargo, root, run_and_read},
    setup,
    workspace::target_dir,
};

/// Sets up what is missing, then runs all tests and counts them.
pub fn run() -> Outcome {
    setup::run()?;
    let mut count = Count::default();
    let result = run_all(&mut count);
    println!("\n{count}");
    result
}

fn run_all(count: &mut Count) -> Outcome {
    // No published package of the workspace turns on these features.
    run_and_read(
        &mut cargo("test --workspace --features cutlet/dlpack --no-fail-fast"),
        |line| count.add(line),
    )?;
    // With the features of the first run, dependencies are not compiled a second time.
    run_and_read(
        &mut cargo(
            "test --workspace --features cutlet/dlpack,cutlet-layout-core/serde --test layout serde",
        ),
        |line| count.add(line),
    )?;
    let Examples { programs, packages } = Examples::find()?;
    // The first run has built them. `cargo run --example` would compile everything again, with the features of one package.
    let built = target_dir()?.join("debug");
    for program in programs {
        let program = built.join("examples").join(program);
        process::run(Command::new(program).current_dir(root()))?;
    }
    for package in packages {
        let package = match &*package {
            TEMPLATE => UsersPackage::made_by(Command::new(built.join("cutlet")))?,
            example => UsersPackage::copy_of(example)?,
        };
        run_and_read(&mut package.cargo("test"), |line| count.add(line))?;
        process::run(&mut package.cargo("run"))?;
        if package.has("benches") {
            // Without optimisation, because nothing of its profile is compiled yet.
            process::run(&mut package.cargo("bench --bench * --profile dev"))?;
        }
    }
    Ok(())
}

/// What a run on a machine without a GPU says nothing about.
const WITHOUT_A_GPU: &str = "\
There is no GPU here, so all kernels ran on the CPU backend. Not tested:
  that the driver loads the kernels' PTX, and that a GPU computes what the CPU backend does
  the driver's streams, graphs, copies and memory, and those of cudarc
  cuBLAS, which `cutlet bench` compares with
  how long anything takes";

/// How many tests ran, summed over the last lines of all test programs.
#[derive(Default, Debug, PartialEq, Eq)]
struct Count {
    /// With those that returned because they could not run.
    passed: u32,
    failed: u32,
    ignored: u32,
    /// The tests that returned because they could not run, by the reason.
    not_run: BTreeMap<String, Vec<String>>,
}

impl Count {
    fn add(&mut self, line: &str) {
        if let Some((test, why)) = line
            .strip_prefix(cutlet_not_run::BEGIN)
            .and_then(|line| line.split_once(": "))
        {
            let tests = self.not_run.entry(why.to_owned()).or_default();
            tests.push(test.to_owned());
            return;
        }
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

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not_run = self.not_run.values().map(Vec::len).sum::<usize>() as u32;
        let passed = self.passed.saturating_sub(not_run);
        let Self {
            failed, ignored, ..
        } = self;
        write!(
            f,
            "tests: {passed} passed, {failed} failed, {ignored} ignored, {not_run} not run"
        )?;
        for (why, tests) in &self.not_run {
            write!(f, "\nnot run, because {why}:")?;
            for test in tests {
                write!(f, "\n  {test}")?;
            }
        }
        match self.not_run.keys().any(|why| why.contains("no GPU")) {
            true => write!(f, "\n{WITHOUT_A_GPU}"),
            false => Ok(()),
        }
    }
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
            not_run: BTreeMap::new(),
        };
        assert_eq!(count, expected);
    }

    #[test]
    fn tests_that_did_not_run_are_not_counted_as_passed() {
        let mut count = Count::default();
        for line in [
            "not run: launches_allocate_nothing: there is no GPU",
            "test launches_allocate_nothing ... ok",
            "not run: tests::sgemm_is_the_product: there is no GPU",
            "not run: two_gpus: there are not two GPUs",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.20s",
        ] {
            count.add(line);
        }
        let said = count.to_string();
        let expected = "tests: 9 passed, 0 failed, 1 ignored, 3 not run\n\
                        not run, because there are not two GPUs:\n  two_gpus\n\
                        not run, because there is no GPU:\n  launches_allocate_nothing\n  \
                        tests::sgemm_is_the_product\nThere is no GPU here";
        assert!(said.starts_with(expected), "{said}");
        assert!(!Count::default().to_string().contains("no GPU"));
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
