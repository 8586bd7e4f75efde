//! `cutlet completions`: what a shell needs to complete the command's arguments.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::print;

/// Print completions of commands and options for a shell.
#[derive(Args, Debug)]
#[command(after_help = PLACES)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

const PLACES: &str = "\
Where shells look for them:
  bash  cutlet completions bash > ~/.local/share/bash-completion/completions/cutlet
  zsh   cutlet completions zsh > DIR/_cutlet, where DIR is one of $fpath
  fish  cutlet completions fish > ~/.config/fish/completions/cutlet.fish";

/// Runs the command for a program with these arguments.
pub fn run(
    args: &CompletionsArgs,
    mut program: Command,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    // The generator panics where it cannot write, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "cutlet", &mut script);
    print(String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
