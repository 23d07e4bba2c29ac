//! Events of aspects in running programs: their values, and that the program does not notice.

mod common;

use common::{compilers, folder, raddle, run, succeed};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Texts of the events of a trace, with how often each happened.
fn recorded(folder: &Path, program: &str, aspects: &str) -> (String, BTreeMap<String, usize>) {
    let file = folder.join("t.aspects");
    std::fs::write(&file, aspects).unwrap();
    let trace = folder.join("t.trace");
    let mut record = raddle();
    record
        .current_dir(folder)
        .args(["record", "-q", "-o"])
        .arg(&trace)
        .arg("--aspects")
        .arg(&file)
        .arg("--")
        .arg(program);
    let stdout = succeed(&mut record);
    let dump = succeed(raddle().args(["trace", "dump"]).arg(&trace));
    let mut counts = BTreeMap::new();
    for line in dump.lines().filter(|line| line.contains(" custom ")) {
        let text = line.split('"').nth(1).unwrap().to_owned();
        *counts.entry(text).or_default() += 1;
    }
    (stdout, counts)
}

fn compile(compiler: &str, folder: &Path, source: &str, program: &str, flags: &[&str]) {
    succeed(
        Command::new(compiler)
            .current_dir(folder)
            .args(["-g", "-pthread", source, "-o", program])
            .args(flags),
    );
}

const VALUES: &str = r#"
#include <pthread.h>
#include <stdio.h>
__attribute__((noinline)) long many(int a, double x, long b, char c, short d, unsigned e, long f, int g, char *h) {
    return a + (long)x + b + c + d + e + f + g + *h;
}
__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void *work(void *a) {
    long s = 0;
    for (int i = 0; i < 3; i++) {
        char z = (char)i;
        s += many(-1, 1.5, 2, 3, -4, 5, 6, -7, &z);
    }
    *(long *)a = s;
    return 0;
}
int main(void) {
    pthread_t t;
    long s;
    pthread_create(&t, 0, work, &s);
    pthread_join(t, 0);
    printf("%ld %d\n", s, fib(10));
    return 0;
}
"#;

#[test]
fn values_are_exact_in_programs_that_were_not_rebuilt() {
    let folder = folder(&[("t.c", VALUES)]);
    let aspects = "many(#0,#2,#6,#7,*#8,#return) after call many\nin(#arg(d)) before body many\n\
                   big(#return) after body many when #return >= 6\nfibs before body fib\nbad(**#8) before body many\n\
                   word(load,-5) before body main\n";
    for compiler in compilers() {
        for (level, fibs) in [("-O0", 177), ("-O1", 177)] {
            compile(&compiler, folder.path(), "t.c", "t", &[level, "-fno-optimize-sibling-calls"]);
            let native = succeed(&mut Command::new(folder.path().join("t")));
            let (stdout, counts) = recorded(folder.path(), "./t", aspects);
            let what = format!("{compiler} {level}: {counts:?}");
            assert_eq!(stdout, native, "{what}");
            for i in 0..3 {
                assert_eq!(counts[&format!("many(-1,2,6,-7,{i},{})", 5 + i)], 1, "{what}");
            }
            assert_eq!((counts["in(-4)"], counts["bad(unreadable)"]), (3, 3), "{what}");
            assert_eq!((counts["big(6)"], counts["big(7)"], counts.get("big(5)")), (1, 1, None), "{what}");
            assert_eq!(counts["word(load,-5)"], 1, "{what}");
            assert_eq!(counts["fibs()"], fibs, "{what}");
        }
    }
}

const EXCEPTIONS: &str = r#"
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <vector>
#include <atomic>
static std::atomic<int> destroyed, caught;
struct Guard { ~Guard() { destroyed++; } };
__attribute__((noinline)) int inner(int i) { Guard g; if (i % 2 == 0) throw std::runtime_error("even"); return i; }
__attribute__((noinline)) int outer(int i) { Guard g; return inner(i) + 1; }
int main() {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([] {
            for (int i = 0; i < 2000; i++)
                try { outer(i); } catch (const std::exception &) { caught++; }
        });
    for (auto &thread : threads) thread.join();
    std::printf("%d %d\n", caught.load(), destroyed.load());
}
"#;

#[test]
fn exceptions_pass_through_nested_probes() {
    let folder = folder(&[("e.cc", EXCEPTIONS)]);
    for level in ["-O0", "-O2"] {
        compile("g++", folder.path(), "e.cc", "e", &[level]);
        let aspects = "a(#return) after body inner\nb(#return) after body outer\nc after call outer\n";
        let (stdout, counts) = recorded(folder.path(), "./e", aspects);
        assert_eq!(stdout, "4000 16000\n", "{level}");
        let total = |name: &str| {
            counts.iter().filter(|(text, _)| text.starts_with(name)).map(|(_, n)| n).sum::<usize>()
        };
        // Events after a function happen when it returns.
        assert_eq!(total("a("), 4000, "{level}");
        assert_eq!(total("b("), 4000, "{level}");
    }
}

