//! `raddle csp`: check, explore and format CSPM scripts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use indicatif::{HumanBytes, HumanCount, ProgressBar};
use raddle_csp::assertion::{Assertion, Property, SemanticModel};
use raddle_csp::engine::{CheckOptions, Outcome, Progress, render};
use raddle_csp::lang::diagnostic::{self, Diagnostic};
use raddle_csp::lang::eval::Limits;
use raddle_csp::lang::format::format;
use raddle_csp::lang::graph::{GRAPH_STATES_MAX, dot, folded, svg};
use raddle_csp::lang::load::{decode, encode};
use raddle_csp::lang::session::{Refused, Script};
use raddle_csp::lang::source::SourceMap;
use raddle_csp::process::EventId;
use serde_json::{Value, json};

use super::{Ctx, Exit};

mod trace;

/// Check refinement of CSP processes written in CSPM.
///
/// Examples:
///   raddle csp check corpus/csp/dining-philosophers.csp
///   raddle csp check model.csp --only 'deadlock free' --workers 2 --memory-limit 4G
///   raddle csp check model.csp --assert 2 --svg counterexample.svg
///   raddle csp states model.csp 'SYSTEM'
///   raddle csp graph model.csp 'PHIL(0)' --svg > phil.svg
///   raddle csp trace model.csp 'SYSTEM'
///   raddle csp trace model.csp --assert 2
///   raddle csp eval '{x * x | x <- {1..5}}'
///   raddle csp fmt --check *.csp
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Decide the assertions of a script. Exit 0: all hold, 1: some fail, 2: there is no answer.
    Check(CheckArgs),
    /// Say how large a process is: components, bits of a state, states and transitions.
    States(ProcessArgs),
    /// Draw the transition graph of a process.
    Graph(GraphArgs),
    /// Explore a process step by step.
    Trace(trace::TraceArgs),
    /// Evaluate an expression and say its type.
    Eval(EvalArgs),
    /// Bring scripts into one form; comments and line breaks stay.
    Fmt(FmtArgs),
}

#[derive(clap::Args)]
struct CheckArgs {
    /// The script.
    file: PathBuf,
    /// Check only the assertion with this number, counted from 1; may be repeated.
    #[arg(long = "assert", value_name = "N")]
    numbers: Vec<usize>,
    /// Check only assertions that contain this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Look for up to N different counterexamples of each assertion.
    #[arg(long = "all", value_name = "N", default_value_t = 1)]
    all: usize,
    /// Write a picture of the first counterexample to this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    effort: Effort,
    /// Print one JSON document instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Effort {
    /// Threads that explore.
    #[arg(long, value_name = "N", default_value_t = default_workers(), value_parser = super::at_least_one)]
    workers: usize,
    /// Keep states in memory up to this size, then on disk (e.g. 500M, 4G); three quarters of what is free if not given.
    /// Components have to fit, too; into a quarter of what is free if not given.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_limit: Option<u64>,
    /// Folder for states on disk; the system's temporary folder if not given.
    #[arg(long, value_name = "FOLDER")]
    spill_folder: Option<PathBuf>,
    /// Give up after this many states.
    #[arg(long, value_name = "N")]
    states_max: Option<u64>,
    /// Refuse components with more states than this; as many as fit in their share of the memory if not given.
    #[arg(long, value_name = "N")]
    component_states_max: Option<usize>,
    /// Look for a deadlock with as few events as possible, even if another one is found much earlier.
    #[arg(long)]
    shortest: bool,
    /// Visit every state in a check for deadlock, even if neighbouring components show that there is none.
    #[arg(long)]
    every_state: bool,
}

#[derive(clap::Args)]
struct ProcessArgs {
    /// The script.
    file: PathBuf,
    /// The process: an expression in the scope of the script.
    process: String,
    #[command(flatten)]
    effort: Effort,
    /// Print one JSON document instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct GraphArgs {
    /// The script.
    file: PathBuf,
    /// The process: an expression in the scope of the script.
    process: String,
    /// As DOT, for Graphviz (the default).
    #[arg(long, conflicts_with = "svg")]
    dot: bool,
    /// As SVG.
    #[arg(long)]
    svg: bool,
    /// Draw every state instead of one for each class of bisimilar states.
    #[arg(long)]
    raw: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::Args)]
