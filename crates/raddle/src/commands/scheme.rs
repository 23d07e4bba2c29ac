//! `raddle scheme`: static analysis of concurrent Scheme, and running it under a schedule.

mod findings;

use super::{Ctx, Exit};
use crate::output::{Heard, OutputArgs, Reporter, Stream};
use anyhow::Context;
use raddle_findings::file::Analysis;
use raddle_scheme::abs::space::Config;
use raddle_scheme::analyze::{Options, Progress, analyze};
use raddle_scheme::concrete::explore::Stand;
use raddle_scheme::concrete::run::{Ending, Note, Scheduler, run as run_program};
use raddle_scheme::concrete::schedule::Schedule;
use raddle_scheme::concrete::state::{Machine, path_name};
use raddle_scheme::finding::{Finding, Report, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Program, Source, Unread, parse_within, render, tool};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Findings that are shown before the analysis has ended.
const SHOWN_MAX: usize = 20;

/// Find races and deadlocks in a concurrent Scheme program without running it
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  raddle scheme counter.scm                     prove it, or find what is wrong\n  \
                  raddle scheme counter.scm --stats             with the cost of each phase\n  \
                  raddle scheme counter.scm --paper             the published analyses, as published\n  \
                  raddle scheme counter.scm --graph states.svg  the abstract state graph, errors red\n  \
                  raddle scheme run counter.scm --seed 7        one run under a random schedule\n  \
                  raddle scheme run counter.scm --schedule S    replay a schedule (a file, or 1.1,1.2,1.1)\n\n\
                  Exit status: 0 nothing found, 1 something found (see --fail-on), 2 trouble (or `unknown`: a limit was met, suspects are warnings)."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Sub>,
    /// The program.
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// Analyse as the paper does (P(CEK*)S, its conflict and deadlock analyses), nothing more.
    #[arg(long)]
    paper: bool,
    /// Length of call strings (k-CFA): 1 by default, 0 with --paper.
    #[arg(short, value_name = "N")]
    k: Option<usize>,
    /// Abstract garbage collection: on by default, off by default with --paper.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    gc: Option<bool>,
    /// Partial order reduction of the abstract machine: on by default, off by default with --paper.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    por: Option<bool>,
    /// Do not explore abstract states below known ones.
    #[arg(long, num_args = 0..=1, default_value_t = true, default_missing_value = "true", value_name = "BOOL", action = clap::ArgAction::Set)]
    subsume: bool,
    /// Write the abstract state graph: DOT, or SVG if the name ends in .svg.
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// States, edges and time of each phase, and of the abstract machine with and without garbage collection.
    #[arg(long)]
    stats: bool,
    /// Seconds after which what is not decided is unknown.
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS")]
    timeout: f64,
    /// Abstract states after which the machine gives up.
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    max_states: usize,
    /// Concrete states that are explored to confirm suspects.
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    max_concrete_states: usize,
    /// Megabytes of memory after which what is not decided is unknown.
    #[arg(long, default_value_t = 2_048, value_name = "MB")]
    memory_limit: u64,
    /// Store the schedule of each confirmed finding in this directory.
    #[arg(long, value_name = "DIR")]
    schedules: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(clap::Subcommand)]
enum Sub {
    /// Run the program under a schedule, step by step.
    Run(RunArgs),
}

