//! Steering: schedules a second from the fork server against a loop that only forks and exits, and against starting the
//! program for each run; and what control costs a program with many locks.
//!
//! All subjects do the same number of runs, so their CPU times compare as their rates do.

use super::{Bench, Limit, Outcome, Subject};
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
    let explore = |runs: u32, exec: bool| {
        let mut command = Command::new(&raddle);
        command.args(["-q", "explore", "--workers", "1", "--no-schedules", "--runs", &runs.to_string()]);
        if exec {
            command.arg("--exec");
        }
        command.arg("--").arg(&tiny);
        command
    };
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
    Ok(outcome)
}
