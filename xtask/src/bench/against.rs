//! Two builds of Raddle side by side: has this one become slower than that one?
//!
//! What the groups `run`, `record` and `steer` ask of Raddle is asked of both binaries in turns, each with programs that it compiled
//! itself, so that runtime and launcher are compared together. A case is one command; its ratio is the CPU time of the binary of this
//! source over that of the other. The bar is on the geometric mean of a group's ratios: single ratios scatter by a few per cent on a
//! busy machine, and a change that slows one command by more than that moves the mean of its group. The worst one is told beside it.

use super::{Bench, Limit, Outcome, Subject, geometric_mean, online, ratios, record, steer};
use crate::project;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

const BEFORE: &str = "before";
const NOW: &str = "now";

/// Slower by more than this is slower.
const RATIO_MAX: f64 = 1.03;

/// One binary, and the folder of what it compiled and wrote.
pub(super) struct Side<'a> {
    pub raddle: &'a Path,
    pub folder: &'a Path,
}

/// A command of one binary: its name, and how it is made.
pub(super) type Case<'a> = (String, Box<dyn Fn() -> Command + 'a>);

/// Builds what its commands need, and says which they are.
type Cases = for<'a> fn(&'a Side<'a>) -> anyhow::Result<Vec<Case<'a>>>;

/// The groups whose commands can be asked of any binary.
const GROUPS: &[(&str, Cases)] =
    &[("run", online::cases), ("record", record::cases), ("steer", steer::cases)];

pub fn run(bench: &Bench, before: &Path, groups: &[String]) -> anyhow::Result<Vec<Outcome>> {
    if let Some(unknown) = groups.iter().find(|group| !GROUPS.iter().any(|(name, _)| name == group)) {
        let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
        bail!("two binaries are not compared in the bench group {unknown:?}, but in {}", names.join(", "));
    }
    let before = std::fs::canonicalize(before).with_context(|| format!("no binary {}", before.display()))?;
    let now = project::release_raddle()?;
    let mut outcomes = Vec::new();
    for (name, cases) in GROUPS {
        if groups.is_empty() || groups.iter().any(|group| group == name) {
            outcomes.push(compare(bench, name, *cases, &before, &now)?);
        }
    }
    Ok(outcomes)
}

fn compare(bench: &Bench, group: &str, cases: Cases, before: &Path, now: &Path) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new(&format!("{group}-against"));
    let folders = (tempfile::tempdir()?, tempfile::tempdir()?);
    let sides =
        (Side { raddle: before, folder: folders.0.path() }, Side { raddle: now, folder: folders.1.path() });
    for ((name, old), (_, new)) in cases(&sides.0)?.into_iter().zip(cases(&sides.1)?) {
        let subjects = vec![Subject::process(BEFORE, old), Subject::process(NOW, new)];
        outcome.rows.extend(bench.measure(&name, subjects)?);
    }
    let all = ratios(&outcome.rows, NOW, BEFORE);
    let mean = geometric_mean(all.iter().map(|(_, ratio)| *ratio));
    outcome.bar(
        &format!("{group}: CPU time, now against before, geometric mean"),
        mean,
        Limit::AtMost(RATIO_MAX),
    );
    let worst = all.iter().max_by(|one, other| one.1.total_cmp(&other.1)).context("a group has cases")?;
    outcome.fact(&format!("the worst of them: {}", worst.0), worst.1);
    outcome.note(&format!("Before: {}.", before.display()));
    Ok(outcome)
}
