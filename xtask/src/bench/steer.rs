//! Steering: schedules a second from the fork server against a loop that only forks and exits, and against starting the
//! program for each run; and what control costs a program with many locks.
//!
//! All subjects do the same number of runs, so their CPU times compare as their rates do.

use super::against::{Case, Side};
use super::{Bench, Limit, Outcome, Row, Subject};
use crate::external::workload;
use crate::project;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs of the tiny program in one measurement.
const RUNS: u32 = 2000;
const RUNS_STARTED: u32 = 200;

/// Forks a child that makes as many threads as the tiny program and exits, again and again, on one processor.
const BARE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *nothing(void *argument) { return argument; }
int main(int count, char **words) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    sched_setaffinity(0, sizeof set, &set);
    int threads = count > 2 ? atoi(words[2]) : 0;
    for (int run = atoi(words[1]); run > 0; run--) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t handles[8];
            for (int i = 0; i < threads; i++) pthread_create(&handles[i], NULL, nothing, NULL);
            for (int i = 0; i < threads; i++) pthread_join(handles[i], NULL);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return 0;
}
"#;

fn checked(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

/// Runs of the tiny program under one strategy, from the fork server or each started anew.
fn explored(raddle: &Path, tiny: &Path, runs: u32, exec: bool) -> Command {
    let mut command = Command::new(raddle);
    command.args(["-q", "explore", "--strategy", "random", "--workers", "1", "--no-schedules"]);
    command.args(["--runs", &runs.to_string()]);
    command.args(exec.then_some("--exec"));
    command.arg("--").arg(tiny);
    command
}

/// The hash table with its one mutex, in some way of running it.
fn table(raddle: &Path, program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(raddle);
    command.arg("-q").args(words).arg("--").arg(program).arg(OPERATIONS);
    command
}

fn build_table(raddle: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let program = folder.join("hashtable");
    checked(
        Command::new(raddle)
            .args(["cc", "-O2", "-g", "-pthread"])
            .arg(project::root().join("benches/programs/hashtable.c"))
            .arg("-o")
            .arg(&program),
    )?;
    Ok(program)
}

/// What this group asks of Raddle, for [`super::against`]. Replays follow after the recording, each side its
/// own demo.
pub(super) fn cases<'a>(side: &'a Side<'a>) -> anyhow::Result<Vec<Case<'a>>> {
    let (_, tiny) = build(side.raddle, side.folder)?;
    let program = build_table(side.raddle, side.folder)?;
    let mut cases: Vec<Case<'a>> = Vec::new();
    for (name, runs, exec) in [("raddle explore", RUNS, false), ("raddle explore --exec", RUNS_STARTED, true)]
    {
        let tiny = tiny.clone();
        let command = move || explored(side.raddle, &tiny, runs, exec);
        cases.push((format!("{runs} runs of tiny: {name}"), Box::new(command)));
    }
    let demo = side.folder.join("hashtable.demo").display().to_string();
    for words in ["run", "run --strategy queue", "run --strategy random", "record --demo --strategy queue -o"]
    {
        let (program, demo) = (program.clone(), demo.clone());
        let command = move || {
            let mut all: Vec<&str> = words.split(' ').collect();
            all.extend(words.ends_with("-o").then_some(demo.as_str()));
            table(side.raddle, &program, &all)
        };
        cases.push((format!("hashtable: raddle {}", words.trim_end_matches(" -o")), Box::new(command)));
    }
    let replay = move || {
        let mut command = Command::new(side.raddle);
        command.args(["-q", "replay", &demo]);
        command
    };
    cases.push(("hashtable: raddle replay".to_owned(), Box::new(replay)));
    Ok(cases)
}

fn build(raddle: &Path, folder: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
    let (source, bare, tiny) = (folder.join("bare.c"), folder.join("bare"), folder.join("tiny"));
    std::fs::write(&source, BARE)?;
    checked(Command::new("gcc").args(["-O1", "-pthread", "-o"]).arg(&bare).arg(&source))?;
    let corpus = project::root().join("corpus");
    checked(
        Command::new(raddle)
            .args(["cc", "-std=gnu11", "-O1", "-pthread", "-I"])
            .arg(corpus.join("include"))
            .arg(corpus.join("explore/tiny.c"))
            .arg("-o")
            .arg(&tiny),
    )?;
    Ok((bare, tiny))
}

pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new("steer");
    let folder = tempfile::tempdir()?;
    let raddle = project::release_raddle()?;
    let (bare, tiny) = build(&raddle, folder.path())?;
    let explore = |runs: u32, exec: bool| explored(&raddle, &tiny, runs, exec);
    let fork_loop = |threads: &str| {
        let mut command = Command::new(&bare);
        command.args([&RUNS.to_string(), threads]);
        command
    };
    let rows = bench.measure(
        &format!("{RUNS} runs of tiny"),
        vec![
            Subject::process("fork and exit", || fork_loop("0")),
            Subject::process("fork, two threads, exit", || fork_loop("2")),
            Subject::process("raddle explore", || explore(RUNS, false)),
        ],
    )?;
    let rate = |row: usize| f64::from(RUNS) / rows[row].cpu_s;
    outcome.fact("schedules a second of CPU time, fork server", rate(2));
    outcome.fact("forks a second of CPU time", rate(0));
    outcome.bar("schedules a second of CPU time", rate(2), Limit::AtLeast(4000.0));
    outcome.bar("CPU time against fork and exit", rows[2].cpu_s / rows[0].cpu_s, Limit::AtMost(1.2));
    outcome.rows.extend(rows);
    let rows = bench.measure(
        &format!("{RUNS_STARTED} runs of tiny, started anew"),
        vec![Subject::process("raddle explore --exec", || explore(RUNS_STARTED, true))],
    )?;
    outcome.rows.extend(rows);
    mutex_heavy(bench, &raddle, folder.path(), &mut outcome)?;
    server(bench, &raddle, folder.path(), &mut outcome)?;
    Ok(outcome)
}

