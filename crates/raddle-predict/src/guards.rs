//! Guarded waits: did the thread look at something before it waited that changed while it did?
//!
//! A condition wait usually stands in a loop that tests a predicate. If the signal is moved before such a wait, the real
//! thread would see the new predicate and not wait at all; predicting a missed signal there would be wrong. The predicate
//! is memory: what the thread read in the segment before its `WaitBegin`. If another thread writes any of it while the
//! thread waits, the wait is *guarded*.
//!
//! Where a trace has no memory accesses (a program that was not rebuilt), no wait is guarded, and replaying decides.

use raddle_trace::ThreadIx;
use raddle_trace::model::EventIx;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

/// Memory is watched in units of this many bytes.
const GRANULE: u64 = 8;
/// Reads remembered per segment. A predicate is short; the last reads before the wait are kept.
const READS_MAX: usize = 64;

pub struct Guards {
    enabled: bool,
    /// Granules read in the current segment of each thread.
    reads: Vec<Vec<u64>>,
    /// The wait that each thread is in.
    waiting: Vec<Option<EventIx>>,
    watched: FxHashMap<u64, SmallVec<[ThreadIx; 2]>>,
    guarded: FxHashSet<EventIx>,
}

impl Guards {
    pub fn new(threads: usize, enabled: bool) -> Guards {
        Guards {
            enabled,
            reads: vec![Vec::new(); threads],
            waiting: vec![None; threads],
            watched: FxHashMap::default(),
            guarded: FxHashSet::default(),
        }
    }

    pub fn access(&mut self, thread: ThreadIx, start: u64, size: u64, writes: bool) {
        if !self.enabled {
            return;
        }
        let granules = start / GRANULE..=start.saturating_add(size.clamp(1, 4096) - 1) / GRANULE;
        if !writes {
            let reads = &mut self.reads[thread.index()];
            if reads.len() >= READS_MAX {
                reads.drain(..READS_MAX / 2);
            }
            reads.extend(granules.take(READS_MAX / 2));
        } else if !self.watched.is_empty() {
            for granule in granules {
                for waiter in self.watched.get(&granule).into_iter().flatten() {
                    if *waiter != thread {
                        self.guarded.extend(self.waiting[waiter.index()]);
                    }
                }
            }
        }
    }

    pub fn new_segment(&mut self, thread: ThreadIx) {
        self.reads[thread.index()].clear();
    }

    pub fn begin(&mut self, thread: ThreadIx, wait: EventIx) {
        if !self.enabled {
            return;
        }
        self.waiting[thread.index()] = Some(wait);
        for &granule in &self.reads[thread.index()] {
            let watchers = self.watched.entry(granule).or_default();
            if !watchers.contains(&thread) {
                watchers.push(thread);
            }
        }
    }

    pub fn woke(&mut self, thread: ThreadIx) {
        if self.waiting[thread.index()].take().is_some() {
            self.watched.retain(|_, watchers| {
                watchers.retain(|watcher| *watcher != thread);
                !watchers.is_empty()
            });
        }
    }

    pub fn is_guarded(&self, wait: EventIx) -> bool {
        self.guarded.contains(&wait)
    }
}
