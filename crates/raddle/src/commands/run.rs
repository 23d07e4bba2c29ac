//! `raddle run`: detect errors while the program runs.

use super::record::STEPS_UNKNOWN;
use super::{Ctx, Exit, StatusArgs, show_standing};
use crate::compiler::Refusal;
use crate::evidence::ending;
use crate::interrupt;
use crate::launch::detecting::{self, Audience, Detected, Ended, detect};
use crate::launch::following::Process;
use crate::launch::halting::Halt;
use crate::launch::process::describe;
use crate::launch::target::{Target, TreeArgs};
use crate::launch::{Launch, Streams, demo, exploring};
use crate::online::NAME;
use crate::online::known::Known;
use crate::online::lock_order::lock_orders;
use crate::online::options::{self, Options};
use crate::output::{Heard, OutputArgs, Reporter, Stream};
use anyhow::Context;
use raddle_explore::Strategy;
use raddle_findings::naming::Namer;
use raddle_findings::{Basis, Detail, Finding, Kind, Misuse, Suppressions};
use raddle_trace::crash::End;
use raddle_trace::region::{MessageLevel, RegionConfig};
use raddle_trace::report::{Defaults, RawReport};
use raddle_trace::tables::Module;
use raddle_wire::region::{detect as setting, observe, option, steer, weak};
use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

/// Runs a program and reports races while it runs, by the rules of C and C++11.
///
/// The program's input and output are its own; reports go to standard error as they are found.
/// Exit status: 0 nothing to show, 1 a finding of a failing grade or the program itself failed, 2 usage or environment error.
/// RADDLE_OPTIONS in the environment takes what is known from TSAN_OPTIONS (halt_on_error, exitcode, history_size,
/// suppressions, detect_deadlocks, ...).
///
/// Examples:
///   raddle run bank.c
///   raddle run -- ./server --selftest
///   raddle run --suppressions tsan.supp --sarif races.sarif -- ./server --selftest
///   raddle run --strategy random --seed 7 bank.c
///   raddle run --weak --strategy random --seed 7 queue.c
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tree: TreeArgs,
    /// End the program at the first report.
    #[arg(long)]
    halt_on_error: bool,
    /// How much each thread remembers of what it did, from 0 to 7: each step doubles it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=7))]
    history_size: Option<u32>,
    /// Stay below this much memory, in MiB, by forgetting accesses: races between accesses that are far apart in time may
    /// be missed, what is reported stays right.
    #[arg(long, value_name = "MIB")]
    memory_limit: Option<u64>,
    /// Decide which thread goes next: random, round-robin, queue, pct[:DEPTH] or delay[:DELAYS] (default: the threads
    /// run free).
    #[arg(long, value_name = "STRATEGY")]
    strategy: Option<Strategy>,
    /// Let atomic loads read older stores where C and C++11 allow it. Which of them is chosen by chance, from the seed:
    /// `oldest` prefers old ones, `newest` new ones, `uniform` none.
    #[arg(long, value_name = "CHOICE", num_args = 0..=1, require_equals = true, default_missing_value = "oldest", conflicts_with = "trace")]
    weak: Option<WeakChoice>,
    /// Seed of the run's one source of randomness.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Decisions of a run that `pct` and `delay` plan for (default: counted in a run before).
    #[arg(long, value_name = "N", requires = "strategy")]
    steps: Option<u64>,
    /// Run it so many times, the n-th with the seed that is n - 1 larger, and say how many runs had something to show. The program's output is not
    /// shown then.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["trace", "demo"])]
    runs: u64,
    /// Make a demo of the run as well: `raddle replay FILE` gives the run again, with its reports (docs/demos.md).
    /// --strategy chooses who goes next (default: queue).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["trace", "memory_limit"])]
    demo: Option<PathBuf>,
    /// Keep a trace of the run as well, as `raddle record` does.
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    status: StatusArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// How a load chooses among the stores that it may read.
#[derive(Clone, Copy, clap::ValueEnum)]
enum WeakChoice {
    Oldest,
    Uniform,
    Newest,
}

impl WeakChoice {
    fn encode(self) -> u64 {
        u64::from(match self {
            WeakChoice::Oldest => weak::OLDEST,
            WeakChoice::Uniform => weak::UNIFORM,
            WeakChoice::Newest => weak::NEWEST,
        })
    }
}

