//! From traces to findings: what is named, what is held, and which block of the heap is meant.

use raddle_detect::registry::{Settings, create};
use raddle_detect::report::{PartAction, Report, Subject};
use raddle_detect::run::run;
use raddle_detect::{Detector, Ideal, finding, witness};
use raddle_findings::naming::Namer;
use raddle_findings::object::Allocation;
use raddle_findings::{
    Access, Action, Basis, Detail, Fidelity, Finding, Grade, Kind, Object, Place, Remark, Role, Wait, What,
};
use raddle_trace::schedule::{Schedule, StepKind};
use raddle_trace::std_format::StdReader;
use raddle_trace::{
    AccessFlags, Addr, ContextIx, Event, EventSource, Location, LocationIx, LockFlags, MemoryTrace, ObjectId,
    Op, ThreadIx,
};

/// Findings of one detector in STD text.
fn findings(name: &str, text: &str) -> Vec<Finding> {
    let mut source = StdReader::new(text.as_bytes(), "trace.std", None);
    let mut detectors: Vec<Box<dyn Detector>> = vec![create(name, &Settings::default()).unwrap()];
    let outcome = run(&mut source, &mut detectors, &mut |_, _| true).unwrap();
    let mut namer = Namer::foreign(source.names());
    outcome.reports.iter().map(|r| finding(r, source.tables(), &outcome.names, &mut namer)).collect()
}

fn named(name: &str, what: What) -> Option<Object> {
    Some(Object::named(name, what))
}

fn raw(finding: &Finding) -> Vec<&str> {
    finding.parties.iter().map(|party| party.stack[0].raw.as_deref().unwrap()).collect()
}

#[test]
fn a_race_is_two_accesses_of_an_object() {
    let text = "T0|fork(T1)|1\nT0|acq(m)|2\nT0|w(x)|3\nT0|rel(m)|4\nT1|r(x)|5\n";
    for (name, grade) in [
        ("hb11", Grade::Unordered),
        ("fasttrack", Grade::Unordered),
        ("djit", Grade::Unordered),
        ("syncp", Grade::Predicted),
    ] {
        let found = findings(name, text);
        let [race] = &found[..] else { panic!("{name}: {found:?}") };
        assert_eq!((race.kind, race.by.as_str(), race.grade()), (Kind::DataRace, name, grade));
        assert_eq!(race.objects, [Object::named("x", What::Memory)]);
        assert_eq!(raw(race), ["L3", "L5"]);
        let accesses: Vec<Access> = race
            .parties
            .iter()
            .map(|party| match &party.action {
                Action::Accesses { access, bytes, object, .. } => {
                    assert!(*bytes > 0 && *object == named("x", What::Memory), "{name}");
                    *access
                }
                other => panic!("{name}: {other:?}"),
            })
            .collect();
        assert_eq!(accesses, [Access::Write, Access::Read], "{name}");
        let created = race.parties[1].created.as_ref().expect("it was forked");
        assert_eq!(
            (created.by.path.as_str(), created.stack[0].raw.as_deref()),
            (race.parties[0].thread.path.as_str(), Some("L1"))
        );
        let held: Vec<&Object> = race.parties[0].locks.iter().map(|held| &held.lock).collect();
        let expected = Object::named("m", What::Mutex);
        assert_eq!(held, if name == "syncp" { vec![&expected] } else { vec![] });
    }
    let ids: Vec<String> = ["hb11", "djit", "syncp"].map(|name| findings(name, text)[0].id.clone()).to_vec();
    assert!(ids.iter().all(|id| *id == ids[0]), "the same error has one id: {ids:?}");
}

#[test]
fn a_lockset_race_says_so() {
    let found = findings("eraser", "T0|fork(T1)|1\nT0|w(x)|2\nT1|w(x)|3\nT0|w(x)|4\n");
    assert_eq!((found[0].detail.clone(), found[0].basis.clone()), (Detail::NoCommonLock, Basis::rule()));
}

const AB_BA: &str = "T0|fork(T1)|1\nT0|acq(a)|2\nT0|acq(b)|3\nT0|rel(b)|4\nT0|rel(a)|5\n\
                     T1|acq(b)|6\nT1|acq(a)|7\nT1|rel(a)|8\nT1|rel(b)|9\nT0|join(T1)|10\n";

