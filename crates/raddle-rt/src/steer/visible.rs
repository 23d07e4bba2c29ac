//! Plain accesses as visible operations: all of them, or those made at given places in the code.
//!
//! A compiler's hook stands before its access, so the access itself happens after the hook has returned. The turn of an
//! access therefore lasts until its thread comes to its next visible operation; only then is the next thread chosen. So
//! with visible accesses one thread runs at a time, and a program with data races behaves the same each time.

use super::{Detail, Request, noise, schedule, scheduler};
use crate::thread::{Busy, Thread};
use core::sync::atomic::{AtomicUsize, Ordering};
use raddle_wire::Header;
use raddle_wire::record::access::WRITE;
use raddle_wire::region::{BLOB_OFFSET, option, steer};
use raddle_wire::step::{self, SITE_WORDS};

const NONE: usize = 0;
const SITES: usize = 1;
const ALL: usize = 2;
static MODE: AtomicUsize = AtomicUsize::new(NONE);

/// Places are kept in a hash table: program counters are well spread.
const SITES_MAX: usize = 8192;
static TABLE: [AtomicUsize; SITES_MAX] = [const { AtomicUsize::new(0) }; SITES_MAX];

#[inline]
pub fn on() -> bool {
    MODE.load(Ordering::Relaxed) != NONE
}

pub fn start(header: &'static Header) {
    let mode = match header.options {
        options if options & option::VISIBLE_ALL != 0 => ALL,
        options if options & option::VISIBLE_SITES != 0 => SITES,
        _ => NONE,
    };
    if mode == SITES && matches!(header.steer, steer::CONTROL | steer::NOISE) {
        read_sites(header);
    }
    MODE.store(mode, Ordering::Relaxed);
}

/// Under control the blob ends with the sites, and their number is its last word.
fn read_sites(header: &'static Header) {
    let words = (core::ptr::from_ref(header) as usize + BLOB_OFFSET) as *const u64;
    let total = header.blob_bytes as usize / 8;
    // SAFETY: reads inside the mapped blob only.
    let word = |at: usize| unsafe { words.add(at).read_volatile() };
    let Some(last) = total.checked_sub(1) else { return };
    let count = word(last) as usize;
    let Some(start) = last.checked_sub(count.saturating_mul(SITE_WORDS)) else { return };
    for i in 0..count {
        let at = start + i * SITE_WORDS;
        add_site(word(at) as usize + schedule::module_bias(header, word(at + 1)));
    }
}

pub fn add_site(address: usize) {
    for probe in 0..SITES_MAX {
        let cell = &TABLE[address.wrapping_add(probe) % SITES_MAX];
        let found = cell.load(Ordering::Relaxed);
        if found == 0 || found == address {
            cell.store(address, Ordering::Relaxed);
            return;
        }
    }
}

fn is_site(address: usize) -> bool {
    for probe in 0..SITES_MAX {
        let found = TABLE[address.wrapping_add(probe) % SITES_MAX].load(Ordering::Relaxed);
        if found == 0 || found == address {
            return found != 0;
        }
    }
    false
}

#[cold]
#[inline(never)]
pub fn access(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize) {
    if MODE.load(Ordering::Relaxed) == SITES && !is_site(pc as usize) {
        return;
    }
    let kind = if aux & WRITE != 0 { step::WRITE } else { step::READ };
    if noise::on() {
        // The hook stands before the access.
        return noise::strike(thread, pc, kind, address, noise::Moment::Before);
    }
    if !super::on() {
        return;
    }
    let _busy = Busy::enter(thread);
    let detail = Detail { bytes: bytes as u32, ..Detail::NONE };
    super::turn(thread, Request { kind, object: address, pc }, detail);
    thread.turns.count_step();
    thread.turns.owes_turn.set(scheduler::begin_access(thread));
}
