//! `raddle record` and `raddle hunt`: the program's streams, status and signals are its own, and what cannot be recorded is
//! refused in one sentence.

mod common;

use common::{compilers, count, events, folder, raddle, refused, run, succeed};
use raddle_trace::Op;
use raddle_trace::file::reader::TraceFile;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const ECHO: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t got;
static void on_signal(int number) { got = number; }
static void *work(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "wait")) {
        signal(SIGTERM, on_signal);
        puts("ready");
        fflush(stdout);
        while (!got) usleep(1000);
        printf("signal %d\n", (int)got);
        return 5;
    }
    if (!strcmp(what, "address")) {
        printf("%p\n", (void *)&argc);
        return 0;
    }
    char line[64];
    while (fgets(line, sizeof line, stdin)) fputs(line, stdout);
    fputs("to stderr\n", stderr);
    return argc > 1 ? atoi(what) : 0;
}
"#;

/// A folder with the program `echo`, built by `raddle cc`.
fn built() -> tempfile::TempDir {
    let folder = folder(&[("echo.c", ECHO)]);
    succeed(raddle().args(["cc", "-O1", "-pthread", "echo.c", "-o", "echo"]).current_dir(folder.path()));
    folder
}

fn record(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = raddle();
    command.args(["record", "-o", "t.trace"]).args(arguments).current_dir(folder);
    command
}

#[test]
fn streams_and_status_are_the_programs() {
    let folder = built();
    let mut child = record(folder.path(), &["--", "./echo", "37"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(37));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\n");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("to stderr") && stderr.contains("ended with status 37"), "{stderr}");
    let quiet = run(record(folder.path(), &["-q", "--", "./echo"]).stdin(Stdio::null()));
    assert_eq!(String::from_utf8_lossy(&quiet.stderr), "to stderr\n");
}

#[test]
fn a_crash_is_passed_on_and_the_trace_is_kept() {
    let folder = built();
    let output = run(&mut record(folder.path(), &["--json", "--", "./echo", "abort"]));
    assert_eq!(output.status.code(), Some(128 + 6));
    let last = String::from_utf8_lossy(&output.stderr).lines().last().unwrap().to_owned();
    let summary: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(summary["signal"], 6);
    let trace = folder.path().join("t.trace");
    assert!(count(&events(&trace), |op| matches!(op, Op::Lock { .. })) >= 1);
    let file = TraceFile::open(&trace).unwrap();
    assert_eq!(file.index().ending.as_ref().unwrap().signal, Some(6));
}

/// A trace that could not be written to its end is told about, even to those who want to hear less.
#[test]
fn a_trace_that_is_cut_is_told_about() {
    let source = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused) {
    for (int i = 0; i < 200000; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
int main(void) {
    /* Whoever records this may write 40 KiB to a file: that is its full disk. */
    struct rlimit limit = { 40 << 10, 40 << 10 };
    prlimit(getppid(), RLIMIT_FSIZE, &limit, 0);
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    return 3;
}
"#;
    let folder = folder(&[("long.c", source)]);
    let at = |name: &str| folder.path().join(name);
    succeed(raddle().args(["cc", "-g", "-pthread"]).arg(at("long.c")).arg("-o").arg(at("long")));
    let mut command = Command::new("bash");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "bash"]).arg(raddle().get_program());
    command.args(["record", "--quiet", "-o"]).arg(at("long.trace")).arg("--").arg(at("long"));
    let output = run(&mut command);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("the trace is cut: writing stopped"), "{text}");
}