#[derive(clap::Args)]
struct RunArgs {
    /// The program.
    file: PathBuf,
    /// A schedule to replay: a file, or threads such as 1.1,1.2,1.1.
    #[arg(long, value_name = "S", conflicts_with = "seed")]
    schedule: Option<String>,
    /// Choose threads at random from this seed (default: threads take turns).
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Steps after which a run is given up.
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    max_steps: usize,
    /// Write down the schedule of this run.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    match scheme(args, ctx) {
        // The reader of our output has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(Exit::Clean),
        result => result,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn scheme(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    if let Some(Sub::Run(args)) = args.command {
        return replay(args, ctx);
    }
    let file = args.file.clone().context("no program given")?;
    anyhow::ensure!(args.timeout > 0.0 && args.timeout < 1e9, "--timeout needs a positive number of seconds");
    let timeout = Duration::from_secs_f64(args.timeout);
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, stop.clone())
        .context("cannot watch for Ctrl-C")?;
    let bytes_max = args.memory_limit.saturating_mul(1 << 20);
    let clock = Clock::new(Some(timeout), stop.clone()).with_memory(bytes_max);
    let program = match load(&file, &clock, ctx)? {
        Loaded::Program(program) => program,
        Loaded::Wrong => return Ok(Exit::Trouble),
        Loaded::Stopped(reason) => return stopped_early(&file, reason, &args, &clock, ctx),
    };
    let options = Options {
        k: args.k.unwrap_or(1),
        gc: args.gc.unwrap_or(true),
        por: args.por.unwrap_or(true),
        subsume: args.subsume,
        abstract_states_max: args.max_states,
        concrete_states_max: args.max_concrete_states,
        timeout,
        ..Options::default()
    };
    let config = if args.paper {
        Config {
            por: args.por.unwrap_or(false),
            subsume: args.subsume,
            ..Config::paper(args.k.unwrap_or(0), args.gc.unwrap_or(false))
        }
    } else {
        options.config()
    };
    let spinner = ctx.progress().then(indicatif::ProgressBar::new_spinner);
    let progress = |phase: &str| {
        if let Some(spinner) = &spinner {
            spinner.set_message(phase.to_owned());
            spinner.enable_steady_tick(Duration::from_millis(100));
        }
    };
    let mut reporter = Reporter::new("scheme", &args.output, Stream::Stdout, ctx)?;
    // People get the picture of the source that Scheme's own renderer draws.
    let to_people = !reporter.silent;
    reporter.silent = true;
    // Replays have as much time as the analysis; they take next to none.
    let replays = Clock::new(Some(timeout), stop.clone()).with_memory(bytes_max);
    let by = if args.paper { "scheme-paper" } else { "scheme" };
    let mut schedules: BTreeMap<String, String> = BTreeMap::new();
    // Whether a finding is to be shown. Harmless races are, and are no findings to machines.
    let mut hear = |finding: &Finding| {
        if finding.benign {
            return true;
        }
        let converted = findings::convert(&program, finding, by, &replays);
        if let Some(schedule) = &finding.schedule {
            schedules.entry(converted.id.clone()).or_insert_with(|| schedule.text(&finding.message));
        }
        // Several places of one definition can be one error to whoever compares ids; people see all of them.
        matches!(reporter.hear(converted, true), Heard::Shown | Heard::Again)
    };
    // What is confirmed is shown at once: the rest may take a while.
    let mut shown: BTreeSet<String> = BTreeSet::new();
    let mut show = |finding: &Finding| {
        if shown.len() >= SHOWN_MAX || !hear(finding) {
            return;
        }
        let text = render::finding(&program.source, finding, ctx.color_stdout());
        let print = || writeln!(std::io::stdout(), "{text}\n");
        let printed = spinner.as_ref().map_or_else(print, |spinner| spinner.suspend(print));
        if printed.is_ok() {
            shown.insert(finding.key());
        }
    };
    let mut report = if args.paper {
        progress("abstract interleavings, as published");
        tool::paper_report(&program, config, args.max_states, &clock).0
    } else {
        analyze(&program, &options, &clock, &mut |event| match event {
            Progress::Phase(phase) => progress(phase),
            Progress::Found(finding) if to_people => show(finding),
            Progress::Found(_) => {}
        })
    };
    // What --stats measures beside the analysis has its own time.
    let extra = Clock::new(None, stop).with_memory(bytes_max);
    let costs = if args.stats {
        progress("with and without garbage collection");
        tool::costs(&program, config, args.max_states, timeout, &extra)
    } else {
        Vec::new()
    };
    if let Some(path) = &args.graph {
        let svg = path.extension().is_some_and(|extension| extension == "svg");
        let picture = tool::picture(&program, config, svg, args.max_states, &extra.at_most(timeout));
        std::fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(spinner) = spinner {
        spinner.finish_and_clear();
    }
    if let Some(folder) = &args.schedules {
        store_schedules(folder, &report)?;
    }
    report.findings.retain(|finding| hear(finding));
    let harmless = report.findings.iter().filter(|finding| finding.benign).count() as u64;
    reporter.analysis = Some(analysis(&report, harmless, schedules, &costs)?);
    if to_people {
        let mut out = std::io::stdout().lock();
        if report.verdict == Verdict::Found && report.serious() == 0 {
            writeln!(out, "{}: {}", report.file, reporter.summary())?;
        } else {
            write!(out, "{}", render::rest(&program.source, &report, &shown, ctx.color_stdout()))?;
        }
        if args.stats {
            write!(out, "{}", render::phases(&report))?;
            for cost in &costs {
                let gc = if cost.gc { "abstract, with GC" } else { "abstract, without GC" };
                let tables: Vec<String> =
                    cost.tables.iter().map(|(name, size)| format!("{size} {name}")).collect();
                let incomplete =
                    cost.incomplete.as_ref().map_or(String::new(), |why| format!(" (incomplete: {why})"));
                writeln!(
                    out,
                    "{gc:<24} {:>9} {:>9} {:>9.4}  {}{incomplete}",
                    cost.states,
                    cost.edges,
                    cost.seconds,
                    tables.join(", ")
                )?;
            }
        }
    }
    let exit = reporter.finish(vec![file.display().to_string()])?;
    Ok(match &report.verdict {
        _ if clock.interrupted() => Exit::Status(130),
        // Suspects are no answer: whether they are real is unknown.
        Verdict::Unknown(_) => Exit::Trouble,
        Verdict::Clean(_) => Exit::Clean,
        Verdict::Found => exit,
    })
}

/// What the analysis says beyond its findings.
fn analysis(
    report: &Report,
    harmless: u64,
    schedules: BTreeMap<String, String>,
    costs: &[tool::Cost],
) -> anyhow::Result<Analysis> {
    let (verdict, reason) = match &report.verdict {
        Verdict::Clean(why) => ("clean", Some(why.clone())),
        Verdict::Found => ("found", None),
        Verdict::Unknown(why) => ("unknown", Some(why.clone())),
    };
    Ok(Analysis {
        verdict: verdict.to_owned(),
        reason,
        harmless,
        results: report.results.clone(),
        schedules,
        phases: report.phases.iter().map(serde_json::to_value).collect::<Result<_, _>>()?,
        costs: costs.iter().map(serde_json::to_value).collect::<Result<_, _>>()?,
    })
}

/// What became of a file.
enum Loaded {
    Program(Box<Program>),
    /// It is none, and its mistakes have been shown.
    Wrong,
    Stopped(String),
}

/// Even reading can be too much: the answer is then `unknown`, in the same words as later.
fn stopped_early(file: &Path, reason: String, args: &Args, clock: &Clock, ctx: &Ctx) -> anyhow::Result<Exit> {
    let report = Report {
        file: file.display().to_string(),
        verdict: Verdict::Unknown(format!("while reading: {reason}")),
        findings: Vec::new(),
        phases: Vec::new(),
        results: Vec::new(),
    };
    let mut reporter = Reporter::new("scheme", &args.output, Stream::Stdout, ctx)?;
    reporter.analysis = Some(analysis(&report, 0, BTreeMap::new(), &[])?);
    if !reporter.silent {
        writeln!(std::io::stdout(), "{}", render::summary(&report))?;
    }
    reporter.finish(vec![report.file])?;
    Ok(if clock.interrupted() { Exit::Status(130) } else { Exit::Trouble })
}

/// Reads and expands a program; its mistakes are shown here.
fn load(file: &Path, clock: &Clock, ctx: &Ctx) -> anyhow::Result<Loaded> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{} is not UTF-8 text", file.display()))?;
    let source = Source::new(file.display().to_string(), text);
    Ok(match parse_within(source.clone(), clock) {
        Ok(program) => Loaded::Program(Box::new(program)),
        Err(Unread::Wrong(errors)) => {
            eprint!("{}", render::syntax_errors(&source, &errors, ctx.color_stderr()));
            Loaded::Wrong
        }
        Err(Unread::Stopped(reason)) => Loaded::Stopped(reason),
    })
}

