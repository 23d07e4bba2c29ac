//! `raddle hunt`: the main job, as a pipeline. Each step is somebody else's work: record, predict, confirm, report.

// A match over operations names them or their kinds, so that a new line of the table stops the compiler where it matters.
#![warn(clippy::wildcard_enum_match_arm)]

use super::record::{What, sentence, show_messages};
use super::{Ctx, Exit, StatusArgs, show_standing};
use crate::detector_options::DetectorOptions;
use crate::evidence::shown_trace::KeepTraces;
use crate::hunt::confirm::predict_and_confirm;
use crate::hunt::detectors::Detectors;
use crate::hunt::properties::{self, PropertyArgs};
use crate::hunt::provoke::{Budget, Provoking};
use crate::hunt::visibility::Sight;
use crate::hunt::{Hunt, Witnessed, crashes, unordered};
use crate::interrupt;
use crate::launch::identity;
use crate::launch::input::StandardInput;
use crate::launch::recording::{Recording, record};
use crate::launch::target::{Target, TreeArgs};
use crate::launch::{Launch, steering};
use crate::output::{OutputArgs, Reporter, Stream};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_explore::Strategy;
use raddle_findings::naming::Namer;
use raddle_findings::store::Added;
use raddle_findings::{Evidence, Finding, Grade, Store, deduplicate};
use raddle_predict::Options;
use raddle_property::script::Property;
use raddle_trace::schedule::Schedule;
use raddle_trace::{MemoryTrace, Op};
use raddle_wire::region::option;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs a program once, predicts what other interleavings of the same events would do, replays each prediction, and
/// reports what it could make happen.
///
/// Findings and their schedules are kept in .raddle; `raddle replay ID` makes one happen again, `raddle report` lists them.
/// Exit status: 0 nothing to show, 1 a finding of a failing grade or the program itself failed, 2 usage or environment error.
///
/// Examples:
///   raddle hunt examples/bank.c
///   raddle hunt --cflags "-O2 -Iinclude" a.c b.cpp -- 5
///   raddle hunt -- ./server --selftest
///   raddle hunt -- make check
///   raddle hunt --runs 5 -- ./server --selftest
///   raddle hunt --with views,goodlock examples/bank.c
///   raddle hunt --with atomizer --functions 'pay_*' examples/bank.c
///   raddle hunt --aspects file.aspects --property file.csp file.c
///   raddle hunt --baseline old/findings.json -- ./server --selftest
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tree: TreeArgs,
    /// The store: the folder in which findings, their schedules and the trace are kept.
    #[arg(long, value_name = "DIR", default_value = raddle_findings::store::FOLDER)]
    keep: PathBuf,
    #[command(flatten)]
    what: What,
    /// Run these detectors over the run as well, with commas between them; `raddle detect --list` has the table.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    with: Vec<String>,
    /// States that prediction may visit.
    #[arg(long, value_name = "N", default_value_t = Options::default().budget_states)]
    budget: u64,
    /// Schedules to try for one prediction before it is given up.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = super::at_least_one)]
    alternatives: usize,
    /// Replays that may confirm nothing before the candidates that are left are put back; each that confirms something allows
    /// one more.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    fruitless: u32,
    /// Seconds that one replay may take.
    #[arg(long, value_name = "S", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Seconds after which no more predictions of a run are replayed.
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    confirm_for: u64,
    /// What may be spent on showing consequences: so many runs in other orders, each to its end (100), so much time (30s), both (100,30s),
    /// or nothing (off).
    #[arg(long, value_name = "BUDGET", default_value_t = Budget::default())]
    provoke: Budget,
    /// Replays at the same time (default: one for each processor).
    #[arg(long, value_name = "N", value_parser = super::at_least_one)]
    workers: Option<usize>,
    /// Record and predict from so many runs: the first runs free (or as --strategy says), the others under strategies of
    /// their own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    #[command(flatten)]
    status: StatusArgs,
    #[command(flatten)]
    output: OutputArgs,
    // Last, because its heading would go on over what follows.
    #[command(flatten)]
    told: DetectorOptions,
    #[command(flatten)]
    properties: PropertyArgs,
}

impl Args {
    /// Where findings go, for a command that hunts as part of its own work.
    pub fn output(&mut self) -> &mut OutputArgs {
        &mut self.output
    }
}

