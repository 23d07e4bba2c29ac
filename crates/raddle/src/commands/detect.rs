//! `raddle detect`: runs detectors over a recorded or converted trace.

use super::{Ctx, Exit};
use crate::detector_options::{DetectorOptions, unknown};
use crate::hunt::visibility::Sight;
use crate::output::{OutputArgs, Reporter, Stream};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_detect::builder::finding;
use raddle_detect::calls::CallPlaces;
use raddle_detect::contract::Contract;
use raddle_detect::registry::{ENTRIES, Entry, Settings, create, table};
use raddle_detect::run::run as run_detectors;
use raddle_detect::{Detector, witness};
use raddle_findings::naming::Namer;
use raddle_findings::{Finding, Object, Place, deduplicate};
use raddle_trace::open::OpenTrace;
use raddle_trace::schedule::{RunOptions, Schedule};
use raddle_trace::std_format::InputDialect;
use raddle_trace::{EventSource, MemoryTrace};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Runs detectors over a trace: one that `raddle record` made, or RAPID's STD text.
///
/// Sound detectors give predicted findings with a witness, imprecise ones give suspicions; `--list` has the table.
/// Exit status: 1 a finding of a failing grade (see --fail-on), 0 none, 2 usage or environment error.
///
/// Examples:
///   raddle detect --list
///   raddle detect run.trace --with fasttrack,spd
///   raddle detect trace.std --with syncp --witness out/
///   raddle detect run.trace --with velodrome --regions critical-sections
///   raddle detect run.trace --with avio,order --train good1.trace --train good2.trace
///   raddle detect run.trace --with contracts --contracts map.contract
///   raddle detect run.trace --with contracts --train good.trace --write-contracts learnt.contract
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
    /// Take STD text as this dialect: auto, rapid, sunhang, rff-c, rv-predict.
    #[arg(long, value_name = "NAME", default_value_t)]
    dialect: InputDialect,
    #[command(flatten)]
    output: OutputArgs,
    // Last, because its heading would go on over what follows.
    #[command(flatten)]
    told: DetectorOptions,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    if args.list {
        if args.output.json {
            println!("{}", table_json()?);
        } else {
            print!("{}", table());
        }
        return Ok(Exit::Clean);
    }
    let path = args.trace.as_deref().context("no trace was given")?;
    let mut reporter = Reporter::new("detect", &args.output, Stream::Stdout, ctx)?;
    let names = args.told.chosen(&args.with)?;
    let settings = args.told.settings(path, &names)?;
    let mut detected = detect(path, args.dialect, &names, &settings, args.witness.is_some(), ctx)?;
    if let Some(folder) = &args.witness {
        for (finding, schedule) in &mut detected.findings {
            if let Some(schedule) = schedule {
                schedule.head.options = RunOptions {
                    memory: true,
                    allocations: true,
                    one_at_a_time: true,
                    ..RunOptions::default()
                };
                finding.schedule = Some(write_schedule(schedule, &finding.id, folder)?);
            }
        }
    }
    for finding in deduplicate(detected.findings.into_iter().map(|(finding, _)| finding).collect()) {
        reporter.hear(finding, true);
    }
    if !ctx.quiet {
        eprintln!("raddle: {} in {} events, by {}", reporter.summary(), detected.events, names.join(", "));
        for note in &detected.notes {
            eprintln!("raddle: note: {note}");
        }
    }
    reporter.finish(Vec::new())
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
    dialect: InputDialect,
    names: &[String],
    settings: &Settings,
    schedules: bool,
    ctx: &Ctx,
) -> anyhow::Result<Detected> {
    let mut detectors: Vec<Box<dyn Detector>> = Vec::new();
    for name in names {
        detectors.push(create(name, settings).with_context(|| unknown(name))?);
    }
    let mut source = OpenTrace::open_as(path, dialect)?;
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

    let mut namer = match &source {
        OpenTrace::Std(reader) => Namer::foreign(reader.names()),
        OpenTrace::Raddle(_) => Namer::new(&source.tables().modules),
    };
    let wanted = schedules && outcome.reports.iter().any(witness::has_witness);
    let trace = wanted.then(|| MemoryTrace::read(&mut OpenTrace::open_as(path, dialect)?)).transpose()?;
    if let Some(trace) = &trace {
        witness::complete(&mut outcome.reports, trace);
    }
    let mut sight = Sight::of(&source.tables().modules);
    let mut findings = Vec::new();
    let mut are_checked = false;
    for report in &outcome.reports {
        let mut finding = self::finding(report, source.tables(), &outcome.names, &mut namer);
        let on_stack = |object: &Object| matches!(object.place, Place::Stack { thread: Some(_), .. });
        if !are_checked && finding.objects.iter().any(on_stack) {
            // Which variable that is, only the whole trace can tell.
            are_checked = true;
            let (mut again, mut batch) = (OpenTrace::open_as(path, dialect)?, Vec::new());
            loop {
                again.next_batch(&mut batch)?;
                if batch.is_empty() {
                    break;
                }
                namer.check_frames(source.tables(), &batch);
            }
            finding = self::finding(report, source.tables(), &outcome.names, &mut namer);
        }
        sight.consider(&mut finding);
        let about = format!("{} {}", finding.kind.name(), finding.id);
        let schedule = trace.as_ref().and_then(|trace| {
            let mut place = |location| namer.location(&trace.tables, location);
            witness::schedule(report, trace, &about, &mut place)
        });
        findings.push((finding, schedule));
    }
    let mut notes = source.remarks();
    notes.extend(about_calls(&settings.contracts, &settings.calls));
    if outcome.truncated > 0 {
        let count = outcome.truncated;
        notes.push(format!("{count} accesses of more than 1 MiB were followed by their first MiB"));
    }
    notes.extend(source.cut().map(|cut| format!("the trace does not cover the whole run: {cut}")));
    Ok(Detected { findings, events: outcome.events, notes })
}

/// Calls of contracts that the trace never has (misspelt, or neither announced nor functions that were seen), and values that
/// contracts speak of and calls do not carry.
fn about_calls(contracts: &[Contract], calls: &CallPlaces) -> Vec<String> {
    let mut notes = Vec::new();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    for contract in contracts {
        for call in contract.calls() {
            let (line, name) = (contract.line, &call.name);
            let is_known = calls.announced().contains(name) || calls.is_function(name);
            let parameters = call.parameters.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            let values = calls.values(name);
            if is_known && parameters <= values || !told.insert(name) {
                continue;
            }
            if is_known {
                notes.push(format!(
                    "the contract in line {line} asks for more values of `{name}` ({parameters}) than its calls carry in the trace \
                     ({values}); the others match any (aspects record arguments: docs/aspects.md)"
                ));
                continue;
            }
            let known =
                match calls.announced().iter().take(10).map(|name| format!("`{name}`")).collect::<Vec<_>>() {
                    names if names.is_empty() => "none that is announced (RADDLE_EVENT, aspects)".to_owned(),
                    names => names.join(", "),
                };
            notes.push(format!(
                "the contract in line {line} names the call `{name}`, and no function of the trace is called so; \
                 of calls it has {known}"
            ));
        }
    }
    notes
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
            "name": entry.name, "class": entry.class, "grade": entry.grade_names(),
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
