//! Turns events back into records: the inverse of [`crate::decode`].
//!
//! Used to store traces that did not come from a runtime (converted or generated ones) in Raddle's own format. The
//! observed order is kept completely: a recorded program does not know how the plain accesses of two threads were
//! ordered, but a converted trace says so; wherever the order goes over to another thread and continues with an event
//! that has no sequence number, a record of [`SyncOp::Other`] takes one and marks the place.

use crate::event::{AccessFlags, AtomicKind, Event, LockFlags, ObjectKind, Op, Patience};
use crate::ids::{ContextIx, LocationIx, ThreadIx};
use crate::tables::{Location, Tables};
use raddle_wire::record::{LOW48, Record, SyncOp, Tag, access, atomic, lock};

/// Bytes of text in one record.
const TEXT_RECORD_BYTES: usize = 14;

/// Argument of a `MutexInit` that stands for a barrier or a semaphore whose count is not known. A runtime always knows
/// the count; only converted traces have these.
pub const INIT_BARRIER: u64 = 1 << 47;
pub const INIT_SEMAPHORE: u64 = 1 << 46;

/// Records of one thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadRecords {
    pub records: Vec<Record>,
    context: ContextIx,
    stack: Vec<LocationIx>,
}

/// The state of encoding one trace.
#[derive(Clone, Debug, Default)]
pub struct TraceEncoder {
    pub threads: Vec<ThreadRecords>,
    sequence: u64,
    last_thread: Option<ThreadIx>,
}

/// The number under which a location is stored, or `None` if it cannot be stored (an address of a later image).
pub fn location_code(location: &Location) -> Option<u64> {
    match *location {
        Location::Unknown => Some(0),
        Location::Pc(pc) => (pc <= LOW48).then_some(pc),
        Location::Foreign(number) => Some(u64::from(number) + 1),
    }
}

impl TraceEncoder {
    /// Appends the records of an event to those of its thread. Locations that cannot be stored become unknown.
    pub fn event(&mut self, event: &Event, tables: &Tables) {
        let ix = event.thread.index();
        if self.threads.len() <= ix {
            self.threads.resize_with(ix + 1, ThreadRecords::default);
        }
        let code = |location: LocationIx| location_code(tables.location(location)).unwrap_or(0);
        self.threads[ix].enter(event, tables, &code);
        let pc = code(event.location);
        let switched = self.last_thread != Some(event.thread);
        self.last_thread = Some(event.thread);
        let mut target = Target { records: &mut self.threads[ix].records, sequence: &mut self.sequence, pc };
        if switched && !has_sequence(&event.op) {
            target.sync(SyncOp::Other, 0, 0);
        }
        target.op(&event.op, tables);
    }
}

fn has_sequence(op: &Op) -> bool {
    !matches!(op, Op::Read { .. } | Op::Write { .. } | Op::Alloc { .. } | Op::Free { .. } | Op::Lost { .. })
}

impl ThreadRecords {
    /// Writes how the stack differs from the one of the event before.
    fn enter(&mut self, event: &Event, tables: &Tables, code: &dyn Fn(LocationIx) -> u64) {
        if event.context == self.context && event.kept_calls as usize >= self.stack.len() {
            return;
        }
        self.context = event.context;
        let mut stack = tables.stack(event.context);
        stack.reverse();
        let common = stack.iter().zip(&self.stack).take_while(|(a, b)| a == b).count();
        let common = common.min(event.kept_calls as usize);
        if common < self.stack.len() {
            self.records.push(Record::new(Tag::Pop, 0, 0, common as u64));
        }
        for &call in &stack[common..] {
            self.records.push(Record::new(Tag::Push, 0, code(call), 0));
        }
        self.stack = stack;
    }
}

struct Target<'a> {
    records: &'a mut Vec<Record>,
    sequence: &'a mut u64,
    pc: u64,
}