/// Under what the runs after the first are recorded, in turn.
const STRATEGIES: [Strategy; 3] = [Strategy::Random, Strategy::Pct { depth: 3 }, Strategy::RoundRobin];

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let wanted = args.told.chosen(&args.with)?;
    let mut reporter = Reporter::new("hunt", &args.output, Stream::Stdout, ctx)?;
    let mut launch = args.target.launch()?.with_tree(&args.tree, &args.target);
    launch.input = StandardInput::of_this_process();
    launch.output_to_error = args.output.owns_stdout();
    let store = Store::at(&args.keep);
    store.create().and_then(|()| std::fs::create_dir_all(store.traces())).with_context(|| {
        format!("cannot create the folder {}; choose another with --keep", args.keep.display())
    })?;
    let properties = args.properties.read()?;
    let work = Work { args: &args, store: &store, wanted: &wanted, properties: &properties, ctx };
    let mut found: Vec<(Launch, Witnessed)> = Vec::new();
    let mut unexplored: Vec<String> = Vec::new();
    let mut statuses = Vec::new();
    let (mut hunted_signal, mut halted) = (None, false);
    interrupt::watch()?;
    for number in 0..args.runs {
        if interrupt::signal().is_some() {
            break;
        }
        let mut what = args.what.clone();
        let mut name = args.target.name();
        if number > 0 {
            what.strategy = Some(STRATEGIES[(number as usize - 1) % STRATEGIES.len()]);
            what.seed = args.what.seed.wrapping_add(u64::from(number));
            name = format!("{name}-{}", number + 1);
        }
        let path = store.traces().join(format!("{name}.trace"));
        let run = work.hunt_in(&launch, &what, &path)?;
        found.extend(run.found);
        statuses.push(run.status);
        hunted_signal = hunted_signal.or(run.signal);
        halted |= run.halted;
        for note in run.unexplored {
            if !unexplored.contains(&note) {
                unexplored.push(note);
            }
        }
    }
    let findings = keep(&store, found, ctx);
    for finding in findings {
        let asked = wanted.contains(&finding.by);
        reporter.hear(finding, asked);
    }
    if !ctx.quiet {
        eprintln!("raddle: {}", reporter.summary());
        for note in &unexplored {
            eprintln!("raddle: note: {note}");
        }
        if launch.preload {
            eprintln!(
                "raddle: note: the program was not built by `raddle cc`: only deadlocks, blocked threads and missed signals were looked for"
            );
        }
    }
    let interrupted = hunted_signal.or_else(interrupt::signal);
    if reporter.shown.is_empty() && interrupted.is_none() && !ctx.quiet {
        eprintln!("raddle: {}", raddle_report::AFTER_NOTHING);
    }
    let exit = reporter.finish(launch.words())?;
    if let (Some(signal), Exit::Clean) = (interrupted, exit) {
        return Ok(Exit::Status(interrupt::status(signal)));
    }
    let failed = halted || args.status.failed(&statuses, ctx);
    Ok(exit.or_failed(failed))
}

/// What one recorded run led to.
struct Hunted {
    /// Findings, and the program that each was found in.
    found: Vec<(Launch, Witnessed)>,
    unexplored: Vec<String>,
    status: ExitStatus,
    /// A signal that came while the program ran.
    signal: Option<i32>,
    /// Raddle had to end a process.
    halted: bool,
}

impl Hunted {
    /// Ids of what is confirmed so far.
    fn confirmed(&self) -> HashSet<String> {
        let findings = self.found.iter().map(|(_, witnessed)| &witnessed.finding);
        findings
            .filter(|finding| finding.grade() == Grade::Confirmed)
            .map(|finding| finding.id.clone())
            .collect()
    }
}

/// What is the same for every run and every process.
struct Work<'a> {
    args: &'a Args,
    store: &'a Store,
    wanted: &'a [String],
    properties: &'a [Property],
    ctx: &'a Ctx,
}

