//! `raddle record`: run a program once and keep a trace of what its threads did.

use super::{Ctx, Exit, show_standing};
use crate::compiler::Refusal;
use crate::launch::demo;
use crate::launch::following::Process;
use crate::launch::process::{describe, shell_status};
use crate::launch::recording::{Recording, record};
use crate::launch::target::{Target, TreeArgs};
use anyhow::Context;
use raddle_explore::Strategy;
use raddle_trace::region::{MessageLevel, RegionConfig};
use raddle_wire::region::option;
use std::path::PathBuf;

/// Runs a program once and keeps a trace of what its threads did.
///
/// The program's input, output and exit status are its own (a signal N becomes status 128+N). A program that was not built
/// by `raddle cc` is recorded too, but only its synchronisation.
///
/// Examples:
///   raddle record bank.c                     compile bank.c, run it, write bank.trace
///   raddle record -o t.trace a.c b.cpp -- 5  two files; the program gets the argument 5
///   raddle record -- ./server --port 80      a program built by `raddle cc`
///   raddle record -- /usr/bin/pbzip2 -k f    an unmodified program
///   raddle record --demo --no-calls ioctl -- ./game    a demo that leaves the graphics card alone
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tree: TreeArgs,
    /// Where the trace goes (default: NAME.trace in this folder).
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    what: What,
    /// Record a demo instead: what `raddle replay` needs to give the run again, with the results of system calls and with
    /// signals (docs/demos.md). --strategy chooses who goes next (default: queue).
    #[arg(long, conflicts_with_all = ["sync_only", "from_start", "keep_redundant", "no_allocations"])]
    demo: bool,
    /// With --demo: give the program its memory at addresses that depend on nothing but its own order of allocations.
    #[arg(long, requires = "demo")]
    stable_memory: bool,
    /// With --demo: let threads run one at a time also between their operations. A program with data races is then given
    /// again exactly; strategies with a seed always do it.
    #[arg(long, requires = "demo")]
    one_at_a_time: bool,
    /// With --demo: hold the results of these functions only (docs/demos.md lists them); the others are really called in a
    /// replay too.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "demo",
        conflicts_with = "no_calls"
    )]
    calls: Vec<String>,
    /// With --demo: do not hold the results of these functions.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', requires = "demo")]
    no_calls: Vec<String>,
    /// Print the summary as JSON (on standard error: standard output is the program's).
    #[arg(long)]
    json: bool,
}

