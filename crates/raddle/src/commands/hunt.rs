//! `raddle hunt`: the main job, as a pipeline. Each step is somebody else's work: record, predict, confirm, report.

use super::record::{What, sentence, show_messages};
use super::{Ctx, Exit};
use crate::compiler::Refusal;
use crate::detector_options::DetectorOptions;
use crate::hunt::confirm::{Settings, confirm_all, schedule_of, witness_of};
use crate::hunt::detectors::Detectors;
use crate::hunt::unordered;
use crate::launch::Launch;
use crate::launch::recording::{Recording, record};
use crate::launch::target::Target;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_explore::Strategy;
use raddle_findings::collection::{FindingsFile, compare, deduplicate};
use raddle_findings::{Finding, Grade, Kind};
use raddle_predict::{Candidate, Options, predict};
use raddle_report::{Sources, Style, render};
use raddle_trace::MemoryTrace;
use raddle_trace::symbols::Symbolizer;
use raddle_wire::region::option;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Runs a program once, predicts what other interleavings of the same events would do, replays each prediction, and
/// reports what it could make happen.
///
/// Findings and their schedules are kept in .raddle; `raddle replay ID` makes one happen again.
/// Exit status: 0 nothing found, 1 at least one finding, 2 usage or environment error. The program's own status is told.
///
/// Examples:
///   raddle hunt examples/bank.c
///   raddle hunt --cflags "-O2 -Iinclude" a.c b.cpp -- 5
///   raddle hunt -- ./server --selftest
///   raddle hunt --runs 5 -- ./server --selftest
///   raddle hunt --with views,goodlock examples/bank.c
///   raddle hunt --with atomizer --functions 'account_*' examples/bank.c
///   raddle hunt --baseline old/findings.json -- ./server --selftest
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Folder for trace, schedules and findings.
    #[arg(long, value_name = "DIR", default_value = ".raddle")]
    keep: PathBuf,
    #[command(flatten)]
    what: What,
    /// Show also what was predicted but could not be made to happen.
    #[arg(long)]
    all: bool,
    /// Run these detectors over the run as well, with commas between them; `raddle detect --list` has the table.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    with: Vec<String>,
    /// Show only findings that are not in this findings file.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// States that prediction may visit.
    #[arg(long, value_name = "N", default_value_t = Options::default().budget_states)]
    budget: u64,
    /// Schedules to try for one prediction before it is given up.
    #[arg(long, value_name = "N", default_value_t = 4)]
    alternatives: usize,
    /// Seconds that one replay may take.
    #[arg(long, value_name = "S", default_value_t = 20)]
    timeout: u64,
    /// Seconds after which no more predictions of a run are replayed.
    #[arg(long, value_name = "S", default_value_t = 300)]
    confirm_for: u64,
    /// Replays at the same time (default: one for each processor).
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Record and predict from so many runs: the first runs free (or as --strategy says), the others under strategies of
    /// their own.
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u32,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    // Last, because its heading would go on over what follows.
    #[command(flatten)]
    told: DetectorOptions,
}

/// Under what the runs after the first are recorded, in turn.
const STRATEGIES: [Strategy; 3] = [Strategy::Random, Strategy::Pct { depth: 3 }, Strategy::RoundRobin];

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let wanted = args.told.chosen(&args.with)?;
    let launch = args.target.launch()?;
    let baseline = args.baseline.as_deref().map(FindingsFile::read).transpose()?;
    std::fs::create_dir_all(&args.keep).with_context(|| {
        format!("cannot create the folder {}; choose another with --keep", args.keep.display())
    })?;
    let mut findings = Vec::new();
    let mut unexplored: Vec<String> = Vec::new();
    for number in 0..args.runs.max(1) {
        let mut what = args.what.clone();
        let mut name = args.target.name();
        if number > 0 {
            what.strategy = Some(STRATEGIES[(number as usize - 1) % STRATEGIES.len()]);
            what.seed = args.what.seed.wrapping_add(u64::from(number));
            name = format!("{name}-{}", number + 1);
        }
        let path = args.keep.join(format!("{name}.trace"));
        let (found, left) = hunt_in(&args, &launch, &what, &path, &wanted, ctx)?;
        findings.extend(found);
        for note in left {
            if !unexplored.contains(&note) {
                unexplored.push(note);
            }
        }
    }
    let findings = deduplicate(findings);
    keep(&args.keep, launch.words(), &findings)?;

    let (known, findings) = match baseline {
        Some(baseline) => {
            let comparison = compare(&baseline.findings, findings);
            (comparison.known.len(), comparison.new)
        }
        None => (0, findings),
    };
    let asked =
        |finding: &Finding| args.all || finding.grade == Grade::Confirmed || wanted.contains(&finding.by);
    let shown: Vec<&Finding> = findings.iter().filter(|finding| asked(finding)).collect();
    if args.json {
        println!("{}", serde_json::to_string_pretty(&shown)?);
    } else {
        let mut sources = Sources::new(vec![std::env::current_dir().unwrap_or_default()]);
        let style = Style { color: ctx.color_stdout(), ..Style::default() };
        for finding in &shown {
            println!("{}", render(finding, &mut sources, style));
        }
    }
    if !ctx.quiet && !args.json {
        summary(&unexplored, &findings, &shown, known, launch.preload);
    }
    Ok(if shown.is_empty() { Exit::Clean } else { Exit::Found })
}

