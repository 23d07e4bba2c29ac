//! Every primitive on every kind of value: what the concrete machine does, the abstract one allows.
//!
//! Each program applies one primitive to values of given kinds and raises an error after it. Where the concrete machine finds
//! no meaning in the application, the thread-modular analysis must have it among the operations that may fail; where it comes
//! to the error behind it, so must the analysis. An argument is written down as it is, or hidden behind a choice, so that the
//! analysis knows it exactly or only as one of several kinds.

use raddle_scheme::concrete::run::{Ending, Scheduler, run};
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::limits::Clock;
use raddle_scheme::syntax::prim::Prim;
use raddle_scheme::{Source, modular, parse};

/// An expression of every kind of value.
const KINDS: &[&str] = &[
    "0",
    "1",
    "-2",
    "70",
    "2000000",
    "(expt 10 30)",
    "1/2",
    "2.0",
    "0.5",
    "#t",
    "#f",
    "'()",
    "'a",
    "(string->symbol \"made\")",
    "\"\"",
    "\"12\"",
    "#\\a",
    "(cons 1 2)",
    "(vector)",
    "(vector 1 2)",
    "(new-ref 0)",
    "(new-lock)",
    "#locked",
    "(lambda (x) x)",
    "car",
    "(spawn 1)",
    "(void)",
];

/// How the run of a program ends: with an error of its own (the one at its end), without meaning, or at a limit.
#[derive(Debug, PartialEq)]
enum End {
    Behind,
    Wrong,
    Limit,
}

fn end_of(text: &str, seed: u64) -> End {
    let program = parse(Source::new("prim.scm", text)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let machine = Machine::new(&program);
    match run(&machine, Scheduler::RoundRobin, seed, 10_000, &Clock::unlimited(), |_| {}).ending {
        Ending::Failed { message, .. } if message.ends_with("behind") => End::Behind,
        Ending::Failed { .. } => End::Wrong,
        Ending::Limit(_) => End::Limit,
        other => panic!("{other:?}\n{text}"),
    }
}

fn check(prim: Prim, args: &[&str]) {
    let name = prim.name();
    let plain = args.join(" ");
    let wide: Vec<String> = args.iter().map(|arg| format!("(if (= (random 2) 0) {arg} {arg})")).collect();
    let mixed: Vec<String> = args.iter().map(|arg| format!("(if flag {arg} 'other)")).collect();
    for list in [plain, wide.join(" "), mixed.join(" ")] {
        let text = format!("(define flag #t)\n({name} {list})\n(error \"behind\")\n");
        let end = end_of(&text, 1);
        let program = parse(Source::new("prim.scm", text.clone())).expect("well formed");
        // Call strings do not matter to a primitive that is called once; one length is enough for the many pairs.
        let ks: &[usize] = if args.len() == 1 { &[0, 1] } else { &[1] };
        for &k in ks {
            let outcome = modular::analyze(&program, k, &Clock::unlimited());
            match end {
                End::Behind => {
                    assert!(!outcome.errors.is_empty(), "the analysis ends before the error\n{text}")
                }
                End::Wrong => assert!(!outcome.fallible.is_empty(), "the analysis misses a failure\n{text}"),
                End::Limit => {}
            }
        }
    }
}

/// What ends the program by itself.
fn ends(prim: Prim) -> bool {
    matches!(prim, Prim::Error | Prim::Limit)
}

#[test]
fn every_primitive_on_every_kind_of_value() {
    for &prim in Prim::ALL.iter().filter(|&&prim| !ends(prim)) {
        for a in KINDS {
            if prim.accepts(1) {
                check(prim, &[a]);
            }
        }
    }
}

#[test]
fn every_primitive_on_every_two_kinds() {
    for &prim in Prim::ALL.iter().filter(|&&prim| !ends(prim) && prim.accepts(2)) {
        for a in KINDS {
            for b in KINDS {
                check(prim, &[a, b]);
            }
        }
    }
}

/// The third and the fourth argument of what has so many, with a first that may be right.
#[test]
fn every_primitive_on_more_values() {
    let first = ["(vector 1 2)", "\"12\"", "(new-ref 0)", "1"];
    for &prim in Prim::ALL.iter().filter(|&&prim| !ends(prim)) {
        for a in first {
            for b in ["0", "1", "#\\a", "'a"] {
                for c in KINDS {
                    if prim.accepts(3) {
                        check(prim, &[a, b, c]);
                    }
                    if prim.arity() == (4, Some(4)) {
                        check(prim, &[a, b, "1", c]);
                    }
                }
            }
        }
    }
}

/// Locks and joins are forms, not primitives, and take any value as well.
#[test]
fn every_form_on_every_kind_of_value() {
    for value in KINDS {
        for form in [
            "(acquire V)",
            "(release V)",
            "(join V)",
            "(V 1)",
            "(let ((v V)) (acquire v))",
            "(let ((v V)) (release v))",
        ] {
            let text = format!("{}\n(error \"behind\")\n", form.replace('V', value));
            // `acquire` of the name of a primitive is refused by the expander: it is no variable.
            let Ok(program) = parse(Source::new("form.scm", text.clone())) else {
                assert_eq!(*value, "car", "{text}");
                continue;
            };
            let machine = Machine::new(&program);
            let ending = run(&machine, Scheduler::RoundRobin, 1, 10_000, &Clock::unlimited(), |_| {}).ending;
            let outcome = modular::analyze(&program, 1, &Clock::unlimited());
            match ending {
                Ending::Failed { message, .. } if message.ends_with("behind") => {
                    assert!(!outcome.errors.is_empty(), "the analysis ends before the error\n{text}")
                }
                Ending::Failed { .. } if form != "(join V)" => {
                    assert!(!outcome.fallible.is_empty(), "the analysis misses a failure\n{text}")
                }
                _ => {}
            }
        }
    }
}
