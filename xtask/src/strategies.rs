//! Which strategy finds which error, and after how many schedules: a table of trials.
//!
//! A trial is `raddle explore --first` with seeds of its own; it counts as found when a run ends with an error, and the
//! number of that run is how many schedules it took. The programs are those that the thesis on tsan11rec and the papers
//! on the strategies measure, in our own versions.

use crate::corpus::manifest::{self, Case};
use crate::project;
use anyhow::{Context, bail};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const TRIALS: u64 = 20;
const STRATEGIES: [&str; 7] = ["random", "round-robin", "queue", "pct:3", "pos", "surw", "delay:2"];
const PROGRAMS: [&str; 23] = [
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
    "explore/twostage",
    "explore/twostage_5",
    "explore/twostage_10",
    "explore/twostage_20",
    "explore/stringbuffer",
    "explore/work_stealing_queue",
    "explore/account",
    "explore/bluetooth",
    "deadlock/abba",
    "usecases/deadlock",
];

/// Runs all trials, of at most `limit` schedules each, and returns the table.
pub fn table(limit: u64) -> anyhow::Result<String> {
    let mut text = format!(
        "## Strategies\n\nHow many of {TRIALS} trials of at most {limit} schedules found the error, and the median number of \
         schedules of those that did. Scheduling points are synchronisation, atomics and accesses to shared memory (`--visible shared`).\n\n| program |"
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
        let _ = write!(text, "| {name} |");
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
    Ok(Program { raddle, words })
}

impl Program<'_> {
    /// Schedules until the first error, if one was found.
    fn first_error(&self, strategy: &str, seed: u64, limit: u64) -> anyhow::Result<Option<u64>> {
        let output = Command::new(self.raddle)
            .args(["-q", "explore", "--json", "--first", "--no-schedules", "--visible", "shared"])
            .args(["--workers", "1", "--timeout", "5", "--strategy", strategy])
            .args(["--runs", &limit.to_string(), "--seed", &seed.to_string()])
            .arg("--")
            .args(&self.words)
            .output()
            .context("cannot start raddle explore")?;
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let outcomes = json["outcomes"].as_array().context("no outcomes")?;
        let ended_well = serde_json::json!({ "exit": 0 });
        let errors = outcomes.iter().filter(|outcome| outcome["ending"] != ended_well);
        Ok(errors.filter_map(|outcome| outcome["first_run"].as_u64()).min().map(|run| run + 1))
    }
}
