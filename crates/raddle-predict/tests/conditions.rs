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

fn kinds(text: &str, level: Level) -> Vec<(CandidateKind, usize)> {
    let mut reader = StdReader::new(text.as_bytes(), "t.std", None);
    let trace = MemoryTrace::read(&mut reader).unwrap();
    let prediction = predict(&trace, &Options { level, ..Options::default() });
    prediction.candidates.iter().map(|candidate| (candidate.kind, candidate.parties.len())).collect()
}

/// The first signal was for T2, which then sends the one for T1. Had T1 waited already, it might have taken the first, and
/// nobody would have woken T2.
#[test]
fn a_signal_that_another_waiter_takes_is_predicted() {
    let text = "T0|fork(1)|1\nT0|fork(2)|2\nT2|acq(m)|3\nT2|waitbegin(c,m)|4\nT0|acq(m)|5\nT0|notify(c)|6\nT0|rel(m)|7\n\
                T2|wait(c,m)|8\nT2|acq(m)|9\nT2|rel(m)|10\nT1|acq(m)|11\nT1|waitbegin(c,m)|12\nT2|acq(m)|13\n\
                T2|notify(c)|14\nT2|rel(m)|15\nT1|wait(c,m)|16\nT1|acq(m)|17\nT1|rel(m)|18\nT0|join(1)|19\n";
    let text =
        text.replace("fork(1)", "fork(T1)").replace("fork(2)", "fork(T2)").replace("join(1)", "join(T1)");
    for level in [Level::Sound, Level::Optimistic] {
        let mut reader = StdReader::new(text.as_bytes(), "t.std", None);
        let trace = MemoryTrace::read(&mut reader).unwrap();
        let prediction = predict(&trace, &Options { level, ..Options::default() });
        let stuck_at = |location: u32| {
            prediction.candidates.iter().any(|candidate| {
                let at = |party: &raddle_predict::Party| {
                    let event = &trace.events[party.event.index()];
                    *trace.tables.location(event.location) == raddle_trace::Location::Foreign(location)
                };
                // T1 comes to its end although T2, which wakes it in the trace, waits for good.
                let ends = |witness: &raddle_predict::Witness| {
                    let thread =
                        trace.tables.threads.iter().position(|t| t.given_name.as_deref() == Some("T1"));
                    let thread = raddle_trace::ThreadIx(thread.unwrap() as u32);
                    witness.end()[thread.index()] as usize == prediction.program.steps(thread).len()
                };
                candidate.kind == CandidateKind::MissedSignal
                    && candidate.parties.iter().any(at)
                    && (ends(&candidate.witness) || candidate.alternatives.iter().any(|(_, w)| ends(w)))
            })
        };
        assert!(stuck_at(8), "{level:?}: T2 waits for good: {:?}", prediction.candidates);
    }
    // A broadcast wakes both.
    let all = text.replace("notify(c)", "notifyall(c)");
    let missed = |text: &str| kinds(text, Level::Sound).len();
    assert!(missed(&all) <= missed(&text));
}

/// A thread that asks for a mutex which it has, or for the write mode under its own read mode, waits for itself.
#[test]
fn a_self_deadlock_is_a_deadlock_of_one() {
    for level in [Level::Sound, Level::Optimistic] {
        assert_eq!(kinds("T1|acq(l)|1\nT1|w(x)|2\nT1|req(l)|3\n", level), [(CandidateKind::Deadlock, 1)]);
        assert_eq!(kinds("T1|acqr(l)|1\nT1|req(l)|3\n", level), [(CandidateKind::Deadlock, 1)]);
        assert_eq!(kinds("T1|acqr(l)|1\nT1|reqr(l)|3\n", level), []);
        // Who waits for that thread is part of it.
        let others = kinds("T1|acq(l)|1\nT2|req(l)|9\nT1|req(l)|3\n", level);
        assert!(others.iter().any(|(kind, parties)| *kind == CandidateKind::Deadlock && *parties == 2));
    }
}

/// A million events, a hundred waits under locks: decided without a search over the trace.
#[test]
fn a_long_trace_with_many_waits_needs_no_search() {
    let events: usize =
        std::env::var("RADDLE_LONG_EVENTS").ok().and_then(|n| n.parse().ok()).unwrap_or(60_000);
    let waits = 100;
    let mut text = String::from("T0|fork(T1)|1\nT0|fork(T2)|2\n");
    for _ in 0..waits {
        for step in 0..events / waits / 9 {
            let (lock, var) = (step % 7, step % 13);
            for thread in ["T1", "T2", "T0"] {
                text.push_str(&format!(
                    "{thread}|acq(k{lock})|3\n{thread}|w(v{var})|4\n{thread}|rel(k{lock})|5\n"
                ));
            }
        }
        // The notifier takes the outer lock first, here before the waiter has it.
        text.push_str(
            "T2|acq(outer)|11\nT2|rel(outer)|12\nT1|acq(outer)|13\nT1|acq(m)|14\nT1|waitbegin(m,m)|15\n",
        );
        text.push_str("T2|acq(m)|16\nT2|notify(m)|17\nT2|rel(m)|18\nT1|wait(m,m)|19\nT1|acq(m)|20\nT1|rel(m)|21\nT1|rel(outer)|22\n");
    }
    let mut reader = StdReader::new(text.as_bytes(), "t.std", None);
    let trace = MemoryTrace::read(&mut reader).unwrap();
    for level in [Level::Sound, Level::Optimistic] {
        let mut options = Options { level, budget_states: 1_000, ..Options::default() };
        options.checks.races = false;
        let started = std::time::Instant::now();
        let prediction = predict(&trace, &options);
        println!("{} events, {level:?}: {:?}", trace.events.len(), started.elapsed());
        let found =
            prediction.candidates.iter().any(|c| c.kind == CandidateKind::Deadlock && c.parties.len() == 2);
        assert!(found, "{level:?}: {:?}", prediction.unexplored);
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
