//! A finding: one error, the threads that take part in it, and how it is known. Data only; the sentences are in
//! `raddle-report`, and no decision is ever taken on a text.

use crate::action::Action;
use crate::basis::{Basis, Ended, Grade};
use crate::id;
use crate::kind::Kind;
use crate::object::Object;
use raddle_wire::report::ReportKind;
use serde::{Deserialize, Serialize};

/// A thread, called the same in every command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Thread {
    /// Spawn path: `1` is the main thread, `1.2` its second child. Empty: not known.
    pub path: String,
    /// The function that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The name that the program gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Thread {
    pub fn at(path: impl Into<String>) -> Thread {
        Thread { path: path.into(), entry: None, name: None }
    }
}

/// One stack frame, innermost first in a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Module and offset, for what could not be symbolised; `L12` for a location of a converted trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The line as it was when the finding was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Code of the standard library or of another library that the user did not write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub library: bool,
}

/// The frame that a person should look at first: the innermost one of the user's own code that has a place, else the
/// innermost one with a place.
pub fn headline_frame(stack: &[Frame]) -> Option<&Frame> {
    let placed = |frame: &&Frame| frame.file.is_some() && frame.line.is_some();
    stack.iter().filter(placed).find(|frame| !frame.library).or_else(|| stack.iter().find(placed))
}

/// A lock held by a party, and where it was acquired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldLock {
    pub lock: Object,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acquired: Vec<Frame>,
}

/// One thread's part in a finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Party {
    pub thread: Thread,
    pub action: Action,
    pub stack: Vec<Frame>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<HeldLock>,
    /// Who created the thread, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Box<Creation>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Creation {
    pub by: Thread,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
}

impl Party {
    pub fn new(thread: Thread, action: Action, stack: Vec<Frame>) -> Party {
        Party { thread, action, stack, locks: Vec::new(), created: None }
    }
}

macro_rules! misuses {
    (
        others { $($_others:tt)* }
        misuses { $($(#[$meta:meta])* $name:ident $_constant:ident = $_number:literal $_about:ident $_deed:ident;)* }
    ) => {
        /// A misuse of a primitive.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Misuse {
            $($(#[$meta])* $name,)*
            /// The runtime reports something that this version does not know, by number.
            Unknown(u32),
        }

        impl Misuse {
            /// All that are known.
            pub const ALL: &[Misuse] = &[$(Misuse::$name),*];

            /// Which misuse a report tells of; none: it tells of something else.
            pub fn of(kind: ReportKind) -> Option<Misuse> {
                match kind {
                    $(ReportKind::$name => Some(Misuse::$name),)*
                    ReportKind::Unknown(number) => Some(Misuse::Unknown(number)),
                    _ => None,
                }
            }
        }
    };
}

raddle_wire::report_kinds!(misuses);

/// A failed assertion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Assertion {
    pub expression: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

/// What a finding of one kind has beyond its parties.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "kebab-case")]
pub enum Detail {
    #[default]
    None,
    /// A race that a lockset detector reports: no lock protects all accesses.
    NoCommonLock,
    /// Lock misuse.
    Misuse { misuse: Misuse },
    /// A crash or a failed assertion.
    Crash {
        signal: i32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assertion: Option<Assertion>,
        /// The address whose access failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<u64>,
    },
    /// How the process ended, where that is the error.
    Ending { ended: Ended },
    /// A contract, by its line in the contracts' file.
    Contract { line: u32 },
    /// How often two variables are used together.
    Together { times: u64 },
    /// How often others acquired the lock, or how many steps went by without progress.
    Without { progress_steps: u64 },
    /// A missed signal: does the waiting thread still wait at the end, or was it woken later?
    MissedSignal { still_waits: bool },
    /// The trace itself ends in it.
    AtEndOfTrace,
    /// An atomicity violation: the unserialisable pattern, such as `read write read`.
    Pattern { accesses: String },
    /// A region whose steps cannot be moved together into one: it acquires, or makes an access that may race, after its
    /// commit point.
    NotReducible,
    /// A cycle of regions that no serial order explains, by the number of regions and of steps outside of any; 0: not
    /// known.
    Cycle { regions: u64 },
    /// Something that a program or model reports in its own words (a Scheme finding, a property's name).
    Words { text: String },
}

/// What a reader has to know to judge the finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "remark", rename_all = "kebab-case")]
pub enum Remark {
    AlsoFoundBy {
        detectors: Vec<String>,
    },
    /// The same places were seen so many times.
    Occurrences {
        times: u64,
    },
    /// Who came first in the observed run.
    ObservedOrder {
        first: String,
        then: String,
        events: (u64, u64),
    },
    /// What the other thread did was pushed out of its history.
    HistoryLost,
    /// Further reports of the detector were left out.
    LeftOut {
        reports: u64,
    },
    /// The thread that holds the awaited lock has ended.
    HolderEnded {
        thread: String,
    },
    /// The wait was given up after its time limit.
    WaitTimedOut {
        thread: String,
    },
    /// The search for lock cycles ended at a limit.
    CyclesCut,
    /// The check of a condition was made without the lock that protects it.
    CheckedWithoutLock {
        thread: String,
        frame: Box<Frame>,
    },
    /// The schedule takes the second critical section before the first; the recorded run had them the other way round.
    Reversed {
        frames: Vec<Frame>,
    },
    /// The schedule takes the third critical section between the first two, which are one thread's.
    Interleaved {
        frames: Vec<Frame>,
    },
    /// The program of the finding was changed by it: this race leads to the crash with this id.
    Leads {
        to: String,
    },
}

/// How often explored runs ended like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Seen {
    pub count: u64,
    pub runs: u64,
    pub first_run: u64,
    pub seed: u64,
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable across runs and small changes of the source, see [`crate::id`].
    pub id: String,
    pub kind: Kind,
    /// Name of the detector or check.
    pub by: String,
    pub basis: Basis,
    /// The memory or objects concerned, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Object>,
    pub parties: Vec<Party>,
    #[serde(default)]
    pub detail: Detail,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// Path of the schedule that shows it, if one is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
}

impl Finding {
    /// A finding about the objects of its parties' actions.
    pub fn new(kind: Kind, by: &str, basis: Basis, parties: Vec<Party>, detail: Detail) -> Finding {
        let mut objects: Vec<Object> = Vec::new();
        for object in parties.iter().filter_map(|party| party.action.object()) {
            if !objects.contains(object) {
                objects.push(object.clone());
            }
        }
        Finding::about(kind, by, basis, objects, parties, detail)
    }

    pub fn about(
        kind: Kind,
        by: &str,
        basis: Basis,
        objects: Vec<Object>,
        parties: Vec<Party>,
        detail: Detail,
    ) -> Finding {
        let mut finding = Finding {
            id: String::new(),
            kind,
            by: by.to_owned(),
            basis,
            objects,
            parties,
            detail,
            remarks: Vec::new(),
            seen: None,
            schedule: None,
        };
        finding.id = id::of(&finding);
        finding
    }

    /// How sure we are: a function of the basis.
    pub fn grade(&self) -> Grade {
        self.basis.grade()
    }
}
