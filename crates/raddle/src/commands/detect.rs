//! `raddle detect`: runs detectors over a recorded or converted trace.

use super::{Ctx, Exit};
use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use raddle_detect::detectors::avio::{Avio, AvioFacts};
use raddle_detect::detectors::contracts;
use raddle_detect::detectors::order::{GivenPlace, Order, OrderFacts, parse_pairs};
use raddle_detect::region::{FunctionPlaces, Regions};
use raddle_detect::registry::{ENTRIES, Entry, Settings, create, find, table};
use raddle_detect::render::{Namer, frame, render};
use raddle_detect::run::run as run_detectors;
use raddle_detect::training::{PlaceName, place_name};
use raddle_detect::{Detector, witness};
use raddle_findings::{Finding, Frame, deduplicate, pattern::Pattern};
use raddle_report::{Sources, Style, render as show};
use raddle_trace::open::OpenTrace;
use raddle_trace::schedule::Schedule;
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
    /// File with pairs `PLACE < PLACE` that must come in this order, each FILE:LINE or an STD location (order).
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
    /// Print the findings, or the table, as JSON.
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
        if args.json {
            println!("{}", table_json()?);
        } else {
            print!("{}", table());
        }
        return Ok(Exit::Clean);
    }
    let path = args.trace.as_deref().context("no trace was given")?;
    let names = chosen(&args.with, args.contracts.is_some(), !args.train.is_empty() || args.pairs.is_some())?;
    let settings = settings(&args, path, &names)?;
    let mut detected = detect(path, &names, &settings, args.witness.is_some(), ctx)?;
    if let Some(folder) = &args.witness {
        for (finding, schedule) in &mut detected.findings {
            if let Some(schedule) = schedule {
                finding.schedule = Some(write_schedule(schedule, &finding.id, folder)?);
            }
        }
    }
    let findings = deduplicate(detected.findings.into_iter().map(|(finding, _)| finding).collect());
    if args.json {
        println!("{}", serde_json::to_string_pretty(&findings)?);
    } else {
        let mut sources = Sources::new(Vec::new());
        let style = Style { color: ctx.color_stdout(), ..Style::default() };
        for finding in &findings {
            println!("{}", show(finding, &mut sources, style));
        }
        if !ctx.quiet {
            let count = findings.len();
            let s = if count == 1 { "" } else { "s" };
            eprintln!("raddle: {count} finding{s} in {} events, by {}", detected.events, names.join(", "));
            for note in &detected.notes {
                eprintln!("raddle: note: {note}");
            }
        }
    }
    Ok(if findings.is_empty() { Exit::Clean } else { Exit::Found })
}

/// What detectors found in a trace.
pub(crate) struct Detected {
    /// Findings, each with the schedule of its witness if it has one and schedules were asked for.
    pub findings: Vec<(Finding, Option<Schedule>)>,
    pub events: u64,
    /// What a reader has to know to judge the findings.
    pub notes: Vec<String>,
}

/// Runs detectors over a trace.
pub(crate) fn detect(
    path: &Path,
    names: &[String],
    settings: &Settings,
    schedules: bool,
    ctx: &Ctx,
) -> anyhow::Result<Detected> {
    let mut detectors: Vec<Box<dyn Detector>> = Vec::new();
    for name in names {
        detectors.push(create(name, settings).with_context(|| unknown(name))?);
    }
    let mut source = OpenTrace::open(path)?;
    let bar = progress_bar(ctx, &source);
    let outcome = run_detectors(&mut source, &mut detectors, &mut |events, progress| {
        if let Some((done, total)) = progress {
            bar.set_length(total);
            bar.set_position(done);
        }
        let million = events as f64 / 1e6;
        let speed = million / bar.elapsed().as_secs_f64().max(1e-3);
        bar.set_message(format!("{million:.1} million events, {speed:.1} million/s"));
        true
    })?;
    bar.finish_and_clear();
    drop(detectors);

    let mut namer = ProgramNames::new(&source);
    let wanted = schedules && outcome.reports.iter().any(|report| report.witness.is_some());
    let trace = wanted.then(|| MemoryTrace::read(&mut OpenTrace::open(path)?)).transpose()?;
    let findings = outcome.reports.iter().map(|report| {
        let finding = render(report, source.tables(), &outcome.names, &mut namer);
        let about = format!("{} {}", raddle_findings::kind_name(finding.kind), finding.id);
        let schedule = trace.as_ref().and_then(|trace| witness::schedule(report, trace, &about));
        (finding, schedule)
    });
    let findings = findings.collect();
    let mut notes = Vec::new();
    if outcome.truncated > 0 {
        let count = outcome.truncated;
        notes.push(format!("{count} accesses of more than 1 MiB were followed by their first MiB"));
    }
    notes.extend(source.cut().map(|cut| format!("the trace does not cover the whole run: {cut}")));
    Ok(Detected { findings, events: outcome.events, notes })
}

