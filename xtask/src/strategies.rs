//! Which strategy finds which error, and after how many schedules: a table of trials.
//!
//! A trial is `raddle explore` with seeds of its own; the error counts as found when a run crashes, fails, deadlocks or, for
//! a program whose error is a wrong result, prints something else than it should; the number of that run is how many
//! schedules it took. An error that is a data race in a program of atomics shows in no output: there a trial is a number of
//! `raddle run --weak`, one for each seed, and what counts is the first report, as in the tables of tsan11rec. Runs that take too long count only where threads run free and the error is a deadlock, which is the
//! only way in which `noise` can show one. The programs are those that the thesis on tsan11rec and the papers
//! on the strategies measure, in our own versions.

use crate::corpus::manifest::{self, Case, Output, Verdict};
use crate::project;
use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const TRIALS: u64 = 20;
const STRATEGIES: [&str; 8] = ["random", "round-robin", "queue", "pct:3", "pos", "surw", "delay:2", "noise"];
const PROGRAMS: [&str; 28] = [
    "explore/barrier",
    "explore/chase_lev_deque",
    "explore/dekker_fences",
    "explore/linux_rwlock",
    "explore/mcs_lock",
    "explore/mpmc_queue",
    "explore/ms_queue",
    "explore/safestack",
    "explore/reorder",
    "explore/reorder_4",
    "explore/reorder_5",
    "explore/reorder_10",
    "explore/reorder_20",
    "explore/reorder_50",
    "explore/reorder_100",
    "explore/twostage",
    "explore/twostage_3",
    "explore/twostage_5",
    "explore/twostage_10",
    "explore/twostage_20",
    "explore/twostage_50",
    "explore/twostage_100",
    "explore/stringbuffer",
    "explore/work_stealing_queue",
    "explore/account",
    "explore/bluetooth",
    "deadlock/abba",
    "deadlock/tc14",
];

/// Runs all trials, of at most `limit` schedules each, and returns the table.
pub fn table(limit: u64) -> anyhow::Result<String> {
    let mut text = format!(
        "## Strategies\n\nHow many of {TRIALS} trials of at most {limit} schedules found the error, and the median number of \
         schedules of those that did. Errors are wrong results, crashes and deadlocks, seen by `raddle explore` with scheduling points at \
         synchronisation, atomics and accesses to shared memory (`--visible shared`); for programs marked *race* they are data races, \
         seen by `raddle run --weak` with scheduling points at synchronisation and atomics.\n\n| program |"
    );
    for strategy in STRATEGIES {
        let _ = write!(text, " {strategy} |");
    }
    text.push_str("\n| --- |");
    text.push_str(&" --- |".repeat(STRATEGIES.len()));
    text.push('\n');
    let folder = tempfile::tempdir()?;
    let raddle = project::release_raddle()?;
    let cases = manifest::all(&project::root().join("corpus"))?;
    for name in PROGRAMS {
        let case = cases
            .iter()
            .find(|case| case.name == name)
            .with_context(|| format!("the corpus lacks {name}"))?;
        let program = build(&raddle, folder.path(), case)?;
        let _ = write!(text, "| {name}{} |", if program.races { " (*race*)" } else { "" });
        for strategy in STRATEGIES {
            let mut found = Vec::new();
            for trial in 0..TRIALS {
                found.extend(program.first_error(strategy, 1 + trial * 1_000_000, limit)?);
            }
            found.sort_unstable();
            match found.get(found.len() / 2) {
                Some(median) => {
                    let _ = write!(text, " {}, {median} |", found.len());
                }
                None => text.push_str(" 0 |"),
            }
        }
        text.push('\n');
        eprintln!("{}", text.lines().last().unwrap_or_default());
    }
    Ok(text)
}

/// A built program and its arguments.
struct Program<'a> {
    raddle: &'a Path,
    words: Vec<String>,
    /// The output is wrong if it is not this.
    right: Option<String>,
    deadlocks: bool,
    /// The error is a data race.
    races: bool,
}

fn build<'a>(raddle: &'a Path, folder: &Path, case: &Case) -> anyhow::Result<Program<'a>> {
    let program = folder.join(case.name.replace('/', "-"));
    let status = Command::new(raddle)
        .current_dir(&case.folder)
        .args(["cc", "-O0", "-g", "-pthread", "-I"])
        .arg(project::root().join("corpus/include"))
        .args(&case.cflags)
        .args(&case.files)
        .arg("-o")
        .arg(&program)
        .args(&case.libs)
        .status()
        .context("cannot start raddle cc")?;
    if !status.success() {
        bail!("{} does not compile", case.name);
    }
    let words = std::iter::once(program.display().to_string()).chain(case.args.iter().cloned()).collect();
    let right = match &case.output {
        Output::Exactly(text) if case.explore.contains(&Verdict::WrongOutput) => Some(text.clone()),
        _ => None,
    };
    let deadlocks = case.explore.contains(&Verdict::Deadlock);
    let races = !case.explore.is_empty() && case.explore.iter().all(|verdict| *verdict == Verdict::Race);
    Ok(Program { raddle, words, right, deadlocks, races })
}

impl Program<'_> {
    fn is_error(&self, outcome: &serde_json::Value, strategy: &str) -> bool {
        let ending = &outcome["ending"];
        if ending.get("timed-out").is_some() || ending.get("stuck").is_some() {
            return strategy == "noise" && self.deadlocks;
        }
        let wrong = self.right.as_deref().is_some_and(|right| outcome["stdout"].as_str() != Some(right));
        *ending != serde_json::json!({ "exit": 0 }) || wrong
    }

    /// Schedules until the first error, if one was found.
    fn first_error(&self, strategy: &str, seed: u64, limit: u64) -> anyhow::Result<Option<u64>> {
        if self.races {
            self.first_race(strategy, seed, limit)
        } else {
            self.first_failure(strategy, seed, limit)
        }
    }

    fn first_race(&self, strategy: &str, seed: u64, limit: u64) -> anyhow::Result<Option<u64>> {
        for run in 0..limit {
            let output = Command::new(self.raddle)
                .env("CORPUS_TURN_MS", "0")
                .args(["-q", "run", "--weak", "--halt-on-error", "--json", "--strategy", strategy])
                .args(["--seed", &(seed + run).to_string(), "--"])
                .args(&self.words)
                .output()
                .context("cannot start raddle run")?;
            match output.status.code() {
                Some(0) => {}
                Some(1) => return Ok(Some(run + 1)),
                _ => bail!("raddle run: {}", String::from_utf8_lossy(&output.stderr)),
            }
        }
        Ok(None)
    }

    fn first_failure(&self, strategy: &str, seed: u64, limit: u64) -> anyhow::Result<Option<u64>> {
        // Sleeps would only say who is to let others go first.
        let output = Command::new(self.raddle)
            .env("CORPUS_TURN_MS", "0")
            .args(["-q", "explore", "--json", "--no-schedules", "--visible", "shared"])
            .args(["--workers", "1", "--timeout", "5", "--strategy", strategy])
            .args(if self.right.is_none() { &["--first"][..] } else { &[] })
            .args(["--runs", &limit.to_string(), "--seed", &seed.to_string()])
            .arg("--")
            .args(&self.words)
            .output()
            .context("cannot start raddle explore")?;
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let outcomes = json["exploration"]["outcomes"].as_array().context("no outcomes")?;
        let errors = outcomes.iter().filter(|outcome| self.is_error(outcome, strategy));
        Ok(errors.filter_map(|outcome| outcome["first_run"].as_u64()).min().map(|run| run + 1))
    }
}
