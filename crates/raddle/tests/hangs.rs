//! Programs that do not end by themselves, and people who end Raddle: a deadlock is noticed at once, a time limit says where the
//! threads stood, waiting for the outside is no deadlock, and a signal ends every phase with what was found so far.

mod common;

use common::{folder, raddle, run, succeed};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Two threads that lock in opposite orders and meet in the middle.
const ABBA: &str = r#"
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *one(void *x) { pthread_mutex_lock(&a); pthread_barrier_wait(&both); pthread_mutex_lock(&b); return x; }
static void *two(void *x) { pthread_mutex_lock(&b); pthread_barrier_wait(&both); pthread_mutex_lock(&a); return x; }
int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&both, 0, 2);
    pthread_create(&threads[0], 0, one, 0);
    pthread_create(&threads[1], 0, two, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
}
"#;

/// The signal comes before the wait, and nobody looks at a predicate.
const LOST_SIGNAL: &str = r#"
#include <pthread.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void *signaller(void *x) { pthread_cond_signal(&c); return x; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, signaller, 0);
    pthread_join(thread, 0);
    pthread_mutex_lock(&m);
    pthread_cond_wait(&c, &m);
}
"#;

const ENDLESS: &str = r#"
#include <pthread.h>
static volatile int stop;
static void *spin(void *x) { while (!stop) { } return x; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, spin, 0);
    pthread_join(thread, 0);
}
"#;

/// Every thread waits, and each time somebody outside ends that: a handler, a child, a pipe, another process.
const WAITS_FOR_OUTSIDE: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static sem_t signalled;
static void handler(int signal) { (void)signal; sem_post(&signalled); }
static pid_t after_a_second(void (*act)(void *), void *what) {
    pid_t pid = fork();
    if (pid == 0) { sleep(1); act(what); _exit(0); }
    return pid;
}
static void signal_parent(void *unused) { (void)unused; kill(getppid(), SIGUSR1); }
static void post(void *semaphore) { sem_post(semaphore); }
static void nothing(void *unused) { (void)unused; }
static void *ends(void *x) { return x; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, ends, 0);
    pthread_join(thread, 0);
    waitpid(after_a_second(nothing, 0), 0, 0);
    sem_t *shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(shared, 1, 0);
    after_a_second(post, shared);
    sem_wait(shared);
    sem_init(&signalled, 0, 0);
    signal(SIGUSR1, handler);
    after_a_second(signal_parent, 0);
    while (sem_wait(&signalled) != 0) { }
    while (wait(0) > 0) { }
    puts("done");
}
"#;

/// Its first run is short. Every later one takes locks for ever.
const ENDLESS_WHEN_REPEATED: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int counter;
static void *body(void *x) { counter++; return x; }
int main(void) {
    pthread_t threads[2];
    while (access("repeated", F_OK) == 0) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
    fclose(fopen("repeated", "w"));
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
}
"#;

fn build(source: &str) -> tempfile::TempDir {
    let folder = folder(&[("program.c", source)]);
    succeed(raddle().args(["cc", "-g", "-pthread", "program.c", "-o", "program"]).current_dir(&folder));
    folder
}

fn raddle_in(folder: &Path, words: &[&str]) -> Output {
    run(raddle().args(words).current_dir(folder))
}

fn findings(output: &Output) -> Vec<(String, String)> {
    let value: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let all = value["findings"].as_array().expect("findings");
    all.iter().map(|finding| (text(&finding["kind"]), text(&finding["grade"]))).collect()
}

fn has(output: &Output, kind: &str, grade: &str) -> bool {
    findings(output).contains(&(kind.to_owned(), grade.to_owned()))
}

#[test]
fn a_deadlock_of_the_recorded_run_is_confirmed() {
    for (source, kind) in [(ABBA, "deadlock"), (LOST_SIGNAL, "blocked-thread")] {
        let folder = build(source);
        let hunted = raddle_in(folder.path(), &["hunt", "--json", "--", "./program"]);
        assert_eq!(hunted.status.code(), Some(1), "{hunted:?}");
        assert!(has(&hunted, kind, "confirmed"), "{kind}: {hunted:?}");
        assert!(
            String::from_utf8_lossy(&hunted.stderr).contains("none of its threads could go on"),
            "{hunted:?}"
        );
    }
}

#[test]
fn a_deadlock_is_observed_while_the_program_runs() {
    for (words, source) in [("./program", ABBA), ("sh -c ./program", ABBA), ("./program", LOST_SIGNAL)] {
        let folder = build(source);
        let mut all = vec!["run", "--json", "--"];
        all.extend(words.splitn(3, ' '));
        let output = raddle_in(folder.path(), &all);
        assert_eq!(output.status.code(), Some(1), "{words}: {output:?}");
        assert!(has(&output, "blocked-thread", "observed"), "{words}: {output:?}");
    }
}

#[test]
fn a_time_limit_says_where_the_threads_stood() {
    let folder = build(ENDLESS);
    for command in ["hunt", "run", "record"] {
        let output = raddle_in(folder.path(), &[command, "--run-timeout", "1", "--", "./program"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_ne!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("its time was up (--run-timeout)"), "{said}");
        assert!(said.contains("thread 1.1 stood at spin at"), "{said}");
    }
}

#[test]
fn waiting_for_the_outside_is_no_deadlock() {
    let folder = build(WAITS_FOR_OUTSIDE);
    for command in ["hunt", "run"] {
        let output = raddle_in(folder.path(), &[command, "--", "./program"]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("done"), "{output:?}");
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

/// Starts a hunt, waits until its first run is over, and sends a signal.
fn interrupted(signal: &str) -> (Option<i32>, String) {
    let folder = build(ENDLESS_WHEN_REPEATED);
    let mut child = raddle()
        .args(["hunt", "--timeout", "1000", "--", "./program"])
        .current_dir(&folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        said.push_str(&line);
        said.push('\n');
        if line.contains("program.trace") {
            break;
        }
    }
    succeed(Command::new("kill").args([signal, &child.id().to_string()]));
    for line in lines {
        said.push_str(&line.unwrap());
        said.push('\n');
    }
    (child.wait().unwrap().code(), said)
}

#[test]
fn a_signal_while_replaying_ends_with_what_was_found() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let (code, said) = interrupted(signal);
        assert_eq!(code, Some(status), "{said}");
        assert!(said.contains("no findings"), "{said}");
    }
}
