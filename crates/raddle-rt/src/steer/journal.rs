//! Writing the journal of turns (`raddle_wire::journal`). Called with the scheduler's lock held, or inside a turn, so there
//! is one writer at a time and entries stand in the order of the turns.

use crate::{message, run};
use core::sync::atomic::{AtomicBool, Ordering};
use raddle_wire::Header;
use raddle_wire::journal::{Arrived, BORN, ENTRY_WORDS, EXIT, UNCHANGED, UNWRITTEN};
use raddle_wire::region::journal_offset;
use raddle_wire::step::StepWord;

static ON: AtomicBool = AtomicBool::new(false);

#[inline]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub fn start(header: &Header) {
    header.journal_bytes.store(0, Ordering::Relaxed);
    ON.store(header.journal_max != 0, Ordering::Relaxed);
}

/// Nothing more is written. Called with the scheduler's lock held.
pub fn stop() {
    ON.store(false, Ordering::Relaxed);
}

/// A thread exists now, whose parent has this index.
pub fn born(thread: u32, parent: u32) {
    let step = StepWord { thread: thread as u16, kind: BORN, failed: false, ordinal: parent };
    append(step, 0, 0, 0, |_| {});
}

pub fn turn(step: StepWord, pc: u64, object: u64) {
    append(step, pc, object, 0, |_| {});
}

/// In an exhaustive search: a thread has come to an operation.
pub fn arrived(arrived: &Arrived) {
    let [step, object, rest] = arrived.pack();
    append(StepWord::unpack(step), object, rest, 0, |_| {});
}

/// The turn just written left its object as it was.
pub fn unchanged(thread: u32) {
    mark(UNCHANGED, thread);
}

/// A turn that no schedule has.
pub fn unwritten(thread: u32) {
    mark(UNWRITTEN, thread);
}

/// The last turn of a run.
pub fn exit(thread: u32) {
    mark(EXIT, thread);
}

fn mark(kind: u8, thread: u32) {
    append(StepWord { thread: thread as u16, kind, failed: false, ordinal: 0 }, 0, 0, 0, |_| {});
}

/// A turn that brought something from outside: so many bytes, which `write` puts.
pub fn turn_with(step: StepWord, pc: u64, bytes: usize, write: impl FnOnce(&mut Sink)) {
    append(step, pc, bytes as u64, bytes, write);
}

/// Where the parts of a payload go, one after the other.
pub struct Sink {
    at: *mut u8,
    left: usize,
}

impl Sink {
    /// Parts beyond the announced size are cut.
    pub fn put(&mut self, part: &[u8]) {
        let bytes = part.len().min(self.left);
        // SAFETY: `left` bytes of the journal are still free for this payload.
        unsafe {
            crate::arch::copy_forward(self.at, part.as_ptr(), bytes);
            self.at = self.at.add(bytes);
        }
        self.left -= bytes;
    }
}

fn append(step: StepWord, pc: u64, object: u64, bytes: usize, write: impl FnOnce(&mut Sink)) {
    let (true, Some(header)) = (on(), run::header()) else { return };
    let used = header.journal_bytes.load(Ordering::Relaxed) as usize;
    let end = used + ENTRY_WORDS * 8 + bytes.next_multiple_of(8);
    if end > header.journal_max as usize {
        ON.store(false, Ordering::Relaxed);
        message::warning(format_args!(
            "the journal is full after {} MiB; the run goes on, but it cannot be repeated whole",
            header.journal_max >> 20
        ));
        return;
    }
    let start = core::ptr::from_ref(header) as usize + journal_offset(header) + used;
    // SAFETY: the journal was mapped with the region, and `end` is inside it.
    unsafe {
        let words = start as *mut u64;
        words.write(step.pack());
        words.add(1).write(pc);
        words.add(2).write(object);
        write(&mut Sink { at: words.add(ENTRY_WORDS).cast::<u8>(), left: bytes });
    }
    header.journal_bytes.store(end as u64, Ordering::Release);
}
