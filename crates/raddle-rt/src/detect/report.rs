//! Telling the `raddle` process what was found.
//!
//! A report is composed in an entry of the shared region and complete before the program goes on. Each pair of places is
//! reported once. Because a racy loop would otherwise look up the same history again and again, a small table remembers
//! which combinations of place and cell were looked at already.

use super::history::{Found, Reader, Wanted};
use super::locks::{HeldLock, frames};
use super::{blocks, owner, program, state, thread_table};
use crate::shadow::{self, SLOT_SHIFT};
use crate::spin::Spin;
use crate::thread::{Busy, Thread};
use crate::{real, run};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use raddle_hb::cell::RELEASED;
use raddle_wire::region::{REPORTS_OFFSET, detect, option};
use raddle_wire::report::{
    self as wire, FRAMES_MAX, REPORT_WORDS, REPORTS_MAX, ReportEntry, kind, party, tag,
};

/// The access that found the race.
pub struct Access {
    pub pc: u64,
    pub aux: u8,
    pub address: usize,
    pub bytes: usize,
    pub atomic: bool,
    pub free: bool,
}

/// Only one thread at a time composes a report.
struct Workshop {
    reader: Reader,
    found: Found,
    reported: [u64; REPORTED_MAX],
}

const REPORTED_MAX: usize = 4096;

static WORKSHOP: Spin<Workshop> =
    Spin::new(Workshop { reader: Reader::new(), found: Found::new(), reported: [0; REPORTED_MAX] });

/// How often a combination of place, cell and other thread is looked into.
const LOOKS_MAX: u32 = 4;
const LOOKED: usize = 4096;
static LOOKED_AT: [AtomicU64; LOOKED] = [const { AtomicU64::new(0) }; LOOKED];

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value ^ value >> 29
}

/// Was this combination looked into often enough?
fn worn_out(pc: u64, cell: usize, old: u32) -> bool {
    let kind = old & (shadow::READ | shadow::ATOMIC | 0xff << SLOT_SHIFT);
    let key = mix(pc ^ mix(cell as u64 ^ u64::from(kind) << 20)) << 3;
    let entry = &LOOKED_AT[(key >> 40) as usize % LOOKED];
    let seen = entry.load(Ordering::Relaxed);
    if seen & !7 == key {
        if (seen & 7) as u32 >= LOOKS_MAX {
            return true;
        }
        entry.store(seen + 1, Ordering::Relaxed);
    } else {
        entry.store(key | 1, Ordering::Relaxed);
    }
    false
}

/// Ranges in which the program says that races are harmless.
const BENIGN_MAX: usize = 256;
static BENIGN: Spin<[(usize, usize); BENIGN_MAX]> = Spin::new([(0, 0); BENIGN_MAX]);
static BENIGN_COUNT: AtomicU32 = AtomicU32::new(0);

pub fn benign(address: usize, bytes: usize) {
    let at = BENIGN_COUNT.fetch_add(1, Ordering::Relaxed) as usize;
    if at < BENIGN_MAX {
        BENIGN.lock()[at] = (address, bytes);
    }
}

fn is_benign(address: usize, bytes: usize) -> bool {
    let count = (BENIGN_COUNT.load(Ordering::Relaxed) as usize).min(BENIGN_MAX);
    count > 0 && BENIGN.lock()[..count].iter().any(|&(at, size)| address < at + size && at < address + bytes)
}

/// Two accesses race: the thread's own, and the one that stands in the cell.
pub fn race(thread: &Thread, new: &Access, old: u32, cell: usize) {
    if worn_out(new.pc, cell, old) || is_benign(new.address, new.bytes) {
        return;
    }
    let _busy = Busy::enter(thread);
    let after_free = raddle_hb::cell::slot_of(old) == RELEASED;
    // Who has released it stands beside.
    let old = if after_free { shadow::cell(thread.access.shadow_base.get(), cell).entry(0) } else { old };
    let wanted = Wanted {
        slot: raddle_hb::cell::slot_of(old),
        epoch: raddle_hb::cell::epoch_of(old),
        cell: cell & shadow::WINDOW_MASK,
        mask: old & 0xff,
        read: old & shadow::READ != 0,
        atomic: old & shadow::ATOMIC != 0,
    };
    let entry = {
        let mut workshop = WORKSHOP.lock();
        let Workshop { reader, found, reported } = &mut *workshop;
        let is_found = reader.find(&wanted, found);
        let other_pc = if is_found { found.frames[0] } else { 0 };
        let block = blocks::find(new.address);
        let own: [u64; FRAMES_MAX] = frames(thread, new.pc);
        let others = if is_found { mix_calls(&found.frames) } else { 0 };
        // Added, not exclusive or: two threads that come by the same calls must not cancel out.
        let callers = mix_calls(&own).wrapping_add(others);
        let object = block.as_ref().map_or(new.address as u64, |block| mix_calls(&block.frames));
        if !is_another(reported, (new.pc, other_pc), callers, object) {
            return;
        }
        let free = new.free || is_found && found.free;
        let mut writer = match Writer::begin() {
            Some(writer) => writer,
            None => return,
        };
        let what = match (after_free, free) {
            (true, _) => kind::ACCESS_AFTER_FREE,
            (false, true) => kind::USE_AFTER_FREE,
            (false, false) => kind::DATA_RACE,
        };
        writer.item(tag::KIND, what, &[new.address as u64, new.bytes as u64], &[]);
        own_party(&mut writer, thread, new, &own);
        other_party(&mut writer, &wanted, is_found.then_some(&*found));
        if let Some(block) = block {
            writer.item(tag::BLOCK, block.thread, &[block.start as u64, block.bytes as u64], &block.frames);
        }
        let other = if is_found { found.thread } else { u32::MAX };
        let owner = writer.owner(new.address, thread, new.pc);
        writer.threads(&[thread.index(), other, owner]);
        writer.finish()
    };
    after(entry);
}

