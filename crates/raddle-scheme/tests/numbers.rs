//! Numbers have no size at which a program stops being right: exact arithmetic against a naive twin, and programs that were
//! called wrong because of limits of ours.

#[path = "common/cases.rs"]
mod cases;

use cases::cases;
use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::prims;
use raddle_scheme::concrete::run::{Dice, Ending, Scheduler, run};
use raddle_scheme::concrete::state::{Machine, Value};
use raddle_scheme::finding::{Grade, Kind, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::syntax::prim::Prim;
use raddle_scheme::{Source, modular, parse};

fn value(text: &str) -> String {
    let program = parse(Source::new("n.scm", text)).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    match run(&Machine::new(&program), Scheduler::RoundRobin, 0, 10_000, &Clock::unlimited(), |_| {}).ending {
        Ending::Finished(value) => value,
        other => format!("{other:?}"),
    }
}

#[test]
fn exact_numbers_stay_exact() {
    for (text, expected) in [
        ("(* 4294967296 4294967296)", "18446744073709551616"),
        ("(+ 9223372036854775807 1)", "9223372036854775808"),
        ("(- (- 9223372036854775807) 2)", "-9223372036854775809"),
        ("(- (+ 9223372036854775807 1) 1)", "9223372036854775807"),
        ("(abs -9223372036854775808)", "9223372036854775808"),
        ("(quotient -9223372036854775808 -1)", "9223372036854775808"),
        ("(let fact ((n 25)) (if (= n 0) 1 (* n (fact (- n 1)))))", "15511210043330985984000000"),
        ("(expt 2 100)", "1267650600228229401496703205376"),
        ("(expt 2 -2)", "1/4"),
        ("(expt 2.0 3)", "8.0"),
        ("(expt 0 0)", "1"),
        ("(/ 1 3)", "1/3"),
        ("(/ 6 4)", "3/2"),
        ("(/ 6 -3)", "-2"),
        ("(+ 1/3 2/3)", "1"),
        ("(* 1/3 1.5)", "0.5"),
        ("(< 1/3 0.5 2/3)", "#t"),
        ("(floor -7/2)", "-4"),
        ("(round 7/2)", "4"),
        ("(round 5/2)", "2"),
        ("(truncate -7/2)", "-3"),
        ("(ceiling 7/2)", "4"),
        ("(numerator 6/4)", "3"),
        ("(denominator 6/4)", "2"),
        ("(max 1/2 1/3)", "1/2"),
        ("(max 1 2.0)", "2.0"),
        ("(min 1 2.0)", "1.0"),
        ("(sqrt 16)", "4"),
        ("(sqrt 1/4)", "1/2"),
        ("(sqrt (* 4294967296 4294967296))", "4294967296"),
        ("(inexact->exact 0.5)", "1/2"),
        ("(exact->inexact 1/4)", "0.25"),
        ("(integer? 2.0)", "#t"),
        ("(integer? 1/2)", "#f"),
        ("(rational? 1/2)", "#t"),
        ("(exact? 1/2)", "#t"),
        ("(inexact? 1/2)", "#f"),
        ("(inexact? 1.0)", "#t"),
        ("(exact? 'a)", "#f"),
        ("(even? (expt 2 80))", "#t"),
        ("(odd? 3.0)", "#t"),
        ("(modulo (- (expt 10 30)) 7)", "6"),
        ("(remainder -7 2)", "-1"),
        ("(modulo -7 2.0)", "1.0"),
        ("(number->string 255 16)", "\"ff\""),
        ("(string->number \"ff\" 16)", "255"),
        ("(string->number \"1/2\")", "1/2"),
        ("(eqv? (expt 2 70) (expt 2 70))", "#t"),
        ("(= (expt 2 70) (exact->inexact (expt 2 70)))", "#t"),
        ("(gcd (expt 2 70) (expt 6 40))", "1099511627776"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

/// The naive twin: 128 bits are enough for what two numbers of 64 bits give.
#[test]
fn small_numbers_against_the_naive_twin() {
    let extremes = [i64::MIN, i64::MIN + 1, -3, -2, -1, 0, 1, 2, 3, i64::MAX - 1, i64::MAX];
    for seed in 0..cases(300) {
        let mut dice = Dice::new(seed);
        let mut number = || match dice.below(3) {
            0 => extremes[dice.below(extremes.len() as u64) as usize],
            1 => dice.below(20) as i64 - 10,
            _ => ((dice.below(1 << 31) << 33) | dice.below(1 << 31)) as i64,
        };
        let (a, b) = (number(), number());
        let ask = |prim: Prim, args: &[Value]| prims::apply(prim, args, &Default::default());
        let show = |value: Value| match value {
            Value::Int(n) => n.to_string(),
            Value::Big(n) => n.to_string(),
            Value::Ratio(q) => q.to_string(),
            Value::Bool(b) => b.to_string(),
            other => panic!("{other:?} is not exact"),
        };
        let ints = [Value::Int(a), Value::Int(b)];
        let (x, y) = (i128::from(a), i128::from(b));
        let mut twins = vec![
            (Prim::Add, (x + y).to_string()),
            (Prim::Sub, (x - y).to_string()),
            (Prim::Mul, (x * y).to_string()),
            (Prim::Lt, (x < y).to_string()),
            (Prim::NumEq, (x == y).to_string()),
            (Prim::Max, x.max(y).to_string()),
        ];
        if y != 0 {
            twins.push((Prim::Quotient, (x / y).to_string()));
            twins.push((Prim::Remainder, (x % y).to_string()));
            twins.push((Prim::Modulo, (((x % y) + y) % y).to_string()));
            let (mut p, mut q) = (x.abs(), y.abs());
            while q != 0 {
                (p, q) = (q, p % q);
            }
            let sign = if y < 0 { -1 } else { 1 };
            let (above, below) = (sign * x / p, y.abs() / p);
            let ratio = if below == 1 { above.to_string() } else { format!("{above}/{below}") };
            twins.push((Prim::Div, ratio));
        } else {
            assert!(ask(Prim::Div, &ints).is_err() && ask(Prim::Modulo, &ints).is_err());
        }
        for (prim, expected) in twins {
            let found = ask(prim, &ints).map(show).expect("defined");
            assert_eq!(found, expected, "({} {a} {b})", prim.name());
        }
        // Back again: what was added to can be taken away, whatever its size.
        let sum =
            ask(Prim::Add, &[Value::Int(a), Value::Int(b), Value::Int(a), Value::Int(a)]).expect("a number");
        let back = ask(Prim::Sub, &[sum, Value::Int(a), Value::Int(a), Value::Int(a)]).expect("a number");
        assert_eq!(back, Value::Int(b));
    }
}

/// A limit of ours is never an error of the program, and nothing is concluded from a thread that met one.
/// The simplest rational against all of them, by growing denominators; and what the report says of it.
#[test]
fn the_simplest_rational_is_the_first_one_in_reach() {
    for (text, expected) in [
        ("(rationalize (inexact->exact .3) 1/10)", "1/3"),
        ("(rationalize .3 1/10)", "0.3333333333333333"),
        ("(rationalize 3/10 1/10)", "1/3"),
        ("(rationalize -3/10 1/10)", "-1/3"),
        ("(rationalize 3/10 -1/10)", "1/3"),
        ("(rationalize 3/10 0)", "3/10"),
        ("(rationalize 3/10 1)", "0"),
        ("(rationalize 5 2)", "3"),
        ("(rationalize (expt 10 30) 0)", "1000000000000000000000000000000"),
        ("(rationalize (/ 1. 0) 1)", "inf"),
        ("(rationalize 1 (/ 1. 0))", "0.0"),
        ("(rationalize (/ 1. 0) (/ 1. 0))", "NaN"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
    for seed in 0..cases(2_000) {
        let mut dice = Dice::new(seed);
        let (a, b) = (dice.below(400) as i64 - 200, 1 + dice.below(60) as i64);
        let (c, d) = (dice.below(40) as i64 - 10, 1 + dice.below(300) as i64);
        // n/m is in reach if |n/m - a/b| <= |c/d|; all denominators are positive.
        let reached = |n: i64, m: i64| (n * b - a * m).abs() * d <= c.abs() * m * b;
        let first = (1..)
            .find_map(|m| {
                let near = (a * m / b).abs() + (c.abs() * m / d) + 2;
                (0..=near).find_map(|n| [n, -n].into_iter().find(|&n| reached(n, m))).map(|n| (n, m))
            })
            .expect("the number itself is in reach");
        let expected = if first.1 == 1 { first.0.to_string() } else { format!("{}/{}", first.0, first.1) };
        let text = format!("(rationalize {a}/{b} {c}/{d})");
        assert_eq!(value(&text), expected, "{text}");
    }
}

#[test]
fn limits_are_unknown() {
    let options = Options { concrete_states_max: 2_000, runs_max: 50, ..Options::default() };
    for text in [
        "(define x 0) (define t (spawn (set! x (make-vector 1000001 0)))) (set! x 1) (join t) (vector-ref x 0)",
        "(define x 0) (define t (spawn (set! x (expt 2 100000000)))) (join t) (if (= x 0) (error \"zero\") 1)",
        "(define (f n s) (if (= n 0) s (f (- n 1) (string-append s s))))
         (define x 0) (define t (spawn (set! x (f 40 \"a\")))) (join t) (if (eq? x 0) (error \"zero\") 1)",
        // The thread stops at the limit with the lock in its hand: that is no deadlock.
        "(define l (new-lock)) (define m (new-lock)) (define x 0)
         (define t (spawn (begin (acquire l) (set! x (vector-length (make-vector 2000000 0))) (release l))))
         (acquire l) (set! x (+ x 1)) (release l) (join t)
         (acquire m) (if (= x 0) (acquire m) (release m))",
    ] {
        let program = parse(Source::new("limit.scm", text)).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let report = analyze(&program, &options, &Clock::unlimited(), &mut |_| {});
        assert!(
            report.findings.iter().all(|f| f.grade == Grade::Suspected || f.kind == Kind::Race),
            "{text}: {:?}",
            report.findings
        );
    }
    for text in
        ["(make-vector -1)", "(make-vector 'a)", "(/ 1 0)", "(modulo 1 0)", "(vector-ref (vector 1) 1/2)"]
    {
        let program = parse(Source::new("wrong.scm", text)).expect("well formed");
        let report = analyze(&program, &options, &Clock::unlimited(), &mut |_| {});
        assert_eq!((&report.verdict, report.count(Kind::Error)), (&Verdict::Found, 1), "{text}");
    }
}

/// Operations that cannot fail leave no lock behind.
#[test]
fn what_cannot_fail_under_a_lock_is_no_deadlock() {
    let around = |inside: &str| {
        format!(
            "(define l (new-lock)) (define size 4) (define v (make-vector size 0)) (define w (vector 1 2 3)) (define n 0)
             (define (walk items) (acquire l) (if (null? items) 0 (set! n (car items))) (release l)
               (if (pair? items) (walk (cdr items)) 0))
             (define (find key items)
               (if (null? items) #f (if (eqv? key (car (car items))) (car items) (find key (cdr items)))))
             (define (work k) (acquire l) {inside} (release l))
             (define t (spawn (work 1))) (define u (spawn (work 2))) (join t) (join u)"
        )
    };
    for inside in [
        "(set! n (modulo (+ n 1) 10))",
        "(set! n (remainder n 10))",
        "(set! n (quotient n 2))",
        "(set! n (/ n 2))",
        "(vector-set! v (modulo n 4) n)",
        "(vector-ref v (modulo n 4))",
        "(vector-ref v (random 4))",
        "(vector-ref w 2)",
        "(vector-ref v 3)",
        "(set! n (car (cons 1 2)))",
        "(let ((p (list 1 2))) (if (null? p) 0 (set! n (car p))))",
        "(let ((p (find 1 (list (cons 1 2))))) (if p (set! n (cdr p)) 0))",
        "(set! n (make-vector 3 0))",
        "(set! n (number->string 3))",
        "(set! n (symbol->string 'a))",
        "(set! n (expt k 3))",
        "(set! n (length (list 1 2 3)))",
    ] {
        let text = around(inside);
        let program = parse(Source::new("held.scm", text)).unwrap_or_else(|e| panic!("{inside}: {e:?}"));
        let outcome = modular::analyze(&program, 1, &Clock::unlimited());
        assert!(outcome.deadlocks.is_empty(), "{inside}");
    }
    for inside in [
        "(set! n (modulo 10 n))",
        "(vector-ref v (modulo (random 9) 5))",
        "(vector-ref v (random 5))",
        "(set! n (car n))",
        "(set! n (/ 1 n))",
    ] {
        let text = around(inside);
        let program = parse(Source::new("held.scm", text)).unwrap_or_else(|e| panic!("{inside}: {e:?}"));
        let outcome = modular::analyze(&program, 1, &Clock::unlimited());
        assert!(!outcome.deadlocks.is_empty(), "{inside} may stop with the lock in hand");
    }
}
