//! The CSP checker against SPIN: dining philosophers and mutual exclusion, the same models in both languages.
//!
//! Both explore the whole state space without reduction, and both with partial order reduction. SPIN goes depth first,
//! its usual and fastest way; the checker goes breadth first, so that its counterexamples are shortest. SPIN's verifier is
//! compiled with `-O2 -DSAFETY`. Bytes a state are what each reports for its stored states and their index, without
//! SPIN's depth-first stack. The models have the same number of states in both languages, which is checked.

use super::{Bench, Limit, Outcome, Row, Subject};
use crate::project;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds are too small a unit for less.
const PHILOSOPHERS: u32 = 8;
const PROCESSES: u32 = 5;
const CELLS: u32 = 16;
/// 3 · n · 2ⁿ⁻¹ states: 66 million.
const CELLS_LARGE: u32 = 21;
const STATES_LARGE: f64 = 50e6;
/// 3 · n · 2ⁿ⁻¹ states: 15 million, enough to keep two workers busy.
const CELLS_SPEED_UP: u32 = 19;
/// Models of Circus: the process, its size, and the seconds and states published for FDR 4 (docs/csp-engine.md).
const CIRCUS: [(&str, u32, f64, f64); 2] =
    [("circus-d241", 15, 5.846, 407_537.0), ("circus-d241pre", 8, 1.312, 4_537.0)];
/// A speed-up needs more rounds than a CPU time: every other process on the machine takes a part of it away.
const SPEED_UP_ROUNDS_MIN: u32 = 10;
const MEMORY_LARGE_KIB: f64 = 2.0 * 1024.0 * 1024.0;

pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
    project::run(project::cargo().args([
        "build",
        "--release",
        "--package",
        "raddle-csp",
        "--example",
        "csp_bench",
    ]))?;
    let checker = project::target().join("release/examples/csp_bench");
    let mut outcome = Outcome::new("csp");
    let spin = project::which("spin");
    if spin.is_none() {
        outcome.note("SPIN is not installed (Debian package `spin`); its rows are missing.");
    }
    let scratch = tempfile::tempdir()?;
    let models = [
        ("philosophers", PHILOSOPHERS, &["--left-handed"][..], Some("philosophers.pml")),
        ("mutual-exclusion", PROCESSES, &[], Some("mutual_exclusion.pml")),
        ("scheduler", CELLS, &[], None),
    ];
    for (model, size, flags, promela) in models {
        let case = format!("{model} {size}");
        let ours = |extra: &[&str]| {
            let mut command = Command::new(&checker);
            command.arg(model).arg(size.to_string()).args(flags).args(extra);
            command
        };
        let mut verifiers = Vec::new();
        if let (Some(spin), Some(file)) = (&spin, promela) {
            for (subject, options) in
                [("spin", &["-DSAFETY", "-DNOREDUCE"][..]), ("spin, reduced", &["-DSAFETY"])]
            {
                verifiers.push((subject, verifier(spin, file, size, options, scratch.path(), subject)?));
            }
        }
        let mut subjects = vec![
            Subject::process("raddle", || ours(&[])),
            Subject::process("raddle, 2 workers", || ours(&["--workers", "2"])),
            Subject::process("raddle, reduced", || ours(&["--por"])),
        ];
        for (subject, path) in &verifiers {
            subjects.push(Subject::process(subject, || pan(path)));
        }
        let rows = bench.measure(&case, subjects)?;
        let facts = checker_facts(&mut ours(&[]))?;
        let states = facts.states;
        let time = |subject: &str, of: fn(&Row) -> f64| rows.iter().find(|r| r.subject == subject).map(of);
        let cpu = |r: &Row| r.cpu_s;
        let one = time("raddle", cpu).context("the checker was measured")?;
        outcome.fact(&format!("{case}: states, raddle"), states);
        outcome
            .fact(&format!("{case}: states, raddle reduced"), checker_facts(&mut ours(&["--por"]))?.states);
        outcome.fact(&format!("{case}: states a CPU second, raddle"), states / one);
        outcome.fact(&format!("{case}: bytes a state, raddle"), facts.bytes_per_state);
        for (subject, path) in &verifiers {
            let theirs = pan_facts(path)?;
            let seconds = time(subject, cpu).context("SPIN was measured")?;
            outcome.fact(&format!("{case}: states, {subject}"), theirs.states);
            outcome.fact(&format!("{case}: states a CPU second, {subject}"), theirs.states / seconds);
            outcome.fact(&format!("{case}: bytes a state, {subject}"), theirs.bytes_per_state);
            if *subject == "spin" {
                // SPIN starts with a state or two of `init` before the processes run.
                let difference = (theirs.states - states).abs();
                ensure!(
                    difference <= 2.0,
                    "the models differ: {states} states here, {} in SPIN",
                    theirs.states
                );
            }
        }
        outcome.bar(&format!("{case}: bytes a state"), facts.bytes_per_state, Limit::AtMost(32.0));
        // Mutual exclusion has a tenth of the states of the others: too few to keep two workers busy.
        if model != "mutual-exclusion" {
            outcome.bar(&format!("{case}: pairs a CPU second"), states / one, Limit::AtLeast(1e6));
            speed_up(bench.rounds.max(SPEED_UP_ROUNDS_MIN), &case, ours, &mut outcome)?;
        }
        outcome.rows.extend(rows);
    }
    circus(bench, &checker, &mut outcome)?;
    if let Some(spin) = &spin {
        clock_in_spin(spin, scratch.path())?;
    }
    let busy = |extra: &[&str]| {
        let mut command = Command::new(&checker);
        command.args(["scheduler", &CELLS_SPEED_UP.to_string()]).args(extra);
        command
    };
    speed_up(bench.rounds, &format!("scheduler {CELLS_SPEED_UP}"), busy, &mut outcome)?;
    large(&checker, &mut outcome)?;
    Ok(outcome)
}

