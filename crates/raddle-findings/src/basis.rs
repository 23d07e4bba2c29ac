//! How we know: the basis of a finding, and the grade that follows from it.
//!
//! Nobody chooses a grade. Whoever finds something says what it has seen ([`Basis`]), and [`Basis::grade`] is the only
//! place that turns this into a promise to the user (DESIGN §1). A basis is data; the sentences about it are in
//! `raddle-report`.
//!
//! One grade beyond DESIGN's table: *observed*, for an error that has really happened in a watched run (a crash, a lock
//! unlocked by a thread that does not hold it) but for which no stored schedule has been shown to make it happen again.
//! It fails a build like a confirmed finding and promises no replay.

use serde::{Deserialize, Serialize};

/// How sure we are, from the weakest to the strongest. The grades are never mixed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// A rule that is imprecise by design says so, or synchronisation that Raddle cannot see may explain it away.
    Suspected,
    /// A schedule exists in the model of the trace; replaying it did not show the error.
    Predicted,
    /// No synchronisation visible to Raddle orders two accesses of a run, by the rules of C and C++11.
    Unordered,
    /// The error itself happened in a watched run; no stored schedule has shown it again.
    Observed,
    /// The error itself was seen under a stored schedule, and again when that schedule was replayed from its file.
    Confirmed,
}

impl Grade {
    pub const ALL: [Grade; 5] =
        [Grade::Confirmed, Grade::Observed, Grade::Unordered, Grade::Predicted, Grade::Suspected];

    pub const fn name(self) -> &'static str {
        match self {
            Grade::Suspected => "suspected",
            Grade::Predicted => "predicted",
            Grade::Unordered => "unordered",
            Grade::Observed => "observed",
            Grade::Confirmed => "confirmed",
        }
    }

    pub fn from_name(name: &str) -> Option<Grade> {
        Grade::ALL.into_iter().find(|grade| grade.name() == name)
    }

    /// Shown without being asked for, and makes the exit status 1.
    pub fn is_failing(self) -> bool {
        self >= Grade::Unordered
    }
}

/// What a replay showed at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// Both threads stood before their conflicting accesses at one moment.
    Parked,
    /// All threads that the schedule names were blocked, and nobody could help them.
    Blocked,
    /// The process ended as expected: by a signal, with a status, with other output.
    Ended,
    /// In a run along the schedule, nothing visible orders the two accesses.
    Unordered,
    /// What the run did violates the property.
    Violated,
}

/// How far the schedule of a prediction departs from the observed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// Every read that is left returns what it returned in the observed run.
    KeepsReads,
    /// Every read before the threads' last segments does.
    KeepsEarlierReads,
    /// Recorded events are left out; some reads return other values.
    KeepsOrder,
    /// Some steps come in another order than observed.
    Reordered,
    /// The prediction did not look at memory.
    Unknown,
}

/// Why a replay did not show the error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Attempt {
    /// The program left the schedule.
    Diverged {
        after_steps: u64,
        thread: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<Step>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found: Option<Step>,
    },
    /// Nothing moved any more before the end of the schedule.
    Standstill { after_steps: u64, threads: Vec<ThreadState> },
    /// The program ended by itself before showing it.
    Ended { how: Ended },
    /// It took longer than a replay may take.
    TimedOut { threads: Vec<ThreadState> },
    /// The threads came to their accesses, but to different memory.
    OtherMemory,
    /// It deadlocked, but these threads were not part of it.
    OtherDeadlock { missing: Vec<String> },
    /// The schedule was followed to its end; the two accesses were ordered in this run.
    Ordered,
    /// The schedule was followed to its end; what the run did keeps the property.
    Kept,
    /// What the run did violates the property, but of these events some may be missing or carry other values.
    UncertainEvents { events: Vec<String> },
    /// It was shown at first, but not again when the stored schedule was replayed.
    NotAgain { shown: u32, replays: u32 },
    /// More threads than a replay can follow.
    TooManyThreads,
    /// There was no time left for it.
    OutOfTime,
    /// Its schedule changes what is read at this place. Replays of other schedules have shown that this decides what
    /// a thread does.
    ReadDecides { place: String },
    /// So many replays had confirmed nothing before its turn came.
    PutBack { fruitless: u32 },
    /// The user stopped Raddle before it could be tried to the end.
    Interrupted,
    /// The run has more visible operations than are replayed one by one.
    TooLong { steps: u64 },
    /// The disk or another limit kept the schedule from being stored.
    NotStored { why: String },
}

/// One operation of a thread, in a divergence.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// Its word in schedules: `lock`, `load`, ...; `access` for a plain access.
    pub operation: String,
    /// Which of the thread's visible operations, from 1.
    pub ordinal: u32,
    /// `file:line` or `module+0x1234`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

