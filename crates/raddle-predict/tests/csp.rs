//! The CSPM files ask the question that the solver answers: the checker's verdict is the solver's, on random traces.

mod support;

use raddle_csp::engine::CheckOptions;
use raddle_csp::lang::session::Script;
use raddle_predict::csp::{Question, Window, emit};
use raddle_predict::{Options, Prediction, predict};
use raddle_trace::MemoryTrace;
use raddle_trace::generate::{Shape, generate};
use support::cases;
use support::figures::*;

/// Does the assertion of this file hold?
fn holds(text: &str, what: &str) -> bool {
    let mut script = Script::from_text("model.csp", text).unwrap_or_else(|refused| {
        let first = refused.diagnostics.first().map(|diagnostic| format!("{diagnostic:?}"));
        panic!("{what}: the model is refused: {}\n{text}", first.unwrap_or_default())
    });
    assert_eq!(script.assertions().len(), 1, "{what}");
    let outcome = script.check(0, &CheckOptions::default());
    outcome.unwrap_or_else(|problem| panic!("{what}: {problem:?}\n{text}")).holds
}

fn compare(trace: &MemoryTrace, prediction: &Prediction, window: Option<Window>, what: &str) {
    let names = &prediction.names;
    let text = emit(trace, &prediction.program, names, Question::Deadlock, window);
    assert_eq!(!holds(&text, what), prediction.verdict.stuck, "{what}: stuck\n{text}");
    for (number, interval) in prediction.intervals.iter() {
        let text = emit(trace, &prediction.program, names, Question::Race(number, interval), window);
        let racy = prediction.verdict.racy.contains(&number);
        assert_eq!(!holds(&text, what), racy, "{what}: interval {number:?}\n{text}");
    }
}

#[test]
fn figures_have_the_same_verdict_in_csp() {
    let traces = [
        ("4.2", figure_4_2()),
        ("4.16a", figure_4_16(true)),
        ("4.16b", figure_4_16(false)),
        ("4.18", figure_4_18()),
        ("4.21", figure_4_21()),
        ("1.5", figure_1_5(true).0),
        ("1.6", figure_1_5(false).0),
        ("5.9", figure_5_9()),
        ("4.5", figure_4_5(true)),
        ("4.5 without predicate", figure_4_5(false)),
        ("5.17", figure_5_17(4)),
    ];
    for (name, trace) in traces {
        let prediction = predict(&trace, &Options::default());
        compare(&trace, &prediction, None, name);
    }
}

fn shapes() -> Vec<(&'static str, Shape)> {
    let small = |shape: Shape| Shape { locations: 12, ..shape };
    vec![
        ("locks", small(Shape::locks_only(3, 2, 2, 20))),
        ("requests", small(Shape { requests: true, lock_percent: 65, ..Shape::locks_only(3, 2, 1, 20) })),
        ("rwlocks", small(Shape { rwlocks: 2, lock_percent: 60, ..Shape::locks_only(3, 1, 1, 20) })),
        ("semaphores", small(Shape { semaphores: 2, other_percent: 40, ..Shape::locks_only(3, 1, 1, 18) })),
        ("conditions", small(Shape { conditions: 1, other_percent: 40, ..Shape::locks_only(3, 1, 1, 20) })),
        ("barriers", small(Shape { barriers: 1, other_percent: 30, ..Shape::locks_only(3, 1, 1, 18) })),
        ("atomics", small(Shape { atomics: 1, other_percent: 40, ..Shape::locks_only(3, 1, 1, 16) })),
        ("everything", small(Shape::everything(3, 18))),
    ]
}

#[test]
fn random_traces_have_the_same_verdict_in_csp() {
    for (name, shape) in shapes() {
        for seed in 0..cases(12) {
            let trace = generate(&shape, seed);
            let prediction = predict(&trace, &Options::default());
            compare(&trace, &prediction, None, &format!("{name}, seed {seed}"));
        }
    }
}

/// With a window, both look at the same part of the trace: PREFIX has happened, the rest is unknown.
#[test]
fn windows_have_the_same_verdict_in_csp() {
    for (name, shape) in shapes() {
        for seed in 0..cases(6) {
            let trace = generate(&shape, seed);
            let prediction = predict(&trace, &Options::default());
            let steps = prediction.program.order.len();
            for (start, end) in [(0, steps / 2), (steps / 3, steps), (steps / 4, 3 * steps / 4)] {
                let window = Window { start, end };
                let stuck = raddle_predict::stuck::window_is_stuck(&prediction.program, start, end);
                let text =
                    emit(&trace, &prediction.program, &prediction.names, Question::Deadlock, Some(window));
                let what = format!("{name}, seed {seed}, steps {start} to {end}");
                assert_eq!(!holds(&text, &what), stuck, "{what}\n{text}");
            }
        }
    }
}
