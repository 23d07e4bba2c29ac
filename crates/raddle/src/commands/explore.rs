//! `raddle explore`: many runs of one program under a strategy, and the distinct ways in which they ended.

use super::{Ctx, Exit};
use crate::compiler::Refusal;
use crate::launch::Launch;
use crate::launch::exploring::{self, Plan};
use crate::launch::process::describe as describe_status;
use crate::launch::shared_sites::VisibleAccesses;
use crate::launch::target::Target;
use crate::launch::{shrinking, steering};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_explore::{Ending, Estimate, Observation, Seen, Strategy};
use raddle_trace::symbols::lines::code_of_line;
use raddle_wire::region::{noise, option};
use raddle_wire::step;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// random, round-robin, queue, pct[:DEPTH], pos, surw, delay[:DELAYS] or
    /// noise[:probability=PER-MILLE,strength=MICROSECONDS,where=before|after|both,only=OPERATION+OPERATION].
    #[arg(long, default_value = "random")]
    strategy: Strategy,
    /// With noise: only at operations on this line of the program. May be given several times.
    #[arg(long, value_name = "FILE:LINE")]
    noise_at: Vec<String>,
    /// Which memory accesses are scheduling points besides synchronisation: none (sync), those to memory that several
    /// threads use and one of them writes (shared; found out in a run before), or all.
    #[arg(long, value_enum, default_value_t = VisibleAccesses::Sync)]
    visible: VisibleAccesses,
    /// How many runs.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    runs: u64,
    /// Seed of the first run.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Give the program its memory at addresses that depend on nothing but its own order of allocations: for programs whose
    /// behaviour depends on addresses, or on what freed memory holds.
    #[arg(long)]
    stable_memory: bool,
    /// Give every run the same seed, and say how many different schedules and outcomes there were: more than one, and
    /// something that the seed does not control has a say (time, the network, uninitialised memory).
    #[arg(long)]
    same_seed: bool,
    /// Decisions of a typical run, which pct and delay need (default: measured in a run before).
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
    /// Start the program for each run. Otherwise it is started once for each worker and forked before its first own code,
    /// which is several times faster.
    #[arg(long)]
    exec: bool,
    /// Only count: make no schedules of the errors.
    #[arg(long)]
    no_schedules: bool,
    /// Folder for schedules.
    #[arg(long, value_name = "DIR", default_value = ".raddle")]
    keep: PathBuf,
    /// Print the outcomes as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut launch = args.target.launch()?;
    launch.fixed_addresses |= args.strategy.needs_fixed_addresses() || args.stable_memory;
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, std::sync::Arc::clone(&stop)).context("cannot catch signals")?;
    }
    let timeout = Duration::from_secs(args.timeout);
    let noise_at = noise_ranges(&args, &launch)?;
    let (mut options, site_names) = args.visible.settings(&launch, args.seed, timeout)?;
    if args.stable_memory {
        options |= option::STABLE_MEMORY;
    }
    let mut estimate = Estimate::default();
    if args.strategy.needs_estimate() {
        estimate = exploring::estimate(&launch, options, site_names.clone(), args.seed, timeout)?;
    }
    if let Some(steps) = args.steps {
        estimate.steps = steps;
    }
    let plan = Plan {
        launch: &launch,
        strategy: args.strategy,
        estimate,
        options,
        site_names,
        noise_at,
        seed: args.seed,
        same_seed: args.same_seed,
        runs: args.runs,
        first: args.first,
        timeout,
        workers: args.workers.unwrap_or_else(|| exploring::processors().len()),
        exec: args.exec,
    };
    let started = Instant::now();
    let bar = progress(ctx, args.runs);
    let campaign = exploring::explore(&plan, &stop, &|campaign| {
        bar.set_position(campaign.runs());
        bar.set_message(format!("{} outcomes", campaign.distinct()));
    })?;
    bar.finish_and_clear();
    let elapsed = started.elapsed();
    let mut kept = Vec::new();
    for (number, (observation, seen)) in campaign.outcomes().into_iter().enumerate() {
        let schedule = if !args.no_schedules
            && observation.ending.is_error()
            && !matches!(observation.ending, Ending::TimedOut(_) | Ending::TooManyThreads)
        {
            keep_schedule(&args, &plan, number, (observation, seen), &stop)?
        } else {
            None
        };
        kept.push((observation, seen, schedule));
    }
    // The order that noise makes is the system's, and nobody writes it down.
    let schedules = args.strategy.stays_on_one_processor().then(|| campaign.schedules());
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
        println!(
            "{}",
            serde_json::json!({ "runs": campaign.runs(), "schedules": schedules, "outcomes": outcomes })
        );
    } else {
        for (observation, seen, schedule) in &kept {
            println!("{}", line(observation, seen, schedule.as_deref()));
        }
    }
    if !ctx.quiet {
        let seconds = elapsed.as_secs_f64();
        eprintln!(
            "raddle: {} runs under {} in {seconds:.1} s ({:.0} runs/s): {}{} distinct outcomes, {} of them errors{}",
            campaign.runs(),
            args.strategy,
            campaign.runs() as f64 / seconds.max(0.001),
            schedules.map_or(String::new(), |count| format!("{count} distinct schedules, ")),
            campaign.distinct(),
            campaign.errors(),
            if stop.load(Ordering::Relaxed) { "; stopped early" } else { "" }
        );
    }
    Ok(if campaign.errors() > 0 { Exit::Found } else { Exit::Clean })
}

