//! What threads did lately, so that a race can show both of its stacks.
//!
//! A shadow cell names an access by thread slot and epoch; where in the program it was made stands in the *history* of
//! the thread, a ring of 16-byte records:
//!
//! ```text
//! 63..56 aux   55..48 tag   47..0 pc or depth       word1: address, object, ...
//! ```
//!
//! Records say: a segment of a thread begins, the call stack shrinks to a depth, a call is pushed, an access, a range, a
//! release of memory, a lock taken or given back. The call stack is written lazily, as the recorder does: only when an
//! access follows. A ring consists of *parts*, each of which begins with everything that is needed to understand it (the
//! segment, the whole stack, the locks held), so that the oldest part can be overwritten.
//!
//! # Rings, threads and slots
//!
//! A thread that synchronises often goes through many slots, because each has only so many epochs. It takes its ring along:
//! there are no more rings than threads at a time, and what one thread did lately stands in one place. A slot therefore
//! only knows in which ring its last owner wrote, and a ring holds segments of several slots. They are told apart by
//! name; a slot's name holds how often it started over, so that old epochs are not taken for new ones.
//!
//! # Reading another thread's ring
//!
//! The owner writes without a lock while others may read. A part carries its number, which is zero while it is being
//! begun; a reader that finds the number changed after it has read a part throws away what it understood. Within a
//! part, a record's first word is written last, and the first record without a tag ends it.

use super::locks::{ACQUIRED_FRAMES, HeldLock};
use super::state;
use crate::arena;
use crate::thread::{Reader as StackReader, Thread};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering, compiler_fence};
use raddle_wire::Record;
use raddle_wire::record::{LOW48, RECORD_BYTES};
use raddle_wire::report::FRAMES_MAX;

pub const PART_RECORDS: usize = 1024;
const PARTS_DEFAULT: u32 = 16;
const PARTS_MAX: u32 = 1024;

/// Calls that a part repeats at its beginning.
const SNAPSHOT_FRAMES_MAX: usize = 256;
const SNAPSHOT_LOCKS_MAX: usize = 32;
/// Records that one event takes at most, without stack.
const EVENT_RECORDS_MAX: usize = 4;
/// Calls pushed with one event; deeper changes begin a new part.
const PUSHES_MAX: usize = 64;

mod tag {
    pub const PART: u8 = 1;
    pub const SEGMENT: u8 = 2;
    /// The stack is as deep as word1 says; what lies below is known.
    pub const POP: u8 = 3;
    pub const PUSH: u8 = 4;
    /// The stack is unknown up to this depth.
    pub const UNKNOWN_BELOW: u8 = 5;
    pub const ACCESS: u8 = 6;
    pub const ATOMIC: u8 = 7;
    pub const RANGE: u8 = 8;
    pub const FREE: u8 = 9;
    pub const ALLOC: u8 = 14;
    /// More of the record before it.
    pub const MORE: u8 = 10;
    pub const LOCK: u8 = 11;
    pub const UNLOCK: u8 = 12;
    pub const NO_LOCKS: u8 = 13;
}

struct Ring {
    /// Some thread writes to it.
    owned: AtomicBool,
    start: AtomicUsize,
    /// Number that the next part gets; the first is 1.
    next: AtomicU32,
    /// Where the last owner stopped.
    cursor: AtomicUsize,
    end: AtomicUsize,
}

static RINGS: [Ring; 256] = [const {
    Ring {
        owned: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        next: AtomicU32::new(1),
        cursor: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
    }
}; 256];

/// The ring in which a slot's last owner wrote; 0: none.
static RING_OF: [AtomicU8; 256] = [const { AtomicU8::new(0) }; 256];

static PARTS: AtomicU32 = AtomicU32::new(PARTS_DEFAULT);

/// Sets how many parts rings get that are not there yet.
pub fn configure(parts: u32) {
    if parts != 0 {
        PARTS.store(parts.clamp(2, PARTS_MAX), Ordering::Relaxed);
    }
}

fn parts() -> u32 {
    PARTS.load(Ordering::Relaxed)
}

fn part_start(ring: &Ring, number: u32) -> *mut Record {
    let start = ring.start.load(Ordering::Relaxed);
    (start + (number % parts()) as usize * PART_RECORDS * RECORD_BYTES) as *mut Record
}

