//! `fasttrack`: races by epochs.
//!
//! **Definition** (Flanagan, Freund, *FastTrack: efficient and precise dynamic race detection*, PLDI 2009). Like
//! [`super::djit`], but the writes of a variable are ordered as long as there is no race, so the last one stands for
//! all: an *epoch*, one thread's time, instead of a clock. Reads need a clock only while several threads read
//! concurrently.
//!
//! **Precise up to the first race of each variable**: that is found at the same access as by `djit`. After it, fewer
//! pairs are compared. Grade *suspected*, for the same reason as there.
//!
//! **Deviations**: locations are kept beside epochs, so that a report can name both sides. A read of the variable's own
//! epoch returns at once, as in the paper, and then the earlier location of that epoch stays.
//!
//! **Cost**: constant for nearly every access.

use crate::detector::{Detector, End};
use crate::happens_before::HappensBefore;
use crate::race::{Races, Site};
use crate::report::Report;
use crate::step::{PerVar, Step};
use raddle_findings::Grade;
use raddle_trace::ThreadIx;

pub const NAME: &str = "fasttrack";

/// A thread's time; time 0 is before everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Epoch {
    time: u32,
    slot: ThreadIx,
}

/// What every access looks at: small, so that the variables of a program stay in the cache.
#[derive(Clone, Debug, Default)]
struct Variable {
    write: Epoch,
    read: Epoch,
    /// Several threads' last reads, while they are concurrent: rare, and boxed so that the common case stays small.
    #[allow(clippy::box_collection)]
    shared: Option<Box<Vec<(Epoch, Site)>>>,
}

/// Where the two epochs of a variable were; read only for reports.
#[derive(Clone, Copy, Debug, Default)]
struct Sites {
    write: Site,
    read: Site,
}

#[derive(Debug)]
pub struct FastTrack {
    order: HappensBefore,
    variables: PerVar<Variable>,
    sites: PerVar<Sites>,
    races: Races,
}

impl Default for FastTrack {
    fn default() -> FastTrack {
        FastTrack {
            order: HappensBefore::new(),
            variables: PerVar::default(),
            sites: PerVar::default(),
            races: Races::new(NAME, Grade::Suspected),
        }
    }
}

impl FastTrack {
    pub fn keep_all() -> FastTrack {
        FastTrack { races: Races::new(NAME, Grade::Suspected).keep_all(), ..FastTrack::default() }
    }

    pub fn races(&self) -> &Races {
        &self.races
    }

    #[inline]
    fn access(&mut self, step: &Step<'_>, write: bool) {
        let slot = self.order.slot(step.thread());
        let clock = self.order.clock(slot);
        let now = Epoch { time: clock.get(slot), slot };
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            if write && variable.write == now || !write && variable.read == now {
                continue;
            }
            let sites = self.sites.get_mut(var);
            if variable.write.time > clock.get(variable.write.slot) {
                self.races.race(var, sites.write, true, step, write);
            }
            if write {
                write_to(
                    variable,
                    sites,
                    now,
                    step,
                    |epoch| epoch.time > clock.get(epoch.slot),
                    |site| {
                        self.races.race(var, site, false, step, true);
                    },
                );
            } else {
                read_from(variable, sites, now, step, |epoch| epoch.time <= clock.get(epoch.slot));
            }
        }
    }
}

#[inline]
fn write_to(
    variable: &mut Variable,
    sites: &mut Sites,
    now: Epoch,
    step: &Step<'_>,
    unknown: impl Fn(Epoch) -> bool,
    mut race: impl FnMut(Site),
) {
    match variable.shared.take() {
        None if unknown(variable.read) => race(sites.read),
        None => {}
        Some(shared) => {
            if let Some((_, site)) = shared.iter().find(|(epoch, _)| unknown(*epoch)) {
                race(*site);
            }
            variable.read = Epoch::default();
        }
    }
    variable.write = now;
    sites.write = Site::of(step);
}

#[inline]
fn read_from(
    variable: &mut Variable,
    sites: &mut Sites,
    now: Epoch,
    step: &Step<'_>,
    known: impl Fn(Epoch) -> bool,
) {
    let site = Site::of(step);
    match &mut variable.shared {
        Some(shared) => match shared.iter_mut().find(|(epoch, _)| epoch.slot == now.slot) {
            Some(entry) => *entry = (now, site),
            None => shared.push((now, site)),
        },
        None if known(variable.read) => (variable.read, sites.read) = (now, site),
        None => {
            variable.shared = Some(Box::new(vec![(variable.read, sites.read), (now, site)]));
            variable.read = Epoch::default();
        }
    }
}

impl Detector for FastTrack {
    #[inline]
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        self.sites.follow(step);
        match step.plain_access() {
            Some(write) => self.access(step, write),
            None => self.order.step(step),
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
