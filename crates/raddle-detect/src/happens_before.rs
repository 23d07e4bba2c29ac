//! Happens-before, tracked by vector clocks.
//!
//! One event happens before another (Lamport 1978) if a chain of these leads from it to the other: the order within a
//! thread; a fork and what the child does; what a thread did and its join; a release of a lock and later acquisitions
//! that it excludes (readers of a read-write lock do not exclude each other); a send over a channel (signal, post,
//! barrier entry, end of a one-time initialiser, annotation, atomic store) and later receives.
//!
//! Atomics are taken like Java's volatiles here: whatever their order they synchronise, with every earlier store to the
//! same place. So this order contains the happens-before of C and C++11, in which only acquire loads of certain stores do
//! (the control word of a one-time initialiser is such a place, too): two accesses that are unordered here are unordered by
//! the standard. [`crate::detectors::hb11`] has its exact rules.
//!
//! The clock of a thread counts its releases: the counter grows after each event whose knowledge is passed on, so two
//! accesses of a thread have different times only if another thread could know one without the other.
//!
//! Columns of clocks are *slots*. When a thread has ended and been joined, a thread that is forked with knowledge of
//! the whole of it continues in its slot: everything that the old thread did is before everything the new one does,
//! so one counter serves both. Programs with thousands of short-lived threads keep short clocks that way.

use crate::clock::Clock;
use crate::step::{ChannelIx, Step, Sync};
use raddle_trace::ThreadIx;

/// Clocks of a lock: what its writers released, and what its readers released.
#[derive(Clone, Debug, Default)]
struct LockClocks {
    writes: Clock,
    reads: Clock,
}

/// Column of a clock that no thread has.
const NO_SLOT: ThreadIx = ThreadIx(u32::MAX);

/// The clocks of all threads, locks and channels.
#[derive(Clone, Debug, Default)]
pub struct HappensBefore {
    /// Slot of each thread.
    slots: Vec<ThreadIx>,
    /// Clock of each slot's current thread.
    clocks: Vec<Clock>,
    /// Slots whose thread was joined.
    free: Vec<ThreadIx>,
    locks: Vec<LockClocks>,
    channels: Vec<Clock>,
    /// Leave mutexes and read-write locks out.
    without_locks: bool,
}

fn entry<T: Default + Clone>(items: &mut Vec<T>, index: usize) -> &mut T {
    if items.len() <= index {
        items.resize(index + 1, T::default());
    }
    &mut items[index]
}

impl HappensBefore {
    pub fn new() -> HappensBefore {
        HappensBefore::default()
    }

    /// The order without what locks add.
    pub fn without_locks() -> HappensBefore {
        HappensBefore { without_locks: true, ..HappensBefore::default() }
    }

    /// The column of a thread.
    #[inline]
    pub fn slot(&mut self, thread: ThreadIx) -> ThreadIx {
        match self.slots.get(thread.index()) {
            Some(&slot) if slot != NO_SLOT => slot,
            _ => self.new_slot(thread),
        }
    }

    #[cold]
    fn new_slot(&mut self, thread: ThreadIx) -> ThreadIx {
        let slot = ThreadIx(self.clocks.len() as u32);
        let mut clock = Clock::default();
        clock.set(slot, 1);
        self.clocks.push(clock);
        self.assign(thread, slot);
        slot
    }

    fn assign(&mut self, thread: ThreadIx, slot: ThreadIx) {
        if self.slots.len() <= thread.index() {
            self.slots.resize(thread.index() + 1, NO_SLOT);
        }
        self.slots[thread.index()] = slot;
    }

    /// What a thread knows, by its slot.
    #[inline]
    pub fn clock(&self, slot: ThreadIx) -> &Clock {
        &self.clocks[slot.index()]
    }

    /// A thread's current time.
    #[inline]
    pub fn now(&self, slot: ThreadIx) -> u32 {
        self.clocks[slot.index()].get(slot)
    }

    /// How much of another thread, which has acted already, the thread in `slot` knows.
    #[inline]
    pub fn known_of(&self, slot: ThreadIx, thread: ThreadIx) -> u32 {
        let other = self.slots.get(thread.index()).copied().unwrap_or(NO_SLOT);
        self.clocks[slot.index()].get(other)
    }

    /// Do two threads that have acted share a column?
    pub fn same_slot(&self, a: ThreadIx, b: ThreadIx) -> bool {
        self.slots.get(a.index()) == self.slots.get(b.index())
    }

    pub fn join(&mut self, slot: ThreadIx, news: &Clock) {
        self.clocks[slot.index()].join(news);
    }

    pub fn tick(&mut self, slot: ThreadIx) {
        self.clocks[slot.index()].tick(slot);
    }

    /// Applies what a step does to the order. Plain accesses do nothing.
    pub fn step(&mut self, step: &Step<'_>) {
        let slot = self.slot(step.thread());
        match step.sync {
            Sync::None => {}
            Sync::Acquire { .. } | Sync::Release { .. } if self.without_locks => {}
            Sync::Acquire { lock, read } => {
                let lock = entry(&mut self.locks, lock.index());
                let clock = &mut self.clocks[slot.index()];
                clock.join(&lock.writes);
                if !read {
                    clock.join(&lock.reads);
                }
            }
            Sync::Release { lock, read } => {
                let lock = entry(&mut self.locks, lock.index());
                let clock = &mut self.clocks[slot.index()];
                if read {
                    lock.reads.join(clock)
                } else {
                    lock.writes.join(clock)
                };
                clock.tick(slot);
            }
            Sync::Fork(child) => {
                let child = self.slot_for_child(child, slot);
                let known = std::mem::take(&mut self.clocks[slot.index()]);
                self.clocks[child.index()].join(&known);
                self.clocks[slot.index()] = known;
                self.tick(slot);
            }
            Sync::Join(child) => {
                let child = self.slot(child);
                if child != slot {
                    let known = std::mem::take(&mut self.clocks[child.index()]);
                    self.clocks[slot.index()].join(&known);
                    self.clocks[child.index()] = known;
                    self.free.push(child);
                }
            }
            Sync::Receive(channel) => self.receive(slot, channel),
            Sync::Send(channel) => self.send(slot, channel),
            Sync::Exchange(channel) => {
                self.receive(slot, channel);
                self.send(slot, channel);
            }
        }
    }

    /// A slot for a new thread: that of an ended one of which the parent knows everything, or a new one.
    fn slot_for_child(&mut self, child: ThreadIx, parent: ThreadIx) -> ThreadIx {
        if self.slots.get(child.index()).is_some_and(|&slot| slot != NO_SLOT) {
            return self.slots[child.index()];
        }
        let known = &self.clocks[parent.index()];
        let place = self.free.iter().position(|&slot| known.get(slot) >= self.now(slot));
        let Some(place) = place else { return self.new_slot(child) };
        let slot = self.free.swap_remove(place);
        self.clocks[slot.index()].tick(slot);
        self.assign(child, slot);
        slot
    }

    fn receive(&mut self, slot: ThreadIx, channel: ChannelIx) {
        let sent = entry(&mut self.channels, channel.index());
        self.clocks[slot.index()].join(sent);
    }

    fn send(&mut self, slot: ThreadIx, channel: ChannelIx) {
        let clock = &mut self.clocks[slot.index()];
        entry(&mut self.channels, channel.index()).join(clock);
        clock.tick(slot);
    }
}
