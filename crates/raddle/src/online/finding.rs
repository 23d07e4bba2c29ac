//! From a report in numbers to a finding in words.

use raddle_findings::{Finding, Frame, Grade, HeldLock, Kind, Party};
use raddle_trace::report::{RawLock, RawParty, RawReport, RawThread, ReportKind};
use raddle_trace::symbols::{CodeFrame, Symbolizer};

pub const NAME: &str = "online";

/// Title of a potential deadlock.
pub const CYCLE: &str = "locks are taken in an order that can close a cycle";

/// Puts names to a report. What is seen while the program runs has happened: the grade is *confirmed*, except for what
/// could only happen in another order.
pub fn finding(report: &RawReport, symbols: &mut Symbolizer) -> Finding {
    let object = object(report, symbols);
    let parties: Vec<Party> = report.parties.iter().map(|party| describe(report, party, symbols)).collect();
    let (kind, grade) = match report.kind {
        ReportKind::DataRace => (Kind::DataRace, Grade::Confirmed),
        ReportKind::UseAfterFree => (Kind::UseAfterFree, Grade::Confirmed),
        ReportKind::LockOrder => (Kind::LockOrder, Grade::Predicted),
        ReportKind::ThreadLeak => (Kind::ThreadLeak, Grade::Confirmed),
        _ => (Kind::LockMisuse, Grade::Confirmed),
    };
    let message = match report.kind {
        ReportKind::DataRace => format!("data race on `{object}`"),
        ReportKind::UseAfterFree => {
            format!("`{object}` is released while another thread uses it: nothing orders the two")
        }
        ReportKind::LockOrder => CYCLE.to_owned(),
        ReportKind::UnlockNotHeld => format!("`{object}` is unlocked by a thread that does not hold it"),
        ReportKind::DoubleLock => format!("`{object}` is locked by the thread that already holds it"),
        ReportKind::DestroyedHeld => format!("`{object}` is destroyed while it is held"),
        ReportKind::ReadUnlockNotHeld => {
            format!("the read lock `{object}` is given back by a thread that does not hold it")
        }
        ReportKind::ThreadLeak => "a thread has ended that nobody joins or detaches".to_owned(),
        ReportKind::Unknown(number) => {
            format!("the runtime reports something (kind {number}) that this raddle does not know")
        }
    };
    let mut finding = Finding::new(kind, grade, NAME, message, parties);
    finding.objects.push(object);
    finding.notes = notes(report, symbols);
    finding
}

fn object(report: &RawReport, symbols: &mut Symbolizer) -> String {
    match &report.block {
        Some(block) => match report.address.saturating_sub(block.start) {
            0 => format!("heap block of {} bytes", block.bytes),
            offset => format!("heap block of {} bytes+{offset:#x}", block.bytes),
        },
        None => symbols.describe(report.address),
    }
}

fn describe(report: &RawReport, party: &RawParty, symbols: &mut Symbolizer) -> Party {
    Party {
        thread: thread_name(&report.threads, party.thread),
        action: action(report.kind, party),
        stack: stack(&party.frames, symbols),
        locks: party.locks.iter().map(|lock| held(lock, symbols)).collect(),
    }
}

fn action(kind: ReportKind, party: &RawParty) -> String {
    use raddle_wire::record::access::{COMPOUND, VPTR};
    match kind {
        ReportKind::DataRace | ReportKind::UseAfterFree | ReportKind::Unknown(_) => {}
        ReportKind::ThreadLeak => return "was never joined".to_owned(),
        ReportKind::LockOrder => return "takes a lock".to_owned(),
        ReportKind::UnlockNotHeld | ReportKind::ReadUnlockNotHeld => return "unlocks".to_owned(),
        ReportKind::DoubleLock => return "locks".to_owned(),
        ReportKind::DestroyedHeld => return "destroys the lock".to_owned(),
    }
    if party.free {
        return "releases the memory".to_owned();
    }
    let verb = match (party.writes(), party.aux & COMPOUND != 0) {
        (true, true) => "reads and writes",
        (true, false) => "writes",
        (false, _) => "reads",
    };
    let plural = if party.bytes == 1 { "" } else { "s" };
    let what = if party.aux & VPTR != 0 {
        "the object's virtual table pointer".to_owned()
    } else {
        format!("{} byte{plural}", party.bytes)
    };
    let how = if party.atomic { " atomically" } else { "" };
    format!("{verb} {what}{how}")
}

