//! `raddle replay`: make a recorded or predicted schedule happen again.

use super::{Ctx, Exit};
use crate::compiler::Refusal;
use crate::evidence::judge::{Judged, judge, judge_recorded};
use crate::evidence::replaying::{self, Rebuild, Replayed as Program};
use crate::hunt::confirm::located;
use crate::launch::demo::Replayed;
use crate::launch::detecting::{Audience, Ended, replay_demo as replay_demo_heard};
use crate::launch::identity::Identity;
use crate::launch::process::{describe as describe_status, shell_status};
use crate::launch::steering::{self, Then};
use crate::launch::target::Target;
use crate::launch::{Launch, Streams};
use crate::online::known::Known;
use crate::online::lock_order::lock_orders;
use crate::output::{Heard, OutputArgs, Reporter, Stream};
use anyhow::Context;
use raddle_explore::Strategy;
use raddle_findings::naming::Namer;
use raddle_findings::store::{self, read_schedule};
use raddle_findings::{Attempt, Store};
use raddle_report::English;
use raddle_trace::demo::{Demo, Detecting, is_demo};
use raddle_trace::report::{Defaults, RawReport};
use raddle_trace::schedule::Schedule;
use raddle_trace::tables::Module;
use raddle_wire::region::detect as setting;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

/// Runs a program along a schedule and says whether it shows what the schedule is about.
///
/// Everything that the run needs (program, arguments, folder, environment, input, options) comes from the schedule. A program
/// that Raddle compiled is compiled again if its sources are there, so that a fix is noticed.
/// Exit status: 1 the error was shown, 0 it is gone, 3 the program left the schedule, 2 usage or environment error.
///
/// Examples:
///   raddle replay 1f3a09c2d4e5
///   raddle replay --repeat 20 1f3a
///   raddle replay race.schedule -- ./server --selftest    with another program than the schedule's own
///   raddle replay --gdb 1f3a09c2d4e5
///   raddle replay --trace error.trace 1f3a    then: raddle trace dump --lanes error.trace
///   raddle replay server.demo
///   raddle replay --then random --seed 7 prefix.schedule bank.c
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The id of a finding (or its first digits) in the store, a schedule (docs/schedule-format.md), or a demo.
    #[arg(value_name = "SCHEDULE")]
    schedule: PathBuf,
    #[command(flatten)]
    target: Target,
    /// The store: the folder in which findings were kept.
    #[arg(long, value_name = "DIR", default_value = store::FOLDER)]
    keep: PathBuf,
    /// Keep a trace of the replay (with --repeat: of the last one) in this file, for `raddle trace`.
    #[arg(long, value_name = "FILE", conflicts_with = "gdb")]
    trace: Option<PathBuf>,
    /// Replay so many times and say how often the error was shown.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Seconds after which a run is stopped.
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
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
    /// Print the outcome as JSON (docs/finding-schema.json, `$defs/replay`); the program's output goes to standard error.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let path = find(&args)?;
    if let Some(demo) = demo_at(&path)? {
        anyhow::ensure!(
            args.trace.is_none(),
            Refusal(
                "a demo is replayed without --trace; record the program again with `raddle record`".into()
            )
        );
        return replay_demo(&args, &path, &demo, ctx);
    }
    let text = read_schedule(&path)?;
    let mut schedule =
        Schedule::parse(&text).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    let Program { mut launch, same_program } = program(&args, &schedule, &path)?;
    launch.output_to_error = args.json;
    if !same_program {
        // Its code lies elsewhere.
        schedule.crash_place.clear();
    }
    if !same_program && !ctx.quiet {
        eprintln!(
            "raddle: note: {} is not the program that this schedule was made with: it was changed or rebuilt since",
            launch.program.display()
        );
    }
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
    if args.gdb {
        let config = steering::replay_config(&schedule, then)?;
        let status = steering::debug(&launch, &config, &args.gdb_command)?;
        return Ok(Exit::Status(shell_status(status)));
    }
    let streams = if args.repeat > 1 { Streams::Silent } else { Streams::Inherited };
    let mut tally = Tally::default();
    for _ in 0..args.repeat.max(1) {
        tally.add(match &args.trace {
            Some(path) => judge_recorded(&launch, &schedule, then, streams, timeout, path, ctx)?,
            None => judge(&launch, &schedule, then, streams, timeout, ctx)?,
        });
    }
    // Places of the program, as it is now.
    tally.failure =
        tally.failure.map(|attempt| located(attempt, &mut Namer::new(&[whole_file(&launch.program)])));
    if args.json {
        println!("{}", tally.json(&path, &schedule, same_program));
    } else if !ctx.quiet {
        tally.tell(&schedule);
    }
    // A schedule that promises nothing is only a way to run the program.
    if let (Some(status), 1, 0) = (tally.followed, args.repeat, tally.shown) {
        return Ok(Exit::Status(shell_status(status)));
    }
    Ok(match tally.verdict() {
        Verdict::Shown => Exit::Found,
        Verdict::Gone => Exit::Clean,
        Verdict::Left => Exit::Status(LEFT_STATUS),
    })
}

