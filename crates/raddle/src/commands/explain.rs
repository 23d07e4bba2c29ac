//! `raddle explain`: what a kind of finding is, with a small example, and what the grades mean.

use super::{Ctx, Exit};
use raddle_findings::Kind;
use raddle_report::{explain, grades};

/// Explains a kind of finding: what it is, a small example and its fix, how Raddle finds it, what to do about it.
///
/// Examples:
///   raddle explain                 the kinds and the grades
///   raddle explain data-race
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Kind of finding.
    #[arg(value_name = "KIND", value_parser = super::report::kind)]
    kind: Option<Kind>,
}

/// Kinds and grades.
fn overview() -> String {
    let kinds: Vec<String> = Kind::ALL.iter().map(|kind| format!("  {}\n", kind.name())).collect();
    format!("{}\nKinds of findings:\n\n{}", grades(), kinds.concat())
}

pub fn run(args: Args, _ctx: &Ctx) -> anyhow::Result<Exit> {
    match args.kind {
        Some(kind) => print!("{}", explain(kind)),
        None => print!("{}", overview()),
    }
    Ok(Exit::Clean)
}
