//! Exploring small programs: runs a second of CPU time, in a kept process and in forked ones, interleaved.
//!
//! Whole commands are measured, so a part of each figure is starting `raddle` and the program, and the first runs, which are made both
//! ways and compared.

use super::{Bench, Limit, Outcome, Subject};
use crate::project;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs of one measurement.
const KEPT_RUNS: u32 = 20_000;
const FORKED_RUNS: u32 = 1_000;

fn checked(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

fn compile(raddle: &Path, source: &Path, program: &Path) -> anyhow::Result<()> {
    let headers = project::root().join("corpus/include");
    let mut command = Command::new(raddle);
    command.args(["cc", "-std=gnu11", "-O1", "-pthread", "-I"]).arg(headers);
    checked(command.arg(source).arg("-o").arg(program))
}

pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new("explore");
    let folder = tempfile::tempdir()?;
    let raddle = project::release_raddle()?;
    let root = project::root();
    let at = |name: &str| folder.path().join(name);
    compile(&raddle, &root.join("corpus/explore/tiny.c"), &at("tiny"))?;
    compile(&raddle, &root.join("benches/programs/locks.c"), &at("locks"))?;
    let std_program = at("std");
    checked(
        Command::new("rustc")
            .args(["--edition", "2024", "-O", "-o"])
            .arg(&std_program)
            .arg(root.join("benches/programs/std.rs")),
    )?;
    // The bars are for threads as stacks of one kernel thread.
    let cases: [(&str, PathBuf, f64); 3] =
        [("tiny", at("tiny"), 50_000.0), ("locks", at("locks"), 10_000.0), ("std", std_program, 15_000.0)];
    for (name, program, bar) in cases {
        let explore = |mode: &str, runs: u32| {
            let mut command = Command::new(&raddle);
            command.args([
                "-q",
                "explore",
                "--strategy",
                "random",
                "--workers",
                "1",
                "--no-schedules",
                "--preload",
                "--mode",
                mode,
                "--runs",
            ]);
            if name != "std" {
                command = Command::new(&raddle);
                command.args([
                    "-q",
                    "explore",
                    "--strategy",
                    "random",
                    "--workers",
                    "1",
                    "--no-schedules",
                    "--mode",
                    mode,
                    "--runs",
                ]);
            }
            command.arg(runs.to_string()).arg("--").arg(&program);
            command
        };
        let rows = bench.measure(
            name,
            vec![
                Subject::process("raddle explore --mode fibers", || explore("fibers", KEPT_RUNS)),
                Subject::process("raddle explore --mode fork", || explore("fork", FORKED_RUNS)),
            ],
        )?;
        let kept = f64::from(KEPT_RUNS) / rows[0].cpu_s;
        let forked = f64::from(FORKED_RUNS) / rows[1].cpu_s;
        outcome.fact(&format!("{name}: runs a second of CPU time, forked"), forked);
        outcome.fact(&format!("{name}: kept against forked"), kept / forked);
        outcome.bar(&format!("{name}: runs a second of CPU time, fibers"), kept, Limit::AtLeast(bar));
        outcome.rows.extend(rows);
    }
    Ok(outcome)
}
