//! What went wrong: the survey's taxonomy (Lourenço et al., §3), refined.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    DataRace,
    UseAfterFree,
    HighLevelRace,
    AtomicityViolation,
    OrderViolation,
    Deadlock,
    /// Locks are taken in an order that can close a cycle.
    LockOrder,
    MissedSignal,
    BlockedThread,
    Livelock,
    Starvation,
    NonProgress,
    ContractViolation,
    /// Unlock of a lock not held, destroyed while held, ...
    LockMisuse,
    ThreadLeak,
    Crash,
    AssertionFailure,
    PropertyViolation,
    /// The program ended with a status that means failure.
    FailedStatus,
    /// The program printed something else than it should.
    WrongOutput,
}

impl Kind {
    pub const ALL: [Kind; 20] = [
        Kind::DataRace,
        Kind::UseAfterFree,
        Kind::HighLevelRace,
        Kind::AtomicityViolation,
        Kind::OrderViolation,
        Kind::Deadlock,
        Kind::LockOrder,
        Kind::MissedSignal,
        Kind::BlockedThread,
        Kind::Livelock,
        Kind::Starvation,
        Kind::NonProgress,
        Kind::ContractViolation,
        Kind::LockMisuse,
        Kind::ThreadLeak,
        Kind::Crash,
        Kind::AssertionFailure,
        Kind::PropertyViolation,
        Kind::FailedStatus,
        Kind::WrongOutput,
    ];

    /// The name as it is written in JSON, in suppressions and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::DataRace => "data-race",
            Kind::UseAfterFree => "use-after-free",
            Kind::HighLevelRace => "high-level-race",
            Kind::AtomicityViolation => "atomicity-violation",
            Kind::OrderViolation => "order-violation",
            Kind::Deadlock => "deadlock",
            Kind::LockOrder => "lock-order",
            Kind::MissedSignal => "missed-signal",
            Kind::BlockedThread => "blocked-thread",
            Kind::Livelock => "livelock",
            Kind::Starvation => "starvation",
            Kind::NonProgress => "non-progress",
            Kind::ContractViolation => "contract-violation",
            Kind::LockMisuse => "lock-misuse",
            Kind::ThreadLeak => "thread-leak",
            Kind::Crash => "crash",
            Kind::AssertionFailure => "assertion-failure",
            Kind::PropertyViolation => "property-violation",
            Kind::FailedStatus => "failed-status",
            Kind::WrongOutput => "wrong-output",
        }
    }

    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Two unsynchronised accesses, one of which may release the memory.
    pub fn is_race(self) -> bool {
        matches!(self, Kind::DataRace | Kind::UseAfterFree)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for kind in Kind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
    }
}
