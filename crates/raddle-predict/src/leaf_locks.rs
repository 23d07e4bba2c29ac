//! Locks that can never be part of a deadlock are taken out of a program before it is searched.

use crate::ids::{LockIx, Pos};
use crate::program::{Action, Program};
use rustc_hash::FxHashSet;

/// A program in which locks that cannot take part in a deadlock are no longer locks; `None` if nothing in it can block for
/// good.
///
/// A lock that only one thread uses never blocks. A *leaf* lock is one under which threads do nothing that can block or
/// be observed by others, except to take and release other leaf locks: whoever holds it will release it, and it does not
/// matter to anybody when. Runs in which two such critical sections overlap can be put in an order in which they do not,
/// because everything inside commutes with everything outside; so the same stuck states are reachable.
pub fn without_leaf_locks(program: &Program) -> Option<Program> {
    let count = program.locks.len();
    let mut inner: Vec<FxHashSet<LockIx>> = vec![FxHashSet::default(); count];
    let mut keep = vec![false; count];
    for thread in program.thread_ids() {
        let steps = &program.threads[thread.index()];
        for (pos, step) in steps.steps.iter().enumerate() {
            let held = &program.locksets[steps.locksets[pos].index()];
            match step.action {
                Action::Lock { lock, tries: false, .. } => {
                    for (outer, _) in held {
                        inner[outer.index()].insert(lock);
                    }
                }
                Action::Free if program.needs_of(step).is_empty() => {}
                Action::Unlock { .. } => {}
                action @ (Action::Free
                | Action::Lock { .. }
                | Action::Signal { .. }
                | Action::WaitBegin { .. }
                | Action::Wait { .. }
                | Action::BarrierEnter { .. }
                | Action::BarrierExit { .. }
                | Action::SemWait { .. }
                | Action::SemPost { .. }
                | Action::OncePassed { .. }
                | Action::Atomic { .. }) => {
                    if let Action::Lock { lock, .. } = action {
                        keep[lock.index()] = true;
                    }
                    for (outer, _) in held {
                        keep[outer.index()] = true;
                    }
                }
            }
        }
    }
    for (index, lock) in program.locks.iter().enumerate() {
        let open = |holds: &[crate::program::Hold]| holds.iter().any(|hold| hold.release == Pos::MAX);
        keep[index] |= lock.uses.iter().any(|(_, uses)| open(&uses.exclusive) || open(&uses.shared));
    }
    // Leaves, innermost first; what is left over is in a circle or has something observable inside.
    let mut leaf = vec![false; count];
    loop {
        let found: Vec<usize> = (0..count)
            .filter(|&lock| !leaf[lock] && !keep[lock] && inner[lock].iter().all(|inner| leaf[inner.index()]))
            .collect();
        if found.is_empty() {
            break;
        }
        for lock in found {
            leaf[lock] = true;
        }
    }
    for (index, lock) in program.locks.iter().enumerate() {
        leaf[index] |= lock.uses.len() <= 1 && !lock.uses.iter().any(|(_, uses)| has_open(uses));
    }
    let mut reduced = program.clone();
    let mut blocks = false;
    for thread in &mut reduced.threads {
        for step in &mut thread.steps {
            match &mut step.action {
                Action::Lock { lock, .. } | Action::Unlock { lock, .. } if leaf[lock.index()] => {
                    step.action = Action::Free;
                }
                Action::WaitBegin { lock, .. } if *lock != LockIx::NONE && leaf[lock.index()] => {
                    *lock = LockIx::NONE
                }
                Action::Lock { .. }
                | Action::Wait { .. }
                | Action::BarrierExit { .. }
                | Action::SemWait { .. }
                | Action::OncePassed { .. } => blocks = true,
                Action::Free
                | Action::Unlock { .. }
                | Action::Signal { .. }
                | Action::WaitBegin { .. }
                | Action::BarrierEnter { .. }
                | Action::SemPost { .. }
                | Action::Atomic { .. } => {}
            }
        }
    }
    blocks.then_some(reduced)
}

fn has_open(uses: &crate::program::LockUse) -> bool {
    uses.exclusive.iter().chain(&uses.shared).any(|hold| hold.release == Pos::MAX)
}
