//! The direct solver and the refinement engine answer alike, on random traces and properties of both shapes; what the direct solver finds is a
//! possible order, and the automaton says of a run that took it what the solver said.

use raddle_predict::state::{State, Status};
use raddle_property::check::{Checked, Effort, check, observed};
use raddle_property::script::Property;
use raddle_trace::MemoryTrace;
use raddle_trace::generate::{Shape, generate};

/// Calls are about objects, so each has one field.
const PROPERTIES: &[(&str, &str)] = &[
    ("order", "P = NAME0?t?o -> Q\nQ = NAME1?t?o -> P\nassert P [T= PROGRAM |\\ {| NAME0, NAME1 |}"),
    ("never", "assert STOP [T= PROGRAM |\\ {| NAME1 |}"),
    (
        "count",
        "P(n) = n < 2 & NAME0?t?o -> P(n + 1) [] n > 0 & NAME1?t?o -> P(n - 1)\nassert P(0) [T= PROGRAM |\\ {| NAME0, NAME1 |}",
    ),
    (
        "watchdog",
        "E = NAME0?t?o -> NAME1?u:diff(thread, {t})?p -> SKIP\nw = {| NAME0, NAME1 |}\nassert STOP [T= (PROGRAM [| w |] WD(E, w)) |\\ {error}",
    ),
    (
        "watchdog with synchronisation",
        "E = NAME0?t?o -> NAME1?u:diff(thread, {t})?p -> SKIP\nw = union({| NAME0, NAME1 |}, sync_set)\nassert STOP [T= (PROGRAM [| w |] WD(E, w)) |\\ {error}",
    ),
];

fn shapes() -> Vec<Shape> {
    let base = Shape { events: 14, threads: 3, variables: 1, calls: 2, ..Shape::default() };
    vec![
        base.clone(),
        Shape { semaphores: 1, other_percent: 30, ..base.clone() },
        Shape { conditions: 1, other_percent: 30, ..base.clone() },
        Shape { barriers: 1, other_percent: 30, ..base },
    ]
}

fn cases() -> u64 {
    std::env::var("RADDLE_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// Names of the calls of a trace.
fn names(trace: &MemoryTrace) -> Option<[String; 2]> {
    let mut names: Vec<String> = trace
        .events
        .iter()
        .filter_map(|event| match event.op {
            raddle_trace::Op::Custom { name, .. } => Some(trace.tables.text(name).to_owned()),
            _ => None,
        })
        .collect();
    names.sort();
    names.dedup();
    match &names[..] {
        [first, second, ..] => Some([first.clone(), second.clone()]),
        _ => None,
    }
}

fn violated(checked: &Checked) -> Vec<bool> {
    checked.assertions.iter().map(|decided| !decided.violations.is_empty()).collect()
}

#[test]
fn both_ways_agree() {
    let (mut compared, mut broken) = (0, 0);
    for (which, shape) in shapes().iter().enumerate() {
        for seed in 0..cases() {
            let trace = generate(shape, seed * 7 + which as u64);
            let Some([first, second]) = names(&trace) else { continue };
            for (name, text) in PROPERTIES {
                let text = text.replace("NAME0", &first).replace("NAME1", &second);
                let property = Property::new("p.csp", &text);
                let what = || format!("{name}, shape {which}, seed {seed}");
                let direct = check(&trace, &property, &Effort::default())
                    .unwrap_or_else(|error| panic!("{}: {error}", what()));
                assert!(!direct.assertions[0].by_engine, "{} has a known shape", what());
                let engine = check(&trace, &property, &Effort { engine_only: true, ..Effort::default() })
                    .unwrap_or_else(|error| panic!("{}: {error}", what()));
                assert!(
                    engine.assertions[0].undecided.is_none(),
                    "{}: {:?}",
                    what(),
                    engine.assertions[0].undecided
                );
                assert_eq!(violated(&direct), violated(&engine), "{}\n{text}", what());
                for decided in direct.assertions.iter().chain(&engine.assertions) {
                    for violation in &decided.violations {
                        possible(&direct, &violation.moves, &what());
                    }
                }
                if observed(&trace, &property, 1).unwrap() {
                    assert!(violated(&direct)[0], "{}: what was observed is possible", what());
                }
                compared += 1;
                broken += usize::from(violated(&direct)[0]);
            }
        }
    }
    assert!(compared > 50 && broken > 10 && broken < compared, "{broken} of {compared}");
}

fn possible(checked: &Checked, moves: &[raddle_trace::ThreadIx], what: &str) {
    let mut state = State::new(&checked.program);
    for &thread in moves {
        let limit = checked.program.steps(thread).len() as u32;
        assert_eq!(state.status(thread, limit), Status::Enabled, "{what}");
        state.take(thread);
    }
}