/// Records of history that a thread slot has by default, as a power of two.
const HISTORY_BITS: u32 = 14;

impl Args {
    fn config(&self, options: &Options, steps: Option<u64>) -> RegionConfig {
        let mut bits = option::MEMORY;
        for (wanted, bit) in [
            (self.halt_on_error || options.halt_on_error, option::HALT_ON_ERROR),
            (options.detect_deadlocks, option::LOCK_ORDER),
            (options.report_mutex_bugs, option::LOCK_MISUSE),
            (options.report_thread_leaks, option::THREAD_LEAKS),
            (self.weak.is_some(), option::WEAK),
            (options.shared_tables, option::SHARED_TABLES),
        ] {
            if wanted {
                bits |= bit;
            }
        }
        let mut config = RegionConfig {
            observe: observe::DETECT | if self.trace.is_some() { observe::RECORD } else { 0 },
            options: bits | if self.trace.is_some() { option::ALLOCATIONS } else { 0 },
            seed: self.seed,
            ..RegionConfig::default()
        };
        let history = self.history_size.unwrap_or(options.history_size);
        config.detect[setting::HISTORY_BITS] = u64::from(HISTORY_BITS + history);
        config.detect[setting::WEAK_CHOICE] = self.weak.map_or(0, WeakChoice::encode);
        config.detect[setting::EXIT_STATUS] = u64::from(options.exitcode.unwrap_or(66));
        if let Some(strategy) = self.strategy {
            config.steer = steer::CONTROL;
            config.options |= strategy.options();
            (config.strategy, config.parameters) = strategy.encode(steps.unwrap_or(STEPS_UNKNOWN));
        }
        config
    }
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let options = read_options(ctx);
    let mut reporter = Reporter::new("run", &args.output, Stream::Stderr, ctx)?;
    for path in &options.suppressions {
        reporter.suppressions.extend(Suppressions::read(path).map_err(anyhow::Error::from_boxed)?);
    }
    let mut launch = args.target.launch()?.with_tree(&args.tree, &args.target);
    launch.output_to_error = args.output.owns_stdout();
    if args.runs > 1 {
        // The names of one run are those of all.
        launch.fixed_addresses = true;
    }
    let steps = steps(&args, &launch)?;
    let config = args.config(&options, steps);
    let memory_max = args.memory_limit.or(options.memory_limit_mb).map(|mib| mib << 20);
    reporter.silent |= !options.report_bugs;
    let mut listener =
        Listener { reporter, known: HashMap::new(), args: &args, options, ctx, steps, heard: false };
    interrupt::watch()?;
    let streams = if args.runs > 1 { Streams::Silent } else { Streams::Inherited };
    let mut cut = false;
    let (mut reporting, mut statuses, mut runs) = (0, Vec::new(), 0);
    let detected = loop {
        let detected = match &args.demo {
            Some(path) => detect_demo(&args, path, &launch, &config, steps, &mut listener)?,
            None => {
                let config = RegionConfig { seed: args.seed.wrapping_add(runs), ..config.clone() };
                detect(&launch, &config, args.trace.as_deref(), memory_max, streams, &mut listener)?
            }
        };
        cut |= listener.conclude(&detected);
        runs += 1;
        reporting += u64::from(std::mem::take(&mut listener.heard));
        statuses.push(detected.status);
        if runs == args.runs || interrupt::program_ended().is_some() {
            break detected;
        }
    };
    let interrupted = interrupt::program_ended();
    let Listener { reporter, options, .. } = listener;
    if !ctx.quiet {
        if args.runs > 1 {
            eprintln!(
                "raddle: {reporting} of {runs} runs had something to show ({:.1} %)",
                100.0 * reporting as f64 / runs as f64
            );
        }
        if cut {
            eprintln!("raddle: note: there were too many lock dependencies; not every cycle was looked for");
        }
        let forgotten: u32 = detected.processes.iter().map(|ended| ended.forgotten).sum();
        if forgotten > 0 {
            eprintln!(
                "raddle: note: accesses were forgotten {forgotten} times to stay below the memory limit; races between accesses far apart in time may have been missed"
            );
        }
        summary(&detected, &reporter, launch.preload);
        if options.print_suppressions {
            for used in reporter.suppressions.iter().filter(|suppression| suppression.hits > 0) {
                eprintln!("raddle: note: the suppression `{}` hid {} reports", used.text, used.hits);
            }
        }
    }
    let halted = detected.processes.iter().any(|ended| ended.halt.is_some());
    let failed = halted || args.status.failed(&statuses, ctx);
    let found = !reporter.shown.is_empty() && options.report_bugs;
    let exit = reporter.finish(launch.words())?;
    Ok(match (found, options.exitcode) {
        (true, Some(status)) => Exit::Status(status),
        (false, _) if !options.report_bugs => Exit::Clean,
        (false, _) if interrupted.is_some() => {
            Exit::Status(interrupt::status(interrupted.unwrap_or_default()))
        }
        _ => exit.or_failed(failed),
    })
}