/// What is recorded.
#[derive(clap::Args, Clone, Debug)]
pub struct What {
    /// Record synchronisation only, no memory accesses.
    #[arg(long)]
    pub sync_only: bool,
    /// Record memory accesses also before the first thread is created.
    #[arg(long)]
    pub from_start: bool,
    /// Record every access, also those that repeat an earlier one of the same thread segment.
    #[arg(long)]
    pub keep_redundant: bool,
    /// Do not record allocations.
    #[arg(long)]
    pub no_allocations: bool,
    /// Decide which thread goes next, as `raddle explore --strategy` does (default: the threads run free).
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Option<Strategy>,
    /// Seed of the run's one source of randomness.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// Decisions of a run that `pct` and `delay` plan for when nothing is known.
pub const STEPS_UNKNOWN: u64 = 200;

impl What {
    pub fn config(&self) -> RegionConfig {
        let mut options = 0;
        for (wanted, bit) in [
            (!self.sync_only, option::MEMORY),
            (self.from_start, option::BEFORE_FIRST_FORK),
            (self.keep_redundant, option::KEEP_REDUNDANT),
            (!self.no_allocations, option::ALLOCATIONS),
        ] {
            if wanted {
                options |= bit;
            }
        }
        let mut config = RegionConfig { options, seed: self.seed, ..RegionConfig::default() };
        if let Some(strategy) = self.strategy {
            config.steer = strategy.steer();
            config.options |= strategy.options();
            (config.strategy, config.parameters) = strategy.encode(STEPS_UNKNOWN);
        }
        config
    }
}

/// Functions whose results the demo does not hold.
fn left_out(args: &Args) -> Result<Vec<String>, Refusal> {
    if args.calls.is_empty() {
        return Ok(args.no_calls.clone());
    }
    if let Some(unknown) = args.calls.iter().find(|name| raddle_wire::calls::index_of(name).is_none()) {
        return Err(Refusal(format!(
            "a demo knows no function `{unknown}`; it knows {}",
            raddle_wire::calls::CALLS.join(", ")
        )));
    }
    let all = raddle_wire::calls::CALLS.iter().map(|&name| name.to_owned());
    Ok(all.filter(|name| !args.calls.contains(name)).collect())
}

/// Records a demo.
fn record_demo(args: &Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let strategy = args.what.strategy.unwrap_or(Strategy::Queue);
    if matches!(strategy, Strategy::Noise(_)) {
        return Err(Refusal("noise lets the threads run free; a demo needs another strategy".into()).into());
    }
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.demo", args.target.name())));
    let launch = args.target.launch()?;
    let settings = demo::Settings {
        strategy,
        seed: args.what.seed,
        stable_memory: args.stable_memory,
        steps: None,
        one_at_a_time: args.one_at_a_time || strategy.is_deterministic(),
        left_out: left_out(args)?,
    };
    let (demo, status, messages) = demo::record(&launch, &settings)?;
    let bytes = demo.to_bytes().with_context(|| format!("cannot pack {}", path.display()))?;
    std::fs::write(&path, &bytes).with_context(|| format!("cannot write {}", path.display()))?;
    for message in messages.iter().filter(|message| message.level != MessageLevel::Note && !ctx.quiet) {
        eprintln!("raddle: warning: {}", message.text);
    }
    let outside: usize = demo.payloads.iter().map(Vec::len).sum();
    if args.json {
        let about = serde_json::json!({ "demo": path, "bytes": bytes.len(), "steps": demo.steps.len(),
            "calls": demo.payloads.len(), "outside_bytes": outside, "threads": demo.about.threads.len() });
        eprintln!("{about}");
    } else if !ctx.quiet {
        eprintln!(
            "raddle: {}: {} bytes; {} steps of {} threads, {} results and signals from outside ({outside} bytes); the program {}{}",
            path.display(),
            bytes.len(),
            demo.steps.len(),
            demo.about.threads.len(),
            demo.payloads.len(),
            if demo.about.deadlock { "was ended in a deadlock: " } else { "" },
            describe(status)
        );
    }
    Ok(Exit::Status(shell_status(status)))
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    if args.demo {
        return record_demo(&args, ctx);
    }
    let path = args.output.unwrap_or_else(|| PathBuf::from(format!("{}.trace", args.target.name())));
    let launch = args.target.launch()?.with_tree(&args.tree, &args.target);
    let recorded = record(&launch, &args.what.config(), &path, ctx)?;
    for recording in &recorded.recordings {
        show_messages(recording, ctx);
        if args.json {
            eprintln!("{}", json(recording));
        } else if !ctx.quiet || recording.summary.ending.cut.is_some() {
            eprintln!("raddle: {}", sentence(recording));
            show_standing(recording.halt, recording.end.as_ref(), &recording.modules);
        }
    }
    if let Some(followed) = recorded.followed.filter(|_| !ctx.quiet && !args.json) {
        eprintln!("raddle: {followed}");
    }
    Ok(Exit::Status(shell_status(recorded.status)))
}

/// What the runtime had to say. Notes are for those who ask.
pub fn show_messages(recording: &Recording, ctx: &Ctx) {
    for message in &recording.summary.messages {
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

pub fn sentence(recording: &Recording) -> String {
    let summary = &recording.summary;
    let cut = summary.ending.cut.as_ref().map_or(String::new(), |why| format!("; the trace is cut: {why}"));
    let who = recording.process.as_ref().map_or_else(|| "the program".to_owned(), Process::describe);
    format!(
        "{}: {} events of {} threads, {} KiB; {who} {}{cut}",
        summary.path.display(),
        summary.ending.events,
        summary.ending.threads,
        summary.written.bytes.div_ceil(1024),
        recording.ending()
    )
}

fn json(recording: &Recording) -> String {
    use std::os::unix::process::ExitStatusExt;
    let summary = &recording.summary;
    serde_json::json!({
        "trace": summary.path,
        "events": summary.ending.events,
        "threads": summary.ending.threads,
        "bytes": summary.written.bytes,
        "cut": summary.ending.cut,
        "exit_status": recording.status.code(),
        "signal": recording.status.signal(),
        "messages": summary.messages,
        "process": recording.process.as_ref().map(|process| process.pid),
        "command": recording.process.as_ref().map(|process| process.launch.words()),
    })
    .to_string()
}
