//! Lock dependencies: which lock was asked for while which others were held.
//!
//! A cycle of such dependencies among different threads is a potential deadlock (Havelund's GoodLock; the survey's §6). The
//! runtime only collects them, each kind once; the `raddle` process looks for cycles when the program has ended, however
//! it ended, because they are written into the shared region. Locks are told apart by serial numbers that change when an
//! object is destroyed, initialised or its memory released, so that an address that is used again is another lock.

use super::locks::HeldLock;
use super::thread_table;
use crate::run;
use core::sync::atomic::{AtomicU64, Ordering};
use raddle_wire::region::{DEPENDENCIES_OFFSET, option};
use raddle_wire::report::{self as wire, DEPENDENCY_WORDS, dependency, tag};

/// Kinds of dependency that are remembered as written. A forgotten one is written again.
const SEEN: usize = 1 << 14;
static SEEN_KEYS: [AtomicU64; SEEN] = [const { AtomicU64::new(0) }; SEEN];
/// Places in which a key may stand.
const PROBES: usize = 8;

/// Held locks that one dependency names: the last ones taken.
const HELD_MAX: usize = 256;
/// Calls told of the place where the lock is taken.
const FRAMES: usize = 8;

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value ^ value >> 29
}

fn is_new(key: u64) -> bool {
    let key = key | 1;
    let first = (key >> 40) as usize;
    for step in 0..PROBES {
        let place = &SEEN_KEYS[(first + step) % SEEN];
        match place.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(found) if found == key => return false,
            Err(_) => {}
        }
    }
    SEEN_KEYS[first % SEEN].store(key, Ordering::Relaxed);
    true
}

/// Generations of threads that are told; a path that is longer is not.
const GENERATIONS_MAX: usize = 16;

/// Which child of its parent a thread is, which one its parent is, and so on, and how many these are. None if an ancestor is no
/// longer in the table.
fn spawn_path(thread: u32) -> ([u32; GENERATIONS_MAX], usize) {
    let mut ordinals = [0; GENERATIONS_MAX];
    let (mut at, mut depth) = (thread, 0);
    while at != 0 {
        let Some(info) = thread_table::find(at).filter(|_| depth < GENERATIONS_MAX) else {
            return (ordinals, 0);
        };
        ordinals[depth] = info.ordinal;
        depth += 1;
        at = info.parent;
    }
    (ordinals, depth)
}

/// A thread takes `wanted` while it holds `held`.
pub fn note(thread: u32, wanted: &HeldLock, held: &[HeldLock]) {
    let Some(header) = run::header() else { return };
    if !super::wants(option::LOCK_ORDER) {
        return;
    }
    // The set of held locks: the order in which they were taken does not matter for the key.
    let set = held.iter().fold(0u64, |sum, lock| sum.wrapping_add(mix(lock.identity())));
    let key = mix(set ^ mix(wanted.identity() ^ u64::from(thread) << 32) ^ mix(wanted.frames[0]));
    if !is_new(key) {
        return;
    }
    let held = &held[held.len().saturating_sub(HELD_MAX)..];
    let calls = wanted.frames.iter().take(FRAMES).position(|&pc| pc == 0).unwrap_or(FRAMES);
    let (ordinals, depth) = spawn_path(thread);
    let count = 3 + calls + 1 + 3 * held.len() + depth;
    let start = header.dependency_words.fetch_add(count as u32 + 1, Ordering::Relaxed) as usize;
    if start + count + 1 > DEPENDENCY_WORDS {
        return;
    }
    let base = core::ptr::from_ref(header) as usize + DEPENDENCIES_OFFSET;
    let words = (base as *mut u64).wrapping_add(start);
    let mut at = 1;
    let mut put = |word: u64| {
        // SAFETY: inside the area, and the counter gave these words to us alone.
        unsafe { words.add(at).write_volatile(word) };
        at += 1;
    };
    put(wanted.object as u64);
    put(u64::from(wanted.serial));
    put(held.len() as u64 | if wanted.read { dependency::READ } else { 0 });
    wanted.frames[..calls].iter().for_each(|&pc| put(pc));
    put(0);
    for lock in held {
        put(lock.object as u64);
        put(u64::from(lock.serial) | if lock.read { dependency::HELD_READ } else { 0 });
        put(lock.frames[0]);
    }
    ordinals[..depth].iter().for_each(|&ordinal| put(u64::from(ordinal)));
    // SAFETY: as above; the head comes last, so a reader never sees half of a dependency.
    unsafe {
        (*words.cast::<AtomicU64>()).store(wire::head(tag::DEPENDENCY, count, thread), Ordering::Release)
    };
}
