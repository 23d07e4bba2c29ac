//! Who asks for which lock while holding which: the abstract acquisitions of a trace.
//!
//! Lock graphs, lock trees and lock-dependency relations (the survey's §6) are all made of these. Acquisitions with
//! the same thread, lock, mode and held locks are one entry. Try and timed acquisitions do not block, so they hold but
//! never ask. A thread that asked and never got the lock asks too ([`LockGraph::step`] looks at requests).

use crate::race::Site;
use crate::report::Holding;
use crate::step::{LockIx, Step, Sync};
use raddle_trace::{Op, Patience, ThreadIx};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A lock and whether it is held, or asked for, in read mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mode {
    pub lock: LockIx,
    pub read: bool,
}

impl Mode {
    /// Can two threads not have these at once?
    pub fn excludes(self, other: Mode) -> bool {
        self.lock == other.lock && !(self.read && other.read)
    }
}

/// One abstract acquisition.
#[derive(Clone, Debug)]
pub struct Ask {
    pub thread: ThreadIx,
    pub wanted: Mode,
    /// Sorted.
    pub held: SmallVec<[Mode; 4]>,
    /// The same, and where they were acquired the first time.
    pub holding: Vec<Holding>,
    /// The first event of this kind.
    pub first: Site,
}

impl Ask {
    /// Does this thread hold what the other asks for?
    pub fn blocks(&self, other: &Ask) -> bool {
        self.thread != other.thread && self.held.iter().any(|held| held.excludes(other.wanted))
    }

    /// Could both be at their acquisitions at the same time? Not if they hold something that excludes the other: a gate
    /// lock.
    pub fn coexists(&self, other: &Ask) -> bool {
        self.thread != other.thread && !self.held.iter().any(|a| other.held.iter().any(|b| a.excludes(*b)))
    }
}

type Key = (ThreadIx, Mode, SmallVec<[Mode; 4]>);

#[derive(Clone, Debug, Default)]
pub struct LockGraph {
    asks: Vec<Ask>,
    index: FxHashMap<Key, usize>,
}

impl LockGraph {
    pub fn asks(&self) -> &[Ask] {
        &self.asks
    }

    pub fn step(&mut self, step: &Step<'_>, lock_of_request: impl FnOnce() -> Option<LockIx>) {
        let wanted = match (step.event.op, step.sync) {
            (Op::Lock { flags, .. } | Op::ReadLock { flags, .. }, Sync::Acquire { lock, read })
                if flags.patience == Patience::Blocking =>
            {
                Mode { lock, read }
            }
            (Op::Request { read, flags, .. }, _) if flags.patience == Patience::Blocking => {
                match lock_of_request() {
                    Some(lock) if !step.held.iter().any(|held| held.lock == lock) => Mode { lock, read },
                    _ => return,
                }
            }
            _ => return,
        };
        if step.held.is_empty() {
            return;
        }
        let mut held: SmallVec<[Mode; 4]> =
            step.held.iter().map(|held| Mode { lock: held.lock, read: held.read }).collect();
        held.sort_unstable();
        let key = (step.thread(), wanted, held);
        if self.index.contains_key(&key) {
            return;
        }
        self.index.insert(key.clone(), self.asks.len());
        let (thread, wanted, held) = key;
        let holding = step.held.iter().map(Holding::from).collect();
        self.asks.push(Ask { thread, wanted, held, holding, first: Site::of(step) });
    }
}