/// A program as a module of which only the numbering in its file is known.
fn whole_file(program: &Path) -> Module {
    let path = program.display().to_string();
    Module { path, start: 0, end: u64::MAX, bias: 0, build_id: Vec::new() }
}

/// Exit status when the program left the schedule.
const LEFT_STATUS: u8 = 3;

/// What all repetitions together say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Shown,
    /// The program got to the end of the schedule without the error.
    Gone,
    Left,
}

/// What the repetitions showed.
#[derive(Default)]
struct Tally {
    runs: u32,
    shown: u32,
    /// The first run that did not show it.
    failure: Option<Attempt>,
    left: bool,
    followed: Option<ExitStatus>,
}

impl Tally {
    fn add(&mut self, judged: Judged) {
        self.runs += 1;
        match judged {
            Judged::Shown(_) => self.shown += 1,
            Judged::Not(attempt) => {
                self.left |= !matches!(
                    attempt,
                    Attempt::Ended { .. }
                        | Attempt::Ordered
                        | Attempt::Kept
                        | Attempt::OtherMemory
                        | Attempt::UncertainEvents { .. }
                );
                self.failure.get_or_insert(attempt);
            }
            Judged::Followed(status) => self.followed = Some(status),
        }
    }

    fn verdict(&self) -> Verdict {
        match (self.shown, self.left) {
            (1.., _) => Verdict::Shown,
            (0, true) => Verdict::Left,
            (0, false) => Verdict::Gone,
        }
    }

    fn word(&self) -> &'static str {
        match (self.verdict(), self.followed) {
            (Verdict::Shown, _) => "shown",
            (Verdict::Gone, Some(_)) => "followed",
            (Verdict::Gone, None) => "gone",
            (Verdict::Left, _) => "left",
        }
    }

    fn tell(&self, schedule: &Schedule) {
        let about = if schedule.about.is_empty() { "the schedule" } else { &schedule.about };
        let why = self.failure.as_ref().map(|attempt| English::default().attempt(attempt));
        match self.word() {
            "followed" => {
                let status = self.followed.map(describe_status).unwrap_or_default();
                eprintln!("raddle: {about}: all steps were taken and the program {status}");
            }
            "shown" => eprintln!("raddle: {about}: shown in {} of {} runs", self.shown, self.runs),
            "gone" => eprintln!("raddle: {about}: gone; not shown in {} of {} runs", self.runs, self.runs),
            _ => eprintln!(
                "raddle: {about}: the program left the schedule in {} of {} runs",
                self.runs, self.runs
            ),
        }
        if let Some(why) = why {
            eprintln!("raddle: note: {why}");
        }
    }

    fn json(&self, path: &Path, schedule: &Schedule, same_program: bool) -> serde_json::Value {
        serde_json::json!({
            "schedule": path, "about": schedule.about, "runs": self.runs, "shown": self.shown,
            "verdict": self.word(), "same_program": same_program, "failure": self.failure,
            "text": self.failure.as_ref().map(|attempt| English::default().attempt(attempt)),
        })
    }
}

/// The program to run: the schedule's own, or the one that the user names instead.
fn program(args: &Args, schedule: &Schedule, path: &Path) -> anyhow::Result<Program> {
    let root = replaying::root_of(path);
    if args.target.is_empty() {
        return replaying::launch(schedule, &root, Rebuild::IfSourcesAreThere);
    }
    let named = args.target.launch()?;
    let same_program = Identity::of(&named.program).fits(&schedule.head);
    let arguments = match named.arguments.is_empty() {
        true => schedule.head.arguments.iter().map(Into::into).collect(),
        false => named.arguments.clone(),
    };
    // It runs here, where the user named it.
    let surrounded = replaying::surround(named, &schedule.head, &root);
    let launch = Launch { folder: None, arguments, ..surrounded? };
    Ok(Program { launch, same_program })
}

