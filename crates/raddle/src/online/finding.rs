//! From a report in numbers to a finding.

use raddle_findings::finding::Creation;
use raddle_findings::naming::{Call, Namer};
use raddle_findings::object::Allocation;
use raddle_findings::{
    Access, Action, Basis, Detail, Finding, HeldLock, Kind, Misuse, Object, Party, Place, Remark, Thread,
    What,
};
use raddle_trace::report::{About, Deed, RawLock, RawParty, RawReport, RawThread, ReportKind};
use raddle_trace::tables::Home;

pub const NAME: &str = "online";

/// Puts names to a report. A race rests on happens-before, misuse of a lock has happened before our eyes, and a lock order
/// is a rule that may be wrong.
pub(super) fn finding(report: &RawReport, namer: &mut Namer) -> Finding {
    let object = object(report, namer);
    let parties: Vec<Party> = report.parties.iter().map(|raw| party(report, raw, &object, namer)).collect();
    let (kind, basis, detail) = match report.kind {
        ReportKind::DataRace => (Kind::DataRace, Basis::unordered(), Detail::None),
        ReportKind::UseAfterFree => (Kind::UseAfterFree, Basis::unordered(), Detail::None),
        ReportKind::LockOrder => (Kind::LockOrder, Basis::rule(), Detail::None),
        ReportKind::ThreadLeak => (Kind::ThreadLeak, Basis::observed(), Detail::None),
        // It has happened, whatever orders the two.
        ReportKind::AccessAfterFree => (Kind::UseAfterFree, Basis::observed(), Detail::None),
        misused => {
            let misuse = Misuse::of(misused).expect("the others have been named");
            (Kind::LockMisuse, Basis::observed(), Detail::Misuse { misuse })
        }
    };
    // A thread that nobody joined is known by where it was created.
    let objects = if report.kind == ReportKind::ThreadLeak { Vec::new() } else { vec![object] };
    let mut finding = Finding::about(kind, NAME, basis, objects, parties, detail);
    if report.parties.iter().any(|party| party.lost) {
        finding.remarks.push(Remark::HistoryLost);
    }
    finding
}

fn object(report: &RawReport, namer: &mut Namer) -> Object {
    let what = match report.kind.about() {
        About::Memory => What::Memory,
        About::Rwlock => What::Rwlock,
        About::Mutex => What::Mutex,
    };
    match &report.block {
        Some(block) => {
            let allocated = Some(Box::new(Allocation {
                thread: Thread::at(thread_path(&report.threads, block.thread)),
                stack: namer.stack(&block.frames),
            }));
            let offset = report.address.saturating_sub(block.start);
            Object { name: None, what, place: Place::Heap { bytes: block.bytes, offset, allocated } }
        }
        None => Object { what, ..unallocated(report, namer) },
    }
}

/// Memory that is no block of the heap: static, or somebody's own.
fn unallocated(report: &RawReport, namer: &mut Namer) -> Object {
    let data = namer.data(report.address);
    let Some(owner) = report.owner.as_ref().filter(|_| !data.is_identified()) else { return data };
    let known = report.threads.iter().find(|thread| thread.index == owner.thread);
    let thread = Thread {
        path: thread_path(&report.threads, owner.thread),
        entry: None,
        name: known.map(|thread| thread.name.clone()).filter(|name| !name.is_empty()),
    };
    // The runtime has looked which part of it is meant.
    let stack = report.address..report.address.saturating_add(u64::from(owner.on_stack));
    let home = Home { stack, pointer: owner.pointer, frames: Vec::new() };
    let calls: Vec<Call> = owner.frame.iter().map(|&(pc, address)| Call { pc, address }).collect();
    namer.lived_in(&home, &calls, thread, report.address).unwrap_or(data)
}

