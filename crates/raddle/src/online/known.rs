//! One process as its findings need it: names for what its reports say in numbers, and the code in it that could have synchronised
//! threads unseen. Both are read from the process's files once, not for each report.
//!
//! Reports become findings here and nowhere else: a race that rests on happens-before and that nobody has held against such code
//! must not leave this room, whichever command asks.

use super::finding::finding;
use crate::hunt::visibility::Sight;
use raddle_findings::Finding;
use raddle_findings::naming::Namer;
use raddle_trace::report::RawReport;
use raddle_trace::tables::Module;

/// What is known of a process.
pub struct Known {
    pub namer: Namer,
    /// What the names are of.
    modules: Vec<Module>,
    sight: Sight,
}

impl Known {
    pub fn of(modules: &[Module]) -> Known {
        Known { namer: Namer::new(modules), modules: modules.to_vec(), sight: Sight::of(modules) }
    }

    /// Takes note of libraries that were loaded since, or lie elsewhere in another run.
    pub fn update(&mut self, modules: &[Module]) {
        if self.modules != modules {
            (self.namer, self.modules) = (Namer::new(modules), modules.to_vec());
            self.sight.update(modules);
        }
    }

    /// Puts names to a report, and says what could explain it away.
    pub fn finding(&mut self, report: &RawReport) -> Finding {
        let mut finding = finding(report, &mut self.namer);
        self.sight.consider(&mut finding);
        finding
    }
}
