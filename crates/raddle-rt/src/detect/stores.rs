//! The stores of one atomic location, in modification order.
//!
//! An element remembers what a later load needs to know to read from it: the value, the clock that an acquiring load
//! gets (`L` of fig. 3.12 at that store), who stored it when, and who has read it. Elements form a list whose order *is*
//! the modification order. Most stores go to its end; where the model allows it, one may be put in before others that
//! have already happened ([`super::weak`]).
//!
//! The list is bounded ([`STORES_MAX`]). The oldest element leaves first; what its release sequences still mean for
//! later relaxed stores of their threads stays behind in the location's list of sequences (`V` of fig. 3.12).
//!
//! # Release sequences
//!
//! A release sequence is found by walking back from where a store is put: over stores of the same thread and over
//! read-modify-writes, to the thread's last releasing store. Another thread's plain store ends the walk, as it ends the
//! sequence.

use super::clock::{self, Clock, Epoch, ObjectClock};
use super::pool::Pool;
use super::vars::{self, Var};

/// Elements of one location (Lidbury's thesis, §5.2.1).
pub const STORES_MAX: u32 = 128;

#[repr(C)]
pub struct Store {
    pub value: u64,
    /// What an acquiring load of this store gets.
    pub clock: ObjectClock,
    /// What the storing thread released, if it is not all of `clock`: a read-modify-write adds to what it found.
    pub own: ObjectClock,
    /// For each slot, the epoch of its first load from here; 0: none.
    pub readers: ObjectClock,
    /// Older and newer neighbours in modification order.
    pub older: *mut Store,
    pub newer: *mut Store,
    /// One more than the index of the storing thread; 0: the initial value.
    pub thread: u32,
    pub slot: u8,
    pub releases: bool,
    pub update: bool,
    /// Stored with `seq_cst`.
    pub sc: bool,
    /// Happens before the last `seq_cst` store.
    pub hidden: bool,
    /// Part of a release sequence that an earlier store of the same thread heads.
    pub continues: bool,
    /// Epoch of the store in its slot; 0: known to everybody.
    pub epoch: Epoch,
}

impl Store {
    pub const fn initial(value: u64) -> Store {
        Store {
            value,
            clock: ObjectClock::NONE,
            own: ObjectClock::NONE,
            readers: ObjectClock::NONE,
            older: core::ptr::null_mut(),
            newer: core::ptr::null_mut(),
            thread: 0,
            slot: 0,
            releases: false,
            update: false,
            sc: false,
            hidden: false,
            continues: false,
            epoch: 0,
        }
    }

    /// Does a clock reach as far as this store?
    #[inline]
    pub fn within(&self, clock: &Clock) -> bool {
        clock.times[usize::from(self.slot)] >= self.epoch
    }

    /// Is a load from here known to a thread?
    pub fn read_within(&mut self, clock: &Clock) -> bool {
        self.readers.any_within(clock)
    }

    pub fn is_last(&self) -> bool {
        self.newer.is_null()
    }

    fn clear(&mut self) {
        self.clock.clear();
        self.own.clear();
        self.readers.clear();
    }
}

/// The buffer of one location.
#[repr(C)]
pub struct Buffer {
    pub oldest: *mut Store,
    pub last: *mut Store,
    count: u32,
    /// Size of the atomic as a power of two: another size is another object.
    log2: u8,
    generation: u32,
}

impl Buffer {
    pub const NONE: Buffer = Buffer {
        oldest: core::ptr::null_mut(),
        last: core::ptr::null_mut(),
        count: 0,
        log2: 0,
        generation: 0,
    };

    /// Puts the buffer right before it is used: memory holds `value`, the atomic has this size. False: no memory.
    pub fn prepare(&mut self, value: u64, log2: u8) -> bool {
        // SAFETY: null or an element of the list, ours under the location's lock.
        let known =
            unsafe { self.last.as_ref() }.is_some_and(|last| last.value == value && self.log2 == log2);
        if !known {
            // Never used, or plain accesses or an overlapping atomic have changed it: a new object for us.
            self.clear();
            let Some(first) = STORES.take() else { return false };
            // SAFETY: fresh and ours.
            unsafe { first.write(Store::initial(value)) };
            (self.oldest, self.last, self.count, self.log2) = (first, first, 1, log2);
        } else if self.generation != clock::generation() {
            self.keep_last();
        }
        self.generation = clock::generation();
        true
    }