/// A number for the calls that lead somewhere.
fn mix_calls(frames: &[u64]) -> u64 {
    frames.iter().take_while(|&&pc| pc != 0).fold(1, |sum, &pc| mix(sum.rotate_left(7) ^ pc))
}

/// Races of two places that are told apart by their callers and objects. One is enough in a loop over an array; a helper that many
/// call has as many errors as callers.
const ALIKE_MAX: u64 = 4;

/// Is this race between two places another one than those that were told? It then counts as told.
fn is_another(reported: &mut [u64; REPORTED_MAX], places: (u64, u64), callers: u64, object: u64) -> bool {
    let (low, high) = (places.0.min(places.1), places.0.max(places.1));
    if was_reported(reported, mix(low) ^ callers, mix(high) ^ object) {
        return false;
    }
    (0..ALIKE_MAX).any(|number| !was_reported(reported, low ^ number << 56, high))
}

/// Is this the first report of its kind at this place?
pub fn is_first(pc: u64, what: u64) -> bool {
    !was_reported(&mut WORKSHOP.lock().reported, pc, !what)
}

fn was_reported(reported: &mut [u64; REPORTED_MAX], a: u64, b: u64) -> bool {
    let key = mix(mix(a.min(b)) ^ a.max(b)) | 1;
    let first = key as usize >> 20;
    for step in 0..REPORTED_MAX {
        let place = &mut reported[(first + step) % REPORTED_MAX];
        if *place == key {
            return true;
        }
        if *place == 0 {
            *place = key;
            return false;
        }
    }
    true
}

fn own_party(writer: &mut Writer, thread: &Thread, new: &Access, stack: &[u64]) {
    let mut word = u64::from(new.aux) | (new.bytes as u64) << party::BYTES_SHIFT;
    if new.atomic {
        word |= party::ATOMIC;
    }
    if new.free {
        word |= party::FREE;
    }
    writer.item(tag::PARTY, thread.index(), &[word, new.address as u64], stack);
    if let Some(state) = state::of(thread) {
        for held in state.held.as_slice() {
            writer.lock(held);
        }
    }
}

fn other_party(writer: &mut Writer, wanted: &Wanted, found: Option<&Found>) {
    let write = if wanted.read { 0 } else { u64::from(raddle_wire::record::access::WRITE) };
    match found {
        Some(found) => {
            let mut word = u64::from(found.aux) | (found.bytes as u64) << party::BYTES_SHIFT;
            if found.atomic {
                word |= party::ATOMIC;
            }
            if found.free {
                word |= party::FREE;
            }
            writer.item(tag::PARTY, found.thread, &[word, found.address as u64], &found.frames);
            for lock in &found.locks[..found.lock_count] {
                writer.lock(lock);
            }
        }
        None => {
            let bytes = u64::from(wanted.mask.count_ones());
            let atomic = if wanted.atomic { party::ATOMIC } else { 0 };
            let word = write | atomic | party::LOST | bytes << party::BYTES_SHIFT;
            writer.item(tag::PARTY, u32::MAX, &[word, wanted.cell as u64], &[]);
        }
    }
}

/// An entry of the region that is being written.
pub struct Writer {
    entry: *mut ReportEntry,
    used: usize,
}

impl Writer {
    /// None when there is no entry left, or nobody to tell.
    pub fn begin() -> Option<Writer> {
        let header = run::header()?;
        let number = header.reports.fetch_add(1, Ordering::AcqRel) as usize;
        if number >= REPORTS_MAX {
            return None;
        }
        let base = core::ptr::from_ref(header) as usize;
        let entry = (base + REPORTS_OFFSET + number * size_of::<ReportEntry>()) as *mut ReportEntry;
        Some(Writer { entry, used: 0 })
    }

    fn word(&mut self, word: u64) {
        if self.used < REPORT_WORDS {
            // SAFETY: inside the entry, which the counter gave to us alone.
            unsafe { (&raw mut (*self.entry).body[self.used]).write_volatile(word) };
            self.used += 1;
        }
    }