/// Records one run, predicts from it, and confirms. Also says what was left unexplored.
fn hunt_in(
    args: &Args,
    launch: &Launch,
    what: &What,
    path: &Path,
    wanted: &[String],
    ctx: &Ctx,
) -> anyhow::Result<(Vec<Finding>, Vec<String>)> {
    let config = what.config();
    let recording = record(launch, &config, path, ctx)?;
    show_messages(&recording, ctx);
    if !ctx.quiet {
        eprintln!("raddle: {}", sentence(&recording));
    }

    let trace = MemoryTrace::read(raddle_trace::open(path)?.as_mut())?;
    let spinner = stage(ctx, "predicting");
    let options =
        Options { budget_states: args.budget, alternatives: args.alternatives, ..Options::default() };
    let prediction = predict(&trace, &options);
    spinner.finish_and_clear();

    let total = prediction.candidates.len();
    let bar = stage(ctx, "confirming");
    bar.set_length(total as u64);
    let settings = Settings {
        options: config.options,
        timeout: Duration::from_secs(args.timeout),
        until: Instant::now() + Duration::from_secs(args.confirm_for),
        alternatives: args.alternatives,
        workers: args.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get())),
    };
    let stop = AtomicBool::new(false);
    let verdicts = confirm_all(launch, &trace, &prediction, &settings, &stop, &|done| {
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();

    let mut findings = crashes(&recording);
    let detectors = Detectors { names: wanted, told: &args.told };
    findings.extend(detectors.run(launch, path, &args.keep, &settings, ctx)?);
    let mut symbols = Symbolizer::new(&trace.tables.modules);
    for (candidate, verdict) in prediction.candidates.iter().zip(verdicts) {
        let Some(verdict) = verdict else { continue };
        let (parties, _) = witness_of(candidate, verdict.witness);
        let replayed = Candidate { parties: parties.to_vec(), ..candidate.clone() };
        let mut finding = prediction.finding(&trace, &mut symbols, &replayed);
        if verdict.confirmed {
            finding.grade = Grade::Confirmed;
        } else {
            finding.notes.extend(verdict.attempts);
        }
        let schedule = args.keep.join(format!("{}.schedule", finding.id));
        let mut text = schedule_of(&trace, &prediction, candidate, verdict.witness);
        text.about = format!("{} {}", candidate.kind.word(), finding.id);
        std::fs::write(&schedule, text.to_text())
            .with_context(|| format!("cannot write the schedule {}", schedule.display()))?;
        finding.schedule = Some(schedule.display().to_string());
        findings.push(finding);
    }
    let unexplored = prediction.unexplored.iter().map(ToString::to_string).collect();
    // What follows reads the trace once more, from its file.
    drop(symbols);
    drop(prediction);
    drop(trace);
    if config.options & option::MEMORY != 0 && !launch.preload {
        let more = unordered::races(launch, path, &args.keep, &findings, &settings, ctx)?;
        findings.extend(more);
    }
    Ok((findings, unexplored))
}

/// A line on the terminal that says what is being done.
fn stage(ctx: &Ctx, name: &'static str) -> ProgressBar {
    if !ctx.progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {prefix} {pos} of {len} [{elapsed}]")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new(0).with_style(style).with_prefix(name);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn keep(folder: &Path, program: Vec<String>, findings: &[Finding]) -> anyhow::Result<()> {
    let path = folder.join("findings.json");
    let text = FindingsFile::new(program, findings.to_vec()).to_json();
    std::fs::write(&path, text).map_err(|error| {
        Refusal(format!("cannot write {}: {error}; choose another folder with --keep", path.display())).into()
    })
}

fn summary(unexplored: &[String], findings: &[Finding], shown: &[&Finding], known: usize, preloaded: bool) {
    let confirmed = findings.iter().filter(|finding| finding.grade == Grade::Confirmed).count();
    let predicted = findings.iter().filter(|finding| finding.grade == Grade::Predicted).count();
    let suspected = findings.len() - confirmed - predicted;
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    eprintln!(
        "raddle: {} confirmed, {predicted} predicted only{}{}{}",
        count(confirmed, "finding"),
        if suspected > 0 { format!(", {suspected} suspected") } else { String::new() },
        if known > 0 { format!(", {known} already known") } else { String::new() },
        if predicted > 0 && shown.len() == confirmed { " (--all shows them)" } else { "" }
    );
    for note in unexplored {
        eprintln!("raddle: note: {note}");
    }
    if preloaded {
        eprintln!(
            "raddle: note: the program was not built by `raddle cc`: only deadlocks, blocked threads and missed signals were looked for"
        );
    }
}

/// A run that was ended by a signal of its own making is an error that has happened.
fn crashes(recording: &Recording) -> Vec<Finding> {
    const SELF_INFLICTED: [i32; 6] =
        [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV];
    match recording.status.signal() {
        Some(signal) if SELF_INFLICTED.contains(&signal) => {
            let name = raddle_trace::file::meta::signal_name(signal);
            let message = format!("the program was ended by {name} while it was recorded");
            vec![Finding::new(Kind::Crash, Grade::Confirmed, "record", message, Vec::new())]
        }
        _ => Vec::new(),
    }
}
