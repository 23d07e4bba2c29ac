//! `raddle explore`: many runs of one program under a strategy, and the distinct ways in which they ended.

use super::{Ctx, Exit};
use crate::launch::Launch;
use crate::launch::process::describe as describe_status;
use crate::launch::recording;
use crate::launch::steering::{self, Outcome};
use crate::launch::target::Target;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_explore::{Campaign, Ending, Observation, Strategy};
use raddle_trace::observed_schedule::observed_schedule;
use raddle_trace::region::RegionConfig;
use raddle_wire::region::steer;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Runs a program many times, each time with its threads in another order, and counts the distinct outcomes.
///
/// Run n uses seed S + n: the same seed gives the same run. The first schedule of every outcome that is an error is kept
/// in .raddle; `raddle replay` makes it happen again.
/// Exit status: 0 no error was seen, 1 some run crashed, deadlocked or failed, 2 usage or environment error.
///
/// Examples:
///   raddle explore --runs 1000 examples/bank.c
///   raddle explore --strategy pct:3 --runs 500 --seed 7 -- ./queue_test 4
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// random, round-robin, queue, pct[:DEPTH] or delay[:DELAYS].
    #[arg(long, default_value = "random")]
    strategy: Strategy,
    /// How many runs.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    runs: u64,
    /// Seed of the first run.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Decisions of a typical run, which pct and delay need (default: measured in the runs before).
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Stop at the first error.
    #[arg(long)]
    first: bool,
    /// Seconds that one run may take.
    #[arg(long, value_name = "S", default_value_t = 10)]
    timeout: u64,
    /// Runs at the same time (default: one for each processor).
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Folder for schedules.
    #[arg(long, value_name = "DIR", default_value = ".raddle")]
    keep: PathBuf,
    /// Print the outcomes as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let launch = args.target.launch()?;
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, std::sync::Arc::clone(&stop)).context("cannot catch signals")?;
    }
    let started = Instant::now();
    let campaign = explore(&args, &launch, &stop, ctx)?;
    let mut kept = Vec::new();
    for (number, (observation, seen)) in campaign.outcomes().into_iter().enumerate() {
        let schedule = if observation.ending.is_error() && !matches!(observation.ending, Ending::TimedOut) {
            Some(keep_schedule(&args, &launch, number, seen, ctx)?)
        } else {
            None
        };
        kept.push((observation, seen, schedule));
    }
    if args.json {
        let outcomes: Vec<_> = kept
            .iter()
            .map(|(observation, seen, schedule)| {
                serde_json::json!({
                    "ending": observation.ending, "stdout": String::from_utf8_lossy(&observation.stdout),
                    "count": seen.count, "first_run": seen.first_run, "seed": seen.first_seed, "schedule": schedule,
                })
            })
            .collect();
        println!("{}", serde_json::json!({ "runs": campaign.runs(), "outcomes": outcomes }));
    } else {
        for (observation, seen, schedule) in &kept {
            println!("{}", line(observation, seen, schedule.as_deref()));
        }
    }
    if !ctx.quiet {
        let seconds = started.elapsed().as_secs_f64();
        eprintln!(
            "raddle: {} runs under {} in {seconds:.1} s ({:.0} runs/s): {} distinct outcomes, {} of them errors{}",
            campaign.runs(),
            args.strategy,
            campaign.runs() as f64 / seconds.max(0.001),
            campaign.distinct(),
            campaign.errors(),
            if stop.load(Ordering::Relaxed) { "; stopped early" } else { "" }
        );
    }
    Ok(if campaign.errors() > 0 { Exit::Found } else { Exit::Clean })
}

