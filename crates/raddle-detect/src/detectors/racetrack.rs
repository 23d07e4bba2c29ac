//! `racetrack`: threadsets and locksets.
//!
//! **Definition** (Yu, Rodeheffer, Chen, *RaceTrack: efficient detection of data race conditions via adaptive
//! tracking*, SOSP 2005). For each variable a *threadset*: labels (thread, time) of accesses that are concurrent with
//! the last one. An access removes the labels that it knows (by forks, joins, signals, ...; locks do not count) and
//! adds its own. While the set has one label the variable is exclusive and its lockset is that of the accessing thread;
//! with more, locks held are intersected. It is a race when the set has several labels and the lockset is empty.
//!
//! **Neither sound nor complete**, but with fewer false alarms than [`super::eraser`] for programs that fork, join and
//! signal. Grade *suspected*.
//!
//! **Deviations**: the paper's adaptive granularity and its state machine for warm-up are left out (the trace is
//! complete). A label remembers the thread's last write too, and a race needs a write on one side. Atomics order like
//! signals.
//!
//! **Cost**: threads an access.

use crate::detector::{Detector, End};
use crate::happens_before::HappensBefore;
use crate::locksets::{LockSetIx, LockSets};
use crate::race::{Races, Site};
use crate::report::Report;
use crate::step::{PerVar, Step};
use raddle_findings::Basis;
use raddle_trace::ThreadIx;

pub const NAME: &str = "racetrack";

#[derive(Clone, Copy, Debug)]
struct Label {
    slot: ThreadIx,
    time: u32,
    /// Time of the thread's last write; 0 if it only read.
    wrote: u32,
    site: Site,
    /// The thread's last write, if it wrote.
    write_site: Site,
}

#[derive(Clone, Debug, Default)]
struct Variable {
    threads: Vec<Label>,
    locks: LockSetIx,
}

#[derive(Debug)]
pub struct RaceTrack {
    order: HappensBefore,
    locksets: LockSets,
    variables: PerVar<Variable>,
    races: Races,
}

impl Default for RaceTrack {
    fn default() -> RaceTrack {
        RaceTrack {
            order: HappensBefore::without_locks(),
            locksets: LockSets::default(),
            variables: PerVar::default(),
            races: Races::new(NAME, Basis::rule()),
        }
    }
}

impl RaceTrack {
    pub fn keep_all() -> RaceTrack {
        RaceTrack { races: Races::new(NAME, Basis::rule()).keep_all(), ..RaceTrack::default() }
    }

    pub fn races(&self) -> &Races {
        &self.races
    }
}

impl Detector for RaceTrack {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let Some(write) = step.plain_access() else { return self.order.step(step) };
        let slot = self.order.slot(step.thread());
        let (clock, now) = (self.order.clock(slot), self.order.now(slot));
        let usable = step.held.iter().filter(|held| !(write && held.read));
        let held = self.locksets.intern(usable.map(|held| held.lock));
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            let site = Site::of(step);
            let (mut wrote, mut write_site) = if write { (now, site) } else { (0, Site::default()) };
            variable.threads.retain(|label| {
                // A slot may have belonged to an ended thread before; that one's writes are known and not this thread's.
                if label.site.thread == step.thread() && label.wrote > wrote {
                    (wrote, write_site) = (label.wrote, label.write_site);
                }
                label.slot != slot && label.time > clock.get(label.slot)
            });
            let unknown = |label: &&Label| write || label.wrote > clock.get(label.slot);
            let conflict = variable.threads.iter().find(unknown).copied();
            variable.locks =
                if variable.threads.is_empty() { held } else { self.locksets.meet(variable.locks, held) };
            if let (Some(first), LockSetIx::EMPTY) = (conflict, variable.locks) {
                // A read races with the other's write, which need not be its last access.
                self.races.race(var, if write { first.site } else { first.write_site }, step);
            }
            variable.threads.push(Label { slot, time: now, wrote, site, write_site });
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