    /// One item; `frames` ends at the first zero. Left out if it does not fit.
    pub fn item(&mut self, tag: u8, small: u32, words: &[u64], frames: &[u64]) {
        let calls = frames.iter().position(|&pc| pc == 0).unwrap_or(frames.len());
        let count = words.len() + calls;
        if self.used + 1 + count > REPORT_WORDS {
            return;
        }
        self.word(wire::head(tag, count, small));
        for &word in words.iter().chain(&frames[..calls]) {
            self.word(word);
        }
    }

    /// A text; false if it does not fit.
    fn text(&mut self, which: u32, text: &[u8]) -> bool {
        let count = text.len().div_ceil(8) + 1;
        if count > REPORT_WORDS / 2 || self.used + 1 + count > REPORT_WORDS {
            return false;
        }
        self.word(wire::head(tag::TEXT, count, which));
        self.word(text.len() as u64);
        for piece in text.chunks(8) {
            let mut bytes = [0; 8];
            bytes[..piece.len()].copy_from_slice(piece);
            self.word(u64::from_le_bytes(bytes));
        }
        true
    }

    pub fn lock(&mut self, held: &HeldLock) {
        let mode = if held.read { wire::lock::READ } else { 0 };
        self.item(tag::LOCK, mode, &[held.object as u64], &held.frames);
    }

    /// Whose stack or thread-local memory an address is; returns the owner's number.
    pub fn owner(&mut self, address: usize, thread: &Thread, pc: u64) -> u32 {
        let Some(owner) = owner::find(address, thread, pc) else { return u32::MAX };
        let mut words = [u64::from(owner.part), owner.pointer as u64, 0, 0];
        let mut used = 2;
        if let Some(frame) = owner.frame {
            words[2..].copy_from_slice(&[frame.pc, frame.address]);
            used = 4;
        }
        self.item(tag::OWNER, owner.thread, &words[..used], &[]);
        owner.thread
    }

    /// The named threads and their ancestors.
    pub fn threads(&mut self, threads: &[u32]) {
        let mut reported = [u32::MAX; 16];
        let mut count = 0;
        for &thread in threads {
            let mut at = thread;
            while at != u32::MAX && count < reported.len() && !reported[..count].contains(&at) {
                reported[count] = at;
                count += 1;
                let Some(info) = thread_table::find(at) else { break };
                let name = |from: usize| {
                    let mut bytes = [0; 8];
                    bytes.copy_from_slice(&info.name[from..from + 8]);
                    u64::from_le_bytes(bytes)
                };
                let parent = u64::from(info.parent) | u64::from(info.ordinal) << 32;
                self.item(tag::THREAD, at, &[parent, name(0), name(8)], &info.frames);
                at = info.parent;
            }
        }
    }

    pub fn finish(self) -> *const ReportEntry {
        // SAFETY: the entry is ours; the reader looks at the body only after the state has changed.
        unsafe {
            (*self.entry).used.store(self.used as u32, Ordering::Relaxed);
            (*self.entry).state.store(wire::state::COMPLETE, Ordering::Release);
        }
        self.entry
    }
}

/// How long a program that halts at the first error waits for the `raddle` process to look at the report.
const ANSWER_TRIES: u32 = 2000;
const ANSWER_WAIT_US: u64 = 5000;

/// The program may want to end here.
pub fn after(entry: *const ReportEntry) {
    program::on_report(entry);
    let Some(header) = run::header() else { return };
    if !super::wants(option::HALT_ON_ERROR) || answer(entry) == wire::state::SUPPRESSED {
        return;
    }
    header.state.store(raddle_wire::region::state::EXITED, Ordering::Release);
    real::exit_group(super::value_of(detect::EXIT_STATUS) as i32)
}

/// Waits for what `raddle` says to an entry.
fn answer(entry: *const ReportEntry) -> u32 {
    let mut state = wire::state::COMPLETE;
    for _ in 0..ANSWER_TRIES {
        // SAFETY: the entry lies in the region, which is never unmapped.
        state = unsafe { (*entry).state.load(Ordering::Acquire) };
        if state != wire::state::COMPLETE {
            break;
        }
        real::sleep_us(ANSWER_WAIT_US);
    }
    state
}

/// Tells `raddle` what the program itself wants, if it says so, and waits until it was heard. True if it was.
pub fn announce_defaults() -> bool {
    let texts = [
        (wire::text::OPTIONS, program::default_options()),
        (wire::text::SUPPRESSIONS, program::default_suppressions()),
    ];
    if texts.iter().all(|(_, text)| text.is_none()) {
        return false;
    }
    let Some(mut writer) = Writer::begin() else { return false };
    for (which, text) in texts {
        let Some(text) = text else { continue };
        if !writer.text(which, text.to_bytes()) {
            crate::message::warning(format_args!(
                "the program's default options or suppressions are longer than {} bytes and are ignored",
                wire::REPORT_BYTES / 2
            ));
        }
    }
    answer(writer.finish()) == wire::state::SHOWN
}

pub fn reset_after_fork() {
    WORKSHOP.reset_after_fork();
    BENIGN.reset_after_fork();
}
