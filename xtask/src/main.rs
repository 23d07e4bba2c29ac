//! Chores: set-up, test, bench, corpus, external programs, results. Nothing here is needed by users.

use clap::{Parser, Subcommand};
use xtask::bench;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Raddle project")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Measure, side by side with peers.
    Bench(bench::Args),
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().chore {
        Chore::Bench(args) => bench::run(&args),
    };
    match result {
        Ok(()) => 0.into(),
        Err(error) => {
            eprintln!("xtask: error: {error:#}");
            1.into()
        }
    }
}
