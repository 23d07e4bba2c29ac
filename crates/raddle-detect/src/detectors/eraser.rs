//! `eraser` and `eraser-ownership`: the lockset discipline.
//!
//! **Definition** (Savage et al., *Eraser: a dynamic data race detector for multithreaded programs*, 1997). Some lock
//! should protect all accesses to a shared variable. The set of candidates starts with all locks and loses at each
//! access those not held. A variable goes through states: *virgin*; *exclusive* while one thread accesses it
//! (initialisation needs no lock); *shared* once a second thread reads; *shared-modified* once a second thread
//! accesses it and anybody writes. Candidates are refined in the last two and an empty set is reported in the last.
//! With read-write locks, a write counts only the locks held for writing.
//!
//! The *ownership* variant (von Praun, Gross 2001 and others; the survey's §5.1) lets the creator hand a variable over:
//! the second thread becomes its new owner, and only a further change of thread makes it shared.
//!
//! **Neither sound nor complete**: it warns about programs that synchronise by other means than locks, and misses
//! races of accesses that happen to be under a common lock or in the exclusive states. Grade *suspected*.
//!
//! **Deviations**: candidates are those of the access that makes the variable shared, as in the paper's
//! implementation. Reported once a variable.
//!
//! **Cost**: constant an access; sets of locks are stored once and intersections are remembered.

use crate::detector::{Detector, End};
use crate::locksets::{LockSetIx, LockSets};
use crate::race::{Races, Site};
use crate::report::Report;
use crate::step::{PerVar, Step};
use raddle_findings::Basis;
use raddle_trace::ThreadIx;

pub const NAME: &str = "eraser";
pub const OWNERSHIP_NAME: &str = "eraser-ownership";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Virgin,
    Exclusive(ThreadIx),
    /// Handed over by its creator (ownership variant only).
    Owned(ThreadIx),
    Shared(LockSetIx),
    SharedModified(LockSetIx),
    Reported,
}

#[derive(Debug)]
pub struct Eraser {
    ownership: bool,
    locksets: LockSets,
    states: PerVar<(State, Site)>,
    races: Races,
}

impl Eraser {
    pub fn new(ownership: bool) -> Eraser {
        let name = if ownership { OWNERSHIP_NAME } else { NAME };
        Eraser {
            ownership,
            locksets: LockSets::default(),
            states: PerVar::default(),
            races: Races::new(name, Basis::rule()),
        }
    }

    pub fn keep_all(ownership: bool) -> Eraser {
        let mut eraser = Eraser::new(ownership);
        eraser.races = eraser.races.keep_all();
        eraser
    }

    pub fn races(&self) -> &Races {
        &self.races
    }
}

impl Detector for Eraser {
    fn step(&mut self, step: &Step<'_>) {
        self.states.follow(step);
        let Some(write) = step.plain_access() else { return };
        let thread = step.thread();
        for &var in step.vars {
            let (state, last) = *self.states.get_mut(var);
            let mut held = || {
                let usable = step.held.iter().filter(|held| !(write && held.read));
                self.locksets.intern(usable.map(|held| held.lock))
            };
            let mut next = match state {
                State::Virgin => State::Exclusive(thread),
                State::Exclusive(owner) | State::Owned(owner) if owner == thread => state,
                State::Exclusive(_) if self.ownership => State::Owned(thread),
                State::Exclusive(_) | State::Owned(_) if write => State::SharedModified(held()),
                State::Exclusive(_) | State::Owned(_) => State::Shared(held()),
                State::Shared(candidates) | State::SharedModified(candidates) => {
                    let held = held();
                    let candidates = self.locksets.meet(candidates, held);
                    let modified = write || matches!(state, State::SharedModified(_));
                    if modified { State::SharedModified(candidates) } else { State::Shared(candidates) }
                }
                State::Reported => continue,
            };
            if next == State::SharedModified(LockSetIx::EMPTY) {
                self.races.unprotected(var, last, step);
                next = State::Reported;
            }
            *self.states.get_mut(var) = (next, Site::of(step));
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