fn held(lock: &RawLock, symbols: &mut Symbolizer) -> HeldLock {
    let name = symbols.describe(lock.object);
    let name = if lock.read { format!("{name} (read)") } else { name };
    HeldLock { lock: name, acquired: stack(&lock.frames, symbols) }
}

pub fn stack(frames: &[u64], symbols: &mut Symbolizer) -> Vec<Frame> {
    let mut stack = Vec::new();
    // Between a signal handler and what it interrupted stands the runtime, which is nobody's business.
    let ours =
        |frame: &CodeFrame| frame.function.as_ref().is_some_and(|name| name.starts_with("raddle_rt::"));
    for &pc in frames {
        stack.extend(symbols.frames(pc).iter().filter(|frame| !ours(frame)).map(|frame| Frame {
            function: frame.function.clone(),
            file: frame.file.clone(),
            line: frame.line,
            column: frame.column,
            raw: frame.raw.clone(),
        }));
    }
    stack
}

/// The spawn path: `1` is the main thread, `1.2` its second child.
fn thread_name(threads: &[RawThread], index: u32) -> String {
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
    if index == u32::MAX { "unknown".to_owned() } else { format!("#{index}") }
}

fn place(frames: &[u64], symbols: &mut Symbolizer) -> Option<String> {
    let stack = stack(frames, symbols);
    let frame = stack.iter().find(|frame| frame.file.is_some()).or(stack.first())?;
    let function = frame.function.as_deref().unwrap_or("?");
    Some(match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{function} at {file}:{line}"),
        _ => frame.raw.clone().unwrap_or_else(|| function.to_owned()),
    })
}

fn notes(report: &RawReport, symbols: &mut Symbolizer) -> Vec<String> {
    let mut notes = Vec::new();
    if report.parties.iter().any(|party| party.lost) {
        notes.push(
            "what the other thread did was pushed out of its history; run again with a larger --history-size to see its stack"
                .to_owned(),
        );
    }
    if let Some(block) = &report.block {
        let by = thread_name(&report.threads, block.thread);
        let at = place(&block.frames, symbols).map_or(String::new(), |place| format!(" in {place}"));
        notes.push(format!("the block of {} bytes was allocated by thread {by}{at}", block.bytes));
    }
    for party in &report.parties {
        let Some(thread) = report.threads.iter().find(|thread| thread.index == party.thread) else {
            continue;
        };
        let name = if thread.name.is_empty() { String::new() } else { format!(" `{}`", thread.name) };
        let parent = thread_name(&report.threads, thread.parent);
        let at = place(&thread.frames, symbols).map_or(String::new(), |place| format!(" in {place}"));
        let note = format!(
            "thread {}{name} was created by thread {parent}{at}",
            thread_name(&report.threads, thread.index)
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
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
        assert_eq!(thread_name(&threads, 0), "1");
        assert_eq!(thread_name(&threads, 3), "1.1.2");
        assert_eq!(thread_name(&threads, 5), "#5");
        assert_eq!(thread_name(&threads, 7), "#7", "a cycle in a damaged report ends");
        assert_eq!(thread_name(&threads, u32::MAX), "unknown");
    }

    #[test]
    fn accesses_in_words() {
        let party = RawParty { aux: 8, bytes: 4, ..RawParty::default() };
        assert_eq!(action(ReportKind::DataRace, &party), "writes 4 bytes");
        let party = RawParty { bytes: 1, atomic: true, ..RawParty::default() };
        assert_eq!(action(ReportKind::DataRace, &party), "reads 1 byte atomically");
        let party = RawParty { free: true, ..RawParty::default() };
        assert_eq!(action(ReportKind::UseAfterFree, &party), "releases the memory");
    }
}
