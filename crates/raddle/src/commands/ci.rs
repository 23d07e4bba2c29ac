//! `raddle ci`: hunts, and leaves what a continuous integration service reads.

use super::{Ctx, Exit, hunt};
use anyhow::Context;
use raddle_findings::formats::{Listing, github, gitlab};
use raddle_findings::{FindingsFile, Grade};
use raddle_report::English;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Hunts, as `raddle hunt` does, and writes everything that a continuous integration service can show into one folder:
/// findings.json, findings.sarif, junit.xml, report.html and code-quality.json (GitLab's form).
///
/// On GitHub's runners findings become annotations of the lines they are about, and a summary of the job. Options of `raddle hunt`
/// are the same here; those that every run of a project needs belong into raddle.toml (docs/ci.md).
///
/// Examples:
///   raddle ci -- make check
///   raddle ci --report-dir out --baseline known.json -- ctest --output-on-failure
///   raddle ci --fail-on confirmed --runs 3 -- ./server --selftest
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
// The options of hunting form a group of the same name.
#[group(skip)]
pub struct Args {
    /// The folder in which the reports are left; it is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "raddle-report")]
    report_dir: PathBuf,
    #[command(flatten)]
    hunt: hunt::Args,
}

pub fn run(mut args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let folder = &args.report_dir;
    std::fs::create_dir_all(folder).with_context(|| {
        format!("cannot create the folder {}; choose another with --report-dir", folder.display())
    })?;
    let output = args.hunt.output();
    let json = output.output.get_or_insert_with(|| folder.join("findings.json")).clone();
    output.sarif.get_or_insert_with(|| folder.join("findings.sarif"));
    output.junit.get_or_insert_with(|| folder.join("junit.xml"));
    output.html.get_or_insert_with(|| folder.join("report.html"));
    // Nothing of an earlier run may be taken for this one's.
    let _ = std::fs::remove_file(&json);
    let exit = hunt::run(args.hunt, ctx)?;
    if json.is_file() {
        tell(&FindingsFile::read(&json)?, &args.report_dir, ctx)?;
    }
    Ok(exit)
}

/// Writes what has to be in the service's own words.
fn tell(file: &FindingsFile, folder: &Path, ctx: &Ctx) -> anyhow::Result<()> {
    let wording = English { verbose: ctx.verbose > 0 };
    let root = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
    let listing = Listing {
        findings: &file.findings,
        held_back: &[],
        suppressed: &[],
        known: None,
        fail_on: Grade::Unordered,
        root: &root,
    };
    let path = folder.join("code-quality.json");
    std::fs::write(&path, gitlab(&listing, &wording))
        .with_context(|| format!("cannot write {}", path.display()))?;
    if std::env::var_os("GITHUB_ACTIONS").is_some() {
        print!("{}", github(&listing, &wording));
    }
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        let summary = raddle_report::markdown(&file.findings);
        let mut opened = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        let written = opened
            .as_mut()
            .map_err(|error| error.kind())
            .and_then(|file| file.write_all(summary.as_bytes()).map_err(|error| error.kind()));
        if written.is_err() && !ctx.quiet {
            eprintln!(
                "raddle: warning: cannot write the summary of the job to {}",
                Path::new(&path).display()
            );
        }
    }
    if !ctx.quiet {
        eprintln!("raddle: reports are in {}", folder.display());
    }
    Ok(())
}
