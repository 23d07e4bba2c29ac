//! Arguments that compilers do not pass: an event may say that it does not know them, and never carries other ones.

mod common;

use common::{compilers, folder, raddle, run, succeed};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Each function gets numbers that say which call it is; what compilers do to their parameters is in the comments.
const PASSED: &str = r#"
#include <pthread.h>
#include <stdio.h>
int word, sink;
#ifndef OWN
#define OWN static __attribute__((noinline))
#endif
/* Removed, the second moves up. */
OWN int ignored(int unused, int x) { sink += x; return x; }
OWN int lead(int a, int unused, int b) { sink += a + b; return a * b; }
/* Not removed, but left as the register happens to be. */
__attribute__((noinline)) int visible(int unused, int x) { sink -= x; return x; }
/* A constant. */
OWN int constant(int k, int x) { sink += k * x; return x; }
/* The address of a variable. */
OWN void fixed(int *l) { (*l)++; sink++; }
/* What it points to is passed instead. */
OWN int byref(const int *p, int y) { sink++; return *p + y; }
/* Lives in the frame. */
OWN int taken(int unused, int x) { __asm__ volatile("" :: "r"(&x) : "memory"); return x; }
OWN int seven(int a, int b, int c, int d, int e, int f, int g, int unused, int h) { sink += a + b + c + d + e + f; return g * h; }
/* The result is a constant, or not used. */
OWN int same(int a) { sink += a; return 5; }
OWN int unwanted(int a) { sink += a; return a + 1; }
/* The same code as another one. */
OWN int twin(int unused, int x) { sink += x; return x; }
static void *work(void *a) {
    int s = 0;
    for (int i = 0; i < 3; i++) {
        s += ignored(i + 100, i);
        s += lead(i + 1, i + 200, i + 2);
        s += visible(i + 300, i);
        s += constant(7, i);
        fixed(&word);
        int q = i * 3;
        s += byref(&q, i);
        s += taken(i + 400, i);
        s += seven(i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 500, i + 7);
        s += same(i);
        unwanted(i);
        s += twin(i + 600, i);
    }
    *(int *)a = s;
    return 0;
}
int main(void) {
    pthread_t t;
    int s;
    pthread_create(&t, 0, work, &s);
    pthread_join(t, 0);
    printf("%d %d\n", s, sink);
    return 0;
}
"#;

/// Name and true fields in the i-th call. `at` is how the value is written.
type Truth = (&'static str, &'static str, fn(i64) -> Vec<i64>);
const TRUTH: &[Truth] = &[
    ("ignored", "#0, #1", |i| vec![i + 100, i]),
    ("lead", "#0, #1, #2", |i| vec![i + 1, i + 200, i + 2]),
    ("visible", "#0, #1", |i| vec![i + 300, i]),
    ("constant", "#0, #1", |i| vec![7, i]),
    // What it points to, before the call.
    ("fixed", "*#0", |i| vec![i]),
    ("byref", "*#0, #1", |i| vec![i * 3, i]),
    ("taken", "#0, #1", |i| vec![i + 400, i]),
    ("seven", "#0, #5, #6, #7, #8", |i| vec![i, i + 5, i + 6, i + 500, i + 7]),
    ("same", "#0", |i| vec![i]),
    ("unwanted", "#0", |i| vec![i]),
    ("twin", "#0, #1", |i| vec![i + 600, i]),
];
const RESULTS: &[Truth] = &[("same", "#return", |_| vec![5]), ("unwanted", "#return", |i| vec![i + 1])];

fn compile(compiler: &str, folder: &Path, source: &str, program: &str, flags: &[&str]) {
    succeed(
        Command::new(compiler)
            .current_dir(folder)
            .args(["-pthread", "-w", source, "-o", program])
            .args(flags),
    );
}

/// The events of a run by name, in order, and what was said about the aspects.
fn recorded(folder: &Path, program: &str, aspects: &str) -> (BTreeMap<String, Vec<Vec<String>>>, String) {
    let (file, trace) = (folder.join("t.aspects"), folder.join("t.trace"));
    std::fs::write(&file, aspects).unwrap();
    let output = run(raddle().current_dir(folder).args([
        "record",
        "-q",
        "--aspects",
        "t.aspects",
        "-o",
        "t.trace",
        "--",
        program,
    ]));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let dump = succeed(raddle().args(["trace", "dump"]).arg(&trace));
    let mut events: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    for line in dump.lines().filter(|line| line.contains(" custom ")) {
        let text = line.split('"').nth(1).unwrap();
        let (name, fields) = text.strip_suffix(')').unwrap().split_once('(').unwrap();
        events.entry(name.to_owned()).or_default().push(fields.split(',').map(str::to_owned).collect());
    }
    (events, told)
}

