//! `raddle hunt`: the main job, as a pipeline. Each step is somebody else's work: record, check, report.

use super::record::{What, sentence, show_messages};
use super::{Ctx, Exit};
use crate::launch::recording::{Recording, record};
use crate::launch::target::Target;
use anyhow::Context;
use raddle_findings::{Finding, Grade, Kind};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

/// Runs a program once and looks for concurrency errors in what its threads did.
///
/// Exit status: 0 nothing found, 1 at least one finding, 2 usage or environment error. The program's own status is told.
///
/// Examples:
///   raddle hunt examples/bank.c
///   raddle hunt --cflags "-O2 -Iinclude" a.c b.cpp -- 5
///   raddle hunt -- ./server --selftest
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// Folder for the trace (default: .raddle in this folder).
    #[arg(long, value_name = "DIR", default_value = ".raddle")]
    keep: PathBuf,
    #[command(flatten)]
    what: What,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let launch = args.target.launch()?;
    std::fs::create_dir_all(&args.keep).with_context(|| {
        format!("cannot create the folder {}; choose another with --keep", args.keep.display())
    })?;
    let path = args.keep.join(format!("{}.trace", args.target.name()));
    let recording = record(&launch, &args.what.config(), &path, ctx)?;
    show_messages(&recording, ctx);
    if !ctx.quiet {
        eprintln!("raddle: {}", sentence(&recording));
    }
    let findings = check(&recording);
    show(&findings, args.json)?;
    if !ctx.quiet && !args.json {
        eprintln!(
            "raddle: {}; checked: crashes of the recorded run. Races and deadlocks of other schedules are not looked for by this version",
            match findings.len() {
                0 => "nothing found".to_owned(),
                1 => "1 finding".to_owned(),
                n => format!("{n} findings"),
            }
        );
    }
    Ok(if findings.is_empty() { Exit::Clean } else { Exit::Found })
}

/// A run that was ended by a signal of its own making is an error that has happened.
fn check(recording: &Recording) -> Vec<Finding> {
    const SELF_INFLICTED: [i32; 6] =
        [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV];
    match recording.status.signal() {
        Some(signal) if SELF_INFLICTED.contains(&signal) => {
            let name = raddle_trace::file::meta::signal_name(signal);
            let message = format!("the program was ended by {name} while it was recorded");
            vec![Finding::new(Kind::Crash, Grade::Confirmed, "record", message, Vec::new())]
        }
        _ => Vec::new(),
    }
}

fn show(findings: &[Finding], json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(findings)?);
        return Ok(());
    }
    for finding in findings {
        println!("{}: {}", finding.id, finding.message);
    }
    Ok(())
}
