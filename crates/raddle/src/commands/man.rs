//! `raddle man`: the manual pages, one for each command, made of what `--help` says.

use super::Exit;
use anyhow::Context;
use std::path::PathBuf;

/// Writes manual pages: raddle.1, and one for each command.
///
/// Examples:
///   raddle man --output ~/.local/share/man/man1
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The folder to write them to; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let sentence = || format!("cannot write manual pages to {}", args.output.display());
    std::fs::create_dir_all(&args.output).with_context(sentence)?;
    clap_mangen::generate_to(crate::command_line(), &args.output).with_context(sentence)?;
    Ok(Exit::Clean)
}
