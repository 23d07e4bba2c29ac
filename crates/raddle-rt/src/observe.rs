//! What is done with an operation of the program, once it is known what it was.
//!
//! Every interposed function and every compiler hook ends in one of these functions. They are the only callers of the
//! recorder, so that a new primitive is added by calling them and nothing else.

use crate::steer::noise;
use crate::thread::{Busy, Thread};
use crate::{detect, record, run, segment, shadow, steer};
use raddle_wire::{SyncOp, step};

/// A synchronisation operation. The sequence number is taken here, so the call stands after an acquiring operation and
/// before a releasing one.
#[inline]
pub fn sync(thread: &Thread, pc: u64, op: SyncOp, object: usize, argument: u64) {
    if noise::on() {
        noise::event(thread, pc, op, object, argument, noise::Moment::Before);
    }
    let busy = Busy::enter(thread);
    if run::recording() {
        record::sync(thread, pc, op, object as u64, argument);
    }
    if detect::on() && !thread.access.is_sync_ignored() {
        detect::sync(thread, pc, op, object, argument);
    }
    after_sync(thread, op, argument);
    drop(busy);
    if noise::on() {
        noise::event(thread, pc, op, object, argument, noise::Moment::After);
    }
}

/// A synchronisation operation that carries a text.
pub fn sync_text(thread: &Thread, pc: u64, op: SyncOp, object: usize, argument: u64, text: &[u8]) {
    let _busy = Busy::enter(thread);
    if run::recording() {
        record::sync(thread, pc, op, object as u64, argument);
        record::text(thread, text);
    }
    if detect::on() && op == SyncOp::ThreadName {
        detect::thread_table::named(object as u32, text);
    }
    after_sync(thread, op, argument);
}

#[inline]
fn after_sync(thread: &Thread, op: SyncOp, argument: u64) {
    if step::of(op, argument) != step::NONE {
        thread.turns.count_step();
    }
    // Detection alone needs new segments only after releases, and begins them itself.
    if op.ends_segment() && (!detect::on() || run::recording()) {
        segment::advance(thread);
    }
}

/// A thread is about to give its mutex back and wait on a condition.
pub fn will_wait(thread: &Thread, pc: u64, condition: usize) {
    if detect::on() {
        let _busy = Busy::enter(thread);
        detect::objects::will_wait(thread, pc, condition);
    }
}

/// A plain access of `1 << (aux & 7)` bytes that the fast path could not settle.
#[inline]
pub fn access(thread: &Thread, pc: u64, aux: u8, address: usize) {
    let bytes = 1usize << (aux & raddle_wire::record::access::SIZE_MASK);
    if bytes > 8 || (address & 7) + bytes > 8 {
        if bytes == 16 && address & 7 == 0 && !detect::on() {
            return pair(thread, pc, aux, address);
        }
        return range_with(thread, pc, aux, address, bytes, true);
    }
    let read = if aux & raddle_wire::record::access::WRITE == 0 { shadow::READ } else { 0 };
    let mask = ((1u32 << bytes) - 1) << (address & 7);
    if detect::on() {
        let news = detect::cells::access(thread, pc, aux, address, mask, read);
        return after_detection(thread, pc, aux, address, bytes, news, true);
    }
    let _busy = Busy::enter(thread);
    if run::keep_redundant() || shadow::note(thread, address, mask, read) {
        steer::access(thread, pc, aux, address, bytes);
        if run::recording() {
            record::access(thread, pc, aux, address);
        }
    }
}

/// Two whole cells, which is what vectorised loops access.
#[inline]
fn pair(thread: &Thread, pc: u64, aux: u8, address: usize) {
    let read = if aux & raddle_wire::record::access::WRITE == 0 { shadow::READ } else { 0 };
    let first = shadow::note_whole(thread, address, read);
    if shadow::note_whole(thread, address + 8, read) || first || run::keep_redundant() {
        let _busy = Busy::enter(thread);
        keep(thread, pc, aux, address, 16, true);
    }
}

/// An access that the detector has seen, for those who also want it.
#[inline]
fn after_detection(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize, news: bool, sized: bool) {
    if !steer::on() && !run::recording() || !news && !run::keep_redundant() {
        return;
    }
    let _busy = Busy::enter(thread);
    keep(thread, pc, aux, address, bytes, sized);
}

/// An access that is news: to the scheduler, and into the trace.
fn keep(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize, sized: bool) {
    steer::access(thread, pc, aux, address, bytes);
    if !run::recording() {
        return;
    }
    if sized {
        record::access(thread, pc, aux, address);
    } else {
        record::range(thread, pc, aux & !raddle_wire::record::access::SIZE_MASK, address, bytes);
    }
}

/// An access to any number of bytes.
pub fn range(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize) {
    if bytes != 0 {
        range_with(thread, pc, aux, address, bytes, false);
    }
}

/// Ranges larger than this are recorded without asking the cells first: looking would cost more than it saves.
const RANGE_FILTER_BYTES_MAX: usize = 4096;

fn range_with(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize, sized: bool) {
    if detect::on() {
        let news = detect::cells::range(thread, pc, aux, address, bytes, sized);
        return after_detection(thread, pc, aux, address, bytes, news, sized);
    }
    let _busy = Busy::enter(thread);
    let read = if aux & raddle_wire::record::access::WRITE == 0 { shadow::READ } else { 0 };
    let mut news = run::keep_redundant() || bytes > RANGE_FILTER_BYTES_MAX;
    if !news {
        let end = address + bytes;
        let mut at = address;
        while at < end {
            let here = (8 - (at & 7)).min(end - at);
            if here == 8 {
                let entry = thread.access.segment.get() | 0xff | read;
                let known =
                    shadow::redundant_cells(thread.access.shadow_base.get(), at, (end - at) / 8, entry, read);
                if known > 0 {
                    at += 8 * known;
                    continue;
                }
                news |= shadow::note_whole(thread, at, read);
            } else {
                let mask = (((1u32 << here) - 1) << (at & 7)) & 0xff;
                news |= shadow::note(thread, at, mask, read);
            }
            at += here;
        }
    }
    if news {
        keep(thread, pc, aux, address, bytes, sized);
    }
}

pub fn alloc(thread: &Thread, pc: u64, address: usize, bytes: usize) {
    let _busy = Busy::enter(thread);
    if detect::on() {
        detect::alloc(thread, pc, address, bytes);
    } else if thread.access.are_enabled() {
        shadow::clear(address, bytes);
    }
    if run::records_allocations() {
        record::alloc(thread, pc, address, bytes);
    }
}

/// Memory is another object now, although nobody who is observed has made it so.
pub fn anew(address: usize, bytes: usize) {
    if detect::on() {
        detect::anew(address, bytes);
    }
}

pub fn free(thread: &Thread, pc: u64, address: usize) {
    if detect::on() {
        let _busy = Busy::enter(thread);
        detect::free(thread, pc, address);
    }
    if thread.turns.stops.get() != 0 {
        let _busy = Busy::enter(thread);
        // The whole block goes, so an access to any part of it conflicts.
        // SAFETY: the program is about to release the block, so it is one.
        let bytes = unsafe { crate::real::usable_size(address) }.max(1);
        steer::access(thread, pc, raddle_wire::record::access::WRITE, address, bytes);
    }
    if run::records_allocations() {
        let _busy = Busy::enter(thread);
        record::free(thread, pc, address);
    }
}
