//! `raddle replay`: make a recorded or predicted schedule happen again.

use super::{Ctx, Exit};
use crate::compiler::Refusal;
use crate::hunt::confirm::describe;
use crate::hunt::unordered;
use crate::launch::demo::{self, Replayed};
use crate::launch::process::{describe as describe_status, shell_status};
use crate::launch::shrinking;
use crate::launch::steering::{self, Outcome, Steered, Streams, Then};
use crate::launch::target::Target;
use anyhow::Context;
use raddle_explore::Strategy;
use raddle_findings::FindingsFile;
use raddle_trace::demo::{Demo, is_demo};
use raddle_trace::schedule::Schedule;
use raddle_wire::region::option;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a program along a schedule and says whether it shows what the schedule is about.
///
/// Exit status: 1 the error was shown (in every repetition), 0 it was not, 2 usage or environment error.
///
/// Without a program, the one that `raddle hunt` found it with is run.
///
/// Examples:
///   raddle replay 1f3a09c2
///   raddle replay .raddle/1f3a09c2.schedule bank.c
///   raddle replay --repeat 20 race.schedule -- ./server --selftest
///   raddle replay --gdb 1f3a09c2
///   raddle replay server.demo
///   raddle replay --then random --seed 7 prefix.schedule bank.c
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The schedule (docs/schedule-format.md), a demo, or the id of a finding in the folder of --keep.
    #[arg(value_name = "SCHEDULE")]
    schedule: PathBuf,
    #[command(flatten)]
    target: Target,
    /// Folder in which findings were kept.
    #[arg(long, value_name = "DIR", default_value = ".raddle")]
    keep: PathBuf,
    /// Replay so many times and say how often the error was shown.
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,
    /// Seconds after which a run is stopped.
    #[arg(long, value_name = "S", default_value_t = 30)]
    timeout: u64,
    /// After the last step let this strategy decide (as `raddle explore --strategy`; default: round robin).
    #[arg(long, value_name = "STRATEGY")]
    then: Option<Strategy>,
    /// Seed of that strategy.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Run it in gdb. Threads are named by their spawn path, and gdb has control when the schedule has shown what it is
    /// about: when all stop points are reached, or the program deadlocks, crashes or leaves the schedule.
    #[arg(long, conflicts_with_all = ["repeat", "json"])]
    gdb: bool,
    /// With --gdb: commands for gdb, one option each, after which it ends; without them it is yours.
    #[arg(long, value_name = "COMMAND", requires = "gdb")]
    gdb_command: Vec<String>,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let path = find(&args)?;
    if let Some(demo) = demo_at(&path)? {
        return replay_demo(&args, &path, &demo, ctx);
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let schedule = Schedule::parse(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    let mut launch = match args.target.is_empty() {
        true => remembered(&args, &path)?.launch()?,
        false => args.target.launch()?,
    };
    launch.fixed_addresses |= schedule.stable_memory;
    let timeout = Duration::from_secs(args.timeout);
    let then = match args.then {
        Some(Strategy::Noise(_)) => {
            return Err(
                Refusal("noise lets the threads run free; --then takes the other strategies".into()).into()
            );
        }
        Some(strategy) => Then::Strategy(strategy, args.seed),
        None => Then::RoundRobin,
    };
    let config = steering::replay_config(&schedule, option::ALLOCATIONS, then)?;
    if args.gdb {
        let status = steering::debug(&launch, &config, &args.gdb_command)?;
        return Ok(Exit::Status(shell_status(status)));
    }
    let streams = if args.repeat > 1 { Streams::Silent } else { Streams::Inherited };
    let mut shown = 0;
    let mut first_failure = None;
    let mut last = None;
    for _ in 0..args.repeat.max(1) {
        if !schedule.unordered.is_empty() {
            if unordered::shows(&launch, &schedule, option::ALLOCATIONS, timeout, ctx)? {
                shown += 1;
            } else {
                first_failure = Some("the run did not show the two accesses unordered".to_owned());
            }
            continue;
        }
        let steered = steering::run(&launch, &config, streams, timeout)?;
        if shows(&schedule, &steered) {
            shown += 1;
        } else if first_failure.is_none() {
            first_failure = Some(sentence(&schedule, &steered));
        }
        last = Some(steered);
    }
    let outcome = match &last {
        Some(last) => sentence(&schedule, last),
        None => "nothing orders the two accesses, by the rules of C and C++11".to_owned(),
    };
    if args.json {
        println!(
            "{}",
            serde_json::json!({ "schedule": path, "about": schedule.about, "runs": args.repeat, "shown": shown,
                "outcome": outcome, "failure": first_failure })
        );
    } else if !ctx.quiet {
        let about = if schedule.about.is_empty() { "the schedule" } else { &schedule.about };
        eprintln!("raddle: {about}: shown in {shown} of {} runs", args.repeat.max(1));
        eprintln!("raddle: note: {}", first_failure.as_ref().unwrap_or(&outcome));
    }
    let Some(last) = last else {
        return Ok(if shown == args.repeat.max(1) { Exit::Found } else { Exit::Clean });
    };
    if let (Outcome::Ended(status), 1) = (&last.outcome, args.repeat)
        && schedule.stops.is_empty()
        && schedule.blocks.is_empty()
        && schedule.expected.is_none()
    {
        return Ok(Exit::Status(shell_status(*status)));
    }
    Ok(if shown == args.repeat.max(1) { Exit::Found } else { Exit::Clean })
}

/// The demo in this file, if it is one.
fn demo_at(path: &Path) -> anyhow::Result<Option<Demo>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !is_demo(&bytes) {
        return Ok(None);
    }
    let demo = Demo::read(&bytes).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    Ok(Some(demo))
}

