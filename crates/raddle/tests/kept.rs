//! Processes that are kept between runs: they show what forked ones show, whatever the program does to them.

mod common;

use common::{folder, raddle, run, succeed};
use std::path::Path;
use std::process::{Output, Stdio};

/// Crashes in some runs, deadlocks in others.
const CRASH: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, c = PTHREAD_MUTEX_INITIALIZER;
static int *shared, order;
static void *one(void *argument) {
    pthread_mutex_lock(&a); pthread_mutex_lock(&b); order = 1; pthread_mutex_unlock(&b); pthread_mutex_unlock(&a);
    pthread_mutex_lock(&c); if (order == 2) shared = NULL; pthread_mutex_unlock(&c);
    return argument;
}
static void *two(void *argument) {
    pthread_mutex_lock(&b); pthread_mutex_lock(&a); order = 2; pthread_mutex_unlock(&a); pthread_mutex_unlock(&b);
    pthread_mutex_lock(&c); *shared += 1; pthread_mutex_unlock(&c);
    return argument;
}
int main(void) {
    pthread_t x, y;
    shared = calloc(1, sizeof *shared);
    pthread_create(&x, NULL, one, NULL); pthread_create(&y, NULL, two, NULL);
    pthread_join(x, NULL); pthread_join(y, NULL);
    printf("%d %d\n", order, shared ? *shared : -1);
    return 0;
}
"#;

/// What belongs to a thread and what it leaves: results, thread-local storage, destructors, large blocks, open files, its first
/// thread's end.
const THREADS: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static __thread int local = 5;
static pthread_key_t key;
static int destroyed, runs;
static void gone(void *p) { pthread_mutex_lock(&m); destroyed++; pthread_mutex_unlock(&m); free(p); }
static void *work(void *argument) {
    char *text = malloc(300000);
    memset(text, 1, 300000);
    free(text);
    local += (int)(long)argument;
    pthread_setspecific(key, malloc(10));
    pthread_mutex_lock(&m); errno = (int)(long)argument; pthread_mutex_unlock(&m);
    FILE *file = fopen("/proc/self/status", "r");
    if (file) fclose(file);
    if ((long)argument == 2) pthread_exit((void *)(long)(local + errno));
    return (void *)(long)(local + errno);
}
int main(void) {
    pthread_t t[3];
    long sum = 0;
    runs++;
    pthread_key_create(&key, gone);
    for (long i = 0; i < 3; i++) pthread_create(&t[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 3; i++) { void *r; pthread_join(t[i], &r); sum = sum * 100 + (long)r; }
    printf("%ld %d %d %d\n", sum, local, destroyed, runs);
    return 0;
}
"#;

/// Does something to its process, by its first argument, and says who came first.
const FAULTS: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int first;
static void *work(void *argument) {
    pthread_mutex_lock(&m); if (!first) first = (int)(long)argument; pthread_mutex_unlock(&m);
    return NULL;
}
int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    char here[4096];
    pthread_t x, y;
    pthread_create(&x, NULL, work, (void *)1L); pthread_create(&y, NULL, work, (void *)2L);
    pthread_join(x, NULL); pthread_join(y, NULL);
    if (!getcwd(here, sizeof here)) return 9;
    int closed = fcntl(1, F_GETFD) < 0, elsewhere = !strcmp(here, "/");
    mode_t mask = 022;
    if (!strcmp(what, "chdir")) { mask = umask(022); umask(mask); }
    if (!closed) { printf("%d %d %o\n", first, elsewhere, (unsigned)mask); fflush(stdout); }
    if (!strcmp(what, "fork")) {
        pid_t child = fork();
        if (child == 0) _exit(4);
        int status; waitpid(child, &status, 0);
        return WEXITSTATUS(status) == 4 ? 0 : 1;
    }
    if (!strcmp(what, "close")) { close(1); close(2); }
    if (!strcmp(what, "chdir")) { if (chdir("/")) return 1; umask(0777); }
    if (!strcmp(what, "heap")) {
        char *p = malloc(24);
        memset(p, 0xff, 4000);
        free(p);
        p = malloc(5000);
        free(p);
        abort();
    }
    if (!strcmp(what, "stack") && first == 2) { volatile char *p = (volatile char *)&p; for (;;) *p-- = 1; }
    return closed ? 7 : 0;
}
"#;

