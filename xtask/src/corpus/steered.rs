//! Steered runs of the corpus: the same seed gives the same run, and a demo gives its run again.
//!
//! *The same run* means the same schedule (a hash over all turns: thread, operation, which of its thread's operations, whether
//! it failed), the same output and the same ending. Runs come from the fork server, where that is possible, and are also
//! started anew, where addresses and load differ. `queue` and `noise` are left out: their order is made by arrival, which
//! is what demos keep.

use super::manifest::Case;
use super::run::{Runner, Variant};
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Strategies under which the seed decides everything.
pub const SEEDED: [&str; 6] = ["random", "round-robin", "pct:3", "pos", "surw", "delay:2"];
/// Strategies under which demos are recorded.
const RECORDED: [&str; 2] = ["queue", "random"];
/// Of the runs from the fork server, so many are also made by starting the program anew.
const STARTED_MAX: u32 = 5;
/// A recorded run's events are compared so many times.
const TRACES: u32 = 2;

/// Seconds that one run may take before it counts as not ending, on a loaded machine too.
const RUN_SECONDS: &str = "120";

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// So many runs with one seed are the same.
    Determinism(u32),
    /// So many replays of a demo are the same.
    Replay(u32),
    /// So many runs, each with another seed, are the same in kept processes and in forked ones.
    Modes(u32),
}

impl Check {
    /// Name in the list of known failures.
    pub fn tool(self) -> &'static str {
        match self {
            Check::Determinism(_) => "determinism",
            Check::Replay(_) => "replay",
            Check::Modes(_) => "modes",
        }
    }

    /// No seed decides what comes from outside.
    pub fn applies(self, case: &Case) -> bool {
        matches!(self, Check::Replay(_)) || !case.outside
    }
}

/// Builds the case and checks it.
pub fn check(runner: &Runner, case: &Case, check: Check) -> anyhow::Result<()> {
    let compiler = if case.compilers.iter().any(|compiler| compiler == "gcc") { "gcc" } else { "clang" };
    let variant = Variant { compiler, optimisation: "-O0", fixed_addresses: false };
    if !check.applies(case) || !runner.can(case, variant) {
        return Ok(());
    }
    let scratch = tempfile::Builder::new().prefix("raddle-corpus-").tempdir()?;
    let folder = scratch.path().join("steered");
    runner.build(case, variant, &folder, true)?;
    match check {
        Check::Determinism(runs) => {
            for strategy in SEEDED {
                determinism(runner, case, &folder, strategy, runs).with_context(|| strategy.to_owned())?;
            }
            Ok(())
        }
        Check::Modes(runs) => modes(runner, case, &folder, runs).map(|_| ()),
        Check::Replay(runs) => {
            for strategy in RECORDED {
                replay(runner, case, &folder, strategy, runs).with_context(|| strategy.to_owned())?;
            }
            Ok(())
        }
    }
}

fn command(runner: &Runner, folder: &Path) -> Command {
    let mut command = Command::new(&runner.raddle);
    command.current_dir(folder).env("LD_LIBRARY_PATH", ".").arg("-q");
    command
}

/// Runs with one seed, forked and started.
fn determinism(runner: &Runner, case: &Case, folder: &Path, strategy: &str, runs: u32) -> anyhow::Result<()> {
    let forked = explore(runner, case, folder, strategy, runs, &[])?;
    let started = explore(runner, case, folder, strategy, runs.min(STARTED_MAX), &["--exec"])?;
    if forked != started {
        bail!("forked runs give {forked}, started ones {started}");
    }
    let first = events(runner, case, folder, strategy)?;
    for _ in 1..TRACES {
        let again = events(runner, case, folder, strategy)?;
        for (thread, (first, again)) in first.pairs(&again) {
            if let Some((a, b)) = first.iter().zip(again).find(|(a, b)| a != b) {
                bail!("an event of {thread} is `{a}` in one run and `{b}` in another");
            }
            if first.len() != again.len() {
                bail!("{thread} has more events in one run than in another");
            }
        }
    }
    Ok(())
}

