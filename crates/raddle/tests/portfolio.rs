//! `raddle explore` as a user meets it, without a strategy: a search where that is enough, a portfolio where it is not, accesses that become
//! visible when they race, oracles, and parts that add up to the whole.

mod common;

use common::{raddle, run, succeed};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    fn new(source: &str) -> Program {
        Program::with_flags(source, &[])
    }

    fn with_flags(source: &str, flags: &[&str]) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let file = folder.path().join("program.c");
        std::fs::write(&file, source).unwrap();
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/include");
        succeed(
            raddle()
                .args(["cc", "-std=gnu11", "-O1", "-g", "-pthread"])
                .args(flags)
                .arg("-I")
                .arg(corpus)
                .arg(&file)
                .arg("-o")
                .arg(&path),
        );
        Program { folder, path }
    }

    fn raw(&self, store: &str, options: &[&str]) -> Output {
        run(raddle()
            .args(["-q", "explore", "--json", "--keep"])
            .arg(self.folder.path().join(store))
            .args(options)
            .arg("--")
            .arg(&self.path))
    }

    fn explore(&self, options: &[&str]) -> Value {
        json(&self.raw("kept", options))
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// How many runs ended so.
fn count(json: &Value, ending: &str) -> u64 {
    let outcomes = json["exploration"]["outcomes"].as_array().expect("a list of outcomes").iter();
    let fits = |outcome: &&Value| outcome["ending"].get(ending).is_some() || outcome["ending"] == ending;
    outcomes.filter(fits).map(|outcome| outcome["count"].as_u64().unwrap()).sum()
}

const YIELDS: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
static atomic_int stage;
static void *worker(void *unused) {
    for (int i = 0; i < 3; i++) { atomic_fetch_add(&stage, 1); sched_yield(); }
    return unused;
}
static void *checker(void *unused) { assert(atomic_load(&stage) != 3); return unused; }
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, worker, NULL);
    pthread_create(&b, NULL, checker, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
"#;

/// A thread that yields may go on, as it may in a free run.
#[test]
fn what_needs_a_yield_in_vain_is_reached() {
    let program = Program::new(YIELDS);
    for strategy in ["random", "pct", "pos", "surw", "delay", "rff", "period"] {
        let found = program.explore(&["--no-schedules", "--strategy", strategy, "--runs", "300"]);
        assert!(count(&found, "signal") > 0, "{strategy}: {:#}", found["exploration"]);
        assert!(count(&found, "exit") > 0, "{strategy}");
    }
}

const ROBUST: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
static pthread_mutex_t m;
static void *dies(void *unused) { pthread_mutex_lock(&m); return unused; }
static void *takes(void *unused) {
    if (pthread_mutex_lock(&m) == EOWNERDEAD) pthread_mutex_consistent(&m);
    pthread_mutex_unlock(&m);
    return unused;
}
int main(void) {
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&m, &a);
    pthread_t t[3];
    pthread_create(&t[0], NULL, dies, NULL);
    pthread_create(&t[1], NULL, takes, NULL);
    pthread_create(&t[2], NULL, takes, NULL);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    return 0;
}
"#;

/// Whoever waits for a robust mutex whose owner has died is told so, and nobody is deadlocked.
#[test]
fn a_dead_owner_is_no_deadlock() {
    let program = Program::new(ROBUST);
    for strategy in ["random", "pos"] {
        let found = program.explore(&["--strategy", strategy, "--runs", "200"]);
        assert_eq!(count(&found, "exit"), 200, "{strategy}: {:#}", found["exploration"]);
    }
}

/// `delay` numbers its schedules: no run is like another one, and when there is none left it stops.
#[test]
fn delays_never_repeat_a_schedule() {
    let program = Program::new(YIELDS);
    for strategy in ["delay:1", "delay:2"] {
        let found = program.explore(&["--no-schedules", "--strategy", strategy, "--runs", "100000"]);
        let exploration = &found["exploration"];
        assert_eq!(exploration["runs"], exploration["schedules"], "{strategy}: {exploration:#}");
        assert!(exploration["runs"].as_u64().unwrap() > 3, "{strategy}");
    }
}

