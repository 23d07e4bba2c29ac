//! A finding: one error, with its grade, the threads that take part in it, and how to make it happen again.

use serde::{Deserialize, Serialize};

/// How sure we are. The grades are never mixed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// A detector that is imprecise by design says so.
    Suspected,
    /// A schedule exists in the model of the trace, but it has not been made to happen.
    Predicted,
    /// It was made to happen under a stored schedule, or was observed to happen.
    Confirmed,
}

/// What went wrong: the survey's taxonomy, refined.
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
}

/// A lock held by a party, and where it was acquired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldLock {
    pub lock: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acquired: Vec<Frame>,
}

/// One thread's part in a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Party {
    /// Stable thread name (spawn path).
    pub thread: String,
    /// What it does: "writes 4 bytes", "waits for mutex `m` held by 1.2", ...
    pub action: String,
    pub stack: Vec<Frame>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<HeldLock>,
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable across runs: derived from kind and code locations, see [`Finding::fingerprint`].
    pub id: String,
    pub kind: Kind,
    pub grade: Grade,
    /// Name of the detector or check.
    pub by: String,
    /// One sentence.
    pub message: String,
    /// The memory or objects concerned: `counter`, `mutex at pool+0x10`, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,
    pub parties: Vec<Party>,
    /// Further sentences: what the observed run did instead, what was not explored, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Path of the schedule that shows it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
}

impl Finding {
    pub fn new(kind: Kind, grade: Grade, by: &str, message: String, parties: Vec<Party>) -> Finding {
        let mut finding = Finding {
            id: String::new(),
            kind,
            grade,
            by: by.to_owned(),
            message,
            objects: Vec::new(),
            parties,
            notes: Vec::new(),
            schedule: None,
        };
        finding.id = finding.fingerprint();
        finding
    }

    /// A short id from the kind and the innermost code locations of the parties, independent of their order, of
    /// addresses and of thread numbering, so that two runs can be compared.
    pub fn fingerprint(&self) -> String {
        let mut places: Vec<String> = self.parties.iter().map(|party| place(&party.stack)).collect();
        places.sort();
        let mut text = serde_json::to_string(&self.kind).unwrap_or_default();
        for place in places {
            text.push('\n');
            text.push_str(&place);
        }
        format!("{:08x}", fnv1a(text.as_bytes()) as u32 ^ (fnv1a(text.as_bytes()) >> 32) as u32)
    }
}

fn place(stack: &[Frame]) -> String {
    let Some(frame) = stack.iter().find(|frame| frame.file.is_some()).or(stack.first()) else {
        return String::new();
    };
    match (&frame.file, frame.line, &frame.raw) {
        (Some(file), line, _) => {
            let name = file.rsplit('/').next().unwrap_or(file);
            format!("{name}:{}:{}", line.unwrap_or(0), frame.function.as_deref().unwrap_or(""))
        }
        (None, _, Some(raw)) => raw.clone(),
        (None, _, None) => frame.function.clone().unwrap_or_default(),
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
