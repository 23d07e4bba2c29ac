//! `raddle aspects`: check and format files of aspects, and say where in a program they apply.

use super::{Ctx, Exit};
use crate::compiler::Refusal;
use crate::launch::inspect;
use crate::launch::probes::modules_of;
use raddle_probe::aspect::{Aspect, Diagnostic, File, Parsed, parse};
use raddle_probe::locate::{Located, Locator, Module, Place};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Name events of a program without touching its source (docs/aspects.md).
///
/// Examples:
///   raddle aspects check file.aspects
///   raddle aspects check file.aspects -- ./program    also say what applies nowhere, and why
///   raddle aspects plan file.aspects -- ./program     every place
///   raddle aspects list -- ./program                  functions that can be named
///   raddle aspects list --globals 'pool*' -- ./program
///   raddle aspects fmt --check *.aspects
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Look for mistakes. Exit 0: none, 1: an aspect applies nowhere in the program, 2: the file has errors.
    Check(FileArgs),
    /// Show every place of the program where an event would happen.
    Plan(FileArgs),
    /// List what can be named in a program, one name a line, as shells want it for completion.
    List(ListArgs),
    /// Bring files into one form; comments stay.
    Fmt(FmtArgs),
}

#[derive(clap::Args)]
struct FileArgs {
    /// The file of aspects.
    file: PathBuf,
    /// Print one JSON document instead of text.
    #[arg(long)]
    json: bool,
    /// The program.
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<PathBuf>,
}

#[derive(clap::Args)]
struct ListArgs {
    /// Only names that contain this text.
    text: Option<String>,
    /// Globals instead of functions.
    #[arg(long)]
    globals: bool,
    /// The program.
    #[arg(last = true, value_name = "PROGRAM", required = true)]
    program: Vec<PathBuf>,
}

#[derive(clap::Args)]
struct FmtArgs {
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; exit 1 if a file would change.
    #[arg(long)]
    check: bool,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    match args.what {
        What::Check(args) => check(&args, ctx),
        What::Plan(args) if args.program.is_empty() => {
            Err(Refusal("`raddle aspects plan` needs a program: add `-- PROGRAM`".to_owned()).into())
        }
        What::Plan(args) => plan(&args, ctx),
        What::List(args) => list(&args),
        What::Fmt(args) => fmt(&args, ctx),
    }
}

fn read(path: &Path) -> anyhow::Result<(String, Parsed)> {
    let bytes =
        std::fs::read(path).map_err(|error| Refusal(format!("cannot read {}: {error}", path.display())))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Refusal(format!("{} is not UTF-8 from byte {} on", path.display(), error.utf8_error().valid_up_to()))
    })?;
    let parsed = parse(&text);
    Ok((text, parsed))
}

/// Shows the diagnostics of a file.
fn show(path: &Path, text: &str, diagnostics: &[Diagnostic], ctx: &Ctx) {
    for diagnostic in diagnostics {
        eprintln!("{}\n", diagnostic.render(&path.display().to_string(), text, ctx.color_stderr()));
    }
}

/// The file, if it has no errors; they are shown otherwise.
fn understood(path: &Path, ctx: &Ctx) -> anyhow::Result<Option<(String, File)>> {
    let (text, parsed) = read(path)?;
    show(path, &text, &parsed.diagnostics, ctx);
    Ok((!parsed.has_errors()).then_some((text, parsed.file)))
}

fn check(args: &FileArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let (text, parsed) = read(&args.file)?;
    let mut diagnostics = parsed.diagnostics.clone();
    let mut applies_everywhere = true;
    if !args.program.is_empty() {
        let modules = modules_of(&inspect::find(&args.program[0])?)?;
        for (aspect, located) in dry_run(&parsed.file, &modules) {
            applies_everywhere &= !located.places.is_empty();
            let span = &aspect.target.span;
            diagnostics.extend(
                located.notes.iter().map(|note| Diagnostic::warning(span, &note.message, &note.help)),
            );
        }
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.0.start);
    if args.json {
        let document: Vec<Value> = diagnostics.iter().map(|diagnostic| told(diagnostic, &text)).collect();
        println!("{}", serde_json::to_string_pretty(&json!({ "diagnostics": document }))?);
    } else {
        show(&args.file, &text, &diagnostics, ctx);
        if !ctx.quiet && diagnostics.is_empty() {
            println!("{}: {} aspects, no mistakes found", args.file.display(), parsed.file.aspects().count());
        }
    }
    Ok(match (parsed.has_errors(), applies_everywhere) {
        (true, _) => Exit::Trouble,
        (false, false) => Exit::Found,
        (false, true) => Exit::Clean,
    })
}