#[test]
fn a_lock_cycle_says_who_holds_what_since_where() {
    for (name, kind, basis) in [
        ("goodlock", Kind::Deadlock, Basis::rule()),
        ("lockdep", Kind::LockOrder, Basis::rule()),
        ("spd", Kind::Deadlock, Basis::model(true, Fidelity::KeepsReads)),
    ] {
        let found = findings(name, AB_BA);
        let [cycle] = &found[..] else { panic!("{name}: {found:?}") };
        assert_eq!((cycle.kind, &cycle.basis), (kind, &basis), "{name}");
        let told: Vec<_> = cycle
            .parties
            .iter()
            .map(|party| {
                let held = &party.locks[0];
                (party.action.clone(), held.lock.name.as_deref(), held.acquired[0].raw.as_deref())
            })
            .collect();
        let acquires = |name: &str| Action::Acquires { object: named(name, What::Mutex), read: false };
        let expected = [(acquires("b"), Some("a"), Some("L2")), (acquires("a"), Some("b"), Some("L6"))];
        assert_eq!(told, expected, "{name}");
    }
}

#[test]
fn a_deadlock_at_the_end_names_holders() {
    let found = findings("waitfor", "T0|fork(T1)|1\nT0|acq(a)|2\nT1|acq(b)|3\nT0|req(b)|4\nT1|req(a)|5\n");
    let deadlock = &found[0];
    assert_eq!((deadlock.grade(), &deadlock.detail), (Grade::Observed, &Detail::AtEndOfTrace));
    let [first, second] = &deadlock.parties[..] else { panic!("{deadlock:?}") };
    let waits = |name: &str, holder: &str| Action::Waits {
        wait: Wait::Lock,
        object: named(name, What::Mutex),
        holder: Some(holder.to_owned()),
        operation: String::new(),
    };
    assert_eq!(first.action, waits("b", &second.thread.path));
    assert_eq!(second.action, waits("a", &first.thread.path));
    assert_eq!(first.locks[0].lock, Object::named("a", What::Mutex));
    assert_eq!(second.locks[0].acquired[0].raw.as_deref(), Some("L3"));
}

#[test]
fn a_holder_that_has_ended_is_told() {
    let found = findings("blocked", "T0|fork(T1)|1\nT1|acq(m)|2\nT1|exitthread|3\nT0|req(m)|4\n");
    let blocked = &found[0];
    let holder = match &blocked.parties[0].action {
        Action::Waits { holder: Some(holder), .. } => holder.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(blocked.remarks, [Remark::HolderEnded { thread: holder }]);
    assert_eq!(blocked.grade(), Grade::Observed);
}

#[test]
fn a_missed_signal_names_both_sides() {
    let text =
        "T0|fork(T1)|1\nT1|notify(c)|2\nT1|exitthread|3\nT0|acq(m)|4\nT0|rel(m)|5\nT0|waitbegin(c,m)|6\n";
    let found = findings("missedsignal", text);
    let missed = &found[0];
    assert_eq!(missed.detail, Detail::MissedSignal { still_waits: true });
    assert_eq!(raw(missed), ["L2", "L6"]);
    assert_eq!(missed.parties[0].action, Action::SignalsNobody { object: named("c", What::Condition) });
    assert_eq!(missed.objects, [Object::named("c", What::Condition)]);
}

#[test]
fn a_cycle_of_regions_names_its_length() {
    let text = "T0|fork(T1)|1\nT0|begin|2\nT0|r(x)|3\nT1|w(x)|4\nT0|w(x)|5\nT0|end|6\n";
    for (name, regions) in [("velodrome", 2), ("aerodrome", 0)] {
        let found = findings(name, text);
        assert_eq!((found[0].grade(), &found[0].detail), (Grade::Observed, &Detail::Cycle { regions }));
        let roles: Vec<&Action> = found[0].parties.iter().map(|party| &party.action).collect();
        let closes = Action::Plays { role: Role::ClosesCycle, object: named("x", What::Memory) };
        assert_eq!(roles, [&Action::plays(Role::BeginsRegion), &closes], "{name}");
    }
}

#[test]
fn patterns_of_accesses_are_told_in_order() {
    let found = findings("avio", "T0|fork(T1)|1\nT0|r(x)|3\nT1|w(x)|4\nT0|r(x)|5\n");
    assert_eq!(found[0].detail, Detail::Pattern { accesses: "read write read".to_owned() });
    assert_eq!(found[0].objects, [Object::named("x", What::Memory)]);
}

#[test]
fn repetitions_are_counted() {
    let text = "T0|fork(T1)|1\nT0|w(x)|2\nT1|w(x)|3\nT0|w(x)|2\nT1|w(x)|3\n";
    let found = findings("djit", text);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].remarks, [Remark::Occurrences { times: 3 }]);
}

/// A trace made by hand.
#[derive(Default)]
struct Made(MemoryTrace);

impl Made {
    fn thread(&mut self) -> ThreadIx {
        self.0.tables.add_thread(Some(ThreadIx::MAIN))
    }

    fn push(&mut self, thread: ThreadIx, line: u32, op: Op) {
        let location = self.0.tables.intern_location(Location::Foreign(line));
        self.0.events.push(Event { thread, location, context: ContextIx::ROOT, kept_calls: 0, op });
    }

