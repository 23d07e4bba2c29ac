//! What Raddle says, it can show again: every finding of the corpus that is graded *confirmed* must be shown by each of N replays from
//! its file.
//!
//! A replay must need nothing but the store. So before anything is replayed, everything is done to the folder that a user would do: the
//! program is hunted a second time, another program is hunted in the same folder, and the program is hunted again with a recording
//! option ([`OPTIONS`], one after the other over the cases) and explored, each into a store of its own. Afterwards the folder is
//! moved to another path and everything is replayed there once more.

use super::manifest::{Case, Verdict};
use super::run::{Runner, Variant};
use anyhow::{Context, bail, ensure};
use raddle_findings::{Evidence, Grade, Store};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Options of `raddle hunt` that change what is recorded, and so what a replay has to know.
const OPTIONS: [&[&str]; 7] = [
    &["--keep-redundant"],
    &["--from-start"],
    &["--no-allocations"],
    &["--sync-only"],
    &["--fixed-addresses"],
    &["--strategy", "random", "--seed", "7"],
    &["--strategy", "pos", "--runs", "2"],
];

/// What may be provoked in a hunt with an option: schedules of provocations have the head of all others, so few will do.
const PROVOKE: &str = "20,2s";

/// Stores in the folder of a case: of plain hunts, of hunts with an option, of exploring.
const STORES: [&str; 3] = [".raddle", "with-option", "explored"];

/// Explored runs of a case.
const EXPLORED_RUNS: &str = "60";

/// The program that is hunted in everybody's folder: it has two confirmed findings of its own.
pub const OTHER: &str = "usecases/deadlock";

/// How many findings were replayed, over all cases.
#[derive(Debug, Default)]
pub struct Tally {
    pub findings: AtomicUsize,
    pub replays: AtomicUsize,
}

/// What is asked of every case.
#[derive(Clone, Copy, Debug)]
pub struct Check<'a> {
    pub replays: u32,
    /// Hunt with each of [`OPTIONS`], not with one of them.
    pub every_option: bool,
    pub other: &'a Case,
    pub tally: &'a Tally,
}

/// What the `number`-th case is built with: both compilers and both levels, each option with each of them.
pub fn variant(number: usize, compiler: &'static str) -> Variant {
    let optimisation = if (number / 2).is_multiple_of(2) { "-O0" } else { "-O2" };
    Variant { compiler, optimisation, fixed_addresses: false }
}

impl Check<'_> {
    /// Does any manifest expect a finding that can be confirmed?
    pub fn applies(case: &Case) -> bool {
        let verdicts = case.predict.iter().chain(&case.explore);
        case.crashes() || verdicts.into_iter().any(|&verdict| verdict != Verdict::Clean)
    }

    /// Hunts in the case as a user would, and replays what was confirmed. `number`: which of the cases it is.
    pub fn run(&self, runner: &Runner, case: &Case, variant: Variant, number: usize) -> anyhow::Result<()> {
        let scratch = tempfile::Builder::new().prefix("raddle-evidence-").tempdir()?;
        let folder = scratch.path().join("first");
        runner.build(case, variant, &folder, true)?;
        let hunt = |case: &Case, folder: &Path, options: &[&str]| -> anyhow::Result<()> {
            runner
                .limited_output(runner.hunt_command(case, folder, options), case, 1)
                .map(drop)
                .with_context(|| format!("hunt {}", options.join(" ")))
        };
        hunt(case, &folder, &[])?;
        hunt(case, &folder, &[])?;
        let one = number % OPTIONS.len();
        for option in if self.every_option { &OPTIONS[..] } else { &OPTIONS[one..=one] } {
            hunt(case, &folder, &[&["--keep", STORES[1], "--provoke", PROVOKE], *option].concat())?;
        }
        if !case.explore.is_empty() {
            explore(runner, case, &folder)?;
        }
        let elsewhere = scratch.path().join("other");
        runner.build(self.other, variant, &elsewhere, true)?;
        std::fs::rename(elsewhere.join("program"), folder.join("other"))?;
        let mut command = Command::new(&runner.raddle);
        command.args(["hunt", "--quiet", "--workers", "1", "--", "./other"]).current_dir(&folder);
        runner.limited_output(command, self.other, 1).context("hunt in the other program")?;

        self.replay_all(runner, case, &folder)?;
        let moved = scratch.path().join("moved/deeper");
        std::fs::create_dir(scratch.path().join("moved"))?;
        std::fs::rename(&folder, &moved)?;
        self.replay_all(runner, case, &moved).context("after the folder was moved")
    }

    fn replay_all(&self, runner: &Runner, case: &Case, folder: &Path) -> anyhow::Result<()> {
        for name in STORES {
            let (evidence, problems) = Store::at(folder.join(name)).list()?;
            ensure!(problems.is_empty(), "{name}: {problems:?}");
            for evidence in evidence.iter().filter(|evidence| evidence.finding.grade() == Grade::Confirmed) {
                self.replay(runner, case, folder, name, evidence)?;
            }
        }
        Ok(())
    }

    fn replay(
        &self,
        runner: &Runner,
        case: &Case,
        folder: &Path,
        store: &str,
        evidence: &Evidence,
    ) -> anyhow::Result<()> {
        let mut command = Command::new(&runner.raddle);
        let repeat = self.replays.to_string();
        command.args(["replay", "--json", "--keep", store, "--repeat", &repeat, &evidence.finding.id]);
        // Nothing but the store says how the program is run: the environment that it was hunted with is not here any more.
        let ran = runner.limited_for(command_in(command, folder), case, self.replays)?;
        let about = || format!("{} in {store}", super::hunt::describe(&evidence.finding));
        let told: serde_json::Value = serde_json::from_slice(&ran.stdout).with_context(|| {
            format!("{}: {} {}", about(), ran.status, String::from_utf8_lossy(&ran.stderr))
        })?;
        self.tally.findings.fetch_add(1, Ordering::Relaxed);
        self.tally.replays.fetch_add(self.replays as usize, Ordering::Relaxed);
        if told["shown"] != self.replays || told["same_program"] != true || ran.status.code() != Some(1) {
            bail!("{}: not shown in each of {} replays: {told}", about(), self.replays);
        }
        Ok(())
    }
}

fn command_in(mut command: Command, folder: &Path) -> Command {
    command.current_dir(folder).env_remove("LD_LIBRARY_PATH").env_remove("CORPUS_TURN_MS");
    command
}

fn explore(runner: &Runner, case: &Case, folder: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(&runner.raddle);
    command.args([
        "explore",
        "--quiet",
        "--workers",
        "1",
        "--runs",
        EXPLORED_RUNS,
        "--visible",
        "shared",
        "--strategy",
        "random",
    ]);
    command.args(["--keep", STORES[2], "--", "./program"]).args(&case.args);
    command.current_dir(folder).env("LD_LIBRARY_PATH", ".").env("CORPUS_TURN_MS", "0");
    runner.limited_output(command, case, 60).map(drop).context("explore")
}
