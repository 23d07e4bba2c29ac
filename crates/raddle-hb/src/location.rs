//! A synchronisation object as clocks see it: what can be acquired from it.
//!
//! Locks, conditions, barriers, semaphores and channels have a clock that is released to and acquired from; read-write
//! locks have a second one, because readers pass on to writers but not to each other. Atomics have release sequences
//! ([`crate::release_sequence`]) and, when weak behaviours are shown, a buffer of stores ([`crate::stores`]).

use crate::clock::Clock;
use crate::domain::Domain;
use crate::host::Host;
use crate::object_clock::ObjectClock;
use crate::stores::Buffer;

/// The clock that one thread has in a location's release sequences (`V` of fig. 3.12).
#[repr(C)]
pub struct Sequence {
    pub(crate) thread: u32,
    pub(crate) clock: ObjectClock,
    pub(crate) next: *mut Sequence,
}

#[repr(C)]
pub struct Location {
    /// What a lock's writers, a channel's senders, an atomic's stores have passed on (`L` of fig. 3.12).
    pub(crate) clock: ObjectClock,
    /// What the readers of a read-write lock have passed on; what the last complete generation of a barrier has.
    pub(crate) reads: ObjectClock,
    pub(crate) sequences: *mut Sequence,
    /// The stores of an atomic location, when weak behaviours are shown.
    pub(crate) buffer: Buffer,
    /// One more than the thread whose release sequence is the only one and equals `clock`; 0: see `sequences`.
    pub(crate) sole: u32,
}

impl Location {
    pub const NONE: Location = Location {
        clock: ObjectClock::NONE,
        reads: ObjectClock::NONE,
        sequences: core::ptr::null_mut(),
        buffer: Buffer::NONE,
        sole: 0,
    };

    /// Something else stands here now, of which nobody knows anything.
    pub fn clear<H: Host>(&mut self, domain: &Domain<H>) {
        self.clock.clear(domain);
        self.reads.clear(domain);
        self.drop_sequences(domain);
        self.buffer.clear(domain);
        self.sole = 0;
    }

    #[inline]
    pub fn acquire<H: Host>(&mut self, domain: &Domain<H>, clock: &mut Clock) {
        self.clock.acquire_into(domain, clock);
    }

    #[inline]
    pub fn release<H: Host>(&mut self, domain: &Domain<H>, clock: &mut Clock) {
        self.clock.release_from(domain, clock);
    }

    /// A writer has the lock: it comes after the readers, too.
    #[inline]
    pub fn acquire_from_readers<H: Host>(&mut self, domain: &Domain<H>, clock: &mut Clock) {
        self.reads.acquire_into(domain, clock);
    }

    #[inline]
    pub fn release_by_reader<H: Host>(&mut self, domain: &Domain<H>, clock: &mut Clock) {
        self.reads.release_from(domain, clock);
    }

    /// All of a barrier have arrived: those who leave know what these have passed on, and not what is passed on from now on. The next
    /// generation gathers in `clock`, the last complete one stays in `reads`.
    pub fn complete_generation<H: Host>(&mut self, domain: &Domain<H>) {
        self.reads.clear(domain);
        core::mem::swap(&mut self.clock, &mut self.reads);
    }

    /// A thread leaves a barrier with the last generation that was complete.
    #[inline]
    pub fn acquire_generation<H: Host>(&mut self, domain: &Domain<H>, clock: &mut Clock) {
        self.reads.acquire_into(domain, clock);
    }

    pub(crate) fn drop_sequences<H: Host>(&mut self, domain: &Domain<H>) {
        let mut at = self.sequences;
        self.sequences = core::ptr::null_mut();
        while !at.is_null() {
            // SAFETY: elements of the list are ours under the lock.
            unsafe {
                let next = (*at).next;
                (*at).clock.clear(domain);
                domain.sequences.give_back(at);
                at = next;
            }
        }
    }

    /// The clock of a thread's release sequence, if it has one in the list.
    pub(crate) fn sequence_of(&mut self, thread: u32) -> Option<&mut ObjectClock> {
        let mut at = self.sequences;
        // SAFETY: elements of the list are ours under the lock.
        while let Some(sequence) = unsafe { at.as_mut() } {
            if sequence.thread == thread {
                return Some(&mut sequence.clock);
            }
            at = sequence.next;
        }
        None
    }

    /// Sets the clock of a thread's release sequence.
    pub(crate) fn set_sequence<H: Host>(&mut self, domain: &Domain<H>, thread: u32, mut clock: ObjectClock) {
        if let Some(known) = self.sequence_of(thread) {
            core::mem::swap(known, &mut clock);
            return clock.clear(domain);
        }
        match domain.sequences.take() {
            Some(new) => {
                // SAFETY: fresh and ours.
                unsafe { new.write(Sequence { thread, clock, next: self.sequences }) };
                self.sequences = new;
            }
            None => clock.clear(domain),
        }
    }

    /// Ends all release sequences but one thread's.
    pub(crate) fn keep_sequence<H: Host>(&mut self, domain: &Domain<H>, thread: u32) {
        let kept = self.sequence_of(thread).map(|clock| core::mem::replace(clock, ObjectClock::NONE));
        self.drop_sequences(domain);
        if let Some(clock) = kept {
            self.set_sequence(domain, thread, clock);
        }
    }
}