struct EvalArgs {
    /// The expression.
    expression: String,
    /// Evaluate in the scope of this script.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print one JSON document instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct FmtArgs {
    /// The scripts; standard input to standard output if there are none.
    files: Vec<PathBuf>,
    /// Change nothing; list the files that would change and exit 1 if there are any.
    #[arg(long)]
    check: bool,
}

fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = digits.parse().map_err(|_| format!("`{text}` is not a size such as 500M or 4G"))?;
    let shift = match unit.trim_end_matches(['b', 'B', 'i']) {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return Err(format!("`{unit}` is not one of K, M, G, T")),
    };
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too much"))
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    match args.what {
        What::Check(args) => check(args, ctx),
        What::States(args) => states(args, ctx),
        What::Graph(args) => graph(args, ctx),
        What::Trace(args) => trace::trace(args, ctx),
        What::Eval(args) => eval(args, ctx),
        What::Fmt(args) => fmt(args),
    }
}

// ---- what the commands share

fn complain(sources: &SourceMap, diagnostics: &[Diagnostic], ctx: &Ctx) {
    eprint!("{}", diagnostic::render(sources, diagnostics, ctx.color_stderr()));
}

fn diagnostic_json(sources: &SourceMap, diagnostic: &Diagnostic) -> Value {
    let (line, column) = sources.line_column(diagnostic.span);
    json!({
        "stage": diagnostic.stage.name(),
        "message": diagnostic.message,
        "file": sources.file(diagnostic.span.file).name,
        "line": line,
        "column": column,
        "notes": diagnostic.notes,
    })
}

fn load(file: &Path, json: bool, ctx: &Ctx) -> Option<Script> {
    match Script::from_path(file, Limits::default()) {
        Ok(script) => {
            complain(script.sources(), script.warnings(), ctx);
            Some(script)
        }
        Err(Refused { sources, diagnostics }) => {
            if json {
                let errors: Vec<Value> = diagnostics.iter().map(|d| diagnostic_json(&sources, d)).collect();
                println!("{:#}", json!({ "file": file.display().to_string(), "errors": errors }));
            } else {
                complain(&sources, &diagnostics, ctx);
            }
            None
        }
    }
}

fn options(effort: &Effort, spinner: Option<&ProgressBar>) -> anyhow::Result<CheckOptions> {
    let cancel = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, cancel.clone())
        .context("cannot watch for Ctrl-C")?;
    let progress = spinner.cloned().map(|bar| {
        Arc::new(move |p: &Progress| {
            if p.compiling {
                bar.set_message(format!(
                    "compiling {}, {} states, {}",
                    p.component,
                    HumanCount(p.pairs),
                    HumanBytes(p.memory_bytes)
                ));
                bar.tick();
                return;
            }
            let rate = p.pairs as f64 / p.elapsed.as_secs_f64().max(0.001);
            bar.set_message(format!(
                "ply {}, {} states, {} states/s, {}",
                p.plies,
                HumanCount(p.pairs),
                HumanCount(rate as u64),
                HumanBytes(p.memory_bytes)
            ));
            bar.tick();
        }) as Arc<dyn Fn(&Progress) + Send + Sync>
    });
    let component_bytes = component_memory(effort.memory_limit);
    Ok(CheckOptions {
        workers: effort.workers,
        memory_limit_bytes: effort.memory_limit.or_else(|| Some(free_memory()? / 4 * 3)),
        spill_folder: effort.spill_folder.clone(),
        pairs_max: effort.states_max,
        leaf_states_max: effort.component_states_max.unwrap_or_else(|| component_states(component_bytes)),
        leaf_memory_max_bytes: component_bytes,
        shortest: effort.shortest,
        every_state: effort.every_state,
        progress,
        cancel: Some(cancel),
        ..CheckOptions::default()
    })
}

