//! `raddle predict`: what other interleavings of a recorded run would do.

use super::{Ctx, Exit};
use crate::hunt::properties::{self, PropertyArgs};
use crate::output::{OutputArgs, Reporter, Stream};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_findings::naming::Namer;
use raddle_findings::{Finding, deduplicate};
use raddle_predict::csp::{Question, Window, emit};
use raddle_predict::{Candidate, Level, OpenQuestion, Options, Prediction, Unexplored, predict};
use raddle_property::check::Effort;
use raddle_trace::schedule::RunOptions;
use raddle_trace::std_format::InputDialect;
use raddle_trace::{EventSource, MemoryTrace, OpenTrace};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Predicts the races, deadlocks, blocked threads and missed signals that other interleavings of the recorded events
/// would show, with a schedule for each.
///
/// What is shown is predicted, not confirmed: `raddle hunt` also replays each schedule, and keeps what it could make
/// happen. Exit status: 0 (1 with --fail-on predicted, if something was predicted), 2 usage or environment error.
///
/// Examples:
///   raddle predict bank.trace
///   raddle predict bank.trace --schedules out     then: raddle replay out/5f3c0a11d4e5.schedule -- ./bank
///   raddle predict bank.trace --stats
///   raddle predict bank.trace --emit-csp models   then: raddle csp check models/deadlock.csp
///   raddle predict bank.trace --sound             what can happen with every read keeping its write
///   raddle predict bank.trace --budget 5000000,30s
///   raddle predict trace.std --json               (a foreign trace; it cannot be replayed, so --sound is its default)
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// A recorded trace, or STD text of RAPID, SUnhang, RFF or RV-Predict.
    trace: PathBuf,
    /// Predict only what can happen with every read, plain or atomic, seeing the write that it saw. The default for foreign
    /// traces, which cannot be replayed.
    #[arg(long, conflicts_with = "optimistic")]
    sound: bool,
    /// Predict what the synchronisation allows, whatever threads read: more, and to be replayed. The default for recorded
    /// traces.
    #[arg(long)]
    optimistic: bool,
    /// Take STD text as this dialect: auto, rapid, sunhang, rff-c, rv-predict.
    #[arg(long, value_name = "NAME", default_value_t)]
    dialect: InputDialect,
    /// Look for these only.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["races", "stuck"])]
    check: Vec<Check>,
    /// Write the schedule of each candidate into this folder.
    #[arg(long, value_name = "DIR")]
    schedules: Option<PathBuf>,
    /// Write the model and its questions as CSPM into this folder.
    #[arg(long, value_name = "DIR")]
    emit_csp: Option<PathBuf>,
    /// Say what the reductions removed and how the rest was decided.
    #[arg(long)]
    stats: bool,
    /// What searches may take together, in states or time or both: 5000000, 30s, 5000000,30s. What is not decided within it
    /// is listed.
    #[arg(long, value_name = "STATES,TIME", default_value_t)]
    budget: Spending,
    /// Look at windows of so many steps only when searching for deadlocks (and when writing CSPM).
    #[arg(long, value_name = "STEPS")]
    window: Option<u32>,
    /// Further schedules to keep for each candidate, in case the first cannot be replayed.
    #[arg(long, value_name = "N", default_value_t = Options::default().alternatives)]
    alternatives: usize,
    /// Report so many candidates of a kind at most.
    #[arg(long, value_name = "N", default_value_t = Options::default().candidates_max)]
    candidates: usize,
    /// Ignore the values that atomics read: more is predicted, and less of it can be replayed.
    #[arg(long, conflicts_with = "sound")]
    no_atomics: bool,
    /// Switch reductions off; none changes what is predicted.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    without: Vec<Reduction>,
    #[command(flatten)]
    properties: PropertyArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// States and time that searches may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spending {
    states: u64,
    time: Option<Duration>,
}

impl Default for Spending {
    fn default() -> Spending {
        let Options { budget_states, budget_time, .. } = Options::default();
        Spending { states: budget_states, time: budget_time }
    }
}

