//! One form of output: every command that has findings writes the same JSON, alone on its stream and as the published schema has it, and
//! takes the same options about them.

mod common;

use common::{folder, raddle, run, succeed};
use raddle_findings::{FindingsFile, Grade, Kind};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;

/// A race and a deadlock that show in nearly every search, and output that looks like JSON.
const BANK: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int balance;
static void *one(void *p) {
    pthread_mutex_lock(&a); pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b); pthread_mutex_unlock(&a);
    balance = 1;
    return p;
}
static void *two(void *p) {
    pthread_mutex_lock(&b); pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a); pthread_mutex_unlock(&b);
    balance = 2;
    return p;
}
int main(void) {
    pthread_t x, y;
    puts("{ \"the program's own\": [");
    fflush(stdout);
    pthread_create(&x, 0, one, 0);
    pthread_create(&y, 0, two, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    return 0;
}
"#;

/// Two threads set one variable.
const COUNTER: &str = include_str!("../../../corpus/scheme/lock/pcounter-race.scm");

/// Commands, and what they are asked about. `--all`, so that each has something to say.
const COMMANDS: [(&str, &[&str]); 11] = [
    ("run", &["run", "--all", "--strategy", "random", "--seed", "5", "--", "./bank"]),
    ("hunt", &["hunt", "--all", "--strategy", "random", "--seed", "5", "--provoke", "off", "--", "./bank"]),
    ("ci", &["ci", "--all", "--strategy", "random", "--seed", "5", "--provoke", "off", "--", "./bank"]),
    ("explore", &["explore", "--all", "--races", "--strategy", "random", "--runs", "60", "--", "./bank"]),
    ("exhaustive", &["explore", "--all", "--races", "--exhaustive", "--", "./bank"]),
    ("portfolio", &["explore", "--all", "--runs", "80", "--", "./bank"]),
    ("predict", &["predict", "--all", "bank.trace"]),
    ("detect", &["detect", "--all", "--with", "all", "bank.trace"]),
    ("report", &["report", "--all"]),
    ("report of a file", &["report", "--all", "findings.json"]),
    ("scheme", &["scheme", "--all", "counter.scm"]),
];

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/finding-schema.json")).unwrap()
}

fn violations(validator: &jsonschema::Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Options go before the program.
fn ask(folder: &Path, words: &[&str], options: &[&str]) -> Output {
    let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    run(raddle().current_dir(folder).arg("-q").args(&words[..at]).args(options).args(&words[at..]))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folder in which all commands have something to look at.
fn prepared() -> tempfile::TempDir {
    let everything: String = Kind::ALL.iter().map(|kind| format!("{}:*\n", kind.name())).collect();
    let folder = folder(&[("bank.c", BANK), ("counter.scm", COUNTER), ("everything.supp", &everything)]);
    let here = folder.path();
    succeed(raddle().current_dir(here).args(["cc", "-g", "-pthread", "bank.c", "-o", "bank"]));
    let record = ["-q", "record", "--strategy", "random", "--seed", "5", "-o", "bank.trace", "--", "./bank"];
    succeed(raddle().current_dir(here).args(record));
    ask(here, COMMANDS[1].1, &["--output", "findings.json"]);
    folder
}

#[test]
fn every_command_writes_what_the_schema_says() {
    let folder = prepared();
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    for (name, words) in COMMANDS {
        let output = ask(folder.path(), words, &["--json", "--sarif", "now.sarif", "--junit", "now.xml"]);
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}\n{said}"));
        assert_eq!(violations(&validator, &value), Vec::<String>::new(), "{name}");
        let findings = FindingsFile::parse(name, &text).unwrap().findings;
        assert!(!findings.is_empty(), "{name} has nothing to show: {said}");
        let fails = findings.iter().any(|finding| finding.grade() >= Grade::Unordered);
        assert_eq!(output.status.code(), Some(i32::from(fails)), "{name}: {said}");
        // The other formats speak of the same findings.
        let mut ids: Vec<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
        ids.sort_unstable();
        let sarif: Value = serde_json::from_str(&read(&folder.path().join("now.sarif"))).unwrap();
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        let mut told: Vec<&str> = results
            .iter()
            .map(|result| result["partialFingerprints"]["raddleFinding/v2"].as_str().unwrap_or_default())
            .collect();
        told.sort_unstable();
        assert_eq!(told, ids, "{name}");
        let junit = read(&folder.path().join("now.xml"));
        assert!(ids.iter().all(|id| junit.contains(id)), "{name}: {junit}");
        // A file holds what standard output holds, but for what chance decides in another run.
        ask(folder.path(), words, &["--output", "now.json"]);
        let file: Value = serde_json::from_str(&read(&folder.path().join("now.json"))).unwrap();
        assert_eq!(violations(&validator, &file), Vec::<String>::new(), "{name} --output");
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&file), keys(&value), "{name}");
    }
}

#[test]
fn every_command_suppresses_and_compares() {
    let folder = prepared();
    for (name, words) in COMMANDS {
        let suppressed = ask(
            folder.path(),
            words,
            &["--json", "--suppressions", "everything.supp", "--sarif", "now.sarif"],
        );
        let text = String::from_utf8_lossy(&suppressed.stdout);
        let findings = FindingsFile::parse(name, &text).unwrap().findings;
        assert!(findings.is_empty(), "{name}: {findings:#?}");
        assert_eq!(suppressed.status.code(), Some(0), "{name}");
        let sarif: Value = serde_json::from_str(&read(&folder.path().join("now.sarif"))).unwrap();
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        let is_marked = |result: &Value| result["suppressions"].as_array().is_some_and(|all| !all.is_empty());
        assert!(!results.is_empty() && results.iter().all(is_marked), "{name}: {results:#?}");

        ask(folder.path(), words, &["--output", "known.json"]);
        let again = ask(folder.path(), words, &["--json", "--baseline", "known.json"]);
        let text = String::from_utf8_lossy(&again.stdout);
        let findings = FindingsFile::parse(name, &text).unwrap().findings;
        assert!(findings.is_empty(), "{name}: {findings:#?}");
        assert_eq!(again.status.code(), Some(0), "{name}");
    }
}

/// Replays have an object of their own; the program's output is not in it.
#[test]
fn a_replay_says_what_the_schema_says() {
    let folder = prepared();
    let mut replayed = schema();
    let fields = replayed.as_object_mut().unwrap();
    fields.retain(|name, _| name.starts_with('$'));
    fields.insert("$ref".into(), json!("#/$defs/replay"));
    let validator = jsonschema::draft202012::new(&replayed).unwrap();
    let found = FindingsFile::parse("findings.json", &read(&folder.path().join("findings.json"))).unwrap();
    let id = found.findings.iter().find(|finding| finding.grade() == Grade::Confirmed).unwrap().id.clone();
    succeed(raddle().current_dir(folder.path()).args([
        "-q",
        "record",
        "--demo",
        "-o",
        "bank.demo",
        "--",
        "./bank",
    ]));
    for (what, repeat, status) in [(id.as_str(), "1", 1), (id.as_str(), "2", 1), ("bank.demo", "1", 0)] {
        let output = ask(folder.path(), &["replay", "--repeat", repeat, what], &["--json"]);
        let text = String::from_utf8_lossy(&output.stdout);
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
        assert_eq!(violations(&validator, &value), Vec::<String>::new(), "{what}");
        assert_eq!(output.status.code(), Some(status), "{what}: {text}");
        if repeat == "1" {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("the program's own"), "its output goes elsewhere: {said}");
        }
    }
}
