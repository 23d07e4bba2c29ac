//! The store of evidence: what is added is there, the better evidence wins, nothing half-written is ever seen.

use raddle_findings::basis::{Attempt, Basis, Fidelity, Shown};
use raddle_findings::store::{Added, read_schedule};
use raddle_findings::{
    Access, Action, Detail, Evidence, Finding, Frame, Grade, Kind, Object, Party, Store, Thread, What,
};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn finding(number: u32, basis: Basis) -> Finding {
    let frame = Frame {
        function: Some(format!("f{number}")),
        file: Some("bank.c".into()),
        line: Some(number),
        ..Frame::default()
    };
    let object = Some(Object::named(&format!("x{number}"), What::Memory));
    let action = Action::Accesses { access: Access::Write, bytes: 4, atomic: false, vptr: false, object };
    let party = Party::new(Thread::at("1.1"), action, vec![frame]);
    Finding::new(Kind::DataRace, "test", basis, vec![party.clone(), party], Detail::None)
}

fn confirmed() -> Basis {
    Basis::Replayed { shown: Shown::Parked, replays: 2 }
}

fn evidence(number: u32, basis: Basis, program: &str, schedule: &str) -> Evidence {
    let program = vec![program.to_owned()];
    Evidence::new("hunt", program, finding(number, basis), Some(schedule.to_owned()))
}

#[test]
fn an_unconfirmed_witness_never_replaces_or_decorates_a_confirmed_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().join("store"));
    let mut failed = Basis::model(false, Fidelity::Reordered);
    failed.tried(Attempt::OtherMemory);
    let id = finding(1, confirmed()).id;
    assert_eq!(store.add(&evidence(1, failed.clone(), "./a", "predicted")).unwrap(), Added::New);
    assert_eq!(store.add(&evidence(1, confirmed(), "./a", "confirmed")).unwrap(), Added::Better);
    for _ in 0..2 {
        assert_eq!(store.add(&evidence(1, failed.clone(), "./a", "worse")).unwrap(), Added::Known);
        assert_eq!(store.add(&evidence(1, confirmed(), "./a", "again")).unwrap(), Added::Known);
    }
    let kept = store.read(&id).unwrap();
    assert_eq!((kept.finding.grade(), kept.finding.basis), (Grade::Confirmed, confirmed()));
    assert_eq!(read_schedule(&store.schedule_path(&id)).unwrap(), "confirmed");
    let files: Vec<_> = std::fs::read_dir(store.folder().join(&id)).unwrap().flatten().collect();
    assert_eq!(files.len(), 2, "{files:?}");
}

#[test]
fn another_build_comes_first_and_the_older_one_stays_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let id = finding(1, confirmed()).id;
    for build in ["a", "b", "c"] {
        let evidence =
            Evidence { code_id: build.into(), ..evidence(1, confirmed(), "./bank", &format!("of {build}")) };
        store.add(&evidence).unwrap();
    }
    let text = |name: &str| std::fs::read_to_string(store.folder().join(&id).join(name)).unwrap();
    assert_eq!([text("schedule"), text("2.schedule"), text("3.schedule")], ["of c", "of b", "of a"]);
    assert_eq!(store.read(&id).unwrap().code_id, "c");
}

/// The recorded run goes with its evidence, superseded or not; a trace belongs to the best evidence only.
#[test]
fn the_recorded_run_and_the_trace_lie_beside_the_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let id = finding(1, confirmed()).id;
    for build in ["a", "b"] {
        let evidence = Evidence {
            code_id: build.into(),
            recorded: Some(format!("recorded {build}")),
            ..evidence(1, confirmed(), "./bank", &format!("of {build}"))
        };
        store.add(&evidence).unwrap();
        let trace = store.folder().join(".checking-trace");
        std::fs::write(&trace, build).unwrap();
        store.add_trace(&id, &trace).unwrap();
        assert!(!trace.exists());
    }
    let text = |name: &str| std::fs::read_to_string(store.folder().join(&id).join(name)).unwrap();
    assert_eq!([text("recorded"), text("2.recorded")], ["recorded b", "recorded a"]);
    assert_eq!(text("trace"), "b");
    assert_eq!(store.recorded_path(&id), store.folder().join(&id).join("recorded"));
    assert_eq!(store.trace_path(&id), store.folder().join(&id).join("trace"));
}

