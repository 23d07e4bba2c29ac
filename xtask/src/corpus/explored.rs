//! Verdicts of exploration: some interleaving of the program does what the manifest says, and none does anything else.
//!
//! How a run ends, `raddle explore` tells: deadlocks, crashes, failed assertions, runs that never end, and, with the output that the
//! manifest promises, wrong output. A data race shows in no ending: for that verdict `raddle run` looks at some random
//! interleavings, with the weak behaviours of atomics. Which strategy finds an error is nothing that a manifest says,
//! so all of them are tried, one after the other, until one has found it.
//!
//! What comes from outside (time, signals, the network) belongs to a program that no seed decides; such cases are left out.

use super::golden::{GOLDEN_FILE, Golden, Source};
use super::hunt::{Markers, describe, fits, markers};
use super::manifest::{Case, End, Expected, Output, Verdict};
use super::run::{Runner, Variant, compare_output};
use anyhow::{Context, bail};
use raddle_findings::file::Outcome;
use raddle_findings::{Action, Finding, FindingsFile, Kind, Wait};
use std::path::Path;
use std::process::Command;

/// Strategies that are tried, the cheapest first.
pub(super) const STRATEGIES: [&str; 5] = ["random", "pct:3", "pos", "surw", "delay:2"];
/// Runs under each of them.
pub(super) const RUNS: u32 = 400;
/// Runs of a program in which nothing may be found, and strategies for it.
const CLEAN: [(&str, u32); 2] = [("random", 150), ("pct:3", 50)];
/// Interleavings in which a race is looked for, and in which none may be found.
const RACE_RUNS: u32 = 60;
const CLEAN_RACE_RUNS: u32 = 4;

/// Seconds after which a run counts as one that never ends.
const RUN_SECONDS: &str = "20";
/// The same where that is what the manifest promises.
const LIVELOCK_SECONDS: &str = "3";

/// What a number of explored runs showed.
struct Explored {
    findings: Vec<Finding>,
    outcomes: Vec<Outcome>,
}

impl Explored {
    /// Was this seen? A race shows in no ending.
    fn shows(&self, case: &Case, verdict: Verdict) -> bool {
        let finding = |kinds: &[Kind]| self.findings.iter().any(|finding| kinds.contains(&finding.kind));
        match verdict {
            Verdict::Deadlock | Verdict::Blocked | Verdict::MissedSignal => finding(&STANDSTILLS),
            Verdict::Assert => finding(&[Kind::AssertionFailure]),
            Verdict::Crash => finding(&[Kind::Crash]),
            Verdict::Livelock => {
                let endless = |outcome: &Outcome| outcome.ending.get("timed-out").is_some();
                self.outcomes.iter().any(endless)
            }
            Verdict::WrongOutput => {
                finding(&[Kind::WrongOutput]) || self.outcomes.iter().any(|outcome| is_wrong(case, outcome))
            }
            Verdict::Clean | Verdict::May | Verdict::Race => false,
        }
    }
}

/// What it is called when nothing moves any more.
const STANDSTILLS: [Kind; 3] = [Kind::Deadlock, Kind::BlockedThread, Kind::MissedSignal];

/// It ended well, with something else than it should print.
fn is_wrong(case: &Case, outcome: &Outcome) -> bool {
    outcome.ending == serde_json::json!({ "exit": 0 })
        && compare_output(case, outcome.stdout.as_bytes()).is_err()
}

/// May a program with these verdicts be found to do this?
pub(super) fn is_allowed(kind: Kind, verdicts: &[Verdict]) -> bool {
    verdicts.iter().any(|verdict| match verdict {
        Verdict::Deadlock | Verdict::Blocked | Verdict::MissedSignal => STANDSTILLS.contains(&kind),
        Verdict::Assert => kind == Kind::AssertionFailure,
        Verdict::Crash => kind == Kind::Crash,
        Verdict::WrongOutput => matches!(kind, Kind::WrongOutput | Kind::FailedStatus),
        Verdict::Clean | Verdict::May | Verdict::Race | Verdict::Livelock => false,
    })
}