    /// Slots have started over, so that epochs no longer say who knows what: only the last store is left to read, and
    /// everybody knows it.
    fn keep_last(&mut self) {
        while self.oldest != self.last {
            let leaving = self.oldest;
            // SAFETY: an element of the list that is not the last one.
            unsafe {
                self.oldest = (*leaving).newer;
                give_back(leaving);
            }
        }
        // SAFETY: the only element that is left.
        unsafe {
            (*self.last).older = core::ptr::null_mut();
            (*self.last).slot = 0;
            (*self.last).epoch = 0;
            (*self.last).readers.clear();
        }
        self.count = 1;
    }

    pub fn clear(&mut self) {
        let mut at = self.oldest;
        while !at.is_null() {
            // SAFETY: elements of the list are ours under the location's lock.
            unsafe {
                let newer = (*at).newer;
                give_back(at);
                at = newer;
            }
        }
        *self = Buffer::NONE;
    }
}

/// If the next store lets the oldest go, that one's clock, to be used again.
pub fn spare_clock(var: &mut Var, behind: *mut Store) -> ObjectClock {
    if var.buffer.count < STORES_MAX || var.buffer.oldest == behind {
        return ObjectClock::NONE;
    }
    let leaving = leave(var);
    // SAFETY: out of the list, and ours.
    unsafe {
        let clock = core::mem::replace(&mut (*leaving).clock, ObjectClock::NONE);
        give_back(leaving);
        clock
    }
}

/// Puts a store behind `older` in modification order, and lets the oldest go if there are too many.
pub fn insert(var: &mut Var, older: *mut Store, store: Store) {
    let Some(at) = STORES.take() else { return };
    // SAFETY: fresh and ours; the neighbours are elements of the list, ours under the location's lock.
    unsafe {
        let newer = (*older).newer;
        at.write(Store { older, newer, ..store });
        (*older).newer = at;
        match newer.as_mut() {
            Some(newer) => newer.older = at,
            None => var.buffer.last = at,
        }
    }
    var.buffer.count += 1;
    if var.buffer.count > STORES_MAX {
        let leaving = leave(var);
        // SAFETY: out of the list, and ours.
        unsafe { give_back(leaving) };
    }
}

/// Takes the oldest store out of the list and keeps what its release sequences still mean.
fn leave(var: &mut Var) -> *mut Store {
    let leaving = var.buffer.oldest;
    // SAFETY: an element of the list, and not the only one.
    unsafe {
        let store = &mut *leaving;
        var.buffer.oldest = store.newer;
        (*store.newer).older = core::ptr::null_mut();
        if !store.update {
            vars::keep_sequence(var, store.thread);
        }
        if store.releases {
            let clock = if store.own.is_empty() { &mut store.clock } else { &mut store.own };
            match vars::sequence_of(var, store.thread) {
                Some(known) => known.copy_from(clock),
                None => vars::set_sequence(var, store.thread, clock.copy()),
            }
        }
    }
    var.buffer.count -= 1;
    leaving
}

/// What a relaxed store of `thread`, put behind `older`, still has of the thread's release sequence.
pub fn sequence(var: &mut Var, older: *mut Store, thread: u32) -> ObjectClock {
    let mut at = older;
    // SAFETY: null or an element of the list, ours under the location's lock.
    while let Some(store) = unsafe { at.as_mut() } {
        if store.thread == thread && store.releases {
            return if store.own.is_empty() { store.clock.copy() } else { store.own.copy() };
        }
        if store.thread != thread && !store.update {
            return ObjectClock::NONE;
        }
        at = store.older;
    }
    vars::sequence_of(var, thread).map_or(ObjectClock::NONE, ObjectClock::copy)
}

static STORES: Pool<Store> = Pool::new();

/// # Safety
/// The store is in no list any more.
unsafe fn give_back(at: *mut Store) {
    // SAFETY: by contract.
    unsafe {
        (*at).clear();
        STORES.give_back(at);
    }
}

pub fn reset_after_fork() {
    STORES.reset_after_fork();
}
