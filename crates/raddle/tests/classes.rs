//! The nine classes of errors of `corpus/classes`: recorded, a detector names each with its class, and does not report
//! the correct program. Where the class has witnesses they are replayed.

mod common;

use common::{raddle, run, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// `raddle` with turns that a busy machine keeps.
fn patient(arguments: &[&str]) -> Command {
    let mut command = raddle();
    command.args(arguments).env("CORPUS_TURN_MS", "300");
    command
}

fn cflags() -> String {
    format!("-g -pthread -I{}", corpus().join("include").display())
}

/// Records `corpus/classes/NAME.c`.
fn record(name: &str, arguments: &[&str], trace: &Path) {
    let source = corpus().join(format!("classes/{name}.c"));
    let mut command = patient(&["-q", "record", "--cflags", &cflags(), "-o"]);
    succeed(command.arg(trace).arg(source).arg("--").args(arguments));
}

/// The findings of `--json`.
fn findings_of(output: &std::process::Output) -> Vec<serde_json::Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let file: serde_json::Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    file["findings"].as_array().expect("a list of findings").clone()
}

/// Kinds and grades of what `raddle detect` finds.
fn detect(trace: &Path, options: &[&str]) -> Vec<(String, String)> {
    let mut command = raddle();
    let output =
        run(command.args(["-q", "detect", "--json", "--fail-on", "suspected"]).args(options).arg(trace));
    let findings = findings_of(&output);
    assert_eq!(output.status.code(), Some(i32::from(!findings.is_empty())));
    let word = |finding: &serde_json::Value, key: &str| finding[key].as_str().unwrap().to_owned();
    findings.iter().map(|finding| (word(finding, "kind"), word(finding, "grade"))).collect()
}

/// The faulty program is reported with this kind and grade, the correct one is not reported at all.
fn check(name: &str, options: &[&str], kind: &str, grade: &str) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    record(name, &[], &trace);
    let found = detect(&trace, options);
    assert!(found.contains(&(kind.into(), grade.into())), "{name}: {found:?}");
    record(&format!("{name}_fixed"), &[], &trace);
    assert_eq!(detect(&trace, options), [], "{name}_fixed");
}

