//! `raddle replay`: make a recorded or predicted schedule happen again.

use super::{Ctx, Exit};
use crate::compiler::Refusal;
use crate::hunt::confirm::describe;
use crate::hunt::unordered;
use crate::launch::process::{describe as describe_status, shell_status};
use crate::launch::steering::{self, Outcome, Steered, Streams};
use crate::launch::target::Target;
use anyhow::Context;
use raddle_findings::FindingsFile;
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
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The schedule (docs/schedule-format.md), or the id of a finding in the folder of --keep.
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
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let path = find(&args)?;
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let schedule = Schedule::parse(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    let launch = match args.target.is_empty() {
        true => remembered(&args, &path)?.launch()?,
        false => args.target.launch()?,
    };
    let timeout = Duration::from_secs(args.timeout);
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
        let steered = steering::replay(&launch, &schedule, option::ALLOCATIONS, streams, timeout)?;
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
    {
        return Ok(Exit::Status(shell_status(*status)));
    }
    Ok(if shown == args.repeat.max(1) { Exit::Found } else { Exit::Clean })
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