#[test]
fn signals_reach_the_program() {
    let folder = built();
    let mut child =
        record(folder.path(), &["-q", "--", "./echo", "wait"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    succeed(Command::new("kill").args(["-TERM", &child.id().to_string()]));
    assert_eq!(lines.next().unwrap().unwrap(), "signal 15");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn addresses_can_be_fixed() {
    let folder = built();
    let address =
        || succeed(&mut record(folder.path(), &["-q", "--fixed-addresses", "--", "./echo", "address"]));
    assert_eq!(address(), address());
}

#[test]
fn unmodified_programs_are_recorded_without_memory_accesses() {
    let folder = folder(&[("echo.c", ECHO)]);
    succeed(Command::new("gcc").args(["-pthread", "echo.c", "-o", "echo"]).current_dir(folder.path()));
    succeed(record(folder.path(), &["-q", "--", "./echo"]).stdin(Stdio::null()));
    let events = events(&folder.path().join("t.trace"));
    assert!(count(&events, |op| matches!(op, Op::Lock { .. })) >= 1);
    assert_eq!(count(&events, |op| matches!(op, Op::Fork { .. })), 1);
}

#[test]
fn a_script_leads_to_the_program_it_starts() {
    let folder = built();
    let script = folder.path().join("start");
    std::fs::write(&script, "#!/bin/sh\nexec ./echo 9\n").unwrap();
    succeed(Command::new("chmod").arg("+x").arg(&script));
    let output = run(record(folder.path(), &["-q", "--", "./start"]).stdin(Stdio::null()));
    assert_eq!(output.status.code(), Some(9), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(count(&events(&folder.path().join("t.trace")), |op| matches!(op, Op::Fork { .. })), 1);
    std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    assert!(refused(&mut record(folder.path(), &["--", "./start"])).contains("no instrumented program"));
}

#[test]
fn source_files_are_compiled() {
    let program = "#include <thread>\n#include <cstdio>\nextern \"C\" int value(void);\n\
        int main(int argc, char **) { std::thread t([] {}); t.join(); std::printf(\"%d %d\\n\", value(), argc); }\n";
    let folder =
        folder(&[("a.c", "int value(void) { return 7; }\n"), ("b.cpp", program), ("bad.c", "int main( {\n")]);
    for compiler in compilers() {
        let mut command = record(folder.path(), &["-q", "a.c", "b.cpp", "--cflags", "-O1 -DX=1", "--", "x"]);
        assert_eq!(succeed(command.env("RADDLE_CC", &compiler)), "7 2\n");
    }
    assert!(refused(&mut record(folder.path(), &["bad.c"])).contains("bad.c did not compile"));
    assert!(refused(&mut record(folder.path(), &["missing.c"])).contains("missing.c"));
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let folder = built();
    let at = folder.path();
    let refuse = |arguments: &[&str]| refused(&mut record(at, arguments));
    let gcc = |arguments: &[&str]| {
        succeed(Command::new("gcc").args(["-pthread", "echo.c"]).args(arguments).current_dir(at));
    };
    gcc(&["-static", "-o", "static"]);
    assert!(refuse(&["--", "./static"]).contains("fully static"));
    gcc(&["-fsanitize=thread", "-o", "tsan"]);
    assert!(refuse(&["--", "./tsan"]).contains("two runtimes"));
    if let Some(clang) = xtask::project::newest("clang") {
        succeed(Command::new(clang).args(["-fsanitize=thread", "echo.c", "-o", "ctsan"]).current_dir(at));
        assert!(refuse(&["--", "./ctsan"]).contains("two runtimes"));
    }
    assert!(refuse(&["--", "./missing"]).contains("no program ./missing"));
    assert!(refuse(&["--", "./echo.c"]).contains("not executable"));
    assert!(refuse(&["./echo"]).contains("`-- ./echo`"));
    assert!(refuse(&[]).contains("nothing to run"));
    assert!(
        refused(raddle().args(["record", "-o", "/proc/no/such/t.trace", "--", "./echo"]).current_dir(at))
            .contains("/proc/no/such/t.trace")
    );
    let limited = format!("ulimit -v 4000000; exec {} record -o t.trace -- ./echo", common::RADDLE);
    let sentence = refused(Command::new("sh").args(["-c", &limited]).current_dir(at));
    assert!(sentence.contains("ulimit -v") && sentence.contains("--sync-only"), "{sentence}");
    let limited = format!("ulimit -f 1000; exec {} record -o t.trace -- ./echo", common::RADDLE);
    let sentence = refused(Command::new("sh").args(["-c", &limited]).current_dir(at));
    assert!(sentence.contains("ulimit -f"), "{sentence}");
    let unwritable = refused(record(at, &["echo.c"]).env("XDG_CACHE_HOME", "/proc/no/such"));
    assert!(unwritable.contains("XDG_CACHE_HOME"), "{unwritable}");
}

#[test]
fn a_closed_pipe_ends_raddle_quietly() {
    let script = format!("{} detect --list --json | head -c 1; exit ${{PIPESTATUS[0]}}", common::RADDLE);
    let output = run(Command::new("bash").args(["-c", &script]));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn hunt_tells_crashes_from_clean_runs() {
    let folder = built();
    let hunt = |argument: &str| {
        run(raddle()
            .args(["hunt", "--json", "-q", "--", "./echo", argument])
            .current_dir(folder.path())
            .stdin(Stdio::null()))
    };
    let output = hunt("abort");
    assert_eq!(output.status.code(), Some(1));
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(findings["findings"][0]["kind"], "crash");
    assert!(folder.path().join(".raddle/traces/echo.trace").exists());
}