/// Is the verdict one that `raddle explore` can show?
pub(super) fn shows_in_an_ending(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Clean | Verdict::May | Verdict::Race)
}

impl Runner {
    /// Does [`Runner::explore`] have something to say about the case?
    pub fn can_explore(case: &Case) -> bool {
        !case.explore.is_empty() && !case.outside && case.end == End::Status(0)
    }

    /// Explores the case and compares what was seen with the manifest.
    pub fn explore(&self, case: &Case, variant: Variant, golden: Golden) -> anyhow::Result<()> {
        let scratch = tempfile::Builder::new().prefix("raddle-explored-").tempdir()?;
        let folder = scratch.path().join("program");
        self.build(case, variant, &folder, true)?;
        if case.explore == [Verdict::Clean] {
            for (strategy, runs) in CLEAN {
                self.look(case, &folder, strategy, runs, &[]).with_context(|| strategy.to_owned())?;
            }
        }
        let due: Vec<Verdict> =
            case.explore.iter().copied().filter(|&verdict| shows_in_an_ending(verdict)).collect();
        if !due.is_empty() {
            self.explore_until(case, &folder, &due)?;
        }
        let race = case.explore.contains(&Verdict::Race);
        if race || case.explore == [Verdict::Clean] {
            self.races(case, &folder, race)?;
        }
        match Source::of(case) {
            Some(Source::Explore) => self.golden(case, Source::Explore, &folder, golden),
            _ => Ok(()),
        }
    }

    /// Tries one strategy after the other until everything that is due was seen.
    fn explore_until(&self, case: &Case, folder: &Path, due: &[Verdict]) -> anyhow::Result<()> {
        let first: &[&str] = match due {
            [Verdict::WrongOutput] => &[],
            [_] => &["--first"],
            _ => &[],
        };
        let mut missing = due.to_vec();
        for strategy in STRATEGIES {
            let explored =
                self.look(case, folder, strategy, RUNS, first).with_context(|| strategy.to_owned())?;
            missing.retain(|&verdict| !explored.shows(case, verdict));
            if missing.is_empty() {
                return Ok(());
            }
        }
        bail!("no strategy found {missing:?} in {RUNS} runs")
    }

    /// Explores; what is seen must fit the manifest.
    fn look(
        &self,
        case: &Case,
        folder: &Path,
        strategy: &str,
        runs: u32,
        options: &[&str],
    ) -> anyhow::Result<Explored> {
        let mut command = self.explore_command(case, folder, strategy, runs, "explored.json");
        let seconds = if case.explore.contains(&Verdict::Livelock) { LIVELOCK_SECONDS } else { RUN_SECONDS };
        command.args(["--no-schedules", "--timeout", seconds]).args(options);
        command.args(["--", "./program"]).args(&case.args);
        // They are short, and many of them are one run of the case with its sleeps.
        self.limited_output(command, case, runs.div_ceil(2))?;
        let kept = FindingsFile::read(&folder.join("explored.json"))?;
        let outcomes = kept.exploration.context("no exploration")?.outcomes;
        let markers = markers(case)?;
        for finding in &kept.findings {
            if !is_allowed(finding.kind, &case.explore) {
                bail!("no verdict of the manifest: {}", describe(finding));
            }
            if !is_expected(finding, &case.findings, &markers) {
                bail!("fits no entry of the manifest: {}", describe(finding));
            }
        }
        // Only where everybody gets a turn now and then, a thread that spins says something about the program.
        let is_fair = strategy == GOLDEN_STRATEGY;
        let endless = outcomes.iter().find(|outcome| {
            let ending = |word| outcome.ending.get(word).is_some();
            ending("stuck") || ending("too-many-threads") || is_fair && ending("timed-out")
        });
        if let Some(outcome) = endless.filter(|_| !case.explore.contains(&Verdict::Livelock)) {
            bail!("a run did not end: {}", outcome.ending);
        }
        if let Some(outcome) = outcomes.iter().find(|outcome| is_unreachable(case, outcome)) {
            bail!("no interleaving prints {:?}, says the manifest", outcome.stdout);
        }
        Ok(Explored { findings: kept.findings, outcomes })
    }

