//! `units`: computational units under strict two-phase locking.
//!
//! **Definition** (Xu, Bodík, Hill, *A serializability violation detector for shared-memory server programs*, PLDI 2005; the
//! survey's §5.2). A *computational unit* is a piece of a thread's run in which everything depends on everything, but in which
//! no shared variable is written and then read again: what is read back after a write starts a new computation. Units
//! need no annotation and no locks. They are serialisable if they obey strict two-phase locking: from its first access to
//! a shared variable until it ends, nobody else makes a conflicting access to it.
//!
//! A unit is *intruded upon* when another thread makes a conflicting access to one of its variables, and violates
//! serialisability when it writes a shared variable afterwards: then what it computed from is no longer so.
//!
//! **Neither sound nor complete**: strict two-phase locking is sufficient for serialisability and not necessary, and units are
//! a guess. Grade *suspected*.
//!
//! **Deviations**: the paper follows data and control dependences from instruction to instruction to find which accesses
//! form a unit; a trace has no dependences, so a unit is everything that its thread does between two such cuts. Shared is
//! what another thread accessed before. The paper's intrusions into what a unit only wrote are left to the intruder's
//! own unit unless it writes too.
//!
//! **Cost**: constant an access, beside the threads whose open units have the variable.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::{PerVar, Step, VarIx};
use raddle_findings::{Basis, Detail, Kind, Role};
use raddle_trace::ThreadIx;
use rustc_hash::FxHashMap;

pub const NAME: &str = "units";

/// Variables of a unit that are remembered; a unit with more is closed.
pub const VARIABLES_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, Default)]
struct Use {
    read: bool,
    written: bool,
    site: Site,
}

#[derive(Clone, Debug, Default)]
struct Unit {
    uses: FxHashMap<VarIx, Use>,
    /// The first intrusion: what the unit had done there, and what the other thread did.
    intrusion: Option<(VarIx, Site, Site)>,
}

/// Who accessed a variable so far, and whose open units have it.
#[derive(Clone, Debug, Default)]
struct Variable {
    first: Option<ThreadIx>,
    shared: bool,
    open: Vec<ThreadIx>,
}

#[derive(Clone, Debug, Default)]
pub struct Units {
    units: Vec<Unit>,
    variables: PerVar<Variable>,
    reports: Reports,
    violations: Vec<u64>,
}

impl Units {
    /// Positions of the writes that violate serialisability.
    pub fn violations(&self) -> &[u64] {
        &self.violations
    }

    fn close(&mut self, thread: ThreadIx) {
        let unit = std::mem::take(&mut self.units[thread.index()]);
        for var in unit.uses.into_keys() {
            self.variables.get_mut(var).open.retain(|other| *other != thread);
        }
    }

    fn intrude(&mut self, var: VarIx, write: bool, by: Site) {
        for owner in self.variables.get_mut(var).open.clone() {
            let unit = &mut self.units[owner.index()];
            let Some(mine) = unit.uses.get(&var).filter(|_| owner != by.thread) else { continue };
            if mine.written || (write && mine.read) {
                unit.intrusion.get_or_insert((var, mine.site, by));
            }
        }
    }
}

impl Detector for Units {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let Some(write) = step.plain_access() else { return };
        let (thread, site) = (step.thread(), Site::of(step));
        if self.units.len() <= thread.index() {
            self.units.resize(thread.index() + 1, Unit::default());
        }
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            variable.shared |= *variable.first.get_or_insert(thread) != thread;
            let shared = variable.shared;
            let unit = &self.units[thread.index()];
            let reads_back = !write && shared && unit.uses.get(&var).is_some_and(|mine| mine.written);
            if reads_back || unit.uses.len() >= VARIABLES_MAX {
                self.close(thread);
            }
            self.intrude(var, write, site);
            let unit = &mut self.units[thread.index()];
            if let Some((intruded, mine, other)) = unit.intrusion.filter(|_| write && shared) {
                unit.intrusion = None;
                self.violations.push(step.position);
                self.reports.add(place_key(&[mine, other, site], u64::from(var.0)), || {
                    let accesses = format!("{} {} write", mine.touch.word(), other.touch.word());
                    Report::new(NAME, Kind::AtomicityViolation, Basis::rule())
                        .detail(Detail::Pattern { accesses })
                        .part(mine.accesses(Some(Subject::Variable(intruded))))
                        .part(other.plays(Role::Interferes, Some(Subject::Variable(intruded))))
                        .part(site.accesses(Some(Subject::Variable(var))))
                });
            }
            let mine = self.units[thread.index()].uses.entry(var).or_default();
            let new = !mine.read && !mine.written;
            (mine.read, mine.written) = (mine.read || !write, mine.written || write);
            if new {
                mine.site = site;
                self.variables.get_mut(var).open.push(thread);
            }
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.reports.take()
    }
}