/// One worker against two by the clock, in turns, the least of the rounds each; the checker takes the time itself, because
/// whoever watches the memory of a process that uses all cores takes some of them away. Beside it, what the machine gives
/// to two processes that have nothing to do with each other: cores that share a cache or a clock are not two machines.
fn speed_up(
    rounds: u32,
    case: &str,
    ours: impl Fn(&[&str]) -> Command,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    if let Some(load) = load.split_whitespace().next().and_then(|text| text.parse().ok()) {
        outcome.fact(&format!("{case}: load of the machine before the speed-up"), load);
    }
    let mut least = [Facts::WORST; 2];
    let mut least_beside = f64::INFINITY;
    for _ in 0..rounds {
        for (workers, least) in ["1", "2"].into_iter().zip(&mut least) {
            let facts = checker_facts(&mut ours(&["--workers", workers]))?;
            least.wall_s = least.wall_s.min(facts.wall_s);
            least.cpu_s = least.cpu_s.min(facts.cpu_s);
        }
        least_beside = least_beside.min(side_by_side(&ours)?);
    }
    for (workers, facts) in ["1 worker", "2 workers"].into_iter().zip(&least) {
        outcome.fact(&format!("{case}: wall seconds, {workers}"), facts.wall_s);
        outcome.fact(&format!("{case}: CPU seconds, {workers}"), facts.cpu_s);
    }
    outcome.fact(
        &format!("{case}: speed-up of two processes side by side"),
        2.0 * least[0].wall_s / least_beside,
    );
    let ratio = least[0].wall_s / least[1].wall_s;
    outcome.bar(&format!("{case}: speed-up with 2 workers"), ratio, Limit::AtLeast(1.8));
    Ok(())
}

/// Wall seconds of the slower of two checks with one worker each at the same time.
fn side_by_side(ours: &impl Fn(&[&str]) -> Command) -> anyhow::Result<f64> {
    let mut commands = [ours(&["--workers", "1"]), ours(&["--workers", "1"])];
    let [left, right] = &mut commands;
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(|| checker_facts(right));
        [checker_facts(left), other.join().expect("measuring does not panic")]
    });
    let mut slower = 0f64;
    for facts in both {
        slower = slower.max(facts?.wall_s);
    }
    Ok(slower)
}

/// Choices over parallel systems, against what is published for FDR 4.
fn circus(bench: &Bench, checker: &Path, outcome: &mut Outcome) -> anyhow::Result<()> {
    for (model, size, seconds, states) in CIRCUS {
        let case = format!("{model} {size}");
        let ours = || {
            let mut command = Command::new(checker);
            command.args([model, &size.to_string()]);
            command
        };
        let rows = bench.measure(&case, vec![Subject::process("raddle", ours)])?;
        let facts = checker_facts(&mut ours())?;
        outcome.fact(&format!("{case}: states, raddle"), facts.states);
        outcome.bar(&format!("{case}: states"), facts.states, Limit::AtMost(states));
        outcome.bar(&format!("{case}: CPU seconds"), rows[0].cpu_s, Limit::AtMost(seconds));
        outcome.rows.extend(rows);
    }
    Ok(())
}