#[test]
fn lists_have_the_latest_first_and_ids_may_be_shortened() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    assert_eq!(store.list().unwrap().0, []);
    for number in 1..=3 {
        let evidence = Evidence { found_at: number.into(), ..evidence(number, confirmed(), "./a", "s") };
        store.add(&evidence).unwrap();
    }
    let (list, problems) = store.list().unwrap();
    assert_eq!(list.iter().map(|e| e.found_at).collect::<Vec<_>>(), [3, 2, 1]);
    assert!(problems.is_empty());
    let id = &list[0].finding.id;
    assert_eq!(store.ids(&id[..6]).unwrap(), std::slice::from_ref(id));
    assert_eq!(Store::of_file(&store.schedule_path(id)).unwrap().root(), store.root());
    assert!(Store::of_file(Path::new("/etc/passwd")).is_none());
    assert_eq!(store.clean().unwrap(), 3);
    assert_eq!(store.list().unwrap().0, []);
}

#[test]
fn damaged_findings_are_pointed_out_and_can_be_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    let good = evidence(1, confirmed(), "./a", "s");
    let id = good.finding.id.clone();
    store.add(&good).unwrap();
    for text in ["", "{", "[]", "{\"version\":99}"] {
        std::fs::write(store.folder().join(&id).join("finding.json"), text).unwrap();
        let (list, problems) = store.list().unwrap();
        assert_eq!((list.len(), problems.len()), (0, 1));
        assert!(problems[0].to_string().contains("finding.json"));
    }
    assert_eq!(store.add(&good).unwrap(), Added::New);
    assert_eq!(store.read(&id).unwrap().finding, good.finding);
}

/// Makes this test binary a process that adds findings for ever.
const ADDING: &str = "RADDLE_TEST_STORE";

#[test]
fn adds_for_ever_when_asked() {
    let Some(folder) = std::env::var_os(ADDING) else { return };
    let store = Store::at(folder);
    for number in 0.. {
        let basis = if number % 3 == 0 { Basis::rule() } else { confirmed() };
        let long = "step 1 1 lock\n".repeat(2000);
        let evidence = Evidence { code_id: number.to_string(), ..evidence(number % 40, basis, "./a", &long) };
        store.add(&evidence).unwrap();
    }
}

/// A kill at any moment loses at most the finding that was being written: whatever is visible is whole, and the next
/// process can go on.
#[test]
fn killed_at_random_moments_everything_in_the_store_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path().join("store"));
    let mut before = 0;
    for round in 0..40_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "adds_for_ever_when_asked", "--nocapture"])
            .env(ADDING, store.folder())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(5_000 + round * 7_919 % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let (list, problems) = store.list().unwrap();
        assert!(problems.is_empty(), "round {round}: {problems:?}");
        assert!(list.len() >= before, "round {round}: a finding was lost");
        before = list.len();
        for evidence in &list {
            let schedule = read_schedule(&store.schedule_path(&evidence.finding.id)).unwrap();
            assert_eq!(schedule.lines().count(), 2000, "round {round}: {}", evidence.finding.id);
        }
    }
    assert!(before > 0, "nothing was added in forty rounds");
    store.add(&evidence(1000, confirmed(), "./a", "s")).unwrap();
    let left: Vec<_> = std::fs::read_dir(store.folder())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(".adding"))
        .collect();
    assert!(left.is_empty(), "what was left unfinished is removed: {left:?}");
}

/// Several processes may add at the same time.
#[test]
fn writers_do_not_disturb_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::at(folder.path());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                for number in 0..20 {
                    let text = format!("{writer} {number}");
                    store.add(&evidence(number, confirmed(), "./a", &text)).unwrap();
                }
            });
        }
    });
    let (list, problems) = store.list().unwrap();
    assert_eq!((list.len(), problems.len()), (20, 0));
}
