//! `raddle completions`: what a shell needs to complete Raddle's commands and options.

use super::Exit;
use clap_complete::Shell;

/// Prints a script with which a shell completes `raddle`'s commands and options.
///
/// Examples:
///   raddle completions bash > ~/.local/share/bash-completion/completions/raddle
///   raddle completions fish > ~/.config/fish/completions/raddle.fish
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command_line(), "raddle", &mut script);
    print!("{}", String::from_utf8_lossy(&script));
    Ok(Exit::Clean)
}
