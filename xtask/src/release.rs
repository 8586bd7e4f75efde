//! What must hold before the packages are published. Everything happens outside of the repository, with the packages
//! alone.

use std::path::Path;

use cutlet_ptx_builder::Toolchain;

use crate::{
    combinations::{self, When},
    examples::UsersPackage,
    first_program, licences,
    package::Packages,
    process::{self, Outcome, cargo, output},
    rust_releases::RustRelease,
    setup,
    workspace::Library,
};

/// The part that `cargo xtask ci` runs.
pub fn check() -> Outcome {
    let packages = Packages::make()?;
    licences::check()?;
    combinations::check(&packages, When::Change)?;
    println!("the packages compile from their archives");
    Ok(())
}

/// Everything. It publishes nothing, but ends with the commands that do.
pub fn dry_run() -> Outcome {
    setup::run()?;
    let packages = Packages::make()?;
    licences::check()?;
    first_program::run(&packages)?;
    let toolchain = Toolchain::find().map_err(|error| error.to_string())?;
    own_kernel(&packages, toolchain.rustc())?;
    for release in RustRelease::others()? {
        compile_with(&packages, &release)?;
    }
    combinations::check(&packages, When::Release)?;
    document(&packages)?;
    compare_interface(&packages)?;
    println!(
        "\nEverything holds. These commands publish the packages, each after those that it needs:"
    );
    for package in packages.published() {
        // git does not track the PTX in `kernels/ptx`, which this run has made.
        println!("cargo publish --allow-dirty --package {}", package.name);
    }
    Ok(())
}

/// Builds and runs a new package with a kernel of its own.
fn own_kernel(packages: &Packages, rustc: &Path) -> Outcome {
    let package = UsersPackage::made_beside(packages)?;
    process::run(package.cargo("run --quiet").env("CUTLET_RUSTC", rustc))
}

/// Compiles the packages with another Rust than the one in use, and with it as well a kernel.
fn compile_with(packages: &Packages, release: &RustRelease) -> Outcome {
    println!("\nwith Rust {}:", release.version());
    let mut check = release.cargo("check --workspace");
    packages.enter(&mut check)?;
    process::run(&mut check)?;
    match release.device_compiler()? {
        Some(rustc) => own_kernel(packages, &rustc),
        None => {
            println!("it lacks rust-src, so it compiles no kernel");
            Ok(())
        }
    }
}

/// Makes the documentation as a documentation server does: without a network, and without a device toolchain.
fn document(packages: &Packages) -> Outcome {
    for package in packages.published() {
        if package.library == Library::None {
            continue;
        }
        let mut doc = cargo(&format!(
            "doc --offline --no-deps --lib --package {}",
            package.name
        ));
        packages.enter(&mut doc)?;
        process::run(doc.env("RUSTDOCFLAGS", "--cfg docsrs"))?;
    }
    Ok(())
}

/// Compares the public interface with that of the last release, if there is one and cargo-semver-checks is installed.
fn compare_interface(packages: &Packages) -> Outcome {
    if output(&mut cargo("semver-checks --version")).is_err() {
        println!(
            "\ncargo-semver-checks is not installed: the interface is not compared with the last release's"
        );
        return Ok(());
    }
    if output(cargo("info cutlet").current_dir(packages.folder())).is_err() {
        println!("\nthe registry has no cutlet: there is no interface to compare with");
        return Ok(());
    }
    for package in packages.published() {
        if package.library == Library::Items {
            let mut compare = cargo(&format!("semver-checks --package {}", package.name));
            packages.enter(&mut compare)?;
            process::run(&mut compare)?;
        }
    }
    Ok(())
}