impl std::fmt::Display for Spending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.states)?;
        self.time.map_or(Ok(()), |time| write!(f, ",{}ms", time.as_millis()))
    }
}

impl std::str::FromStr for Spending {
    type Err = String;

    /// With a time alone, states do not matter.
    fn from_str(text: &str) -> Result<Spending, String> {
        let (mut states, mut time) = (None, None);
        for part in text.split(',') {
            let digits = part.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
            let number: u64 = digits.parse().map_err(|_| format!("`{part}` is neither states nor a time"))?;
            match &part[digits.len()..] {
                "" if states.is_none() => states = Some(number),
                "ms" if time.is_none() => time = Some(Duration::from_millis(number)),
                "s" if time.is_none() => time = Some(Duration::from_secs(number)),
                "min" if time.is_none() => time = Some(Duration::from_secs(number.saturating_mul(60))),
                "" | "ms" | "s" | "min" => return Err(format!("`{part}` is the second of its kind")),
                unit => return Err(format!("`{unit}` is no unit of time; use ms, s or min")),
            }
        }
        Ok(Spending { states: states.unwrap_or(u64::MAX), time })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Check {
    /// Data races, and accesses to memory that another thread releases.
    Races,
    /// Deadlocks, blocked threads, missed signals.
    Stuck,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Reduction {
    /// Repeated accesses within a thread segment.
    Redundant,
    /// Memory that cannot race.
    Intervals,
    /// Pairs ordered in every interleaving.
    WeakOrder,
    /// Pairs protected by a common lock.
    Locksets,
    /// Memory accessed alike.
    SameSegment,
    /// The linear-time pass; everything is left to the search.
    Closure,
}

/// States that the check of a property may visit, whatever the budget.
const PROPERTY_STATES_MAX: u64 = 50_000_000;
/// CSPM files of races written at most.
const RACE_FILES_MAX: usize = 1000;
/// Steps above which a model is written in windows.
const WINDOW_STEPS: u32 = 1000;

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let spinner = ctx.progress().then(|| {
        let style = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]");
        let bar =
            ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(Duration::from_millis(120));
        bar
    });
    let say = |text: &str| {
        if let Some(bar) = &spinner {
            bar.set_message(text.to_owned());
        }
    };
    say("reading the trace");
    let mut reporter = Reporter::new("predict", &args.output, Stream::Stdout, ctx)?;
    let mut open = OpenTrace::open_as(&args.trace, args.dialect)?;
    let trace = MemoryTrace::read(&mut open as &mut dyn EventSource)?;
    let cut = open.cut();
    let (foreign, mut namer) = match &open {
        OpenTrace::Std(reader) => (true, Namer::foreign(reader.names())),
        OpenTrace::Raddle(_) => (false, Namer::of(&trace)),
    };
    say(&format!("predicting from {} events", trace.events.len()));
    let prediction = predict(&trace, &options(&args, foreign));
    say("writing");
    let mut findings: Vec<Finding> = prediction
        .candidates
        .iter()
        .map(|candidate| prediction.finding(&trace, &mut namer, candidate))
        .collect();
    if let Some(folder) = &args.schedules {
        for (candidate, finding) in prediction.candidates.iter().zip(&mut findings) {
            let path = write_schedules(folder, &trace, &prediction, candidate, finding, &mut namer)?;
            finding.schedule = Some(path.display().to_string());
        }
    }
    // A budget of time alone says nothing about states; properties have no clock.
    let states_max = args.budget.states.min(PROPERTY_STATES_MAX);
    let effort = Effort { atomics: !args.no_atomics, states_max, ..Effort::default() };
    for property in args.properties.read()? {
        let (found, notes) =
            properties::predicted(&trace, &property, &effort, &mut namer, args.schedules.as_deref())?;
        findings.extend(found);
        notes.iter().filter(|_| !ctx.quiet).for_each(|note| eprintln!("raddle: note: {note}"));
    }
    if let Some(folder) = &args.emit_csp {
        write_models(folder, &trace, &prediction, args.window, ctx)?;
    }
    if let Some(bar) = spinner {
        bar.finish_and_clear();
    }
    for finding in deduplicate(findings) {
        reporter.hear(finding, true);
    }
    if args.stats {
        let text = statistics(&prediction);
        if args.output.owns_stdout() { eprint!("{text}") } else { print!("{text}") }
    }
    if !ctx.quiet {
        for remark in open.remarks() {
            eprintln!("raddle: note: {remark}");
        }
        conclude(&prediction, reporter.shown.len(), foreign, cut.as_deref());
        for what in &prediction.unexplored {
            list_open(what, &trace, &mut namer);
        }
    }
    reporter.finish(Vec::new())
}

fn options(args: &Args, foreign: bool) -> Options {
    let mut options = Options::default();
    let sound = args.sound || (foreign && !args.optimistic && !args.no_atomics);
    options.level = if sound { Level::Sound } else { Level::Optimistic };
    options.checks.races = args.check.contains(&Check::Races);
    options.checks.stuck = args.check.contains(&Check::Stuck);
    options.atomics = !args.no_atomics;
    options.budget_states = args.budget.states;
    options.budget_time = args.budget.time;
    options.window = args.window;
    options.alternatives = args.alternatives;
    options.candidates_max = args.candidates;
    let on = |reduction| !args.without.contains(&reduction);
    options.closure = on(Reduction::Closure);
    options.reductions.redundant = on(Reduction::Redundant);
    options.reductions.intervals = on(Reduction::Intervals);
    options.reductions.weak_order = on(Reduction::WeakOrder);
    options.reductions.locksets = on(Reduction::Locksets);
    options.reductions.same_segment = on(Reduction::SameSegment);
    options
}

fn conclude(prediction: &Prediction, count: usize, foreign: bool, cut: Option<&str>) {
    let counted = match count {
        0 => "nothing predicted".to_owned(),
        1 => "1 error predicted".to_owned(),
        n => format!("{n} errors predicted"),
    };
    let level = match prediction.level {
        Level::Sound => " (sound: every read keeps its write)",
        Level::Optimistic => " (optimistic: threads may read other values; --sound leaves those out)",
    };
    let confirm = match (count, foreign) {
        (0, _) => "",
        (_, true) => "; a foreign trace cannot be replayed, so none of them is confirmed",
        (_, false) => "; none is confirmed yet (`raddle hunt` replays them)",
    };
    eprintln!("raddle: {counted}{level}{confirm}");
    if let Some(why) = cut {
        eprintln!("raddle: note: the trace does not cover the whole run: {why}");
    }
    for what in &prediction.unexplored {
        eprintln!("raddle: note: {what}");
    }
}

/// Questions of a kind that are listed.
const LISTED_MAX: usize = 10;

/// Lists the questions that were not decided, smallest first, with their size.
fn list_open(what: &Unexplored, trace: &MemoryTrace, namer: &mut Namer) {
    let (Unexplored::Pairs { open, .. } | Unexplored::Cycles { open, .. }) = what else { return };
    for question in open.iter().take(LISTED_MAX) {
        let places = question.events.map(|event| {
            let event = &trace.events[event as usize];
            let thread = namer.thread(&trace.tables, event.thread).path;
            format!("thread {thread} at {}", namer.location(&trace.tables, event.location))
        });
        let OpenQuestion { steps, states, .. } = question;
        let [first, second] = places;
        eprintln!("raddle: note:   {first}, {second}: {steps} steps before them, {states} states visited");
    }
    if open.len() > LISTED_MAX {
        eprintln!("raddle: note:   and {} more", open.len() - LISTED_MAX);
    }
}

/// Writes `ID.schedule`, and `ID.2.schedule` and so on for alternatives. Returns the first.
fn write_schedules(
    folder: &Path,
    trace: &MemoryTrace,
    prediction: &Prediction,
    candidate: &Candidate,
    finding: &Finding,
    namer: &mut Namer,
) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let about = format!("{} {}", candidate.kind.word(), finding.id);
    let first = folder.join(format!("{}.schedule", finding.id));
    let all = std::iter::once((&candidate.parties, &candidate.witness))
        .chain(candidate.alternatives.iter().map(|(parties, witness)| (parties, witness)));
    for (number, (parties, witness)) in all.enumerate() {
        let path = match number {
            0 => first.clone(),
            n => folder.join(format!("{}.{}.schedule", finding.id, n + 1)),
        };
        let mut schedule = prediction.schedule(trace, &about, parties, witness);
        schedule.head.options =
            RunOptions { memory: true, allocations: true, one_at_a_time: true, ..RunOptions::default() };
        schedule.annotate(|place| namer.place(place));
        std::fs::write(&path, schedule.to_text())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(first)
}

/// Writes the deadlock question and the question of each interval; for long traces, window by window.
fn write_models(
    folder: &Path,
    trace: &MemoryTrace,
    prediction: &Prediction,
    window: Option<u32>,
    ctx: &Ctx,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let steps = prediction.program.order.len();
    let length = window.unwrap_or(WINDOW_STEPS).max(2) as usize;
    let windows: Vec<Option<Window>> = if window.is_none() && steps <= length {
        vec![None]
    } else {
        let starts = (0..)
            .map(|number| number * (length / 2))
            .take_while(|start| *start == 0 || start + length / 2 < steps);
        starts.map(|start| Some(Window { start, end: (start + length).min(steps) })).collect()
    };
    let mut files = 0;
    let write = |name: &str, number: usize, question: Question<'_>, window: Option<Window>| {
        let suffix = if windows.len() > 1 { format!("-window-{number:04}") } else { String::new() };
        let path = folder.join(format!("{name}{suffix}.csp"));
        let text = emit(trace, &prediction.program, &prediction.names, question, window);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    let mut left_out = 0;
    for (number, &window) in windows.iter().enumerate() {
        write("deadlock", number, Question::Deadlock, window)?;
        for (interval_number, interval) in prediction.intervals.iter() {
            if interval.merged_into.is_some() {
                continue;
            }
            if files == RACE_FILES_MAX {
                left_out += 1;
                continue;
            }
            files += 1;
            write(
                &format!("race-{:04}", interval_number.0),
                number,
                Question::Race(interval_number, interval),
                window,
            )?;
        }
    }
    if left_out > 0 && !ctx.quiet {
        eprintln!(
            "raddle: note: {left_out} further race models were not written; use --window or a shorter trace"
        );
    }
    Ok(())
}

/// The columns of the paper's tables 5.7 and 5.8, and how what was left was decided.
fn statistics(prediction: &Prediction) -> String {
    let s = &prediction.stats;
    let a = &s.answers;
    let rows = [
        ("events", s.events, "no cache (table 5.7)"),
        ("without redundant accesses", s.after_redundant, "with cache"),
        ("with memory intervals", s.after_intervals, "total"),
        ("synchronisation events", s.synchronisation, "synch"),
        ("removed by the hybrid filter", s.hybrid_removed, "hybrid (table 5.8)"),
        ("removed by same-segment merging", s.same_segment_removed, "same segment"),
        ("checks saved by merging", s.redundant_checks, "redundant"),
        ("checks left", s.final_checks, "final"),
        ("intervals", s.intervals, ""),
        ("found by closure, keeping reads", a.by_strict_closure, ""),
        ("found by closure", a.by_closure, ""),
        ("found by search", a.by_search, ""),
        ("refuted by search", a.refuted, ""),
        ("undecided", a.undecided, ""),
        ("states visited", s.states, ""),
    ];
    let mut text = String::new();
    for (name, value, column) in rows {
        text.push_str(format!("{name:<34} {value:>12}  {column}").trim_end());
        text.push('\n');
    }
    text
}
