//! `atomicsets`: problematic interleavings of units of work.
//!
//! **Definition** (Vaziri, Tip, Dolby, *Associating synchronization constraints with data in an object-oriented
//! language*, POPL 2006; Hammer, Dolby, Vaziri, Tip, *Dynamic detection of atomic-set-serializability violations*, ICSE
//! 2008; the survey's §5.2). Variables of an *atomic set* belong together; a *unit of work* is a region that should see
//! and leave them consistent. Eleven patterns of accesses by two units to one or two variables of a set (written below
//! with the unit that must be atomic in lower case) are not serialisable; a run without any of them is.
//!
//! ```text
//! r W w    r W r    w R w    w W r    w W w                               one variable
//! w1 W1 W2 w2   w1 W2 w2 W1   w1 R1 R2 w2   r1 W1 W2 r2   r1 W2 r2 W1   w1 R2 w2 R1
//! ```
//!
//! **Sound and complete** for the patterns in the observed run; whether the set was meant as one is the user's word, so
//! the grade is *suspected*. All variables that units access are one set unless sets are given.
//!
//! **Deviations**: the papers' race automata are run over the whole program; here the accesses of a unit are kept as
//! sorted places for each variable until no unit overlaps it any more, and patterns are looked for when a unit ends.
//! A unit keeps at most [`PLACES_MAX`] places for a variable and [`VARIABLES_MAX`] variables.
//!
//! **Cost**: pairs of overlapping units x pairs of their common variables.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::region::{RegionTracker, Regions};
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::{Step, VarIx};
use raddle_findings::{Basis, Detail, Kind};
use raddle_trace::{Addr, Op, ThreadIx};

pub const NAME: &str = "atomicsets";

pub const PLACES_MAX: usize = 256;
pub const VARIABLES_MAX: usize = 64;

/// Ranges of addresses that belong together.
#[derive(Clone, Debug, Default)]
pub struct AtomicSets(pub Vec<Vec<std::ops::Range<u64>>>);

/// The accesses of a unit to one variable.
#[derive(Clone, Debug)]
struct Accesses {
    var: VarIx,
    set: u32,
    reads: Vec<Site>,
    writes: Vec<Site>,
}

#[derive(Clone, Debug)]
struct Unit {
    thread: ThreadIx,
    begin: Site,
    end: Option<u64>,
    accesses: Vec<Accesses>,
}

/// One access of a pattern: by the unit that must be atomic (`ours`), writing, first or second variable.
type Element = (bool, bool, usize);

const OURS: bool = true;
const THEIRS: bool = false;
const READ: bool = false;
const WRITE: bool = true;

const ONE_VARIABLE: [[Element; 3]; 5] = [
    [(OURS, READ, 0), (THEIRS, WRITE, 0), (OURS, WRITE, 0)],
    [(OURS, READ, 0), (THEIRS, WRITE, 0), (OURS, READ, 0)],
    [(OURS, WRITE, 0), (THEIRS, READ, 0), (OURS, WRITE, 0)],
    [(OURS, WRITE, 0), (THEIRS, WRITE, 0), (OURS, READ, 0)],
    [(OURS, WRITE, 0), (THEIRS, WRITE, 0), (OURS, WRITE, 0)],
];

const TWO_VARIABLES: [[Element; 4]; 6] = [
    [(OURS, WRITE, 0), (THEIRS, WRITE, 0), (THEIRS, WRITE, 1), (OURS, WRITE, 1)],
    [(OURS, WRITE, 0), (THEIRS, WRITE, 1), (OURS, WRITE, 1), (THEIRS, WRITE, 0)],
    [(OURS, WRITE, 0), (THEIRS, READ, 0), (THEIRS, READ, 1), (OURS, WRITE, 1)],
    [(OURS, READ, 0), (THEIRS, WRITE, 0), (THEIRS, WRITE, 1), (OURS, READ, 1)],
    [(OURS, READ, 0), (THEIRS, WRITE, 1), (OURS, READ, 1), (THEIRS, WRITE, 0)],
    [(OURS, WRITE, 0), (THEIRS, READ, 1), (OURS, WRITE, 1), (THEIRS, READ, 0)],
];

#[derive(Clone, Debug, Default)]
pub struct AtomicSetSerialisability {
    tracker: RegionTracker,
    sets: AtomicSets,
    running: Vec<Unit>,
    ended: Vec<Unit>,
    reports: Reports,
    /// Places of the first and last event of each pattern found.
    violations: Vec<(u64, u64)>,
}

impl Unit {
    fn find(&self, var: VarIx) -> Option<&Accesses> {
        self.accesses.iter().find(|accesses| accesses.var == var)
    }
}

/// A pattern that was found: its accesses, each with its variable.
type Found = Vec<(Site, VarIx)>;

/// Finds the pattern as a subsequence, each element as early as possible.
fn find(pattern: &[Element], ours: [&Accesses; 2], theirs: [&Accesses; 2]) -> Option<Found> {
    let mut found = Found::new();
    for &(mine, write, variable) in pattern {
        let accesses = if mine { ours[variable] } else { theirs[variable] };
        let list = if write { &accesses.writes } else { &accesses.reads };
        let after = found.last().map(|(site, _)| site.position);
        let next = list.partition_point(|site| after.is_some_and(|after| site.position <= after));
        found.push((*list.get(next)?, accesses.var));
    }
    Some(found)
}

