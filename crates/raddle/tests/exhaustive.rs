//! `raddle explore --exhaustive` over real programs, against brute force over a model of them: the same number of inequivalent
//! executions under every reduction, the same ends, nothing blocked under `optimal`.

mod common;
#[path = "../../raddle-explore/tests/model/mod.rs"]
mod model;

use common::{raddle, run, succeed};
use model::{Do, Model, enumerate};
use raddle_sched::Random;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;

struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
}

fn program(compiler: &[&str]) -> Program {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search");
    succeed(
        raddle()
            .arg("cc")
            .args(compiler)
            .args(["-std=gnu11", "-O1", "-g", "-pthread"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/steering/search.c"))
            .arg("-o")
            .arg(&path),
    );
    Program { folder, path }
}

/// How a program can end: what it prints, or none at all.
type End = Option<String>;

struct Searched {
    search: Value,
    ends: BTreeSet<End>,
}

impl Searched {
    fn count(&self, what: &str) -> u64 {
        self.search[what].as_u64().unwrap_or_else(|| panic!("{what} is no number: {}", self.search))
    }
}

impl Program {
    fn raw(&self, options: &[&str], words: &[&str]) -> Output {
        run(raddle()
            .args(["-q", "explore", "--exhaustive", "--json", "--keep"])
            .arg(self.folder.path().join("kept"))
            .args(options)
            .arg("--")
            .arg(&self.path)
            .args(words))
    }

    fn search(&self, options: &[&str], words: &[&str]) -> Searched {
        let options = [&["--no-schedules"], options].concat();
        let output = self.raw(&options, words);
        let json: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let ends = json["exploration"]["outcomes"].as_array().expect("a list of outcomes").iter();
        let end = |outcome: &Value| match outcome["ending"].get("exit").and_then(Value::as_u64) {
            Some(0) => Some(outcome["stdout"].as_str().unwrap().to_owned()),
            _ => None,
        };
        Searched { ends: ends.map(end).collect(), search: json["exploration"]["search"].clone() }
    }
}

/// The words of one thread as instructions of the model.
fn instructions(word: &str) -> Vec<Do> {
    let bytes = word.as_bytes();
    let mut parts: Vec<(u8, u64, u64)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let number = |at: usize| u64::from(bytes[at] - b'0');
        let two = matches!(bytes[at], b'S' | b't' | b'c');
        parts.push((bytes[at], number(at + 1), if two { number(at + 2) } else { 0 }));
        at += if two { 3 } else { 2 };
    }
    // Skips count letters; in the model a barrier is two steps and a wait three.
    let steps = |letter: u8| match letter {
        b'b' => 2,
        b'c' => 3,
        _ => 1,
    };
    let length = |from: usize, count: u64| -> usize {
        parts.iter().skip(from + 1).take(count as usize).map(|part| steps(part.0)).sum()
    };
    const RWLOCKS: u64 = 8;
    let mut instructions = Vec::new();
    for (at, &(letter, i, n)) in parts.iter().enumerate() {
        match letter {
            b'L' => instructions.push(Do::Load(i)),
            b'S' => instructions.push(Do::Store(i, n as i64)),
            b'A' => instructions.push(Do::Add(i)),
            b'l' => instructions.push(Do::Lock(i)),
            b'u' => instructions.push(Do::Unlock(i)),
            b't' => instructions.push(Do::TryLock(i, length(at, n))),
            b'w' => instructions.push(Do::Lock(RWLOCKS + i)),
            b'r' => instructions.push(Do::ReadLock(RWLOCKS + i)),
            b'x' => instructions.push(Do::Unlock(RWLOCKS + i)),
            b'p' => instructions.push(Do::Acquire(i)),
            b'v' => instructions.push(Do::Post(i)),
            b'b' => instructions.extend([Do::Enter(i), Do::Exit(i)]),
            b'c' => instructions.extend([Do::Wait(i, n), Do::Wake(i), Do::Relock(n)]),
            b'g' => instructions.push(Do::Signal(i)),
            b'h' => instructions.push(Do::Broadcast(i)),
            b'z' => instructions.push(Do::SkipIfZero(length(at, i))),
            _ => panic!("no such instruction: {}", letter as char),
        }
    }
    instructions
}

fn no_cost(
    _: &[raddle_explore::systematic::ThreadId],
    _: Option<raddle_explore::systematic::ThreadId>,
    _: raddle_explore::systematic::ThreadId,
) -> u32 {
    0
}

/// Inequivalent executions and ends by brute force. None: there are too many.
fn brute_force(words: &[&str]) -> Option<(u64, BTreeSet<End>)> {
    let model = Model::new(words.iter().map(|word| instructions(word)).collect());
    let everything = enumerate(&model, no_cost)?;
    let end = |(at, registers, variables): &model::Outcome| {
        let ended = at.iter().zip(&model.threads).all(|(&at, thread)| at >= thread.len());
        let variables = (0..4).map(|x| variables.get(&x).copied().unwrap_or(0));
        let numbers = variables.chain(registers.iter().copied()).map(|number| format!("{number} "));
        ended.then(|| numbers.collect::<String>() + "\n")
    };
    Some((everything.classes.len() as u64, everything.outcomes.iter().map(end).collect()))
}

const REDUCTIONS: [&str; 4] = ["sleep", "dpor", "source", "optimal"];

/// Compares searches with brute force; false if that takes too long.
fn check(program: &Program, words: &[&str], reductions: &[&str]) -> bool {
    let Some((classes, ends)) = brute_force(words) else { return false };
    for reduction in reductions {
        let searched = program.search(&["--reduction", reduction], words);
        let about = format!("{reduction} {words:?}: {}", searched.search);
        assert_eq!(searched.search["complete"], true, "{about}");
        assert_eq!(searched.count("executions"), classes, "{about}");
        assert_eq!(searched.ends, ends, "{about}");
        assert_eq!(searched.search["estimate"]["executions"], classes, "{about}");
        assert_eq!(searched.count("deadlocks") > 0, ends.contains(&None), "{about}");
        if *reduction == "optimal" {
            assert_eq!(searched.count("blocked"), 0, "{about}");
        }
    }
    true
}

/// Shapes with names, and families by number of threads and operations.
fn families() -> Vec<Vec<String>> {
    let mut programs: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| programs.push(words.iter().map(|&word| word.to_owned()).collect());
    // Litmus tests: store buffering, message passing, load buffering, 2+2W, R, S, WRC, RWC, IRIW, coherence.
    add(&["S01L1", "S11L0"]);
    add(&["S01S11", "L1L0"]);
    add(&["L0S11", "L1S01"]);
    add(&["S01S12", "S11S02"]);
    add(&["S01S11", "S12L0"]);
    add(&["S02S11", "L1S01"]);
    add(&["S01", "L0S11", "L1L0"]);
    add(&["S01", "L0L1", "S11L0"]);
    add(&["S01", "S11", "L0L1", "L1L0"]);
    add(&["S01", "S02", "L0L0"]);
    add(&["S01L0", "S02L0"]);
    add(&["S01L1", "S11L2", "S21L0"]);
    // Deadlocks and orders of locks.
    add(&["l0l1u1u0", "l1l0u0u1"]);
    add(&["l0l1u1u0", "l0l1u1u0"]);
    add(&["l0l1u1u0", "l1l2u2u1", "l2l0u0u2"]);
    add(&["l0", "l0"]);
    add(&["l0u0l1u1", "l1u1l0u0"]);
    // Conditions: lost wake-ups, one signal for two, broadcasts.
    add(&["l0c00u0", "g0"]);
    add(&["l0c00u0", "l0g0u0"]);
    add(&["l0L0z1u0l0u0", "l0A0u0"]);
    add(&["l0c00u0", "l0c00u0", "l0g0u0"]);
    add(&["l0c00u0", "l0c00u0", "l0h0u0"]);
    add(&["l0c00u0", "l0c00u0", "g0g0"]);
    add(&["l0c00A0u0", "g0", "h0"]);
    // Barriers.
    add(&["b0", "b0"]);
    add(&["S01b0L1", "S11b0L0"]);
    add(&["b0b0", "b0b0"]);
    add(&["b0", "b0", "b0"]);
    add(&["A0b0", "A0b0", "L0"]);
    // Semaphores.
    add(&["p0A0v0", "p0A0v0"]);
    add(&["p0", "p0"]);
    add(&["p0p0", "v0"]);
    add(&["p0", "p0", "v0"]);
    add(&["v0", "v0", "p0p0p0"]);
    add(&["p0p1v1v0", "p1p0v0v1"]);
    // Readers and writers.
    add(&["r0L0x0", "w0A0x0"]);
    add(&["r0L0x0", "r0L0x0", "w0A0x0"]);
    add(&["w0A0x0", "w0A0x0"]);
    add(&["r0r1x1x0", "w1w0x0x1"]);
    add(&["r0x0", "r0x0", "r0x0"]);
    // Locks that are tried.
    add(&["t02A0u0", "t02A0u0"]);
    add(&["t02A0u0", "l0A0u0"]);
    add(&["t02A0u0A1", "t02A0u0A1"]);
    add(&["t02A0u0", "t02A0u0", "t02A0u0"]);
    // Control that depends on data.
    add(&["L0z1S12", "S01L1"]);
    add(&["L0z2A1A1", "A0"]);
    add(&["L0z1A1", "L1z1A0", "A0A1"]);
    add(&["A0z2A1S22", "A0z2A1S23"]);
    add(&["L0z3l0A1u0", "S01l0A1u0"]);
    // A work-stealing queue of one item, a ring buffer of one place, a double-checked lock.
    add(&["t03L0z1S00u0", "t03L0z1S00u0", "S01"]);
    add(&["p0S01v1", "p1L0v0", "p1L0v0"]);
    add(&["L0z1A1l0L0z1A1S01u0", "L0z1A1l0L0z1A1S01u0"]);
    let mut family = |threads: Vec<String>| programs.push(threads);
    let repeated = |word: &str, threads: usize| vec![word.to_owned(); threads];
    // A writer and n readers have 2^n executions, n adders n!, and so on.
    for readers in 1..=5 {
        family([vec!["S01".to_owned()], repeated("L0", readers)].concat());
    }
    for threads in 2..=4 {
        for word in ["A0", "l0u0", "L0S01", "l0A0u0", "p0v0", "S01", "L0", "w0x0"] {
            if threads < 4 || word.len() <= 4 {
                family(repeated(word, threads));
            }
        }
    }
    for operations in 1..=4 {
        // The third load at one place in the code waits for news: that is what loops do.
        family(repeated(&"L0".repeat(operations), 2));
        for word in ["A0", "S01", "l0u0", "p0v0"] {
            family(repeated(&word.repeat(operations), 2));
            family(vec![word.repeat(operations), "A0".into(), "A1".into()]);
        }
    }
    for operations in 1..=3 {
        family(vec!["A0".repeat(operations), "L0L0".into()]);
        family(vec!["A0A1".repeat(operations), "A1A0".into()]);
        family(vec!["l0A0u0".repeat(operations), "l0L0u0".into(), "A1".into()]);
    }
    programs
}

#[test]
fn counts_are_those_of_brute_force() {
    let program = program(&[]);
    let programs = families();
    let mut checked = 0;
    for words in &programs {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        checked += usize::from(check(&program, &words, &REDUCTIONS));
    }
    assert!(checked >= 110, "{checked} of {} programs were small enough", programs.len());
}

/// A thread of a few instructions.
fn random_word(random: &mut Random) -> String {
    let mut word = String::new();
    for _ in 0..1 + random.below(3) {
        let x = random.below(2);
        let text = match random.below(10) {
            0 => format!("L{x}"),
            1 => format!("S{x}{}", 1 + random.below(3)),
            2 => format!("A{x}"),
            3 => format!("l{x}A0u{x}"),
            4 => format!("L{x}z1S{}5", 1 - x),
            5 => format!("p{x}A0v{x}"),
            6 => format!("t{x}2A0u{x}"),
            7 => format!("r{x}L{x}x{x}"),
            8 => ["g0", "v0", "l0c00u0", "h0", "p1"][random.below(5)].to_owned(),
            _ => format!("w{x}A{x}x{x}"),
        };
        word += &text;
    }
    word
}

#[test]
fn random_programs_too() {
    let program = program(&[]);
    let mut checked = 0;
    for seed in 0..60u64 {
        let mut random = Random::new(seed * 7919 + 1);
        let words: Vec<String> = (0..2 + random.below(2)).map(|_| random_word(&mut random)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let reduction = REDUCTIONS[seed as usize % REDUCTIONS.len()];
        checked += usize::from(check(&program, &words, &[reduction, "optimal"]));
    }
    assert!(checked >= 40, "{checked} programs were small enough");
}

/// Without a reduction there are as many executions as interleavings, and the ends are the same.
#[test]
fn reductions_lose_no_end() {
    let program = program(&[]);
    for words in [&["A0", "L0"][..], &["l0l1u1u0", "l1l0u0u1"], &["l0c00u0", "g0"], &["L0S01", "L0S01"]] {
        let all = program.search(&["--reduction", "none"], words);
        assert_eq!(all.search["complete"], true);
        assert_eq!(all.count("blocked"), 0);
        let reduced = program.search(&[], words);
        assert_eq!(all.ends, reduced.ends, "{words:?}");
        assert!(all.count("executions") > reduced.count("executions"), "{words:?}");
    }
}

/// What a search finds is kept as a schedule that shows it again.
#[test]
fn failures_replay() {
    let program = program(&[]);
    let kept = program.folder.path().join("kept");
    for (words, kind) in [(["L0z1X0", "S01"], "crash"), (["l0l1u1u0", "l1l0u0u1"], "deadlock")] {
        let output = program.raw(&[], &words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = json["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 1, "{words:?}: {json:#}");
        assert_eq!((&findings[0]["kind"], &findings[0]["grade"]), (&kind.into(), &"confirmed".into()));
        let id = findings[0]["id"].as_str().unwrap();
        for _ in 0..20 {
            let replayed = run(raddle().args(["replay", "--keep"]).arg(&kept).arg(id));
            let text = String::from_utf8_lossy(&replayed.stderr).into_owned();
            assert!(text.contains("shown in 1 of 1 runs"), "{words:?}: {text}");
        }
    }
}

/// A crash ends everything, so it comes before or after whatever others do; all reductions agree on how often.
#[test]
fn crashes_are_found_under_every_reduction() {
    let program = program(&[]);
    for words in [&["L0z1X0", "S01"][..], &["A0z1X0", "A0L1", "S11"], &["l0L0z1X0u0", "l0A0u0"]] {
        let counts: BTreeSet<(u64, u64)> = REDUCTIONS
            .iter()
            .map(|reduction| {
                let searched = program.search(&["--reduction", reduction], words);
                assert_eq!(searched.search["complete"], true, "{reduction} {words:?}");
                (searched.count("executions"), searched.count("failures"))
            })
            .collect();
        assert_eq!(counts.len(), 1, "{words:?}: {counts:?}");
        assert!(counts.first().is_some_and(|counts| counts.1 > 0), "{words:?}");
        if words.len() == 2 {
            let all = program.search(&["--reduction", "none"], words);
            assert_eq!(all.ends, program.search(&[], words).ends, "{words:?}");
        }
    }
}

/// A loop that waits for somebody ends when that one comes; one that nobody ends is found, and fails.
#[test]
fn loops_that_wait() {
    let program = program(&[]);
    let finite = program.search(&[], &["s0S11", "S01s1"]);
    assert_eq!((finite.search["complete"].as_bool(), finite.count("failures")), (Some(true), 0));
    assert_eq!(finite.ends, BTreeSet::from([Some("1 1 0 0 0 0 \n".to_owned())]));
    let endless = program.raw(&["--no-schedules"], &["s0", "L1"]);
    let json: Value = serde_json::from_slice(&endless.stdout).unwrap();
    assert_eq!(json["exploration"]["search"]["failures"], 1, "{json:#}");
    assert_eq!(endless.status.code(), Some(1), "it is a failure");
}

/// A bound that is large enough leaves nothing out, a smaller one counts the cheap ones, and they add up.
#[test]
fn bounds_count_by_cost() {
    let program = program(&[]);
    for words in [&["A0A0", "A0A0"][..], &["l0A0u0", "l0A0u0", "A1"], &["L0S01", "L0S01"]] {
        let (classes, ends) = brute_force(words).unwrap();
        for option in ["--bound", "--delay-bound"] {
            let mut before: Vec<u64> = Vec::new();
            for bound in 0..6 {
                let searched = program.search(&[option, &bound.to_string()], words);
                let about = format!("{option} {bound} {words:?}: {}", searched.search);
                assert_eq!(searched.search["complete"], true, "{about}");
                let counts: Vec<u64> = searched.search["bound"]["executions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|count| count.as_u64().unwrap())
                    .collect();
                assert_eq!(counts[..before.len()], before, "{about}");
                assert_eq!(counts.iter().sum::<u64>(), searched.count("executions"), "{about}");
                assert!(searched.ends.is_subset(&ends), "{about}");
                if bound == 5 {
                    assert_eq!(searched.count("executions"), classes, "{about}");
                    assert_eq!(searched.ends, ends, "{about}");
                }
                before = counts;
            }
            assert!(before[0] > 0, "{option} {words:?}: {before:?}");
            // Without a delay there is one schedule; without a preemption two threads with locks do all that they can.
            let whole = option == "--bound" && words.len() == 3;
            assert_eq!(before[0] == classes, whole, "{option} {words:?}: {before:?}");
        }
    }
}

/// What is not modelled is refused, and what is stopped early says so.
#[test]
fn limits_are_told() {
    let program = program(&[]);
    let stopped = program.search(&["--runs", "3"], &["A0A0A0", "A0A0A0"]);
    assert_eq!((stopped.search["complete"].as_bool(), stopped.count("executions")), (Some(false), 3));
    assert!(stopped.search["estimate"]["executions"].as_u64().unwrap() >= 3);
    let source = program.folder.path().join("pipes.c");
    std::fs::write(
        &source,
        "#include <pthread.h>\n#include <unistd.h>\nstatic int ends[2];\n\
         static void *run(void *a) { char c; return read(ends[0], &c, 1) == 1 ? a : a; }\n\
         int main(void) { pthread_t t; if (pipe(ends)) return 1; pthread_create(&t, 0, run, 0);\n\
         if (write(ends[1], \"x\", 1) != 1) return 1; return pthread_join(t, 0); }\n",
    )
    .unwrap();
    let refused = run(raddle().args(["explore", "--exhaustive"]).arg(&source));
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("waits in system calls (pipes): no exhaustive search is possible"), "{text}");
    let text = run(raddle().args(["explore", "--bound", "2", "x.c"])).stderr;
    assert!(String::from_utf8_lossy(&text).contains("--exhaustive"));
}
