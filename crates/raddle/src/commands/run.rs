//! `raddle run`: detect errors while the program runs.

use super::record::STEPS_UNKNOWN;
use super::{Ctx, Exit};
use crate::launch::detecting::{Audience, Ended, detect};
use crate::launch::process::describe;
use crate::launch::target::Target;
use crate::online::finding::finding;
use crate::online::lock_order::lock_orders;
use crate::online::options::{self, Options};
use anyhow::Context;
use raddle_explore::Strategy;
use raddle_findings::{Finding, FindingsFile, Grade, Kind, Suppressions, sarif};
use raddle_report::{Sources, Style, render};
use raddle_trace::region::{MessageLevel, RegionConfig};
use raddle_trace::report::{Defaults, RawReport};
use raddle_trace::symbols::Symbolizer;
use raddle_trace::tables::Module;
use raddle_wire::region::{detect as setting, observe, option, steer, weak};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Runs a program and reports races while it runs, by the rules of C and C++11.
///
/// The program's input and output are its own; reports go to standard error as they are found.
/// Exit status: 0 nothing found, 1 at least one finding, 2 usage or environment error. The program's own status is told.
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
    /// Leave out what these files suppress (ThreadSanitizer's syntax: `race:function`).
    #[arg(long, value_name = "FILE")]
    suppressions: Vec<PathBuf>,
    /// Show also what could only happen in another order.
    #[arg(long)]
    all: bool,
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
    /// Print the findings as JSON on standard error, instead of in words.
    #[arg(long)]
    json: bool,
    /// Write the findings to a file as JSON, for `raddle report`.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep a trace of the run as well, as `raddle record` does.
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,
    /// Write the findings to a file as SARIF 2.1.0.
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
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
    fn config(&self, options: &Options) -> RegionConfig {
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
            (config.strategy, config.parameters) = strategy.encode(STEPS_UNKNOWN);
        }
        config
    }
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let options = read_options(ctx);
    let mut suppressions = Suppressions::default();
    for path in args.suppressions.iter().chain(&options.suppressions) {
        suppressions.extend(Suppressions::read(path).map_err(anyhow::Error::from_boxed)?);
    }
    let launch = args.target.launch()?;
    let config = args.config(&options);
    let memory_max = args.memory_limit.or(options.memory_limit_mb).map(|mib| mib << 20);
    let mut listener = Listener {
        suppressions,
        known: BTreeSet::new(),
        shown: Vec::new(),
        suppressed: Vec::new(),
        held_back: 0,
        sources: Sources::new(vec![std::env::current_dir().unwrap_or_default()]),
        print: !args.json && options.report_bugs,
        all: args.all,
        args: &args,
        options,
        ctx,
    };
    let ended = detect(&launch, &config, args.trace.as_deref(), memory_max, &mut listener)?;
    let (cycles, cut) = lock_orders(&ended.dependencies, &ended.modules);
    for cycle in cycles {
        listener.hear(cycle);
    }
    let Listener { suppressions, shown, suppressed, held_back, options, .. } = listener;
    if args.json {
        eprintln!("{}", serde_json::to_string_pretty(&shown)?);
    }
    if let Some(path) = &args.output {
        let text = FindingsFile::new(launch.words(), shown.clone()).to_json();
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &args.sarif {
        let root = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
        let text = format!("{:#}\n", sarif(&shown, &suppressed, &root));
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    show_messages(&ended, ctx);
    if !ctx.quiet && !args.json {
        if cut {
            eprintln!("raddle: note: there were too many lock dependencies; not every cycle was looked for");
        }
        if ended.forgotten > 0 {
            eprintln!(
                "raddle: note: accesses were forgotten {} times to stay below the memory limit; races between accesses far apart in time may have been missed",
                ended.forgotten
            );
        }
        summary(&ended, &shown, suppressed.len(), held_back, launch.preload);
        if options.print_suppressions {
            for used in suppressions.iter().filter(|suppression| suppression.hits > 0) {
                eprintln!("raddle: note: the suppression `{}` hid {} reports", used.text, used.hits);
            }
        }
    }
    Ok(match (shown.is_empty() || !options.report_bugs, options.exitcode) {
        (true, _) => Exit::Clean,
        (false, Some(status)) => Exit::Status(status),
        (false, None) => Exit::Found,
    })
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
    suppressions: Suppressions,
    known: BTreeSet<String>,
    shown: Vec<Finding>,
    suppressed: Vec<Finding>,
    /// Findings that are only shown with `--all`.
    held_back: usize,
    sources: Sources,
    print: bool,
    all: bool,
    args: &'a Args,
    options: Options,
    ctx: &'a Ctx,
}

impl Audience for Listener<'_> {
    fn report(&mut self, report: RawReport, modules: &[Module]) -> bool {
        let mut symbols = Symbolizer::new(modules);
        self.hear(finding(&report, &mut symbols))
    }

    fn defaults(&mut self, wishes: Defaults) -> (u64, [u64; setting::COUNT]) {
        let (own, problems) = options::parse(&wishes.options);
        warn("__tsan_default_options", &problems, self.ctx);
        // The environment has the last word.
        self.options = options::parse(&format!("{}:{}", wishes.options, environment())).0;
        self.print = !self.args.json && self.options.report_bugs;
        let texts = own.suppressions.iter().map(|path| Suppressions::read(path));
        let text = Suppressions::parse("__tsan_default_suppressions", &wishes.suppressions);
        for more in texts.chain([text.map_err(Into::into)]) {
            match more {
                Ok(more) => self.suppressions.extend(more),
                Err(error) => {
                    eprintln!("raddle: warning: {error}; these suppressions of the program are ignored")
                }
            }
        }
        let config = self.args.config(&self.options);
        (config.options, config.detect)
    }
}

impl Listener<'_> {
    /// Is the finding shown, or was it?
    fn hear(&mut self, mut finding: Finding) -> bool {
        if let Some(prefix) = &self.options.strip_path_prefix {
            strip(&mut finding, prefix);
        }
        if finding.kind == Kind::LockMisuse
            && finding.message.contains("destroyed")
            && !self.options.report_destroy_locked
        {
            return false;
        }
        if self.suppressions.suppresses(&finding).is_some() {
            if self.known.insert(finding.id.clone()) {
                self.suppressed.push(finding);
            }
            return false;
        }
        if !self.known.insert(finding.id.clone()) {
            return self.shown.iter().any(|shown| shown.id == finding.id);
        }
        if finding.grade != Grade::Confirmed && finding.kind != Kind::LockOrder && !self.all {
            self.held_back += 1;
            return false;
        }
        if self.print {
            let style = Style { color: self.ctx.color_stderr(), ..Style::default() };
            eprintln!("{}", render(&finding, &mut self.sources, style));
        }
        self.shown.push(finding);
        true
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

fn summary(ended: &Ended, shown: &[Finding], suppressed: usize, held_back: usize, preloaded: bool) {
    let count = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let mut text = count(shown.len(), "finding");
    if suppressed > 0 {
        text.push_str(&format!(", {suppressed} suppressed"));
    }
    if held_back > 0 {
        text.push_str(&format!(", {held_back} that could happen in another order (--all shows them)"));
    }
    if ended.dropped > 0 {
        text.push_str(&format!(", {} more than could be kept", ended.dropped));
    }
    eprintln!(
        "raddle: {text}; the program had {} and {}",
        count(ended.threads as usize, "thread"),
        describe(ended.status)
    );
    if preloaded {
        eprintln!(
            "raddle: note: the program was not built by `raddle cc`: its memory accesses were not seen, so no race could be found"
        );
    }
}