    fn explore_command(
        &self,
        case: &Case,
        folder: &Path,
        strategy: &str,
        runs: u32,
        output: &str,
    ) -> Command {
        let mut command = Command::new(&self.raddle);
        command.args(["explore", "--quiet", "--workers", "1", "--visible", "shared"]);
        command.args(["--strategy", strategy, "--runs", &runs.to_string(), "--output", output]);
        if case.stable_memory {
            command.arg("--stable-memory");
        }
        // Sleeps would only say who is to let others go first.
        command.current_dir(folder).env("LD_LIBRARY_PATH", ".").env("CORPUS_TURN_MS", "0");
        command
    }

    /// Looks for a race in random interleavings: one is due, or none may be there.
    fn races(&self, case: &Case, folder: &Path, due: bool) -> anyhow::Result<()> {
        for seed in 1..=if due { RACE_RUNS } else { CLEAN_RACE_RUNS } {
            let mut command = Command::new(&self.raddle);
            command.args(["run", "--quiet", "--weak", "--output", "races.json", "--strategy", "random"]);
            command.args(["--seed", &seed.to_string(), "--", "./program"]).args(&case.args);
            command.current_dir(folder).env("LD_LIBRARY_PATH", ".").env("CORPUS_TURN_MS", "0");
            self.limited_output(command, case, 1).with_context(|| format!("run --seed {seed}"))?;
            let kept = FindingsFile::read(&folder.join("races.json"))?;
            let is_race = |finding: &&Finding| finding.kind.is_race() && finding.grade().is_failing();
            match kept.findings.iter().find(is_race) {
                Some(_) if due => return Ok(()),
                Some(finding) => bail!("a race in a correct program: {}", describe(finding)),
                None => {}
            }
        }
        match due {
            true => bail!("no race in {RACE_RUNS} random interleavings"),
            false => Ok(()),
        }
    }

    /// The command whose findings are golden for a program whose error only a search finds.
    pub(super) fn golden_exploration(
        &self,
        case: &Case,
        folder: &Path,
        strategy: &str,
    ) -> anyhow::Result<Command> {
        let mut command = self.explore_command(case, folder, strategy, RUNS, GOLDEN_FILE);
        if let (Output::Exactly(text), true) = (&case.output, case.explore.contains(&Verdict::WrongOutput)) {
            std::fs::write(folder.join("expected"), text)?;
            command.args(["--expect-output", "expected"]);
        }
        command.args(["--timeout", RUN_SECONDS, "--keep", "golden", "--", "./program"]).args(&case.args);
        Ok(command)
    }
}

/// What golden output of explored programs is made under: a seed decides everything.
pub(super) const GOLDEN_STRATEGY: &str = "random";

/// Does the finding fit an entry, if there are entries for what it is?
fn is_expected(finding: &Finding, entries: &[Expected], markers: &Markers) -> bool {
    let same =
        |kind: Kind| kind == finding.kind || [kind, finding.kind].iter().all(|k| STANDSTILLS.contains(k));
    let mut known = entries.iter().filter(|entry| !entry.property && same(entry.kind)).peekable();
    // The others stood wherever they were when one thread crashed, and whoever waits for the end of a blocked thread is blocked too.
    let crashed = finding.parties.iter().any(|party| party.action == Action::Crashes);
    let mut about = finding.clone();
    about.parties.retain(|party| match &party.action {
        Action::Crashes => true,
        Action::Waits { wait: Wait::ThreadEnd, .. } => false,
        _ => !crashed,
    });
    known.peek().is_none() || known.any(|entry| fits(&about, entry, markers))
}

/// The manifest lists every output, and this is none of them.
fn is_unreachable(case: &Case, outcome: &Outcome) -> bool {
    let ended = outcome.ending == serde_json::json!({ "exit": 0 });
    match &case.output {
        _ if !ended => false,
        _ if !case.reachable.is_empty() => !case.reachable.contains(&outcome.stdout),
        Output::Lines(_) => is_wrong(case, outcome),
        Output::Exactly(_) | Output::Anything => false,
    }
}
