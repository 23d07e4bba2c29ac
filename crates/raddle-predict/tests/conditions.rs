//! Deadlocks of conditions with locks and joins, in traces of `corpus/traces`: found by construction, at both levels.

mod support;

use raddle_predict::{CandidateKind, Level, Options, predict};
use raddle_trace::MemoryTrace;
use raddle_trace::std_format::{InputDialect, StdReader};
use std::path::Path;
use support::cases;

fn read(name: &str) -> MemoryTrace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/traces").join(name);
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = StdReader::new(text.as_slice(), name, None).with_dialect(InputDialect::Auto);
    let trace = MemoryTrace::read(&mut reader).unwrap();
    assert_eq!(reader.remarks(), ["STD text as SUnhang writes it (recognised)"], "{name}");
    trace
}

/// The threads of each deadlock that is predicted, by the names of the trace.
fn deadlocks(trace: &MemoryTrace, level: Level) -> Vec<Vec<String>> {
    let prediction = predict(trace, &Options { level, ..Options::default() });
    let deadlocks = prediction.candidates.iter().filter(|c| c.kind == CandidateKind::Deadlock);
    deadlocks
        .map(|candidate| {
            let name = |thread: raddle_trace::ThreadIx| {
                trace.tables.threads[thread.index()].given_name.clone().unwrap_or_default()
            };
            candidate.parties.iter().map(|party| name(party.thread)).collect()
        })
        .collect()
}

#[test]
fn every_deadlock_of_conditions_is_predicted() {
    let cases: [(&str, &[&str]); 5] = [
        ("server_shutdown.std", &["T1", "T2"]),
        ("log_rotation.std", &["T3", "T4"]),
        ("connection_pool.std", &["T1", "T2"]),
        ("bounded_queue.std", &["T1", "T2"]),
        ("join_and_notify.std", &["T0", "T1", "T2"]),
    ];
    for (name, expected) in cases {
        let trace = read(name);
        for level in [Level::Sound, Level::Optimistic] {
            let found = deadlocks(&trace, level);
            assert!(found.iter().any(|threads| threads == expected), "{name}, {level:?}: {found:?}");
        }
    }
}

#[test]
fn correct_counterparts_have_none() {
    for name in ["server_shutdown_correct.std", "log_rotation_correct.std"] {
        let trace = read(name);
        for level in [Level::Sound, Level::Optimistic] {
            let prediction = predict(&trace, &Options { level, ..Options::default() });
            let stuck = prediction.candidates.iter().filter(|candidate| !candidate.kind.is_race());
            assert_eq!(stuck.count(), 0, "{name}, {level:?}");
        }
    }
}

/// Eight threads, 213 events: every pair is decided within the budget that one gets without asking.
#[test]
fn a_trace_of_213_events_and_8_threads_is_decided() {
    use raddle_trace::generate::{Shape, generate};
    let (mut decided, mut left) = (0, 0);
    for seed in 0..cases(5) {
        let shapes = [
            Shape { nesting_max: 2, ..Shape::locks_only(8, 4, 4, 213) },
            Shape { guarded_percent: 60, ..Shape::locks_only(8, 3, 6, 213) },
            Shape { lock_percent: 60, ..Shape::locks_only(8, 6, 3, 213) },
        ];
        for shape in &shapes {
            let trace = generate(shape, seed);
            for level in [Level::Sound, Level::Optimistic] {
                let mut options = Options { level, ..Options::default() };
                options.checks.stuck = false;
                let prediction = predict(&trace, &options);
                match prediction.unexplored.as_slice() {
                    [] => decided += 1,
                    _ => left += 1,
                }
            }
        }
    }
    // The question is NP-hard: of the densest shape about one trace in fifty keeps a pair open.
    assert!(left <= decided / 30, "{decided} decided, {left} not");
}

/// What the budget does not suffice for is listed with its size, and more budget decides more.
#[test]
fn what_is_left_is_listed_and_a_larger_budget_decides_it() {
    use raddle_predict::Unexplored;
    use raddle_trace::generate::{Shape, generate};
    let mut seen = 0;
    for seed in 0..20 {
        let trace = generate(&Shape { guarded_percent: 60, ..Shape::locks_only(4, 3, 3, 120) }, seed);
        let left = |budget_states| {
            let mut options = Options { budget_states, closure: false, ..Options::default() };
            options.checks.stuck = false;
            predict(&trace, &options).unexplored
        };
        if let [Unexplored::Pairs { count, open }] = left(300).as_slice() {
            seen += 1;
            assert_eq!(*count, open.len() as u64);
            assert!(
                open.iter().all(|question| question.steps > 0 && question.events[0] < question.events[1])
            );
            assert_eq!(left(10_000_000), [], "seed {seed}");
        }
    }
    assert!(seen > 3, "{seen}");
}
