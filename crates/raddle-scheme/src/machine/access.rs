//! The operations of a thread that other threads can notice, in the words of both machines.

use crate::syntax::core::ExprId;
use serde::Serialize;

/// What a visible operation does to its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    Read,
    Write,
    /// A compare-and-swap that can succeed: it reads and writes, atomically.
    CasSucceeds,
    /// A compare-and-swap that cannot succeed: it only reads, atomically.
    CasFails,
    Acquire,
    Release,
    Join,
}

impl Action {
    pub fn word(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::Write => "write",
            Action::CasSucceeds | Action::CasFails => "cas",
            Action::Acquire => "acquire",
            Action::Release => "release",
            Action::Join => "join",
        }
    }

    pub fn is_cas(self) -> bool {
        matches!(self, Action::CasSucceeds | Action::CasFails)
    }

    /// Whether the order of two such operations on one location matters. Used by the reduction, so it errs on the side
    /// of dependence.
    pub fn depends_on(self, other: Action) -> bool {
        let reads = |action| matches!(action, Action::Read | Action::CasFails);
        !(reads(self) && reads(other))
    }

    /// Whether two such operations on one location, both about to happen in different threads, are a conflict.
    ///
    /// The paper (§4.2.1) has writes by `set!` and `cas`, and reads by variable references. A `cas` that is certain to
    /// fail writes nothing and reads atomically: it conflicts with nothing. Lock operations synchronise.
    pub fn conflicts_with(self, other: Action) -> bool {
        let writes = |action| matches!(action, Action::Write | Action::CasSucceeds);
        let touches = |action| writes(action) || action == Action::Read;
        touches(self) && touches(other) && (writes(self) || writes(other))
    }
}

/// A pair of program points in a fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SitePair(pub ExprId, pub ExprId);

impl SitePair {
    pub fn new(a: ExprId, b: ExprId) -> SitePair {
        if a <= b { SitePair(a, b) } else { SitePair(b, a) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_are_symmetric_and_imply_dependence() {
        use Action::*;
        let all = [Read, Write, CasSucceeds, CasFails, Acquire, Release, Join];
        for a in all {
            for b in all {
                assert_eq!(a.conflicts_with(b), b.conflicts_with(a));
                assert_eq!(a.depends_on(b), b.depends_on(a));
                assert!(!a.conflicts_with(b) || a.depends_on(b));
            }
        }
        assert!(Read.conflicts_with(Write) && Write.conflicts_with(CasSucceeds));
        assert!(!Read.conflicts_with(Read) && !Write.conflicts_with(CasFails));
    }
}