impl Target<'_> {
    fn next_sequence(&mut self) -> u64 {
        *self.sequence += 1;
        *self.sequence
    }

    fn sync(&mut self, op: SyncOp, object: u64, arg: u64) {
        let sequence = self.next_sequence();
        self.records.push(Record::new(Tag::Sync, op as u8, self.pc, object));
        self.records.push(Record::new(Tag::Ext, 0, arg, sequence));
    }

    fn access(&mut self, write: u8, addr: u64, size: u32, flags: AccessFlags) {
        let bits = [
            (flags.volatile, access::VOLATILE),
            (flags.vptr, access::VPTR),
            (flags.library, access::LIBRARY),
        ];
        let aux = bits.iter().filter(|(set, _)| *set).fold(write, |aux, (_, bit)| aux | bit);
        if size.is_power_of_two() && size <= 16 {
            self.records.push(Record::new(Tag::Access, aux | size.ilog2() as u8, self.pc, addr));
        } else {
            self.records.push(Record::new(Tag::Range, aux, self.pc, addr));
            self.records.push(Record::new(Tag::Ext, 0, 0, u64::from(size)));
        }
    }

    fn atomic(&mut self, code: u8, size: u8, order: u64, addr: u64, read: u64, written: u64) {
        let sequence = self.next_sequence();
        let log2 = size.max(1).ilog2() as u8;
        self.records.push(Record::new(Tag::Atomic, log2 | code << atomic::OP_SHIFT, self.pc, addr));
        self.records.push(Record::new(Tag::Ext, 0, order, sequence));
        self.records.push(Record::new(Tag::Ext, 0, 0, read));
        self.records.push(Record::new(Tag::Ext, 0, 0, written));
        if log2 == 4 {
            self.records.extend([Record::new(Tag::Ext, 0, 0, 0); 2]);
        }
    }

    fn text(&mut self, text: &str) {
        let mut rest = text.as_bytes();
        loop {
            let (now, later) = rest.split_at(rest.len().min(TEXT_RECORD_BYTES));
            let mut bytes = [0; 16];
            bytes[..now.len().min(6)].copy_from_slice(&now[..now.len().min(6)]);
            if now.len() > 6 {
                bytes[8..2 + now.len()].copy_from_slice(&now[6..]);
            }
            let halves = Record::from_bytes(bytes);
            self.records.push(Record::new(Tag::Text, now.len() as u8, halves.word0, halves.word1));
            if now.len() < TEXT_RECORD_BYTES {
                return;
            }
            rest = later;
        }
    }

    fn op(&mut self, op: &Op, tables: &Tables) {
        if let Some((sync, object, argument)) = sync_words(op) {
            self.sync(sync, object, argument);
        }
        match *op {
            Op::Read { addr, size, flags } => self.access(0, addr.0, size, flags),
            Op::Write { addr, size, flags } => self.access(access::WRITE, addr.0, size, flags),
            Op::Atomic { addr, size, kind, order, read, written } => {
                let code = match kind {
                    AtomicKind::Load => atomic::LOAD,
                    AtomicKind::Store => atomic::STORE,
                    AtomicKind::Rmw => atomic::EXCHANGE,
                    AtomicKind::CasFailed => atomic::CAS_FAILED,
                };
                self.atomic(code, size, order as u64, addr.0, read, written);
            }
            Op::Fence { order } => self.atomic(atomic::FENCE, 1, order as u64, 0, 0, 0),
            Op::Alloc { addr, size } => {
                self.records.push(Record::new(Tag::Alloc, 0, self.pc, addr.0));
                self.records.push(Record::new(Tag::Ext, 0, 0, size));
            }
            Op::Free { addr } => self.records.push(Record::new(Tag::Free, 0, self.pc, addr.0)),
            Op::Lost { count } => self.records.push(Record::new(Tag::Lost, 0, self.pc, count)),
            Op::ProcessExec { path: text }
            | Op::Custom { name: text, .. }
            | Op::AtomicBegin { name: text }
            | Op::AtomicEnd { name: text } => self.text(tables.text(text)),
            Op::Start { .. }
            | Op::End
            | Op::Fork { .. }
            | Op::Join { .. }
            | Op::JoinFailed { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::Request { .. }
            | Op::Lock { .. }
            | Op::LockFailed { .. }
            | Op::ReadLock { .. }
            | Op::ReadLockFailed { .. }
            | Op::Unlock { .. }
            | Op::Signal { .. }
            | Op::Broadcast { .. }
            | Op::WaitBegin { .. }
            | Op::Wait { .. }
            | Op::WaitFailed { .. }
            | Op::BarrierInit { .. }
            | Op::BarrierEnter { .. }
            | Op::BarrierExit { .. }
            | Op::SemInit { .. }
            | Op::SemRequest { .. }
            | Op::SemWait { .. }
            | Op::SemWaitFailed { .. }
            | Op::SemPost { .. }
            | Op::OnceBegin { .. }
            | Op::OnceEnd { .. }
            | Op::OncePassed { .. }
            | Op::Init { .. }
            | Op::Destroy { .. }
            | Op::FutexWake { .. }
            | Op::FutexWait { .. }
            | Op::FutexWaitFailed { .. }
            | Op::SignalEnter { .. }
            | Op::SignalExit { .. }
            | Op::ProcessFork { .. }
            | Op::ProcessExit { .. }
            | Op::Acquire { .. }
            | Op::Release { .. }
            | Op::BenignRace { .. }
            | Op::Yield => {}
        }
    }
}

