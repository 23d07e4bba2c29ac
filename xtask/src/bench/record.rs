//! Recording: six small programs, each native, under clang's and gcc's ThreadSanitizer, under helgrind, and recorded by Raddle
//! with memory accesses and with synchronisation only. Synchronisation only comes in two rows: the program built by
//! `raddle cc` with `--sync-only`, which still calls its hooks, and the native program, recorded as it is. The second is how
//! one records without memory accesses when speed matters, and the one that has a bar.
//!
//! Everybody gets `-O2 -g` and the same inputs. Raddle's row counts both processes (the program and the collector that
//! writes the trace), so that compressing and writing are paid for. helgrind runs once whatever the number of rounds: it is slower by
//! two orders of magnitude and far from any limit.

use super::against::{Case, Side};
use super::program::{self, raddle_cc, with};
use super::{Bench, Limit, Outcome, Row, Subject, geometric_mean, ratios};
use crate::project;
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Program {
    name: &'static str,
    size: &'static str,
    /// Sizes that keep helgrind under a minute.
    helgrind_size: &'static str,
    /// Hardly synchronises: recording synchronisation only must be free. The input is one that takes a while, so that
    /// starting up does not count.
    compute: Option<&'static str>,
}

const PROGRAMS: &[Program] = &[
    Program { name: "matmul", size: "320", helgrind_size: "160", compute: Some("640") },
    Program { name: "sort", size: "600000", helgrind_size: "100000", compute: Some("5000000") },
    Program { name: "hashtable", size: "200000", helgrind_size: "10000", compute: None },
    Program { name: "queue", size: "200000", helgrind_size: "10000", compute: None },
    Program { name: "stencil", size: "60", helgrind_size: "10", compute: Some("3000") },
    Program { name: "counter", size: "300000", helgrind_size: "20000", compute: None },
];

/// The native program, which is recorded with its synchronisation only.
const UNMODIFIED: &str = "raddle, not rebuilt";

struct Builds {
    native: PathBuf,
    clang_tsan: PathBuf,
    gcc_tsan: PathBuf,
    raddle: PathBuf,
}

pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
    let raddle = project::release_raddle()?;
    let clang =
        project::newest("clang").context("no clang-NN; run `cargo xtask test` once, it installs one")?;
    let scratch = tempfile::tempdir()?;
    let trace = scratch.path().join("bench.trace");
    let mut outcome = Outcome::new("record");
    let mut bytes_per_event: f64 = 0.0;
    for program in PROGRAMS {
        let builds = build(program, &raddle, &clang, scratch.path())?;
        let plain = |path: &Path| {
            let mut command = Command::new(path);
            command.arg(program.size);
            command
        };
        let rebuilt = |sync_only: bool| recorded(&raddle, &trace, &builds.raddle, program.size, sync_only);
        outcome.rows.extend(bench.measure(
            program.name,
            vec![
                Subject::process("native", || plain(&builds.native)),
                Subject::process("clang TSan", || plain(&builds.clang_tsan)),
                Subject::process("gcc TSan", || plain(&builds.gcc_tsan)),
                Subject::process("raddle sync only", || rebuilt(true)),
                Subject::process("raddle", || rebuilt(false)),
            ],
        )?);
        // The last run of the last round left its trace.
        let density = trace_density(&raddle, &trace)?;
        outcome.fact(&format!("{}: bytes per event in the trace", program.name), density);
        bytes_per_event = bytes_per_event.max(density);
        outcome.rows.extend(helgrind(program, &builds.native)?);
        if let Some(size) = program.compute {
            let native = || {
                let mut command = Command::new(&builds.native);
                command.arg(size);
                command
            };
            let unmodified = || recorded(&raddle, &trace, &builds.native, size, false);
            outcome.rows.extend(bench.measure(
                &format!("{} (input {size})", program.name),
                vec![Subject::process("native", native), Subject::process(UNMODIFIED, unmodified)],
            )?);
        }
    }
    bars(&mut outcome, bytes_per_event);
    Ok(outcome)
}

/// A program under `raddle record`.
fn recorded(raddle: &Path, trace: &Path, program: &Path, size: &str, sync_only: bool) -> Command {
    let mut command = Command::new(raddle);
    command.args(["record", "--quiet", "-o"]).arg(trace);
    command.args(sync_only.then_some("--sync-only"));
    command.arg("--").arg(program).arg(size);
    command
}

