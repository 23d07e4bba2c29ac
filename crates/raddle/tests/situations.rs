//! Situations: what a program may do to those who watch it, and who may end what when. Each row is a command line, the status that a shell sees, and a
//! line that is said. Launchers have a table of their own (`launchers.rs`), and so have programs that hang (`hangs.rs`).

mod common;

use common::{folder, raddle, run, succeed};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Two threads with a race, and around them what the first argument names.
const PROGRAM: &str = r#"
#define _DEFAULT_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
static int counter;
static volatile sig_atomic_t got;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void handler(int signal) { got = signal; }
static void *body(void *unused) { counter++; return unused; }
static void *waits(void *unused) { pthread_mutex_lock(&mutex); return unused; }
static void threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
}
static int ended(pid_t pid) {
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "input")) { char line[64]; while (fgets(line, sizeof line, stdin)) fputs(line, stdout); }
    if (!strcmp(what, "appends")) { FILE *log = fopen("log", "a"); fputs("x\n", log); fclose(log); }
    if (!strcmp(what, "early")) for (;;) pause();
    if (!strcmp(what, "self")) { pthread_mutex_lock(&mutex); pthread_mutex_lock(&mutex); }
    if (!strcmp(what, "daemon") && daemon(1, 1)) return 9;
    if (!strcmp(what, "leaves") && fork()) _exit(3);
    if (!strcmp(what, "port")) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        int first = socket(AF_INET, SOCK_STREAM, 0), second = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(first, (struct sockaddr *)&address, length) || listen(first, 1)) return 5;
        getsockname(first, (struct sockaddr *)&address, &length);
        if (bind(second, (struct sockaddr *)&address, length) == 0) return 6;
        close(first);
    }
    if (!strcmp(what, "prefork")) {
        pid_t children[2];
        for (int i = 0; i < 2; i++) if ((children[i] = fork()) == 0) { threads(); _exit(0); }
        return ended(children[0]) + ended(children[1]);
    }
    signal(SIGTERM, !strcmp(what, "handles") ? handler : SIG_DFL);
    threads();
    if (!strcmp(what, "child")) { pid_t pid = fork(); if (pid == 0) _exit(7); return ended(pid); }
    if (!strcmp(what, "orphan")) { if (fork() == 0) { usleep(300000); _exit(0); } return 5; }
    if (!strcmp(what, "abort")) abort();
    if (!strcmp(what, "segv")) *(volatile int *)8 = 1;
    if (!strcmp(what, "kill")) raise(SIGKILL);
    if (!strcmp(what, "term")) raise(SIGTERM);
    if (!strcmp(what, "leave")) _exit(6);
    if (!strcmp(what, "late")) {
        pthread_t thread;
        pthread_mutex_lock(&mutex);
        pthread_create(&thread, 0, waits, 0);
        pthread_join(thread, 0);
    }
    if (!strcmp(what, "handles") || !strcmp(what, "stays")) {
        printf("ready\n");
        fflush(stdout);
        while (!got) { usleep(20000); pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); }
        puts("handled");
    }
    return count > 2 ? atoi(words[2]) : 0;
}
"#;

/// The same without the race, for those who look at the status alone.
fn build(folder: &Path) {
    let calm = PROGRAM
        .replace("counter++; ", "pthread_mutex_lock(&mutex); counter++; pthread_mutex_unlock(&mutex); ");
    fs::write(folder.join("calm.c"), calm).unwrap();
    fs::write(folder.join("racy.c"), PROGRAM).unwrap();
    for name in ["racy", "calm"] {
        let source = format!("{name}.c");
        succeed(raddle().args(["cc", "-g", "-pthread", &source, "-o", name]).current_dir(folder));
    }
}

struct Row(&'static str, i32, &'static str);