#[inline(always)]
fn word(tag: u8, aux: u8, low: u64) -> u64 {
    low & LOW48 | u64::from(tag) << 48 | u64::from(aux) << 56
}

#[inline(always)]
fn write(thread: &Thread, word0: u64, word1: u64) {
    let at = thread.detection.history.get();
    // The cursor moves first: a signal handler that comes in between writes behind this record.
    // SAFETY: `reserve` made room; the cursor is inside the ring of the thread's slot.
    unsafe {
        thread.detection.history.set(at.add(1));
        compiler_fence(Ordering::Release);
        (&raw mut (*at).word1).write_volatile(word1);
        compiler_fence(Ordering::Release);
        (&raw mut (*at).word0).write_volatile(word0);
    }
}

#[inline(always)]
fn room(thread: &Thread) -> usize {
    (thread.detection.history_end.get() as usize).wrapping_sub(thread.detection.history.get() as usize)
        / RECORD_BYTES
}

/// What a segment is called: slot, epoch, and how often the slot had started over.
#[inline(always)]
fn name(slot: u32, epoch: u32, life: u32) -> u64 {
    (u64::from(slot | epoch << 8) | u64::from(life) << 22) & LOW48
}

const _: () = assert!(crate::shadow::EPOCH_MAX < 1 << 14);

/// A segment of the thread begins.
#[inline(always)]
fn segment(thread: &Thread) {
    let name = name(thread.access.slot(), thread.access.epoch(), thread.detection.slot_life.get());
    write(thread, word(tag::SEGMENT, 0, name), u64::from(thread.index()));
    thread.detection.history_segment.set(thread.access.segment.get());
}

/// Makes room for an event and brings segment and stack up to date. False without a ring.
#[inline(always)]
fn begin(thread: &Thread) -> bool {
    if room(thread) < EVENT_RECORDS_MAX && !next_part(thread) {
        return false;
    }
    if thread.detection.history_segment.get() != thread.access.segment.get() {
        segment(thread);
        if room(thread) < EVENT_RECORDS_MAX && !next_part(thread) {
            return false;
        }
    }
    if !thread.calls.is_known_to(StackReader::History) {
        return stack(thread);
    }
    true
}

#[inline(never)]
fn stack(thread: &Thread) -> bool {
    let changes = thread.calls.changes_for(StackReader::History);
    let pushes = changes.depth - changes.first_new;
    if pushes > PUSHES_MAX || room(thread) < pushes + 1 + EVENT_RECORDS_MAX {
        return next_part(thread);
    }
    if let Some(depth) = changes.cut_to {
        write(thread, word(tag::POP, 0, 0), depth as u64);
    }
    for depth in changes.first_new..changes.depth {
        push(thread, thread.calls.pc_at(depth));
    }
    thread.calls.catch_up(StackReader::History);
    true
}

fn push(thread: &Thread, pc: u64) {
    if room(thread) >= 1 {
        write(thread, word(tag::PUSH, 0, pc), 0);
    }
}

/// Begins a part: number, segment, stack, locks.
#[cold]
#[inline(never)]
fn next_part(thread: &Thread) -> bool {
    super::forget_if_asked();
    if !thread.access.has_slot() || thread.detection.history.get().is_null() {
        return false;
    }
    let ring = &RINGS[thread.detection.ring.get() as usize];
    let number = ring.next.load(Ordering::Relaxed);
    let start = part_start(ring, number);
    // SAFETY: the part lies in the ring, which is this thread's while it owns the slot.
    unsafe {
        (&raw mut (*start).word1).write_volatile(0);
        compiler_fence(Ordering::SeqCst);
        if number >= parts() {
            crate::arch::fill(start.cast(), 0, PART_RECORDS * RECORD_BYTES);
        }
        thread.detection.history.set(start);
        thread.detection.history_end.set(start.add(PART_RECORDS));
    }
    write(thread, word(tag::PART, 0, 0), u64::from(number));
    segment(thread);
    snapshot(thread);
    ring.next.store(number + 1, Ordering::Release);
    true
}

