//! Deadlocks of locks, conditions, joins and semaphores together, without a search over the whole trace.
//!
//! What [`crate::lock_cycles`] does for locks, extended: a thread can also wait for what one other thread has yet to do. A
//! *wait* is a step that needs another thread to come to some position: a condition wait its signal, a join the end of the
//! thread, a semaphore wait a post (if one thread alone posts). A cycle of waits begins with one of them, by a thread that
//! holds locks; the thread that it needs is on the way there before a wait of its own, and so on, until one is before the
//! acquisition of a lock that a thread of the cycle holds. Whether all threads can be there at once is decided by
//! [`crate::reach`] in linear time, as for locks (sync-preserving; Tunç, Mathur, Pavlogiannis, Viswanathan, PLDI 2023).
//! Most traces have few waits under locks, so that this is linear in practice, and it needs no window.
//!
//! What it leaves (cycles through barriers and one-time initialisers, waits that several threads could end, reorderings that
//! take locks in another order) is for the search of [`crate::stuck`].

use crate::clocks::Clocks;
use crate::closure::Target;
use crate::ids::{LockIx, Pos};
use crate::program::{Action, LockUse, Program};
use raddle_trace::ThreadIx;
use raddle_wire::Effect;
use smallvec::SmallVec;

/// Threads in one cycle at most.
const CYCLE_MAX: usize = 5;
/// Waits of a thread, and acquisitions of a lock, that are tried before one place, the nearest first.
const TRIES_MAX: usize = 16;
/// Cycles looked at.
const CYCLES_MAX: usize = 20_000;

/// A step that needs another thread to come beyond a position.
#[derive(Clone, Copy, Debug)]
struct Wait {
    pos: Pos,
    /// Who, and the step that it has to take.
    by: ThreadIx,
    step: Pos,
}

/// Finds cycles; `visit` gets the targets of each, and says whether more with this first wait are wanted.
pub fn wait_cycles(program: &Program, must: &Clocks, mut visit: impl FnMut(&[Target]) -> bool) {
    let waits: Vec<Vec<Wait>> = program.thread_ids().map(|thread| waits_of(program, thread)).collect();
    let mut finder = Finder { program, must, waits: &waits, cycles: 0 };
    for thread in program.thread_ids() {
        for &wait in &waits[thread.index()] {
            if program.lockset(thread, wait.pos).is_empty() {
                continue;
            }
            let mut path = vec![Target { thread, pos: wait.pos }];
            finder.extend(&mut path, wait, &mut visit);
        }
    }
}

fn waits_of(program: &Program, thread: ThreadIx) -> Vec<Wait> {
    let mut waits = Vec::new();
    for (pos, step) in program.steps(thread).iter().enumerate() {
        let pos = pos as Pos;
        let found = match step.action {
            Action::Wait { instance } => {
                let instance = &program.instances[instance.index()];
                Some((instance.thread, instance.signal))
            }
            // A join: the needed position is behind the other's last step.
            Action::Free if step.waits && pos > 0 => {
                let needs = program.needs_of(step).iter();
                needs.filter(|need| need.thread != thread).map(|need| (need.thread, need.pos - 1)).next()
            }
            Action::SemWait { sem } => {
                let semaphore = &program.semaphores[sem.index()];
                let mut posters = semaphore.posts.iter();
                match (posters.next(), posters.next()) {
                    (Some((poster, posts)), None) if poster != thread => {
                        // The post without which the tokens of this and all earlier waits do not suffice.
                        let before = semaphore.waits.of(thread).partition_point(|&wait| wait < pos);
                        let needed = before.checked_sub(semaphore.start as usize);
                        needed.and_then(|needed| posts.get(needed)).map(|&post| (poster, post))
                    }
                    _ => None,
                }
            }
            Action::Free
            | Action::Lock { .. }
            | Action::Unlock { .. }
            | Action::Signal { .. }
            | Action::WaitBegin { .. }
            | Action::BarrierEnter { .. }
            | Action::BarrierExit { .. }
            | Action::SemPost { .. }
            | Action::OncePassed { .. }
            | Action::Atomic { .. } => None,
        };
        waits.extend(found.map(|(by, step)| Wait { pos, by, step }));
    }
    waits
}

struct Finder<'a> {
    program: &'a Program,
    must: &'a Clocks,
    waits: &'a [Vec<Wait>],
    cycles: usize,
}

impl Finder<'_> {
    /// The last thread of the path waits for somebody. False when no more cycles are wanted.
    fn extend(
        &mut self,
        path: &mut Vec<Target>,
        last: Wait,
        visit: &mut impl FnMut(&[Target]) -> bool,
    ) -> bool {
        if self.cycles >= CYCLES_MAX || path.iter().any(|target| target.thread == last.by) {
            return true;
        }
        for pos in self.acquisitions(path, last) {
            let target = Target { thread: last.by, pos };
            if !self.parallel(path, target) {
                continue;
            }
            self.cycles += 1;
            path.push(target);
            let more = visit(path);
            path.pop();
            if !more {
                return false;
            }
        }
        if path.len() + 1 >= CYCLE_MAX {
            return true;
        }
        let waits = &self.waits[last.by.index()];
        let before = waits.partition_point(|wait| wait.pos <= last.step);
        for &wait in waits[..before].iter().rev().take(TRIES_MAX) {
            let target = Target { thread: last.by, pos: wait.pos };
            if !self.parallel(path, target) {
                continue;
            }
            path.push(target);
            let more = self.extend(path, wait, visit);
            path.pop();
            if !more {
                return false;
            }
        }
        true
    }

    fn parallel(&self, path: &[Target], next: Target) -> bool {
        path.iter().all(|target| self.must.parallel((target.thread, target.pos), (next.thread, next.pos)))
    }

    /// Acquisitions that the needed thread makes on its way, of locks that the path holds in a mode that excludes it.
    fn acquisitions(&self, path: &[Target], wait: Wait) -> SmallVec<[Pos; 8]> {
        let mut found: SmallVec<[Pos; 8]> = SmallVec::new();
        let held = path.iter().flat_map(|target| self.program.lockset(target.thread, target.pos));
        for &(lock, shared) in held {
            found.extend(self.acquisitions_of(lock, shared, wait));
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.dedup();
        found
    }

    fn acquisitions_of(&self, lock: LockIx, shared: bool, wait: Wait) -> SmallVec<[Pos; 8]> {
        let Some(uses) = self.program.locks[lock.index()].use_by(wait.by) else { return SmallVec::new() };
        let LockUse { exclusive, shared: shared_holds } = uses;
        let held = if shared { Effect::LocksShared } else { Effect::Locks };
        let excludes = |wanted: Effect| held.revokes(wanted.demand());
        let mut found: SmallVec<[Pos; 8]> = SmallVec::new();
        for (holds, wanted) in [(exclusive, Effect::Locks), (shared_holds, Effect::LocksShared)] {
            if excludes(wanted) {
                let before = holds.partition_point(|hold| hold.acquire <= wait.step);
                found.extend(holds[..before].iter().rev().take(TRIES_MAX).map(|hold| hold.acquire));
            }
        }
        let tries = |pos: &Pos| {
            let step = self.program.step(wait.by, *pos).map(|step| step.action);
            matches!(step, Some(Action::Lock { tries: false, .. }))
        };
        found.retain(|pos| tries(pos));
        found
    }
}
