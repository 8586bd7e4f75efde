//! The packages of this repository whose kernels are assembled here, and the PTX that their build scripts make.

use std::{path::PathBuf, process::Command};

use cutlet_machine_code::cargo::packages_with_ptx;
use cutlet_ptx_builder::Built;

use crate::process::{self, Outcome, cargo, output, root};
use crate::workspace::target_dir;

/// With this variable, the builder compares each compiled kernel with the one that it makes of another.
const EACH_FORMAT: &str = "CUTLET_EACH_FORMAT";

/// What becomes of kernels whose PTX can be made of others'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formats {
    /// They are made of these, as in the library.
    Derived,
    /// They are compiled as well, and compared.
    Compared,
}

/// A package whose build script compiles kernels.
pub struct KernelPackage {
    name: &'static str,
    /// Its folder in the repository.
    folder: &'static str,
}

/// The kernels of cutlet.
pub const KERNELS: KernelPackage = KernelPackage {
    name: "cutlet-kernels",
    folder: "kernels",
};

/// Kernels with every instruction of the device crate, which no other package depends on.
pub const INSTRUCTIONS: KernelPackage = KernelPackage {
    name: "cutlet-instructions",
    folder: "device/instructions",
};

impl KernelPackage {
    /// Compiles the kernels, and lists their PTX.
    pub fn build(&self, formats: Formats) -> Outcome<Built> {
        let Self { name, folder } = self;
        process::run(&mut self.cargo("", formats)?)?;
        // Everything is built now, and the messages tell where.
        let (messages, complaints) = output(&mut self.messages(formats)?)?;
        // One warning is that all kernels are compiled together, which takes minutes at each edit.
        let warnings: Vec<_> = self.warnings(&complaints).collect();
        if !warnings.is_empty() {
            return Err(format!(
                "the build of {name} warns:\n{}",
                warnings.join("\n")
            ));
        }
        let ptx = self.ptx_folder(&messages).ok_or_else(|| {
            format!(
                "cargo did not say where the build script of {name}, in {folder}, wrote its PTX"
            )
        })?;
        let built = Built::read(&ptx).map_err(|error| error.to_string())?;
        if built.modules().is_empty() {
            return Err(format!("{} holds no PTX", ptx.display()));
        }
        Ok(built)
    }

    /// The cargo that prints messages as JSON, and warnings in the form that is searched for, whatever the user's
    /// settings are.
    fn messages(&self, formats: Formats) -> Outcome<Command> {
        let mut command = self.cargo("--message-format json", formats)?;
        command
            .env("CARGO_TERM_COLOR", "never")
            .env("CARGO_TERM_QUIET", "false");
        Ok(command)
    }

    /// The cargo that builds the package.
    fn cargo(&self, options: &str, formats: Formats) -> Outcome<Command> {
        let mut command = cargo(&format!("check --package {} {options}", self.name));
        command.env_remove(EACH_FORMAT);
        if formats == Formats::Compared {
            command.env(EACH_FORMAT, "1");
            // In a folder of its own, so that it makes no other build compile the kernels again.
            command.env("CARGO_TARGET_DIR", target_dir()?.join("each-format"));
        }
        Ok(command)
    }

    /// The warnings of the package's build script in the output of cargo.
    fn warnings<'a>(&self, complaints: &'a str) -> impl Iterator<Item = &'a str> {
        let start = format!("warning: {}@", self.name);
        complaints
            .lines()
            .filter(move |line| line.starts_with(&start))
    }

    /// The folder of the package's PTX in cargo's messages.
    fn ptx_folder(&self, messages: &str) -> Option<PathBuf> {
        let package = format!("{}#", root().join(self.folder).display());
        let packages = packages_with_ptx(messages).into_iter();
        let mut folders = packages
            .filter(|found| found.id.contains(&package))
            .map(|found| found.folder);
        folders.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_the_kernels_build_are_found() {
        let complaints = "   Compiling cutlet-kernels v0.1.0\n\
            warning: cutlet-kernels@0.1.0: for sm_90a all modules are compiled together\n\
            warning: other@0.1.0: something\n    Finished `dev` profile\n";
        assert_eq!(
            KERNELS.warnings(complaints).collect::<Vec<_>>(),
            ["warning: cutlet-kernels@0.1.0: for sm_90a all modules are compiled together"]
        );
    }

    #[test]
    fn warnings_are_printed_plainly() {
        let command = KERNELS.messages(Formats::Derived).unwrap();
        for (name, value) in [("CARGO_TERM_COLOR", "never"), ("CARGO_TERM_QUIET", "false")] {
            let set = (name.as_ref(), Some(value.as_ref()));
            assert!(command.get_envs().any(|variable| variable == set), "{name}");
        }
    }

    #[test]
    fn the_folder_is_that_of_the_package_in_this_repository() {
        let kernels = root().join("kernels");
        let line = |package: &str, folder: &str| {
            format!(
                "{{\"reason\":\"build-script-executed\",\"package_id\":\"path+file://{package}#0.1.0\",\
                 \"env\":[[\"CUTLET_PTX_FOLDER\",\"{folder}\"]]}}\n"
            )
        };
        let messages = format!(
            "{}not json\n{}",
            line("/elsewhere/kernels", "/out/other"),
            line(&kernels.display().to_string(), "/out/ours")
        );
        let found = KERNELS.ptx_folder(&messages);
        assert_eq!(found, Some(PathBuf::from("/out/ours")));
    }
}