#[test]
fn probes_are_right_wherever_the_program_lies() {
    let folder = folder(&[("t.c", VALUES)]);
    compile("gcc", folder.path(), "t.c", "pie", &["-O1", "-fPIE", "-pie"]);
    compile("gcc", folder.path(), "t.c", "fixed", &["-O1", "-no-pie", "-fno-pie"]);
    for program in ["./pie", "./fixed"] {
        for _ in 0..10 {
            let (stdout, counts) =
                recorded(folder.path(), program, "f(#0,#return) after body fib\nl before line t.c:12\n");
            assert_eq!(stdout, "18 55\n", "{program}");
            assert_eq!(counts["f(10,55)"], 1, "{program}: {counts:?}");
            assert!(counts["l()"] >= 1, "{program}: {counts:?}");
        }
    }
}

#[test]
fn every_use_case_is_decided() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let scratch = folder(&[]);
    for name in ["file", "atomicity", "race", "resources", "rover", "sql", "deadlock"] {
        for correct in [false, true] {
            let source = root.join(format!("corpus/usecases/{name}.c"));
            let flags = format!(
                "-O0 -g -std=gnu11 -pthread -I{}{}",
                root.join("corpus/include").display(),
                if correct { " -DCORRECT" } else { "" }
            );
            let mut hunt = raddle();
            hunt.current_dir(scratch.path()).args(["hunt", "-q", "--json"]).arg("--cflags").arg(&flags);
            let aspects = root.join(format!("corpus/usecases/{name}.aspects"));
            if aspects.exists() {
                hunt.arg("--aspects").arg(aspects);
            }
            hunt.arg("--property").arg(root.join(format!("corpus/usecases/{name}.csp"))).arg(&source);
            let output = run(&mut hunt);
            let text = String::from_utf8_lossy(&output.stdout);
            let told = || format!("{name} {correct}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
            let document: serde_json::Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told()));
            let confirmed = document["findings"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|finding| finding["kind"] == "property-violation" && finding["grade"] == "confirmed")
                .count();
            assert_eq!(confirmed > 0, !correct, "{}", told());
            assert_eq!(output.status.code(), Some(i32::from(!correct)), "{}", told());
        }
    }
}

/// Use case 4 against the library of the system, which was not rebuilt. Main finalizes without waiting for the thread that steps.
const SQLITE: &str = r#"
#include "corpus.h"
#include <sqlite3.h>

static sqlite3_stmt *query;
static int result, value;

static void reader(void) {
    result = sqlite3_step(query); // PROPERTY:1
    value = sqlite3_column_int(query, 0);
}

int main(void) {
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) || sqlite3_prepare_v2(db, "select 6 * 7", -1, &query, NULL)) return 1;
    pthread_t thread = start(reader);
#ifdef CORRECT
    finish(thread);
    sqlite3_finalize(query);
#else
    turn(1);
    sqlite3_finalize(query); // PROPERTY:2
    finish(thread);
#endif
    sqlite3_close(db);
    printf("%d %d\n", result, value);
    return 0;
}
"#;
const SQLITE_ASPECTS: &str = "open(*#1) after call sqlite3_open\n\
                              close(#0) before call sqlite3_close\n\
                              prepare(#0, *#3) after call sqlite3_prepare_v2\n\
                              finalize(#0) before call sqlite3_finalize\n\
                              step(#0) before call sqlite3_step\n\
                              column(#0) before call sqlite3_column_*\n";

/// Use case 7 against the C library: a stream may be written only between fopen and fclose.
const STREAM: &str = r#"
#include "corpus.h"

static FILE *out;

static void writer(void) {
    fwrite("text\n", 1, 5, out); // PROPERTY:1
}

int main(void) {
    out = fopen("/dev/null", "w");
    pthread_t thread = start(writer);
#ifdef CORRECT
    finish(thread);
    fclose(out);
#else
    turn(1);
    fclose(out); // PROPERTY:2
    finish(thread);
#endif
    puts("done");
    return 0;
}
"#;
const STREAM_ASPECTS: &str = "open(#return) after call fopen\n\
                              access(#3) before call fwrite\n\
                              close(#0) before call fclose\n";