/// Operations of each thread on the table.
const OPERATIONS: &str = "100000";

/// Two threads and one mutex that is always wanted: free and detecting, under `queue` and detecting, and with a demo.
fn mutex_heavy(bench: &Bench, raddle: &Path, folder: &Path, outcome: &mut Outcome) -> anyhow::Result<()> {
    let program = build_table(raddle, folder)?;
    let with = |words: &[&str]| table(raddle, &program, words);
    let demo = folder.join("hashtable.demo").display().to_string();
    let rows = bench.measure(
        "hashtable",
        vec![
            Subject::process("native", || {
                let mut command = Command::new(&program);
                command.arg(OPERATIONS);
                command
            }),
            Subject::process("raddle run", || with(&["run"])),
            Subject::process("raddle run --strategy queue", || with(&["run", "--strategy", "queue"])),
            Subject::process("raddle run --strategy random", || with(&["run", "--strategy", "random"])),
            Subject::process("raddle record --demo --strategy queue", || {
                with(&["record", "--demo", "--strategy", "queue", "-o", &demo])
            }),
            Subject::process("raddle replay", || {
                let mut command = Command::new(raddle);
                command.args(["-q", "replay", &demo]);
                command
            }),
        ],
    )?;
    let ratio = |row: usize| rows[row].cpu_s / rows[1].cpu_s;
    outcome.bar("hashtable: queue against free, both detecting", ratio(2), Limit::AtMost(2.0));
    outcome.bar("hashtable: queue with a demo against free and detecting", ratio(4), Limit::AtMost(3.0));
    outcome.fact("hashtable: random against free, both detecting", ratio(3));
    outcome.fact("hashtable: replay against free and detecting", ratio(5));
    outcome.rows.extend(rows);
    Ok(())
}

/// memcached under the load of `cargo xtask external`, if its builds are there. The thesis has httpd at 9 times native under
/// control and at 21 times with recording (table 5.5).
fn server(bench: &Bench, raddle: &Path, folder: &Path, outcome: &mut Outcome) -> anyhow::Result<()> {
    let builds = project::target().join("external");
    let (native, built) =
        (builds.join("memcached-native/memcached"), builds.join("memcached-demo/memcached"));
    if !native.exists() || !built.exists() {
        eprintln!(
            "memcached is not measured: make its builds with `cargo xtask external memcached` and `--demo 1`"
        );
        return Ok(());
    }
    let demo = folder.join("memcached.demo");
    let words = |line: &str| -> Vec<PathBuf> {
        let mut words = vec![raddle.to_owned()];
        words.extend(line.split(' ').map(PathBuf::from));
        words
    };
    let mut record = words("-q record --demo --strategy queue -o");
    record.extend([demo, "--".into()]);
    let prefixes: [(&str, &Path, Vec<PathBuf>); 4] = [
        ("native", &native, Vec::new()),
        ("raddle run", &built, words("-q run --")),
        ("raddle run --strategy queue", &built, words("-q run --strategy queue --")),
        ("raddle record --demo --strategy queue", &built, record),
    ];
    let mut rows: Vec<Row> = Vec::new();
    for round in 0..bench.rounds.max(1) {
        for (at, (name, program, prefix)) in prefixes.iter().enumerate() {
            let (cpu, wall) =
                workload::memcached_cost(program, prefix).with_context(|| (*name).to_owned())?;
            if round == 0 {
                rows.push(Row {
                    case: "memcached".into(),
                    subject: (*name).into(),
                    cpu_s: cpu,
                    wall_s: wall,
                    peak_kib: None,
                });
            }
            rows[at].cpu_s = rows[at].cpu_s.min(cpu);
            rows[at].wall_s = rows[at].wall_s.min(wall);
        }
    }
    let ratio = |row: usize| rows[row].wall_s / rows[0].wall_s;
    outcome.bar(
        "memcached: time of all requests under queue, detecting, against native",
        ratio(2),
        Limit::AtMost(9.0),
    );
    outcome.bar("memcached: time of all requests with a demo against native", ratio(3), Limit::AtMost(21.0));
    outcome.rows.extend(rows);
    Ok(())
}
