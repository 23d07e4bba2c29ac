//! `trade`: races of what several threads can reach.
//!
//! **Definition** (Christiaens, De Bosschere, *TRaDe: data race detection for Java*, ICCS 2001; the survey's §5.1). What only
//! one thread can reach belongs to it and is not looked at. From the moment at which a second thread can reach it, its
//! accesses are checked with vector clocks: two in parallel segments, one of them a write, are a race.
//!
//! **Precise** for happens-before among what it looks at: it reports a part of what [`super::djit`] does. What it leaves out
//! are the owner's accesses before it gave the data away, of which the paper takes for granted that handing over a
//! reference orders them. Grade *unordered*.
//!
//! **Deviations**: the paper follows references from object to object to know who can reach what. A trace of memory accesses
//! has no references; here a variable can be reached by a second thread from that thread's first access to it on.
//!
//! **Cost**: as [`super::djit`], and nothing for variables of one thread but remembering it.

use crate::detector::{Detector, End};
use crate::happens_before::HappensBefore;
use crate::race::{Races, Site};
use crate::report::Report;
use crate::step::{PerVar, Step};
use raddle_findings::Basis;
use raddle_trace::ThreadIx;

pub const NAME: &str = "trade";

/// Times and places of each slot's last access; time 0 is never.
type LastAccesses = Vec<(u32, Site)>;

#[derive(Clone, Debug, Default)]
enum Reach {
    #[default]
    Nobody,
    Owner(ThreadIx),
    Several {
        reads: LastAccesses,
        writes: LastAccesses,
    },
}

#[derive(Debug)]
pub struct Trade {
    order: HappensBefore,
    variables: PerVar<Reach>,
    races: Races,
}

impl Default for Trade {
    fn default() -> Trade {
        let races = Races::new(NAME, Basis::unordered());
        Trade { order: HappensBefore::new(), variables: PerVar::default(), races }
    }
}

impl Trade {
    pub fn keep_all() -> Trade {
        Trade { races: Races::new(NAME, Basis::unordered()).keep_all(), ..Trade::default() }
    }

    pub fn races(&self) -> &Races {
        &self.races
    }
}

impl Detector for Trade {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let Some(write) = step.plain_access() else { return self.order.step(step) };
        let thread = step.thread();
        let slot = self.order.slot(thread);
        let (clock, now) = (self.order.clock(slot), self.order.now(slot));
        for &var in step.vars {
            let reach = self.variables.get_mut(var);
            match reach {
                Reach::Nobody => *reach = Reach::Owner(thread),
                Reach::Owner(owner) if *owner != thread => {
                    *reach = Reach::Several { reads: Vec::new(), writes: Vec::new() };
                }
                Reach::Owner(_) | Reach::Several { .. } => {}
            }
            let Reach::Several { reads, writes } = reach else { continue };
            let unknown = |accesses: &LastAccesses| {
                let known = |slot: usize| clock.as_slice().get(slot).copied().unwrap_or(0);
                let mut entries = accesses.iter().enumerate();
                entries.find(|(other, (time, _))| *time > known(*other)).map(|(_, (_, site))| *site)
            };
            let first = unknown(writes).or_else(|| if write { unknown(reads) } else { None });
            if let Some(first) = first {
                self.races.race(var, first, step);
            }
            let mine = if write { writes } else { reads };
            if mine.len() <= slot.index() {
                mine.resize(slot.index() + 1, (0, Site::default()));
            }
            mine[slot.index()] = (now, Site::of(step));
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
