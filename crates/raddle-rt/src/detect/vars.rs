//! Synchronisation objects: everything that clocks are passed through, found by address.
//!
//! Like the shadow cells, the table is a sparse mapping computed from the address: one 32-bit index for every eight bytes
//! of the program, of which only the pages near synchronisation objects exist. The index leads to a chain of objects,
//! one for each address in those eight bytes that was ever used to synchronise.
//!
//! Objects are never unmapped. When the memory that they stand in is released or allocated anew they are emptied and
//! used for other addresses, so that a later object at the same place does not inherit what the old one knew. A thread
//! that has found an object and takes its lock looks at the address again.

use super::DOMAIN;
use crate::shadow::WINDOW_BITS;
use crate::spin::{Spin, lock_word, unlock_word};
use crate::{arena, real};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use raddle_hb::Location;

/// Objects that may exist at once. Beyond that, further objects synchronise nothing and are said to.
const VARS_MAX: usize = 1 << 24;
const INDEX_BYTES: usize = (1 << WINDOW_BITS) / 8 * 4;
const INDEX_MASK: usize = (1 << WINDOW_BITS) - 1;

#[repr(C, align(64))]
pub struct Var {
    lock: AtomicU32,
    next: AtomicU32,
    address: AtomicUsize,
    /// What can be acquired from it.
    pub location: Location,
    /// Distinguishes objects that had the same address one after the other.
    pub serial: u32,
    /// One more than the thread that holds the lock in write mode; 0: nobody.
    pub holder: u32,
    /// Threads that wait on the condition, or are inside the barrier.
    pub waiters: u32,
    /// Those among them to whom a signal was sent; at a barrier, those who are there for the next generation.
    pub signalled: u32,
    /// How many a generation of the barrier needs; 0: not known, or generations cannot be told apart.
    pub needed: u32,
    /// Generations of the barrier so far.
    pub generation: u32,
    /// Threads that are on their way through and will look again, whatever stands at the address by then.
    pins: u32,
    /// Is it in no chain any more?
    loose: bool,
    /// How long the object lasts, if it is a lock that is annotated.
    pub lasting: super::Lasting,
}

const _: () = assert!(size_of::<Var>() <= 192);

static INDEX: AtomicUsize = AtomicUsize::new(0);
static VARS: AtomicUsize = AtomicUsize::new(0);
static SERIAL: AtomicU32 = AtomicU32::new(1);

struct Free {
    /// First free object, 0: none.
    first: u32,
    /// Objects ever used.
    used: u32,
}

static FREE: Spin<Free> = Spin::new(Free { first: 0, used: 0 });

/// Pages that may hold objects, by hash: looking here first makes releasing ordinary memory cheap.
static PAGES: [AtomicU8; 1 << 16] = [const { AtomicU8::new(0) }; 1 << 16];

fn page_hint(address: usize) -> &'static AtomicU8 {
    &PAGES[(address >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48]
}

pub fn reserve() -> bool {
    let (Some(index), Some(vars)) =
        (arena::map_sparse(None, INDEX_BYTES), arena::map_sparse(None, VARS_MAX * size_of::<Var>()))
    else {
        return false;
    };
    // SAFETY: the range is ours; a core dump does not need it.
    unsafe {
        let advise = |advice: i32| {
            real::syscall(libc::SYS_madvise, [index as usize, INDEX_BYTES, advice as usize, 0, 0, 0])
        };
        advise(libc::MADV_DONTDUMP);
        advise(libc::MADV_NOHUGEPAGE);
    }
    INDEX.store(index as usize, Ordering::Release);
    VARS.store(vars as usize, Ordering::Release);
    true
}

#[inline]
fn index_word(address: usize) -> &'static AtomicU32 {
    let at = INDEX.load(Ordering::Relaxed) + (address & INDEX_MASK) / 8 * 4;
    // SAFETY: every masked address leads into the reserved range.
    unsafe { &*(at as *const AtomicU32) }
}