/// Where each aspect applies, with all that is to be said about it: the places found, and what a run would make of them.
fn dry_run<'file>(file: &'file File, modules: &[Module]) -> Vec<(&'file Aspect, Located)> {
    let locator = Locator::new(modules);
    let mut all: Vec<(&Aspect, Located)> =
        file.aspects().map(|aspect| (aspect, locator.locate(aspect))).collect();
    for (number, note) in raddle_probe::plan::plan(file, &File::default(), modules, &locator).notes {
        let notes = &mut all[number].1.notes;
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    all
}

fn told(diagnostic: &Diagnostic, text: &str) -> Value {
    let before = &text[..diagnostic.span.0.start.min(text.len())];
    json!({
        "severity": format!("{:?}", diagnostic.severity).to_lowercase(),
        "line": before.matches('\n').count() + 1,
        "column": before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1,
        "message": diagnostic.message,
        "help": diagnostic.help,
    })
}

fn plan(args: &FileArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let Some((text, file)) = understood(&args.file, ctx)? else { return Ok(Exit::Trouble) };
    let modules = modules_of(&inspect::find(&args.program[0])?)?;
    let locator = Locator::new(&modules);
    let all = dry_run(&file, &modules);
    let applies = all.iter().all(|(_, located)| !located.places.is_empty());
    if args.json {
        let aspects: Vec<Value> =
            all.iter().map(|(aspect, located)| planned(aspect, located, &modules)).collect();
        println!("{}", serde_json::to_string_pretty(&json!({ "aspects": aspects }))?);
    } else {
        for (aspect, located) in &all {
            println!("{aspect}: {}", counted(located.places.len()));
            for place in &located.places {
                println!("    {}", shown(place, &modules, &locator));
            }
            for note in &located.notes {
                let warning = Diagnostic::warning(&aspect.target.span, &note.message, &note.help);
                show(&args.file, &text, &[warning], ctx);
            }
        }
    }
    Ok(if applies { Exit::Clean } else { Exit::Found })
}

fn counted(places: usize) -> String {
    if places == 1 { "1 place".to_owned() } else { format!("{places} places") }
}

fn planned(aspect: &Aspect, located: &Located, modules: &[Module]) -> Value {
    let places: Vec<Value> = located
        .places
        .iter()
        .map(|place| {
            let module = &modules[place.module];
            json!({
                "module": module.path.display().to_string(),
                "build_id": module.build_id().map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
                "address": place.address,
                "bytes": (place.bytes != 0).then_some(place.bytes),
                "what": place.what,
                "within": place.within,
                "tail_call": place.is_tail_call,
            })
        })
        .collect();
    let notes: Vec<Value> =
        located.notes.iter().map(|note| json!({ "message": note.message, "help": note.help })).collect();
    json!({ "aspect": aspect.to_string(), "places": places, "notes": notes })
}

fn shown(place: &Place, modules: &[Module], locator: &Locator) -> String {
    let module = &modules[place.module];
    let mut text = format!("{:#x} {}", place.address, place.what);
    if place.bytes != 0 {
        text += &format!(", {} bytes", place.bytes);
    } else if let Some(line) = locator.source_line(place) {
        text += &format!(" at {line}");
    }
    if let Some(within) = &place.within {
        text += &format!(" in {within}");
    }
    if place.is_tail_call {
        text += " (tail call)";
    }
    if place.module != 0 {
        text += &format!(" [{}]", module.path.display());
    }
    text
}

fn list(args: &ListArgs) -> anyhow::Result<Exit> {
    let modules = modules_of(&inspect::find(&args.program[0])?)?;
    let locator = Locator::new(&modules);
    let names = if args.globals { locator.globals() } else { locator.functions() };
    let wanted = |name: &&String| args.text.as_ref().is_none_or(|text| name.contains(text.as_str()));
    for name in names.iter().filter(wanted) {
        println!("{name}");
    }
    Ok(Exit::Clean)
}

fn fmt(args: &FmtArgs, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut exit = Exit::Clean;
    for path in &args.files {
        let Some((text, file)) = understood(path, ctx)? else {
            exit = Exit::Trouble;
            continue;
        };
        let formatted = file.to_string();
        if formatted == text {
            continue;
        }
        if args.check {
            println!("{} would change", path.display());
            exit = if exit == Exit::Clean { Exit::Found } else { exit };
        } else {
            std::fs::write(path, formatted)
                .map_err(|error| Refusal(format!("cannot write {}: {error}", path.display())))?;
        }
    }
    Ok(exit)
}
