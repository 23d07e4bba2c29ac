//! The stores of one atomic location, in modification order.
//!
//! An element remembers what a later load needs to know to read from it: the value, the clock that an acquiring load
//! gets (`L` of fig. 3.12 at that store), who stored it when, and who has read it. Elements form a list whose order *is*
//! the modification order. Most stores go to its end; where the model allows it, one may be put in before others that
//! have already happened ([`crate::weak`]).
//!
//! The list is bounded ([`STORES_MAX`]). The oldest element leaves first; what its release sequences still mean for
//! later relaxed stores of their threads stays behind in the location's list of sequences (`V` of fig. 3.12).
//!
//! # Release sequences
//!
//! A release sequence is found by walking back from where a store is put: over stores of the same thread and over
//! read-modify-writes, to the thread's last releasing store. Another thread's plain store ends the walk, as it ends the
//! sequence.

use crate::clock::{Clock, Epoch};
use crate::domain::Domain;
use crate::host::Host;
use crate::location::Location;
use crate::object_clock::ObjectClock;

/// Elements of one location (Lidbury's thesis, §5.2.1).
pub const STORES_MAX: u32 = 128;

#[repr(C)]
pub struct Store {
    pub(crate) value: u64,
    /// What an acquiring load of this store gets.
    pub(crate) clock: ObjectClock,
    /// What the storing thread released, if it is not all of `clock`: a read-modify-write adds to what it found.
    pub(crate) own: ObjectClock,
    /// For each slot, the epoch of its first load from here; 0: none.
    pub(crate) readers: ObjectClock,
    /// Older and newer neighbours in modification order.
    pub(crate) older: *mut Store,
    pub(crate) newer: *mut Store,
    /// One more than the index of the storing thread; 0: the initial value.
    pub(crate) thread: u32,
    pub(crate) slot: u8,
    pub(crate) releases: bool,
    pub(crate) update: bool,
    /// Stored with `seq_cst`.
    pub(crate) sc: bool,
    /// Happens before the last `seq_cst` store.
    pub(crate) hidden: bool,
    /// Part of a release sequence that an earlier store of the same thread heads.
    pub(crate) continues: bool,
    /// Epoch of the store in its slot; 0: known to everybody.
    pub(crate) epoch: Epoch,
}

impl Store {
    pub(crate) const fn initial(value: u64) -> Store {
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
    pub(crate) fn within(&self, clock: &Clock) -> bool {
        clock.times[usize::from(self.slot)] >= self.epoch
    }

    /// Is a load from here known to a thread?
    pub(crate) fn read_within(&mut self, clock: &Clock) -> bool {
        self.readers.any_within(clock)
    }

    pub(crate) fn is_last(&self) -> bool {
        self.newer.is_null()
    }

    fn clear<H: Host>(&mut self, domain: &Domain<H>) {
        self.clock.clear(domain);
        self.own.clear(domain);
        self.readers.clear(domain);
    }
}

/// The buffer of one location.
#[repr(C)]
pub struct Buffer {
    pub(crate) oldest: *mut Store,
    pub(crate) last: *mut Store,
    count: u32,
    /// Size of the atomic as a power of two: another size is another object.
    log2: u8,
    generation: u32,
}

impl Buffer {
    pub(crate) const NONE: Buffer = Buffer {
        oldest: core::ptr::null_mut(),
        last: core::ptr::null_mut(),
        count: 0,
        log2: 0,
        generation: 0,
    };

    /// Puts the buffer right before it is used: memory holds `value`, the atomic has this size. False: no memory.
    ///
    /// `passed_on` is what was released to the location by other means than its stores: the C++ library writes the guard of a local static
    /// without us, and announces that the initialisation is over. Who reads such a value knows what was announced with it.
    pub(crate) fn prepare<H: Host>(
        &mut self,
        domain: &Domain<H>,
        (value, log2): (u64, u8),
        passed_on: &mut ObjectClock,
    ) -> bool {
        let generation = domain.generations.current();
        // SAFETY: null or an element of the list, ours under the location's lock.
        let known =
            unsafe { self.last.as_ref() }.is_some_and(|last| last.value == value && self.log2 == log2);
        if !known {
            // Never used, or plain accesses or an overlapping atomic have changed it: a new object for us.
            self.clear(domain);
            let Some(first) = domain.stores.take() else { return false };
            // SAFETY: fresh and ours.
            unsafe { first.write(Store { clock: passed_on.copy(domain), ..Store::initial(value) }) };
            (self.oldest, self.last, self.count, self.log2) = (first, first, 1, log2);
        } else if self.generation != generation {
            self.keep_last(domain);
        }
        self.generation = generation;
        true
    }