fn snapshot(thread: &Thread) {
    let depth = thread.calls.depth();
    let known = depth.min(SNAPSHOT_FRAMES_MAX);
    write(thread, word(tag::UNKNOWN_BELOW, 0, 0), (depth - known) as u64);
    for at in depth - known..depth {
        push(thread, thread.calls.pc_at(at));
    }
    thread.calls.catch_up(StackReader::History);
    write(thread, word(tag::NO_LOCKS, 0, 0), 0);
    if let Some(state) = state::of(thread) {
        for held in state.held.as_slice().iter().rev().take(SNAPSHOT_LOCKS_MAX).rev() {
            write(thread, word(tag::LOCK, u8::from(held.read), held.frames[0]), held.object as u64);
        }
    }
}

/// Takes a ring that nobody writes to: the thread's own last one, that of the slot's last owner, one that was never used,
/// or any. There are as many rings as slots, so there is one.
fn choose(thread: &Thread) -> Option<u32> {
    let take = |ring: u32| ring != 0 && !RINGS[ring as usize].owned.swap(true, Ordering::Acquire);
    let of_slot = u32::from(RING_OF[thread.access.slot() as usize].load(Ordering::Relaxed));
    let unused = |ring: &u32| RINGS[*ring as usize].start.load(Ordering::Relaxed) == 0;
    let rings = 1..RINGS.len() as u32;
    [thread.detection.ring.get(), of_slot]
        .into_iter()
        .chain(rings.clone().filter(unused))
        .chain(rings)
        .find(|&ring| take(ring))
}

/// The thread has a slot: it writes into a ring, from where the ring's last owner stopped.
pub fn attach(thread: &Thread) {
    let Some(chosen) = choose(thread) else { return };
    let ring = &RINGS[chosen as usize];
    if ring.start.load(Ordering::Relaxed) == 0 {
        let bytes = parts() as usize * PART_RECORDS * RECORD_BYTES;
        let Some(start) = arena::map(bytes) else {
            return ring.owned.store(false, Ordering::Release);
        };
        ring.start.store(start as usize, Ordering::Release);
        ring.cursor.store(start as usize, Ordering::Relaxed);
        ring.end.store(start as usize, Ordering::Relaxed);
    }
    thread.detection.ring.set(chosen);
    thread.detection.slot_life.set(super::DOMAIN.generations.restarted(thread.access.slot() as u8));
    RING_OF[thread.access.slot() as usize].store(chosen as u8, Ordering::Release);
    thread.detection.history.set(ring.cursor.load(Ordering::Relaxed) as *mut Record);
    thread.detection.history_end.set(ring.end.load(Ordering::Relaxed) as *mut Record);
    thread.detection.history_segment.set(0);
    let needed = SNAPSHOT_FRAMES_MAX + SNAPSHOT_LOCKS_MAX + 2 * EVENT_RECORDS_MAX;
    if room(thread) < needed {
        next_part(thread);
    } else {
        segment(thread);
        snapshot(thread);
    }
}

pub fn detach(thread: &Thread) {
    if thread.detection.history.get().is_null() {
        return;
    }
    let ring = &RINGS[thread.detection.ring.get() as usize];
    ring.cursor.store(thread.detection.history.get() as usize, Ordering::Relaxed);
    ring.end.store(thread.detection.history_end.get() as usize, Ordering::Relaxed);
    thread.detection.history.set(core::ptr::null_mut());
    thread.detection.history_end.set(core::ptr::null_mut());
    ring.owned.store(false, Ordering::Release);
}

/// A plain or atomic access of up to sixteen bytes.
#[inline(always)]
pub fn access(thread: &Thread, pc: u64, aux: u8, address: usize, atomic: bool) {
    if begin(thread) {
        let tag = if atomic { tag::ATOMIC } else { tag::ACCESS };
        write(thread, word(tag, aux, pc), address as u64);
    }
}

pub fn range(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize) {
    if begin(thread) {
        write(thread, word(tag::RANGE, aux, pc), address as u64);
        write(thread, word(tag::MORE, 0, 0), bytes as u64);
    }
}

pub fn free(thread: &Thread, pc: u64, address: usize, bytes: usize) {
    life(thread, tag::FREE, pc, address, bytes);
}

pub fn alloc(thread: &Thread, pc: u64, address: usize, bytes: usize) {
    life(thread, tag::ALLOC, pc, address, bytes);
}