/// The events of a recorded run: the visible operations of all threads in their order, and all events of each thread.
/// Between threads, only visible operations have an order.
struct Events {
    visible: Vec<String>,
    of_thread: BTreeMap<String, Vec<String>>,
}

/// Events that a thread makes by itself, in nobody's turn.
const INVISIBLE: [&str; 12] = [
    "alloc",
    "free",
    "yield",
    "init",
    "destroy",
    "request",
    "sem-init",
    "barrier-init",
    "thread-name",
    "module",
    "signal-enter",
    "signal-exit",
];

impl Events {
    fn read(dump: &str) -> Events {
        let mut events = Events { visible: Vec::new(), of_thread: BTreeMap::new() };
        for line in dump.lines() {
            // `2 1.1 lock lock=0x5555 @0x5556`: number, thread, kind, and what belongs to it.
            let mut words = line.split(' ').skip(1);
            let (Some(thread), Some(kind)) = (words.next(), words.next()) else { continue };
            if !thread.starts_with('1') {
                continue;
            }
            // The C library frees the memory of ended threads when it comes across it.
            if !matches!(kind, "alloc" | "free") {
                events.of_thread.entry(thread.to_owned()).or_default().push(kind.to_owned());
            }
            if !INVISIBLE.contains(&kind) {
                events.visible.push(format!("{thread} {kind}"));
            }
        }
        events
    }

    fn pairs<'a>(
        &'a self,
        other: &'a Events,
    ) -> impl Iterator<Item = (String, (&'a [String], &'a [String]))> {
        let all = std::iter::once(("the program".to_owned(), (&self.visible[..], &other.visible[..])));
        all.chain(self.of_thread.iter().map(|(thread, events)| {
            let of_other = other.of_thread.get(thread).map_or(&[][..], Vec::as_slice);
            (format!("thread {thread}"), (events.as_slice(), of_other))
        }))
    }
}

/// The one outcome of all runs.
fn explore(
    runner: &Runner,
    case: &Case,
    folder: &Path,
    strategy: &str,
    runs: u32,
    options: &[&str],
) -> anyhow::Result<Value> {
    let mut command = command(runner, folder);
    command.args(["explore", "--json", "--no-schedules", "--same-seed", "--seed", "11", "--runs"]);
    command.arg(runs.to_string()).args(["--timeout", RUN_SECONDS, "--strategy", strategy]).args(options);
    if case.stable_memory {
        command.arg("--stable-memory");
    }
    command.args(["--", "./program"]).args(&case.args);
    let text = runner.limited_output(command, case, runs)?;
    let json: Value = serde_json::from_slice(&text).context("raddle explore --json")?;
    let outcomes = json["exploration"]["outcomes"].as_array().context("no outcomes")?;
    let [outcome] = outcomes.as_slice() else {
        let all: Vec<String> = outcomes
            .iter()
            .map(|outcome| format!("{} x {} {}", outcome["count"], outcome["ending"], outcome["stdout"]))
            .collect();
        bail!("{runs} runs with one seed had {} outcomes: {}", outcomes.len(), all.join("; "));
    };
    if json["exploration"]["schedules"] != 1 {
        bail!("{runs} runs with one seed had {} schedules {options:?}", json["exploration"]["schedules"]);
    }
    if outcome["ending"].get("timed-out").is_some() || outcome["ending"].get("stuck").is_some() {
        bail!("the runs did not end: {}", outcome["ending"]);
    }
    Ok(serde_json::json!([outcome["ending"], outcome["stdout"]]))
}