    /// Slots have started over, so that epochs no longer say who knows what: only the last store is left to read, and
    /// everybody knows it.
    fn keep_last<H: Host>(&mut self, domain: &Domain<H>) {
        while self.oldest != self.last {
            let leaving = self.oldest;
            // SAFETY: an element of the list that is not the last one.
            unsafe {
                self.oldest = (*leaving).newer;
                give_back(domain, leaving);
            }
        }
        // SAFETY: the only element that is left.
        unsafe {
            (*self.last).older = core::ptr::null_mut();
            (*self.last).slot = 0;
            (*self.last).epoch = 0;
            (*self.last).readers.clear(domain);
        }
        self.count = 1;
    }

    pub(crate) fn clear<H: Host>(&mut self, domain: &Domain<H>) {
        let mut at = self.oldest;
        while !at.is_null() {
            // SAFETY: elements of the list are ours under the location's lock.
            unsafe {
                let newer = (*at).newer;
                give_back(domain, at);
                at = newer;
            }
        }
        *self = Buffer::NONE;
    }
}

impl Location {
    /// If the next store lets the oldest go, that one's clock, to be used again.
    pub(crate) fn spare_clock<H: Host>(&mut self, domain: &Domain<H>, behind: *mut Store) -> ObjectClock {
        if self.buffer.count < STORES_MAX || self.buffer.oldest == behind {
            return ObjectClock::NONE;
        }
        let leaving = self.leave(domain);
        // SAFETY: out of the list, and ours.
        unsafe {
            let clock = core::mem::replace(&mut (*leaving).clock, ObjectClock::NONE);
            give_back(domain, leaving);
            clock
        }
    }

    /// Puts a store behind `older` in modification order, and lets the oldest go if there are too many.
    ///
    /// # Safety
    /// `older` is an element of this location's list.
    pub(crate) unsafe fn insert<H: Host>(&mut self, domain: &Domain<H>, older: *mut Store, mut store: Store) {
        let Some(at) = domain.stores.take() else { return store.clear(domain) };
        // SAFETY: fresh and ours; the neighbours are elements of the list, ours under the location's lock.
        unsafe {
            let newer = (*older).newer;
            at.write(Store { older, newer, ..store });
            (*older).newer = at;
            match newer.as_mut() {
                Some(newer) => newer.older = at,
                None => self.buffer.last = at,
            }
        }
        self.buffer.count += 1;
        if self.buffer.count > STORES_MAX {
            let leaving = self.leave(domain);
            // SAFETY: out of the list, and ours.
            unsafe { give_back(domain, leaving) };
        }
    }

    /// Takes the oldest store out of the list and keeps what its release sequences still mean.
    fn leave<H: Host>(&mut self, domain: &Domain<H>) -> *mut Store {
        let leaving = self.buffer.oldest;
        // SAFETY: an element of the list, and not the only one.
        unsafe {
            let store = &mut *leaving;
            self.buffer.oldest = store.newer;
            (*store.newer).older = core::ptr::null_mut();
            if !store.update {
                self.keep_sequence(domain, store.thread);
            }
            if store.releases {
                let clock = if store.own.is_empty() { &mut store.clock } else { &mut store.own };
                match self.sequence_of(store.thread) {
                    Some(known) => known.copy_from(domain, clock),
                    None => {
                        let clock = clock.copy(domain);
                        self.set_sequence(domain, store.thread, clock);
                    }
                }
            }
        }
        self.buffer.count -= 1;
        leaving
    }

    /// What a relaxed store of `thread`, put behind `older`, still has of the thread's release sequence.
    pub(crate) fn sequence<H: Host>(
        &mut self,
        domain: &Domain<H>,
        older: *mut Store,
        thread: u32,
    ) -> ObjectClock {
        let mut at = older;
        // SAFETY: null or an element of the list, ours under the location's lock.
        while let Some(store) = unsafe { at.as_mut() } {
            if store.thread == thread && store.releases {
                let clock = if store.own.is_empty() { &mut store.clock } else { &mut store.own };
                return clock.copy(domain);
            }
            if store.thread != thread && !store.update {
                return ObjectClock::NONE;
            }
            at = store.older;
        }
        self.sequence_of(thread).map_or(ObjectClock::NONE, |clock| clock.copy(domain))
    }
}

/// # Safety
/// The store is in no list any more.
unsafe fn give_back<H: Host>(domain: &Domain<H>, at: *mut Store) {
    // SAFETY: by contract.
    unsafe {
        (*at).clear(domain);
        domain.stores.give_back(at);
    }
}
