//! What a thread does in a finding. Sentences about it are in `raddle-report`.

use crate::object::Object;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    Read,
    Write,
    /// A read and a write of one statement, such as `x++`.
    ReadWrite,
    /// A detector that does not tell them apart.
    Any,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    Lock,
    ReadLock,
    ThreadEnd,
    Signal,
    Semaphore,
    Barrier,
    Initialiser,
    Futex,
    /// Something else, called by its word in schedules.
    Other,
}

/// A part that only one kind of finding has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Contracts: a sequence of calls that must be atomic.
    BeginsSequence,
    EndsSequence,
    InterruptsSequence,
    /// The last call of a sequence that interrupts another.
    EndsInterruption,
    /// Views: variables that belong together.
    AccessesTogether,
    AccessesSome,
    AccessesOthers,
    /// Correlated variables.
    AccessesOne,
    AccessesOther,
    /// Atomicity: a region, and what comes between.
    BeginsRegion,
    EndsRegion,
    InsideRegion,
    Interferes,
    /// From here on, the region's steps can no longer be moved together (Lipton's reduction).
    CommitsRegion,
    /// Depends on a step that depends on the region.
    ClosesCycle,
    /// Order.
    ComesFirst,
    ShouldComeFirst,
    /// A property of the user's own: makes the event that it does not allow.
    Violates,
    /// Progress.
    RepeatsItself,
    AcquiresAgain,
    /// What the thread did is not known any more.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "does", rename_all = "kebab-case")]
pub enum Action {
    Accesses {
        access: Access,
        /// 0: not known.
        #[serde(default)]
        bytes: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        atomic: bool,
        /// The pointer to an object's virtual table.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        vptr: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<Object>,
    },
    Frees {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<Object>,
    },
    Waits {
        wait: Wait,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<Object>,
        /// The thread that has what is waited for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<String>,
        /// The word of the operation in schedules, for [`Wait::Other`].
        #[serde(default, skip_serializing_if = "String::is_empty")]
        operation: String,
    },
    Acquires {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<Object>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        read: bool,
    },
    Releases {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<Object>,
    },
    Destroys {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<Object>,
    },
    /// Signals a condition while nobody waits.
    SignalsNobody {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<Object>,
    },
    /// Ended, and was never joined or detached.
    IsLeaked,
    /// The signal or the failed assertion is this thread's.
    Crashes,
    /// What another thread was doing when the process ended.
    IsAt,
    Plays {
        role: Role,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        object: Option<Object>,
    },
}

impl Action {
    pub fn object(&self) -> Option<&Object> {
        match self {
            Action::Accesses { object, .. }
            | Action::Frees { object }
            | Action::Waits { object, .. }
            | Action::Acquires { object, .. }
            | Action::Releases { object }
            | Action::Destroys { object }
            | Action::SignalsNobody { object }
            | Action::Plays { object, .. } => object.as_ref(),
            Action::IsLeaked | Action::Crashes | Action::IsAt => None,
        }
    }

    pub fn access(access: Access) -> Action {
        Action::Accesses { access, bytes: 0, atomic: false, vptr: false, object: None }
    }

    pub fn plays(role: Role) -> Action {
        Action::Plays { role, object: None }
    }

    pub fn waits(wait: Wait, object: Option<Object>) -> Action {
        Action::Waits { wait, object, holder: None, operation: String::new() }
    }
}