/// `read write read`, or with two variables `write1 write2 write2 write1`.
fn words(accesses: &Found) -> String {
    let first = accesses[0].1;
    let alone = accesses.iter().all(|&(_, var)| var == first);
    let word = |&(site, var): &(Site, VarIx)| match (alone, var == first) {
        (true, _) => site.touch.word().to_owned(),
        (false, same) => format!("{}{}", site.touch.word(), if same { 1 } else { 2 }),
    };
    accesses.iter().map(word).collect::<Vec<_>>().join(" ")
}

impl AtomicSetSerialisability {
    pub fn new(regions: Regions, sets: AtomicSets) -> AtomicSetSerialisability {
        AtomicSetSerialisability { tracker: RegionTracker::new(regions), sets, ..Default::default() }
    }

    pub fn violations(&self) -> &[(u64, u64)] {
        &self.violations
    }

    fn set_of(&self, addr: Addr) -> Option<u32> {
        if self.sets.0.is_empty() {
            return Some(0);
        }
        self.sets
            .0
            .iter()
            .position(|set| set.iter().any(|range| range.contains(&addr.0)))
            .map(|set| set as u32)
    }

    fn record(&mut self, step: &Step<'_>, write: bool) {
        let (Op::Read { addr, .. } | Op::Write { addr, .. }) = step.event.op else { return };
        let Some(set) = self.set_of(addr) else { return };
        let Some(unit) = self.running.iter_mut().find(|unit| unit.thread == step.thread()) else { return };
        for &var in step.vars {
            let place = unit.accesses.iter().position(|accesses| accesses.var == var).unwrap_or_else(|| {
                unit.accesses.push(Accesses { var, set, reads: Vec::new(), writes: Vec::new() });
                unit.accesses.len() - 1
            });
            if place < VARIABLES_MAX {
                let list =
                    if write { &mut unit.accesses[place].writes } else { &mut unit.accesses[place].reads };
                if list.len() < PLACES_MAX {
                    list.push(Site::of(step));
                }
            }
        }
        unit.accesses.truncate(VARIABLES_MAX);
    }

    /// A thread's unit has ended: compare it with those that overlapped.
    fn end(&mut self, thread: ThreadIx, position: u64) {
        let Some(place) = self.running.iter().position(|unit| unit.thread == thread) else { return };
        let mut unit = self.running.swap_remove(place);
        unit.end = Some(position);
        let mut found = Vec::new();
        for other in self.ended.iter().filter(|other| other.thread != thread) {
            if other.end.is_some_and(|end| end > unit.begin.position) {
                compare(&unit, other, &mut found);
                compare(other, &unit, &mut found);
            }
        }
        self.ended.push(unit);
        for accesses in found {
            let sites: Vec<Site> = accesses.iter().map(|&(site, _)| site).collect();
            let (first, last) = (sites[0], sites[sites.len() - 1]);
            self.violations.push((first.position, last.position));
            self.reports.add(place_key(&sites, first.position), || {
                let report = Report::new(NAME, Kind::AtomicityViolation, Basis::rule())
                    .detail(Detail::Pattern { accesses: words(&accesses) });
                accesses.iter().fold(report, |report, (site, var)| {
                    report.part(site.accesses(Some(Subject::Variable(*var))))
                })
            });
        }
        // A unit that ended before every running one began can meet none of them, nor any later one.
        let oldest = self.running.iter().map(|unit| unit.begin.position).min().unwrap_or(u64::MAX);
        self.ended.retain(|unit| unit.end.is_some_and(|end| end > oldest));
    }
}

fn compare(ours: &Unit, theirs: &Unit, found: &mut Vec<Found>) {
    for a in &ours.accesses {
        let Some(their_a) = theirs.find(a.var) else { continue };
        for pattern in &ONE_VARIABLE {
            found.extend(find(pattern, [a, a], [their_a, their_a]));
        }
        for b in ours.accesses.iter().filter(|b| b.var != a.var && b.set == a.set) {
            let Some(their_b) = theirs.find(b.var) else { continue };
            for pattern in &TWO_VARIABLES {
                found.extend(find(pattern, [a, b], [their_a, their_b]));
            }
        }
    }
}

impl Detector for AtomicSetSerialisability {
    fn step(&mut self, step: &Step<'_>) {
        let place = self.tracker.step(step);
        let thread = step.thread();
        if place.ended_before || place.begins {
            self.end(thread, step.position);
        }
        if place.begins {
            self.running.push(Unit { thread, begin: Site::of(step), end: None, accesses: Vec::new() });
        }
        if let (true, Some(write)) = (place.inside, step.plain_access()) {
            self.record(step, write);
        }
        if place.ends {
            self.end(thread, step.position);
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Vec<Report> {
        let threads: Vec<ThreadIx> = self.running.iter().map(|unit| unit.thread).collect();
        for thread in threads {
            self.end(thread, end.events);
        }
        self.reports.take()
    }
}
