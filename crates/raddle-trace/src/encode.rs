//! Turns events back into records: the inverse of [`crate::decode`].
//!
//! Used to store traces that did not come from a runtime (converted or generated ones) in Raddle's own format. The
//! observed order is kept completely: a recorded program does not know how the plain accesses of two threads were
//! ordered, but a converted trace says so; wherever the order goes over to another thread and continues with an event
//! that has no sequence number, a record of [`SyncOp::Other`] takes one and marks the place.

use crate::event::{AccessFlags, AtomicKind, Event, Op};
use crate::ids::{ContextIx, LocationIx, ThreadIx};
use crate::ops_about;
use crate::tables::{Location, Tables};
use raddle_wire::record::{LOW48, Record, SyncOp, Tag, access, atomic};

/// Bytes of text in one record.
const TEXT_RECORD_BYTES: usize = 14;

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
        if let Some((sync, object, argument)) = op.sync_words() {
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
            ops_about!(Sync) => {
                if let Some(text) = op.text() {
                    self.text(tables.text(text));
                }
            }
        }
    }
}
