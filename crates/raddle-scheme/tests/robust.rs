//! Malformed, huge, deep and endless programs: an error or an honest limit, never a crash.

use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::run::{Dice, Ending, Scheduler, run};
use raddle_scheme::concrete::schedule::Schedule;
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::finding::{Grade, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Source, parse, render};
use std::time::Duration;

fn small() -> Options {
    Options {
        abstract_states_max: 500,
        concrete_states_max: 500,
        runs_max: 50,
        timeout: Duration::from_secs(300),
        ..Options::default()
    }
}

#[test]
fn a_million_lines() {
    let mut text = String::new();
    for line in 0..1_000_000 {
        text += &format!("(define v{line} {line})\n");
    }
    text += "(+ v0 v999999)\n";
    let program = parse(Source::new("big.scm", text)).expect("it is well formed");
    assert_eq!(program.vars.len(), 1_000_000);
    let machine = Machine::new(&program);
    let end = run(&machine, Scheduler::RoundRobin, 0, 10_000_000, &Clock::unlimited(), |_| {}).ending;
    assert!(matches!(end, Ending::Finished(_) | Ending::Limit(_)), "{end:?}");
}

#[test]
fn deep_nesting() {
    let depth = 200_000;
    for (open, middle, close) in
        [("(", "x", ")"), ("(lambda () ", "1", ")"), ("'", "x", ""), ("(if #t ", "1", " 2)")]
    {
        let text = open.repeat(depth) + middle + &close.repeat(depth);
        let source = Source::new("deep.scm", text);
        if let Err(errors) = parse(source.clone()) {
            assert!(!render::syntax_errors(&source, &errors[..1.min(errors.len())], false).is_empty());
        }
    }
    // Long chains are not deep.
    let clauses: String = (0..50_000).map(|n| format!("((= x {n}) {n})")).collect();
    assert!(parse(Source::new("long.scm", format!("(define x 1) (cond {clauses})"))).is_ok());
    let items = "1 ".repeat(100_000);
    assert!(parse(Source::new("list.scm", format!("'({items})"))).is_ok());
}

#[test]
fn unbounded_recursion_is_a_limit() {
    // Recursion without end is no race and no deadlock, so a program that only recurses is proven free of both; the counter
    // races, and the last one must be given up, because only running it could tell whether it deadlocks.
    for (text, expected) in [
        ("(define (f n) (+ 1 (f (+ n 1)))) (f 0)", "clean"),
        ("(define (f n) (f (+ n 1))) (f 0)", "clean"),
        ("(define (f l) (f (cons 1 l))) (f '())", "clean"),
        (
            "(define x 0) (define (f) (set! x (+ x 1)) (f)) (define t (spawn (f))) (define u (spawn (f))) (join t)",
            "found",
        ),
        ("(define (f) (spawn (f)) (f)) (f)", "clean"),
        (
            "(define l (new-lock)) (define m (new-lock))
          (define (up n) (if (= n 100000000) (begin (acquire m) (acquire l)) (up (+ n 1))))
          (define t (spawn (begin (acquire l) (acquire m)))) (up 0) (join t)",
            "unknown or suspected",
        ),
    ] {
        let program = parse(Source::new("endless.scm", text)).expect("well formed");
        let report = analyze(&program, &small(), &Clock::unlimited(), &mut |_| {});
        let told = match &report.verdict {
            Verdict::Unknown(reason) => {
                assert!(!reason.is_empty(), "{text}");
                "unknown or suspected"
            }
            Verdict::Found if report.findings.iter().all(|f| f.grade == Grade::Suspected) => {
                "unknown or suspected"
            }
            Verdict::Found => "found",
            Verdict::Clean(_) => "clean",
        };
        assert_eq!(told, expected, "{text}: {:?}", report.verdict);
        let end =
            run(&Machine::new(&program), Scheduler::RoundRobin, 0, 2_000, &Clock::unlimited(), |_| {}).ending;
        assert!(matches!(end, Ending::Limit(_)), "{text}: {end:?}");
    }
}

#[test]
fn malformed_programs_have_errors_with_places() {
    for text in [
        "(",
        ")",
        "(define)",
        "(let ((x)) x)",
        "(lambda (1) 1)",
        "(if)",
        "(set! y 1)",
        "undefined",
        "(car)",
        "(cons 1)",
        "(let loop ((x 1) 2) x)",
        "(cond (else 1) (2 3))",
        "(quote)",
        "(spawn)",
        "(acquire)",
        "(lambda (x x) x)",
        "()",
        "(1 . 2)",
        "(define x 1) (set! x)",
        "(case 1 (2 3))",
        "(do 1 2)",
        "(begin (define x 1))(y)",
        "\"abc",
        "#\\nosuchname",
    ] {
        let source = Source::new("bad.scm", text);
        let errors = parse(source.clone()).expect_err(text);
        assert!(!errors.is_empty(), "{text}");
        let shown = render::syntax_errors(&source, &errors, false);
        assert!(shown.contains("error"), "{text}: {shown}");
    }
}

