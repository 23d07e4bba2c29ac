//! Pictures of findings: the erroneous run beside the recorded one, from the store alone; traces of replays; lanes in a terminal.

mod common;

use common::{folder, run, succeed};
use raddle_trace::Op;
use raddle_trace::schedule::Schedule;
use std::path::{Path, PathBuf};

const TWO_LOCKS: &str = "\
#include <pthread.h>
pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
int moved;
void *there(void *unused) {
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    moved++;
    pthread_mutex_unlock(&second);
    pthread_mutex_unlock(&first);
    return unused;
}
void *back(void *unused) {
    pthread_mutex_lock(&second);
    pthread_mutex_lock(&first);
    moved++;
    pthread_mutex_unlock(&first);
    pthread_mutex_unlock(&second);
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, there, 0);
    pthread_join(a, 0);
    pthread_create(&a, 0, there, 0);
    pthread_create(&b, 0, back, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
";

/// Hunts and returns the folder of the one finding.
fn hunted(folder: &Path) -> PathBuf {
    let output =
        run(common::raddle().current_dir(folder).args(["hunt", "-q", "--html", "page.html", "two.c"]));
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let mut findings = std::fs::read_dir(folder.join(".raddle")).unwrap().flatten().map(|entry| entry.path());
    findings.find(|path| path.join("finding.json").exists()).expect("a finding")
}

#[test]
fn a_hunt_keeps_what_its_picture_is_drawn_from() {
    let folder = folder(&[("two.c", TWO_LOCKS)]);
    let finding = hunted(folder.path());
    let read = |name: &str| Schedule::parse(&std::fs::read_to_string(finding.join(name)).unwrap()).unwrap();
    let (recorded, erroneous) = (read("recorded"), read("schedule"));
    assert!(recorded.steps.len() > erroneous.steps.len(), "the recorded run comes to its end");
    // The same step has the same name in both: that is how they are compared.
    let known = |schedule: &Schedule| -> Vec<(String, u32, String)> {
        let step = |step: &raddle_trace::schedule::Step| {
            let operation = format!("{} {}", step.kind.word(), schedule.name(step.object));
            (schedule.name(step.thread).to_owned(), step.ordinal, operation)
        };
        schedule.steps.iter().map(step).collect()
    };
    let all = known(&recorded);
    assert!(known(&erroneous).iter().all(|step| all.contains(step)), "{all:?}");
    // The trace is of the run in which both threads stand still, each with one lock.
    let events = common::events(&finding.join("trace"));
    let locked = common::count(&events, |op| matches!(op, Op::Lock { .. }));
    let unlocked = common::count(&events, |op| matches!(op, Op::Unlock { .. }));
    assert_eq!(locked - unlocked, 2);
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    for text in ["The recorded run", "The erroneous run", "locks first", "locks second"] {
        assert!(page.contains(text), "{text}");
    }
    // The page is made from the store alone: nothing is run for it.
    succeed(common::raddle().current_dir(folder.path()).args([
        "report",
        "-q",
        "--html",
        "again.html",
        "--fail-on",
        "never",
    ]));
    let again = std::fs::read_to_string(folder.path().join("again.html")).unwrap();
    assert!(again.contains("The recorded run") && again.contains("locks second"));
}

#[test]
fn a_replay_leaves_a_trace_that_can_be_drawn() {
    let folder = folder(&[("two.c", TWO_LOCKS)]);
    let finding = hunted(folder.path());
    let id = finding.file_name().unwrap().to_str().unwrap().to_owned();
    let mut replay = common::raddle();
    replay.current_dir(folder.path()).args(["replay", "-q", "--trace", "error.trace", &id]);
    let output = run(&mut replay);
    assert_eq!(output.status.code(), Some(1), "shown: {}", String::from_utf8_lossy(&output.stderr));
    let lanes = succeed(common::raddle().current_dir(folder.path()).args([
        "trace",
        "dump",
        "--lanes",
        "error.trace",
    ]));
    assert!(lanes.lines().all(|line| line.chars().count() <= 80), "{lanes}");
    for text in ["creates thread 1.1", "locks first", "locks second", "two.c:5", "two.c:13"] {
        assert!(lanes.contains(text), "{text} in\n{lanes}");
    }
    let picture = |arguments: &[&str]| {
        let output =
            run(common::raddle().current_dir(folder.path()).args(["report", "-q"]).args(arguments).arg(&id));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(picture(&[]).contains("\u{2716}\u{2501}\u{2501}"), "the lanes are below the finding");
    assert!(!picture(&["--no-picture"]).contains('\u{2716}'));
}
