//! Every phase stops when its clock does, and says so. No test waits for time to pass: the clocks here end after a
//! number of questions ([`Clock::after_polls`]), so each place that asks is made to be the last one.

use raddle_scheme::abs::explore::explore as abstract_explore;
use raddle_scheme::abs::space::{Config, Space};
use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::concrete::run::{Ending, Scheduler, run};
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::concrete::{dpor, explore};
use raddle_scheme::finding::{Grade, Kind, Verdict};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Program, Source, Unread, modular, paper, parse, parse_within, suspect, tool};

fn program(text: impl Into<String>) -> Program {
    parse(Source::new("limits.scm", text)).expect("well formed")
}

/// Two threads with `lines` writes each, to variables of their own (or to one, where they race).
fn writers(lines: usize, shared: bool) -> String {
    let mut text = String::from("(define x 0)\n(define y 0)\n(define t (spawn (begin\n");
    (0..lines).for_each(|line| text += &format!("(set! x {line})\n"));
    text += ")))\n";
    (0..lines).for_each(|line| text += &format!("(set! {} {line})\n", if shared { "x" } else { "y" }));
    text + "(join t)\n"
}

const PROGRAMS: [&str; 5] = [
    "(define x 0) (define t (spawn (set! x 1))) (set! x 2) (join t) x",
    "(define l (new-lock)) (define m (new-lock))
     (define t (spawn (begin (acquire l) (acquire m) (release m) (release l))))
     (acquire m) (acquire l) (release l) (release m) (join t)",
    "(define x 0) (define (inc) (let ((old x)) (if (cas x old (+ old 1)) #t (inc))))
     (define t (spawn (inc))) (inc) (join t)",
    "(define x 0) (define l (new-lock)) (define (inc) (acquire l) (set! x (+ x 1)) (release l))
     (define t (spawn (inc))) (inc) (join t) (if (= x 3) (error \"three\") x)",
    "(define (f n) (if (= n 0) (random 3) (f (- n 1)))) (define r (new-ref 0))
     (define t (spawn (ref-set r (f 5)))) (ref-set r (f 3)) (join t) (deref r)",
];

#[test]
fn an_expired_clock_stops_each_phase() {
    let over = || Clock::after_polls(0);
    for text in PROGRAMS {
        let source = Source::new("limits.scm", text);
        assert!(matches!(parse_within(source.clone(), &over()), Err(Unread::Stopped(_))), "reader: {text}");
        assert!(
            matches!(parse_within(source, &Clock::after_polls(1)), Err(Unread::Stopped(_))),
            "expander: {text}"
        );
        let program = program(text);
        assert!(modular::analyze(&program, 1, &over()).incomplete.is_some(), "modular: {text}");
        let mut space = Space::new(&program, Config::better(1));
        assert!(abstract_explore(&mut space, 1_000, &over()).incomplete.is_some(), "abstract: {text}");
        let mut space = Space::new(&program, Config::paper(0, false));
        let graph = abstract_explore(&mut space, 1_000, &Clock::unlimited());
        assert!(suspect::suspects(&mut space, &graph, &over()).incomplete.is_some(), "suspects: {text}");
        assert!(paper::analyze(&mut space, &graph, &over()).incomplete.is_some(), "paper: {text}");
        let machine = Machine::new(&program);
        assert!(explore::explore(&machine, 1_000, &over()).incomplete.is_some(), "concrete: {text}");
        let reduced = dpor::explore(&machine, dpor::Bounds::default(), &over());
        assert!(reduced.exploration.incomplete.is_some(), "schedules: {text}");
        let end = run(&machine, Scheduler::RoundRobin, 0, 1_000, &over(), |_| {}).ending;
        assert!(matches!(end, Ending::Limit(_)), "run: {text}: {end:?}");
        let (report, _) = tool::paper_report(&program, Config::paper(0, false), 1_000, &over());
        assert!(matches!(report.verdict, Verdict::Unknown(_)), "paper: {text}");
        let report = analyze(&program, &Options::default(), &over(), &mut |_| {});
        assert!(matches!(report.verdict, Verdict::Unknown(_)), "{text}: {:?}", report.verdict);
    }
}

/// Wherever an analysis is cut, what it still says is true: it finds nothing that is not there and proves nothing that
/// is not so.
#[test]
fn wherever_it_is_cut_it_says_nothing_untrue() {
    for text in PROGRAMS {
        let program = program(text);
        let whole = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {});
        let all: Vec<&String> = whole.findings.iter().map(|f| &f.message).collect();
        let mut polls = 0;
        loop {
            let clock = Clock::after_polls(polls);
            let report = analyze(&program, &Options::default(), &clock, &mut |_| {});
            for finding in report.findings.iter().filter(|f| f.grade == Grade::Confirmed) {
                assert!(all.contains(&&finding.message), "{polls} polls: {}\n{text}", finding.message);
            }
            if let Verdict::Clean(why) = &report.verdict {
                assert!(matches!(whole.verdict, Verdict::Clean(_)), "{polls} polls: clean ({why})\n{text}");
            }
            if !clock.is_over() {
                assert_eq!(report.verdict, whole.verdict, "{text}");
                break;
            }
            polls += 1 + polls / 8;
        }
    }
}

/// The clock is asked at least once a context and a state, so that nothing goes on for long after its end.
#[test]
fn work_is_bounded_by_polls() {
    let program = program(writers(300, true));
    for polls in [10, 100, 500] {
        let clock = Clock::after_polls(polls);
        let outcome = modular::analyze(&program, 1, &clock);
        assert!(outcome.incomplete.is_some() && outcome.contexts <= polls as usize + 2);
        let mut space = Space::new(&program, Config { por: false, ..Config::better(1) });
        let graph = abstract_explore(&mut space, 1_000_000, &Clock::after_polls(polls));
        assert!(graph.incomplete.is_some() && graph.states.len() <= polls as usize + 2);
        let machine = Machine::new(&program);
        let exploration = explore::explore(&machine, 1_000_000, &Clock::after_polls(polls));
        assert!(exploration.incomplete.is_some() && exploration.states <= polls as usize + 2);
    }
}

/// A thread of many accesses is compared with another once, not access by access: the questions grow with the program,
/// not with its square.
#[test]
fn comparing_threads_is_not_quadratic_in_their_length() {
    let lines = 3_000;
    let apart = program(writers(lines, false));
    let clock = Clock::after_polls(40 * lines as u64);
    let outcome = modular::analyze(&apart, 1, &clock);
    assert_eq!(outcome.incomplete, None);
    assert!(outcome.races.is_empty() && outcome.deadlocks.is_empty());
    // Where each of n writes races with each of n others, there is a limit, and it is said.
    let together = program(writers(lines, true));
    let outcome = modular::analyze(&together, 1, &Clock::unlimited());
    assert!(outcome.incomplete.is_some_and(|why| why.contains("may race")));
}

/// An operation that can only fail is an error, although it is neither a race nor a deadlock.
#[test]
fn operations_that_cannot_work_are_reported() {
    for text in [
        "(car 1)",
        "(define (f x) (car x)) (define t (spawn (f 1))) (join t)",
        "(define l 5) (define t (spawn (acquire l))) (join t)",
        "(define v (vector 1 2)) (define t (spawn (+ 1 'a))) (join t)",
    ] {
        let program = program(text);
        let report = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {});
        assert_eq!(report.verdict, Verdict::Found, "{text}");
        assert!(
            report.findings.iter().all(|f| f.kind == Kind::Error && f.grade == Grade::Confirmed),
            "{text}"
        );
        // Without the concrete machine it remains a suspicion, at the same place.
        let blind = Options { concrete_states_max: 0, runs_max: 0, ..Options::default() };
        let suspected = analyze(&program, &blind, &Clock::unlimited(), &mut |_| {});
        assert!(suspected.findings.iter().any(|f| f.kind == Kind::Error), "{text}: {suspected:?}");
    }
    for text in [
        "(define (f x) (if (pair? x) (car x) x)) (define t (spawn (f '(1)))) (f 1) (join t)",
        "(define (last l) (if (null? (cdr l)) (car l) (last (cdr l)))) (define t (spawn (last '(1 2 3)))) (join t)",
    ] {
        let report = analyze(&program(text), &Options::default(), &Clock::unlimited(), &mut |_| {});
        assert!(matches!(report.verdict, Verdict::Clean(_)), "{text}: {:?}", report.findings);
    }
}
