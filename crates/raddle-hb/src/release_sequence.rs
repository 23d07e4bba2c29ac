//! What atomic operations pass on, by the rules of C and C++11.
//!
//! The rules are those of Lidbury's thesis, fig. 3.12 (Lidbury, Donaldson, *Dynamic race detection for C++11*, POPL
//! 2017): `C` what a thread knows, `L` what an acquire load of a location gets, `V` for each thread with a release
//! sequence on the location what survives of it when that thread stores again relaxed, `F_rel` and `F_acq` for fences.
//!
//! | operation of thread t | effect |
//! | --- | --- |
//! | acquire load | `C_t := C_t + L` |
//! | relaxed load | `F_acq := F_acq + L` |
//! | release store | `L := C_t`, `V := {t: C_t}` |
//! | relaxed store | `L := V(t) + F_rel`, `V := {t: V(t)}`: blocks everybody else's sequence |
//! | release read-modify-write | its load, then `L := L + C_t`, `V(t) := C_t` |
//! | relaxed read-modify-write | its load, then `L := L + F_rel` |
//! | acquire fence | `C_t := C_t + F_acq` |
//! | release fence | `F_rel := C_t` |
//!
//! `raddle-detect` has the same rules over a trace (`hb11`); a property test compares the two.
//!
//! Most locations have one release sequence, whose clock equals `L`; then only its thread is noted (`sole`). The list is
//! made when a second one begins or a fence makes the two differ.
//!
//! The operation and its effect on the clocks happen under the lock of the location, so that a load gets the clock that
//! belongs to the value that it read. The caller begins a new segment after a store that releases.

use crate::domain::Domain;
use crate::host::Host;
use crate::location::{Location, Sequence};
use crate::memory_order::MemoryOrder;
use crate::object_clock::ObjectClock;
use crate::thread_clocks::ThreadClocks;

/// What an atomic operation turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Load,
    Store,
    /// A load and a store at once.
    Update,
}

impl Location {
    /// A load has read the last store.
    #[inline]
    pub fn load<H: Host>(&mut self, domain: &Domain<H>, clocks: &mut ThreadClocks, order: MemoryOrder) {
        let to = if order.acquires() { &mut clocks.clock } else { &mut clocks.fence_acquire };
        self.clock.acquire_into(domain, to);
    }

    /// Thread number `thread` has stored; `update`: with a read-modify-write.
    pub fn store<H: Host>(
        &mut self,
        domain: &Domain<H>,
        clocks: &mut ThreadClocks,
        thread: u32,
        order: MemoryOrder,
        update: bool,
    ) {
        let me = thread + 1;
        match (order.releases(), update) {
            (true, false) => {
                self.drop_sequences(domain);
                self.clock.assign_from(domain, &mut clocks.clock);
                self.sole = me;
            }
            (false, false) => self.relaxed_store(domain, clocks, me),
            (true, true) => {
                if self.sole == me {
                    self.clock.release_from(domain, &mut clocks.clock);
                    return;
                }
                if !self.clock.is_empty() {
                    self.list_sole(domain);
                    self.head_sequence(domain, me, clocks);
                    self.clock.release_from(domain, &mut clocks.clock);
                } else {
                    self.clock.assign_from(domain, &mut clocks.clock);
                    self.sole = me;
                }
            }
            (false, true) => {
                if !clocks.fence_release.empty {
                    self.list_sole(domain);
                    self.clock.release_from(domain, &mut clocks.fence_release);
                }
            }
        }
    }

    fn relaxed_store<H: Host>(&mut self, domain: &Domain<H>, clocks: &mut ThreadClocks, me: u32) {
        if self.sole != me {
            let own = self.take_sequence(me);
            self.drop_sequences(domain);
            self.clock.clear(domain);
            match own {
                Some(clock) => {
                    self.clock = clock;
                    self.sole = me;
                }
                None => self.sole = 0,
            }
        }
        if !clocks.fence_release.empty {
            self.list_sole(domain);
            self.clock.release_from(domain, &mut clocks.fence_release);
        }
    }

    /// Turns the short form of a single sequence into the list: the location's clock is about to differ from it.
    fn list_sole<H: Host>(&mut self, domain: &Domain<H>) {
        if self.sole == 0 {
            return;
        }
        if let Some(at) = domain.sequences.take() {
            let clock = self.clock.copy(domain);
            // SAFETY: fresh and ours.
            unsafe { at.write(Sequence { thread: self.sole, clock, next: self.sequences }) };
            self.sequences = at;
        }
        self.sole = 0;
    }

    fn head_sequence<H: Host>(&mut self, domain: &Domain<H>, me: u32, clocks: &mut ThreadClocks) {
        if let Some(known) = self.sequence_of(me) {
            return known.assign_from(domain, &mut clocks.clock);
        }
        let mut clock = ObjectClock::NONE;
        clock.assign_from(domain, &mut clocks.clock);
        self.set_sequence(domain, me, clock);
    }

    fn take_sequence(&mut self, me: u32) -> Option<ObjectClock> {
        self.sequence_of(me)
            .map(|found| core::mem::replace(found, ObjectClock::NONE))
            .filter(|clock| !clock.is_empty())
    }
}