fn store_schedules(folder: &Path, report: &Report) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (at, finding) in report.findings.iter().enumerate() {
        if let Some(schedule) = &finding.schedule {
            let path = folder.join(format!("{}-{}.schedule", at + 1, finding.kind.title().replace(' ', "-")));
            let text = schedule.text(&finding.message);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

fn replay(args: RunArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, stop.clone())
        .context("cannot watch for Ctrl-C")?;
    let clock = Clock::new(None, stop);
    let program = match load(&args.file, &clock, ctx)? {
        Loaded::Program(program) => program,
        Loaded::Wrong => return Ok(Exit::Trouble),
        Loaded::Stopped(reason) => anyhow::bail!("gave up: {reason}"),
    };
    let scheduler = match (&args.schedule, args.seed) {
        (Some(schedule), _) => {
            let text = if Path::new(schedule).is_file() {
                std::fs::read_to_string(schedule).with_context(|| format!("cannot read {schedule}"))?
            } else {
                schedule.clone()
            };
            let parsed = Schedule::parse(&text).map_err(|error| anyhow::anyhow!("{schedule}: {error}"))?;
            Scheduler::Replay(parsed)
        }
        (None, Some(seed)) => Scheduler::Random(seed),
        (None, None) => Scheduler::RoundRobin,
    };
    let steps = matches!(scheduler, Scheduler::Replay(_)) || ctx.verbose > 0;
    let machine = Machine::new(&program);
    let mut number = 0;
    let mut out = std::io::stdout().lock();
    let mut written = Ok(());
    let run =
        run_program(&machine, scheduler, args.seed.unwrap_or(0), args.max_steps, &clock, |note| match note {
            // Whether somebody still reads is asked at the end; the run itself does not depend on it.
            Note::Step { thread, what } if steps && !ctx.quiet => {
                number += 1;
                written = writeln!(out, "{number:>5}  {thread:<8} {what}");
            }
            Note::Output { text, .. } => written = write!(out, "{text}"),
            Note::Step { .. } => {}
        });
    if let Some(path) = &args.output {
        let text = run.schedule.text("");
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    written?;
    let exit = match run.ending {
        Ending::Finished(value) => {
            writeln!(out, "=> {value}")?;
            Exit::Clean
        }
        Ending::Deadlock(stuck) => {
            writeln!(out, "deadlock:")?;
            for stand in stuck {
                let place = program.source.place(program.span(stand.site));
                writeln!(
                    out,
                    "  thread {} waits at {place} ({})",
                    path_name(&stand.thread),
                    stand.action.word()
                )?;
            }
            Exit::Found
        }
        // Said below, with those that failed before.
        Ending::Failed { .. } => Exit::Found,
        Ending::ScheduleEnds { pending, race } => {
            writeln!(out, "the schedule ends here:")?;
            for line in &pending {
                writeln!(out, "  {line}")?;
            }
            match race {
                Some((a, b)) => {
                    writeln!(out, "race: threads {a} and {b} are about to access the same memory")?;
                    Exit::Found
                }
                None => Exit::Clean,
            }
        }
        Ending::Diverged { step, message } => {
            anyhow::bail!("the schedule does not fit the program at step {step}: {message}")
        }
        Ending::Limit(reason) => anyhow::bail!("gave up: {reason}"),
    };
    for (thread, message) in &run.errors {
        writeln!(out, "error in thread {thread}: {message}")?;
    }
    if !run.waiting.is_empty() {
        writeln!(out, "deadlock: nobody else can move:")?;
    }
    for stand in &run.waiting {
        let (thread, word) = (path_name(&stand.thread), stand.action.word());
        writeln!(
            out,
            "  thread {thread} waits at {} ({word})",
            program.source.place(program.span(stand.site))
        )?;
    }
    let place = |stand: &Stand| program.source.place(program.span(stand.site));
    if let Some(stands) = &run.livelock {
        writeln!(out, "livelock: from here on nobody changes anything:")?;
        for stand in stands {
            let (thread, word) = (path_name(&stand.thread), stand.action.word());
            writeln!(out, "  thread {thread} repeats the {word} at {}", place(stand))?;
        }
    }
    if let Some(stand) = &run.unretried {
        let thread = path_name(&stand.thread);
        writeln!(
            out,
            "unretried cas: the swap of thread {thread} at {} failed and is never tried again",
            place(stand)
        )?;
    }
    let shown = run.livelock.is_some() || run.unretried.is_some() || !run.errors.is_empty();
    Ok(if shown { Exit::Found } else { exit })
}
