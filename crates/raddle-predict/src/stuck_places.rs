//! Which steps could block for good: a linear-time abstraction of a program, before any search.
//!
//! A step blocks for good if what it waits for never comes: because another thread is itself blocked for good before it, or
//! because it was used up or came too early. The first is a matter of other steps, the second of the step alone (a *root*). The
//! greatest set of steps of which each is a root or is held up by another one of the set contains every step at which a
//! thread can be blocked for good in any reordering; orders and values, which only take reorderings away, are not looked at.
//! If the set is empty, nothing can get stuck, and no search is needed; that is so for most programs that hand work from thread to
//! thread under locks with guarded waits. Otherwise windows without such a step need no search.
//!
//! Needs lead back in the observed order, so the set is mostly found in one pass; only locks, which can be held up by what comes later,
//! need more.

use crate::ids::Pos;
use crate::program::{Action, Hold, LockUse, Program, Step};
use raddle_trace::ThreadIx;

/// See the module's text.
pub struct StuckPlaces {
    /// Positions, by thread, in order.
    places: Vec<Vec<Pos>>,
}

impl StuckPlaces {
    pub fn of(program: &Program) -> StuckPlaces {
        let mut order: Vec<(ThreadIx, Pos)> = Vec::new();
        for thread in program.thread_ids() {
            let steps = program.steps(thread).iter().enumerate();
            order.extend(
                steps.filter(|(_, step)| can_wait(program, step)).map(|(pos, _)| (thread, pos as Pos)),
            );
        }
        order.sort_by_key(|&(thread, pos)| program.step(thread, pos).map(|step| step.event));
        let mut found = StuckPlaces { places: vec![Vec::new(); program.thread_count()] };
        for &(thread, pos) in &order {
            found.places[thread.index()].push(pos);
        }
        for positions in &mut found.places {
            positions.sort_unstable();
        }
        loop {
            let before = order.len();
            order.retain(|&(thread, pos)| {
                let keep = found.is_held_up(program, thread, pos);
                if !keep && let Ok(at) = found.places[thread.index()].binary_search(&pos) {
                    found.places[thread.index()].remove(at);
                }
                keep
            });
            if order.len() == before {
                return found;
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.places.iter().all(Vec::is_empty)
    }

    /// Is one of them among the steps from the first positions up to the second ones?
    pub fn any_between(&self, from: &[Pos], to: &[Pos]) -> bool {
        (0..self.places.len()).any(|thread| self.within(thread, from[thread], to[thread]))
    }

    fn within(&self, thread: usize, from: Pos, to: Pos) -> bool {
        let places = &self.places[thread];
        places.get(places.partition_point(|&pos| pos < from)).is_some_and(|&pos| pos < to)
    }

    /// Could the thread block for good at the step, as far as the others of the set go?
    fn is_held_up(&self, program: &Program, thread: ThreadIx, pos: Pos) -> bool {
        let Some(step) = program.step(thread, pos) else { return false };
        let needs = program.needs_of(step).iter().filter(|_| step.waits || waits_for_initialiser(step));
        if needs.into_iter().any(|need| self.within(need.thread.index(), 0, need.pos)) {
            return true;
        }
        match step.action {
            Action::Lock { lock, tries: false, shared } => {
                program.locks[lock.index()].uses.iter().any(|(other, uses)| {
                    let conflicting = conflicting(uses, shared);
                    conflicting.into_iter().flatten().any(|hold| {
                        let holds_for_good =
                            hold.release == Pos::MAX && (*other, hold.acquire) != (thread, pos);
                        let until = hold.release.saturating_add(1);
                        holds_for_good
                            || (*other != thread && self.within(other.index(), hold.acquire + 1, until))
                    })
                })
            }
            Action::Wait { instance } => {
                let instance = &program.instances[instance.index()];
                let begins = pos.checked_sub(1).and_then(|before| program.step(thread, before));
                let guarded =
                    matches!(begins.map(|step| step.action), Some(Action::WaitBegin { guarded: true, .. }));
                // Without a guard its signal may come too early.
                !guarded || instance.signal == Pos::MAX
            }
            Action::BarrierExit { barrier } => {
                let barrier = &program.barriers[barrier.index()];
                let others = barrier.enters.iter().filter(|(other, _)| *other != thread);
                !barrier.is_regular()
                    || others.into_iter().any(|(other, _)| !self.places[other.index()].is_empty())
            }
            Action::SemWait { sem } => {
                let semaphore = &program.semaphores[sem.index()];
                let waits: usize = semaphore.waits.iter().map(|(_, waits)| waits.len()).sum();
                let posts: usize = semaphore.posts.iter().map(|(_, posts)| posts.len()).sum();
                let competes = semaphore.waits.len() > 1 || semaphore.start as usize + posts < waits;
                let mut posters = semaphore.posts.iter();
                competes
                    || posters.any(|(other, _)| other == thread || !self.places[other.index()].is_empty())
            }
            Action::OncePassed { once } => {
                let once = &program.onces[once.index()];
                let end = once.end.saturating_add(1);
                once.end == Pos::MAX || self.within(once.thread.index(), once.begin, end)
            }
            Action::Lock { tries: true, .. }
            | Action::Free
            | Action::Unlock { .. }
            | Action::Signal { .. }
            | Action::WaitBegin { .. }
            | Action::BarrierEnter { .. }
            | Action::SemPost { .. }
            | Action::Atomic { .. } => false,
        }
    }
}

/// An initialiser that runs is waited for, whatever else the step needs.
fn waits_for_initialiser(step: &Step) -> bool {
    matches!(step.action, Action::OncePassed { .. })
}

/// Holds of a lock that keep others from taking it in a mode.
fn conflicting(uses: &LockUse, shared: bool) -> [&[Hold]; 2] {
    if shared { [&uses.exclusive, &[]] } else { [&uses.exclusive, &uses.shared] }
}

/// Is there anything that the step could wait for?
fn can_wait(program: &Program, step: &Step) -> bool {
    match step.action {
        Action::Lock { tries, .. } => !tries || (step.waits && !program.needs_of(step).is_empty()),
        Action::Wait { .. }
        | Action::BarrierExit { .. }
        | Action::SemWait { .. }
        | Action::OncePassed { .. } => true,
        Action::Free
        | Action::Unlock { .. }
        | Action::Signal { .. }
        | Action::WaitBegin { .. }
        | Action::BarrierEnter { .. }
        | Action::SemPost { .. }
        | Action::Atomic { .. } => step.waits && !program.needs_of(step).is_empty(),
    }
}
