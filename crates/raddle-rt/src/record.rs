//! Writing records: per-thread slots of the shared region.
//!
//! No lock is shared between threads here. A thread fills its own slot; only when the slot is full does it look for
//! another one, by compare-exchange, and waits if the collector has fallen too far behind.

use crate::thread::home::each_frame;
use crate::thread::{Reader, Thread};
use crate::{message, real, run};
use core::sync::atomic::{Ordering, compiler_fence};
use raddle_wire::record::RECORD_BYTES;
use raddle_wire::region::{
    Header, SLOT_BYTES, SLOT_HEADERS_OFFSET, SLOT_RECORDS, SLOTS_MAX, SLOTS_OFFSET, SlotHeader, slot_state,
};
use raddle_wire::report::home;
use raddle_wire::{Record, SyncOp, Tag};

/// Most records that one event takes, without its stack.
const EVENT_RECORDS_MAX: usize = 8;
/// Most stack frames written with one event; deeper changes are written in several goes.
const PUSH_RECORDS_MAX: usize = 256;
/// How long the program waits for the collector at a time before it checks that the collector still lives.
const BACK_PRESSURE_WAIT_US: u64 = 10_000;

#[inline]
fn write(thread: &Thread, record: Record) {
    let at = thread.records.next.get();
    // SAFETY: `reserve` made room; the cursor is inside the thread's own slot.
    unsafe {
        (&raw mut (*at).word1).write_volatile(record.word1);
        compiler_fence(Ordering::Release);
        (&raw mut (*at).word0).write_volatile(record.word0);
        thread.records.next.set(at.add(1));
    }
}

/// Makes room for `count` records. False when recording has ended.
#[inline]
fn reserve(thread: &Thread, count: usize) -> bool {
    let room = (thread.records.end.get() as usize - thread.records.next.get() as usize) / RECORD_BYTES;
    room >= count || next_slot(thread)
}

/// Brings the reader's copy of the call stack up to date and makes room for one event.
#[inline]
fn begin(thread: &Thread) -> bool {
    if !thread.calls.is_known_to(Reader::Recorder) && !write_stack(thread) {
        return false;
    }
    reserve(thread, EVENT_RECORDS_MAX)
}

#[cold]
#[inline(never)]
fn write_stack(thread: &Thread) -> bool {
    let changes = thread.calls.changes_for(Reader::Recorder);
    if let Some(depth) = changes.cut_to {
        if !reserve(thread, 1) {
            return false;
        }
        write(thread, Record::new(Tag::Pop, 0, 0, depth as u64));
    }
    let mut at = changes.first_new;
    while at < changes.depth {
        let now = (changes.depth - at).min(PUSH_RECORDS_MAX);
        if !reserve(thread, now) {
            return false;
        }
        for depth in at..at + now {
            write(thread, Record::new(Tag::Push, 0, thread.calls.pc_at(depth), 0));
        }
        at += now;
    }
    thread.calls.catch_up(Reader::Recorder);
    true
}

pub fn access(thread: &Thread, pc: u64, aux: u8, address: usize) {
    if begin(thread) {
        write(thread, Record::new(Tag::Access, aux, pc, address as u64));
    }
}

pub fn range(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize) {
    if begin(thread) {
        write(thread, Record::new(Tag::Range, aux, pc, address as u64));
        write(thread, Record::new(Tag::Ext, 0, 0, bytes as u64));
    }
}

pub fn sync(thread: &Thread, pc: u64, op: SyncOp, object: u64, argument: u64) {
    if begin(thread) {
        let sequence = next_sequence();
        write(thread, Record::new(Tag::Sync, op as u8, pc, object));
        write(thread, Record::new(Tag::Ext, 0, argument, sequence));
    }
}

/// Where the calling thread lives.
pub fn home(thread: &Thread) {
    let stack = thread.home.stack();
    if reserve(thread, 2) {
        write(thread, Record::new(Tag::Home, home::STACK as u8, stack.start as u64, stack.end as u64));
        write(thread, Record::new(Tag::Home, home::THREAD_LOCAL as u8, 0, thread.home.pointer() as u64));
    }
}

/// Frames written at a time, outermost ones left out.
const FRAMES_MAX: usize = 128;

/// Where the frames of the calling thread lie, which others are about to hear of.
pub fn frames(thread: &Thread, pc: u64) {
    if !begin(thread) {
        return;
    }
    let mut written = 0;
    each_frame(thread, pc, |place, low| {
        if written < FRAMES_MAX && place.depth <= usize::from(u8::MAX) && reserve(thread, 2) {
            write(thread, Record::new(Tag::Frame, place.depth as u8, place.pc, place.address));
            write(thread, Record::new(Tag::Ext, 0, 0, low));
            written += 1;
        }
    });
}

/// Text that belongs to the event just written.
pub fn text(thread: &Thread, bytes: &[u8]) {
    const TEXT_BYTES: usize = 14;
    let bytes = &bytes[..bytes.len().min(TEXT_BYTES * 64)];
    let mut rest = bytes;
    loop {
        let now = rest.len().min(TEXT_BYTES);
        let mut low = [0u8; 8];
        let mut high = [0u8; 8];
        low[..now.min(6)].copy_from_slice(&rest[..now.min(6)]);
        if now > 6 {
            high[..now - 6].copy_from_slice(&rest[6..now]);
        }
        if !reserve(thread, 1) {
            return;
        }
        write(thread, Record::new(Tag::Text, now as u8, u64::from_le_bytes(low), u64::from_le_bytes(high)));
        rest = &rest[now..];
        if now < TEXT_BYTES {
            return;
        }
    }
}

