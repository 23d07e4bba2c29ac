//! `raddle detect`: runs detectors over a recorded or converted trace.

use super::{Ctx, Exit};
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use raddle_detect::detectors::avio::{Avio, AvioFacts};
use raddle_detect::detectors::contracts;
use raddle_detect::detectors::order::{Order, OrderFacts};
use raddle_detect::region::{FunctionPlaces, Regions};
use raddle_detect::registry::{ENTRIES, Settings, create, find};
use raddle_detect::render::{Namer, frame, render};
use raddle_detect::run::run as run_detectors;
use raddle_detect::{Detector, Report, witness};
use raddle_findings::{Finding, Frame, deduplicate, pattern::Pattern};
use raddle_report::{Sources, Style, render as show};
use raddle_trace::open::OpenTrace;
use raddle_trace::std_format::StdNames;
use raddle_trace::symbols::Symbolizer;
use raddle_trace::{Addr, ContextIx, EventSource, LocationIx, MemoryTrace, ObjectId, Tables};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs detectors over a trace: one that `raddle record` made, or RAPID's STD text.
///
/// Sound detectors give predicted findings with a witness, imprecise ones give suspicions; `--list` has the table.
/// Exit status: 0 nothing found, 1 at least one finding, 2 usage or environment error.
///
/// Examples:
///   raddle detect --list
///   raddle detect run.trace --with fasttrack,spd
///   raddle detect trace.std --with syncp --witness out/
///   raddle detect run.trace --with velodrome --regions critical-sections
///   raddle detect run.trace --with avio,order --train good1.trace --train good2.trace
///   raddle detect run.trace --with contracts --contracts map.contract
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The trace.
    #[arg(value_name = "TRACE", required_unless_present = "list")]
    trace: Option<PathBuf>,
    /// Detectors to run, with commas between them; `all` for all that need no further file.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "syncp,spd,waitfor,blocked,missedsignal"
    )]
    with: Vec<String>,
    /// Print the table of detectors.
    #[arg(long)]
    list: bool,
    /// What is meant to be atomic: what RADDLE_ATOMIC_BEGIN/END mark, or critical sections.
    #[arg(long, value_enum, default_value = "marked")]
    regions: RegionKind,
    /// Functions that are meant to be atomic, by name; `*` stands for anything. Instead of --regions.
    #[arg(long, value_name = "PATTERN")]
    functions: Vec<String>,
    /// A trace of a good run, to learn from (avio, order). May be repeated.
    #[arg(long, value_name = "TRACE")]
    train: Vec<PathBuf>,
    /// File with pairs `LOCATION < LOCATION` that must come in this order (order).
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// File with contracts (contracts).
    #[arg(long, value_name = "FILE")]
    contracts: Option<PathBuf>,
    /// Address ranges that belong together, as FROM..TO,FROM..TO in hexadecimal; one option a set (atomicsets).
    #[arg(long, value_name = "RANGES")]
    atomic_set: Vec<String>,
    /// Steps without progress that count as non-progress (nonprogress).
    #[arg(long, value_name = "N")]
    steps_bound: Option<u64>,
    /// Turns of others that count as starvation (nonprogress).
    #[arg(long, value_name = "N")]
    turns_bound: Option<u64>,
    /// Write the schedules of findings that have a witness into this folder.
    #[arg(long, value_name = "DIR")]
    witness: Option<PathBuf>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RegionKind {
    Marked,
    CriticalSections,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    if args.list {
        print!("{}", table());
        return Ok(Exit::Clean);
    }
    let path = args.trace.as_deref().context("no trace was given")?;
    let names = chosen(&args)?;
    let settings = settings(&args, path, &names)?;
    let mut detectors: Vec<Box<dyn Detector>> = Vec::new();
    for name in &names {
        detectors.push(create(name, &settings).with_context(|| unknown(name))?);
    }
    let mut source = OpenTrace::open(path)?;
    let bar = progress_bar(ctx, &source);
    let outcome = run_detectors(&mut source, &mut detectors, &mut |events, progress| {
        if let Some((done, total)) = progress {
            bar.set_length(total);
            bar.set_position(done);
        }
        bar.set_message(format!("{:.1} million events", events as f64 / 1e6));
        true
    })?;
    bar.finish_and_clear();
    drop(detectors);

    let mut namer = ProgramNames::new(&source);
    let mut findings = Vec::new();
    let mut reordered: Option<MemoryTrace> = None;
    for report in &outcome.reports {
        let mut finding = render(report, source.tables(), &outcome.names, &mut namer);
        if let (Some(folder), true) = (&args.witness, report.witness.is_some()) {
            if reordered.is_none() {
                reordered = Some(MemoryTrace::read(&mut OpenTrace::open(path)?)?);
            }
            if let Some(trace) = &reordered {
                finding.schedule = write_witness(report, &finding, trace, folder)?;
            }
        }
        findings.push(finding);
    }
    let findings = deduplicate(findings);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&findings)?);
    } else {
        let mut sources = Sources::new(Vec::new());
        let style = Style { color: ctx.color_stdout(), ..Style::default() };
        for finding in &findings {
            println!("{}", show(finding, &mut sources, style));
        }
        if !ctx.quiet {
            tell(&findings, &outcome, &names, source.cut());
        }
    }
    Ok(if findings.is_empty() { Exit::Clean } else { Exit::Found })
}