impl Work<'_> {
    /// Records one run, predicts from what each process did, and confirms.
    fn hunt_in(&self, launch: &Launch, what: &What, path: &Path) -> anyhow::Result<Hunted> {
        let ctx = self.ctx;
        let config = what.config();
        let recorded = record(launch, &config, path, ctx)?;
        let mut hunted = Hunted {
            found: Vec::new(),
            unexplored: Vec::new(),
            status: recorded.status,
            signal: interrupt::program_ended(),
            halted: recorded.recordings.iter().any(|recording| recording.halt.is_some()),
        };
        if hunted.signal.is_some() && !ctx.quiet {
            eprintln!("raddle: interrupted; looking at what the run has shown (interrupt again to stop)");
        }
        for recording in &recorded.recordings {
            show_messages(recording, ctx);
            if !ctx.quiet {
                eprintln!("raddle: {}", sentence(recording));
            }
            let launch = recording.process.as_ref().map_or(launch, |process| &process.launch);
            self.hunt_after(launch, what, recording, &mut hunted)?;
        }
        if let Some(followed) = recorded.followed.filter(|_| !ctx.quiet) {
            eprintln!("raddle: {followed}");
        }
        Ok(hunted)
    }

    /// Predicts from what one process did, and confirms.
    fn hunt_after(
        &self,
        launch: &Launch,
        what: &What,
        recording: &Recording,
        hunted: &mut Hunted,
    ) -> anyhow::Result<()> {
        let Work { args, store, wanted, ctx, .. } = *self;
        let (config, path) = (what.config(), &recording.summary.path);
        let trace = MemoryTrace::read(raddle_trace::open(path)?.as_mut())?;
        let options =
            Options { budget_states: args.budget, alternatives: args.alternatives, ..Options::default() };
        let bar = stage(ctx, "predicting");
        let mut head =
            identity::head(launch, steering::run_options(config.options), what.seed, &store.root());
        head.took_ms = u64::try_from(recording.took.as_millis()).unwrap_or(u64::MAX).max(1);
        let hunt = Hunt {
            launch,
            store,
            head,
            confirmed: hunted.confirmed(),
            timeout: Duration::from_secs(args.timeout),
            until: Instant::now() + Duration::from_secs(args.confirm_for),
            fruitless: args.fruitless,
            alternatives: args.alternatives,
            workers: args
                .workers
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get())),
        };
        let mut namer = Namer::of(&trace);
        let (confirmed, unexplored, recorded) =
            predict_and_confirm(&hunt, &trace, &options, &mut namer, ctx, &|what, done, total| {
                bar.set_prefix(what);
                bar.set_length(total as u64);
                bar.set_position(done as u64);
            })?;

        let mut found = Vec::new();
        found.extend(crashes::crash(&hunt, recording, &mut namer, ctx)?);
        let detectors = Detectors { names: wanted, told: &args.told };
        found.extend(detectors.run(&hunt, path, &mut namer, ctx)?);
        found.extend(confirmed);
        found.extend(properties::violations(
            &hunt,
            &trace,
            self.properties,
            &mut namer,
            ctx,
            &mut hunted.unexplored,
        )?);
        found.extend(crashes::stuck(&hunt, recording, &found, &mut namer, ctx)?);
        if is_worth_provoking(recording, &trace) {
            bar.set_prefix("provoking");
            let provoking = Provoking {
                hunt: &hunt,
                trace: &trace,
                options: &options,
                budget: args.provoke,
                statuses: allowed(&args.status.expect_status, recording.status),
            };
            let provoked = provoking.provoke(&mut found, &mut namer, ctx)?;
            if let Some(told) = provoked.told().filter(|_| ctx.verbose > 0) {
                eprintln!("raddle: {told}");
            }
            found.extend(provoked.found);
        }
        keep_recorded(&mut found, recorded, &mut namer);
        bar.finish_and_clear();
        show_standing(recording.halt, recording.end.as_ref(), &recording.modules);
        hunted.unexplored.extend(unexplored);
        // What follows reads the trace once more, from its file.
        let mut sight = Sight::of(&trace.tables.modules);
        drop(trace);
        if config.options & option::MEMORY != 0 && !launch.preload {
            let more = unordered::races(&hunt, path, &mut sight, &found, &mut namer, ctx)?;
            found.extend(more);
        }
        hunted.found.extend(found.into_iter().map(|witnessed| (launch.clone(), witnessed)));
        Ok(())
    }
}

/// Traces with more events are not read once more for what could be provoked: one run of such a program takes longer than the budget.
const PROVOKED_EVENTS_MAX: usize = 5_000_000;

/// A run that has ended by itself says how the program ends when all is well. When a signal comes is not the scheduler's to say: threads
/// that wait for one that was not sent again would pass for a deadlock.
fn is_worth_provoking(recording: &Recording, trace: &MemoryTrace) -> bool {
    let handles_signals = || trace.events.iter().any(|event| matches!(event.op, Op::SignalEnter { .. }));
    recording.halt.is_none()
        && recording.status.code().is_some()
        && trace.events.len() <= PROVOKED_EVENTS_MAX
        && !handles_signals()
}