fn explore(args: &Args, launch: &Launch, stop: &AtomicBool, ctx: &Ctx) -> anyhow::Result<Campaign> {
    let workers = args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    let campaign = Mutex::new(Campaign::default());
    let failure: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let next = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    let bar = progress(ctx, args.runs);
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) && !done.load(Ordering::Relaxed) {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= args.runs {
                        break;
                    }
                    let seed = args.seed.wrapping_add(run);
                    match one_run(args, launch, seed) {
                        Ok((observation, steps)) => {
                            let error = observation.ending.is_error();
                            let mut campaign = campaign.lock().expect("no holder panics");
                            campaign.add(run, seed, steps, observation);
                            bar.set_position(campaign.runs());
                            bar.set_message(format!("{} outcomes", campaign.distinct()));
                            if error && args.first {
                                done.store(true, Ordering::Relaxed);
                            }
                        }
                        Err(error) => {
                            *failure.lock().expect("no holder panics") = Some(error);
                            done.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    match failure.into_inner().expect("no holder panics") {
        Some(error) => Err(error),
        None => Ok(campaign.into_inner().expect("no holder panics")),
    }
}

/// Decisions that a strategy plans for when nothing is known yet.
const STEPS_UNKNOWN: u64 = 200;

fn config(args: &Args, seed: u64) -> RegionConfig {
    // The estimate must not depend on other runs: the same seed has to give the same run.
    let (strategy, parameters) = args.strategy.encode(args.steps.unwrap_or(STEPS_UNKNOWN));
    RegionConfig {
        observe: 0,
        steer: steer::CONTROL,
        options: 0,
        seed,
        strategy,
        parameters,
        ..RegionConfig::default()
    }
}

fn one_run(args: &Args, launch: &Launch, seed: u64) -> anyhow::Result<(Observation, u64)> {
    let timeout = Duration::from_secs(args.timeout);
    let (steered, stdout) = steering::run_captured(launch, &config(args, seed), timeout)?;
    let ending = match &steered.outcome {
        Outcome::Ended(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exit(code),
            (None, signal) => Ending::Signal(signal.unwrap_or(0)),
        },
        Outcome::Deadlock(parties) => {
            let mut waits: Vec<String> = parties
                .iter()
                .map(|party| format!("{} at {}", party.operation.map_or("?", |kind| kind.word()), party.site))
                .collect();
            waits.sort();
            Ending::Deadlock(waits)
        }
        Outcome::TimedOut => Ending::TimedOut,
        Outcome::Parked(_) | Outcome::Diverged(_) | Outcome::Stuck(_) => Ending::Stuck,
    };
    Ok((Observation { ending, stdout }, steered.steps))
}

/// Repeats a run with the recorder on, and keeps its schedule.
fn keep_schedule(
    args: &Args,
    launch: &Launch,
    number: usize,
    seen: &raddle_explore::Seen,
    ctx: &Ctx,
) -> anyhow::Result<String> {
    std::fs::create_dir_all(&args.keep).with_context(|| {
        format!("cannot create the folder {}; choose another with --keep", args.keep.display())
    })?;
    let trace = args.keep.join(format!("{}-{}.trace", args.target.name(), number + 1));
    let schedule = trace.with_extension("schedule");
    let mut config = config(args, seen.first_seed);
    config.observe = raddle_wire::region::observe::RECORD;
    recording::record_silently(launch, &config, &trace, Duration::from_secs(args.timeout), ctx)?;
    let about = format!("seed {} under {}", seen.first_seed, args.strategy);
    let text = observed_schedule(raddle_trace::open(&trace)?.as_mut(), &about)?.to_text();
    std::fs::write(&schedule, text).with_context(|| format!("cannot write {}", schedule.display()))?;
    Ok(schedule.display().to_string())
}

fn line(observation: &Observation, seen: &raddle_explore::Seen, schedule: Option<&str>) -> String {
    let ending = match &observation.ending {
        Ending::Exit(code) => format!("ended with status {code}"),
        Ending::Signal(signal) => describe_status(std::process::ExitStatus::from_raw(*signal)),
        Ending::Deadlock(waits) => format!("deadlock of {} threads ({})", waits.len(), waits.join(", ")),
        Ending::Stuck => "came to a standstill".to_owned(),
        Ending::TimedOut => "took too long".to_owned(),
    };
    let output = match String::from_utf8_lossy(&observation.stdout).trim_end() {
        "" => String::new(),
        text => format!(", printed {text:?}"),
    };
    let kept = schedule.map_or(String::new(), |path| format!("; {path}"));
    format!(
        "{:>7} x  {ending}{output}  (first: run {}, seed {}{kept})",
        seen.count, seen.first_run, seen.first_seed
    )
}

fn progress(ctx: &Ctx, runs: u64) -> ProgressBar {
    if !ctx.progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} of {len} runs, {per_sec}, {msg} [{elapsed}]")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new(runs).with_style(style)
}
