//! The linear-time pass: can these positions be reached by leaving things out?
//!
//! A *sync-preserving* reordering (Mathur, Pavlogiannis, Viswanathan, "Optimal prediction of synchronization-preserving
//! races", POPL 2021; for deadlocks Tunç et al., PLDI 2023) drops events from the observed run and keeps the order of
//! the rest as far as synchronisation goes. The least set of events that has to stay is a closure:
//!
//! * whatever an event must come after stays (the thread's earlier steps, and [`Clocks::observed`]);
//! * of two times that a lock was held in conflicting modes, if both acquisitions stay, the release of the first stays.
//!
//! Such a set is one position per thread. If the closure of the wanted positions does not push a wanted thread beyond
//! where it is wanted, then the observed order restricted to the closure is a possible run that ends there: every lock is
//! released before it is acquired again, because the observed run did so, and everybody meets whom they met. This answers
//! most questions, with a witness that stays as close to the observed run as possible.
//!
//! Here the closure works on positions instead of events, with clocks instead of lists of events, and covers read-write
//! locks, semaphores, barriers and conditions too.

use crate::clocks::Clocks;
use crate::ids::{LockIx, Pos};
use crate::program::{LockUse, Program};
use raddle_trace::ThreadIx;

/// A place that a reordering is to reach: this thread, at this position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub thread: ThreadIx,
    pub pos: Pos,
}

/// The closure of the targets as positions of all threads, or `None` if a target thread would have to go further.
pub fn closure(program: &Program, clocks: &Clocks, targets: &[Target]) -> Option<Vec<Pos>> {
    let mut at: Vec<Pos> = vec![0; program.thread_count()];
    let mut raised: Vec<ThreadIx> = Vec::new();
    for target in targets {
        at[target.thread.index()] = target.pos;
        raised.push(target.thread);
    }
    let is_target = |thread: ThreadIx| targets.iter().any(|target| target.thread == thread);
    loop {
        while let Some(thread) = raised.pop() {
            for (index, &needed) in clocks.at(thread, at[thread.index()]).iter().enumerate() {
                if at[index] >= needed {
                    continue;
                }
                let other = ThreadIx(index as u32);
                if is_target(other) {
                    return None;
                }
                at[index] = needed;
                raised.push(other);
            }
        }
        for thread in program.thread_ids() {
            for &(lock, shared) in program.lockset(thread, at[thread.index()]) {
                if !must_release(program, &at, thread, lock, shared) {
                    continue;
                }
                let held = program.locks[lock.index()].use_by(thread)?.open_at(at[thread.index()])?;
                if is_target(thread) || held.release == Pos::MAX {
                    return None;
                }
                at[thread.index()] = held.release + 1;
                raised.push(thread);
                break;
            }
        }
        if raised.is_empty() {
            return Some(at);
        }
    }
}

/// Does somebody acquire, within these positions, a lock that the thread holds and acquired earlier?
fn must_release(program: &Program, at: &[Pos], thread: ThreadIx, lock: LockIx, shared: bool) -> bool {
    let lock = &program.locks[lock.index()];
    let Some(held) = lock.use_by(thread).and_then(|uses| uses.open_at(at[thread.index()])) else {
        return false;
    };
    lock.uses.iter().filter(|(other, _)| *other != thread).any(|(other, uses)| {
        let pos = at[other.index()];
        let later = |holds| LockUse::last_before(holds, pos).is_some_and(|hold| hold.event > held.event);
        later(&uses.exclusive) || (!shared && later(&uses.shared))
    })
}