#[test]
fn interfaces_of_libraries_that_were_not_rebuilt() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let scratch = folder(&[
        ("sqlite.c", SQLITE),
        ("sqlite.aspects", SQLITE_ASPECTS),
        ("stream.c", STREAM),
        ("stream.aspects", STREAM_ASPECTS),
    ]);
    for compiler in compilers() {
        for (name, property, library) in [("sqlite", "sql", " -lsqlite3"), ("stream", "file", "")] {
            for (level, correct) in [("-O0", false), ("-O2", false), ("-O2", true)] {
                let define = if correct { " -DCORRECT" } else { "" };
                let include = root.join("corpus/include");
                let flags = format!("{level} -g -pthread -I{}{define}{library}", include.display());
                let mut hunt = raddle();
                hunt.current_dir(scratch.path())
                    .env("RADDLE_CC", &compiler)
                    .args(["hunt", "-q", "--json", "--cflags", &flags])
                    .args(["--aspects", &format!("{name}.aspects"), "--property"])
                    .arg(root.join(format!("corpus/usecases/{property}.csp")))
                    .arg(format!("{name}.c"));
                let output = run(&mut hunt);
                let text = String::from_utf8_lossy(&output.stdout);
                let told = String::from_utf8_lossy(&output.stderr);
                let document: serde_json::Value = serde_json::from_slice(&output.stdout)
                    .unwrap_or_else(|_| panic!("{compiler} {flags}: {text}\n{told}"));
                let confirmed = document["findings"].as_array().unwrap().iter().any(|finding| {
                    finding["kind"] == "property-violation" && finding["grade"] == "confirmed"
                });
                assert_eq!(confirmed, !correct, "{compiler} {flags}: {text}\n{told}");
            }
        }
    }
}

#[test]
fn mistakes_in_properties_are_told_at_their_place() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let scratch = folder(&[
        ("none.csp", "P = STOP\n\nassert P [T= STOP\n"),
        ("wrong.csp", "channel a : thread\nassert Q [T= PROGRAM\n"),
        ("bad.aspects", "open(#return) before call open_file\n"),
    ]);
    let source = root.join("corpus/usecases/file.c");
    let flags = format!("-I{}", root.join("corpus/include").display());
    let hunt = |arguments: &[&str]| {
        let output = run(raddle()
            .current_dir(scratch.path())
            .args(["hunt", "-q", "--cflags", &flags])
            .args(arguments)
            .arg(&source));
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(hunt(&["--property", "none.csp"]).contains("none.csp:3:1"));
    assert!(hunt(&["--property", "wrong.csp"]).contains("wrong.csp:2:8"));
    let told = hunt(&["--aspects", "bad.aspects"]);
    assert!(
        told.contains("bad.aspects:1:6") && told.contains("`#return` has no value before the call"),
        "{told}"
    );
}

const SPIN: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
static atomic_int word;
int X, c;
__attribute__((noinline)) void my_lock(atomic_int *l) {
    int free = 0;
    while (!atomic_compare_exchange_weak(l, &free, 1)) free = 0;
}
__attribute__((noinline)) void my_unlock(atomic_int *l) { atomic_store(l, 0); }
static void *first(void *a) {
    X = 1;
    my_lock(&word), c++, my_unlock(&word);
    return a;
}
/* Comes second in the recorded run, whatever the machine does. */
static void *second(void *a) {
    usleep(50000);
    my_lock(&word), c++, my_unlock(&word);
    X = 2;
    return a;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("%d\n", c);
    return 0;
}
"#;

/// Objects of the races that a hunt confirms.
fn races(folder: &Path, arguments: &[&str]) -> Vec<String> {
    let output = run(raddle().current_dir(folder).args(["hunt", "-q", "--json"]).args(arguments));
    let text = String::from_utf8_lossy(&output.stdout);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{text}\n{}", String::from_utf8_lossy(&output.stderr)));
    let confirmed =
        document["findings"].as_array().unwrap().iter().filter(|finding| finding["grade"] == "confirmed");
    confirmed.map(|finding| finding["objects"][0]["name"].as_str().unwrap_or("?").to_owned()).collect()
}

#[test]
fn modelled_locks_are_locks_of_schedules() {
    let models = "lock(#0) after call my_lock\nunlock(#0) before call my_unlock\n";
    let folder =
        folder(&[("spin.c", SPIN), ("spin.models", models), ("bad.models", "lok(#0) after call my_lock\n")]);
    assert_eq!(races(folder.path(), &["--models", "spin.models", "spin.c"]), ["X"]);
    let findings = std::fs::read_dir(folder.path().join(".raddle")).unwrap();
    let schedule =
        findings.map(|entry| entry.unwrap().path().join("schedule")).find(|path| path.exists()).unwrap();
    let text = std::fs::read_to_string(schedule).unwrap();
    assert!(text.contains("aspect \"model lock(#0) after call my_lock\""), "{text}");
    let output = run(raddle().current_dir(folder.path()).args(["hunt", "--models", "bad.models", "spin.c"]));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("`lok` is no model"), "{told}");
}

const COUNTED: &str = r#"
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
static std::mutex m;
static int X, guarded;
struct Data { int v = 1; };
int main() {
    auto data = std::make_shared<Data>();
    std::thread a([data] { X = data->v; std::lock_guard<std::mutex> hold(m); guarded++; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::thread b([data] { { std::lock_guard<std::mutex> hold(m); guarded++; } X = data->v + 1; });
    a.join();
    b.join();
    return 0;
}
"#;

/// The copy for the second thread reads the count that the first thread's end has written; that orders nothing.
#[test]
fn reference_counts_hide_no_race() {
    let folder = folder(&[("counted.cc", COUNTED)]);
    assert_eq!(races(folder.path(), &["counted.cc"]), ["X"]);
}