/// The demo in this file, if it is one.
fn demo_at(path: &Path) -> anyhow::Result<Option<Demo>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !is_demo(&bytes) {
        if std::str::from_utf8(&bytes).is_err() {
            return Err(Refusal(format!("{} is not a schedule, and not a demo", path.display())).into());
        }
        return Ok(None);
    }
    let demo = Demo::read(&bytes).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    Ok(Some(demo))
}

/// Shows what was found when the demo was recorded, and is found again.
struct DemoListener<'a> {
    reporter: Reporter<'a>,
    known: Known,
    detecting: Detecting,
}

impl DemoListener<'_> {
    /// Lock orders are looked for when the program has ended.
    fn conclude(&mut self, processes: &[Ended]) {
        for ended in processes {
            self.known.update(&ended.modules);
            let (cycles, _) = lock_orders(&ended.dependencies, &mut self.known.namer);
            for cycle in cycles {
                self.reporter.hear(cycle, true);
            }
        }
    }
}

impl Audience for DemoListener<'_> {
    fn report(&mut self, _process: usize, report: RawReport, modules: &[Module]) -> bool {
        self.known.update(modules);
        let finding = self.known.finding(&report);
        matches!(self.reporter.hear(finding, true), Heard::Shown | Heard::Again)
    }

    /// What this led to is in the demo.
    fn defaults(&mut self, _wishes: Defaults) -> (u64, [u64; setting::COUNT]) {
        let mut settings = [0; setting::COUNT];
        for (to, &from) in settings.iter_mut().zip(&self.detecting.settings) {
            *to = from;
        }
        (self.detecting.options, settings)
    }
}

/// Gives a demo again. Without a program, the recorded one is run.
fn replay_demo(args: &Args, path: &Path, demo: &Demo, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut launch = match args.target.is_empty() {
        true => {
            let program = demo.about.command.iter().map(Into::into).collect();
            Target { program, ..args.target.clone() }.launch()?
        }
        false => args.target.launch()?,
    };
    launch.output_to_error = args.json;
    let timeout = Duration::from_secs(args.timeout);
    let (mut same, mut first_failure, mut status) = (0, None, None);
    let output = OutputArgs::default();
    let mut listener = DemoListener {
        reporter: Reporter::new("replay", &output, Stream::Stderr, ctx)?,
        known: Known::of(&[]),
        detecting: demo.about.detecting.clone().unwrap_or_default(),
    };
    // A file as standard input is read again from where it was.
    let input = rustix::fs::seek(std::io::stdin(), rustix::fs::SeekFrom::Current(0));
    for _ in 0..args.repeat.max(1) {
        if let Ok(start) = input {
            rustix::fs::seek(std::io::stdin(), rustix::fs::SeekFrom::Start(start))
                .context("cannot read the standard input again")?;
        }
        let (replayed, ended, processes) =
            replay_demo_heard(&launch, demo, args.repeat > 1, timeout, &mut listener)?;
        listener.conclude(&processes);
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
        println!("{about}");
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

/// The file that the user means.
fn find(args: &Args) -> anyhow::Result<PathBuf> {
    if args.schedule.is_file() {
        return Ok(args.schedule.clone());
    }
    let store = Store::at(&args.keep);
    let wanted = args.schedule.display().to_string();
    let ids = store.ids(&wanted).with_context(|| format!("cannot read {}", args.keep.display()))?;
    let refuse = |text: String| -> anyhow::Result<PathBuf> { Err(Refusal(text).into()) };
    match ids.as_slice() {
        [id] if store.schedule_path(id).exists() => Ok(store.schedule_path(id)),
        [id] => refuse(format!("no schedule is stored for finding {id}: it cannot be replayed")),
        [] => refuse(format!(
            "there is no schedule {wanted}, and no finding {wanted} in {}; `raddle report` lists what is there",
            args.keep.display()
        )),
        several => refuse(format!(
            "{} findings begin with {wanted}: {}; write more digits",
            several.len(),
            several.join(", ")
        )),
    }
}
