//! Writes STD text.
//!
//! The strict form knows plain accesses, mutexes, forks and joins. An atomic becomes an access under a lock of its own,
//! which keeps the order that it makes; what has no equivalent (conditions, barriers, semaphores, ...) is left out and
//! counted, so that the caller can say so. The extended form writes everything that the reader reads.
//!
//! Variables are aligned 8-byte granules: accesses of different sizes to one granule meet, also where their bytes do
//! not; an access across granules becomes one line for each.

use crate::event::{AtomicKind, Event, Op, Patience};
use crate::ids::{Addr, LocationIx};
use crate::ops_about;
use crate::source::{EventSource, TraceError};
use crate::tables::{Location, Tables};
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// r, w, acq, rel, fork, join.
    Strict,
    /// Everything the reader knows.
    Extended,
}

/// How many events could not be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    pub events: u64,
}

/// An access larger than this is written by its first bytes only.
const GRANULES_MAX: u64 = 4096;

struct StdWriter<'o, W> {
    out: &'o mut W,
    dialect: Dialect,
    variables: FxHashMap<u64, u32>,
    objects: FxHashMap<u64, u32>,
    /// Which locks are read-write locks held for reading, to choose the release.
    reading: FxHashSet<(u32, u64)>,
    unwritten: Unwritten,
}

/// Writes a whole trace.
pub fn write_std<W: Write>(
    source: &mut dyn EventSource,
    out: &mut W,
    dialect: Dialect,
) -> Result<Unwritten, TraceError> {
    let mut writer = StdWriter {
        out,
        dialect,
        variables: FxHashMap::default(),
        objects: FxHashMap::default(),
        reading: FxHashSet::default(),
        unwritten: Unwritten::default(),
    };
    let mut batch = Vec::new();
    loop {
        source.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        for event in &batch {
            writer.event(event, source.tables()).map_err(|error| TraceError {
                file: "output".into(),
                place: "end".into(),
                problem: format!("cannot write: {error}"),
            })?;
        }
    }
    Ok(writer.unwritten)
}

fn number(numbers: &mut FxHashMap<u64, u32>, id: u64) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(id).or_insert(next)
}

