//! `cutlet man`: pages of the manual, made of the commands' help.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_mangen::Man;

use crate::output::{print, print_line};

/// Print a page of the manual: `cutlet man bench gemm | man -l -`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The command of the page, such as `bench gemm`. Without one, it is the page of `cutlet`.
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    commands: Vec<String>,
    /// Write every page into a folder, such as ~/.local/share/man/man1.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command for a program with these arguments.
pub fn run(args: &ManArgs, program: Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    match &args.out {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .and_then(|()| write_all(&program, folder))
                .map_err(|error| format!("writing pages into {}: {error}", folder.display()))?;
            print_line(format!("pages in {}", folder.display()))?;
        }
        None => {
            let mut text = Vec::new();
            page(named(&program, &args.commands)?).render(&mut text)?;
            print(String::from_utf8_lossy(&text))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of a command. Commands below the first have no version of their own.
fn page(command: &Command) -> Man {
    let version = concat!("cutlet ", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).source(version).manual("cutlet")
}

/// Writes the pages of a command and of all below it.
fn write_all(command: &Command, folder: &Path) -> std::io::Result<()> {
    page(command).generate_to(folder)?;
    let mut below = command.get_subcommands();
    below.try_for_each(|command| write_all(command, folder))
}

/// The command with these names, each of the one before.
fn named<'a>(program: &'a Command, names: &[String]) -> Result<&'a Command, String> {
    let mut command = program;
    for name in names {
        command = command.find_subcommand(name).ok_or_else(|| {
            let known = command.get_subcommands().map(Command::get_name);
            let known: Vec<&str> = known.collect();
            let whose = command.get_display_name().unwrap_or("cutlet");
            match known.as_slice() {
                [] => format!("the page of `{name}` was asked for, but `{whose}` has no commands"),
                known => format!(
                    "the page of `{name}` was asked for, but `{whose}` has the commands {}; name one of these",
                    known.join(", ")
                ),
            }
        })?;
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_its_names() {
        let below = Command::new("bench").subcommand(Command::new("gemm"));
        let program = Command::new("cutlet").subcommand(below);
        let mut program = program.disable_help_subcommand(true);
        program.build();
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|it| (*it).to_string()).collect();
            named(&program, &names).map(|found| found.get_name().to_string())
        };
        assert_eq!(of(&[]).as_deref(), Ok("cutlet"));
        assert_eq!(of(&["bench", "gemm"]).as_deref(), Ok("gemm"));
        let refusal = of(&["bench", "gem"]).unwrap_err();
        assert!(
            refusal.contains("`gem`") && refusal.contains("commands gemm;"),
            "{refusal}"
        );
        let refusal = of(&["bench", "gemm", "x"]).unwrap_err();
        assert!(refusal.ends_with("has no commands"), "{refusal}");
    }
}
