//! The page: small, alone, and without foreign markup whatever is in a finding; lanes are where the data say.

mod findings;
#[path = "../../raddle-findings/tests/samples/mod.rs"]
mod samples;

use expect_test::{Expect, expect};
use findings::{BANK, frame, of, thread};
use proptest::prelude::*;
use raddle_findings::{Finding, Frame, Kind, Party, Thread};
use raddle_report::picture::{Line, Names, Row, Run, Stretch, draw, edges, lanes, spans};
use raddle_report::{Page, Shown, Sources};
use raddle_trace::schedule::Schedule;
use samples::Sampler;
use std::fmt::Write as _;

fn page(findings: &[Finding], schedule: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/bank.c"), BANK).unwrap();
    let mut sources = Sources::new(vec![folder.path().to_owned()]);
    let shown = findings.iter().map(|finding| Shown {
        finding,
        schedule: schedule.map(|text| Schedule::parse(text).unwrap()),
        observed: None,
        names: Names::default(),
    });
    let page = Page {
        command: "hunt",
        program: &["./bank".to_owned(), "5".to_owned()],
        findings: shown.collect(),
        exploration: None,
        not_shown: vec!["1 predicted (--all shows them)".to_owned()],
    };
    page.html(&mut sources)
}

const DEADLOCK: &str = "\
raddle-schedule 2
program bank
build-id 5b1d
compiler clang-22
step 1 1 fork 1.1  # bank.c:32 main
step 1 2 fork 1.2  # bank.c:33 main
step 1.1 1 start  # bank.c:10 deposit
step 1.1 2 lock bank+0x40  # bank.c:11 deposit
step 1.2 1 start  # bank.c:18 transfer
step 1.2 2 lock bank+0x80  # bank.c:19 transfer
block 1.1 3 lock bank+0x80  # bank.c:13 deposit
block 1.2 3 lock bank+0x40  # bank.c:20 transfer
";