impl<W: Write> StdWriter<'_, W> {
    fn event(&mut self, event: &Event, tables: &Tables) -> std::io::Result<()> {
        let location = place(event.location, tables);
        let thread = event.thread.0;
        let strict = self.dialect == Dialect::Strict;
        let lock = |writer: &mut Self, word: &str, id: u64| {
            let number = number(&mut writer.objects, id);
            writeln!(writer.out, "T{thread}|{word}(L{number})|{location}")
        };
        match event.op {
            Op::Read { addr, size, .. } => self.access(thread, "r", addr, u64::from(size), location),
            Op::Write { addr, size, .. } => self.access(thread, "w", addr, u64::from(size), location),
            Op::Lock { lock: id, flags }
                if strict || !flags.rwlock && flags.patience == Patience::Blocking =>
            {
                lock(self, "acq", id.0)
            }
            Op::Lock { lock: id, flags } => lock(self, if flags.rwlock { "acqw" } else { "try" }, id.0),
            Op::ReadLock { lock: id, .. } if !strict => {
                self.reading.insert((thread, id.0));
                lock(self, "acqr", id.0)
            }
            Op::Unlock { lock: id, flags } if !strict && flags.rwlock => {
                let reading = self.reading.remove(&(thread, id.0));
                lock(self, if reading { "relr" } else { "relw" }, id.0)
            }
            // A strict trace has no read locks: neither their acquisition nor their release is written.
            Op::ReadLock { lock: id, .. } => {
                self.reading.insert((thread, id.0));
                self.unwritten.events += 1;
                Ok(())
            }
            Op::Unlock { lock: id, .. } if self.reading.remove(&(thread, id.0)) => {
                self.unwritten.events += 1;
                Ok(())
            }
            Op::Unlock { lock: id, .. } => lock(self, "rel", id.0),
            Op::Fork { child } => writeln!(self.out, "T{thread}|fork(T{})|{location}", child.0),
            Op::Join { child } => writeln!(self.out, "T{thread}|join(T{})|{location}", child.0),
            Op::Detach { child } if !strict => {
                writeln!(self.out, "T{thread}|detach(T{})|{location}", child.0)
            }
            Op::Atomic { addr, size, kind, .. } if strict => {
                // The lock's id cannot be that of a program's lock, which is aligned.
                lock(self, "acq", addr.0 | 1 << 63)?;
                if kind.reads() {
                    self.access(thread, "r", addr, u64::from(size), location)?;
                }
                if kind.writes() {
                    self.access(thread, "w", addr, u64::from(size), location)?;
                }
                lock(self, "rel", addr.0 | 1 << 63)
            }
            Op::Atomic { addr, kind, .. } => {
                let word = match kind {
                    AtomicKind::Load | AtomicKind::CasFailed => "ar",
                    AtomicKind::Store => "aw",
                    AtomicKind::Rmw => "arw",
                };
                self.access(thread, word, addr, 1, location)
            }
            // The six operations of the strict form imply these.
            Op::Start { .. } | Op::End | Op::Detach { .. } if strict => Ok(()),
            Op::Fence { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Lost { .. }
            | Op::Start { .. }
            | Op::JoinFailed { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::End
            | Op::LockFailed { .. }
            | Op::ReadLockFailed { .. }
            | Op::Request { .. }
            | ops_about!(
                Nothing, Condition, Barrier, Semaphore, Once, Futex, Annotated, Signal, Channel, Life
            ) => match strict {
                true => {
                    self.unwritten.events += 1;
                    Ok(())
                }
                false => self.extended(event, tables, location),
            },
        }
    }

    fn access(
        &mut self,
        thread: u32,
        word: &str,
        addr: Addr,
        size: u64,
        location: u32,
    ) -> std::io::Result<()> {
        let first = addr.0 / 8;
        let last = addr.0.saturating_add(size.max(1) - 1) / 8;
        for granule in first..=last.min(first + GRANULES_MAX) {
            let number = number(&mut self.variables, granule);
            writeln!(self.out, "T{thread}|{word}(V{number})|{location}")?;
        }
        Ok(())
    }

    fn extended(&mut self, event: &Event, tables: &Tables, location: u32) -> std::io::Result<()> {
        let thread = event.thread.0;
        let (word, first, second) = match event.op {
            Op::Request { lock, read, .. } => (if read { "reqr" } else { "req" }, Some(('L', lock.0)), None),
            Op::LockFailed { lock, .. } => ("tryfail", Some(('L', lock.0)), None),
            Op::WaitBegin { cond, lock } => ("waitbegin", Some(('L', cond.0)), Some(lock.0)),
            Op::Wait { cond, lock } => ("wait", Some(('L', cond.0)), Some(lock.0)),
            Op::WaitFailed { cond, lock } => ("waitfail", Some(('L', cond.0)), Some(lock.0)),
            Op::Signal { cond } => ("notify", Some(('L', cond.0)), None),
            Op::Broadcast { cond } => ("notifyall", Some(('L', cond.0)), None),
            Op::SemPost { sem } => ("post", Some(('L', sem.0)), None),
            Op::SemRequest { sem } => ("semreq", Some(('L', sem.0)), None),
            Op::SemWait { sem } => ("semwait", Some(('L', sem.0)), None),
            Op::BarrierEnter { barrier } => ("enter", Some(('L', barrier.0)), None),
            Op::BarrierExit { barrier } => ("exit", Some(('L', barrier.0)), None),
            Op::Release { object } | Op::Send { channel: object } | Op::OnceEnd { once: object } => {
                ("send", Some(('L', object.0)), None)
            }
            Op::Acquire { object } | Op::Receive { channel: object } | Op::OncePassed { once: object } => {
                ("recv", Some(('L', object.0)), None)
            }
            Op::Yield => ("yield", None, None),
            Op::Start { .. } => ("start", None, None),
            Op::End => ("exitthread", None, None),
            Op::Alloc { addr, size } => return self.access(thread, "alloc", addr, size, location),
            Op::Free { addr } => return self.access(thread, "free", addr, 1, location),
            Op::AtomicBegin { name } | Op::AtomicEnd { name } => {
                let word = if matches!(event.op, Op::AtomicBegin { .. }) { "begin" } else { "end" };
                let name = printable(tables.text(name));
                return if name.is_empty() {
                    writeln!(self.out, "T{thread}|{word}|{location}")
                } else {
                    writeln!(self.out, "T{thread}|{word}({name})|{location}")
                };
            }
            Op::Custom { name, object } => {
                let text = tables.text(name);
                if let Some((name, objects)) = numbered_fields(text) {
                    let name = printable(name);
                    let objects: String =
                        objects.map(|object| format!(",L{}", number(&mut self.objects, object))).collect();
                    return writeln!(self.out, "T{thread}|call({name}{objects})|{location}");
                }
                let name = printable(text);
                let name = if name.is_empty() { "unnamed".into() } else { name };
                let number = number(&mut self.objects, object.0);
                return writeln!(self.out, "T{thread}|call({name},L{number})|{location}");
            }
            Op::Read { .. }
            | Op::Write { .. }
            | Op::Atomic { .. }
            | Op::Fence { .. }
            | Op::Lost { .. }
            | Op::ProcessFork { .. }
            | Op::ProcessExec { .. }
            | Op::ProcessExit { .. }
            | Op::Fork { .. }
            | Op::Join { .. }
            | Op::JoinFailed { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::Lock { .. }
            | Op::ReadLock { .. }
            | Op::ReadLockFailed { .. }
            | Op::Unlock { .. }
            | Op::BarrierInit { .. }
            | Op::SemInit { .. }
            | Op::SemWaitFailed { .. }
            | Op::OnceBegin { .. }
            | Op::BenignRace { .. }
            | ops_about!(Futex, Signal, Life) => {
                self.unwritten.events += 1;
                return Ok(());
            }
        };
        let mut number = |id| number(&mut self.objects, id);
        match (first, second) {
            (None, _) => writeln!(self.out, "T{thread}|{word}|{location}"),
            (Some((letter, id)), None) => {
                let number = number(id);
                writeln!(self.out, "T{thread}|{word}({letter}{number})|{location}")
            }
            (Some((letter, id)), Some(lock)) => {
                let (cond, lock) = (number(id), number(lock));
                writeln!(self.out, "T{thread}|{word}({letter}{cond},L{lock})|{location}")
            }
        }
    }
}

/// A text without the characters that STD uses itself.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !c.is_control() && !"|(),".contains(*c)).collect()
}

/// STD locations are numbers: those of a converted trace keep theirs, others get the number of their table entry.
fn place(location: LocationIx, tables: &Tables) -> u32 {
    match tables.location(location) {
        Location::Foreign(number) => *number,
        Location::Unknown | Location::Pc(_) => location.0,
    }
}

/// Name and fields of a call whose fields are numbers.
fn numbered_fields(text: &str) -> Option<(&str, impl Iterator<Item = u64> + '_)> {
    let (name, fields) = text.strip_suffix(')')?.split_once('(')?;
    let fields = || fields.split(',').filter(|field| !field.is_empty());
    (!name.is_empty() && fields().all(|field| field.parse::<u64>().is_ok()))
        .then(|| (name, fields().filter_map(|field| field.parse().ok())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Shape, generate};
    use crate::source::MemoryTrace;
    use crate::std_format::StdReader;

    fn text(trace: &MemoryTrace, dialect: Dialect) -> (String, Unwritten) {
        let mut out = Vec::new();
        let unwritten = write_std(&mut trace.source(), &mut out, dialect).unwrap();
        (String::from_utf8(out).unwrap(), unwritten)
    }

    #[test]
    fn what_was_written_reads_back() {
        for seed in 0..50 {
            let shape = Shape { requests: true, ..Shape::locks_only(4, 3, 5, 200) };
            let trace = generate(&shape, seed);
            let (first, unwritten) = text(&trace, Dialect::Extended);
            assert_eq!(unwritten, Unwritten::default());
            let back = MemoryTrace::read(&mut StdReader::new(first.as_bytes(), "t", None)).unwrap();
            assert_eq!(back.events.len(), trace.events.len(), "seed {seed}");
            let (second, _) = text(&back, Dialect::Extended);
            assert_eq!(first, second, "seed {seed}");
        }
    }

    #[test]
    fn the_strict_form_has_six_operations() {
        let trace = generate(&Shape::everything(4, 500), 3);
        let (strict, unwritten) = text(&trace, Dialect::Strict);
        assert!(unwritten.events > 0);
        for line in strict.lines() {
            let op = line.split('|').nth(1).unwrap().split('(').next().unwrap();
            assert!(["r", "w", "acq", "rel", "fork", "join"].contains(&op), "{line}");
        }
        let back = MemoryTrace::read(&mut StdReader::new(strict.as_bytes(), "t", None)).unwrap();
        let acquires = back.events.iter().filter(|event| matches!(event.op, Op::Lock { .. })).count();
        let releases = back.events.iter().filter(|event| matches!(event.op, Op::Unlock { .. })).count();
        assert_eq!(acquires, releases);
    }
}
