//! Every sentence about a finding that a user can meet.
//!
//! Sentences are as rustc's are: no capital at the beginning, no full stop, code between backticks. Words of the model
//! (events, witnesses, reorderings) are only used when the user asks for them with `-v`.

mod action;
mod basis;
mod headline;
mod object;
mod remark;
mod signal;

pub(crate) use object::{held, place, short as object_short, thread};

use crate::explain;
use raddle_findings::finding::Creation;
use raddle_findings::object::Allocation;
use raddle_findings::{Attempt, Finding, HeldLock, Kind, KindWords, Object, Party, Wording};

/// The one language that Raddle speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct English {
    /// Also tell what only somebody who knows the analyses wants to know.
    pub verbose: bool,
}

impl English {
    /// Why a replay did not show the error.
    pub fn attempt(&self, attempt: &Attempt) -> String {
        basis::attempt(attempt)
    }
}

impl Wording for English {
    fn headline(&self, finding: &Finding) -> String {
        headline::headline(finding)
    }

    fn action(&self, party: &Party) -> String {
        action::action(&party.action)
    }

    fn thread(&self, party: &Party) -> String {
        object::introduced(&party.thread)
    }

    fn notes(&self, finding: &Finding) -> Vec<String> {
        let mut notes = basis::notes(finding, self.verbose);
        notes.extend(remark::objects(finding));
        notes.extend(remark::detail(finding));
        notes.extend(finding.remarks.iter().map(|remark| remark::remark(remark, self.verbose)));
        notes.extend(finding.seen.as_ref().map(remark::seen));
        notes
    }

    fn acquired(&self, party: &Party, held: &HeldLock) -> String {
        let shared = if held.read { " for reading" } else { "" };
        format!("{} acquired {}{shared} here", object::thread(&party.thread), object::lock(&held.lock))
    }

    fn created(&self, party: &Party, creation: &Creation) -> String {
        format!("{} was created here by {}", object::thread(&party.thread), object::thread(&creation.by))
    }

    fn allocated(&self, object: &Object, allocation: &Allocation) -> String {
        format!("{} was allocated here by {}", object::block(object), object::thread(&allocation.thread))
    }

    fn kind(&self, kind: Kind) -> KindWords {
        explain::words(kind)
    }
}
