//! `raddle trace`: look into a trace, convert it.

use super::{Ctx, Exit};
use crate::standard_output;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_findings::naming::Namer;
use raddle_report::picture::{Names, Run, lanes, whole};
use raddle_trace::describe::{self, kind, thread_name};
use raddle_trace::file::ProgramInfo;
use raddle_trace::info::{Info, info};
use raddle_trace::observed_schedule::observed_schedule;
use raddle_trace::perfetto::{PerfettoOptions, write_perfetto};
use raddle_trace::std_format::{Dialect, InputDialect, write_std};
use raddle_trace::symbols::Symbolizer;
use raddle_trace::tables::Module;
use raddle_trace::validate::validate;
use raddle_trace::{Event, EventSource, OpenTrace, Tables, TraceError, convert};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Looks into a trace, or converts it.
///
/// Examples:
///   raddle trace info bank.trace
///   raddle trace dump bank.trace --kind lock,unlock --thread 1.2
///   raddle trace dump bank.trace --symbols | grep withdraw
///   raddle trace dump bank.trace --lanes
///   raddle trace convert bank.trace bank.std
///   raddle trace convert bank.trace bank.json      then open it in ui.perfetto.dev
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Says what a trace holds: counts, threads, modules, sizes, how the run ended, whether the trace was cut and why.
    Info {
        trace: PathBuf,
        /// For machines.
        #[arg(long)]
        json: bool,
        /// Also check that the events obey the rules of the trace model.
        #[arg(long)]
        check: bool,
    },
    /// Prints events, one per line.
    Dump(DumpArgs),
    /// Converts to and from RAPID's STD text, to JSON for ui.perfetto.dev, and to Raddle's own format.
    Convert(ConvertArgs),
}