fn party(report: &RawReport, raw: &RawParty, object: &Object, namer: &mut Namer) -> Party {
    let stack = namer.stack(&raw.frames);
    let known = report.threads.iter().find(|thread| thread.index == raw.thread);
    let outermost = stack.iter().rev().find(|frame| !frame.library && frame.function.is_some());
    let thread = Thread {
        path: thread_path(&report.threads, raw.thread),
        entry: outermost.and_then(|frame| frame.function.clone()),
        name: known.map(|thread| thread.name.clone()).filter(|name| !name.is_empty()),
    };
    let created = known.map(|thread| {
        let by = Thread::at(thread_path(&report.threads, thread.parent));
        Box::new(Creation { by, stack: namer.stack(&thread.frames) })
    });
    let locks = raw.locks.iter().map(|lock| held(lock, namer)).collect();
    Party { thread, action: action(report.kind, raw, object), stack, locks, created }
}

fn action(kind: ReportKind, party: &RawParty, object: &Object) -> Action {
    use raddle_wire::record::access::{COMPOUND, VPTR};
    let object = Some(object.clone());
    match kind.deed() {
        Deed::Accesses => {}
        Deed::Acquires => return Action::Acquires { object, read: false },
        Deed::Releases => return Action::Releases { object },
        Deed::Destroys => return Action::Destroys { object },
        Deed::IsAt => return Action::IsAt,
        Deed::IsLeaked => return Action::IsLeaked,
    }
    if party.free {
        return Action::Frees { object };
    }
    let access = match (party.writes(), party.aux & COMPOUND != 0) {
        (true, true) => Access::ReadWrite,
        (true, false) => Access::Write,
        (false, _) => Access::Read,
    };
    let vptr = party.aux & VPTR != 0;
    Action::Accesses { access, bytes: party.bytes, atomic: party.atomic, vptr, object }
}

fn held(lock: &RawLock, namer: &mut Namer) -> HeldLock {
    let object = Object { what: What::Mutex, ..namer.data(lock.object) };
    HeldLock { lock: object, read: lock.read, acquired: namer.stack(&lock.frames) }
}

/// The spawn path: `1` is the main thread, `1.2` its second child. Empty: not known.
pub fn thread_path(threads: &[RawThread], index: u32) -> String {
    let mut path = Vec::new();
    let mut at = index;
    // A path is as long as there are threads at most; damaged reports may have cycles.
    for _ in 0..=threads.len() {
        match threads.iter().find(|thread| thread.index == at) {
            Some(thread) => {
                path.push(thread.ordinal.to_string());
                at = thread.parent;
            }
            None if at == 0 => {
                path.push("1".to_owned());
                path.reverse();
                return path.join(".");
            }
            None => break,
        }
    }
    if index == u32::MAX { String::new() } else { format!("#{index}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(index: u32, parent: u32, ordinal: u32) -> RawThread {
        RawThread { index, parent, ordinal, ..RawThread::default() }
    }

    #[test]
    fn threads_are_named_by_their_path() {
        let threads = [thread(3, 1, 2), thread(1, 0, 1), thread(7, 8, 1), thread(8, 7, 1)];
        assert_eq!(thread_path(&threads, 0), "1");
        assert_eq!(thread_path(&threads, 3), "1.1.2");
        assert_eq!(thread_path(&threads, 5), "#5");
        assert_eq!(thread_path(&threads, 7), "#7", "a cycle in a damaged report ends");
        assert_eq!(thread_path(&threads, u32::MAX), "");
    }

    #[test]
    fn accesses_are_told_apart() {
        let what = Object::default();
        let access = |party: &RawParty| match action(ReportKind::DataRace, party, &what) {
            Action::Accesses { access, bytes, atomic, .. } => Some((access, bytes, atomic)),
            _ => None,
        };
        let party = RawParty { aux: 8, bytes: 4, ..RawParty::default() };
        assert_eq!(access(&party), Some((Access::Write, 4, false)));
        let party = RawParty { bytes: 1, atomic: true, ..RawParty::default() };
        assert_eq!(access(&party), Some((Access::Read, 1, true)));
        let party = RawParty { free: true, ..RawParty::default() };
        assert_eq!(access(&party), None);
    }
}