#[test]
fn programs_and_their_ends() {
    let folder = folder(&[
        ("lines", "one\ntwo\n"),
        ("two.sh", "#!/bin/sh\n./racy x 0\n./racy x 4\n"),
        ("nothing.sh", "#!/bin/sh\nexit 0\n"),
        ("fails.sh", "./calm\nexit 3\n"),
    ]);
    let at = folder.path();
    build(at);
    succeed(Command::new("chmod").args(["+x", "two.sh", "nothing.sh"]).current_dir(at));
    let race = "data race on `counter`";
    let rows = [
        Row("run -- ./racy", 1, race),
        Row("hunt -- ./racy", 1, "1 confirmed"),
        Row("record -- ./racy", 0, "the program ended with status 0"),
        Row("record -- ./racy x 9", 9, "the program ended with status 9"),
        Row("hunt -- ./calm x 9", 1, "the program ended with status 9; --expect-status allows it"),
        Row("hunt --expect-status 9 -- ./calm x 9", 0, "no findings"),
        Row("run -- ./racy input", 1, race),
        Row("hunt -- ./racy input", 1, "1 confirmed"),
        Row("hunt -- ./racy appends", 1, "1 confirmed"),
        Row("hunt -- ./racy port", 1, "1 confirmed"),
        Row("run -- ./calm prefork", 0, "which the program forked, makes threads that are not observed"),
        Row("hunt -- ./calm prefork", 0, "which the program forked, makes threads that are not observed"),
        Row("record -- ./calm daemon", 0, "the program left without telling its runtime"),
        Row("run -- ./calm leaves", 1, "the program ended with status 3; --expect-status allows it"),
        Row("run -- ./racy child", 1, "ended with status 7"),
        Row("record -- ./racy child", 7, "ended with status 7"),
        Row("hunt -- ./racy orphan", 1, "the program ended with status 5"),
        Row("run -- ./racy abort", 1, "thread 1 (`main`) crashed with SIGABRT"),
        Row("hunt -- ./racy abort", 1, "2 confirmed"),
        Row("record -- ./racy abort", 134, "the program was ended by SIGABRT"),
        Row("run -- ./racy segv", 1, "crashed with SIGSEGV (segmentation fault) at address 0x8"),
        Row("hunt -- ./calm segv", 1, "1 confirmed"),
        Row("run -- ./calm kill", 1, "the program was ended by SIGKILL"),
        Row("hunt -- ./racy kill", 1, "1 confirmed"),
        Row("record -- ./calm term", 143, "the program was ended by SIGTERM"),
        Row("run -- ./calm leave", 1, "the program ended with status 6"),
        Row("hunt -- ./calm self", 1, "thread 1 can deadlock with itself"),
        Row("run -- ./calm self", 1, "none of its threads could go on"),
        Row("hunt -- ./calm late", 1, "are blocked forever"),
        Row("run -- ./calm late", 1, "none of its threads could go on"),
        Row("run --run-timeout 1 -- ./calm early", 1, "thread 1 stood at main at"),
        Row("hunt --run-timeout 1 -- ./calm early", 1, "its time was up (--run-timeout)"),
        Row("record --run-timeout 1 -- ./calm early", 134, "its time was up (--run-timeout)"),
        Row("run -- ./two.sh", 1, "observed 2 processes of 1 program"),
        Row("record -- ./two.sh", 4, "observed 2 processes of 1 program"),
        Row("run -- sh ./fails.sh", 1, "the program ended with status 3"),
        Row("run -- sh -c exit", 2, "no instrumented program was run by"),
        Row("explore -- sh -c exit", 0, "a search steers one process only, not the programs that it starts"),
        Row("explore -- ./nothing.sh", 2, "no instrumented program was run by"),
        Row("explore --runs 5 -- ./calm", 0, "no findings"),
        Row("explore --runs 5 -- ./calm self", 1, "deadlock"),
    ];
    let mut wrong = String::new();
    for Row(line, status, sentence) in &rows {
        let mut command = raddle();
        command.args(line.split(' ')).current_dir(at).stdin(fs::File::open(at.join("lines")).unwrap());
        let output = run(&mut command);
        let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        if output.status.code() != Some(*status) || !said.contains(sentence) || said.contains("panicked") {
            wrong += &format!(
                "raddle {line}\n  {:?} and not {status}, or not {sentence:?}:\n{said}\n",
                output.status
            );
        }
    }
    assert_eq!(wrong, "");
}

/// Starts a command, waits until its program is ready, and sends a signal to Raddle: the status, and what was said.
fn signalled(folder: &Path, line: &str, signal: &str) -> (Option<i32>, String) {
    let mut child = raddle()
        .args(line.split(' '))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = String::new();
    for text in lines.by_ref().map_while(Result::ok) {
        said += &format!("{text}\n");
        if text == "ready" {
            break;
        }
    }
    succeed(Command::new("kill").args([signal, &child.id().to_string()]));
    for text in lines.map_while(Result::ok) {
        said += &format!("{text}\n");
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), said + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn signals_while_the_program_runs() {
    let folder = folder(&[]);
    let at = folder.path();
    build(at);
    let mut wrong = String::new();
    for Row(line, status, sentence) in [
        Row("run -- ./calm handles", 130, "the program was ended by SIGINT"),
        Row("run -- ./racy stays", 1, "data race on `counter`"),
        Row("hunt -- ./calm stays", 130, "interrupted; looking at what the run has shown"),
        Row("hunt -- ./racy stays", 1, "1 finding"),
        Row("record -- ./calm stays", 130, "the program was ended by SIGINT"),
        Row("record --demo -- ./calm stays", 130, "calm.demo: "),
    ] {
        let (code, said) = signalled(at, line, "-INT");
        if code != Some(status) || !said.contains(sentence) {
            wrong += &format!("{line}: {code:?} and not {status}, or not {sentence:?}: {said}\n");
        }
    }
    for Row(line, status, sentence) in [
        Row("run -- ./calm handles", 143, "handled"),
        Row("record -- ./calm handles", 0, "handled"),
        Row("record --demo -o handled.demo -- ./calm handles", 0, "handled"),
        Row("record --demo -o ended.demo -- ./calm stays", 143, "ended.demo: "),
    ] {
        let (code, said) = signalled(at, line, "-TERM");
        if code != Some(status) || !said.contains(sentence) {
            wrong += &format!("{line}: {code:?} and not {status}, or not {sentence:?}: {said}\n");
        }
    }
    assert_eq!(wrong, "");
    // A demo that a signal has ended is one.
    for demo in ["handled.demo", "ended.demo"] {
        let output = run(raddle().args(["replay", "--repeat", "3", demo]).current_dir(at));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("the same in 3 of 3 runs"), "{demo}: {said}");
    }
}

/// A search that is interrupted says what it has found so far, and that it was interrupted.
#[test]
fn signals_while_exploring() {
    let folder = folder(&[]);
    let at = folder.path();
    build(at);
    for (signal, status) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let mut child = raddle()
            .args(["explore", "--strategy", "random", "--runs", "100000000", "--", "./calm"])
            .current_dir(at)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The first run has begun when there is a child; the signal may come at any time from then on.
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        while fs::read_to_string(&children).is_ok_and(|list| list.is_empty()) {
            std::thread::yield_now();
        }
        let _ = child.stdin.take().map(|mut input| input.flush());
        succeed(Command::new("kill").args([signal, &child.id().to_string()]));
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{signal}: {output:?}");
    }
}