#[test]
fn events_carry_what_was_passed_or_say_that_they_do_not_know() {
    let folder = folder(&[("t.c", PASSED)]);
    let mut aspects = String::new();
    for join in ["call", "body"] {
        for (name, fields, _) in TRUTH {
            aspects += &format!("{join}_{name}({fields}) before {join} {name}\n");
        }
        for (name, fields, _) in RESULTS {
            aspects += &format!("{join}_result_{name}({fields}) after {join} {name}\n");
        }
    }
    for compiler in compilers() {
        for level in ["-O0", "-O1", "-O2", "-O3"] {
            // Equal functions must stay apart for their events to be: the next test is about those that do not.
            let apart = if compiler == "gcc" { "-fno-ipa-icf" } else { "-g" };
            compile(&compiler, folder.path(), "t.c", "t", &["-g", level, apart]);
            let (events, told) = recorded(folder.path(), "./t", &aspects);
            let (mut known, mut unknown) = (0, 0);
            for join in ["call", "body"] {
                let named = TRUTH.iter().map(|(name, _, truth)| (format!("{join}_{name}"), *truth));
                let results =
                    RESULTS.iter().map(|(name, _, truth)| (format!("{join}_result_{name}"), *truth));
                for (name, truth) in named.chain(results) {
                    let Some(found) = events.get(&name) else {
                        assert!(told.contains("no probe fits"), "{compiler} {level} {name}: {told}");
                        continue;
                    };
                    assert_eq!(found.len(), 3, "{compiler} {level} {name}: {found:?}");
                    for (i, fields) in found.iter().enumerate() {
                        for (field, truth) in fields.iter().zip(truth(i as i64)) {
                            let what = format!("{compiler} {level} {name}: {found:?}\n{told}");
                            match field.as_str() {
                                "unreadable" => unknown += 1,
                                number => {
                                    assert_eq!(number, truth.to_string(), "{what}");
                                    known += 1;
                                }
                            }
                        }
                    }
                }
            }
            if level == "-O0" {
                assert_eq!((unknown, told.as_str()), (0, ""), "{compiler}");
            }
            assert!(known >= 60, "{compiler} {level}: {known} {unknown}");
            assert!(unknown == 0 || told.contains("cannot be known"), "{compiler} {level}: {told}");
        }
    }
}

#[test]
fn equal_functions_that_became_one_are_told() {
    let folder = folder(&[("t.c", PASSED)]);
    compile("gcc", folder.path(), "t.c", "t", &["-g", "-O2"]);
    let (_, told) = recorded(folder.path(), "./t", "a(#1) before body twin\n");
    assert!(told.contains("`twin` has no code of its own") && told.contains("-fno-ipa-icf"), "{told}");
    // What they were folded into does not bear the other's name.
    let (_, told) = recorded(folder.path(), "./t", "a(#1) before body ignored\n");
    assert!(told.contains("may also stand for another function"), "{told}");
    compile("gcc", folder.path(), "t.c", "t", &["-g", "-O2", "-DOWN=__attribute__((noinline))"]);
    let (_, told) = recorded(folder.path(), "./t", "a(#1) before body twin\n");
    let equal = told.contains("became one piece of code") || told.contains("have equal code");
    assert!(equal && told.contains("-fno-ipa-icf"), "{told}");
}

/// A file may be written between open and close. The functions ignore which file it is.
const FILES: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int opens, writes;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
#define OWN static __attribute__((noinline))
OWN void open_it(int handle) { pthread_mutex_lock(&m); opens++; pthread_mutex_unlock(&m); }
OWN void write_it(int handle, int bytes) { pthread_mutex_lock(&m); writes += bytes; pthread_mutex_unlock(&m); }
static void *work(void *a) {
    /* Second in the recorded run, whatever the machine does. */
    if (EARLY) usleep(50000);
    for (int i = 0; i < 3; i++) write_it(7, i);
    return a;
}
int main(void) {
    pthread_t t;
    if (EARLY) pthread_create(&t, 0, work, 0);
    open_it(7);
    if (!EARLY) pthread_create(&t, 0, work, 0);
    pthread_join(t, 0);
    printf("%d %d\n", opens, writes);
    return 0;
}
"#;
const ASPECTS: &str = "open(#0) before call open_it\nwrite(#0) before call write_it\n";
const PROPERTY: &str = r"handles = union(open_arg1, write_arg1)
channel open, write : thread.handles
CLOSED(f) = open?t!f -> OPENED(f)
OPENED(f) = open?t!f -> OPENED(f) [] write?t!f -> OPENED(f)
FILES = ||| f : handles @ CLOSED(f)
assert FILES [T= PROGRAM |\ {| open, write |}
";

/// Grades of the property's violations, and everything that was said.
fn grades(folder: &Path, program: &str) -> (Vec<String>, String) {
    let output = run(raddle().current_dir(folder).args([
        "hunt",
        "-q",
        "--json",
        "--all",
        "--preload",
        "--aspects",
        "f.aspects",
        "--property",
        "f.csp",
        "--",
        program,
    ]));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let document: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{text}\n{told}"));
    let all = document["findings"].as_array().unwrap().iter();
    let grades = all
        .filter(|finding| finding["kind"] == "property-violation")
        .map(|finding| finding["grade"].as_str().unwrap().to_owned())
        .collect();
    (grades, told + &text)
}

#[test]
fn a_violation_by_unknown_arguments_is_not_confirmed() {
    let folder = folder(&[("f.c", FILES), ("f.aspects", ASPECTS), ("f.csp", PROPERTY)]);
    for compiler in compilers() {
        for flags in [&["-O0"][..], &["-O2"], &["-O0", "-g"], &["-O2", "-g"], &["-O3", "-g"]] {
            for early in [false, true] {
                let define = format!("-DEARLY={}", i32::from(early));
                compile(&compiler, folder.path(), "f.c", "f", &[flags, &[&define]].concat());
                let (grades, told) = grades(folder.path(), "./f");
                let what = format!("{compiler} {flags:?} {early} {grades:?}: {told}");
                let certain = !told.contains("warning: ");
                let confirmed = grades.iter().any(|grade| grade == "confirmed");
                // The right program never, the wrong one where the arguments are known.
                assert_eq!(confirmed, early && certain, "{what}");
                assert!(flags != ["-O0", "-g"] || certain, "{what}");
                assert!(flags.contains(&"-g") || told.contains("has no debug information"), "{what}");
            }
        }
    }
    let define = "-DEARLY=1";
    compile("gcc", folder.path(), "f.c", "f", &["-O0", define]);
    let (grades, told) = grades(folder.path(), "./f");
    assert_eq!(grades, ["predicted"], "{told}");
    assert!(told.contains("uncertain-events"), "{told}");
}