/// That the clock with a choice at the full hour neither deadlocks nor diverges, as a tool says that knows nothing of CSP.
fn clock_in_spin(spin: &Path, scratch: &Path) -> anyhow::Result<()> {
    let (_, size, ..) = CIRCUS[1];
    for (name, option, more) in [("deadlocks", "-DSAFETY", &[][..]), ("divergence", "-DNP", &["-l"])] {
        let path = verifier(spin, "circus_clock.pml", size, &[option, "-DNOREDUCE"], scratch, name)?;
        let report = String::from_utf8_lossy(&project::output(pan(&path).args(more))?).into_owned();
        ensure!(report.contains("errors: 0"), "SPIN, {name}, finds an error:\n{report}");
    }
    Ok(())
}

/// More than fifty million states in two gigabytes, once.
fn large(checker: &Path, outcome: &mut Outcome) -> anyhow::Result<()> {
    let command = || {
        let mut command = Command::new(checker);
        command.args(["scheduler", &CELLS_LARGE.to_string(), "--workers", "2"]);
        command
    };
    let rows =
        Bench { rounds: 1 }.measure("a large check", vec![Subject::process("raddle, 2 workers", command)])?;
    let states = 3.0 * f64::from(CELLS_LARGE) * 2f64.powi(CELLS_LARGE as i32 - 1);
    ensure!(states >= STATES_LARGE);
    outcome.fact("a large check: states", states);
    let peak = rows[0].peak_kib.context("a process has a peak")? as f64;
    outcome.bar("a large check: peak KiB", peak, Limit::AtMost(MEMORY_LARGE_KIB));
    outcome.rows.extend(rows);
    Ok(())
}

struct Facts {
    states: f64,
    bytes_per_state: f64,
    wall_s: f64,
    cpu_s: f64,
}

impl Facts {
    const WORST: Facts =
        Facts { states: 0.0, bytes_per_state: f64::INFINITY, wall_s: f64::INFINITY, cpu_s: f64::INFINITY };
}

fn checker_facts(command: &mut Command) -> anyhow::Result<Facts> {
    let value: Value = serde_json::from_slice(&project::output(command)?)?;
    let number = |key: &str| value[key].as_f64().with_context(|| format!("csp_bench does not say {key}"));
    ensure!(value["holds"] == true, "{} does not hold", value["model"]);
    Ok(Facts {
        states: number("states")?,
        bytes_per_state: number("bytes_per_state")?,
        wall_s: number("wall_seconds")?,
        cpu_s: number("cpu_seconds")?,
    })
}

/// Compiles SPIN's verifier of a model in a folder of its own.
fn verifier(
    spin: &Path,
    file: &str,
    size: u32,
    options: &[&str],
    scratch: &Path,
    name: &str,
) -> anyhow::Result<PathBuf> {
    let folder = scratch.join(format!("{file}-{}", name.replace([',', ' '], "-")));
    std::fs::create_dir_all(&folder)?;
    let source = project::root().join("benches/csp").join(file);
    project::output(
        Command::new(spin).current_dir(&folder).arg(format!("-DN={size}")).arg("-a").arg(source),
    )?;
    let mut compile = Command::new("cc");
    compile.current_dir(&folder).args(["-O2", "-w", "-DMEMLIM=8192"]).args(options);
    project::output(compile.args(["-o", "pan", "pan.c"]))?;
    Ok(folder.join("pan"))
}

fn pan(path: &Path) -> Command {
    let mut command = Command::new(path);
    // Depth enough for any of the models, and a hash table of 2^21 slots.
    command.current_dir(path.parent().expect("pan lies in a folder")).args(["-m5000000", "-w21", "-n"]);
    command
}

/// States stored, and bytes for them, from the report of a verifier.
fn pan_facts(path: &Path) -> anyhow::Result<Facts> {
    let report = String::from_utf8_lossy(&project::output(&mut pan(path))?).into_owned();
    ensure!(report.contains("errors: 0"), "SPIN finds an error:\n{report}");
    ensure!(!report.contains("max search depth too small"), "SPIN did not see all states:\n{report}");
    let number_before = |text: &str| -> anyhow::Result<f64> {
        let line = report
            .lines()
            .find(|l| l.contains(text))
            .with_context(|| format!("no {text:?} in:\n{report}"))?;
        line.split_whitespace()
            .next()
            .and_then(|n| n.parse().ok())
            .with_context(|| format!("no number in {line:?}"))
    };
    let states = number_before("states, stored")?;
    let megabytes =
        number_before("actual memory usage for states")? + number_before("memory used for hash table")?;
    Ok(Facts { states, bytes_per_state: megabytes * 1024.0 * 1024.0 / states, ..Facts::WORST })
}