/// The stable twin of the fuzz target: mutated programs neither panic in the reader nor in the machines.
#[test]
fn mutated_programs_do_no_harm() {
    let seeds = [
        include_str!("../../../corpus/scheme/cas/pcounter.scm"),
        include_str!("../../../corpus/scheme/lock/deadlock.scm"),
        include_str!("../../../corpus/scheme/beyond/work-queue.scm"),
    ];
    let pieces = [
        "(",
        ")",
        "'",
        "#",
        "\"",
        "\\",
        ".",
        "#|",
        "|#",
        "#;",
        "λ",
        "lambda",
        "(let loop ())",
        "#(",
        "1e999",
        "cas",
        " ",
    ];
    let rounds = std::env::var("RADDLE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000u64);
    for round in 0..rounds {
        let mut dice = Dice::new(round + 77);
        let mut text: Vec<char> = seeds[dice.below(3) as usize].chars().collect();
        for _ in 0..=dice.below(4) {
            let at = dice.below(text.len() as u64 + 1) as usize;
            match dice.below(3) {
                0 if at < text.len() => {
                    text.remove(at);
                }
                1 => {
                    let piece = pieces[dice.below(pieces.len() as u64) as usize];
                    piece.chars().rev().for_each(|c| text.insert(at, c));
                }
                _ => {
                    let end = (at + dice.below(30) as usize).min(text.len());
                    let part: Vec<char> = text[at.min(end)..end].to_vec();
                    text.splice(at..at, part);
                }
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(program) = parse(Source::new("mutated.scm", text)) {
            run(&Machine::new(&program), Scheduler::Random(round), round, 300, &Clock::unlimited(), |_| {});
        }
        let _ =
            Schedule::parse(&format!("raddle scheme schedule 1\n{round} {}", pieces[(round % 17) as usize]));
    }
}

/// Arithmetic that the prelude adds, by definition.
#[test]
fn prelude_arithmetic() {
    let gcd = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a.abs()
    };
    for (a, b) in [(12i64, 18i64), (-12, 18), (0, 5), (7, 13), (6, 6)] {
        let lcm = if a == 0 { 0 } else { (a * b).abs() / gcd(a, b) };
        let text =
            format!("(list (gcd {a} {b}) (lcm {a} {b}) (expt {b} 3) (gcd) (lcm) (inexact? 1.5) (exact? 2))");
        let program = parse(Source::new("arithmetic.scm", text)).expect("well formed");
        let end =
            run(&Machine::new(&program), Scheduler::RoundRobin, 0, 2_000, &Clock::unlimited(), |_| {}).ending;
        let expected = format!("({} {lcm} {} 0 1 #t #t)", gcd(a, b), b * b * b);
        assert_eq!(end, Ending::Finished(expected));
    }
}

/// The value of an expression.
fn value(text: &str) -> Ending {
    let program = parse(Source::new("value.scm", text.to_owned())).expect("well formed");
    run(&Machine::new(&program), Scheduler::RoundRobin, 0, 2_000, &Clock::unlimited(), |_| {}).ending
}

#[test]
fn reals_and_conversions() {
    for (text, expected) in [
        (
            "(list (floor -2.5) (ceiling -2.5) (truncate -2.5) (round -2.5) (round 3.5))",
            "(-3.0 -2.0 -2.0 -2.0 4.0)",
        ),
        ("(list (floor 3) (round -3) (sqrt 16) (sqrt 2.25) (sqrt 0))", "(3 -3 4 1.5 0)"),
        ("(list (exact->inexact 1) (inexact->exact 4.0) (exp 0) (log 1) (atan 0 1))", "(1.0 4 1.0 0.0 0.0)"),
        ("(list (number->string 12) (number->string 4.0))", "(\"12\" \"4.0\")"),
        ("(list (integer? (inexact->exact 4.0)) (integer? (exact->inexact 4)) (exact? 4.0))", "(#t #t #f)"),
        ("(list (string->number \"12\") (string->number \"-1.5\") (string->number \"abc\"))", "(12 -1.5 #f)"),
        (
            "(list (apply + '(1 2 3)) (apply max 1 2 '(9 4)) (apply list '()) (apply list 1 '()))",
            "(6 9 () (1))",
        ),
        ("(apply (lambda (a b . c) (list a b c)) 1 '(2 3 4 5 6 7 8))", "(1 2 (3 4 5 6 7 8))"),
    ] {
        assert_eq!(value(text), Ending::Finished(expected.to_owned()), "{text}");
    }
    for text in
        ["(sqrt -1)", "(log 0)", "(asin 2)", "(inexact->exact (/ 1.0 0))", "(floor 'a)", "(string->number 1)"]
    {
        assert!(matches!(value(text), Ending::Failed { .. }), "{text}: {:?}", value(text));
    }
}
