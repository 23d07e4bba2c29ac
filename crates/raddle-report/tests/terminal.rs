//! Golden diagnostics.

use expect_test::{Expect, expect};
use raddle_findings::{Finding, Frame, Grade, HeldLock, Kind, Party};
use raddle_report::{Sources, Style, render, summary_line};

const BANK: &str = "#include <pthread.h>\n\nint balance;\npthread_mutex_t m;\n\nvoid withdraw(int amount) {\n    balance -= amount;\n}\n\nvoid deposit(int amount) {\n    pthread_mutex_lock(&m);\n    balance += amount;\n    pthread_mutex_unlock(&m);\n}\n";

fn frame(function: &str, line: u32, column: Option<u32>) -> Frame {
    Frame {
        function: Some(function.into()),
        file: Some("src/bank.c".into()),
        line: Some(line),
        column,
        raw: Some("bank+0x1234".into()),
    }
}

fn race() -> Finding {
    let locked = HeldLock { lock: "m".into(), acquired: vec![frame("deposit", 11, Some(5))] };
    let outside = Frame { raw: Some("libc.so.6+0x8740".into()), ..Frame::default() };
    let parties = vec![
        Party {
            thread: "1.1".into(),
            action: "writes 4 bytes".into(),
            stack: vec![frame("withdraw", 7, Some(13)), outside],
            locks: Vec::new(),
        },
        Party {
            thread: "1.2".into(),
            action: "writes 4 bytes".into(),
            stack: vec![frame("deposit", 12, Some(13))],
            locks: vec![locked],
        },
    ];
    let message = "two threads write `balance` and nothing orders them".to_owned();
    let mut finding = Finding::new(Kind::DataRace, Grade::Confirmed, "fasttrack", message, parties);
    finding.objects.push("balance".into());
    finding.notes.push("in the observed run the deposit came first".into());
    finding.schedule = Some("bank-1.schedule".into());
    finding
}

fn check(finding: &Finding, with_source: bool, expected: Expect) {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Sources::new(vec![folder.path().to_owned()]);
    if with_source {
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/bank.c"), BANK).unwrap();
    }
    expected.assert_eq(&render(finding, &mut sources, Style::default()));
}

#[test]
fn a_race_with_its_source() {
    check(
        &race(),
        true,
        expect![[r#"
        error[data-race]: two threads write `balance` and nothing orders them
          --> src/bank.c:7:13
           |
         7 |     balance -= amount;
           |             ^ thread 1.1 writes 4 bytes
        ...
        11 |     pthread_mutex_lock(&m);
           |     ------------------ thread 1.2 acquired `m` here
        12 |     balance += amount;
           |             ^ thread 1.2 writes 4 bytes
           |
           = note: thread 1.1 writes 4 bytes
                     #0 withdraw at src/bank.c:7:13
                     #1 libc.so.6+0x8740
           = note: thread 1.2 writes 4 bytes
                     #0 deposit at src/bank.c:12:13
                   holding `m` (acquired at src/bank.c:11:5)
           = note: concerns `balance`
           = note: in the observed run the deposit came first
           = note: finding 2a10d396, confirmed: it was made to happen, or was observed; found by fasttrack
           = help: make it happen again: raddle replay bank-1.schedule
    "#]],
    );
}

#[test]
fn a_race_without_its_source() {
    check(
        &race(),
        false,
        expect![[r#"
        error[data-race]: two threads write `balance` and nothing orders them
        --> src/bank.c:7:13
        ::: src/bank.c:12:13
        ::: src/bank.c:11:5
         = note: thread 1.1 writes 4 bytes
                   #0 withdraw at src/bank.c:7:13
                   #1 libc.so.6+0x8740
         = note: thread 1.2 writes 4 bytes
                   #0 deposit at src/bank.c:12:13
                 holding `m` (acquired at src/bank.c:11:5)
         = note: concerns `balance`
         = note: in the observed run the deposit came first
         = note: finding 2a10d396, confirmed: it was made to happen, or was observed; found by fasttrack
         = help: make it happen again: raddle replay bank-1.schedule
    "#]],
    );
}

#[test]
fn a_finding_of_a_converted_trace() {
    let mut finding = race();
    for party in &mut finding.parties {
        party.stack = vec![Frame { raw: Some("L12".into()), ..Frame::default() }];
        party.locks.clear();
    }
    finding.grade = Grade::Suspected;
    finding.schedule = None;
    check(
        &finding,
        true,
        expect![[r#"
        suspicion[data-race]: two threads write `balance` and nothing orders them
         |
         = note: thread 1.1 writes 4 bytes
                   #0 L12
         = note: thread 1.2 writes 4 bytes
                   #0 L12
         = note: concerns `balance`
         = note: in the observed run the deposit came first
         = note: finding 2a10d396, suspected: the detector is imprecise by design; found by fasttrack
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
    let predicted = Finding { grade: Grade::Predicted, ..race() };
    assert_eq!(summary_line(&[], &[], 0), "no findings");
    assert_eq!(
        summary_line(&[race(), race()], &[predicted], 3),
        "2 confirmed, 1 predicted (not shown, see --all), 3 suppressed"
    );
}