fn life(thread: &Thread, tag: u8, pc: u64, address: usize, bytes: usize) {
    use raddle_wire::record::access::{LIBRARY, WRITE};
    if begin(thread) {
        write(thread, word(tag, LIBRARY | WRITE, pc), address as u64);
        write(thread, word(tag::MORE, 0, 0), bytes as u64);
    }
}

pub fn lock(thread: &Thread, pc: u64, object: usize, read: bool) {
    if begin(thread) {
        write(thread, word(tag::LOCK, u8::from(read), pc), object as u64);
    }
}

pub fn unlock(thread: &Thread, object: usize) {
    if begin(thread) {
        write(thread, word(tag::UNLOCK, 0, 0), object as u64);
    }
}

/// Which access is looked for: the shadow entry and the cell that it stands in.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub slot: u32,
    pub epoch: u32,
    pub cell: usize,
    pub mask: u32,
    pub read: bool,
    pub atomic: bool,
}

/// What was found about it.
pub struct Found {
    pub thread: u32,
    pub aux: u8,
    pub address: usize,
    pub bytes: usize,
    pub atomic: bool,
    pub free: bool,
    pub frames: [u64; FRAMES_MAX],
    pub locks: [HeldLock; SNAPSHOT_LOCKS_MAX],
    pub lock_count: usize,
}

impl Found {
    pub const fn new() -> Found {
        const NONE: HeldLock = HeldLock {
            object: 0,
            serial: 0,
            read: false,
            again: 0,
            robust: false,
            frames: [0; ACQUIRED_FRAMES],
        };
        Found {
            thread: 0,
            aux: 0,
            address: 0,
            bytes: 0,
            atomic: false,
            free: false,
            frames: [0; FRAMES_MAX],
            locks: [NONE; SNAPSHOT_LOCKS_MAX],
            lock_count: 0,
        }
    }
}

impl Default for Found {
    fn default() -> Self {
        Found::new()
    }
}

/// Room for understanding a part.
pub struct Reader {
    stack: [u64; STACK_MAX],
    depth: usize,
    unknown_below: usize,
    locks: [(usize, u64, bool); SNAPSHOT_LOCKS_MAX],
    lock_count: usize,
}

const STACK_MAX: usize = 1024;

impl Default for Reader {
    fn default() -> Self {
        Reader::new()
    }
}

impl Reader {
    pub const fn new() -> Reader {
        Reader {
            stack: [0; STACK_MAX],
            depth: 0,
            unknown_below: 0,
            locks: [(0, 0, false); SNAPSHOT_LOCKS_MAX],
            lock_count: 0,
        }
    }

    /// Looks for an access in the ring of its slot, newest part first. Fills `found` and says whether there is any.
    pub fn find(&mut self, wanted: &Wanted, found: &mut Found) -> bool {
        let ring = RING_OF[wanted.slot as usize].load(Ordering::Acquire);
        if ring == 0 {
            return false;
        }
        let ring = &RINGS[usize::from(ring)];
        let next = ring.next.load(Ordering::Acquire);
        let oldest = next.saturating_sub(parts()).max(1);
        (oldest..next).rev().any(|number| {
            let start = part_start(ring, number);
            // SAFETY: inside the ring (here and below).
            let is_there = || unsafe { (&raw const (*start).word1).read_volatile() } == u64::from(number);
            is_there() && self.find_in_part(start, wanted, found) && is_there()
        })
    }

