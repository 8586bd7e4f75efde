//! Installs packages of Debian.

use std::{path::Path, process::Command};

use crate::process::{self, Outcome};

/// Installs these packages with apt-get. If they are not found, fetches the list of packages first.
pub fn install(packages: &[&str]) -> Outcome {
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(format!(
            "there is no apt-get to install {} with",
            packages.join(" and ")
        ));
    }
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    if process::run(&mut apt_get(&arguments)).is_ok() {
        return Ok(());
    }
    println!("The list of packages may be old or missing: fetching it and trying again.");
    process::run(&mut apt_get(&["update"]))?;
    process::run(&mut apt_get(&arguments))
}

/// apt-get as root, through sudo if the user is not root.
fn apt_get(arguments: &[&str]) -> Command {
    let mut command = if is_root() {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["--preserve-env=DEBIAN_FRONTEND", "apt-get"]);
        sudo
    };
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|(printed, _)| printed.trim() == "0")
}