/// The operation of the table that an event is, with its object and its argument in a record. `None` for accesses, atomics,
/// allocations and what else has records of its own.
pub fn sync_words(op: &Op) -> Option<(SyncOp, u64, u64)> {
    let object_op = |init: bool, kind: ObjectKind| match (init, kind) {
        (true, ObjectKind::Rwlock) => SyncOp::RwlockInit,
        (true, ObjectKind::Condition) => SyncOp::CondInit,
        (true, ObjectKind::Mutex | ObjectKind::Barrier | ObjectKind::Semaphore) => SyncOp::MutexInit,
        (false, ObjectKind::Mutex) => SyncOp::MutexDestroy,
        (false, ObjectKind::Rwlock) => SyncOp::RwlockDestroy,
        (false, ObjectKind::Condition) => SyncOp::CondDestroy,
        (false, ObjectKind::Barrier) => SyncOp::BarrierDestroy,
        (false, ObjectKind::Semaphore) => SyncOp::SemDestroy,
    };
    Some(match *op {
        Op::Start { parent } => (SyncOp::Start, 0, u64::from(parent.0)),
        Op::End => (SyncOp::End, 0, 0),
        Op::Fork { child } => (SyncOp::Fork, u64::from(child.0), 0),
        Op::Join { child } => (SyncOp::Join, u64::from(child.0), 0),
        Op::JoinFailed { child } => (SyncOp::JoinFailed, u64::from(child.0), 0),
        Op::Detach { child } => (SyncOp::Detach, u64::from(child.0), 0),
        Op::Cancel { thread } => (SyncOp::Cancel, u64::from(thread.0), 0),
        Op::Request { lock, read, flags } => {
            let mode = if read { lock::READ } else { 0 };
            (SyncOp::Request, lock.0, lock_bits(flags) | mode)
        }
        Op::Lock { lock, flags } => (SyncOp::Lock, lock.0, lock_bits(flags)),
        Op::LockFailed { lock, flags } => (SyncOp::LockFailed, lock.0, lock_bits(flags)),
        Op::ReadLock { lock, flags } => (SyncOp::ReadLock, lock.0, lock_bits(flags)),
        Op::ReadLockFailed { lock, flags } => (SyncOp::ReadLockFailed, lock.0, lock_bits(flags)),
        Op::Unlock { lock, flags } => (SyncOp::Unlock, lock.0, lock_bits(flags)),
        Op::Signal { cond } => (SyncOp::Signal, cond.0, 0),
        Op::Broadcast { cond } => (SyncOp::Broadcast, cond.0, 0),
        Op::WaitBegin { cond, lock } => (SyncOp::WaitBegin, cond.0, lock.0),
        Op::Wait { cond, lock } => (SyncOp::Wait, cond.0, lock.0),
        Op::WaitFailed { cond, lock } => (SyncOp::WaitFailed, cond.0, lock.0),
        Op::BarrierInit { barrier, count } => (SyncOp::BarrierInit, barrier.0, u64::from(count)),
        Op::BarrierEnter { barrier } => (SyncOp::BarrierEnter, barrier.0, 0),
        Op::BarrierExit { barrier } => (SyncOp::BarrierExit, barrier.0, 0),
        Op::SemInit { sem, value } => (SyncOp::SemInit, sem.0, u64::from(value)),
        Op::SemRequest { sem } => (SyncOp::SemRequest, sem.0, 0),
        Op::SemWait { sem } => (SyncOp::SemWait, sem.0, 0),
        Op::SemWaitFailed { sem } => (SyncOp::SemWaitFailed, sem.0, 0),
        Op::SemPost { sem } => (SyncOp::SemPost, sem.0, 0),
        Op::OnceBegin { once } => (SyncOp::OnceBegin, once.0, 0),
        Op::OnceEnd { once } => (SyncOp::OnceEnd, once.0, 0),
        Op::OncePassed { once } => (SyncOp::OncePassed, once.0, 0),
        Op::Init { object, kind } => {
            let arg = match kind {
                ObjectKind::Barrier => INIT_BARRIER,
                ObjectKind::Semaphore => INIT_SEMAPHORE,
                ObjectKind::Mutex | ObjectKind::Rwlock | ObjectKind::Condition => 0,
            };
            (object_op(true, kind), object.0, arg)
        }
        Op::Destroy { object, kind } => (object_op(false, kind), object.0, 0),
        Op::FutexWake { word, count } => (SyncOp::FutexWake, word.0, u64::from(count)),
        Op::FutexWait { word } => (SyncOp::FutexWait, word.0, 0),
        Op::FutexWaitFailed { word } => (SyncOp::FutexWaitFailed, word.0, 0),
        Op::SignalEnter { signal } => (SyncOp::SignalEnter, u64::from(signal), 0),
        Op::SignalExit { signal } => (SyncOp::SignalExit, u64::from(signal), 0),
        Op::ProcessFork { pid } => (SyncOp::ProcessFork, u64::from(pid), 0),
        Op::ProcessExec { .. } => (SyncOp::ProcessExec, 0, 0),
        Op::ProcessExit { status } => (SyncOp::ProcessExit, status as u32 as u64, 0),
        Op::Custom { object, .. } => (SyncOp::Custom, object.0, 0),
        Op::AtomicBegin { .. } => (SyncOp::AtomicBegin, 0, 0),
        Op::AtomicEnd { .. } => (SyncOp::AtomicEnd, 0, 0),
        Op::Acquire { object } => (SyncOp::Acquire, object.0, 0),
        Op::Release { object } => (SyncOp::Release, object.0, 0),
        Op::BenignRace { addr, size } => (SyncOp::BenignRace, addr.0, u64::from(size)),
        Op::Yield => (SyncOp::Yield, 0, 0),
        Op::Read { .. }
        | Op::Write { .. }
        | Op::Atomic { .. }
        | Op::Fence { .. }
        | Op::Alloc { .. }
        | Op::Free { .. }
        | Op::Lost { .. } => return None,
    })
}

fn lock_bits(flags: LockFlags) -> u64 {
    let patience = match flags.patience {
        Patience::Blocking => 0,
        Patience::Try => lock::TRY,
        Patience::Timed => lock::TIMED,
    };
    let bits = [
        (flags.rwlock, lock::RWLOCK),
        (flags.spin, lock::SPIN),
        (flags.wait, lock::WAIT),
        (flags.nested, lock::NESTED),
        (flags.owner_died, lock::OWNER_DIED),
    ];
    bits.iter().filter(|(set, _)| *set).fold(patience, |all, (_, bit)| all | bit)
}
