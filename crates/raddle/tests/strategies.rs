//! Strategies, each against what its paper says about it, on programs small enough to work the probabilities out; and random
//! schedules against enumeration. All seeds are fixed, so that a test that passes once passes always.

mod common;
// Parts of it are for tests of the scheduler alone.
#[allow(dead_code)]
#[path = "../../raddle-sched/tests/machine/model.rs"]
mod model;

use common::{raddle, run, succeed};
use model::End;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

struct Program {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn program() -> Program {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads");
    succeed(
        raddle()
            .args(["cc", "-std=gnu11", "-O1", "-g", "-pthread"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/steering/threads.c"))
            .arg("-o")
            .arg(&path),
    );
    Program { _folder: folder, path }
}

impl Program {
    /// How often each end was seen.
    fn explore(&self, strategy: &str, runs: u64, options: &[&str], words: &[&str]) -> BTreeMap<End, u64> {
        let output = run(raddle()
            .args(["-q", "explore", "--json", "--no-schedules", "--strategy", strategy, "--runs"])
            .arg(runs.to_string())
            .args(options)
            .arg("--")
            .arg(&self.path)
            .args(words));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let mut ends = BTreeMap::new();
        for outcome in json["exploration"]["outcomes"].as_array().expect("a list of outcomes") {
            let end = if outcome["ending"].get("deadlock").is_some() {
                End::Deadlock
            } else {
                assert_eq!(outcome["ending"], serde_json::json!({ "exit": 0 }), "{strategy} {words:?}");
                End::Prints(outcome["stdout"].as_str().unwrap().to_owned())
            };
            *ends.entry(end).or_default() += outcome["count"].as_u64().unwrap();
        }
        // Delays make no schedule twice, so there may be fewer of them.
        let counted = ends.values().sum::<u64>();
        assert!(
            counted == runs || counted < runs && strategy.starts_with("delay"),
            "{strategy} {words:?}: {counted}"
        );
        ends
    }

    /// The same for what was written down.
    fn notes(&self, strategy: &str, runs: u64, words: &[&str]) -> BTreeMap<String, u64> {
        let ends = self.explore(strategy, runs, &[], words);
        ends.into_iter().map(|(end, count)| (note(&end), count)).collect()
    }
}

/// What was written down in a run.
fn note(end: &End) -> String {
    match end {
        End::Prints(text) => text.split_whitespace().last().unwrap_or_default().to_owned(),
        End::Deadlock => "deadlock".to_owned(),
    }
}

/// Is a count as likely as claimed? Five standard deviations are one in a million.
fn check_probability(what: &str, count: u64, runs: u64, probability: f64) {
    let (expected, n) = (probability * runs as f64, runs as f64);
    let deviation = (n * probability * (1.0 - probability)).sqrt();
    assert!(
        (count as f64 - expected).abs() <= 5.0 * deviation + 1.0,
        "{what}: {count} of {runs}, expected {expected:.1} +- {deviation:.1}"
    );
}

/// More often for those who ask.
fn cases(default: u64) -> u64 {
    std::env::var("RADDLE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// tsan11rec §4.3: every thread that can go is equally likely. The walk is worked out step by step, with creation, begin, end
/// and join of the threads as operations of their own.
#[test]
fn random_is_the_uniform_walk() {
    let program = program();
    let runs = cases(2000);
    for words in [&["o", "o"][..], &["xxo", "o"], &["oo", "oo"], &["aA", "aA"]] {
        let found = program.explore("random", runs, &[], words);
        let expected = model::random_walk(words);
        for (end, probability) in &expected {
            let count = found.get(end).copied().unwrap_or(0);
            check_probability(&format!("{words:?} {end:?}"), count, runs, *probability);
        }
        assert!(found.keys().all(|end| expected.contains_key(end)), "{words:?}: {found:?}");
    }
}

/// Random schedules reach exactly what enumeration reaches: programs of reads, writes, locks and notes, made by chance.
#[test]
fn random_runs_reach_what_enumeration_reaches() {
    let program = program();
    let fixed = [
        vec!["aA", "aA"],
        vec!["aB", "bA"],
        vec!["AB", "ab"],
        vec!["laAu", "laAu"],
        vec!["lmvu", "mluv"],
        vec!["laAmbBvu", "mcv"],
        vec!["aA", "aA", "aA"],
    ];
    let mut random = Random(7);
    let made = (0..cases(6) as usize).map(|_| random.words());
    let all = fixed.iter().map(|words| words.iter().map(|&word| word.to_owned()).collect()).chain(made);
    for words in all.collect::<Vec<Vec<String>>>() {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let expected = model::outcomes(&words);
        let mut found: BTreeSet<End> = BTreeSet::new();
        // Rare outcomes take their time; never is found out at the end.
        for round in 0..8 {
            let seed = (1 + round * 1_000_000).to_string();
            found.extend(program.explore("random", 1000, &["--seed", &seed], &words).into_keys());
            assert!(found.is_subset(&expected), "{words:?}: {found:?} beyond {expected:?}");
            if found == expected {
                break;
            }
        }
        assert_eq!(found, expected, "{words:?}");
    }
}

/// Little programs, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn words(&mut self) -> Vec<String> {
        let threads = 2 + self.below(2);
        (0..threads).map(|_| self.word(if threads == 2 { 4 } else { 2 })).collect()
    }

    /// A few reads and writes, perhaps inside one or both locks.
    fn word(&mut self, most: u64) -> String {
        let body: String =
            (0..1 + self.below(most)).map(|_| b"abAB"[self.below(4) as usize] as char).collect();
        let (open, close) =
            [("", ""), ("", ""), ("l", "u"), ("m", "v"), ("lm", "vu"), ("ml", "uv")][self.below(6) as usize];
        format!("{open}{body}{close}")
    }
}

/// One operation each, in order of creation: once all threads run, nobody takes two in a row.
#[test]
fn round_robin_takes_turns() {
    let notes = program().notes("round-robin", 3, &["oooooo", "oooooo", "oooooo"]);
    let all: Vec<&String> = notes.keys().collect();
    let [only] = all.as_slice() else { panic!("round robin has one schedule, not {all:?}") };
    // Threads begin one after the other, so the first is ahead at the start and the last behind at the end.
    let middle = &only[3..15];
    for at in 0..middle.len() - 1 {
        assert_ne!(middle.as_bytes()[at], middle.as_bytes()[at + 1], "{only}");
    }
    assert!(middle.contains("123") || middle.contains("132"), "{only}");
}

/// First come, first served: whoever comes is served, so that everybody gets to its end and nothing is lost. Who comes when is
/// a matter of time, on which no test depends.
#[test]
fn queue_serves_everybody() {
    let long = "o".repeat(2000);
    let program = program();
    let trace = program.path.with_extension("trace");
    let mut command = raddle();
    command.args(["-q", "record", "--sync-only", "--strategy", "queue", "-o"]).arg(&trace).arg("--");
    let output = run(command.arg(&program.path).args([&long, &long, &long]));
    let order = note(&End::Prints(String::from_utf8_lossy(&output.stdout).into_owned()));
    for thread in ["1", "2", "3"] {
        assert_eq!(order.matches(thread).count(), 2000, "thread {thread}: {order}");
    }
}

/// Burckhardt et al. (ASPLOS 2010), figures 1 to 3: an ordering error has depth 1, an atomicity violation and a deadlock of two
/// locks have depth 2. With n threads and k steps, an error of depth d is found with probability at least
/// 1 / (n k^(d - 1)), and one of depth 2 never without a change of priority.
#[test]
fn pct_keeps_its_guarantee() {
    let program = program();
    let runs = cases(1000);
    // Main and two threads; creation, begin, end and join are steps.
    let (n, k) = (3.0, 14.0);
    let at_least = |count: u64, probability: f64, what: &str| {
        let expected = runs as f64 * probability;
        assert!(count as f64 >= expected - 5.0 * expected.sqrt(), "{what}: {count} of {runs}");
    };
    let notes = program.notes("pct:1", runs, &["o", "o"]);
    at_least(notes.get("21").copied().unwrap_or(0), 1.0 / n, "order, depth 1");
    let notes = program.notes("pct:1", runs, &["oo", "o"]);
    assert_eq!(notes.get("121"), None, "depth 2 needs a change of priority");
    let notes = program.notes("pct:2", runs, &["oo", "o"]);
    at_least(notes.get("121").copied().unwrap_or(0), 1.0 / (n * k), "atomicity, depth 2");
    let locks = ["lmvu", "mluv"];
    assert_eq!(program.notes("pct:1", runs, &locks).get("deadlock"), None);
    let notes = program.notes("pct:2", runs, &locks);
    at_least(notes.get("deadlock").copied().unwrap_or(0), 1.0 / (n * (k + 6.0)), "deadlock, depth 2");
}

/// Yuan, Yang and Gu (CAV 2018), their motivating example: one thread has k unrelated operations before the one that races with
/// the other thread's first. A random walk lets it come first with a probability that halves with every further
/// operation; partial order sampling does it with about 1/(k + c) for a few operations c of beginning and creation.
#[test]
fn pos_does_not_mind_unrelated_operations() {
    let program = program();
    let runs = cases(2000);
    let words = ["o", "xxxxxxxxxxxxxxxo"];
    let walk = model::random_walk(&words)
        .into_iter()
        .find(|(end, _)| note(end) == "21")
        .map_or(0.0, |(_, probability)| probability);
    let first = |strategy: &str| program.notes(strategy, runs, &words).get("21").copied().unwrap_or(0);
    check_probability("random walk", first("random"), runs, walk);
    let pos = first("pos") as f64 / runs as f64;
    assert!(pos >= 1.0 / 24.0, "{pos}");
    assert!(pos >= 20.0 * walk, "{pos} against {walk}");
}

/// Zhao et al. (ASPLOS 2025), figure 1: with the numbers of operations known, all interleavings of them are equally likely.
/// The walk that chooses evenly among threads is far from that.
#[test]
fn surw_makes_interleavings_equally_likely() {
    let program = program();
    let runs = cases(3000);
    for words in [["ooo", "ooo"], ["o", "ooooo"]] {
        let orders = model::interleavings(&words);
        let share = 1.0 / orders.len() as f64;
        let found = program.explore("surw", runs, &[], &words);
        for end in orders.keys() {
            check_probability(
                &format!("{words:?} {end:?}"),
                found.get(end).copied().unwrap_or(0),
                runs,
                share,
            );
        }
        let walk = model::random_walk(&words);
        let (least, most) = walk.values().fold((1.0f64, 0.0f64), |(a, b), &p| (a.min(p), b.max(p)));
        assert!(most > 3.0 * least, "the even walk is not uniform: {least} to {most}");
    }
}

/// Emmi, Qadeer and Rakamarić (POPL 2011): without delays there is one schedule, in which every thread runs to its end; every
/// delay adds at most one preemption, so d of them give at most the orders with d of them.
#[test]
fn delays_bound_preemptions() {
    let program = program();
    let words = ["ooo", "ooo"];
    let none = program.notes("delay:0", 50, &words);
    assert_eq!(none.keys().collect::<Vec<_>>(), ["111222"]);
    for delays in [1, 2] {
        let notes = program.notes(&format!("delay:{delays}"), cases(400), &words);
        assert!(notes.len() > 1, "delays change something: {notes:?}");
        for order in notes.keys() {
            let changes = order.as_bytes().windows(2).filter(|pair| pair[0] != pair[1]).count();
            // The thread that was put off comes again: two changes a delay, and the one at the end of the first thread.
            assert!(changes <= 2 * delays + 1, "{order} with {delays} delays");
        }
    }
    let found = program.notes("delay:1", cases(400), &["lmvu", "mluv"]);
    assert!(found.contains_key("deadlock"), "one delay closes the cycle: {found:?}");
    let without = program.notes("delay:0", 5, &["lmvu", "mluv"]);
    assert!(!without.contains_key("deadlock"), "{without:?}");
}

/// ConTest: noise at one place turns the order round. It is put before the operation on one line and nowhere else, so whose line
/// it is comes last.
#[test]
fn noise_strikes_where_it_is_told() {
    let folder = common::folder(&[(
        "two.c",
        "#include <pthread.h>\n\
         #include <stdatomic.h>\n\
         #include <stdio.h>\n\
         static char order[3]; static atomic_int n;\n\
         static void *one(void *a) {\n\
             order[atomic_fetch_add(&n, 1)] = '1';\n\
             return a; }\n\
         static void *two(void *a) {\n\
             order[atomic_fetch_add(&n, 1)] = '2';\n\
             return a; }\n\
         int main(void) { pthread_t s, t;\n\
             pthread_create(&s, 0, one, 0);\n\
             pthread_create(&t, 0, two, 0);\n\
             pthread_join(s, 0); pthread_join(t, 0); puts(order); return 0; }\n",
    )]);
    let path = folder.path().join("two");
    succeed(
        raddle().args(["cc", "-O0", "-g", "-pthread"]).arg(folder.path().join("two.c")).arg("-o").arg(&path),
    );
    let noise = |place: &str| {
        let output = run(raddle()
            .args(["-q", "explore", "--json", "--no-schedules", "--runs", "10", "--noise-at", place])
            .args(["--strategy", "noise:probability=1000,strength=80000,where=before,only=rmw", "--"])
            .arg(&path));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let outcomes = json["exploration"]["outcomes"].as_array().unwrap();
        let last_is_one = outcomes.iter().find(|outcome| outcome["stdout"] == "21\n");
        last_is_one.map_or(0, |outcome| outcome["count"].as_u64().unwrap())
    };
    let (first, second) = (noise("two.c:6"), noise("two.c:9"));
    assert!(first >= 7, "the first thread was struck and came last in {first} of 10 runs");
    assert!(second <= 3, "the second thread was struck and came first in {second} of 10 runs");
    let refused =
        run(raddle().args(["explore", "--strategy", "noise", "--noise-at", "two.c:4", "--"]).arg(&path));
    assert_eq!(refused.status.code(), Some(2), "a line without code");
    let refused =
        run(raddle().args(["explore", "--strategy", "pos", "--noise-at", "two.c:6", "--"]).arg(&path));
    assert_eq!(refused.status.code(), Some(2), "another strategy");
}
