//! The reduced search sees what the exhaustive ones see: against the graph of states, and against the same search
//! without reduction.

mod common;

use common::{Author, cases};
use raddle_scheme::concrete::dpor::{self, Bounds};
use raddle_scheme::concrete::explore::{self, Observed};
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::limits::Clock;
use raddle_scheme::{Source, parse};
use std::collections::BTreeSet;

/// What two searches must agree on.
fn summary(observed: &Observed) -> (BTreeSet<String>, BTreeSet<String>, BTreeSet<String>, BTreeSet<String>) {
    let show = |x: &dyn std::fmt::Debug| format!("{x:?}");
    (
        observed.races.keys().map(|k| show(k)).collect(),
        observed.deadlocks.keys().map(|k| show(k)).collect(),
        observed.errors.keys().map(|k| show(k)).collect(),
        observed.results.clone(),
    )
}

#[test]
fn reduction_loses_nothing() {
    let (mut compared, mut reduced_runs, mut all_runs) = (0u64, 0, 0);
    for seed in 0..cases(150) {
        let text = Author::new(seed ^ 0xd907).program();
        let program = parse(Source::new("random.scm", text.clone()))
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        let machine = Machine::new(&program);
        let graph = explore::explore(&machine, 4_000, &Clock::unlimited());
        let bounds = Bounds { depth_max: 60, runs_max: 3_000, reduce: true };
        let reduced = dpor::explore(&machine, bounds, &Clock::unlimited());
        if graph.incomplete.is_some() || reduced.exploration.incomplete.is_some() {
            continue;
        }
        compared += 1;
        assert_eq!(summary(&reduced.exploration.observed), summary(&graph.observed), "seed {seed}\n{text}");
        let plain =
            dpor::explore(&machine, Bounds { reduce: false, runs_max: 3_000, ..bounds }, &Clock::unlimited());
        if plain.exploration.incomplete.is_none() {
            assert_eq!(summary(&plain.exploration.observed), summary(&graph.observed), "seed {seed}\n{text}");
            assert!(reduced.runs <= plain.runs, "seed {seed}: the reduction added runs\n{text}");
            reduced_runs += reduced.runs;
            all_runs += plain.runs;
        }
    }
    assert!(compared * 2 > cases(150), "most programs are small enough: {compared}");
    assert!(reduced_runs * 2 < all_runs, "the reduction reduces: {reduced_runs} of {all_runs}");
}

/// Golden counts, worked out by hand: runs that differ in the order of dependent operations.
#[test]
fn counts_equivalence_classes() {
    let runs = |text: &str| {
        let program = parse(Source::new("t.scm", text)).expect("well formed");
        dpor::explore(&Machine::new(&program), Bounds::default(), &Clock::unlimited()).runs
    };
    let two = |a: &str, b: &str| {
        format!("(define x 0)(define y 0)(define a (spawn {a}))(define b (spawn {b}))(join a)(join b)")
    };
    assert_eq!(runs(&two("(set! x 1)", "(set! y 1)")), 1, "independent writes");
    assert_eq!(runs(&two("(set! x 1)", "(set! x 2)")), 2, "two orders");
    assert_eq!(runs(&two("x", "x")), 1, "reads commute");
    assert_eq!(runs(&two("(begin (set! x 1) (set! x 2))", "(set! x 3)")), 3, "three positions for one write");
    let locked = "(begin (acquire l) (release l))";
    assert_eq!(
        runs(&format!("(define l #unlocked){}", two(locked, locked))),
        2,
        "two orders of two sections"
    );
}
