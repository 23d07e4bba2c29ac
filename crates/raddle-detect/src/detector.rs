//! The face that every detector shows.

use crate::report::Report;
use crate::step::{Names, Step, VarIx};
use raddle_trace::{Event, Tables};

/// What is known when the trace has ended.
pub struct End<'a> {
    pub tables: &'a Tables,
    pub names: &'a Names,
    /// Number of events.
    pub events: u64,
}

/// Looks at the steps of a trace one after the other and says at the end what it found.
pub trait Detector {
    /// A batch of events is about to come, and this is what the trace's tables say by now. Only for detectors that look
    /// at texts.
    fn learn(&mut self, _tables: &Tables, _events: &[Event]) {}

    /// Variables that the next steps will probably access ([`NO_VAR`](crate::step::NO_VAR) among them stands for none). A
    /// detector may fetch what it knows about them; it must not rely on them.
    fn soon(&mut self, _vars: &[VarIx]) {}

    /// The next step.
    fn step(&mut self, step: &Step<'_>);

    /// The trace is over.
    fn finish(&mut self, end: &End<'_>) -> Vec<Report>;
}
