//! `raddle report`: show findings again, filter and convert them.

use super::{Ctx, Exit};
use anyhow::Context;
use raddle_findings::{Finding, FindingsFile, Grade, Suppressions, compare, deduplicate, sarif};
use raddle_report::{Sources, Style, render, summary_line};
use std::path::{Path, PathBuf};

/// Shows findings, filters them, and converts them for other tools.
///
/// Examples:
///   raddle report findings.json
///   raddle report findings.json --all --suppressions tsan.supp
///   raddle report findings.json --baseline last-week.json --sarif results.sarif
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Findings files, as written by --json of other commands.
    #[arg(required = true)]
    findings: Vec<PathBuf>,
    /// Also show predicted and suspected findings.
    #[arg(long)]
    all: bool,
    /// Leave out what these files suppress (ThreadSanitizer's syntax: `race:function`).
    #[arg(long, value_name = "FILE")]
    suppressions: Vec<PathBuf>,
    /// Leave out findings that are in this findings file already.
    #[arg(long, value_name = "FINDINGS")]
    baseline: Option<PathBuf>,
    /// Write the findings as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the findings as SARIF 2.1.0; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Where source files are looked for if they are not where the compiler saw them (default: this folder).
    #[arg(long, value_name = "FOLDER")]
    source: Vec<PathBuf>,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut findings = Vec::new();
    let mut program = Vec::new();
    for path in &args.findings {
        let file = FindingsFile::read(path)?;
        program = file.program;
        findings.extend(file.findings);
    }
    let mut suppressions = Suppressions::default();
    for path in &args.suppressions {
        suppressions.extend(Suppressions::read(path).map_err(anyhow::Error::from_boxed)?);
    }
    let (suppressed, mut findings): (Vec<Finding>, Vec<Finding>) =
        deduplicate(findings).into_iter().partition(|finding| suppressions.suppresses(finding).is_some());
    let mut known = 0;
    if let Some(path) = &args.baseline {
        let comparison = compare(&FindingsFile::read(path)?.findings, findings);
        known = comparison.known.len();
        findings = comparison.new;
    }
    let (shown, held_back): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|finding| args.all || finding.grade == Grade::Confirmed);
    let mut to_stdout = false;
    if let Some(path) = &args.json {
        to_stdout |= write(path, &FindingsFile::new(program, shown.clone()).to_json())?;
    }
    if let Some(path) = &args.sarif {
        let root = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
        to_stdout |= write(path, &format!("{:#}\n", sarif(&shown, &suppressed, &root)))?;
    }
    if !to_stdout {
        show(&shown, &args.source, ctx);
    }
    if !ctx.quiet {
        let known = if known > 0 { format!(", {known} in the baseline") } else { String::new() };
        eprintln!("raddle: {}{known}", summary_line(&shown, &held_back, suppressed.len()));
        for unused in suppressions.unused() {
            eprintln!(
                "raddle: note: the suppression `{}` (line {}) matched nothing",
                unused.text, unused.line
            );
        }
    }
    Ok(if shown.is_empty() { Exit::Clean } else { Exit::Found })
}

fn show(findings: &[Finding], source: &[PathBuf], ctx: &Ctx) {
    let roots = if source.is_empty() { vec![PathBuf::from(".")] } else { source.to_vec() };
    let mut sources = Sources::new(roots);
    let style = Style { color: ctx.color_stdout(), ..Style::default() };
    for finding in findings {
        println!("{}", render(finding, &mut sources, style));
    }
}

/// Writes a file; says whether it was standard output.
fn write(path: &Path, text: &str) -> anyhow::Result<bool> {
    if path.as_os_str() == "-" {
        print!("{text}");
        return Ok(true);
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(false)
}