#[inline]
fn var(ix: u32) -> *mut Var {
    let start = VARS.load(Ordering::Relaxed) as *mut Var;
    // SAFETY: indices are below VARS_MAX.
    unsafe { start.add(ix as usize) }
}

/// An object, locked.
pub struct Locked(*mut Var);

impl core::ops::Deref for Locked {
    type Target = Var;
    fn deref(&self) -> &Var {
        // SAFETY: objects are never unmapped, and this one is locked.
        unsafe { &*self.0 }
    }
}

impl core::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Var {
        // SAFETY: as above.
        unsafe { &mut *self.0 }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        unlock_word(&self.lock);
    }
}

/// Steps along a chain before it is walked anew: it may have been taken apart meanwhile.
const CHAIN_MAX: u32 = 64;

fn find(address: usize) -> (u32, Option<Locked>) {
    loop {
        let first = index_word(address).load(Ordering::Acquire);
        let mut ix = first;
        let mut steps = 0;
        while ix != 0 && steps < CHAIN_MAX {
            let at = var(ix);
            // SAFETY: objects are never unmapped; these fields are atomic.
            let (here, next) =
                unsafe { ((*at).address.load(Ordering::Acquire), (*at).next.load(Ordering::Acquire)) };
            if here == address {
                // SAFETY: as above.
                unsafe { lock_word(&(*at).lock) };
                let locked = Locked(at);
                if locked.address.load(Ordering::Relaxed) == address {
                    return (first, Some(locked));
                }
                steps = CHAIN_MAX;
                continue;
            }
            ix = next;
            steps += 1;
        }
        if steps < CHAIN_MAX {
            return (first, None);
        }
    }
}

/// The object at an address, if it has ever passed anything on.
pub fn get(address: usize) -> Option<Locked> {
    if INDEX.load(Ordering::Relaxed) == 0 {
        return None;
    }
    find(address).1
}

/// The object at an address, made if need be; none when there are too many.
pub fn get_or_make(address: usize) -> Option<Locked> {
    if INDEX.load(Ordering::Relaxed) == 0 {
        return None;
    }
    loop {
        let (first, found) = find(address);
        if found.is_some() {
            return found;
        }
        let ix = take()?;
        let at = var(ix);
        // SAFETY: taken from the free list, so ours alone until it is in a chain.
        unsafe {
            (*at).location = Location::NONE;
            (*at).holder = 0;
            (*at).waiters = 0;
            (*at).signalled = 0;
            (*at).needed = 0;
            (*at).generation = 0;
            (*at).pins = 0;
            (*at).loose = false;
            (*at).lasting = super::Lasting::Unknown;
            (*at).serial = SERIAL.fetch_add(1, Ordering::Relaxed);
            (*at).next.store(first, Ordering::Relaxed);
            lock_word(&(*at).lock);
            (*at).address.store(address, Ordering::Release);
        }
        let locked = Locked(at);
        page_hint(address).store(1, Ordering::Relaxed);
        if index_word(address).compare_exchange(first, ix, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return Some(locked);
        }
        locked.address.store(0, Ordering::Release);
        drop(locked);
        give_back(ix);
    }
}

fn take() -> Option<u32> {
    let mut free = FREE.lock();
    if free.first != 0 {
        let ix = free.first;
        // SAFETY: on the free list.
        free.first = unsafe { (*var(ix)).next.load(Ordering::Relaxed) };
        return Some(ix);
    }
    if free.used as usize + 1 >= VARS_MAX {
        return None;
    }
    free.used += 1;
    Some(free.used)
}

fn give_back(ix: u32) {
    let mut free = FREE.lock();
    // SAFETY: ours, out of all chains.
    unsafe { (*var(ix)).next.store(free.first, Ordering::Relaxed) };
    free.first = ix;
}

/// Empties an object: what stands at its address from now on is another one.
pub fn forget(address: usize) {
    let Some(mut var) = get(address) else { return };
    if var.pins != 0 {
        // It stays in the chain without an address until the memory is released, for those who are still inside.
        var.address.store(0, Ordering::Release);
        return;
    }
    var.clear();
    var.serial = SERIAL.fetch_add(1, Ordering::Relaxed);
}