/// The witness of the faulty program's finding makes the error happen.
fn check_replay(name: &str, detector: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (trace, schedules) = (folder.path().join("trace"), folder.path().join("schedules"));
    record(name, &[], &trace);
    let output =
        run(raddle().args(["-q", "detect", "--with", detector, "--witness"]).arg(&schedules).arg(&trace));
    assert_eq!(output.status.code(), Some(0));
    let schedule = std::fs::read_dir(&schedules).unwrap().next().expect("a schedule").unwrap().path();
    let source = corpus().join(format!("classes/{name}.c"));
    let output = run(patient(&["replay", "--cflags", &cflags()]).arg(schedule).arg(source));
    assert_eq!(output.status.code(), Some(1), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn data_race() {
    check(
        "data_race",
        &["--with", "syncp,shb,wcp,fasttrack,djit,goldilocks,hb11,racetrack"],
        "data-race",
        "unordered",
    );
    check_replay("data_race", "syncp");
    check_replay("data_race", "shb");
}

#[test]
fn high_level_race() {
    check("high_level_race", &["--with", "views"], "high-level-race", "suspected");
}

#[test]
fn atomicity_violation() {
    check("atomicity", &["--with", "atomizer"], "atomicity-violation", "suspected");
    check(
        "atomicity",
        &["--with", "atomizer", "--functions", "withdraw"],
        "atomicity-violation",
        "suspected",
    );
}

/// Regions are activations: calls of a function one after the other are not one region.
#[test]
fn atomicity_of_functions() {
    for detector in ["velodrome", "aerodrome"] {
        let options = ["--with", detector, "--functions", "move"];
        check("function_calls", &options, "atomicity-violation", "observed");
    }
}

#[test]
fn deadlock() {
    check("deadlock", &["--with", "spd"], "deadlock", "predicted");
    check("deadlock", &["--with", "goodlock,lockdep"], "lock-order", "suspected");
    check_replay("deadlock", "spd");
}

/// A worker that joins itself: the C library refuses it, so the recorded run ends well.
const JOINS_ITSELF: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_t worker;
static void *work(void *unused) {
    (void)unused;
    pthread_mutex_lock(&m);
    pthread_t own = worker;
    pthread_mutex_unlock(&m);
    pthread_join(own, NULL);
    return NULL;
}
int main(void) {
    pthread_mutex_lock(&m);
    pthread_create(&worker, NULL, work, NULL);
    pthread_mutex_unlock(&m);
    pthread_join(worker, NULL);
    puts("1");
    return 0;
}
"#;

#[test]
fn a_join_of_oneself_is_a_deadlock() {
    let folder = tempfile::tempdir().unwrap();
    let [source, trace, store] = ["self.c", "trace", "store"].map(|name| folder.path().join(name));
    std::fs::write(&source, JOINS_ITSELF).unwrap();
    succeed(patient(&["-q", "record", "--cflags", &cflags(), "-o"]).arg(&trace).arg(&source));
    assert_eq!(detect(&trace, &["--with", "waitfor"]), [("deadlock".to_owned(), "observed".to_owned())]);
    let mut command = patient(&["-q", "hunt", "--json", "--cflags", &cflags(), "--keep"]);
    let found = findings_of(&run(command.arg(&store).arg(&source)));
    let kinds: Vec<_> = found.iter().map(|finding| (&finding["kind"], &finding["grade"])).collect();
    assert_eq!(kinds, [(&"deadlock".into(), &"confirmed".into())], "{found:?}");
}

#[test]
fn order_violation() {
    let folder = tempfile::tempdir().unwrap();
    let [good, bad, pairs] = ["good", "bad", "pairs"].map(|name| folder.path().join(name));
    let (train, given) = (format!("--train={}", good.display()), format!("--pairs={}", pairs.display()));
    for name in ["order", "order_fixed"] {
        record(name, &["late"], &good);
        record(name, &[], &bad);
        // The line that initialises must come before the one that uses.
        let text = std::fs::read_to_string(corpus().join(format!("classes/{name}.c"))).unwrap();
        let line = |mark: &str| text.lines().position(|line| line.contains(mark)).unwrap() + 1;
        let pair = format!("{name}.c:{} < classes/{name}.c:{}\n", line("ORDER:init"), line("ORDER:use"));
        std::fs::write(&pairs, pair).unwrap();
        for how in [&train, &given] {
            let found = detect(&bad, &["--with", "order", how]);
            let expected = [("order-violation".to_owned(), "suspected".to_owned())];
            let expected: &[_] = if name == "order" { &expected } else { &[] };
            assert_eq!(found, expected, "{name} {how}");
            assert_eq!(detect(&good, &["--with", "order", how]), [], "{name} {how}, good run");
        }
    }
}

/// Contracts name functions of the program, and a misspelt one is told.
#[test]
fn contract_violation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("map.contract");
    std::fs::write(&file, "map_contains map_get <- map_remove\n").unwrap();
    let contracts = format!("--contracts={}", file.display());
    for detector in ["contracts", "contracts-lockset"] {
        check("contract", &["--with", detector, &contracts], "contract-violation", "suspected");
    }
    std::fs::write(&file, "map_contains map_gett <- map_remove\n").unwrap();
    let trace = folder.path().join("trace");
    record("contract", &[], &trace);
    let output = run(raddle().args(["detect", "--with", "contracts", &contracts]).arg(&trace));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("names the call `map_gett`, and no function of the trace is called so"), "{told}");
    assert!(!told.contains("names the call `map_get`"), "{told}");
}

#[test]
fn missed_signal() {
    check("missed_signal", &["--with", "missedsignal"], "missed-signal", "suspected");
}

#[test]
fn starvation() {
    check("starvation", &["--with", "nonprogress", "--turns-bound", "50"], "starvation", "suspected");
}

#[test]
fn livelock() {
    check("livelock", &["--with", "nonprogress", "--steps-bound", "200"], "livelock", "suspected");
}

#[test]
fn blocked_thread() {
    check("blocked", &["--with", "blocked"], "blocked-thread", "observed");
}

/// Kinds of what `raddle hunt` finds in `corpus/classes/NAME.c`.
fn hunt(name: &str, options: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let source = corpus().join(format!("classes/{name}.c"));
    let mut command = patient(&["-q", "hunt", "--json", "--keep"]);
    let output = run(command.arg(folder.path()).args(["--cflags", &cflags()]).args(options).arg(source));
    findings_of(&output).iter().map(|finding| finding["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn hunts_with_detectors() {
    let found = hunt("high_level_race", &["--with", "views,spd"]);
    assert!(found.contains(&"high-level-race".to_owned()), "{found:?}");
}

/// What `raddle detect` can be told `raddle hunt` can be told too.
#[test]
fn hunts_with_detectors_that_are_told_something() {
    let found = hunt("atomicity", &["--with", "atomizer", "--functions", "withdraw"]);
    assert!(found.contains(&"atomicity-violation".to_owned()), "{found:?}");
}
