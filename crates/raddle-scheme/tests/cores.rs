//! A deadlock is reported once, whoever else queues behind it; and swaps that a loop tries again are no findings.

use raddle_scheme::analyze::{Options, Progress, analyze};
use raddle_scheme::concrete::explore::explore;
use raddle_scheme::concrete::run::{Ending, Scheduler, run};
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::finding::{Grade, Kind, Report, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Source, parse};

/// The report, and the deadlocks and livelocks that were told before it was there.
fn report(text: &str) -> (Report, Vec<String>) {
    let program = parse(Source::new("cores.scm", text)).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let mut told = Vec::new();
    let report = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |progress| {
        if let Progress::Found(finding) = progress
            && matches!(finding.kind, Kind::Deadlock | Kind::Livelock)
        {
            told.push(finding.key());
        }
    });
    for finding in report.findings.iter().filter(|f| f.kind == Kind::Deadlock && f.grade == Grade::Confirmed)
    {
        let schedule = finding.schedule.clone().expect("confirmed");
        let ending = run(
            &Machine::new(&program),
            Scheduler::Replay(schedule),
            0,
            100_000,
            &Clock::unlimited(),
            |_| {},
        )
        .ending;
        assert!(
            matches!(&ending, Ending::Deadlock(stuck) if stuck.len() == finding.parts.len()),
            "{ending:?}"
        );
    }
    (report, told)
}

const TWO: &str = "(define a (new-lock)) (define b (new-lock))
    (define (up) (acquire a) (acquire b) (release b) (release a))
    (define (down) (acquire b) (acquire a) (release a) (release b))";

#[test]
fn one_circle_is_one_finding() {
    for threads in [2, 4, 6] {
        let numbers: String = (0..threads).map(|n| format!("{n} ")).collect();
        let text = format!(
            "{TWO} (define ts (map (lambda (n) (spawn (if (even? n) (up) (down)))) '({numbers})))
             (for-each (lambda (t) (join t)) ts)"
        );
        let (report, told) = report(&text);
        assert_eq!(report.count(Kind::Deadlock), 1, "{threads} threads: {:?}", report.findings);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0], report.findings[0].key());
    }
}

#[test]
fn two_causes_are_two_findings() {
    // A circle, and a lock that is never given back.
    let text = format!(
        "{TWO} (define c (new-lock)) (define (keep) (acquire c))
         (define t (spawn (up))) (define u (spawn (down))) (define v (spawn (keep))) (define w (spawn (keep)))
         (join t) (join u) (join v) (join w)"
    );
    let (found, _) = report(&text);
    let program = parse(Source::new("cores.scm", text.clone())).expect("well formed");
    let whole = explore(&Machine::new(&program), 1_000_000, &Clock::unlimited());
    assert!(
        whole.incomplete.is_none() && whole.observed.deadlocks.len() >= 4,
        "{:?}",
        whole.observed.deadlocks.keys()
    );
    assert_eq!(found.count(Kind::Deadlock), 2, "{:?}", found.findings);
    // Two circles of different locks in the same procedure.
    let text = "(define a (new-lock)) (define b (new-lock)) (define c (new-lock)) (define d (new-lock))
        (define (both x y) (acquire x) (acquire y) (release y) (release x))
        (define ts (list (spawn (both a b)) (spawn (both b a)) (spawn (both c d)) (spawn (both d c))))
        (for-each (lambda (t) (join t)) ts)";
    assert_eq!(report(text).0.count(Kind::Deadlock), 2, "{:?}", report(text).0.findings);
}

#[test]
fn whoever_waits_for_a_lost_lock_is_one_finding() {
    let (report, _) = report(
        "(define l (new-lock)) (define q (list 1 2 3))
         (define (worker) (acquire l)
           (if (not (null? q)) (let ((x (car q))) (set! q (cdr q)) (release l) (worker))))
         (define ts (map (lambda (n) (fork (worker))) '(1 2 3 4)))
         (for-each join ts)",
    );
    assert_eq!((report.count(Kind::Deadlock), report.serious()), (1, 1), "{:?}", report.findings);
}

#[test]
fn a_loop_that_looks_again_has_retried() {
    let stack = "(define top '())
        (define (push! x) (let ((old top)) (if (cas top old (cons x old)) #t (push! x))))";
    let pops = [
        "(define (pop!) (let ((old top)) (if (null? old) #f (if (cas top old (cdr old)) (car old) (pop!)))))",
        "(define (pop!) (let ((old top)) (cond ((null? old) #f) ((cas top old (cdr old)) (car old)) (else (pop!)))))",
        "(define (pop!) (let ((old top)) (and (pair? old) (or (cas top old (cdr old)) (pop!)))))",
        "(define (pop!) (let again ((old top)) (and (pair? old) (if (not (cas top old (cdr old))) (again top) (car old)))))",
    ];
    for pop in pops {
        let text = format!(
            "{stack} {pop} (define ts (list (fork (push! 1) (pop!)) (fork (pop!)) (fork (pop!)))) (for-each join ts)"
        );
        let (report, _) = report(&text);
        assert!(matches!(report.verdict, Verdict::Clean(_)), "{pop}: {:?}", report.findings);
    }
    let balance = "(define balance (atom 100))
        (define (withdraw n) (let ((old (deref balance)))
          (if (>= old n) (if (compare-and-set! balance old (- old n)) #t (withdraw n)) #f)))
        (define a (future (withdraw 80))) (define b (future (withdraw 60))) (deref a) (deref b)
        (assert (>= (deref balance) 0))";
    assert!(matches!(report(balance).0.verdict, Verdict::Clean(_)), "{:?}", report(balance).0.findings);
}

#[test]
fn a_swap_that_is_let_go_is_found() {
    for body in [
        "(define (inc) (let ((old x)) (cas x old (+ old 1))))",
        "(define (inc) (let ((old x)) (if (cas x old (+ old 1)) 'done 'lost)))",
        // It calls the procedure again whether the swap failed or not.
        "(define (inc) (times 1)) (define (times n) (if (> n 0) (let ((old x)) (cas x old (+ old 1)) (times (- n 1)))))",
        // Only when it succeeded.
        "(define (inc) (times 1)) (define (times n) (if (> n 0) (let ((old x)) (if (cas x old (+ old 1)) (times (- n 1)) 'lost))))",
        // Once more, and then no more.
        "(define (inc) (try 2)) (define (try n) (let ((old x)) (if (cas x old (+ old 1)) #t (if (> n 0) (try (- n 1)) 'lost))))",
    ] {
        let text = format!(
            "(define x 0) {body} (define t (fork (inc))) (define u (fork (inc))) (define v (fork (inc))) (define w (fork (inc))) (for-each join (list t u v w))"
        );
        let (report, _) = report(&text);
        assert!(
            report.count(Kind::UnretriedCas) + report.count(Kind::Race) > 0,
            "{body}: {:?}",
            report.verdict
        );
    }
}
