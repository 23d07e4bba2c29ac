//! Partial order reduction: which threads have to be tried in a state.
//!
//! Strong stubborn sets (Valmari 1989; Godefroid's persistent sets are the same idea). A set of threads is stubborn in a
//! state if, for the next step of each of its threads:
//!
//! * if the step can be taken: every thread with a later step that does not commute with it is in the set;
//! * if it cannot: everything that could make it possible begins with a thread of the set (a *necessary enabling set*).
//!
//! Then whatever the others do, they can do it afterwards as well. Trying only the enabled threads of a stubborn set that
//! contains an enabled one reaches every stuck state; and if the set contains a thread that has to move before the goal
//! is reached, it preserves reachability of the goal (that step is a landmark: every path to the goal takes it). Steps
//! only ever lead forward, so no cycle can postpone a thread for ever.
//!
//! # What does not commute
//!
//! Two acquisitions of a lock in conflicting modes; two waits on a semaphore; entries of a barrier that more threads use
//! than it waits for; an atomic that sets a register and any other of the register; a signal and the beginning of the
//! wait it is for; the first step of an initialiser and a thread that passes it. Releases, posts, forks, ends, joins
//! commute with everything that is possible at the same time, so a thread before such a step is a stubborn set alone.

use crate::ids::{Pos, ValueIx};
use crate::program::Action;
use crate::state::{State, Status};
use raddle_trace::ThreadIx;
use raddle_wire::Demand;
use smallvec::SmallVec;

/// Threads to try, in the order of their numbers.
pub type Choice = SmallVec<[ThreadIx; 4]>;

/// Memory for computing stubborn sets.
pub struct Stubborn {
    member: Vec<bool>,
    work: Vec<ThreadIx>,
}

impl Stubborn {
    pub fn new(threads: usize) -> Stubborn {
        Stubborn { member: vec![false; threads], work: Vec::new() }
    }

    /// The enabled threads of a stubborn set that contains the next step of `seed`. No thread goes beyond its limit.
    pub fn set(&mut self, state: &State<'_>, limit: &[Pos], seed: ThreadIx) -> Choice {
        self.member.fill(false);
        self.work.clear();
        self.add(seed);
        let mut enabled = Choice::new();
        while let Some(thread) = self.work.pop() {
            match state.status(thread, limit[thread.index()]) {
                Status::Done => {}
                Status::Enabled => {
                    enabled.push(thread);
                    self.add_conflicts(state, limit, thread);
                }
                Status::Blocked | Status::Stray => self.add_enablers(state, limit, thread),
            }
        }
        enabled.sort_unstable();
        enabled
    }

    /// The smallest choice among those that begin with one of the seeds.
    pub fn smallest(&mut self, state: &State<'_>, limit: &[Pos], seeds: &[ThreadIx]) -> Choice {
        let mut best: Option<Choice> = None;
        for &seed in seeds {
            let choice = self.set(state, limit, seed);
            if choice.len() <= 1 {
                return choice;
            }
            if best.as_ref().is_none_or(|best| choice.len() < best.len()) {
                best = Some(choice);
            }
        }
        best.unwrap_or_default()
    }

    fn add(&mut self, thread: ThreadIx) {
        if !std::mem::replace(&mut self.member[thread.index()], true) {
            self.work.push(thread);
        }
    }

    fn add_all(&mut self, threads: impl Iterator<Item = ThreadIx>) {
        for thread in threads {
            self.add(thread);
        }
    }

    /// Threads with a later step that does not commute with the enabled next step of `thread`.
    fn add_conflicts(&mut self, state: &State<'_>, limit: &[Pos], thread: ThreadIx) {
        let program = state.program;
        let Some(step) = state.next_step(thread) else { return };
        match step.action {
            Action::Lock { lock, .. } => {
                for (other, uses) in &program.locks[lock.index()].uses {
                    let (from, to) = (state.at[other.index()], limit[other.index()]);
                    if *other != thread && uses.competes_between(from, to, step.action.effect()) {
                        self.add(*other);
                    }
                }
            }
            Action::SemWait { sem } => {
                self.add_all(program.semaphores[sem.index()].waits.between(&state.at, limit));
            }
            Action::BarrierEnter { barrier } => {
                let barrier = &program.barriers[barrier.index()];
                if !barrier.is_regular() {
                    self.add_all(barrier.enters.between(&state.at, limit));
                }
            }
            Action::Atomic { register, sets, .. } => {
                let register = &program.registers[register.index()];
                self.add_all(register.writers.between(&state.at, limit));
                if sets != ValueIx::NONE {
                    self.add_all(register.reads.between(&state.at, limit));
                }
            }
            Action::Signal { instance } => {
                for &(waiter, waits_at) in &program.instances[instance.index()].woken {
                    // Its beginning, one step before, still lies ahead.
                    if state.at[waiter.index()] < waits_at && waits_at <= limit[waiter.index()] {
                        self.add(waiter);
                    }
                }
            }
            Action::WaitBegin { instance, .. } if instance.0 != u32::MAX => {
                let instance = &program.instances[instance.index()];
                let signaller = instance.thread.index();
                if state.at[signaller] <= instance.signal && instance.signal < limit[signaller] {
                    self.add(instance.thread);
                }
            }
            // Nothing that is possible at the same time is made impossible or otherwise changed by these.
            Action::Free
            | Action::Unlock { .. }
            | Action::WaitBegin { .. }
            | Action::Wait { .. }
            | Action::BarrierExit { .. }
            | Action::SemPost { .. }
            | Action::OncePassed { .. } => debug_assert!(
                !step.action.effect().revokes(step.action.effect().demand()),
                "operations that compete with their like have conflicts"
            ),
        }
    }

    /// Threads one of which has to move before the next step of `thread` becomes possible.
    fn add_enablers(&mut self, state: &State<'_>, limit: &[Pos], thread: ThreadIx) {
        let program = state.program;
        let Some(step) = state.next_step(thread) else { return };
        if let Action::OncePassed { once } = step.action {
            return self.add(program.onces[once.index()].thread);
        }
        if let Some(need) = state.unmet_need(step) {
            return self.add(need.thread);
        }
        match step.action {
            Action::Lock { lock, .. } => {
                let holder =
                    state.writer_of(lock).or_else(|| state.holders_of(lock).find(|&other| other != thread));
                if let Some(holder) = holder {
                    self.add(holder);
                }
            }
            Action::Wait { instance } => {
                // If the signal was sent before the wait began, nothing helps any more.
                let instance = &program.instances[instance.index()];
                if state.at[instance.thread.index()] <= instance.signal {
                    self.add(instance.thread);
                }
            }
            Action::BarrierExit { barrier } => {
                self.add_all(program.barriers[barrier.index()].enters.between(&state.at, limit));
            }
            Action::SemWait { sem } => {
                self.add_all(program.semaphores[sem.index()].posts.between(&state.at, limit));
            }
            // What was overwritten does not come back.
            Action::Atomic { .. } if program.keeps_reads => {}
            Action::Atomic { register, .. } => {
                self.add_all(program.registers[register.index()].writers.between(&state.at, limit));
            }
            // These are never refused by their object, except a guarded wait whose signal has been sent: nothing takes that back.
            Action::Free
            | Action::Unlock { .. }
            | Action::Signal { .. }
            | Action::WaitBegin { .. }
            | Action::BarrierEnter { .. }
            | Action::SemPost { .. }
            | Action::OncePassed { .. } => debug_assert!(
                matches!(step.action.effect().demand(), Demand::Nothing | Demand::Initialised),
                "an operation that can be refused has enablers"
            ),
        }
    }
}
