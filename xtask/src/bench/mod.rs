//! Benches: ratios measured in one run.
//!
//! A *group* has *cases* (a program, a model, a trace) and runs several *subjects* on each: the thing itself, Raddle, and
//! its peers. Subjects are run in turns (first round: every subject once, second round: ...), so that a machine that becomes slower
//! hits all of them; of N rounds the minimum counts, because noise only ever adds. What is compared is CPU time;
//! wall time and peak memory are reported beside it. A *bar* is a limit from the design that a group checks on
//! the numbers of this very run.
//!
//! A group is one file here with a function `run(&Bench) -> anyhow::Result<Outcome>` and a line in [`GROUPS`]:
//!
//! ```ignore
//! pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
//!     let mut outcome = Outcome::new("csp");
//!     let subjects = vec![
//!         Subject::function("ours", || { refine(&model); }),
//!         Subject::process("peer", || { let mut c = Command::new("peer"); c.arg("model"); c }),
//!     ];
//!     let rows = bench.measure("philosophers 8", subjects)?;
//!     outcome.rows.extend(rows);
//!     outcome.fact("states per second", 1.2e6);
//!     outcome.bar("CPU time against peer", ratio, Limit::AtMost(1.0));
//!     Ok(outcome)
//! }
//! ```
//!
//! `cargo xtask bench [GROUP...]` prints Markdown and writes `target/bench/GROUP.json`; with `--save` the file also goes
//! to `benches/results/`, from which `cargo xtask results` makes `docs/results.md`. With `--against RADDLE` the commands of another
//! binary and of this source's take turns instead, which shows whether a change has cost speed.

mod against;
mod csp;
mod detect;
mod explore;
mod measure;
#[path = "run.rs"]
mod online;
pub mod outcome;
mod predict;
mod program;
mod record;
mod scheme;
mod steer;
mod trace;

pub use measure::{Bench, Subject};
pub use outcome::{Bar, Limit, Outcome, Row, geometric_mean, ratios};

use crate::project;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};

type Run = fn(&Bench) -> anyhow::Result<Outcome>;

/// Every group: its name and what runs it. One line a group.
const GROUPS: &[(&str, Run)] = &[
    ("csp", csp::run),
    ("detect", detect::run),
    ("explore", explore::run),
    ("predict", predict::run),
    ("record", record::run),
    ("run", online::run),
    ("scheme", scheme::run),
    ("steer", steer::run),
    ("trace", trace::run),
];

/// Measure, side by side with peers.
#[derive(clap::Args)]
pub struct Args {
    /// Groups to run (default: all).
    groups: Vec<String>,
    /// Rounds; of each subject the fastest counts.
    #[arg(long, short = 'n', default_value_t = 5)]
    rounds: u32,
    /// Keep the results in benches/results, for docs/results.md.
    #[arg(long)]
    save: bool,
    /// Another `raddle`: measure its commands and those of this source's in turns (groups run, record, steer; default: all three).
    #[arg(long, value_name = "RADDLE", conflicts_with = "save")]
    against: Option<PathBuf>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = project::target().join("bench");
    let bench = Bench { rounds: args.rounds };
    if let Some(before) = &args.against {
        let outcomes = against::run(&bench, before, &args.groups)?;
        let mut broken = Vec::new();
        for outcome in outcomes {
            show(&outcome, &folder, &mut broken)?;
        }
        return finish(&broken);
    }
    let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = args.groups.iter().find(|group| !names.contains(&group.as_str())) {
        bail!("no bench group {unknown:?}; there are: {}", names.join(", "));
    }
    let mut broken = Vec::new();
    for (name, run) in GROUPS {
        if !args.groups.is_empty() && !args.groups.iter().any(|group| group == name) {
            continue;
        }
        let outcome = run(&bench).with_context(|| format!("bench group {name}"))?;
        show(&outcome, &folder, &mut broken)?;
        if args.save {
            outcome.write(&project::root().join("benches/results"))?;
        }
    }
    finish(&broken)
}

/// Prints what a group found out and writes it down; bars that do not hold are noted.
fn show(outcome: &Outcome, folder: &Path, broken: &mut Vec<String>) -> anyhow::Result<()> {
    println!("{}", outcome.markdown());
    outcome.write(folder)?;
    let failing = outcome.bars.iter().filter(|bar| !bar.holds());
    broken.extend(failing.map(|bar| format!("{}: {}", outcome.group, bar.what)));
    Ok(())
}

fn finish(broken: &[String]) -> anyhow::Result<()> {
    if !broken.is_empty() {
        bail!("bars that do not hold: {}", broken.join("; "));
    }
    Ok(())
}
