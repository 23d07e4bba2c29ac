//! `atomizer`: atomicity by reduction.
//!
//! **Definition** (Flanagan, Freund, *Atomizer: a dynamic atomicity checker for multithreaded programs*, POPL 2004;
//! Lipton 1975). A region is atomic if its steps can be moved together: acquisitions are right movers, releases left
//! movers, accesses without races both movers, accesses with potential races non-movers. The region must have the form
//! `R* N? L*` (both movers anywhere): after the first release or the non-mover nothing may acquire or be a non-mover.
//! Whether an access may race is decided by the lockset discipline of [`super::eraser`].
//!
//! **Neither sound nor complete**, because the lockset discipline is not, and because reducible is sufficient for
//! atomic but not necessary. Grade *suspected*.
//!
//! **Deviations**: a variable that turns out to be unprotected counts as racy from then on; the paper may rerun.
//! Atomic accesses are non-movers. Other synchronisation does not count as a mover. The paper's extension for locks that
//! are protected themselves is [`super::protected_locks`], as `atomizer-protected`.
//!
//! **Cost**: constant an event.

use super::protected_locks::{self, ProtectedLocks};
use crate::detector::{Detector, End};
use crate::locksets::{LockSetIx, LockSets};
use crate::race::Site;
use crate::region::{RegionTracker, Regions};
use crate::report::{PartAction, Report, Reports, Subject, place_key};
use crate::step::{PerVar, Step, Sync};
use raddle_findings::{Basis, Detail, Kind, Role};
use raddle_trace::{Op, ThreadIx};

pub const NAME: &str = "atomizer";

/// Lockset state of a variable, as in Eraser.
#[derive(Clone, Copy, Debug, Default)]
enum Protection {
    #[default]
    Virgin,
    Exclusive(ThreadIx),
    Shared(LockSetIx),
    SharedModified(LockSetIx),
}

#[derive(Clone, Copy, Debug, Default)]
struct Region {
    begin: Site,
    /// The step after which only left movers may come.
    commit: Option<Site>,
    violated: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Atomizer {
    tracker: RegionTracker,
    regions: Vec<Region>,
    locksets: LockSets,
    protections: PerVar<Protection>,
    reports: Reports,
    /// Locks whose operations move both ways, if the extension is on.
    protected: Option<ProtectedLocks>,
    /// Places of the steps that broke a region.
    violations: Vec<u64>,
}

impl Atomizer {
    pub fn new(regions: Regions) -> Atomizer {
        Atomizer { tracker: RegionTracker::new(regions), ..Atomizer::default() }
    }

    /// With the extension of [`super::protected_locks`].
    pub fn with_protected_locks(regions: Regions) -> Atomizer {
        Atomizer { protected: Some(ProtectedLocks::default()), ..Atomizer::new(regions) }
    }

    fn name(&self) -> &'static str {
        if self.protected.is_some() { protected_locks::NAME } else { NAME }
    }

    pub fn violations(&self) -> &[u64] {
        &self.violations
    }

    /// Enters an access; true if it may race.
    fn races(&mut self, step: &Step<'_>, write: bool) -> bool {
        let thread = step.thread();
        let usable = step.held.iter().filter(|held| !(write && held.read));
        let held = self.locksets.intern(usable.map(|held| held.lock));
        let mut races = false;
        for &var in step.vars {
            let protection = self.protections.get_mut(var);
            *protection = match *protection {
                Protection::Virgin => Protection::Exclusive(thread),
                Protection::Exclusive(owner) if owner == thread => Protection::Exclusive(owner),
                Protection::Exclusive(_) if write => Protection::SharedModified(held),
                Protection::Exclusive(_) => Protection::Shared(held),
                Protection::Shared(candidates) if !write => {
                    Protection::Shared(self.locksets.meet(candidates, held))
                }
                Protection::Shared(candidates) | Protection::SharedModified(candidates) => {
                    Protection::SharedModified(self.locksets.meet(candidates, held))
                }
            };
            races |= matches!(protection, Protection::SharedModified(LockSetIx::EMPTY));
        }
        races
    }
}

impl Detector for Atomizer {
    fn step(&mut self, step: &Step<'_>) {
        self.protections.follow(step);
        let place = self.tracker.step(step);
        let racy = match (step.plain_access(), step.event.op) {
            (Some(write), _) => self.races(step, write),
            (None, Op::Atomic { .. }) => true,
            _ => false,
        };
        let both = match (&mut self.protected, step.sync) {
            (Some(locks), Sync::Acquire { lock, .. }) => locks.acquire(lock, step.thread(), step.held),
            (Some(locks), Sync::Release { lock, .. }) => locks.moves_both_ways(lock),
            _ => false,
        };
        let name = self.name();
        let thread = step.thread().index();
        if self.regions.len() <= thread {
            self.regions.resize(thread + 1, Region::default());
        }
        let region = &mut self.regions[thread];
        if place.begins {
            *region = Region { begin: Site::of(step), commit: None, violated: false };
        }
        if !place.inside || region.violated {
            return;
        }
        let (right, left) = (
            !both && matches!(step.sync, Sync::Acquire { .. }),
            !both && matches!(step.sync, Sync::Release { .. }),
        );
        match region.commit {
            Some(commit) if right || racy => {
                region.violated = true;
                self.violations.push(step.position);
                let (begin, second) = (region.begin, Site::of(step));
                self.reports.add(place_key(&[begin, commit, second], second.position), || {
                    let breaks = match step.sync {
                        Sync::Acquire { lock, read } => {
                            second.part(PartAction::Acquires { subject: Some(Subject::Lock(lock)), read })
                        }
                        Sync::None
                        | Sync::Release { .. }
                        | Sync::Fork(_)
                        | Sync::Join(_)
                        | Sync::Receive(_)
                        | Sync::Send(_)
                        | Sync::Exchange(_) => {
                            second.accesses(step.vars.first().copied().map(Subject::Variable))
                        }
                    };
                    Report::new(name, Kind::AtomicityViolation, Basis::rule())
                        .detail(Detail::NotReducible)
                        .part(begin.plays(Role::BeginsRegion, None))
                        .part(commit.plays(Role::CommitsRegion, None))
                        .part(breaks)
                });
            }
            None if racy || left => region.commit = Some(Site::of(step)),
            _ => {}
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.reports.take()
    }
}