/// Room for components whatever the limit: they have to be in memory.
const COMPONENT_BYTES_MIN: u64 = 16 << 20;

/// What components, compressions and normal forms may take: the limit asked for, or a quarter of the memory that is free.
fn component_memory(limit: Option<u64>) -> u64 {
    let usual = CheckOptions::default().leaf_memory_max_bytes;
    let wanted = limit.or_else(|| Some(free_memory()? / 4)).unwrap_or(usual);
    wanted.max(COMPONENT_BYTES_MIN)
}

/// About what a state of a component takes while it is explored: its term, its transitions, its number.
const COMPONENT_STATE_BYTES: u64 = 256;

/// How many states a component may have in that much memory; never fewer than the library allows by itself.
fn component_states(bytes: u64) -> usize {
    let fitting = usize::try_from(bytes / COMPONENT_STATE_BYTES).unwrap_or(usize::MAX);
    fitting.max(CheckOptions::default().leaf_states_max)
}

/// The memory that is free now, where the system tells. Three quarters of it are for states: rather slow on disk than
/// killed.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

fn spinner(ctx: &Ctx) -> Option<ProgressBar> {
    ctx.progress().then(ProgressBar::new_spinner)
}

// ---- check

fn check(args: CheckArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    if args.all == 0 {
        bail!("--all takes at least 1");
    }
    let Some(mut script) = load(&args.file, args.json, ctx) else { return Ok(Exit::Trouble) };
    let texts: Vec<String> = script.assertions().map(|a| a.text.clone()).collect();
    let places: Vec<String> = script.assertions().map(|a| script.sources().place(a.span)).collect();
    if let Some(bad) = args.numbers.iter().find(|&&n| n == 0 || n > texts.len()) {
        bail!("{} has {} assertions; there is no assertion {bad}", args.file.display(), texts.len());
    }
    let chosen: Vec<usize> = (0..texts.len())
        .filter(|i| args.numbers.is_empty() || args.numbers.contains(&(i + 1)))
        .filter(|&i| args.only.as_ref().is_none_or(|only| texts[i].contains(only.as_str())))
        .collect();
    if chosen.is_empty() && (args.only.is_some() || !args.numbers.is_empty()) {
        bail!("no assertion of {} is chosen; `raddle csp check {0}` lists them", args.file.display());
    }
    let mut trouble = false;
    let mut prints = Vec::new();
    for (text, value) in script.prints() {
        match value {
            Ok(value) if args.json => prints.push(json!({ "text": text, "value": value })),
            Ok(value) => println!("{text} = {value}"),
            Err(diagnostic) => {
                trouble = true;
                if args.json {
                    prints.push(
                        json!({ "text": text, "error": diagnostic_json(script.sources(), &diagnostic) }),
                    );
                } else {
                    complain(script.sources(), &[diagnostic], ctx);
                }
            }
        }
    }
    let bar = spinner(ctx);
    let mut options = options(&args.effort, bar.as_ref())?;
    options.counterexamples = args.all;
    let (mut failed, mut drawn) = (0, false);
    let mut results = Vec::new();
    for i in chosen {
        let head = json!({ "number": i + 1, "text": texts[i], "place": places[i] });
        let result = script.check(i, &options);
        if let Some(bar) = &bar {
            bar.set_message("");
        }
        match result {
            Ok(outcome) => {
                failed += usize::from(!outcome.holds);
                if let (Some(path), Some(first), false) = (&args.svg, outcome.counterexamples.first(), drawn)
                {
                    let picture = render::svg(&script.arena().events, first);
                    std::fs::write(path, picture)
                        .with_context(|| format!("cannot write {}", path.display()))?;
                    drawn = true;
                }
                if args.json {
                    let mut entry = render::outcome_json(&script.arena().events, &outcome);
                    merge(&mut entry, head);
                    results.push(entry);
                } else {
                    show_outcome(&script, i, &texts[i], &outcome, ctx);
                }
            }
            Err(diagnostic) => {
                trouble = true;
                if args.json {
                    let mut entry = json!({ "error": diagnostic_json(script.sources(), &diagnostic) });
                    merge(&mut entry, head);
                    results.push(entry);
                } else {
                    println!("{}: {} {}", i + 1, paint("no answer", "33", ctx), texts[i]);
                    complain(script.sources(), &[diagnostic], ctx);
                }
            }
        }
        if options.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
            break;
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if args.json {
        let file = args.file.display().to_string();
        println!("{:#}", json!({ "file": file, "prints": prints, "assertions": results, "errors": [] }));
    } else if texts.is_empty() && !ctx.quiet {
        eprintln!("raddle: {} has no assertions", args.file.display());
    }
    if args.svg.is_some() && !drawn && !ctx.quiet {
        eprintln!("raddle: no picture was written, because there is no counterexample");
    }
    Ok(if trouble {
        Exit::Trouble
    } else if failed > 0 {
        Exit::Found
    } else {
        Exit::Clean
    })
}

fn merge(entry: &mut Value, head: Value) {
    if let (Value::Object(entry), Value::Object(head)) = (entry, head) {
        entry.extend(head);
    }
}

fn paint(text: &str, color: &str, ctx: &Ctx) -> String {
    if ctx.color_stdout() { format!("\x1b[1;{color}m{text}\x1b[0m") } else { text.to_owned() }
}

fn show_outcome(script: &Script, index: usize, text: &str, outcome: &Outcome, ctx: &Ctx) {
    let verdict = if outcome.holds { paint("holds", "32", ctx) } else { paint("fails", "31", ctx) };
    println!("{}: {verdict} {text}", index + 1);
    if !ctx.quiet {
        for (i, counterexample) in outcome.counterexamples.iter().enumerate() {
            if outcome.counterexamples.len() > 1 {
                println!("  counterexample {}", i + 1);
            }
            for line in render::text(&script.arena().events, counterexample).lines() {
                println!("    {line}");
            }
        }
    }
    if ctx.verbose > 0 {
        let s = &outcome.statistics;
        println!(
            "    {} states, {} transitions, {} plies, {} components, {} bytes a state, {}, compiled in {:.2?}, explored in {:.2?}",
            HumanCount(s.pairs),
            HumanCount(s.transitions),
            s.plies,
            s.components,
            s.state_bytes,
            HumanBytes(s.memory_bytes_max),
            s.compile_time,
            s.explore_time
        );
    }
}

// ---- states, graph

fn states(args: ProcessArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let Some(mut script) = load(&args.file, args.json, ctx) else { return Ok(Exit::Trouble) };
    let process = match script.process(&args.process) {
        Ok(process) => process,
        Err(diagnostics) => return refuse(&script, &args.file, &diagnostics, args.json, ctx),
    };
    let bar = spinner(ctx);
    let options = options(&args.effort, bar.as_ref())?;
    let model = script.with_checker(&options, |checker| {
        let model = checker.compile(process)?;
        let sizes: Vec<(String, usize)> =
            raddle_csp::engine::check::components(&model).into_iter().map(|c| (c.name, c.states)).collect();
        // A specification that allows everything makes the search visit every state.
        let arena = checker.arena();
        let events: Vec<EventId> = arena.events.ids().collect();
        let everything = arena.set_of(events);
        let (run, skip) = (arena.run(everything), arena.skip());
        let spec = arena.interrupt(run, skip);
        let goal =
            Assertion::new(Property::Refines { model: SemanticModel::Traces, spec, implementation: process });
        Ok((sizes, checker.check(&goal)?))
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let (components, outcome) = match model {
        Ok(result) => result,
        Err(error) => {
            let diagnostic = script.explain(error, script.start());
            return refuse(&script, &args.file, &[diagnostic], args.json, ctx);
        }
    };
    let s = &outcome.statistics;
    if args.json {
        let parts: Vec<Value> = components.iter().map(|(n, s)| json!({ "name": n, "states": s })).collect();
        let mut out = render::outcome_json(&script.arena().events, &outcome)["statistics"].clone();
        merge(&mut out, json!({ "process": args.process, "leaves": parts }));
        println!("{out:#}");
    } else {
        println!("{}", args.process);
        println!(
            "  {} states, {} transitions, {} plies",
            HumanCount(s.pairs),
            HumanCount(s.transitions),
            s.plies
        );
        println!("  {} bits in {} bytes a state", s.state_bits, s.state_bytes);
        println!("  {} components", components.len());
        for (name, states) in &components {
            println!("    {} states  {name}", HumanCount(*states as u64));
        }
    }
    Ok(Exit::Clean)
}

fn refuse(script: &Script, file: &Path, found: &[Diagnostic], json: bool, ctx: &Ctx) -> anyhow::Result<Exit> {
    if json {
        let errors: Vec<Value> = found.iter().map(|d| diagnostic_json(script.sources(), d)).collect();
        println!("{:#}", json!({ "file": file.display().to_string(), "errors": errors }));
    } else {
        complain(script.sources(), found, ctx);
    }
    Ok(Exit::Trouble)
}

fn graph(args: GraphArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let Some(mut script) = load(&args.file, false, ctx) else { return Ok(Exit::Trouble) };
    let process = match script.process(&args.process) {
        Ok(process) => process,
        Err(diagnostics) => return refuse(&script, &args.file, &diagnostics, false, ctx),
    };
    let machine = match script.with_checker(&CheckOptions::default(), |c| c.machine(process, !args.raw)) {
        Ok(machine) => machine,
        Err(error) => {
            let diagnostic = script.explain(error, script.start());
            return refuse(&script, &args.file, &[diagnostic], false, ctx);
        }
    };
    let (machine, left_out) = folded(&machine, GRAPH_STATES_MAX);
    let mut title = args.process.clone();
    if left_out > 0 {
        title = format!("{title} (state {GRAPH_STATES_MAX} stands for {left_out} more)");
        if !ctx.quiet {
            eprintln!(
                "raddle: {} has {} states; the {left_out} farthest are drawn as one",
                args.process,
                GRAPH_STATES_MAX + left_out
            );
        }
    }
    let draw = if args.svg { svg } else { dot };
    let text = draw(&script.arena().events, &machine, &title);
    match &args.output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?
        }
        None => print!("{text}"),
    }
    Ok(Exit::Clean)
}

// ---- eval, fmt

fn eval(args: EvalArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let script = match &args.file {
        Some(file) => load(file, args.json, ctx),
        None => Script::from_text("<none>", "").ok(),
    };
    let Some(mut script) = script else { return Ok(Exit::Trouble) };
    match script.eval(&args.expression) {
        Ok((value, ty)) if args.json => println!("{:#}", json!({ "value": value, "type": ty })),
        Ok((value, ty)) if ctx.quiet => {
            let _ = ty;
            println!("{value}");
        }
        Ok((value, ty)) => println!("{value} :: {ty}"),
        Err(diagnostics) => {
            let file = args.file.unwrap_or_default();
            return refuse(&script, &file, &diagnostics, args.json, ctx);
        }
    }
    Ok(Exit::Clean)
}

fn fmt(args: FmtArgs) -> anyhow::Result<Exit> {
    if args.files.is_empty() {
        let text = std::io::read_to_string(std::io::stdin()).context("cannot read standard input")?;
        let formatted = format(&text);
        if args.check {
            return Ok(if formatted == text { Exit::Clean } else { Exit::Found });
        }
        print!("{formatted}");
        return Ok(Exit::Clean);
    }
    let mut changed = 0;
    for path in &args.files {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let text = decode(bytes.clone());
        let formatted = format(&text);
        if formatted == text {
            continue;
        }
        changed += 1;
        if args.check {
            println!("{}", path.display());
        } else {
            std::fs::write(path, encode(&formatted, &bytes))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(if args.check && changed > 0 { Exit::Found } else { Exit::Clean })
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes() {
        assert_eq!(size("512"), Ok(512));
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("500MiB"), Ok(500 << 20));
        assert!(size("many").is_err());
        assert!(size("99999999999T").is_err());
    }
}