    fn findings(&self, name: &str) -> Vec<Finding> {
        let mut detectors: Vec<Box<dyn Detector>> = vec![create(name, &Settings::default()).unwrap()];
        let outcome = run(&mut self.0.source(), &mut detectors, &mut |_, _| true).unwrap();
        let mut namer = Namer::new(&[]);
        outcome.reports.iter().map(|r| finding(r, &self.0.tables, &outcome.names, &mut namer)).collect()
    }
}

fn block(object: &Object) -> (u64, u64, &str) {
    match &object.place {
        Place::Heap { bytes, offset, allocated: Some(allocated) } => {
            let Allocation { stack, .. } = &**allocated;
            (*bytes, *offset, stack[0].raw.as_deref().unwrap())
        }
        other => panic!("{other:?}"),
    }
}

/// Memory that is given out again is another object: each race names the allocation of its own time, though the second
/// block covers the first one's address, and though it was given out a third time before the reports were made.
#[test]
fn the_block_of_the_moment_is_named() {
    let mut made = Made::default();
    let other = made.thread();
    let main = ThreadIx::MAIN;
    let flags = AccessFlags::default();
    made.push(main, 1, Op::Fork { child: other });
    made.push(main, 10, Op::Alloc { addr: Addr(0x1010), size: 16 });
    made.push(main, 11, Op::Write { addr: Addr(0x1018), size: 8, flags });
    made.push(other, 12, Op::Write { addr: Addr(0x1018), size: 8, flags });
    made.push(main, 19, Op::Free { addr: Addr(0x1010) });
    made.push(main, 20, Op::Alloc { addr: Addr(0x1000), size: 64 });
    made.push(main, 21, Op::Write { addr: Addr(0x1018), size: 4, flags });
    made.push(other, 22, Op::Read { addr: Addr(0x1018), size: 4, flags });
    made.push(main, 29, Op::Free { addr: Addr(0x1000) });
    made.push(main, 30, Op::Alloc { addr: Addr(0x1018), size: 8 });
    for name in ["hb11", "fasttrack", "syncp"] {
        let found = made.findings(name);
        let [first, second] = &found[..] else { panic!("{name}: {found:?}") };
        assert_eq!(block(&first.objects[0]), (16, 8, "L10"), "{name}");
        assert_eq!(block(&second.objects[0]), (64, 0x18, "L20"), "{name}");
        assert_ne!(first.id, second.id);
        let bytes = |finding: &Finding| match finding.parties[0].action {
            Action::Accesses { bytes, .. } => bytes,
            _ => 0,
        };
        assert_eq!((bytes(first), bytes(second)), (8, 4), "{name}");
    }
}

/// What a deadlocked thread stands before is told as the operation that it is: not every lock is a mutex, and the mutex of a
/// condition wait is taken back by an operation of its own.
#[test]
fn blocks_of_a_schedule_are_of_the_right_kind() {
    let mut made = Made::default();
    let others = [made.thread(), made.thread(), made.thread()];
    let lock = ObjectId(0x40);
    let rwlock = LockFlags { rwlock: true, ..LockFlags::default() };
    let relock = LockFlags { wait: true, ..LockFlags::default() };
    made.push(ThreadIx::MAIN, 1, Op::Lock { lock, flags: LockFlags::default() });
    made.push(others[0], 2, Op::ReadLock { lock, flags: rwlock });
    made.push(others[1], 3, Op::Lock { lock, flags: relock });
    made.push(others[2], 4, Op::Request { lock, read: true, flags: rwlock });
    let mut report = Report::new("spd", Kind::Deadlock, Basis::model(true, Fidelity::KeepsReads));
    for (position, event) in made.0.events.iter().enumerate() {
        let action = PartAction::Acquires {
            subject: Some(Subject::Object(lock, What::Rwlock)),
            read: matches!(event.op, Op::ReadLock { .. } | Op::Request { read: true, .. }),
        };
        let site = raddle_detect::race::Site {
            thread: event.thread,
            location: event.location,
            position: position as u64,
            ..Default::default()
        };
        report = report.part(site.part(action));
    }
    report.witness = Some(Ideal::default());
    let mut asked = Vec::new();
    let mut source = |location: LocationIx| {
        asked.push(location);
        "bank.c:7".to_owned()
    };
    let schedule = witness::schedule(&report, &made.0, "deadlock 1", &mut source).unwrap();
    let kinds: Vec<StepKind> = schedule.blocks.iter().map(|block| block.kind).collect();
    assert_eq!(kinds, [StepKind::Lock, StepKind::ReadLock, StepKind::Relock, StepKind::ReadLock]);
    assert!(schedule.blocks.iter().all(|block| schedule.name(block.comment) == "bank.c:7"));
    assert_eq!(asked.len(), 4);
    assert_eq!(Schedule::parse(&schedule.to_text()).unwrap(), schedule);
}