/// Statuses that are no error: those that the user allows, or else 0 and that of the recorded run.
fn allowed(expected: &[i32], recorded: ExitStatus) -> Vec<i32> {
    match expected {
        [] => [Some(0), recorded.code()].into_iter().flatten().collect(),
        expected => expected.to_vec(),
    }
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

/// Longer recorded runs are not kept beside their findings: a picture shows forty steps.
const RECORDED_STEPS_MAX: usize = 20_000;

/// Puts the recorded run beside what was predicted from it, so that both can be looked at.
fn keep_recorded(found: &mut [Witnessed], mut recorded: Schedule, namer: &mut Namer) {
    let predicted = |witnessed: &&mut Witnessed| {
        witnessed.finding.grade() == Grade::Confirmed && witnessed.schedule.is_some()
    };
    if !found.iter_mut().any(|witnessed| predicted(&witnessed)) {
        return;
    }
    if recorded.steps.len() > RECORDED_STEPS_MAX {
        return;
    }
    let order = |schedule: &Schedule| -> Vec<(String, u32)> {
        schedule.steps.iter().map(|step| (schedule.name(step.thread).to_owned(), step.ordinal)).collect()
    };
    let as_recorded = order(&recorded);
    recorded.annotate(|place| namer.place(place));
    let text: Arc<str> = recorded.to_text().into();
    for witnessed in found.iter_mut().filter(predicted) {
        // A run in which the error itself was recorded has nothing to be compared with.
        let same = witnessed
            .schedule
            .as_ref()
            .is_some_and(|it| it.stops.is_empty() && it.blocks.is_empty() && order(it) == as_recorded);
        witnessed.recorded = (!same).then(|| Arc::clone(&text));
    }
}

/// Schedules of findings that were not confirmed are kept up to this many bytes: a long run has thousands.
const UNCONFIRMED_BYTES_MAX: usize = 64 << 20;

/// Makes one finding of those with the same id and puts them into the store. What cannot be stored is still reported.
fn keep(store: &Store, found: Vec<(Launch, Witnessed)>, ctx: &Ctx) -> Vec<Finding> {
    let mut findings = deduplicate(found.iter().map(|(_, witnessed)| witnessed.finding.clone()).collect());
    let mut code_ids: HashMap<&Path, String> = HashMap::new();
    let mut room = UNCONFIRMED_BYTES_MAX;
    let mut keeping = KeepTraces::default();
    let mut problem = None;
    for finding in &mut findings {
        let best = found.iter().find(|(_, witnessed)| {
            witnessed.finding.id == finding.id && witnessed.finding.basis == finding.basis
        });
        let mut text =
            best.and_then(|(_, witnessed)| witnessed.schedule.as_ref()).map(|schedule| schedule.to_text());
        if let Some(bytes) = text.as_ref().map(String::len).filter(|_| !finding.grade().is_failing()) {
            match bytes <= room {
                true => room -= bytes,
                false => text = None,
            }
        }
        let path = store.schedule_path(&finding.id).display().to_string();
        finding.schedule = text.is_some().then_some(path);
        let launch = best.or(found.first()).map(|(launch, _)| launch);
        let identity = |launch: &Launch| identity::Identity::of(&launch.program).code_id;
        let code_id =
            launch.map(|launch| code_ids.entry(&launch.program).or_insert_with(|| identity(launch)).clone());
        let words = launch.map(Launch::title).unwrap_or_default();
        let evidence = Evidence {
            code_id: code_id.unwrap_or_default(),
            recorded: best.and_then(|(_, witnessed)| witnessed.recorded.as_deref()).map(str::to_owned),
            ..Evidence::new("hunt", words, finding.clone(), text)
        };
        match store.add(&evidence) {
            Ok(Added::Known) => {}
            Ok(Added::New | Added::Better) => {
                if let Some(schedule) = best.and_then(|(_, witnessed)| witnessed.schedule.as_ref()) {
                    keeping.keep(store, finding, schedule, ctx);
                }
            }
            Err(error) => {
                finding.schedule = None;
                problem.get_or_insert(error);
            }
        }
    }
    if let Some(error) = problem.filter(|_| !ctx.quiet) {
        eprintln!(
            "raddle: warning: not every finding could be stored in {}: {error}; choose another folder with --keep",
            store.folder().display()
        );
    }
    findings
}