/// Keeps an object for a thread that is inside: a barrier or a condition may be destroyed, and its memory released, before all have
/// returned who may. Returns the number by which it is found again.
pub fn pin(locked: &mut Locked) -> u32 {
    locked.pins += 1;
    // SAFETY: both lie in the table.
    unsafe { locked.0.offset_from(var(0)) as u32 }
}

/// The object that was pinned, for the last time.
pub fn unpin(number: u32) -> Pinned {
    let at = var(number);
    // SAFETY: objects are never unmapped.
    unsafe { lock_word(&(*at).lock) };
    Pinned { locked: core::mem::ManuallyDrop::new(Locked(at)), number }
}

/// A pinned object, locked; it is not pinned any longer when this ends.
pub struct Pinned {
    locked: core::mem::ManuallyDrop<Locked>,
    number: u32,
}

impl core::ops::Deref for Pinned {
    type Target = Var;
    fn deref(&self) -> &Var {
        &self.locked
    }
}

impl core::ops::DerefMut for Pinned {
    fn deref_mut(&mut self) -> &mut Var {
        &mut self.locked
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.pins = self.pins.saturating_sub(1);
        let over = self.pins == 0 && self.address.load(Ordering::Relaxed) == 0;
        let loose = over && self.loose;
        if over {
            self.clear();
        }
        // SAFETY: dropped once, here.
        unsafe { core::mem::ManuallyDrop::drop(&mut self.locked) };
        if loose {
            give_back(self.number);
        }
    }
}

impl Var {
    fn clear(&mut self) {
        self.location.clear(&DOMAIN);
        self.holder = 0;
        self.waiters = 0;
        self.signalled = 0;
        self.needed = 0;
        self.generation = 0;
        self.lasting = super::Lasting::Unknown;
    }
}

/// Pieces larger than this are not searched for objects.
const FORGET_BYTES_MAX: usize = 1 << 28;

/// Forgets the objects of a large piece by dropping the pages of the index. The objects themselves are not used again.
fn forget_whole(address: usize, bytes: usize) {
    let from = (INDEX.load(Ordering::Relaxed) + (address & INDEX_MASK) / 8 * 4).next_multiple_of(4096);
    let to = (from + bytes / 8 * 4).min(INDEX.load(Ordering::Relaxed) + INDEX_BYTES) & !4095;
    if to > from {
        arena::empty(from, to - from);
    }
}

/// A piece of memory has become something else: the objects in it are gone.
pub fn forget_range(address: usize, bytes: usize) {
    if INDEX.load(Ordering::Relaxed) == 0 {
        return;
    }
    if bytes > FORGET_BYTES_MAX {
        return forget_whole(address, bytes);
    }
    let end = address.saturating_add(bytes);
    let mut page = address & !4095;
    while page < end {
        if page_hint(page).load(Ordering::Relaxed) != 0 {
            let (mut at, to) = (page.max(address) & !7, (page + 4096).min(end));
            while at < to {
                let word = index_word(at);
                if word.load(Ordering::Relaxed) != 0 {
                    take_apart(word.swap(0, Ordering::AcqRel));
                }
                at += 8;
            }
        }
        page += 4096;
    }
}

fn take_apart(first: u32) {
    let mut ix = first;
    while ix != 0 {
        let at = var(ix);
        // SAFETY: out of the index, so nobody finds it any more; who has found it waits for the lock.
        unsafe {
            lock_word(&(*at).lock);
            let mut locked = Locked(at);
            let next = locked.next.load(Ordering::Relaxed);
            let pinned = locked.pins != 0;
            if !pinned {
                locked.clear();
            }
            locked.loose = pinned;
            locked.address.store(0, Ordering::Release);
            drop(locked);
            if !pinned {
                give_back(ix);
            }
            ix = next;
        }
    }
}

pub fn reset_after_fork() {
    FREE.reset_after_fork();
}