/// Decisions of a run for strategies that plan: what the user says, or what a run counts.
fn steps(args: &Args, launch: &Launch) -> anyhow::Result<Option<u64>> {
    let planning = args.strategy.filter(|strategy| strategy.needs_estimate());
    Ok(match (args.steps, planning) {
        (None, Some(strategy)) => {
            Some(exploring::estimate_alone(launch, strategy.options(), args.seed, ESTIMATE_TIMEOUT)?.steps)
        }
        (steps, _) => steps,
    })
}

/// How long the run may take that counts decisions.
const ESTIMATE_TIMEOUT: Duration = Duration::from_secs(60);

/// A run of which a demo is made.
fn detect_demo(
    args: &Args,
    path: &Path,
    launch: &Launch,
    config: &RegionConfig,
    steps: Option<u64>,
    listener: &mut Listener<'_>,
) -> anyhow::Result<Detected> {
    let strategy = args.strategy.unwrap_or(Strategy::Queue);
    if matches!(strategy, Strategy::Noise(_)) {
        return Err(Refusal("noise lets the threads run free; a demo needs another strategy".into()).into());
    }
    let settings = demo::Settings {
        strategy,
        seed: args.seed,
        stable_memory: false,
        steps,
        // What a load reads and what a race gives is part of the run only if nobody runs beside it.
        one_at_a_time: args.weak.is_some() || strategy.is_deterministic(),
        left_out: Vec::new(),
    };
    let (detected, demo) = detecting::detect_demo(launch, config, &settings, listener)?;
    let bytes = demo.to_bytes().with_context(|| format!("cannot pack {}", path.display()))?;
    std::fs::write(path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(detected)
}

fn environment() -> String {
    std::env::var("RADDLE_OPTIONS").unwrap_or_default()
}

fn read_options(ctx: &Ctx) -> Options {
    let (options, problems) = options::parse(&environment());
    warn("RADDLE_OPTIONS", &problems, ctx);
    options
}

fn warn(of: &str, problems: &[String], ctx: &Ctx) {
    if !ctx.quiet {
        for problem in problems {
            eprintln!("raddle: warning: {of}: {problem}; it is ignored");
        }
    }
}

/// Takes findings as they come.
struct Listener<'a> {
    reporter: Reporter<'a>,
    /// What is known of each process.
    known: HashMap<usize, Known>,
    args: &'a Args,
    options: Options,
    ctx: &'a Ctx,
    /// Decisions of a run, if they are known.
    steps: Option<u64>,
    /// This run has something to show.
    heard: bool,
}

impl Audience for Listener<'_> {
    fn report(&mut self, process: usize, report: RawReport, modules: &[Module]) -> bool {
        let finding = self.known(process, modules).finding(&report);
        self.hear(finding)
    }

    fn defaults(&mut self, wishes: Defaults) -> (u64, [u64; setting::COUNT]) {
        let (own, problems) = options::parse(&wishes.options);
        warn("__tsan_default_options", &problems, self.ctx);
        // The environment has the last word.
        self.options = options::parse(&format!("{}:{}", wishes.options, environment())).0;
        self.reporter.silent = self.args.output.owns_stdout() || !self.options.report_bugs;
        let texts = own.suppressions.iter().map(|path| Suppressions::read(path));
        let text = Suppressions::parse("__tsan_default_suppressions", &wishes.suppressions);
        for more in texts.chain([text.map_err(Into::into)]) {
            match more {
                Ok(more) => self.reporter.suppressions.extend(more),
                Err(error) => {
                    eprintln!("raddle: warning: {error}; these suppressions of the program are ignored")
                }
            }
        }
        let config = self.args.config(&self.options, self.steps);
        (config.options, config.detect)
    }
}

