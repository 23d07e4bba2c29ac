//! `raddle report`: list the store, show findings again, filter and convert them.

use super::{Ctx, Exit};
use crate::output::{OutputArgs, Reporter, Stream};
use anyhow::Context;
use raddle_findings::{Evidence, Finding, FindingsFile, Grade, Kind, Store, deduplicate, store};
use raddle_report::list;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Lists what is in the store, shows findings in full, and converts them for other tools.
///
/// Without an argument every finding of the store gets a line, the latest first. Ids (or their first digits) and findings files are shown in full.
///
/// Examples:
///   raddle report
///   raddle report --kind deadlock --program server
///   raddle report 1f3a09c2d4e5
///   raddle report --html findings.html
///   raddle report findings.json --all --suppressions tsan.supp
///   raddle report findings.json --baseline last-week.json --sarif results.sarif
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Ids of findings, or findings files as written by --json and --output of other commands.
    #[arg(value_name = "ID|FILE")]
    what: Vec<String>,
    /// The store.
    #[arg(long, value_name = "DIR", default_value = store::FOLDER)]
    keep: PathBuf,
    /// Only findings of this kind; `raddle explain` lists them.
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// Only findings of programs whose path contains this text.
    #[arg(long, value_name = "TEXT")]
    program: Option<String>,
    /// Only so many, the latest.
    #[arg(long, value_name = "N")]
    latest: Option<usize>,
    /// Do not draw the run below a finding that is shown in full.
    #[arg(long)]
    no_picture: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn kind(name: &str) -> Result<Kind, String> {
    let names = || Kind::ALL.map(Kind::name).join(", ");
    Kind::from_name(name).ok_or_else(|| format!("there is no such kind; there are {}", names()))
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut reporter = Reporter::new("report", &args.output, Stream::Stdout, ctx)?;
    let store = Store::at(&args.keep);
    let in_full = !args.what.is_empty();
    let (evidence, program) = if in_full { named(&args, &store)? } else { stored(&args, &store)? };
    // A line each unless they were asked for by name.
    reporter.silent |= !in_full;
    reporter.picture = !args.no_picture;
    let graded: Vec<Finding> =
        deduplicate(evidence.iter().map(|evidence| evidence.finding.clone()).collect());
    for finding in graded {
        reporter.hear(finding, in_full && args.what.iter().any(|what| store::is_id(what)));
    }
    if !in_full && !args.output.owns_stdout() {
        let shown: BTreeSet<&str> = reporter.shown.iter().map(|finding| finding.id.as_str()).collect();
        let is_shown = |evidence: &Evidence| shown.contains(evidence.finding.id.as_str());
        let rows: Vec<Evidence> = evidence.into_iter().filter(is_shown).collect();
        print!("{}", list(&rows, ctx.width()));
    }
    if !ctx.quiet {
        eprintln!("raddle: {}", reporter.summary());
        for unused in reporter.suppressions.unused() {
            eprintln!(
                "raddle: note: the suppression `{}` (line {}) matched nothing",
                unused.text, unused.line
            );
        }
    }
    reporter.finish(program)
}

/// Everything in the store that the options do not leave out, the latest first.
fn stored(args: &Args, store: &Store) -> anyhow::Result<(Vec<Evidence>, Vec<String>)> {
    let (mut list, problems) =
        store.list().with_context(|| format!("cannot read the store {}", args.keep.display()))?;
    for problem in problems {
        eprintln!("raddle: warning: {problem}");
    }
    list.retain(|evidence| args.kind.is_none_or(|kind| evidence.finding.kind == kind));
    list.retain(|evidence| {
        let program = evidence.program.first().map_or("", String::as_str);
        args.program.as_ref().is_none_or(|text| program.contains(text.as_str()))
    });
    if !args.output.all {
        list.retain(|evidence| evidence.finding.grade() >= Grade::Unordered);
    }
    list.truncate(args.latest.unwrap_or(usize::MAX));
    Ok((list, Vec::new()))
}

/// Findings by id or from files.
fn named(args: &Args, store: &Store) -> anyhow::Result<(Vec<Evidence>, Vec<String>)> {
    let (mut list, mut program) = (Vec::new(), Vec::new());
    for what in &args.what {
        if std::path::Path::new(what).is_file() {
            let file = FindingsFile::read(std::path::Path::new(what))?;
            program = file.program.clone();
            let findings = file.findings.into_iter();
            list.extend(
                findings.map(|finding| Evidence::new(&file.command, file.program.clone(), finding, None)),
            );
            continue;
        }
        let ids = store.ids(what)?;
        anyhow::ensure!(
            !ids.is_empty(),
            "there is no findings file {what}, and no finding {what} in {}; `raddle report` lists what is there",
            args.keep.display()
        );
        for id in ids {
            let evidence = store.read(&id)?;
            program.clone_from(&evidence.program);
            list.push(evidence);
        }
    }
    Ok((list, program))
}
