//! Folded and whole stacks, with and without the source, in colours, and the last line.

use crate::findings::{of, race};
use crate::{check, rendered, with_basis};
use expect_test::expect;
use raddle_findings::{Basis, Fidelity, Finding, Frame, Kind};
use raddle_report::{Sources, Style, Summary, render};

#[test]
fn verbose_shows_all_frames_and_the_words_of_the_model() {
    let finding = Finding { basis: Basis::model(true, Fidelity::KeepsReads), ..race() };
    expect![[r#"
        warning[data-race]: data race on `balance` between threads 1.1 (`withdraw`) and 1.2 (`deposit`)
          --> src/bank.c:7:13
           |
         7 |     balance -= amount;
           |             ^ thread 1.1 writes 4 bytes
        ...
        11 |     pthread_mutex_lock(&alice);
           |     ------------------ thread 1.2 acquired mutex `alice` here
        12 |     balance += amount;
           |             ^ thread 1.2 writes 4 bytes
           |
           = note: thread 1.1 (entry `worker`) writes 4 bytes of `balance`
                     #0 withdraw at src/bank.c:7:13
                     #1 std::invoke at /usr/include/c++/14/vector:99
                     #2 std::thread::run at /usr/include/c++/14/vector:99
                     #3 worker at src/bank.c:30:5
                   created by thread 1 at src/bank.c:40:5
                     #0 main at src/bank.c:40:5
           = note: thread 1.2 (entry `worker`) writes 4 bytes of `balance`
                     #0 deposit at src/bank.c:12:13
                   holding mutex `alice`, acquired at src/bank.c:11:5
           = note: predicted: analysis of the recorded run found a schedule that brings the two accesses together;
                   every read returns the same value as in the recorded run; the predictor is sound: its witness is
                   a correct reordering of the trace
           = note: in the recorded run thread 1.2 came first, then thread 1.1 (events 12 and 30)
           = note: also found by `eraser`, `shb`
           = help: raddle replay f8363faafed9
           = note: finding f8363faafed9, found by `predict`
    "#]].assert_eq(&rendered(&finding, true, Style { verbose: true, ..Style::default() }));
}

#[test]
fn without_the_source_there_are_places() {
    expect![[r#"
        error[data-race]: data race on `balance` between threads 1.1 (`withdraw`) and 1.2 (`deposit`)
        --> src/bank.c:7:13
        ::: src/bank.c:12:13
        ::: src/bank.c:11:5
         = note: thread 1.1 (entry `worker`) writes 4 bytes of `balance`
                   #0 withdraw at src/bank.c:7:13
                   ... 2 library frames
                   #3 worker at src/bank.c:30:5
                 created by thread 1 at src/bank.c:40:5
         = note: thread 1.2 (entry `worker`) writes 4 bytes of `balance`
                   #0 deposit at src/bank.c:12:13
                 holding mutex `alice`, acquired at src/bank.c:11:5
         = note: confirmed: replayed from the stored schedule 2 times: both threads stood before their accesses at
                 the same moment
         = note: in the recorded run thread 1.2 came first, then thread 1.1
         = note: also found by `eraser`, `shb`
         = help: raddle replay f8363faafed9
         = note: finding f8363faafed9, found by `predict`
    "#]].assert_eq(&rendered(&race(), false, Style::default()));
}

#[test]
fn a_finding_of_a_converted_trace() {
    let mut finding = with_basis(Basis::rule());
    for party in &mut finding.parties {
        party.stack = vec![Frame { raw: Some("L12".into()), ..Frame::default() }];
        party.locks.clear();
        party.created = None;
        party.thread.entry = None;
    }
    check(
        &finding,
        expect![[r#"
        suspicion[data-race]: data race on `balance` between threads 1.1 and 1.2
         |
         = note: thread 1.1 writes 4 bytes of `balance`
                   #0 L12
         = note: thread 1.2 writes 4 bytes of `balance`
                   #0 L12
         = note: suspected: no lock is held at all accesses; other synchronisation
                 may order them
         = note: finding f8363faafed9, found by `predict`
    "#]],
    );
}

#[test]
fn colours_only_when_asked_for() {
    let mut sources = Sources::new(Vec::new());
    let plain = render(&race(), &mut sources, Style { color: false, ..Style::default() });
    let styled = render(&race(), &mut sources, Style { color: true, ..Style::default() });
    assert!(!plain.contains('\x1b'));
    assert!(styled.contains('\x1b'));
}

#[test]
fn summaries() {
    let predicted = [with_basis(Basis::model(true, Fidelity::Unknown)), with_basis(Basis::rule())];
    assert_eq!(Summary::default().line(), "no findings");
    let shown = [race(), race(), with_basis(Basis::unordered())];
    let summary = Summary { shown: &shown, held_back: &predicted, suppressed: 3, known: 1 };
    assert_eq!(
        summary.line(),
        "3 findings: 2 confirmed, 1 unordered; not shown: 1 predicted, 1 suspected (see --all), 3 suppressed, \
         1 known from the baseline"
    );
    assert_eq!(
        Summary { suppressed: 2, ..Summary::default() }.line(),
        "no findings; not shown: 2 suppressed"
    );
}

/// A crash has a party for every thread of the process; a few of them are enough, and `-v` has all.
#[test]
fn of_many_threads_some_are_shown() {
    let mut finding = of(Kind::Crash);
    let other = finding.parties[1].clone();
    finding.parties.extend((0..300).map(|number| {
        let mut party = other.clone();
        party.thread.path = format!("1.{}", number + 3);
        party
    }));
    let text = |verbose| rendered(&finding, true, Style { width: 80, verbose, ..Style::default() });
    let short = text(false);
    assert!(short.len() < 3000, "{short}");
    assert!(short.contains("294 more threads not shown; `-v` shows all"), "{short}");
    assert!(short.contains("thread 1.4 was here when the process ended; and more\n"), "{short}");
    assert!(text(true).matches("thread 1.302").count() >= 1);
}