fn tell(findings: &[Finding], outcome: &raddle_detect::run::Outcome, names: &[String], cut: Option<String>) {
    let count = findings.len();
    let s = if count == 1 { "" } else { "s" };
    eprintln!("raddle: {count} finding{s} in {} events, by {}", outcome.events, names.join(", "));
    if outcome.truncated > 0 {
        eprintln!(
            "raddle: note: {} accesses of more than 1 MiB were followed by their first MiB",
            outcome.truncated
        );
    }
    if let Some(cut) = cut {
        eprintln!("raddle: note: the trace does not cover the whole run: {cut}");
    }
}

fn unknown(name: &str) -> String {
    format!("there is no detector `{name}`; `raddle detect --list` has the table")
}

/// The detectors that were asked for.
fn chosen(args: &Args) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for name in &args.with {
        if name == "all" {
            names.extend(ENTRIES.iter().map(|entry| entry.name.to_owned()));
            continue;
        }
        if find(name).is_none() {
            bail!(unknown(name));
        }
        names.push(name.clone());
    }
    let all = args.with.iter().any(|name| name == "all");
    let has_order = !args.train.is_empty() || args.pairs.is_some();
    if all {
        names.retain(|name| {
            (name != "contracts" || args.contracts.is_some()) && (name != "order" || has_order)
        });
    }
    if names.iter().any(|name| name == "contracts") && args.contracts.is_none() {
        bail!("`contracts` needs a file of contracts: --contracts FILE");
    }
    if names.iter().any(|name| name == "order") && !has_order {
        bail!("`order` needs traces of good runs (--train TRACE) or pairs (--pairs FILE)");
    }
    Ok(names)
}

fn settings(args: &Args, path: &Path, names: &[String]) -> anyhow::Result<Settings> {
    let mut settings = Settings {
        regions: match args.regions {
            RegionKind::Marked => Regions::Marked,
            RegionKind::CriticalSections => Regions::CriticalSections,
        },
        steps_bound: args.steps_bound,
        turns_bound: args.turns_bound,
        ..Settings::default()
    };
    if !args.functions.is_empty() {
        settings.regions = functions(path, &args.functions)?;
    }
    if let Some(file) = &args.contracts {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        settings.contracts = contracts::parse(&text).with_context(|| file.display().to_string())?;
    }
    if let Some(file) = &args.pairs {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let pairs =
            OrderFacts::parse(&text).map_err(|problem| anyhow::anyhow!("{}: {problem}", file.display()))?;
        settings.order = Some(pairs);
    }
    for set in &args.atomic_set {
        settings.atomic_sets.0.push(ranges(set)?);
    }
    for train in &args.train {
        learn(train, names, &mut settings)?;
    }
    Ok(settings)
}