const RACE: &str = r#"
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
static int balance;
static void *deposit(void *unused) { int b = balance; balance = b + 1; return unused; }
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, deposit, NULL);
    pthread_create(&b, NULL, deposit, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    assert(balance == 2);
    return 0;
}
"#;

/// Synchronisation alone shows nothing here; the race is found, its accesses become visible, and then everything is found.
#[test]
fn races_make_their_accesses_visible() {
    let program = Program::new(RACE);
    let blind = program.explore(&["--no-schedules", "--exhaustive", "--visible", "sync"]);
    assert_eq!(count(&blind, "signal"), 0);
    let seeing = program.explore(&["--no-schedules", "--exhaustive"]);
    let search = &seeing["exploration"]["search"];
    assert_eq!(
        (search["executions"].as_u64(), search["complete"].as_bool()),
        (Some(4), Some(true)),
        "{search:#}"
    );
    assert_eq!((search["failures"].as_u64(), search["restarts"].as_u64()), (Some(2), Some(1)), "{search:#}");
    assert_eq!(search["visible"].as_array().unwrap().len(), 2, "{search:#}");
    assert!(seeing["exploration"]["races"].as_u64().unwrap() >= 1);
    let strategy =
        program.explore(&["--no-schedules", "--strategy", "random", "--visible", "auto", "--runs", "200"]);
    assert!(count(&strategy, "signal") > 0, "{:#}", strategy["exploration"]);
}

/// Without a strategy small programs are done completely, and what is found is confirmed and replays.
#[test]
fn small_programs_are_searched() {
    let program = Program::new(RACE);
    let found = program.explore(&[]);
    assert_eq!(found["exploration"]["runs"], 4);
    assert_eq!(found["findings"][0]["grade"], "confirmed", "{found:#}");
    let id = found["findings"][0]["id"].as_str().unwrap();
    for _ in 0..20 {
        let kept = program.folder.path().join("kept");
        let replayed = run(raddle().args(["replay", "--keep"]).arg(&kept).arg(id));
        assert!(String::from_utf8_lossy(&replayed.stderr).contains("shown in 1 of 1 runs"));
    }
    let races = program.raw("races", &["--races", "--no-schedules"]);
    let kinds =
        json(&races)["findings"].as_array().unwrap().iter().map(|f| f["kind"].clone()).collect::<Vec<_>>();
    assert!(kinds.contains(&"data-race".into()), "{kinds:?}");
}

/// The same seed gives the same campaign, whatever the number of workers.
#[test]
fn campaigns_are_those_of_their_seed() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/explore/reorder.c");
    let program = Program::new(&std::fs::read_to_string(corpus).unwrap());
    let options = ["--no-schedules", "--runs", "120", "--seed", "5"];
    let one = program.explore(&[&options[..], &["--workers", "1"]].concat());
    let two = program.explore(&[&options[..], &["--workers", "2"]].concat());
    assert_eq!(one["exploration"], two["exploration"]);
}

/// The statuses and the output that are wanted decide what is a failure.
#[test]
fn wanted_endings() {
    let program = Program::new("#include <stdio.h>\nint main(void) { puts(\"yes\"); return 3; }\n");
    let status = |options: &[&str]| {
        let output = program.raw("kept", &[&["--strategy", "random", "--runs", "3"], options].concat());
        (output.status.code(), json(&output)["findings"][0]["kind"].as_str().unwrap_or("").to_owned())
    };
    assert_eq!(status(&[]), (Some(1), "failed-status".to_owned()));
    assert_eq!(status(&["--expect-status", "0,3"]), (Some(0), String::new()));
    let wanted = program.folder.path().join("wanted");
    std::fs::write(&wanted, "yes\n").unwrap();
    let path = wanted.to_str().unwrap().to_owned();
    assert_eq!(status(&["--expect-status", "3", "--expect-output", &path]), (Some(0), String::new()));
    std::fs::write(&wanted, "no\n").unwrap();
    let wrong = status(&["--expect-status", "3", "--expect-output", &path]);
    assert_eq!(wrong, (Some(1), "wrong-output".to_owned()));
    let other = Program::new("int main(void) { return 0; }\n");
    let output = other.raw("kept", &["--strategy", "random", "--runs", "2", "--expect-status", "3"]);
    assert_eq!(output.status.code(), Some(1), "0 is not what is wanted");
}

