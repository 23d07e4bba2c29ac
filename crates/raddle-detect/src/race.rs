//! What all race detectors share: who accessed, and how a race is told.

use crate::report::{Part, Report, Reports, place_key, variable};
use crate::step::{Step, VarIx};
use raddle_findings::{Grade, Kind};
use raddle_trace::{ContextIx, LocationIx, ThreadIx};

/// An access that may turn out to race with a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    pub thread: ThreadIx,
    pub location: LocationIx,
    pub context: ContextIx,
    pub position: u64,
}

impl Site {
    #[inline]
    pub fn of(step: &Step<'_>) -> Site {
        Site {
            thread: step.event.thread,
            location: step.event.location,
            context: step.event.context,
            position: step.position,
        }
    }

    pub fn part(&self, action: &'static str) -> Part {
        Part {
            thread: self.thread,
            location: self.location,
            context: self.context,
            position: self.position,
            action: action.into(),
        }
    }
}

/// Collects the races of one detector.
#[derive(Clone, Debug)]
pub struct Races {
    by: &'static str,
    grade: Grade,
    reports: Reports,
    /// Every racing access and variable, if they were asked for.
    all: Option<Vec<(u64, VarIx)>>,
}

fn verb(write: bool) -> &'static str {
    if write { "writes" } else { "reads" }
}

impl Races {
    pub fn new(by: &'static str, grade: Grade) -> Races {
        Races { by, grade, reports: Reports::default(), all: None }
    }

    /// Keeps every racing access, for comparisons.
    pub fn keep_all(mut self) -> Races {
        self.all = Some(Vec::new());
        self
    }

    /// Place in the observed order and variable of every access that raced with an earlier one.
    pub fn all(&self) -> &[(u64, VarIx)] {
        self.all.as_deref().unwrap_or(&[])
    }

    /// The step races with an earlier access.
    #[cold]
    pub fn race(&mut self, var: VarIx, first: Site, first_writes: bool, step: &Step<'_>, writes: bool) {
        if let Some(all) = &mut self.all
            && all.last() != Some(&(step.position, var))
        {
            all.push((step.position, var));
        }
        let second = Site::of(step);
        let places = [(first.location, first.context), (second.location, second.context)];
        let (by, grade) = (self.by, self.grade);
        self.reports.add(place_key(&places, u64::from(var.0)), || {
            let message = "two threads access the same memory without synchronisation";
            Report::new(by, Kind::DataRace, grade, message)
                .part(first.part(verb(first_writes)))
                .part(second.part(verb(writes)))
                .object(variable(var))
        });
    }

    /// The variable is accessed without a consistent lock; there is no particular earlier access.
    #[cold]
    pub fn unprotected(&mut self, var: VarIx, first: Site, step: &Step<'_>, writes: bool) {
        if let Some(all) = &mut self.all {
            all.push((step.position, var));
        }
        let second = Site::of(step);
        let places = [(first.location, first.context), (second.location, second.context)];
        let (by, grade) = (self.by, self.grade);
        self.reports.add(place_key(&places, u64::from(var.0)), || {
            Report::new(by, Kind::DataRace, grade, "no lock protects all accesses to this memory")
                .part(first.part("accesses"))
                .part(second.part(verb(writes)))
                .object(variable(var))
        });
    }

    pub fn take(&mut self) -> Vec<Report> {
        self.reports.take()
    }
}