fn unknown(name: &str) -> String {
    format!("there is no detector `{name}`; `raddle detect --list` has the table")
}

/// The detectors that were asked for; `all` stands for those that have what they need.
pub(crate) fn chosen(with: &[String], has_contracts: bool, has_order: bool) -> anyhow::Result<Vec<String>> {
    let ready = |name: &str| (name != "contracts" || has_contracts) && (name != "order" || has_order);
    let mut names: Vec<String> = Vec::new();
    for name in with {
        if name == "all" {
            names.extend(ENTRIES.iter().map(|entry| entry.name.to_owned()).filter(|name| ready(name)));
            continue;
        }
        if find(name).is_none() {
            bail!(unknown(name));
        }
        names.push(name.clone());
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    match names.iter().find(|name| !ready(name)).map(String::as_str) {
        Some("contracts") => bail!("`contracts` needs a file of contracts: raddle detect --contracts FILE"),
        Some(_) => bail!("`order` needs good runs or pairs: raddle detect --train TRACE, --pairs FILE"),
        None => Ok(names),
    }
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
        let pairs = parse_pairs(&text).map_err(|problem| anyhow::anyhow!("{}: {problem}", file.display()))?;
        settings.order = Some(given_orders(&pairs, path)?);
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

/// The pairs that a user gave, in the places of this trace.
fn given_orders(pairs: &[(GivenPlace, GivenPlace)], path: &Path) -> anyhow::Result<OrderFacts> {
    let mut lines: Vec<(Option<String>, Option<u32>, PlaceName)> = Vec::new();
    if pairs.iter().any(|(a, b)| [a, b].iter().any(|place| matches!(place, GivenPlace::Line(..)))) {
        let mut symbols: Option<Symbolizer> = None;
        FunctionPlaces::find(&mut OpenTrace::open(path)?, &mut |tables, location| {
            let symbols = symbols.get_or_insert_with(|| Symbolizer::new(&tables.modules));
            for frame in symbols.location(tables.location(location)).iter() {
                lines.push((frame.file.clone(), frame.line, place_name(tables, location)));
            }
            false
        })?;
    }
    Ok(OrderFacts::given(pairs, &mut |file, line| {
        let here = |name: &str| name == file || name.ends_with(&format!("/{file}"));
        let found: Vec<PlaceName> = lines
            .iter()
            .filter(|(name, at, _)| *at == Some(line) && name.as_deref().is_some_and(here))
            .map(|(_, _, place)| place.clone())
            .collect();
        if found.is_empty() {
            eprintln!("raddle: note: no event of the trace is at {file}:{line}");
        }
        found
    }))
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

/// Keeps a schedule and returns where.
pub(crate) fn write_schedule(schedule: &Schedule, id: &str, folder: &Path) -> anyhow::Result<String> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{id}.schedule"));
    std::fs::write(&path, schedule.to_text()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path.display().to_string())
}

/// The table of detectors for programs.
fn table_json() -> anyhow::Result<String> {
    let row = |entry: &Entry| {
        serde_json::json!({
            "name": entry.name, "class": entry.class, "grade": entry.grade,
            "promise": entry.promise.text(), "about": entry.about,
        })
    };
    Ok(serde_json::to_string_pretty(&ENTRIES.iter().map(row).collect::<Vec<_>>())?)
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