/// The code of the lines that noise is confined to.
fn noise_ranges(args: &Args, launch: &Launch) -> anyhow::Result<Vec<[u64; noise::RANGE_WORDS]>> {
    if !args.noise_at.is_empty() && !matches!(args.strategy, Strategy::Noise(_)) {
        return Err(Refusal("--noise-at is for --strategy noise".into()).into());
    }
    let name = launch.program.file_name().unwrap_or_default();
    let module = step::hash(step::HASH_START, name.as_encoded_bytes());
    let mut ranges = Vec::new();
    for place in &args.noise_at {
        let wrong = || Refusal(format!("`{place}` is not of the form FILE:LINE, such as bank.c:20"));
        let (file, line) = place.rsplit_once(':').ok_or_else(wrong)?;
        let line = line.parse().map_err(|_| wrong())?;
        let found = code_of_line(&launch.program, file, line).map_err(Refusal)?;
        if found.is_empty() {
            return Err(Refusal(format!(
                "{} has no code of {place}; was it built with -g, and is there a statement on that line?",
                launch.program.display()
            ))
            .into());
        }
        ranges.extend(found.into_iter().map(|(start, end)| [start, end, module]));
    }
    if ranges.len() > noise::RANGES_MAX {
        return Err(Refusal(format!(
            "the lines of --noise-at have {} pieces of code; {} are possible",
            ranges.len(),
            noise::RANGES_MAX
        ))
        .into());
    }
    Ok(ranges)
}

/// Makes a schedule of the first run that showed an outcome, as small as can be, and keeps it.
fn keep_schedule(
    args: &Args,
    plan: &Plan<'_>,
    number: usize,
    (observation, seen): (&Observation, &Seen),
    stop: &AtomicBool,
) -> anyhow::Result<Option<String>> {
    let about = format!("seed {} under {}", seen.first_seed, args.strategy);
    let Some(kept) = shrinking::keep(plan, seen.first_seed, observation, &about, stop)? else {
        return Ok(None);
    };
    std::fs::create_dir_all(&args.keep).with_context(|| {
        format!("cannot create the folder {}; choose another with --keep", args.keep.display())
    })?;
    let path = args.keep.join(format!("{}-{}.schedule", args.target.name(), number + 1));
    std::fs::write(&path, kept.schedule.to_text())
        .with_context(|| format!("cannot write {}", path.display()))?;
    let doubt = if kept.replayed { "" } else { ", which a replay did not show again" };
    Ok(Some(format!(
        "{}: {} switches, {} when found{doubt}",
        path.display(),
        kept.switches,
        kept.found_switches
    )))
}

fn line(observation: &Observation, seen: &Seen, schedule: Option<&str>) -> String {
    let ending = match &observation.ending {
        Ending::Exit(code) => format!("ended with status {code}"),
        Ending::Signal(signal) => describe_status(std::process::ExitStatus::from_raw(*signal)),
        Ending::Deadlock(waits) => format!("deadlock of {} threads ({})", waits.len(), waits.join(", ")),
        Ending::Stuck(threads) => format!("came to a standstill{}", list(threads)),
        Ending::TooManyThreads => format!("was given up: {}", steering::TOO_MANY_THREADS),
        Ending::TimedOut(threads) => format!("took too long{}", list(threads)),
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

/// What each thread was doing.
fn list(threads: &[String]) -> String {
    if threads.is_empty() { String::new() } else { format!(": one thread {}", threads.join(", one ")) }
}

fn progress(ctx: &Ctx, runs: u64) -> ProgressBar {
    if !ctx.progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} of {len} runs, {per_sec}, {msg} [{elapsed}]")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new(runs).with_style(style)
}