/// Gives a demo again. Without a program, the recorded one is run.
fn replay_demo(args: &Args, path: &Path, demo: &Demo, ctx: &Ctx) -> anyhow::Result<Exit> {
    let launch = match args.target.is_empty() {
        true => {
            let program = demo.about.command.iter().map(Into::into).collect();
            Target { program, ..args.target.clone() }.launch()?
        }
        false => args.target.launch()?,
    };
    let timeout = Duration::from_secs(args.timeout);
    let (mut same, mut first_failure, mut status) = (0, None, None);
    // A file as standard input is read again from where it was.
    let input = rustix::fs::seek(std::io::stdin(), rustix::fs::SeekFrom::Current(0));
    for _ in 0..args.repeat.max(1) {
        if let Ok(start) = input {
            rustix::fs::seek(std::io::stdin(), rustix::fs::SeekFrom::Start(start))
                .context("cannot read the standard input again")?;
        }
        let (replayed, ended) = demo::replay(&launch, demo, args.repeat > 1, timeout)?;
        status = Some(ended);
        let failure = match replayed {
            Replayed::Same => {
                same += 1;
                continue;
            }
            Replayed::Hard(why) => format!("hard desynchronisation {why}"),
            Replayed::Soft(why) => format!("soft desynchronisation: {why}"),
        };
        first_failure.get_or_insert(failure);
    }
    if args.json {
        let about = serde_json::json!({ "demo": path, "runs": args.repeat.max(1), "same": same, "failure": first_failure });
        eprintln!("{about}");
    } else if !ctx.quiet {
        eprintln!("raddle: {}: the same in {same} of {} runs", path.display(), args.repeat.max(1));
        if let Some(failure) = &first_failure {
            eprintln!("raddle: {failure}");
        }
    }
    match (first_failure, status) {
        (None, Some(status)) if args.repeat <= 1 => Ok(Exit::Status(shell_status(status))),
        (None, _) => Ok(Exit::Clean),
        (Some(_), _) => Ok(Exit::Trouble),
    }
}

/// The program that the schedule was made with, from the findings beside it.
fn remembered(args: &Args, schedule: &Path) -> anyhow::Result<Target> {
    let findings = schedule.parent().unwrap_or(Path::new(".")).join("findings.json");
    let missing = || Refusal("which program? Give it behind `--`, or its source files".into());
    let file = FindingsFile::read(&findings).map_err(|_| missing())?;
    if file.program.is_empty() {
        return Err(missing().into());
    }
    Ok(Target { program: file.program.iter().map(Into::into).collect(), ..args.target.clone() })
}

fn find(args: &Args) -> Result<PathBuf, Refusal> {
    if args.schedule.exists() {
        return Ok(args.schedule.clone());
    }
    let by_id = args.keep.join(format!("{}.schedule", args.schedule.display()));
    if by_id.exists() {
        return Ok(by_id);
    }
    Err(Refusal(format!(
        "there is no schedule {}, and no {} either; `raddle hunt` writes them",
        args.schedule.display(),
        by_id.display()
    )))
}

/// Did the run show what the schedule promises?
fn shows(schedule: &Schedule, steered: &Steered) -> bool {
    if let Some(shown) = shrinking::shows(schedule, &steered.outcome) {
        return shown;
    }
    use raddle_predict::CandidateKind;
    let kind = if schedule.stops.is_empty() { CandidateKind::Deadlock } else { CandidateKind::DataRace };
    crate::hunt::confirm::shows(kind, schedule, steered).is_ok()
}

fn sentence(schedule: &Schedule, steered: &Steered) -> String {
    match &steered.outcome {
        Outcome::Ended(status) => {
            format!("all {} steps were taken and the program {}", steered.steps, describe_status(*status))
        }
        outcome => describe(schedule, outcome, steered.steps),
    }
}
