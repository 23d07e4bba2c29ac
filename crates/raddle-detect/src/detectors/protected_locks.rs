//! Locks whose operations are both movers: what `atomizer-protected` adds to [`super::atomizer`].
//!
//! **Definition** (Flanagan, Freund, *Atomizer*, POPL 2004, its extensions of reduction). An acquisition is a right mover
//! because another thread may hold the lock. If no other thread can, it moves both ways:
//!
//! * *thread-local locks*: only one thread has ever taken the lock;
//! * *protected locks*: whenever it was taken, some other lock was held, the same one each time;
//! * *re-entrant* acquisitions take nothing.
//!
//! So a region that takes an inner lock twice under an outer one is atomic, where the plain rule complains.
//!
//! **Deviations**: as in the paper, what a lock is, is learnt while the program runs: an acquisition that was let through
//! because the lock was protected is not taken back when it turns out not to be. Re-entrant acquisitions are no
//! acquisitions in the trace already.
//!
//! **Cost**: an intersection of locksets an acquisition.

use crate::locksets::{LockSetIx, LockSets};
use crate::step::{Held, LockIx};
use raddle_trace::ThreadIx;

/// The name of the detector that uses it.
pub const NAME: &str = "atomizer-protected";

#[derive(Clone, Copy, Debug, Default)]
enum Guard {
    #[default]
    Fresh,
    Local(ThreadIx, LockSetIx),
    By(LockSetIx),
}

/// What is known of each lock.
#[derive(Clone, Debug, Default)]
pub struct ProtectedLocks {
    locksets: LockSets,
    guards: Vec<Guard>,
}

impl ProtectedLocks {
    /// A thread takes a lock, holding others. True if this moves both ways.
    pub fn acquire(&mut self, lock: LockIx, thread: ThreadIx, held: &[Held]) -> bool {
        if self.guards.len() <= lock.index() {
            self.guards.resize(lock.index() + 1, Guard::default());
        }
        let exclusive = held.iter().filter(|held| !held.read && held.lock != lock);
        let held = self.locksets.intern(exclusive.map(|held| held.lock));
        let guard = &mut self.guards[lock.index()];
        *guard = match *guard {
            Guard::Fresh => Guard::Local(thread, held),
            Guard::Local(owner, by) if owner == thread => Guard::Local(owner, self.locksets.meet(by, held)),
            Guard::Local(_, by) | Guard::By(by) => Guard::By(self.locksets.meet(by, held)),
        };
        self.moves_both_ways(lock)
    }

    /// Does releasing it move both ways?
    pub fn moves_both_ways(&self, lock: LockIx) -> bool {
        match self.guards.get(lock.index()).copied().unwrap_or_default() {
            Guard::Fresh | Guard::Local(..) => true,
            Guard::By(locks) => locks != LockSetIx::EMPTY,
        }
    }
}