fn build(folder: &Path, source: &str) {
    succeed(raddle().current_dir(folder).args(["cc", "-O1", "-pthread", source, "-o", "program"]));
}

fn explore(folder: &Path, mode: &str, runs: u32, argument: &str) -> Output {
    run(raddle()
        .current_dir(folder)
        .args([
            "explore",
            "--strategy",
            "random",
            "--json",
            "--no-schedules",
            "--workers",
            "1",
            "--mode",
            mode,
            "--runs",
        ])
        .args([&runs.to_string(), "--", "./program", argument]))
}

/// Everything that was seen, and what was said about the mode.
fn seen(output: &Output) -> (serde_json::Value, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {said}{}", String::from_utf8_lossy(&output.stdout)));
    let line = said.lines().find(|line| line.starts_with("raddle: mode ")).unwrap_or_default();
    (json["exploration"].clone(), line.to_owned())
}

/// Both modes see the same; returns what was said about the faster one.
fn agree(folder: &Path, runs: u32, argument: &str) -> String {
    let (kept, line) = seen(&explore(folder, "auto", runs, argument));
    let (forked, _) = seen(&explore(folder, "fork", runs, argument));
    assert_eq!(kept, forked, "{argument}: {line}");
    assert!(!line.contains("bug in raddle"), "{argument}: {line}");
    line
}

#[test]
fn crashes_and_deadlocks_are_those_of_forked_runs() {
    let folder = folder(&[("crash.c", CRASH)]);
    build(folder.path(), "crash.c");
    let line = agree(folder.path(), 300, "");
    assert!(line.contains("mode fibers: 280 of 300"), "{line}");
}

#[test]
fn what_threads_own_is_put_back() {
    let folder = folder(&[("threads.c", THREADS)]);
    build(folder.path(), "threads.c");
    let line = agree(folder.path(), 200, "");
    assert!(line.contains("mode fibers: 180 of 200"), "{line}");
}

#[test]
fn programs_that_damage_their_process_are_explored_all_the_same() {
    let folder = folder(&[("faults.c", FAULTS)]);
    build(folder.path(), "faults.c");
    for (fault, mode) in [
        // The C library aborts, which is repeated in a forked process.
        ("heap", "mode fork"),
        ("stack", "mode fibers"),
        ("fork", "mode fork"),
        ("close", "mode fork"),
        ("chdir", "mode fork"),
    ] {
        let line = agree(folder.path(), 100, fault);
        // The call that needs a process of its own is named.
        assert!(line.contains(mode), "{fault}: {line}");
        assert!(mode == "mode fibers" || line.contains("system call"), "{fault}: {line}");
    }
}

/// Processes whose parent this is.
fn children(parent: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        rest.split_whitespace().nth(1).and_then(|word| word.parse().ok()) == Some(parent)
    })
    .collect()
}

#[test]
fn a_worker_that_is_killed_loses_nothing() {
    const RUNS: u32 = 6_000;
    const KILLED: u32 = 25;
    let folder = folder(&[("crash.c", CRASH)]);
    build(folder.path(), "crash.c");
    let mut command = raddle();
    command
        .current_dir(folder.path())
        .args([
            "explore",
            "--strategy",
            "random",
            "--json",
            "--no-schedules",
            "--workers",
            "1",
            "--mode",
            "fibers",
            "--runs",
        ])
        .args([&RUNS.to_string(), "--", "./program"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut exploring = command.spawn().unwrap();
    let mut killed = 0;
    while killed < KILLED && exploring.try_wait().unwrap().is_none() {
        // The fork server is raddle's child, and its worker the server's.
        for worker in children(exploring.id()).into_iter().flat_map(children) {
            if let Some(worker) = rustix::process::Pid::from_raw(worker as i32)
                && rustix::process::kill_process(worker, rustix::process::Signal::KILL).is_ok()
            {
                killed += 1;
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(7));
    }
    let (kept, line) = seen(&exploring.wait_with_output().unwrap());
    assert_eq!(kept["runs"], RUNS);
    let signals: Vec<&serde_json::Value> = kept["outcomes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|outcome| outcome["ending"]["signal"] == 9)
        .collect();
    // A forked child that is killed was killed: only those may say so.
    let said: u64 = signals.iter().map(|outcome| outcome["count"].as_u64().unwrap()).sum();
    assert!(said <= u64::from(killed), "{line} {kept}");
}