#[derive(clap::Args)]
struct DumpArgs {
    trace: PathBuf,
    /// Only events of these kinds, for example lock,unlock,fork (the second word of a line).
    #[arg(long, value_delimiter = ',')]
    kind: Vec<String>,
    /// Only events of these threads, for example 1,1.2.
    #[arg(long, value_delimiter = ',')]
    thread: Vec<String>,
    /// Show functions, files, lines and variables instead of addresses.
    #[arg(long)]
    symbols: bool,
    /// Show the calls that led to each event.
    #[arg(long)]
    stacks: bool,
    /// Draw the visible operations as lanes, one column per thread, in 80 columns.
    #[arg(long, conflicts_with_all = ["kind", "thread", "stacks", "json"])]
    lanes: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
    /// Stop after so many lines.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

#[derive(clap::Args)]
struct ConvertArgs {
    trace: PathBuf,
    /// Where to write; `-` is standard output.
    output: PathBuf,
    /// Take STD text as this dialect: auto, rapid, sunhang, rff-c, rv-predict.
    #[arg(long, value_name = "NAME", default_value_t)]
    dialect: InputDialect,
    /// Format to write (default: by the name of the output: .std, .json, anything else is a Raddle trace).
    #[arg(long, value_enum)]
    to: Option<Format>,
    /// Perfetto: show memory accesses and atomics, too.
    #[arg(long)]
    accesses: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// RAPID's STD text: reads, writes, locks, forks, joins.
    Std,
    /// STD text with further operations, which Raddle reads and RAPID does not.
    StdExtended,
    /// JSON for ui.perfetto.dev.
    Perfetto,
    /// Raddle's own format.
    Raddle,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    match args.action {
        Action::Info { trace, json, check } => run_info(&trace, json, check, ctx),
        Action::Dump(args) => match dump(&args, ctx) {
            // The reader of our output has seen enough.
            Err(error) if is_broken_pipe(&error) => Ok(Exit::Clean),
            result => result,
        },
        Action::Convert(args) => run_convert(&args, ctx),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A bar on the terminal that follows a source.
struct Bar(Option<ProgressBar>);

impl Bar {
    fn new(ctx: &Ctx) -> Bar {
        Bar(ctx.progress().then(|| {
            let style = ProgressStyle::with_template("{bar:40} {percent}% [{elapsed}, {eta} left]")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(0).with_style(style)
        }))
    }

    fn tick(&self, source: &dyn EventSource) {
        if let (Some(bar), Some((done, all))) = (&self.0, source.progress()) {
            bar.set_length(all);
            bar.set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// A source that moves a progress bar as it is read.
struct Watched<'a> {
    trace: OpenTrace,
    bar: &'a Bar,
}

impl EventSource for Watched<'_> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        self.trace.next_batch(batch)?;
        self.bar.tick(&self.trace);
        Ok(())
    }

    fn tables(&self) -> &Tables {
        self.trace.tables()
    }
}

fn run_info(path: &Path, json: bool, check: bool, ctx: &Ctx) -> anyhow::Result<Exit> {
    let bar = Bar::new(ctx);
    let info = info(path, &mut |source| bar.tick(source))?;
    let validation = match check {
        true => Some(validate(&mut Watched { trace: OpenTrace::open(path)?, bar: &bar })?),
        false => None,
    };
    drop(bar);
    if json {
        let mut value = serde_json::to_value(&info)?;
        if let Some(validation) = &validation {
            value["check"] = serde_json::to_value(validation)?;
        }
        println!("{value}");
    } else {
        print_info(&info);
        if let Some(validation) = &validation {
            for problem in &validation.problems {
                println!(
                    "rule broken at event {} of thread {}: {}",
                    problem.event, problem.thread, problem.text
                );
            }
            match validation.problems.len() as u64 + validation.more {
                0 => println!("check      every event obeys the rules"),
                count => println!("check      {count} events break a rule"),
            }
        }
    }
    let broken = validation.is_some_and(|validation| !validation.problems.is_empty());
    Ok(if broken { Exit::Found } else { Exit::Clean })
}

fn print_info(info: &Info) {
    println!("trace      {} ({})", info.file, info.format);
    if let Some(program) = &info.program
        && !program.command.is_empty()
    {
        println!("program    {}", program.command.join(" "));
    }
    if let Some(end) = &info.end {
        println!("end        {}", end.text);
    }
    match &info.cut {
        Some(why) => println!("cut        yes: {why}"),
        None => println!("cut        no"),
    }
    if let Some(duration) = info.duration_ms {
        println!("duration   {:.3} s", duration as f64 / 1000.0);
    }
    println!("size       {} bytes, {:.2} bytes an event", info.bytes, info.bytes_per_event);
    println!("events     {}", info.events);
    for (kind, count) in &info.kinds {
        println!("  {kind:<18} {count}");
    }
    println!("threads    {}", info.threads.len());
    for thread in &info.threads {
        let given = thread.given_name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        println!("  {:<18} {} events{given}", thread.name, thread.events);
    }
    println!("modules    {}", info.modules.len());
    for module in &info.modules {
        println!("  {module}");
    }
    if info.damaged_events > 0 {
        println!("damaged    {} events were incomplete and left out", info.damaged_events);
    }
    for remark in &info.remarks {
        println!("note       {remark}");
    }
    for message in &info.messages {
        println!("message    {:?}: {}", message.level, message.text);
    }
}

fn dump(args: &DumpArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    if args.lanes {
        return draw(args, ctx);
    }
    let mut trace = OpenTrace::open(&args.trace)?;
    let mut symbolizer = Symbolizer::new(&trace.tables().modules);
    let mut out = standard_output::buffered();
    let (mut batch, mut number, mut shown) = (Vec::new(), 0u64, 0u64);
    'all: loop {
        trace.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for event in &batch {
            let at = number;
            number += 1;
            if !selected(args, event, trace.tables()) {
                continue;
            }
            if args.limit.is_some_and(|limit| shown >= limit) {
                break 'all;
            }
            shown += 1;
            match args.json {
                true => writeln!(out, "{}", json_line(args, at, event, trace.tables(), &mut symbolizer))?,
                false => text_line(args, at, event, trace.tables(), &mut symbolizer, &mut out)?,
            }
        }
    }
    out.flush()?;
    if !ctx.quiet {
        if let Some(why) = trace.cut() {
            eprintln!("raddle: note: the trace is cut: {why}");
        }
        remark(&trace);
        for problem in symbolizer.problems() {
            eprintln!("raddle: note: {problem}");
        }
    }
    Ok(Exit::Clean)
}

/// Steps that are drawn unless --limit says otherwise.
const LANES_STEPS: usize = 200;
/// Columns of the drawing: in wider ones the eye loses the line.
const LANES_COLUMNS: usize = 80;

/// The run as a picture in text.
fn draw(args: &DumpArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut trace = OpenTrace::open(&args.trace)?;
    let mut schedule = observed_schedule(&mut trace, "")?;
    let modules = trace.tables().modules.clone();
    let mut namer = Namer::new(&modules);
    schedule.annotate(|place| namer.place(place));
    let mut symbols = Symbolizer::new(&modules);
    let mut names = Names::default();
    for step in &schedule.steps {
        let place = schedule.name(step.object);
        if let Some(data) = address(&modules, place).and_then(|address| symbols.data(address)) {
            names.add(place.to_owned(), data.path);
        }
    }
    let steps = args.limit.map_or(LANES_STEPS, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let text = lanes(&whole(&Run::new(&schedule, names), steps), ctx.width().min(LANES_COLUMNS));
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())?;
    if let (Some(why), false) = (trace.cut(), ctx.quiet) {
        eprintln!("raddle: note: the trace is cut: {why}");
    }
    Ok(Exit::Clean)
}

/// The address of `module+0x1234` in the run.
fn address(modules: &[Module], place: &str) -> Option<u64> {
    let (module, offset) = place.rsplit_once("+0x")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    let is_it = |known: &&Module| known.path.rsplit('/').next() == Some(module);
    Some(modules.iter().find(is_it)?.bias.wrapping_add(offset))
}

fn selected(args: &DumpArgs, event: &Event, tables: &Tables) -> bool {
    (args.kind.is_empty() || args.kind.iter().any(|wanted| wanted == kind(&event.op)))
        && (args.thread.is_empty() || {
            let name = thread_name(tables, event.thread);
            args.thread.contains(&name)
        })
}

fn text_line(
    args: &DumpArgs,
    number: u64,
    event: &Event,
    tables: &Tables,
    symbolizer: &mut Symbolizer,
    out: &mut impl Write,
) -> std::io::Result<()> {
    if !args.symbols {
        writeln!(out, "{}", describe::line(number, event, tables))?;
    } else {
        write!(out, "{number} {} {}", thread_name(tables, event.thread), kind(&event.op))?;
        for (name, field) in describe::fields(&event.op, tables) {
            match field {
                describe::Field::Address(address) => write!(out, " {name}={}", symbolizer.describe(address))?,
                describe::Field::Flag => write!(out, " {name}")?,
                field => write!(out, " {name}={field}")?,
            }
        }
        if let Some(frame) = symbolizer.location(tables.location(event.location)).first() {
            write!(out, " @{frame}")?;
        }
        writeln!(out)?;
    }
    if args.stacks {
        for (depth, call) in stack(args, event, tables, symbolizer).iter().enumerate() {
            writeln!(out, "    #{depth} {call}")?;
        }
    }
    Ok(())
}

fn stack(args: &DumpArgs, event: &Event, tables: &Tables, symbolizer: &mut Symbolizer) -> Vec<String> {
    if args.symbols {
        return symbolizer.stack_of(tables, event).iter().map(ToString::to_string).collect();
    }
    std::iter::once(event.location)
        .chain(tables.stack(event.context))
        .map(|location| describe::location_text(tables.location(location)))
        .collect()
}

fn json_line(
    args: &DumpArgs,
    number: u64,
    event: &Event,
    tables: &Tables,
    symbolizer: &mut Symbolizer,
) -> serde_json::Value {
    let mut object = describe::json(number, event, tables);
    if args.symbols {
        for (name, field) in describe::fields(&event.op, tables) {
            if let describe::Field::Address(address) = field
                && let Some(variable) = symbolizer.variable(address)
            {
                object.insert(format!("{name}_name"), variable.to_string().into());
            }
        }
        if let Some(frame) = symbolizer.location(tables.location(event.location)).first() {
            object.insert("function".into(), frame.function.clone().into());
            object.insert("file".into(), frame.file.clone().into());
            object.insert("line".into(), frame.line.into());
        }
    }
    if args.stacks {
        object.insert("stack".into(), stack(args, event, tables, symbolizer).into());
    }
    object.into()
}

fn run_convert(args: &ConvertArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let format = args.to.unwrap_or_else(|| match args.output.extension().and_then(|ext| ext.to_str()) {
        Some("std") => Format::Std,
        Some("json") => Format::Perfetto,
        _ => Format::Raddle,
    });
    if same_file(&args.trace, &args.output) {
        anyhow::bail!("{}: cannot convert a trace into itself; name another output", args.output.display());
    }
    let bar = Bar::new(ctx);
    let trace = OpenTrace::open_as(&args.trace, args.dialect)?;
    if let (Some(why), false) = (trace.cut(), ctx.quiet) {
        eprintln!("raddle: note: the trace is cut: {why}");
    }
    let mut symbolizer = Symbolizer::new(&trace.tables().modules);
    let mut source = Watched { trace, bar: &bar };
    if format == Format::Raddle {
        if args.output.as_os_str() == "-" {
            anyhow::bail!("a Raddle trace cannot go to standard output; name a file");
        }
        let came_from =
            ProgramInfo { command: vec![args.trace.display().to_string()], directory: String::new() };
        convert::write_trace(&mut source, &args.output, came_from)?;
        if !ctx.quiet {
            remark(&source.trace);
        }
        return Ok(Exit::Clean);
    }
    let mut out: Box<dyn Write> = match args.output.as_os_str() == "-" {
        true => Box::new(standard_output::buffered()),
        false => {
            let file = std::fs::File::create(&args.output)
                .with_context(|| format!("cannot create {}", args.output.display()))?;
            Box::new(BufWriter::new(file))
        }
    };
    match format {
        Format::Perfetto => {
            let options = PerfettoOptions { accesses: args.accesses };
            let mut name = |address| symbolizer.variable(address).map(|variable| variable.to_string());
            write_perfetto(&mut source, &mut out, options, &mut name)?;
        }
        Format::Std | Format::StdExtended => {
            let dialect = if format == Format::Std { Dialect::Strict } else { Dialect::Extended };
            let unwritten = write_std(&mut source, &mut out, dialect)?;
            if unwritten.events > 0 && !ctx.quiet {
                eprintln!(
                    "raddle: note: {} events have no equivalent in STD and were left out",
                    unwritten.events
                );
            }
        }
        Format::Raddle => {}
    }
    out.flush().with_context(|| format!("cannot write {}", args.output.display()))?;
    if !ctx.quiet {
        remark(&source.trace);
    }
    Ok(Exit::Clean)
}

/// Says what a foreign trace is like, now that it has been read.
fn remark(trace: &OpenTrace) {
    for remark in trace.remarks() {
        eprintln!("raddle: note: {remark}");
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
