//! Locks made in every syntactic position, open and taken, against the exhaustive exploration.
//!
//! What a lock is guarded by is decided where it is made; a proof that overlooks a lock that starts out taken is wrong
//! wherever that happens. Each program makes one or two locks in some position (a definition, a binding of any kind, a
//! parameter, the value of a procedure, of a thread, of a conditional, a field of a structure), as a variable that *is* a lock
//! or as a lock object, open, taken from the start, or taken by hand, and uses it from one or two threads.

#[path = "common/cases.rs"]
mod cases;
#[path = "common/truth.rs"]
mod truth;

use cases::cases;
use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::explore::explore;
use raddle_scheme::concrete::run::Dice;
use raddle_scheme::concrete::state::{FailureKind, Machine};
use raddle_scheme::finding::{Grade, Kind, Report, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Source, modular, parse};
use std::time::Duration;
use truth::{told, truth};

struct Locksmith {
    dice: Dice,
}

impl Locksmith {
    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.dice.below(from.len() as u64) as usize]
    }

    /// An expression whose value is a lock.
    fn lock(&mut self) -> &'static str {
        self.pick(&[
            "#unlocked",
            "#locked",
            "#locked",
            "(new-lock)",
            "(let ((made (new-lock))) (acquire made) made)",
            "(let ((made (new-lock))) (acquire made) (release made) made)",
            "(let ((made #unlocked)) (acquire made) made)",
            "(let ((made #locked)) (release made) made)",
            "(if (= 1 1) #locked #unlocked)",
            "(if flag #locked #unlocked)",
            "(if flag #unlocked #locked)",
            "(or #f #locked)",
            "(cond (flag #unlocked) (else #locked))",
            "(case 2 ((1) #unlocked) ((2) #locked))",
            "(begin 1 #locked)",
            "((lambda () #locked))",
            "((lambda (x) x) #locked)",
            "(make-it #locked)",
            "(make-it #unlocked)",
            "(make-it (new-lock))",
            "(join (spawn #locked))",
            "(join (spawn (new-lock)))",
            "(join (spawn (let ((made (new-lock))) (acquire made) made)))",
            "(car (cons #locked 1))",
            "(vector-ref (vector #unlocked #locked) 1)",
            "(deref (new-ref #locked))",
            "'#locked",
            "global",
        ])
    }

    /// What is done with the lock of that name.
    fn work(&mut self, name: &str) -> String {
        let part = self.pick(&[
            "(begin (acquire L) (release L))",
            "(begin (acquire L) (set! counter (+ counter 1)) (release L))",
            "(begin (acquire L) 1)",
            "(release L)",
            "(begin (release L) (acquire L))",
            "(begin (acquire L) (acquire other) (release other) (release L))",
            "(begin (acquire other) (acquire L) (release L) (release other))",
            "(begin (acquire L) (release L) (acquire L) (release L))",
            "(begin (set! L #unlocked) (acquire L))",
            "(begin (acquire L) (set! L #locked) (release L))",
            "(let ((alias L)) (acquire alias) (release alias))",
            "(begin (acquire L) (let ((alias L)) (acquire alias)))",
            "(if (cas L #locked #unlocked) (acquire L) 2)",
            "(call/cc (lambda (out) (acquire L) (if flag (out 1) 2) (release L)))",
            "(begin (acquire L) (call/cc (lambda (out) (if flag (out 1) 2))) (release L))",
            "(call/cc (lambda (out) (if flag (out 1) 2) (acquire L) (acquire L)))",
            "(begin (acquire L) (set! counter (modulo (+ counter 1) 4)) (release L))",
            "(begin (acquire L) (set! counter (quotient 4 counter)) (release L))",
        ]);
        part.replace('L', name)
    }

    fn uses(&mut self, name: &str) -> String {
        let (first, second) = (self.work(name), self.work(name));
        match self.dice.below(5) {
            0 => first,
            1 => format!("(let ((t (spawn {first}))) {second} (join t))"),
            2 => format!("(let ((t (spawn {first}))) (join t))"),
            3 => format!("(let ((t (spawn {first})) (u (spawn {second}))) (join t) (join u))"),
            _ => format!("(begin (spawn {first}) {second})"),
        }
    }

    fn program(&mut self) -> String {
        let head = "(define flag #t)\n(define counter 0)\n(define other (new-lock))\n(define global #locked)\n\
                    (define (make-it x) x)\n";
        let made = self.lock();
        let uses = self.uses("l");
        let body = match self.dice.below(15) {
            0 => format!("(define l {made})\n{uses}"),
            1 => format!("(let ((l {made})) {uses})"),
            2 => format!("(let* ((k 1) (l {made})) {uses})"),
            3 => format!("(letrec ((l {made})) {uses} 1)"),
            4 => format!("(define (f l) {uses})\n(f {made})"),
            5 => format!("(define (f) (define l {made}) {uses})\n(f)"),
            6 => format!("(define (f) (define l {made}) {uses})\n(define t (spawn (f)))\n(join t)"),
            7 => format!("((lambda (l) {uses}) {made})"),
            8 => format!("(let loop ((l {made}) (n 0)) (if (= n 1) 'end (begin {uses} (loop l (+ n 1)))))"),
            9 => format!("(do ((l {made}) (n 0 (+ n 1))) ((= n 1)) {uses})"),
            10 => format!("(define l 0)\n(set! l {made})\n{uses}"),
            11 => format!("(define (f . ls) (let ((l (car ls))) {uses}))\n(f {made})"),
            12 => format!("(define (f l) (spawn {uses}))\n(join (f {made}))"),
            13 => format!("(define (f n) (let ((l {made})) {uses}))\n(f 1)\n(f 2)"),
            _ => format!("(define p (cons {made} '()))\n(let ((l (car p))) {uses})"),
        };
        format!("{head}{body}\n")
    }
}

