//! Verdicts of the whole analysis on random programs: equal to the exhaustive concrete exploration where that comes to an
//! end, and the same with and without the partial order reduction.

mod common;
#[path = "common/truth.rs"]
mod truth;

use common::{Author, cases};
use raddle_scheme::abs::explore::explore as abstract_explore;
use raddle_scheme::abs::space::{Config, Space};
use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::explore::explore;
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::finding::{Grade, Kind, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Program, Source, parse, suspect};
use std::collections::BTreeSet;
use std::time::Duration;
use truth::{told, truth};

fn random(seed: u64) -> (String, Program) {
    let text = Author::new(seed ^ 0x7e57).program();
    let program = parse(Source::new("random.scm", text.clone()))
        .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
    (text, program)
}

#[test]
fn reports_say_what_happens() {
    let (mut compared, mut proven) = (0, 0);
    for seed in 0..cases(100) {
        let (text, program) = random(seed);
        let exploration = explore(&Machine::new(&program), 3_000, &Clock::unlimited());
        if exploration.incomplete.is_some() {
            continue;
        }
        compared += 1;
        let options = Options {
            abstract_states_max: 3_000,
            concrete_states_max: 10_000,
            timeout: Duration::from_secs(3_000),
            ..Options::default()
        };
        let report = analyze(&program, &options, &Clock::unlimited(), &mut |_| {});
        let ran = report.phases.iter().any(|phase| phase.name == "concrete schedules");
        assert_eq!(told(&report), truth(&program, &exploration), "seed {seed}: {:?}\n{text}", report.verdict);
        assert!(!matches!(report.verdict, Verdict::Unknown(_)), "seed {seed}: {:?}\n{text}", report.verdict);
        assert!(report.findings.iter().all(|f| f.grade == Grade::Confirmed), "seed {seed}\n{text}");
        proven += !ran as u64;
    }
    assert!(compared * 2 > cases(100), "most programs are small enough to compare: {compared}");
    assert!(proven > 0, "some programs are proven without being run");
}

/// A failed swap that nobody repeats is a finding if, and only if, the order of the threads decides whether it fails.
#[test]
fn unretried_swaps_depend_on_the_order() {
    let unretried = |text: &str| {
        let program = parse(Source::new("swap.scm", text)).expect("well formed");
        let report = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {});
        assert!(!matches!(report.verdict, Verdict::Unknown(_)), "{text}: {:?}", report.verdict);
        report.count(Kind::UnretriedCas)
    };
    assert_eq!(unretried("(define x 0) (define t (spawn (cas x 1 2))) (join t)"), 0, "fails in every order");
    assert_eq!(
        unretried("(define x 0) (define (try) (cas x 0 1)) (define t (spawn (begin (try) (try)))) (join t)"),
        0,
        "fails because of its own thread"
    );
    assert_eq!(
        unretried(
            "(define x 0) (define l #unlocked)
             (define t (spawn (begin (acquire l) (cas x 0 1) (release l))))
             (define u (spawn (begin (acquire l) (set! x 2) (release l))))
             (join t) (join u)"
        ),
        1,
        "the lock excludes a race, but not that the other thread comes first"
    );
}

/// What the abstract machine suspects, as the program's text names it; with a deadlock only that there is one, because the
/// reduction may reach it at other abstract threads first.
fn suspects(program: &Program, config: Config) -> Option<(BTreeSet<String>, bool, BTreeSet<u32>)> {
    let mut space = Space::new(program, config);
    let graph = abstract_explore(&mut space, 20_000, &Clock::unlimited());
    if graph.incomplete.is_some() {
        return None;
    }
    let found = suspect::suspects(&mut space, &graph, &Clock::unlimited());
    let races = found.races.keys().map(|r| format!("{:?} {:?} {}", r.sites, r.origin, r.cell)).collect();
    let errors = found.errors.iter().filter(|(_, failure)| failure.raised).map(|(site, _)| site.0).collect();
    Some((races, !found.deadlocks.is_empty(), errors))
}

#[test]
fn partial_order_reduction_keeps_verdicts() {
    let mut compared = 0;
    for seed in 0..cases(25) {
        let (text, program) = random(seed);
        let config = Config::better((seed % 3) as usize);
        let Some(with) = suspects(&program, config) else { continue };
        let Some(without) = suspects(&program, Config { por: false, ..config }) else { continue };
        compared += 1;
        assert_eq!(with, without, "seed {seed}, with and without reduction\n{text}");
    }
    assert!(compared * 2 > cases(25), "most programs are small enough to compare: {compared}");
}

/// Two threads share an abstract id, so the machine cannot see them end; the deadlock of the two others must not hide behind
/// them, with or without the reduction.
#[test]
fn deadlocks_beside_threads_that_share_an_id() {
    let program = parse(Source::new(
        "shared.scm",
        "(define l #unlocked) (define m #unlocked) (define cell (new-ref 0))
         (define (start n) (spawn (ref-set cell n)))
         (define a (spawn (begin (acquire l) (acquire m) (release m) (release l))))
         (define b (spawn (begin (acquire m) (acquire l) (release l) (release m))))
         (start 1) (start 2) (join a) (join b)",
    ))
    .expect("well formed");
    for por in [true, false] {
        let found = suspects(&program, Config { por, ..Config::better(0) }).expect("small");
        assert!(found.1, "por {por}");
    }
}

/// An index that `modulo` keeps within a long vector cannot fail, so the lock around it is always given back.
#[test]
fn indices_within_long_vectors_cannot_fail() {
    let program = |by: u32| {
        let text = format!(
            "(define l (new-lock)) (define x 1) (define v (make-vector 200 0))
             (define (work n) (if (> n 0) (begin (acquire l) (set! x (+ x (* n n)))
               (vector-set! v (modulo x {by}) n) (release l) (work (- n 1)))))
             (define t (spawn (work 50))) (define u (spawn (work 60))) (join t) (join u)"
        );
        parse(Source::new("long.scm", text)).expect("well formed")
    };
    let judged = |by| raddle_scheme::modular::analyze(&program(by), 1, &Clock::unlimited());
    let within = judged(200);
    assert!(within.deadlocks.is_empty() && within.fallible.is_empty(), "{within:?}");
    assert!(!judged(201).fallible.is_empty());
}

/// What is used before its definition is an error, in an expression at top level as well.
#[test]
fn variables_that_are_used_before_their_definition() {
    for text in [
        "(display x) (define x 1)",
        "(define y 2) (set! y (+ x 1)) (define x 1) y",
        "(begin (if (= x 1) 2 3)) (define x 1)",
        "(let ((y 1)) (+ x y)) (define x 1)",
        "(acquire l) (define l (new-lock))",
        "(define (f) x) (f) (define x 1)",
        "(define (f) (define y x) (define x 1) y) (f)",
        "(define (f) (display x) (define x 1) x) (f)",
    ] {
        let program = parse(Source::new("early.scm", text)).expect("well formed");
        let report = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {});
        assert_eq!(report.count(Kind::Error), 1, "{text}: {:?}", report.verdict);
    }
    // And nothing else is: the thread is there when it is joined.
    let text = "(define l (new-lock)) (define x 0) (define (f) (acquire l) (set! x (+ x 1)) (release l))
        (define t (spawn (f))) (define u (spawn (f))) (join t) (join u)";
    let outcome = raddle_scheme::modular::analyze(
        &parse(Source::new("joined.scm", text)).expect("well formed"),
        1,
        &Clock::unlimited(),
    );
    assert!(outcome.fallible.is_empty() && outcome.deadlocks.is_empty(), "{outcome:?}");
}
