//! The model of a picture: an erroneous run as lanes.
//!
//! One lane a thread, time runs down. A [`Row`] is a step of the schedule, a fold ("112 steps") or the moment of the error, in
//! which several threads stand at their places at once. A [`Span`] is a stretch of a lane: a lock that is held, a wait, a region that
//! should be atomic. An [`Edge`] orders two steps of different threads (happens-before), or says that an order is missing.
//!
//! Everything is taken from the evidence: the finding (who does what at the end), its schedule (the erroneous run) and, where one
//! was kept, the schedule of the recorded run. Nothing is computed that could be an error of its own: which steps are shown
//! ([`choose`]) only decides what is folded, and what a schedule does not say (the values of plain accesses) is not drawn.
//!
//! The page draws it as SVG, the terminal as text ([`lanes`]). Only the neighbourhood of the failure is shown, as Knossos does
//! for histories; lanes with happens-before edges are those of ShiViz (Beschastnikh et al., CACM 2016).

mod assemble;
mod choose;
mod difference;
mod ending;
mod lanes;
mod order;
mod run;
mod words;

pub use assemble::{Pictures, draw, whole};
pub use lanes::lanes;
pub use order::{Link, Why, edges, spans};
pub use run::{Names, Run, Spot};

/// Lanes of a picture; further threads are counted.
pub const LANES_MAX: usize = 8;
/// Steps of a picture; further ones are folded.
pub const ROWS_MAX: usize = 40;

/// A thread of the picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Spawn path; empty for a thread that is not known.
    pub path: String,
    /// The name that the program gave it, or its entry function; may be empty.
    pub about: String,
}

/// How a step is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    #[default]
    Plain,
    /// It comes at another time than in the recorded run.
    Moved,
    /// The recorded run has no such step.
    New,
    /// It is part of the error.
    Error,
}

/// What a thread does in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Act {
    pub lane: usize,
    /// Its number in the schedule, from 1; `None`: known from the finding alone.
    pub number: Option<usize>,
    pub words: String,
    pub spot: Spot,
    pub mark: Mark,
    /// Which party of the finding this is.
    pub party: Option<usize>,
    /// Its words say already that it signals while nobody waits.
    pub tells_that_nobody_waits: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// One act, or several at the same moment.
    Acts(Vec<Act>),
    /// So many steps are not shown.
    Fold(usize),
}

impl Row {
    pub fn acts(&self) -> &[Act] {
        match self {
            Row::Acts(acts) => acts,
            Row::Fold(_) => &[],
        }
    }
}

/// What a stretch of a lane means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    Holds,
    HoldsForReading,
    Waits,
    Region,
}

/// A stretch of a lane, from one row to another (inclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub lane: usize,
    pub stretch: Stretch,
    /// What is held or waited for.
    pub what: String,
    pub from: usize,
    pub to: usize,
    /// It has not ended when the picture does.
    pub open: bool,
}

/// What a line between two acts means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The first is ordered before the second.
    Ordered,
    /// Nothing orders the two.
    Missing,
    /// Has no second end: a signal that wakes nobody.
    Lost,
    /// The thread waits for what the other holds.
    WaitsFor,
}

/// A line between two acts, each given by row and lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: (usize, usize),
    pub to: (usize, usize),
    pub line: Line,
    pub why: String,
}

/// A run, drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    pub lanes: Vec<Lane>,
    pub rows: Vec<Row>,
    pub spans: Vec<Span>,
    pub edges: Vec<Edge>,
    /// Threads of the run that have no lane.
    pub lanes_left_out: usize,
    /// Steps of the whole run.
    pub steps: usize,
}

impl Picture {
    /// Is there anything to look at?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.lanes.is_empty()
    }

    /// What threads hold and wait for after a row.
    pub fn state(&self, row: usize) -> Vec<&Span> {
        let covers = |span: &&Span| span.from <= row && (row < span.to || span.open && row <= span.to);
        self.spans.iter().filter(covers).collect()
    }
}