fn analyse(text: &str) -> (Report, raddle_scheme::Program) {
    let program = parse(Source::new("locks.scm", text)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let options = Options {
        abstract_states_max: 3_000,
        concrete_states_max: 10_000,
        timeout: Duration::from_secs(3_000),
        ..Options::default()
    };
    (analyze(&program, &options, &Clock::unlimited(), &mut |_| {}), program)
}

#[test]
fn locks_that_start_out_taken_deadlock_wherever_they_are_made() {
    for text in [
        "(letrec ((lock #locked)) (acquire lock) 1)",
        "(let ((lock #locked)) (acquire lock) 1)",
        "(let* ((lock #locked)) (acquire lock) 1)",
        "(define (f lock) (acquire lock) 1) (f #locked)",
        "(define (f) (define lock #locked) (acquire lock) 1) (f)",
        "(define (make) #locked) (let ((lock (make))) (acquire lock) 1)",
        "(define lock (if #t #locked #unlocked)) (acquire lock) 1",
        "(define lock #unlocked) (set! lock #locked) (acquire lock) 1",
        "(let ((a #unlocked)) (acquire a) (let ((b a)) (acquire b) 1))",
        "(define v (vector #locked)) (define lock (vector-ref v 0)) (acquire lock)",
        "(let ((lock #locked)) (define t (spawn (acquire lock))) (join t))",
        "(define lock #unlocked) (cas lock #unlocked #locked) (acquire lock)",
    ] {
        let (report, _) = analyse(text);
        assert_eq!(report.verdict, Verdict::Found, "{text}");
        assert_eq!((report.count(Kind::Deadlock), report.serious()), (1, 1), "{text}: {:?}", report.findings);
    }
}

/// A thread that joins itself waits for ever, and so do threads that join each other.
#[test]
fn joining_oneself_is_a_deadlock() {
    let text = "(define l (new-lock)) (define me #f) (acquire l)
                (set! me (spawn (begin (acquire l) (join me) (release l)))) (release l)";
    let (report, _) = analyse(text);
    assert!(report.count(Kind::Deadlock) > 0, "{:?}", report.verdict);
}

/// A procedure that `call/cc` calls is called: its locks are made once more.
#[test]
fn a_procedure_is_called_by_call_cc_as_well() {
    let text = "(define x 0)
        (define (f k) (let ((l #unlocked)) (spawn (begin (acquire l) (set! x (+ x 1)) (release l)))))
        (define a (f 1)) (define b (call/cc f)) (join a) (join b)";
    let program = parse(Source::new("escape.scm", text)).expect("well formed");
    for k in 0..3 {
        assert!(!modular::analyze(&program, k, &Clock::unlimited()).races.is_empty(), "k = {k}");
    }
    assert!(analyse(text).0.count(Kind::Race) > 0);
}

#[test]
fn locks_in_every_position() {
    let (mut compared, mut proven, mut deadlocks) = (0, 0, 0);
    for seed in 0..cases(300) {
        let text = Locksmith { dice: Dice::new(seed ^ 0x10c5) }.program();
        let program = parse(Source::new("locks.scm", text.clone()))
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        let mut exploration = explore(&Machine::new(&program), 3_000, &Clock::unlimited());
        if exploration.incomplete.is_some() {
            continue;
        }
        compared += 1;
        let outcome = modular::analyze(&program, (seed % 3) as usize, &Clock::unlimited());
        let stuck = !exploration.observed.deadlocks.is_empty();
        assert!(!stuck || !outcome.deadlocks.is_empty(), "seed {seed}: modular misses a deadlock\n{text}");
        deadlocks += stuck as u64;
        let (report, _) = analyse(&text);
        let ran = report.phases.iter().any(|phase| phase.name == "concrete schedules");
        if !ran {
            exploration.observed.errors.retain(|_, error| error.failure.kind == FailureKind::Raised);
            proven += 1;
        }
        assert_eq!(told(&report), truth(&program, &exploration), "seed {seed}: {:?}\n{text}", report.verdict);
        assert!(!matches!(report.verdict, Verdict::Unknown(_)), "seed {seed}: {:?}\n{text}", report.verdict);
        assert!(report.findings.iter().all(|f| f.grade == Grade::Confirmed), "seed {seed}\n{text}");
    }
    assert!(compared * 10 > cases(300) * 9, "nearly all programs are small: {compared}");
    assert!(proven > 0 && deadlocks > 0, "{proven} proven, {deadlocks} deadlocks");
}