    fn find_in_part(&mut self, start: *const Record, wanted: &Wanted, found: &mut Found) -> bool {
        self.depth = 0;
        self.unknown_below = 0;
        self.lock_count = 0;
        // The entry was found in a cell, and cells are wiped when a slot starts over: it is of the slot's present life.
        let life = super::DOMAIN.generations.restarted(wanted.slot as u8);
        let wanted_name = name(wanted.slot, wanted.epoch, life);
        // Lives begin and end with the last segment's name ([`super::marks`]).
        let behind = name(wanted.slot, wanted.epoch + 1, life);
        let mut current = (0, 0);
        let mut is_found = false;
        for ix in 1..PART_RECORDS {
            let record = self.record(start, ix);
            let low = record.low48();
            match record.tag_byte() {
                0 => break,
                tag::SEGMENT => current = (low, record.word1 as u32),
                tag::UNKNOWN_BELOW => {
                    self.unknown_below = record.word1 as usize;
                    self.depth = 0;
                }
                tag::POP => {
                    self.depth = (record.word1 as usize).saturating_sub(self.unknown_below).min(STACK_MAX)
                }
                tag::PUSH => {
                    if self.depth < STACK_MAX {
                        self.stack[self.depth] = low;
                    }
                    self.depth += 1;
                }
                tag::NO_LOCKS => self.lock_count = 0,
                tag::LOCK => self.take(record.word1 as usize, low, record.aux() != 0),
                tag::UNLOCK => self.give_back(record.word1 as usize),
                kind @ (tag::ACCESS | tag::ATOMIC | tag::RANGE | tag::FREE | tag::ALLOC)
                    if current.0
                        == if matches!(kind, tag::FREE | tag::ALLOC) { behind } else { wanted_name } =>
                {
                    let bytes =
                        if matches!(kind, tag::RANGE | tag::FREE | tag::ALLOC) && ix + 1 < PART_RECORDS {
                            self.record(start, ix + 1).word1 as usize
                        } else {
                            1usize << (record.aux() & raddle_wire::record::access::SIZE_MASK)
                        };
                    if fits(wanted, kind, record, bytes) {
                        self.tell(current.1, kind, record, bytes, found);
                        is_found = true;
                    }
                }
                _ => {}
            }
        }
        is_found
    }

    fn record(&self, start: *const Record, ix: usize) -> Record {
        // SAFETY: inside the part; the owner may be writing, which volatile reads tolerate.
        unsafe {
            let at = start.add(ix);
            let word0 = (&raw const (*at).word0).read_volatile();
            compiler_fence(Ordering::Acquire);
            Record { word0, word1: (&raw const (*at).word1).read_volatile() }
        }
    }

    fn take(&mut self, object: usize, pc: u64, read: bool) {
        if self.lock_count < SNAPSHOT_LOCKS_MAX {
            self.locks[self.lock_count] = (object, pc, read);
            self.lock_count += 1;
        }
    }

    fn give_back(&mut self, object: usize) {
        if let Some(at) = self.locks[..self.lock_count].iter().rposition(|lock| lock.0 == object) {
            self.locks.copy_within(at + 1..self.lock_count, at);
            self.lock_count -= 1;
        }
    }

    fn tell(&self, thread: u32, kind: u8, record: Record, bytes: usize, found: &mut Found) {
        found.thread = thread;
        found.aux = record.aux();
        found.address = record.word1 as usize;
        found.bytes = bytes;
        found.atomic = kind == tag::ATOMIC;
        found.free = kind == tag::FREE;
        found.frames = [0; FRAMES_MAX];
        found.frames[0] = record.low48();
        let calls = self.stack[..self.depth.min(STACK_MAX)].iter().rev();
        for (frame, &pc) in found.frames[1..].iter_mut().zip(calls) {
            *frame = pc;
        }
        found.lock_count = self.lock_count;
        for (lock, &(object, pc, read)) in found.locks.iter_mut().zip(&self.locks[..self.lock_count]) {
            let mut frames = [0; ACQUIRED_FRAMES];
            frames[0] = pc;
            *lock = HeldLock { object, serial: 0, read, again: 0, robust: false, frames };
        }
    }
}

/// Could this record have made the entry?
fn fits(wanted: &Wanted, kind: u8, record: Record, bytes: usize) -> bool {
    let read = record.aux() & raddle_wire::record::access::WRITE == 0;
    let start = record.word1 as usize;
    let end = start.saturating_add(bytes);
    if read != wanted.read || (kind == tag::ATOMIC) != wanted.atomic {
        return false;
    }
    // The record's address has all its bits, the cell only those of the window.
    let base = start & !crate::shadow::WINDOW_MASK & !7;
    let cell = wanted.cell | base;
    let (from, to) = (start.max(cell), end.min(cell + 8));
    if from >= to {
        return false;
    }
    let mask = ((1u32 << (to - from)) - 1) << (from - cell);
    mask & wanted.mask == wanted.mask
}
