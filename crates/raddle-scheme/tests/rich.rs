//! The whole analysis on programs of the whole language, against the exhaustive exploration.
//!
//! The author of the other tests writes assignments, locks and swaps. This one uses what else there is: procedures as values,
//! lists and vectors of locks and threads, futures and atoms, promises, several values, escapes, bounded loops, characters,
//! strings, rationals, choices. Wherever the exhaustive exploration of a program comes to an end, the report has the same
//! kinds of findings, all of them confirmed; a clean verdict on a program with an error is a wrong proof.

#[path = "common/cases.rs"]
mod cases;
#[path = "common/truth.rs"]
mod truth;

use cases::cases;
use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::explore::explore;
use raddle_scheme::concrete::run::Dice;
use raddle_scheme::concrete::state::{FailureKind, Machine};
use raddle_scheme::finding::{Grade, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Source, modular, parse};
use std::time::Duration;
use truth::{told, truth};

struct Writer {
    dice: Dice,
    /// Statements that may still be nested.
    fuel: usize,
    /// Whether the program has `call/cc`, with which `dynamic-wind` does not go.
    escapes: bool,
}

impl Writer {
    fn below(&mut self, n: u64) -> u64 {
        self.dice.below(n)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    fn program(&mut self) -> String {
        let mut out = String::from(
            "(define x 0)\n(define a (atom 0))\n(define l (new-lock))\n(define m #unlocked)\n\
             (define locks (vector (new-lock) (new-lock)))\n(define box (list 0 1))\n(define vec (make-vector 2 0))\n\
             (define p (delay (begin (set! x (+ x 1)) x)))\n(define table '((a . 1) (b . 2)))\n\
             (define (with lock thunk) (acquire lock) (let ((result (thunk))) (release lock) result))\n\
             (define (twice f) (f) (f))\n(define (compose f g) (lambda (n) (f (g n))))\n",
        );
        let (f, g) = (self.act(1), self.act(1));
        out += &format!("(define (f n) {f})\n(define (g n) (define m2 (* n 2)) {g} m2)\n");
        out += &match self.below(5) {
            0 => format!(
                "(define ts (map (lambda (n) (spawn (f n))) '(1 2)))\n{}\n(for-each (lambda (t) (join t)) ts)\n",
                self.act(1)
            ),
            1 => format!("(define t (future {}))\n{}\n(deref t)\n", self.act(2), self.act(1)),
            2 => format!(
                "(define t (fork {} {}))\n(define u (fork (g 1)))\n{}\n(join t)\n(join u)\n",
                self.act(1),
                self.act(1),
                self.act(1)
            ),
            3 => format!(
                "(let loop ((n 0)) (if (< n 2) (begin (spawn {}) (loop (+ n 1)))))\n{}\n",
                self.act(1),
                self.act(1)
            ),
            _ => format!("(define t (spawn {}))\n{}\n(join t)\n", self.act(2), self.act(2)),
        };
        out + &self.value() + "\n"
    }

    fn value(&mut self) -> String {
        self.pick(&[
            "0",
            "1",
            "x",
            "(deref a)",
            "(car box)",
            "(vector-ref vec 0)",
            "(+ x 1/2)",
            "(length box)",
            "(cdr (assq 'a table))",
            "(string-length (number->string x))",
            "(if (char<? #\\a #\\b) 1 x)",
            "(apply + (map abs '(1 -1)))",
            "(call-with-values (lambda () (values x 1)) +)",
            "(case x ((0) 'zero) ((1 2) 1) (else 2))",
            "(list-ref `(1 ,x) 1)",
            "((compose (lambda (n) (+ n 1)) (lambda (n) (* n x))) 1)",
            "(random 2)",
            "(modulo (+ x 1) 2)",
            "(force p)",
            "(do ((i 0 (+ i 1)) (s 0 (+ s i))) ((= i 2) s))",
            "(let-it 1)",
            "(vector-length vec)",
        ])
        .replace("(let-it 1)", "(let* ((u 1) (v (+ u 1))) (- v u))")
    }

    fn test(&mut self) -> String {
        self.pick(&[
            "(= x 0)",
            "(compare-and-set! a 0 1)",
            "(null? (cdr box))",
            "(eq? 'a 'b)",
            "(string=? \"a\" (symbol->string 'a))",
            "(eq? 'a (string->symbol \"a\"))",
            "(eq? (string->symbol \"made\") (string->symbol (symbol->string 'b)))",
            "(= (rationalize x 1/3) 1)",
            "(zero? (deref a))",
            "(integer? x)",
            "(cas x 0 1)",
            "(and (number? x) (< x 1))",
            "(or (vector? box) (= (random 2) 0))",
        ])
        .to_owned()
    }

    fn act(&mut self, depth: usize) -> String {
        if depth == 0 || self.fuel == 0 {
            return self.value();
        }
        self.fuel -= 1;
        let value = self.value();
        match self.below(30) {
            0 => format!("(set! x {value})"),
            1 => "(swap! a + 1)".into(),
            2 => format!("(reset! a {value})"),
            3 => format!("(with l (lambda () {}))", self.act(depth - 1)),
            4 => format!("(begin (acquire m) {} (release m))", self.act(depth - 1)),
            5 => format!("(with (vector-ref locks 0) (lambda () {}))", self.act(depth - 1)),
            6 => format!(
                "(with (vector-ref locks 0) (lambda () (with (vector-ref locks 1) (lambda () {value}))))"
            ),
            7 => format!(
                "(with (vector-ref locks 1) (lambda () (with (vector-ref locks (modulo x 2)) (lambda () {value}))))"
            ),
            8 => format!("(vector-set! vec {} {value})", self.below(2)),
            9 => format!("(vector-set! vec x {value})"),
            10 => format!("(set-car! box {value})"),
            11 => "(set-cdr! box '())".into(),
            12 => format!("(twice (lambda () {}))", self.act(depth - 1)),
            13 => format!("(if {} {} {})", self.test(), self.act(depth - 1), self.act(depth - 1)),
            14 => format!("(when {} {})", self.test(), self.act(depth - 1)),
            15 => format!("(assert {})", self.test()),
            16 => format!("(for-each (lambda (n) (set! x n)) (list {value} 1))"),
            17 => "(let spin () (unless (compare-and-set! a 0 1) (spin)))".into(),
            18 => "(let spin () (unless (compare-and-set! a 1 0) (spin)))".into(),
            19 => format!("(join (spawn {}))", self.act(depth - 1)),
            20 => format!("(deref (future {value}))"),
            21 if self.escapes => {
                format!("(call/cc (lambda (k) (if {} (k {value})) {}))", self.test(), self.act(depth - 1))
            }
            22 if self.escapes => {
                format!("(call/cc (lambda (k) (with l (lambda () (if {} (k 1)) {value}))))", self.test())
            }
            21 => format!(
                "(dynamic-wind (lambda () (acquire l)) (lambda () {}) (lambda () (release l)))",
                self.act(depth - 1)
            ),
            22 => format!("(dynamic-wind (lambda () 1) (lambda () {value}) (lambda () (set! x 2)))"),
            23 => "(force p)".into(),
            24 => format!("(let ((held (new-lock))) (acquire held) {} (release held))", self.act(depth - 1)),
            25 => "(letrec ((own #locked)) (release own) (acquire own))".into(),
            26 => format!("(error \"bad\" {value})"),
            27 => format!("(let ((old (deref a))) (compare-and-set! a old {value}))"),
            28 => format!("(do ((i 0 (+ i 1))) ((= i 2)) {})", self.act(depth - 1)),
            _ => {
                format!("(set! x (string-length (string-append \"a\" (number->string {}))))", self.below(12))
            }
        }
    }
}

fn random(seed: u64) -> String {
    let mut writer = Writer { dice: Dice::new(seed ^ 0x51c4), fuel: 6, escapes: seed.is_multiple_of(2) };
    writer.program()
}

#[test]
fn reports_on_the_whole_language_say_what_happens() {
    let (mut compared, mut proven, mut found) = (0, 0, 0);
    for seed in 0..cases(60) {
        let text = random(seed);
        let program = parse(Source::new("rich.scm", text.clone()))
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        let mut exploration = explore(&Machine::new(&program), 3_000, &Clock::unlimited());
        if exploration.incomplete.is_some() {
            continue;
        }
        compared += 1;
        let outcome = modular::analyze(&program, (seed % 3) as usize, &Clock::unlimited());
        let stuck = !exploration.observed.deadlocks.is_empty();
        assert!(!stuck || !outcome.deadlocks.is_empty(), "seed {seed}: modular misses a deadlock\n{text}");
        let options = Options {
            abstract_states_max: 1_000,
            concrete_states_max: 10_000,
            timeout: Duration::from_secs(3_000),
            ..Options::default()
        };
        let report = analyze(&program, &options, &Clock::unlimited(), &mut |_| {});
        if !report.phases.iter().any(|phase| phase.name == "concrete schedules") {
            exploration.observed.errors.retain(|_, error| error.failure.kind != FailureKind::Limit);
            proven += 1;
        }
        found += u64::from(matches!(report.verdict, Verdict::Found));
        assert_eq!(told(&report), truth(&program, &exploration), "seed {seed}: {:?}\n{text}", report.verdict);
        assert!(!matches!(report.verdict, Verdict::Unknown(_)), "seed {seed}: {:?}\n{text}", report.verdict);
        assert!(report.findings.iter().all(|f| f.grade == Grade::Confirmed), "seed {seed}\n{text}");
    }
    assert!(compared * 2 > cases(60), "most programs are small enough to compare: {compared}");
    assert!(found * 5 > compared && found < compared, "{found} of {compared} have findings");
    eprintln!("{compared} of {} compared, {proven} proven, {found} with findings", cases(60));
}
