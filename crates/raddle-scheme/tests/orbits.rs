//! States up to renaming, and random walks: they see what the exploration by names sees, and nothing else.

mod common;

use common::{Author, cases};
use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::explore::{Exploration, Observed, explore, explore_orbits};
use raddle_scheme::concrete::run::{Ending, Scheduler, run};
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::concrete::walk::{Bounds, walk};
use raddle_scheme::finding::{Grade, Kind, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Program, Source, parse};
use std::collections::BTreeSet;
use std::time::Duration;

fn program(text: &str) -> Program {
    parse(Source::new("orbits.scm", text)).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// Several threads that do the same, started and joined in one of many ways.
fn crowd(author: &mut Author) -> String {
    author.fuel = 4;
    let mut out = String::from(
        "(define x 0)\n(define y 1)\n(define lock #unlocked)\n(define mutex (new-lock))\n(define cell (new-ref 0))\n\
         (define pair (cons 0 1))\n(define vec (vector 0 1))\n",
    );
    let body = author.statement(2);
    let more = if author.below(2) == 0 { author.statement(1) } else { String::new() };
    out += &format!("(define (f n) {body} {more})\n");
    let count = 2 + author.below(2);
    let argument = match author.below(3) {
        0 => "1".to_owned(),
        1 => "x".to_owned(),
        _ => "2".to_owned(),
    };
    let spawn = format!("(spawn (f {argument}))");
    let names: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
    let joins: String = names.iter().map(|name| format!("(join {name})")).collect();
    let all = names.iter().map(|name| format!("({name} {spawn})")).collect::<Vec<_>>().join(" ");
    let own = author.statement(1);
    let numbers: String = (0..count).map(|at| format!("{at} ")).collect();
    out += &match author.below(6) {
        0 => {
            let spawns: String = names.iter().map(|name| format!("(define {name} {spawn})\n")).collect();
            format!("{spawns}{own}\n{joins}\n")
        }
        1 => format!("(let ({all}) {own} {joins})\n"),
        2 => format!("(let* ({all}) {joins} {own})\n"),
        3 => format!(
            "(define all (map (lambda (n) {spawn}) (list {numbers})))\n(for-each (lambda (t) (join t)) all)\n{own}\n"
        ),
        4 => format!(
            "(define all (map (lambda (n) {spawn}) (list {numbers})))\n{own}\n(map (lambda (t) (join t)) all)\n"
        ),
        _ => format!(
            "(let ({all}) (+ 1 {}))\n",
            names.iter().map(|n| format!("(if (join {n}) 1 2)")).collect::<Vec<_>>().join(" ")
        ),
    };
    out + &author.value() + "\n"
}

fn random(seed: u64) -> String {
    let mut author = Author::new(seed ^ 0x0b17);
    if seed.is_multiple_of(3) { author.program() } else { crowd(&mut author) }
}

/// What both explorations must agree on. Which of several equal threads wait is a matter of names; where they wait is not,
/// except for a thread that waits for others, which may wait for any of them.
fn summary(observed: &Observed) -> [BTreeSet<String>; 6] {
    let stands = |stuck: &[raddle_scheme::concrete::explore::Stand]| {
        let mut places: Vec<String> = stuck
            .iter()
            .filter(|s| s.action != raddle_scheme::machine::access::Action::Join)
            .map(|s| format!("{:?} {:?}", s.site, s.action))
            .collect();
        places.sort();
        format!("{places:?}")
    };
    [
        observed.races.keys().map(|k| format!("{k:?}")).collect(),
        observed.deadlocks.keys().map(|k| stands(k)).collect(),
        observed.livelocks.keys().map(|k| stands(k)).collect(),
        observed.unretried.keys().map(|k| format!("{k:?}")).collect(),
        observed.errors.keys().map(|k| format!("{:?}", k.0)).collect(),
        observed.results.clone(),
    ]
}

#[test]
fn renaming_loses_nothing() {
    let (mut compared, mut fewer) = (0u64, 0u64);
    for seed in 0..cases(200) {
        let text = random(seed);
        let program = program(&text);
        let machine = Machine::new(&program);
        let named = explore(&machine, 4_000, &Clock::unlimited());
        if named.incomplete.is_some() {
            continue;
        }
        compared += 1;
        let orbits = explore_orbits(&machine, 4_000, &Clock::unlimited());
        assert_eq!(orbits.incomplete, None, "seed {seed}\n{text}");
        let (a, b) = (summary(&named.observed), summary(&orbits.observed));
        for (what, (a, b)) in
            ["races", "deadlocks", "livelocks", "unretried", "errors", "results"].iter().zip(a.iter().zip(&b))
        {
            assert_eq!(a, b, "seed {seed}: {what}\n{text}");
        }
        assert!(orbits.states <= named.states, "seed {seed}: {} of {}\n{text}", orbits.states, named.states);
        fewer += (orbits.states < named.states) as u64;
    }
    assert!(compared * 2 > cases(200), "most programs are small enough to compare: {compared}");
    assert!(fewer * 4 > compared, "equal threads are common here: {fewer} of {compared}");
}

/// Everything that a walk reports happens, and a walk reports nothing that the exploration does not know.
#[test]
fn walks_say_what_happens() {
    let (mut compared, mut deadlocks, mut met) = (0u64, 0u64, 0u64);
    for seed in 0..cases(150) {
        let text = random(seed ^ 0x3a1c);
        let program = program(&text);
        let machine = Machine::new(&program);
        let all = explore(&machine, 4_000, &Clock::unlimited());
        if all.incomplete.is_some() {
            continue;
        }
        compared += 1;
        let bounds = Bounds { walks_max: 30, steps_max: 300, states_max: 1_000 };
        let Exploration { observed, .. } = all;
        let walked = walk(&machine, bounds, seed, &Clock::unlimited()).observed;
        assert!(walked.races.keys().all(|k| observed.races.contains_key(k)), "seed {seed}: races\n{text}");
        assert!(walked.errors.keys().all(|k| observed.errors.contains_key(k)), "seed {seed}: errors\n{text}");
        assert!(walked.results.is_subset(&observed.results), "seed {seed}: results\n{text}");
        let known = |key| observed.deadlocks.contains_key(key);
        assert!(walked.deadlocks.keys().all(known), "seed {seed}: deadlocks\n{text}");
        assert!(
            walked.livelocks.is_empty() || !observed.livelocks.is_empty(),
            "seed {seed}: livelocks\n{text}"
        );
        deadlocks += !observed.deadlocks.is_empty() as u64;
        met += !walked.deadlocks.is_empty() as u64;
        for (stuck, schedule) in walked.deadlocks.iter().take(1) {
            let replay = Scheduler::Replay(schedule.clone());
            let ending = run(&machine, replay, 0, 10_000, &Clock::unlimited(), |_| {}).ending;
            let failed = matches!(ending, Ending::Failed { .. });
            assert!(failed || ending == Ending::Deadlock(stuck.clone()), "seed {seed}: {ending:?}\n{text}");
        }
    }
    assert!(compared * 2 > cases(150), "most programs are small enough to compare: {compared}");
    assert!(met * 10 > deadlocks * 9, "nearly all deadlocks are met: {met} of {deadlocks}");
}

/// Deep in the run, beyond the reach of a breadth-first search, and in nearly every run.
#[test]
fn what_happens_in_most_runs_is_found() {
    let text = "(define l (new-lock)) (define m (new-lock)) (define x 0) (define y 0) (define z 0)
        (define (busy n) (if (= n 0) 0 (begin (set! x (+ x 1)) (set! y (+ y n)) (set! z (+ z x)) (busy (- n 1)))))
        (define (left n) (if (= n 0) 0 (begin (acquire l) (acquire m) (release m) (release l) (left (- n 1)))))
        (define (right n) (if (= n 0) 0 (begin (acquire m) (acquire l) (release l) (release m) (right (- n 1)))))
        (define t (spawn (begin (busy 40) (left 60)))) (define u (spawn (begin (busy 40) (right 60))))
        (define v (spawn (busy 100))) (join t) (join u) (join v)";
    let program = program(text);
    // Bounded by what is done and not by time, so that a slow machine sees the same.
    let options = Options {
        timeout: Duration::from_secs(3_000),
        concrete_states_max: 8_000,
        abstract_states_max: 5_000,
        runs_max: 3_000,
        ..Options::default()
    };
    let report = analyze(&program, &options, &Clock::unlimited(), &mut |_| {});
    assert_eq!(report.verdict, Verdict::Found);
    assert!(report.findings.iter().any(|f| f.kind == Kind::Deadlock && f.grade == Grade::Confirmed));
    // Locks made of swaps: the walk has no end, and is caught where it spins.
    let text = text.replace("(new-lock)", "#f").replace(
        "(define (busy",
        "(define (take-l) (if (cas l #f #t) 0 (take-l))) (define (take-m) (if (cas m #f #t) 0 (take-m))) (define (busy",
    );
    let text = text
        .replace("(acquire l)", "(take-l)")
        .replace("(acquire m)", "(take-m)")
        .replace("(release l)", "(set! l #f)")
        .replace("(release m)", "(set! m #f)");
    let program = parse(Source::new("spin.scm", text)).expect("well formed");
    let report = analyze(&program, &options, &Clock::unlimited(), &mut |_| {});
    assert!(report.findings.iter().any(|f| f.kind == Kind::Livelock && f.grade == Grade::Confirmed));
}

/// An outcome of `random` between its extremes.
#[test]
fn random_has_more_than_two_outcomes() {
    for text in [
        "(define x 0) (define t (spawn (set! x 1))) (join t) (if (= (random 100) 42) (error \"forty-two\") 0)",
        "(define x 0) (define t (spawn (set! x 1))) (join t) (if (< 400 (random 1000) 600) (error \"middle\") 0)",
    ] {
        let program = program(text);
        let report = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {});
        assert_eq!((&report.verdict, report.count(Kind::Error)), (&Verdict::Found, 1), "{text}");
    }
}

/// A search that sees everything settles the verdict, whatever becomes of the abstract machine.
#[test]
fn what_is_complete_settles_the_verdict() {
    // Too many states, few classes of runs: the threads have nothing in common but a lock.
    let workers: String = (0..6)
        .map(|at| {
            format!(
                "(define a{at} 0) (define (f{at} n) (if (= n 0) 0 (begin (set! a{at} (+ a{at} n)) (f{at} (- n 1)))))
                 (define t{at} (spawn (f{at} 12)))\n"
            )
        })
        .collect();
    let joins: String = (0..6).map(|at| format!("(join t{at})")).collect();
    let text = format!("(define v (vector 1 2)) {workers}{joins} (vector-ref v (modulo a0 3))");
    let program = program(&text);
    let options = Options {
        abstract_states_max: 10,
        concrete_states_max: 1_000,
        timeout: Duration::from_secs(600),
        ..Options::default()
    };
    let report = analyze(&program, &options, &Clock::unlimited(), &mut |_| {});
    assert!(!matches!(report.verdict, Verdict::Unknown(_)), "{:?} {:?}", report.verdict, report.phases);
}