/// What this group asks of Raddle, for [`super::against`].
pub(super) fn cases<'a>(side: &'a Side<'a>) -> anyhow::Result<Vec<Case<'a>>> {
    let clang = project::newest("clang").context("no clang-NN")?;
    let trace = side.folder.join("bench.trace");
    let mut cases: Vec<Case<'a>> = Vec::new();
    for program in PROGRAMS {
        let sources = program::Program { name: program.name, folder: side.folder };
        let rebuilt = sources.compile("raddle", raddle_cc(side.raddle, &clang))?;
        let native = sources.compile("native", with(&clang, None))?;
        let mut add = |what: &str, path: &Path, size: &'static str, sync_only: bool| {
            let (path, trace) = (path.to_owned(), trace.clone());
            let command = move || recorded(side.raddle, &trace, &path, size, sync_only);
            cases.push((format!("{}: {what}", program.name), Box::new(command)));
        };
        add("raddle", &rebuilt, program.size, false);
        add("raddle sync only", &rebuilt, program.size, true);
        if let Some(size) = program.compute {
            add(UNMODIFIED, &native, size, false);
        }
    }
    Ok(cases)
}

fn build(program: &Program, raddle: &Path, clang: &Path, folder: &Path) -> anyhow::Result<Builds> {
    let program = program::Program { name: program.name, folder };
    let compile = |kind, command| program.compile(kind, command);
    Ok(Builds {
        native: compile("native", with(clang, None))?,
        clang_tsan: compile("clang-tsan", with(clang, Some("-fsanitize=thread")))?,
        gcc_tsan: compile("gcc-tsan", with(Path::new("gcc"), Some("-fsanitize=thread")))?,
        raddle: compile("raddle", raddle_cc(raddle, clang))?,
    })
}

/// One round on a smaller input, scaled by a native run on the same input so that the ratio is comparable.
fn helgrind(program: &Program, native: &Path) -> anyhow::Result<Vec<Row>> {
    if project::which("valgrind").is_none() {
        return Ok(Vec::new());
    }
    let command = || {
        let mut command = Command::new("valgrind");
        command.args(["--tool=helgrind", "-q"]).arg(native).arg(program.helgrind_size);
        command
    };
    let small = || {
        let mut command = Command::new(native);
        command.arg(program.helgrind_size);
        command
    };
    let case = format!("{} (input {})", program.name, program.helgrind_size);
    Bench { rounds: 1 }
        .measure(&case, vec![Subject::process("native", small), Subject::process("helgrind", command)])
}

fn trace_density(raddle: &Path, trace: &Path) -> anyhow::Result<f64> {
    let bytes = std::fs::metadata(trace)?.len();
    let text = project::output(Command::new(raddle).args(["trace", "info", "--json"]).arg(trace))?;
    let info: serde_json::Value = serde_json::from_slice(&text).context("`raddle trace info --json`")?;
    let events = info["events"].as_u64().context("`raddle trace info --json` has no number of events")?;
    Ok(bytes as f64 / events.max(1) as f64)
}

fn bars(outcome: &mut Outcome, bytes_per_event: f64) {
    let against_tsan = ratios(&outcome.rows, "raddle", "clang TSan");
    let mean = geometric_mean(against_tsan.iter().map(|(_, ratio)| *ratio));
    outcome.bar("CPU time against clang TSan, geometric mean", mean, Limit::AtMost(0.8));
    for (case, ratio) in ratios(&outcome.rows, UNMODIFIED, "native") {
        outcome.bar(&format!("sync only against native: {case}"), ratio, Limit::AtMost(1.1));
    }
    let peak = |case: &str, subject: &str| {
        outcome
            .rows
            .iter()
            .find(|row| row.case == case && row.subject == subject)
            .and_then(|row| row.peak_kib)
    };
    let memory = PROGRAMS.iter().filter_map(|program| {
        Some(peak(program.name, "raddle")? as f64 / peak(program.name, "clang TSan")? as f64)
    });
    let memory = memory.fold(0.0, f64::max);
    outcome.bar("peak memory of both processes against clang TSan, worst", memory, Limit::AtMost(1.0));
    outcome.bar("bytes per kept event, worst", bytes_per_event, Limit::AtMost(3.0));
    outcome.note(
        "Raddle's times and memory are those of the recorded program and of the collector together; memory that both map counts once.",
    );
}
