//! `raddle detect`: runs detectors over a recorded or converted trace.

use super::{Ctx, Exit};
use crate::detector_options::{DetectorOptions, unknown};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_detect::registry::{ENTRIES, Entry, Settings, create, table};
use raddle_detect::render::{Namer, frame, render};
use raddle_detect::run::run as run_detectors;
use raddle_detect::{Detector, witness};
use raddle_findings::{Finding, Frame, deduplicate};
use raddle_report::{Sources, Style, render as show};
use raddle_trace::open::OpenTrace;
use raddle_trace::schedule::Schedule;
use raddle_trace::std_format::StdNames;
use raddle_trace::symbols::Symbolizer;
use raddle_trace::{Addr, ContextIx, EventSource, LocationIx, MemoryTrace, ObjectId, Tables};
use std::path::{Path, PathBuf};

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
    /// Write the schedules of findings that have a witness into this folder.
    #[arg(long, value_name = "DIR")]
    witness: Option<PathBuf>,
    /// Print the findings, or the table, as JSON.
    #[arg(long)]
    json: bool,
    // Last, because its heading would go on over what follows.
    #[command(flatten)]
    told: DetectorOptions,
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
    let names = args.told.chosen(&args.with)?;
    let settings = args.told.settings(path, &names)?;
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
    let mut outcome = run_detectors(&mut source, &mut detectors, &mut |events, progress| {
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
    let wanted = schedules && outcome.reports.iter().any(witness::has_witness);
    let trace = wanted.then(|| MemoryTrace::read(&mut OpenTrace::open(path)?)).transpose()?;
    if let Some(trace) = &trace {
        witness::complete(&mut outcome.reports, trace);
    }
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