/// Reads `1000..1010,2000..2008`.
fn ranges(text: &str) -> anyhow::Result<Vec<std::ops::Range<u64>>> {
    let number = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
    let range = |text: &str| {
        let (from, to) = text.split_once("..")?;
        Some(number(from)?..number(to)?)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    ranges.with_context(|| format!("`{text}` is not a list of address ranges such as 1000..1010,2000..2008"))
}

/// Learns from a good run.
fn learn(path: &Path, names: &[String], settings: &mut Settings) -> anyhow::Result<()> {
    let trace = MemoryTrace::read(&mut OpenTrace::open(path)?)?;
    if names.iter().any(|name| name == "avio") {
        let mut avio = Avio::new(None);
        raddle_detect::run_on(&trace, &mut avio);
        settings.avio.get_or_insert_with(AvioFacts::default).add(avio.facts(&trace.tables));
    }
    if names.iter().any(|name| name == "order") {
        let mut order = Order::new(None);
        raddle_detect::run_on(&trace, &mut order);
        settings.order.get_or_insert_with(OrderFacts::default).add(order.facts(&trace.tables));
    }
    Ok(())
}

/// Where the functions with these names are active.
fn functions(path: &Path, patterns: &[String]) -> anyhow::Result<Regions> {
    let patterns: Vec<Pattern> = patterns.iter().map(|text| Pattern::new(text)).collect();
    let mut source = OpenTrace::open(path)?;
    let mut symbols: Option<Symbolizer> = None;
    let places = FunctionPlaces::find(&mut source, &mut |tables, location| {
        let symbols = symbols.get_or_insert_with(|| Symbolizer::new(&tables.modules));
        let frames = symbols.location(tables.location(location));
        frames.iter().filter_map(|frame| frame.function.as_deref()).any(|function| {
            let bare = function.split('(').next().unwrap_or(function);
            patterns.iter().any(|pattern| pattern.matches(function) || pattern.matches(bare))
        })
    })?;
    if places.locations.is_empty() && places.contexts.is_empty() {
        bail!("no event of the trace lies in a function with such a name; see `raddle trace dump`");
    }
    Ok(Regions::Functions(Arc::new(places)))
}

fn write_witness(
    report: &Report,
    finding: &Finding,
    trace: &MemoryTrace,
    folder: &Path,
) -> anyhow::Result<Option<String>> {
    let about = format!("{} {}", raddle_findings::kind_name(finding.kind), finding.id);
    let Some(schedule) = witness::schedule(report, trace, &about) else { return Ok(None) };
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{}.schedule", finding.id));
    std::fs::write(&path, schedule.to_text()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Some(path.display().to_string()))
}

/// The table of detectors.
fn table() -> String {
    let mut text = format!("{:<17} {:<15} {:<10} {:<20} about\n", "name", "class", "grade", "promise");
    for entry in ENTRIES {
        text.push_str(&format!(
            "{:<17} {:<15} {:<10} {:<20} {}\n",
            entry.name,
            entry.class,
            entry.grade,
            entry.promise.text(),
            entry.about
        ));
    }
    text
}

pub(super) fn progress_bar(ctx: &Ctx, source: &dyn EventSource) -> ProgressBar {
    if !ctx.progress() {
        return ProgressBar::hidden();
    }
    let total = source.progress().map_or(0, |(_, total)| total);
    let style = ProgressStyle::with_template("{spinner} {bar:30} {percent}% {msg} [{elapsed}, {eta} left]")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style)
}

/// Names from symbols for recorded traces, from the text for converted ones.
struct ProgramNames {
    symbols: Symbolizer,
    std: Option<StdNames>,
}

impl ProgramNames {
    fn new(source: &OpenTrace) -> ProgramNames {
        let std = match source {
            OpenTrace::Std(reader) => Some(reader.names()),
            OpenTrace::Raddle(_) => None,
        };
        ProgramNames { symbols: Symbolizer::new(&source.tables().modules), std }
    }
}

impl Namer for ProgramNames {
    fn variable(&mut self, addr: Addr) -> String {
        match &self.std {
            Some(names) => names.variable(addr).unwrap_or("?").to_owned(),
            None => self.symbols.describe(addr.0),
        }
    }

    fn object(&mut self, object: ObjectId) -> String {
        match &self.std {
            Some(names) => names.object(object).unwrap_or("?").to_owned(),
            None => self.symbols.describe(object.0),
        }
    }

    fn stack(&mut self, tables: &Tables, location: LocationIx, context: ContextIx) -> Vec<Frame> {
        if self.std.is_some() {
            return std::iter::once(location)
                .chain(tables.stack(context))
                .map(|l| frame(tables, l))
                .collect();
        }
        let frames = self.symbols.stack(tables, location, context);
        let told = |f: raddle_trace::symbols::CodeFrame| Frame {
            function: f.function,
            file: f.file,
            line: f.line,
            column: f.column,
            raw: f.raw,
        };
        frames.into_iter().map(told).collect()
    }
}
