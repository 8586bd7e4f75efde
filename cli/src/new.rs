//! `cutlet new`: a package with a kernel, to start from.

mod template;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cutlet_ptx_builder::Toolchain;
use serde::Serialize;

use crate::output::Output;
use template::{FILES, Origin};

/// Make a package with a kernel of your own: its source, a test on the CPU, a benchmark, a program and a CI file.
///
/// The kernel is the root mean square norm of a matrix's rows. The package is that of examples/own-kernel in cutlet's
/// repository.
#[derive(Args, Debug)]
pub struct NewArgs {
    /// The package's folder, which is made. Its last part is the package's name.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Depend on this checkout of cutlet's repository, in place of the registry's version. Continuous integration needs
    /// it, too.
    #[arg(long, value_name = "CHECKOUT")]
    path: Option<PathBuf>,

    #[command(flatten)]
    pub output: Output,
}

/// Runs the command. Without a toolchain that compiles kernels it warns.
pub fn run(args: &NewArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let name = name(&args.folder)?;
    let origin = match &args.path {
        Some(checkout) => Origin::Checkout(template::checkout(checkout)?),
        None => Origin::Registry,
    };
    if !is_free(&args.folder) {
        return Err(format!(
            "{} exists and is not empty: name a folder that does not exist",
            args.folder.display()
        )
        .into());
    }
    for file in &FILES {
        write(&args.folder.join(file.path), &file.text(name, &origin))?;
    }
    if let Err(error) = Toolchain::find() {
        args.output.warning(error);
    }
    args.output.result(&Made {
        package: name.to_string(),
        folder: args.folder.clone(),
        files: FILES.map(|file| file.path),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Whether nothing is in the folder.
fn is_free(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => !folder.exists(),
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(file, text))
        .map_err(|error| format!("writing {}: {error}", file.display()))
}

/// The package's name: the folder's.
fn name(folder: &Path) -> Result<&str, String> {
    let name = folder.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_word) {
        true => Ok(name),
        false => Err(format!(
            "`{}` ends in no name of a package: begin with a letter, and go on with letters, digits, `-` and `_`",
            folder.display()
        )),
    }
}

/// A package that was made.
#[derive(Debug, Serialize)]
struct Made {
    package: String,
    folder: PathBuf,
    files: [&'static str; FILES.len()],
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        writeln!(f, "a package with a kernel in {folder}/src/lib.rs\n")?;
        for (command, what) in [
            (&*format!("cd {folder}"), ""),
            ("cargo test", "# the kernel on the CPU, against a loop"),
            ("cargo run", "# on the GPU if there is one, else on the CPU"),
            (
                "cargo bench",
                "# its instances beside a copy of as many bytes",
            ),
            (
                "cutlet ptx",
                "# registers, spills and hot loops of the machine code",
            ),
        ] {
            writeln!(f, "{}", format!("  {command:<14} {what}").trim_end())?;
        }
        write!(
            f,
            "\nThe first build takes a minute on two cores, later ones a few seconds."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_that_of_the_folder() {
        assert_eq!(name(Path::new("../code/my-kernels_2")), Ok("my-kernels_2"));
        for wrong in ["", "..", "/", "2-kernels", "my kernels", "kernels/ä"] {
            assert!(name(Path::new(wrong)).is_err(), "{wrong}");
        }
    }
}
