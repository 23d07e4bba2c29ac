//! Memory that is neither static nor a block of the heap: reports say whose stack it is on, in which function's variable, or whose
//! thread-local variable it is.

mod common;

use common::{folder, raddle, run, succeed};
use serde_json::Value;
use std::process::Command;

/// A local variable of a function below `main`, one of its own thread's, and a thread-local one, each handed to another thread.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
struct account { int number; int balance; };
static __thread int errors;
static void *deposit(void *at) {
    ((struct account *)at)->balance += 10;
    return 0;
}
static void *count(void *at) {
    ++*(int *)at;
    return 0;
}
__attribute__((noinline)) static void transfer(void) {
    struct account savings = {1, 100};
    pthread_t thread;
    pthread_create(&thread, 0, deposit, &savings);
    savings.balance -= 10;
    pthread_join(thread, 0);
}
__attribute__((noinline)) static void *worker(void *unused) {
    int mine = 0;
    pthread_t thread;
    pthread_create(&thread, 0, count, &mine);
    mine = 5;
    pthread_join(thread, 0);
    return unused;
}
static void local(void) {
    pthread_t thread;
    pthread_create(&thread, 0, count, &errors);
    errors = 7;
    pthread_join(thread, 0);
}
/* Another function's variable, where `transfer` had its own: nobody may take it for that. */
__attribute__((noinline)) static void again(void) {
    struct account current = {2, 200};
    static struct account *volatile shared;
    shared = &current;
    pthread_t thread;
    pthread_create(&thread, 0, deposit, shared);
    current.balance -= 1;
    pthread_join(thread, 0);
}
#ifdef LISTENS
#include <stdio.h>
extern int __tsan_get_report_loc(void *, unsigned long, const char **, void **, unsigned long *, unsigned long *, int *, int *, int *, void **, unsigned long);
void __tsan_on_report(void *report) {
    const char *kind;
    void *at, *trace[8];
    unsigned long start, bytes;
    int owner, descriptor, suppressable;
    if (!__tsan_get_report_loc(report, 0, &kind, &at, &start, &bytes, &owner, &descriptor, &suppressable, trace, 8)) return;
    printf("%s of %d\n", kind, owner);
    fflush(stdout);
}
#endif
int main(int argc, char **argv) {
    pthread_t thread;
    switch (argc > 1 ? argv[1][0] : 0) {
    case 's': transfer(); break;
    case 'w': pthread_create(&thread, 0, worker, 0); pthread_join(thread, 0); break;
    case 't': local(); break;
    case 'a': transfer(); again(); break;
    }
    return 0;
}
"#;

fn built(compiler: &str, flags: &[&str]) -> tempfile::TempDir {
    let folder = folder(&[("own.c", PROGRAM)]);
    let mut command = raddle();
    command.args(["cc", "-g", "-pthread", "own.c", "-o", "own"]).args(flags);
    succeed(command.env("RADDLE_CC", compiler).current_dir(&folder));
    folder
}

fn findings(command: &mut Command) -> Vec<Value> {
    let output = run(command);
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text)
        .unwrap_or_else(|why| panic!("{why}: {text}\n{}", String::from_utf8_lossy(&output.stderr)));
    report["findings"].as_array().expect("findings").clone()
}

/// Name, kind of place, function and thread of what the findings are about.
fn objects(findings: &[Value]) -> Vec<[String; 4]> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let mut objects: Vec<[String; 4]> = findings
        .iter()
        .map(|finding| {
            let object = &finding["objects"][0];
            let place = &object["place"];
            [
                text(&object["name"]),
                text(&place["in"]),
                text(&place["function"]),
                text(&place["thread"]["path"]),
            ]
        })
        .collect();
    objects.sort();
    objects.dedup();
    objects
}

fn expected(situation: &str) -> Vec<[&'static str; 4]> {
    match situation {
        "s" => vec![["savings.balance", "stack", "transfer", "1"]],
        "w" => vec![["mine", "stack", "worker", "1.1"]],
        "t" => vec![["errors", "thread-local", "", "1"]],
        // What the run sees at its time is right; a trace tells both.
        _ => vec![["current.balance", "stack", "again", "1"], ["savings.balance", "stack", "transfer", "1"]],
    }
}

#[test]
fn a_running_program_tells_whose_memory_it_is() {
    for compiler in ["gcc", "clang-22"] {
        for level in ["-O0", "-O1", "-O2"] {
            let folder = built(compiler, &[level]);
            for situation in ["s", "w", "t", "a"] {
                let found =
                    findings(raddle().args(["run", "--json", "--", "./own", situation]).current_dir(&folder));
                assert_eq!(
                    objects(&found),
                    expected(situation),
                    "{compiler} {level} {situation}: {found:#?}"
                );
            }
        }
    }
}

#[test]
fn a_trace_tells_whose_memory_it_is() {
    for compiler in ["gcc", "clang-22"] {
        for level in ["-O0", "-O2"] {
            let folder = built(compiler, &[level]);
            for situation in ["s", "w", "t"] {
                let found = findings(
                    raddle().args(["hunt", "--json", "--", "./own", situation]).current_dir(&folder),
                );
                assert_eq!(
                    objects(&found),
                    expected(situation),
                    "{compiler} {level} {situation}: {found:#?}"
                );
                let text = run(raddle().args(["hunt", "--", "./own", situation]).current_dir(&folder));
                let text = String::from_utf8_lossy(&text.stdout).into_owned();
                let words = match situation {
                    "s" => "`savings.balance` is a local variable of `transfer` on the stack of thread 1",
                    "w" => "`mine` is a local variable of `worker` on the stack of thread 1.1",
                    _ => "`errors` is thread-local: this is the one of thread 1",
                };
                assert!(text.contains(words), "{compiler} {level} {situation}: {text}");
            }
        }
    }
}

#[test]
fn memory_that_two_calls_have_used_has_no_name_in_a_trace() {
    let folder = built("gcc", &["-O0"]);
    let found = findings(raddle().args(["hunt", "--json", "--", "./own", "a"]).current_dir(&folder));
    let objects = objects(&found);
    assert!(!objects.is_empty());
    for [name, place, function, _] in &objects {
        assert_eq!(place, "stack", "{found:#?}");
        let right = [("", ""), ("savings.balance", "transfer"), ("current.balance", "again")];
        assert!(right.contains(&(name.as_str(), function.as_str())), "{name} {function}");
    }
}

#[test]
fn the_program_hears_whose_memory_it_is() {
    let folder = built("gcc", &["-DLISTENS"]);
    for (situation, said) in [("s", "stack of 0\n"), ("w", "stack of 1\n"), ("t", "tls of 0\n")] {
        let output = run(raddle().args(["run", "--", "./own", situation]).current_dir(&folder));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains(said), "{situation}: {printed}");
    }
}