fn text(finding: &Finding, schedule: Option<&str>, expected: Expect) {
    let schedule = schedule.map(|text| Schedule::parse(text).unwrap());
    let run = schedule.as_ref().map(|schedule| Run::new(schedule, Names::of(finding)));
    let text = lanes(&draw(finding, run.as_ref(), None).erroneous, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // A first line without indentation keeps that of the others.
    expected.assert_eq(&format!("lanes:\n{text}"));
}

#[test]
fn a_deadlock_in_lanes() {
    text(
        &of(Kind::Deadlock),
        Some(DEADLOCK),
        expect![[r#"
        lanes:
               1   1.1 1.2 (1: main, 1.1: worker, 1.2: worker)
            1  ●   │   │   creates thread 1.1                                  bank.c:32
            2  ●   │   │   creates thread 1.2                                  bank.c:33
            3  │   ●   │   starts                                              bank.c:10
            4  │   ●   │   locks bob                                           bank.c:11
            5  │   ┃   ●   starts                                              bank.c:18
            6  │   ┃   ●   locks bank+0x80                                     bank.c:19
               │   ✖━━━✖   1.1 waits for mutex `bob`, held by thread 1.2       bank.c:13
               │   ┊   ┊   1.2 waits for mutex `alice`, held by thread 1.1     bank.c:20
    "#]],
    );
}

#[test]
fn a_race_without_schedule() {
    text(
        &of(Kind::DataRace),
        None,
        expect![[r#"
        lanes:
               1   1.1 1.2 (1: main, 1.1: worker, 1.2: worker)
               ●   │   │   creates thread 1.1                                  bank.c:40
               │   │   ●   locks alice                                         bank.c:11
               │   ✖━━━✖   1.1 writes 4 bytes of `balance`                      bank.c:7
               │   │   ┃   1.2 writes 4 bytes of `balance`                     bank.c:12
    "#]],
    );
}

#[test]
fn a_missed_signal() {
    text(
        &of(Kind::MissedSignal),
        None,
        expect![[r#"
        lanes:
               1.1 1.2 (1.1: worker, 1.2: worker)
               │   ✖   signals `ready` while no thread waits                   bank.c:12
               ✖   │   waits for a signal on condition variable `ready`         bank.c:7
    "#]],
    );
}

#[test]
fn an_atomicity_violation() {
    text(
        &of(Kind::AtomicityViolation),
        None,
        expect![[r#"
        lanes:
               1.1 1.2 (1.1: worker, 1.2: worker)
               ✖   │   begins the region that should be atomic                  bank.c:7
               ┃   ✖   interferes                                              bank.c:12
               ✖   │   ends the region that should be atomic                    bank.c:8
    "#]],
    );
}

#[test]
fn a_crash() {
    text(
        &of(Kind::Crash),
        None,
        expect![[r#"
        lanes:
               1.1 1.2 (1.1: worker, 1.2: worker)
               ✖━━━●   1.1 crashes                                              bank.c:7
               │   │   1.2 was here when the process ended                     bank.c:12
    "#]],
    );
}

#[test]
fn a_property() {
    text(
        &of(Kind::PropertyViolation),
        None,
        expect![[r#"
        lanes:
               1.1 1.2 (1.1: worker, 1.2: worker)
               ✖━━━●   1.1 crashes                                              bank.c:7
               │   │   1.2 was here when the process ended                     bank.c:12
    "#]],
    );
}

#[test]
fn every_kind_has_its_page() {
    for kind in Kind::ALL {
        let html = page(&[of(kind)], None);
        assert!(html.contains(&format!("data-kind=\"{}\"", kind.name())), "{kind:?}");
        assert!(html.len() < 200 << 10, "{kind:?}: {} bytes", html.len());
    }
}

/// Nothing in the page names a place to load something from, and its policy forbids to.
#[test]
fn the_page_asks_nobody() {
    let html = page(&[of(Kind::Deadlock), of(Kind::DataRace)], Some(DEADLOCK));
    assert!(html.contains("default-src &#39;none&#39;") || html.contains("default-src 'none'"));
    let addresses: Vec<&str> =
        html.match_indices("://").map(|(at, _)| &html[at.saturating_sub(5)..at + 13]).collect();
    assert!(addresses.iter().all(|address| address.contains("www.w3.org")), "{addresses:?}");
    for word in [" src=", "@import", "fetch(", "XMLHttpRequest", "<iframe", "<object", "<embed"] {
        assert!(!html.contains(word), "{word}");
    }
}

fn long_schedule(steps: usize) -> String {
    let mut text = DEADLOCK.split("block").next().unwrap().to_owned();
    for number in 0..steps {
        let step = ["lock", "unlock"][number / 2 % 2];
        let thread = ["1.1", "1.2"][number % 2];
        let _ = writeln!(
            text,
            "step {thread} {} {step} bank+0x{:x}  # bank.c:{} deposit",
            number / 2 + 3,
            number % 2 * 64 + 64,
            number % 20 + 1
        );
    }
    text
}

#[test]
fn pages_are_small() {
    let schedule = long_schedule(2_000);
    let one = page(&[of(Kind::Deadlock)], Some(&schedule));
    assert!(one.len() < 200 << 10, "{} bytes", one.len());
    assert!(one.contains(" steps"), "the rest is folded");
    let many: Vec<Finding> = (0..100).map(|at| of(Kind::ALL[at % Kind::ALL.len()])).collect();
    let html = page(&many, Some(&long_schedule(200)));
    assert!(html.len() < 2 << 20, "{} bytes for 100 findings", html.len());
    let html = page(&vec![of(Kind::DataRace); 1_000], None);
    assert!(html.len() < 8 << 20, "{} bytes for 1,000 findings", html.len());
}

/// The names of all tags, in order; what is inside the scripts and the style is no markup.
fn tags(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let tag: String = rest.chars().take_while(|c| !c.is_whitespace() && *c != '>').collect();
        if tag == "script" || tag == "style" {
            let end = rest.find(&format!("</{tag}")).expect("closed");
            rest = &rest[end..];
        }
        tags.push(tag);
    }
    tags
}

fn check_markup(findings: &[Finding], benign: &[Finding]) {
    let (html, expected) = (page(findings, None), page(benign, None));
    assert_eq!(tags(&html), tags(&expected));
    let start = html.find("id=\"data\">").unwrap() + 10;
    let end = start + html[start..].find("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(&html[start..end]).expect("the data are JSON");
    assert_eq!(data.as_array().unwrap().len(), findings.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever a finding's texts are, the page has the tags that it has for harmless ones.
    #[test]
    fn no_foreign_markup(text in "[<>&\"'a-z/!\\-\\]\\[ \u{202e}\u{0}]{1,24}", kind in 0..Kind::ALL.len()) {
        let hostile = format!("</script><script>alert(1)</script>{text}");
        let replace = |with: &str| {
            let mut finding = of(Kind::ALL[kind]);
            for party in &mut finding.parties {
                party.thread.name = Some(with.to_owned());
                for frame in &mut party.stack {
                    frame.function = Some(with.to_owned());
                    frame.file = Some(format!("{with}.c"));
                }
            }
            for object in &mut finding.objects {
                object.name = Some(with.to_owned());
            }
            finding
        };
        // The same text without what could be markup: whether a suppression is offered depends on the other characters.
        let harmless = hostile.replace('<', "(").replace('>', ")").replace('&', "+");
        check_markup(&[replace(&hostile)], &[replace(&harmless)]);
    }
}

#[test]
fn every_sample_of_a_finding_is_bounded() {
    for text in ["</script><img src=x onerror=alert(1)>", "\u{202e}abc", ""] {
        let sampler = Sampler { text, file: "/src/<b>.c" };
        for kind in Kind::ALL {
            let html = page(&[sampler.full(kind, sampler.bases().remove(0), Default::default())], None);
            assert!(!html.contains("<img") && !html.contains('\u{202e}'));
            assert!(html.len() < 200 << 10, "{kind:?}: {} bytes", html.len());
        }
    }
}

#[test]
fn deep_stacks_and_many_threads_are_bounded() {
    let mut finding = of(Kind::Crash);
    finding.parties[0].stack = vec![frame("deep", 7, 1); 10_000];
    let other = finding.parties[0].clone();
    for number in 0..1_000 {
        finding.parties.push(Party { thread: thread(&format!("1.{number}"), "worker"), ..other.clone() });
    }
    let html = page(&[finding], None);
    assert!(html.len() < 200 << 10, "{} bytes", html.len());
    assert!(html.contains("more threads"));
    let mut bare = of(Kind::DataRace);
    for party in &mut bare.parties {
        party.stack = vec![Frame { raw: Some("bank+0x12".into()), ..Frame::default() }];
        party.thread = Thread::at("");
        party.locks.clear();
    }
    assert!(page(&[bare], None).contains("unknown"));
}

#[test]
fn steps_locks_and_edges_are_where_the_schedule_says() {
    let finding = of(Kind::Deadlock);
    let schedule = Schedule::parse(DEADLOCK).unwrap();
    let run = Run::new(&schedule, Names::of(&finding));
    let picture = draw(&finding, Some(&run), None).erroneous;
    let numbers: Vec<_> = picture.rows.iter().flat_map(Row::acts).filter_map(|act| act.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let held: Vec<_> = picture
        .spans
        .iter()
        .filter(|span| span.stretch == Stretch::Holds)
        .map(|span| (span.lane, span.from, span.open))
        .collect();
    assert_eq!(held, [(1, 3, true), (2, 5, true)]);
    let ordered: Vec<_> = picture
        .edges
        .iter()
        .filter(|edge| edge.line == Line::Ordered)
        .map(|edge| (edge.from, edge.to))
        .collect();
    assert_eq!(ordered, [((0, 0), (2, 1)), ((1, 0), (4, 2))], "creation comes before start");
    let last = picture.rows.len() - 1;
    let state: Vec<_> = picture.state(last).iter().map(|span| span.stretch).collect();
    assert_eq!(state.iter().filter(|stretch| **stretch == Stretch::Waits).count(), 2);
    assert_eq!(state.iter().filter(|stretch| **stretch == Stretch::Holds).count(), 2);
}

/// The naive twin of the lock bars: who holds what after each step, from the beginning each time.
fn holds(run: &Run<'_>, steps: usize) -> Vec<(usize, u32)> {
    use raddle_trace::schedule::StepKind;
    let mut held: Vec<(usize, u32)> = Vec::new();
    for step in &run.steps[..steps] {
        let lock = (step.thread, step.object.0);
        match step.kind {
            StepKind::Lock => held.push(lock),
            StepKind::Unlock => {
                if let Some(at) = held.iter().position(|known| *known == lock) {
                    held.remove(at);
                }
            }
            _ => {}
        }
    }
    held.sort_unstable();
    held.dedup();
    held
}

proptest! {
    #[test]
    fn bars_are_what_is_held_after_each_step(moves in prop::collection::vec((0..3usize, 0..3usize, any::<bool>()), 0..40)) {
        let mut text = "raddle-schedule 2\n".to_owned();
        let mut ordinals = [0; 3];
        for (thread, lock, locks) in moves {
            ordinals[thread] += 1;
            let word = if locks { "lock" } else { "unlock" };
            let _ = writeln!(text, "step 1.{thread} {} {word} m{lock}", ordinals[thread]);
        }
        let schedule = Schedule::parse(&text).unwrap();
        let run = Run::new(&schedule, Names::default());
        let spans = spans(&run);
        for after in 0..=run.steps.len() {
            let covers = |from: Option<usize>, to: Option<usize>| from.is_some_and(|from| from < after) && to.is_none_or(|to| to >= after);
            let mut held: Vec<(usize, u32)> =
                spans.iter().filter(|span| covers(span.from, span.to)).map(|span| (span.thread, span.what.0)).collect();
            held.sort_unstable();
            prop_assert_eq!(held, holds(&run, after), "after {} steps of\n{}", after, text);
        }
        // Every hand-over leads from the last unlock of that lock, by another thread.
        for link in edges(&run) {
            prop_assert!(link.from < link.to);
            let (from, to) = (&run.steps[link.from], &run.steps[link.to]);
            prop_assert!(from.object == to.object && from.thread != to.thread);
            let between = &run.steps[link.from + 1..link.to];
            prop_assert!(between.iter().all(|step| step.object != to.object || step.kind != from.kind));
        }
    }
}
