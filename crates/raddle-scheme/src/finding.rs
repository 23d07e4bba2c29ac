//! What an analysis has to say.

use crate::concrete::schedule::Schedule;
use crate::concrete::state::path_name;
use crate::syntax::source::Span;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Two conflicting accesses may happen at the same time.
    Race,
    /// Threads wait for each other, or for a lock that nobody will release.
    Deadlock,
    /// Threads spin for ever on memory that nobody will change: the deadlock of locks made of `cas`.
    Livelock,
    /// A `cas` may fail and is never tried again.
    UnretriedCas,
    /// `(error ...)`, a failed assertion, or an operation without meaning.
    Error,
}

impl Kind {
    pub fn title(self) -> &'static str {
        match self {
            Kind::Race => "race",
            Kind::Deadlock => "deadlock",
            Kind::Livelock => "livelock",
            Kind::UnretriedCas => "unretried cas",
            Kind::Error => "error",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Made to happen under the schedule that comes with it.
    Confirmed,
    /// The abstract machine has a path to it; no schedule was found.
    Suspected,
}

/// What a thread does at an expression, as data; [`Part::what`] says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Reads,
    Writes,
    Swaps,
    /// Reads or writes; the analysis does not tell them apart.
    Accesses,
    WaitsForLock,
    WaitsForThread,
    /// Waits for something that the analysis does not tell.
    Waits,
    Spins,
    SwapsOnce,
    Fails,
}

/// An expression that takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    #[serde(skip)]
    pub span: Span,
    /// `line:column`
    pub place: String,
    /// `1.2`, where known, and where it was spawned.
    pub thread: String,
    /// `writes counter`
    pub what: String,
    #[serde(skip)]
    pub deed: Deed,
    /// The thread's path, where it is known.
    #[serde(skip)]
    pub path: Option<String>,
    /// What is accessed, where it has a name.
    #[serde(skip)]
    pub object: Option<String>,
}

impl Part {
    pub(crate) fn of(mut self, object: String) -> Part {
        self.object = Some(object);
        self
    }

    pub(crate) fn by(mut self, thread: &[u32]) -> Part {
        self.path = Some(path_name(thread));
        self
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    pub kind: Kind,
    pub grade: Grade,
    /// The order of the accesses makes no difference.
    pub benign: bool,
    pub message: String,
    pub parts: Vec<Part>,
    /// What makes it happen, as text that `raddle scheme run --schedule` takes.
    #[serde(serialize_with = "schedule_text", skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The way of the abstract machine, for suspects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

impl Finding {
    /// What tells it from other findings of a program.
    pub fn key(&self) -> String {
        let parts: Vec<String> =
            self.parts.iter().map(|part| format!("{} {} {}", part.place, part.thread, part.what)).collect();
        format!("{} {} {}", self.kind.title(), self.message, parts.join(", "))
    }
}

fn schedule_text<S: serde::Serializer>(
    schedule: &Option<Schedule>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    schedule.as_ref().map(|schedule| schedule.text("")).serialize(serializer)
}

/// The answer to the question that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "reason")]
pub enum Verdict {
    /// Proven: no run of the program has an error of the kinds looked for.
    Clean(String),
    /// There are findings.
    Found,
    /// Nothing was found, but not everything was seen.
    Unknown(String),
}

/// How one phase of the analysis went.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    pub name: &'static str,
    pub states: usize,
    pub edges: usize,
    pub seconds: f64,
    /// Why it did not see everything, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    pub outcome: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub file: String,
    #[serde(flatten)]
    pub verdict: Verdict,
    pub findings: Vec<Finding>,
    pub phases: Vec<Phase>,
    /// Results the program can have, where all are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<String>,
}

impl Report {
    /// Findings that are no harmless ones. What is suspected is among them; whether it is so is *unknown*.
    pub fn serious(&self) -> usize {
        self.findings.iter().filter(|finding| !finding.benign).count()
    }

    pub fn count(&self, kind: Kind) -> usize {
        self.findings.iter().filter(|f| f.kind == kind && !f.benign).count()
    }
}