/// Runs with as many seeds in kept processes and in forked ones: schedules, outcomes and outputs are the same. Returns what
/// Raddle says about the mode.
fn modes(runner: &Runner, case: &Case, folder: &Path, runs: u32) -> anyhow::Result<String> {
    let explore = |mode: &str| -> anyhow::Result<(Value, String)> {
        let mut command = Command::new(&runner.raddle);
        command.current_dir(folder).env("LD_LIBRARY_PATH", ".");
        command.args([
            "explore",
            "--strategy",
            "random",
            "--json",
            "--no-schedules",
            "--workers",
            "1",
            "--mode",
            mode,
            "--runs",
        ]);
        command.arg(runs.to_string()).args(["--timeout", RUN_SECONDS, "--", "./program"]).args(&case.args);
        let ran = runner.limited(command, case)?;
        let json: Value = serde_json::from_slice(&ran.stdout).context("raddle explore --json")?;
        let said = String::from_utf8_lossy(&ran.stderr);
        let line = said.lines().find(|line| line.contains("raddle: mode ")).unwrap_or_default().to_owned();
        Ok((json["exploration"].clone(), line))
    };
    let (kept, line) = explore("fibers")?;
    if line.contains("bug in raddle") {
        bail!("{line}");
    }
    let (forked, _) = explore("fork")?;
    if kept != forked {
        // What the system decides differs between forked runs as well.
        if explore("fork")?.0 != forked {
            return Ok(format!("{line} (forked runs differ among themselves)"));
        }
        bail!("kept: {kept}\nforked: {forked}\n{line}");
    }
    println!("{}: {line}", case.name);
    Ok(line)
}

/// The synchronisation events of a recorded run.
fn events(runner: &Runner, case: &Case, folder: &Path, strategy: &str) -> anyhow::Result<Events> {
    let trace = folder.join("steered.trace");
    let mut record = Command::new("setarch");
    record.current_dir(folder).env("LD_LIBRARY_PATH", ".").arg("-R").arg(&runner.raddle);
    record.args(["-q", "record", "--sync-only", "--seed", "11", "--strategy", strategy, "-o"]).arg(&trace);
    record.args(["--", "./program"]).args(&case.args);
    let ran = runner.limited(record, case)?;
    if !trace.exists() {
        bail!("no trace; raddle said: {}", String::from_utf8_lossy(&ran.stderr));
    }
    let mut dump = command(runner, folder);
    dump.args(["trace", "dump"]).arg(&trace);
    let text = runner.limited(dump, case)?;
    std::fs::remove_file(&trace)?;
    if !text.status.success() || text.stdout.is_empty() {
        bail!("the trace cannot be read: {}", String::from_utf8_lossy(&text.stderr));
    }
    Ok(Events::read(&String::from_utf8_lossy(&text.stdout)))
}

/// A demo, given again.
fn replay(runner: &Runner, case: &Case, folder: &Path, strategy: &str, runs: u32) -> anyhow::Result<()> {
    let demo = folder.join("steered.demo");
    let mut record = command(runner, folder);
    record.args(["record", "--demo", "--strategy", strategy, "-o"]).arg(&demo);
    if case.stable_memory {
        record.arg("--stable-memory");
    }
    // Code between operations runs in parallel under `queue`, and what a data race gives there is nobody's decision.
    if case.is_racy() {
        record.arg("--one-at-a-time");
    }
    record.args(["--", "./program"]).args(&case.args);
    let recorded = runner.limited(record, case)?;
    if !demo.exists() {
        bail!("no demo; raddle said: {}", String::from_utf8_lossy(&recorded.stderr));
    }
    let mut replay = command(runner, folder);
    replay.args(["replay", "--json", "--repeat", &runs.to_string(), "--timeout", "60"]).arg(&demo);
    let replayed = runner.limited_for(replay, case, runs)?;
    let json: Value = serde_json::from_slice(&replayed.stdout)
        .with_context(|| format!("raddle replay said {}", String::from_utf8_lossy(&replayed.stderr)))?;
    if json["same"] != runs {
        bail!("{} of {runs} replays were the same: {}", json["same"], json["failure"]);
    }
    std::fs::remove_file(&demo)?;
    Ok(())
}