impl Listener<'_> {
    /// A run is over: what can be said only now. True if not every cycle of locks was looked for.
    fn conclude(&mut self, detected: &Detected) -> bool {
        let ctx = self.ctx;
        let listener = self;
        let mut cut = false;
        for ended in &detected.processes {
            let mut namer = Namer::new(&ended.modules);
            let (cycles, too_many) = lock_orders(&ended.dependencies, &mut namer);
            cut |= too_many;
            for cycle in cycles {
                listener.hear(cycle);
            }
            if let Some(End::Crash(report)) = &ended.end {
                let finding = match ended.halt {
                    None => Some(ending::crash(report, NAME, Basis::observed(), &mut namer)),
                    Some(Halt::Stuck) => Some(ending::stuck(report, NAME, &mut namer)),
                    Some(Halt::TimedOut) => None,
                };
                if let Some(finding) = finding {
                    listener.hear(finding);
                }
            }
            show_standing(ended.halt, ended.end.as_ref(), &ended.modules);
            show_messages(ended, ctx);
        }
        cut
    }

    /// What is known of a process with these modules.
    fn known(&mut self, process: usize, modules: &[Module]) -> &mut Known {
        let known = self.known.entry(process).or_insert_with(|| Known::of(modules));
        known.update(modules);
        known
    }

    /// Is the finding shown, or was it?
    fn hear(&mut self, mut finding: Finding) -> bool {
        let destroyed = matches!(finding.detail, Detail::Misuse { misuse: Misuse::DestroyedHeld });
        if destroyed && !self.options.report_destroy_locked {
            return false;
        }
        if let Some(prefix) = &self.options.strip_path_prefix {
            strip(&mut finding, prefix);
        }
        // Lock orders are what people expect of a run, though they are only suspected, and so are races that invisible
        // synchronisation may explain.
        let asked = finding.kind == Kind::LockOrder || finding.kind.is_race();
        let shown = matches!(self.reporter.hear(finding, asked), Heard::Shown | Heard::Again);
        self.heard |= shown;
        shown
    }
}

fn strip(finding: &mut Finding, prefix: &str) {
    let stacks = finding.parties.iter_mut().flat_map(|party| {
        party.stack.iter_mut().chain(party.locks.iter_mut().flat_map(|lock| lock.acquired.iter_mut()))
    });
    for file in stacks.filter_map(|frame| frame.file.as_mut()) {
        if let Some((_, rest)) = file.split_once(prefix) {
            *file = rest.to_owned();
        }
    }
}

fn show_messages(ended: &Ended, ctx: &Ctx) {
    for message in &ended.messages {
        let (shown, word) = match message.level {
            MessageLevel::Note => (ctx.verbose > 0, "note"),
            MessageLevel::Warning => (!ctx.quiet, "warning"),
            MessageLevel::Error => (true, "error"),
        };
        if shown {
            eprintln!("raddle: {word}: {}", message.text);
        }
    }
}

fn summary(detected: &Detected, reporter: &Reporter<'_>, preloaded: bool) {
    let dropped = match detected.processes.iter().map(|ended| ended.dropped).sum() {
        0 => String::new(),
        dropped => format!(", {dropped} more than could be kept"),
    };
    match &detected.processes[..] {
        [ended] => {
            let plural = if ended.threads == 1 { "" } else { "s" };
            let who = ended.process.as_ref().map_or_else(|| "the program".to_owned(), Process::describe);
            eprintln!(
                "raddle: {}{dropped}; {who} had {} thread{plural} and {}",
                reporter.summary(),
                ended.threads,
                ended.halt.map_or_else(|| describe(ended.status), |halt| halt.describe().to_owned())
            );
        }
        _ => eprintln!("raddle: {}{dropped}; the program {}", reporter.summary(), describe(detected.status)),
    }
    if let Some(followed) = &detected.followed {
        eprintln!("raddle: {followed}");
    }
    if preloaded {
        eprintln!(
            "raddle: note: the program was not built by `raddle cc`: its memory accesses were not seen, so no race could be found"
        );
    }
}
