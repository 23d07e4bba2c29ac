//! Online detection: the programs of the recording bench, each native, under clang's and gcc's ThreadSanitizer, and under
//! `raddle run`, built by the same compiler, with and without weak behaviours.
//!
//! Everybody gets `-O2 -g` and the same inputs. Raddle's rows count both processes (the program, and the one that takes its reports), as
//! in a real use.

use super::against::{Case, Side};
use super::program::{Program, raddle_cc, with};
use super::{Bench, Limit, Outcome, Subject, geometric_mean, ratios};
use crate::project;
use anyhow::Context;
use std::path::Path;
use std::process::Command;

/// Programs and their inputs.
const PROGRAMS: &[(&str, &str)] = &[
    ("matmul", "320"),
    ("sort", "600000"),
    ("hashtable", "200000"),
    ("queue", "200000"),
    ("stencil", "60"),
    ("counter", "300000"),
];

/// Programs whose work is divided among their threads, and inputs.
const SCALING: [(&str, &str); 2] = [("matmul", "400"), ("stencil", "120")];

const CLANG: &str = "clang TSan";
const GCC: &str = "gcc TSan";
const OURS: &str = "raddle (clang)";
const OURS_GCC: &str = "raddle (gcc)";
const WEAK: &str = "raddle --weak (clang)";

pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
    let raddle = project::release_raddle()?;
    let clang =
        project::newest("clang").context("no clang-NN; run `cargo xtask test` once, it installs one")?;
    let scratch = tempfile::tempdir()?;
    let mut outcome = Outcome::new("run");
    for &(name, size) in PROGRAMS {
        let program = Program { name, folder: scratch.path() };
        let compile = |kind, command| program.compile(kind, command);
        let ours = |compiler| raddle_cc(&raddle, compiler);
        let gcc = Path::new("gcc");
        let native = compile("native", with(&clang, None))?;
        let clang_tsan = compile("clang-tsan", with(&clang, Some("-fsanitize=thread")))?;
        let gcc_tsan = compile("gcc-tsan", with(gcc, Some("-fsanitize=thread")))?;
        let ours_clang = compile("raddle-clang", ours(&clang))?;
        let ours_gcc = compile("raddle-gcc", ours(gcc))?;
        let plain = |path: &Path| {
            let mut command = Command::new(path);
            command.arg(size);
            command
        };
        let detected = |path: &Path, weak: Option<&str>| detected(&raddle, path, size, weak);
        outcome.rows.extend(bench.measure(
            name,
            vec![
                Subject::process("native", || plain(&native)),
                Subject::process(CLANG, || plain(&clang_tsan)),
                Subject::process(GCC, || plain(&gcc_tsan)),
                Subject::process(OURS, || detected(&ours_clang, None)),
                Subject::process(OURS_GCC, || detected(&ours_gcc, None)),
                Subject::process(WEAK, || detected(&ours_clang, Some("--weak"))),
            ],
        )?);
    }
    bars(&mut outcome);
    scaling(bench, &raddle, &clang, scratch.path(), &mut outcome)?;
    Ok(outcome)
}

/// A program under `raddle run`.
fn detected(raddle: &Path, program: &Path, size: &str, weak: Option<&str>) -> Command {
    let mut command = Command::new(raddle);
    command.args(["run", "--quiet"]).args(weak).arg("--").arg(program).arg(size);
    command
}

/// What this group asks of Raddle, for [`super::against`].
pub(super) fn cases<'a>(side: &'a Side<'a>) -> anyhow::Result<Vec<Case<'a>>> {
    let clang = project::newest("clang").context("no clang-NN")?;
    let mut cases: Vec<Case<'a>> = Vec::new();
    for &(name, size) in PROGRAMS {
        let program = Program { name, folder: side.folder };
        let with_clang = program.compile("clang", raddle_cc(side.raddle, &clang))?;
        let with_gcc = program.compile("gcc", raddle_cc(side.raddle, Path::new("gcc")))?;
        for (subject, path, weak) in
            [(OURS, &with_clang, None), (OURS_GCC, &with_gcc, None), (WEAK, &with_clang, Some("--weak"))]
        {
            let path = path.clone();
            let command = move || detected(side.raddle, &path, size, weak);
            cases.push((format!("{name}: {subject}"), Box::new(command)));
        }
    }
    Ok(cases)
}

/// How much faster a program that divides its work among two threads is than with one, by the clock on the wall.
fn scaling(
    bench: &Bench,
    raddle: &Path,
    clang: &Path,
    scratch: &Path,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    for (name, size) in SCALING {
        let program = Program { name, folder: scratch };
        let compile = |kind: &str, mut command: Command, threads: u32| {
            command.arg(format!("-DTHREADS={threads}"));
            program.compile(&format!("{kind}-{threads}"), command)
        };
        let mut subjects = Vec::new();
        for threads in [1, 2] {
            let theirs = compile("clang-tsan", with(clang, Some("-fsanitize=thread")), threads)?;
            let ours = compile("raddle", raddle_cc(raddle, clang), threads)?;
            subjects.push(Subject::process(&format!("{CLANG}, {threads} threads"), move || {
                let mut command = Command::new(&theirs);
                command.arg(size);
                command
            }));
            subjects.push(Subject::process(&format!("{OURS}, {threads} threads"), move || {
                let mut command = Command::new(raddle);
                command.args(["run", "--quiet", "--"]).arg(&ours).arg(size);
                command
            }));
        }
        let rows = bench.measure(&format!("{name}, scaling"), subjects)?;
        let wall = |subject: &str, threads: u32| {
            let wanted = format!("{subject}, {threads} threads");
            rows.iter().find(|row| row.subject == wanted).map_or(f64::NAN, |row| row.wall_s)
        };
        let gain = |subject| wall(subject, 1) / wall(subject, 2);
        outcome.fact(&format!("{name}: {CLANG} with two threads is faster by"), gain(CLANG));
        outcome.fact(&format!("{name}: {OURS} with two threads is faster by"), gain(OURS));
        let relative = gain(OURS) / gain(CLANG);
        outcome.bar(&format!("{name}: scaling against {CLANG}'s"), relative, Limit::AtLeast(1.0));
        outcome.rows.extend(rows);
    }
    Ok(())
}

fn bars(outcome: &mut Outcome) {
    for (ours, theirs, mean_max, worst_max) in
        [(OURS, CLANG, 1.0, 1.25), (OURS_GCC, GCC, 1.0, 1.25), (WEAK, CLANG, 1.3, 1.625)]
    {
        let all = ratios(&outcome.rows, ours, theirs);
        let mean = geometric_mean(all.iter().map(|(_, ratio)| *ratio));
        let worst = all.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max);
        let about = format!("CPU time, {ours} against {theirs}");
        outcome.bar(&format!("{about}, geometric mean"), mean, Limit::AtMost(mean_max));
        outcome.bar(&format!("{about}, worst"), worst, Limit::AtMost(worst_max));
        let peak = |case: &str, subject: &str| {
            let row = outcome.rows.iter().find(|row| row.case == case && row.subject == subject);
            row.and_then(|row| row.peak_kib)
        };
        let memory = PROGRAMS
            .iter()
            .filter_map(|(name, _)| Some(peak(name, ours)? as f64 / peak(name, theirs)? as f64));
        let memory = memory.fold(0.0, f64::max);
        outcome.bar(&format!("peak memory, {ours} against {theirs}, worst"), memory, Limit::AtMost(1.0));
    }
    outcome.note(
        "Raddle's times and memory are those of the program and of the process that takes its reports together; memory that both map counts once.",
    );
}