/// A livelock is shown as a cycle: who does what again and again.
#[test]
fn livelocks_are_cycles() {
    let program = Program::new(
        "#include <pthread.h>\n#include <stdatomic.h>\n#include <stddef.h>\natomic_int never;\n\
         static void *spin(void *unused) {\n  while (!atomic_load(&never));\n  return unused;\n}\n\
         int main(void) { pthread_t t; pthread_create(&t, NULL, spin, NULL); return pthread_join(t, NULL); }\n",
    );
    let output = program.raw("kept", &["--exhaustive"]);
    let found = json(&output);
    assert_eq!(output.status.code(), Some(1), "{found:#}");
    assert_eq!(found["findings"][0]["kind"], "livelock", "{found:#}");
    let text = found["findings"][0]["parties"].to_string();
    assert!(text.contains("spin") && text.contains("load"), "{text}");
}

/// An interrupted search goes on where it stopped, and ends as an uninterrupted one does.
#[test]
fn searches_resume() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/explore/twostage.c");
    let program = Program::new(&std::fs::read_to_string(corpus).unwrap());
    let whole = json(&program.raw("whole", &["--no-schedules", "--exhaustive"]));
    let mut last = json(&program.raw("parts", &["--no-schedules", "--exhaustive", "--runs", "3"]));
    assert_eq!(last["exploration"]["search"]["complete"], false);
    for _ in 0..200 {
        last = json(&program.raw("parts", &["--no-schedules", "--exhaustive", "--resume", "--runs", "7"]));
        if last["exploration"]["search"]["complete"] == true {
            break;
        }
    }
    assert_eq!(last["exploration"]["search"], whole["exploration"]["search"]);
    assert_eq!(last["exploration"]["outcomes"], whole["exploration"]["outcomes"]);
    let nothing = program.raw("parts", &["--exhaustive", "--resume"]);
    assert_eq!(nothing.status.code(), Some(2), "there is nothing left to go on with");
}

/// Shards of seeds and of a search add up to what one machine does.
#[test]
fn shards_add_up() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/explore/twostage.c");
    let program = Program::new(&std::fs::read_to_string(corpus).unwrap());
    for options in [&["--strategy", "random", "--runs", "101"][..], &["--exhaustive", "--visible", "sync"]] {
        let whole = json(&program.raw("whole", options));
        let folders: Vec<String> =
            (1..=3).map(|part| format!("{}-{part}", options[0].trim_matches('-'))).collect();
        for (at, folder) in folders.iter().enumerate() {
            let shard = format!("{}/3", at + 1);
            program.raw(folder, &[options, &["--shard", &shard]].concat());
        }
        let merge = |folders: &[String]| {
            let target = program.folder.path().join(format!("merged-{}", options[0].trim_matches('-')));
            run(raddle()
                .args(["-q", "merge", "--json", "--keep"])
                .arg(&target)
                .args(folders.iter().map(|folder| program.folder.path().join(folder))))
        };
        let merged = json(&merge(&folders));
        let ids = |json: &Value| {
            let findings = json["findings"].as_array().unwrap().iter();
            findings.map(|f| (f["id"].clone(), f["seen"]["count"].clone())).collect::<Vec<_>>()
        };
        if options[0] == "--strategy" {
            assert_eq!(merged["exploration"]["outcomes"], whole["exploration"]["outcomes"], "{options:?}");
            assert_eq!(merged["exploration"]["runs"], whole["exploration"]["runs"]);
            assert_eq!(merged["exploration"]["schedules"], whole["exploration"]["schedules"]);
            assert_eq!(ids(&merged), ids(&whole), "{options:?}");
        } else {
            for what in ["executions", "deadlocks", "failures", "complete"] {
                let (parts, all) =
                    (&merged["exploration"]["search"][what], &whole["exploration"]["search"][what]);
                assert_eq!(parts, all, "{what}");
            }
        }
        let twice = merge(&[folders[0].clone(), folders[0].clone()]);
        assert_eq!(twice.status.code(), Some(2));
    }
    let refused = program.raw("kept", &["--shard", "1/2"]);
    assert_eq!(refused.status.code(), Some(2), "a portfolio learns, and parts of it would not add up");
}