/// What a thread was doing when a run was ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ThreadState {
    pub thread: String,
    /// One of the scheduler's phases.
    pub phase: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Step>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    Status(i32),
    Signal(i32),
}

/// Code that can synchronise threads without Raddle seeing it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Invisible {
    pub what: InvisibleKind,
    /// File name of the executable or library.
    pub module: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvisibleKind {
    InlineAssembly,
    NotInstrumented,
    LibraryNotRebuilt,
    KernelInterface,
}

/// How a finding is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Basis {
    /// Seen under a stored schedule, and again each time this schedule was replayed from its file.
    Replayed { shown: Shown, replays: u32 },
    /// It happened in the watched run. The attempts to make it happen again failed, or there were none.
    Observed {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
    },
    /// Happens-before, in a run. Not even a replay that stops both threads at their accesses is claimed.
    Unordered {
        /// So many replays from the stored schedule showed it; 0: it was seen in a free run.
        replays: u32,
        /// What may have ordered the accesses nevertheless.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        invisible: Vec<Invisible>,
        /// Attempts to stop both threads at their accesses.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
    },
    /// A schedule in the model of the trace.
    Model {
        /// Every execution with these reads is possible: a sound predictor says so.
        sound: bool,
        fidelity: Fidelity,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
    },
    /// A rule that is imprecise by design.
    Rule {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempts: Vec<Attempt>,
    },
}

impl Basis {
    pub fn rule() -> Basis {
        Basis::Rule { attempts: Vec::new() }
    }

    pub fn observed() -> Basis {
        Basis::Observed { attempts: Vec::new() }
    }

    /// Seen by happens-before in a free run, with nothing known of invisible code.
    pub fn unordered() -> Basis {
        Basis::Unordered { replays: 0, invisible: Vec::new(), attempts: Vec::new() }
    }

    pub fn model(sound: bool, fidelity: Fidelity) -> Basis {
        Basis::Model { sound, fidelity, attempts: Vec::new() }
    }

    /// The grade of a finding with this basis: the only way to get one.
    pub fn grade(&self) -> Grade {
        match self {
            Basis::Replayed { shown: Shown::Unordered, .. } => Grade::Unordered,
            Basis::Replayed { replays: 0, .. } => Grade::Observed,
            Basis::Replayed { .. } => Grade::Confirmed,
            Basis::Observed { .. } => Grade::Observed,
            Basis::Unordered { invisible, .. } if invisible.is_empty() => Grade::Unordered,
            Basis::Unordered { .. } => Grade::Suspected,
            Basis::Model { .. } => Grade::Predicted,
            Basis::Rule { .. } => Grade::Suspected,
        }
    }

    /// Adds what became of an attempt to show it. A replayed basis needs no excuse.
    pub fn tried(&mut self, attempt: Attempt) {
        match self {
            Basis::Replayed { .. } => {}
            Basis::Observed { attempts }
            | Basis::Unordered { attempts, .. }
            | Basis::Model { attempts, .. }
            | Basis::Rule { attempts } => attempts.push(attempt),
        }
    }

    pub fn attempts(&self) -> &[Attempt] {
        match self {
            Basis::Replayed { .. } => &[],
            Basis::Observed { attempts }
            | Basis::Unordered { attempts, .. }
            | Basis::Model { attempts, .. }
            | Basis::Rule { attempts } => attempts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_follow_from_the_basis() {
        let invisible = Invisible {
            what: InvisibleKind::InlineAssembly,
            module: "spin".into(),
            function: Some("lock".into()),
            place: None,
        };
        let hidden = Basis::Unordered { replays: 2, invisible: vec![invisible], attempts: vec![] };
        for (basis, grade) in [
            (Basis::Replayed { shown: Shown::Parked, replays: 2 }, Grade::Confirmed),
            (Basis::Replayed { shown: Shown::Ended, replays: 0 }, Grade::Observed),
            (Basis::Replayed { shown: Shown::Unordered, replays: 2 }, Grade::Unordered),
            (Basis::observed(), Grade::Observed),
            (Basis::unordered(), Grade::Unordered),
            (hidden, Grade::Suspected),
            (Basis::model(true, Fidelity::KeepsReads), Grade::Predicted),
            (Basis::rule(), Grade::Suspected),
        ] {
            assert_eq!(basis.grade(), grade, "{basis:?}");
        }
    }

    #[test]
    fn an_attempt_never_raises_or_lowers_a_grade() {
        for mut basis in [
            Basis::Replayed { shown: Shown::Parked, replays: 2 },
            Basis::observed(),
            Basis::unordered(),
            Basis::rule(),
        ] {
            let before = basis.grade();
            basis.tried(Attempt::OutOfTime);
            assert_eq!(basis.grade(), before);
        }
    }
}