/// One atomic operation, with the sequence number that was taken together with it.
pub struct AtomicEvent {
    pub pc: u64,
    pub aux: u8,
    pub address: usize,
    pub flags: u64,
    pub sequence: u64,
    pub read: u128,
    pub written: u128,
    pub wide: bool,
}

pub fn atomic(thread: &Thread, event: &AtomicEvent) {
    if begin(thread) {
        write(thread, Record::new(Tag::Atomic, event.aux, event.pc, event.address as u64));
        write(thread, Record::new(Tag::Ext, 0, event.flags, event.sequence));
        write(thread, Record::new(Tag::Ext, 0, 0, event.read as u64));
        write(thread, Record::new(Tag::Ext, 0, 0, event.written as u64));
        if event.wide {
            write(thread, Record::new(Tag::Ext, 0, 0, (event.read >> 64) as u64));
            write(thread, Record::new(Tag::Ext, 0, 0, (event.written >> 64) as u64));
        }
    }
}

/// A place in the global order for what follows: memory changes hands only through its allocation and its release.
fn mark(thread: &Thread, pc: u64) {
    let sequence = next_sequence();
    write(thread, Record::new(Tag::Sync, SyncOp::Other as u8, pc, 0));
    write(thread, Record::new(Tag::Ext, 0, 0, sequence));
}

pub fn alloc(thread: &Thread, pc: u64, address: usize, bytes: usize) {
    if begin(thread) {
        mark(thread, pc);
        write(thread, Record::new(Tag::Alloc, 0, pc, address as u64));
        write(thread, Record::new(Tag::Ext, 0, 0, bytes as u64));
    }
}

pub fn free(thread: &Thread, pc: u64, address: usize) {
    if begin(thread) {
        mark(thread, pc);
        write(thread, Record::new(Tag::Free, 0, pc, address as u64));
    }
}

pub fn next_sequence() -> u64 {
    run::header().map_or(0, |header| header.sequence.fetch_add(1, Ordering::SeqCst))
}

fn slot_header(header: &Header, index: u32) -> &SlotHeader {
    assert!((index as usize) < SLOTS_MAX, "a slot of the region");
    let base = core::ptr::from_ref(header) as usize;
    // SAFETY: the slot is one of the region's, which is mapped whole.
    unsafe { &*((base + SLOT_HEADERS_OFFSET) as *const SlotHeader).add(index as usize) }
}

/// Hands the current slot to the collector.
pub fn close_slot(thread: &Thread) {
    let Some(header) = run::header() else { return };
    if thread.records.next.get().is_null() {
        return;
    }
    let slot = slot_header(header, thread.records.slot.get());
    let left = (thread.records.end.get() as usize - thread.records.next.get() as usize) / RECORD_BYTES;
    assert!(left <= SLOT_RECORDS, "a slot is filled from its beginning to its end");
    let used = (SLOT_RECORDS - left) as u32;
    slot.records.store(used, Ordering::Relaxed);
    header.pending.fetch_add(1, Ordering::Relaxed);
    slot.state.store(slot_state::FULL, Ordering::Release);
    header.filled.fetch_add(1, Ordering::Release);
    real::futex_wake(&header.filled, 1);
    thread.records.next.set(core::ptr::null_mut());
    thread.records.end.set(core::ptr::null_mut());
}

#[cold]
#[inline(never)]
fn next_slot(thread: &Thread) -> bool {
    let Some(header) = run::header() else { return false };
    close_slot(thread);
    loop {
        if header.pending.load(Ordering::Relaxed) < header.pending_max
            && let Some(index) = take_slot(header)
        {
            let slot = slot_header(header, index);
            slot.thread.store(thread.index(), Ordering::Relaxed);
            slot.ordinal.store(thread.records.ordinal.get(), Ordering::Relaxed);
            slot.image.store(run::image(), Ordering::Relaxed);
            thread.records.slot.set(index);
            thread.records.ordinal.set(thread.records.ordinal.get() + 1);
            header.slots_high.fetch_max(index + 1, Ordering::Relaxed);
            let base = core::ptr::from_ref(header) as usize;
            let start = base + SLOTS_OFFSET + index as usize * SLOT_BYTES;
            thread.records.next.set(start as *mut Record);
            thread.records.end.set((start + SLOT_BYTES) as *mut Record);
            return true;
        }
        let seen = header.emptied.load(Ordering::Acquire);
        if !real::process_exists(header.collector_pid) {
            message::warning(format_args!("the recording process is gone; the program goes on unrecorded"));
            run::stop();
            thread.access.enabled.set(0);
            return false;
        }
        real::futex_wait(&header.emptied, seen, Some(BACK_PRESSURE_WAIT_US));
    }
}

fn take_slot(header: &Header) -> Option<u32> {
    (0..SLOTS_MAX as u32).find(|&index| {
        let state = &slot_header(header, index).state;
        state.load(Ordering::Relaxed) == slot_state::FREE
            && state
                .compare_exchange(slot_state::FREE, slot_state::FILLING, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    })
}
