//! Chores: set-up, test, coverage, bench, corpus, external programs, results, package. Nothing here is needed by users.

use clap::{Parser, Subcommand};
use xtask::{bench, corpus, coverage, deb, external, results, test};

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
    /// Run the programs of the corpus natively and recorded, and compare.
    Corpus(corpus::Args),
    /// Count the lines that host tests reach, and fail where they are too few.
    Coverage(coverage::Args),
    /// Make the Debian package (needs cargo-deb).
    Deb(deb::Args),
    /// Build real programs from Debian's sources and compare native with recorded runs (opt-in).
    External(external::Args),
    /// Make docs/results.md from kept bench results and the kept table of strategies.
    Results(results::Args),
    /// Install what is needed, then check formatting, lints and all tests.
    Test(test::Args),
}

fn main() -> std::process::ExitCode {
    let result = match Cli::parse().chore {
        Chore::Bench(args) => bench::run(&args),
        Chore::Corpus(args) => corpus::run(&args),
        Chore::Coverage(args) => coverage::run(&args),
        Chore::Deb(args) => deb::run(&args),
        Chore::External(args) => external::run(&args),
        Chore::Results(args) => results::run(&args),
        Chore::Test(args) => test::run(&args),
    };
    match result {
        Ok(()) => 0.into(),
        Err(error) => {
            eprintln!("xtask: error: {error:#}");
            1.into()
        }
    }
}
