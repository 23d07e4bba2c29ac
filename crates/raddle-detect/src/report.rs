//! What detectors say, before it is written out for people.
//!
//! A [`Report`] names events by their places in the trace; [`crate::render`] turns it into a finding once the trace's
//! tables are complete. Detectors report the same code locations once and count the rest ([`Reports`]).

use crate::skeleton::Ideal;
use crate::step::{Step, VarIx};
use raddle_findings::{Grade, Kind};
use raddle_trace::{ContextIx, Event, LocationIx, ObjectId, ThreadIx};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::borrow::Cow;

/// One thread's part in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub thread: ThreadIx,
    pub location: LocationIx,
    pub context: ContextIx,
    /// Place of the event in the observed order.
    pub position: u64,
    pub action: Cow<'static, str>,
}

impl Part {
    pub fn of(step: &Step<'_>, action: impl Into<Cow<'static, str>>) -> Part {
        Part::at(step.position, step.event, action)
    }

    pub fn at(position: u64, event: &Event, action: impl Into<Cow<'static, str>>) -> Part {
        Part {
            thread: event.thread,
            location: event.location,
            context: event.context,
            position,
            action: action.into(),
        }
    }
}

/// One possible error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub kind: Kind,
    pub grade: Grade,
    /// Name of the detector.
    pub by: &'static str,
    pub message: String,
    /// Names of the memory or objects concerned.
    pub objects: Vec<String>,
    pub parts: Vec<Part>,
    pub notes: Vec<String>,
    /// The reordering that leads to it, if the detector has one.
    pub witness: Option<Ideal>,
    /// How often the same locations were seen.
    pub occurrences: u64,
}

impl Report {
    pub fn new(by: &'static str, kind: Kind, grade: Grade, message: impl Into<String>) -> Report {
        Report {
            kind,
            grade,
            by,
            message: message.into(),
            objects: Vec::new(),
            parts: Vec::new(),
            notes: Vec::new(),
            witness: None,
            occurrences: 1,
        }
    }

    pub fn part(mut self, part: Part) -> Report {
        self.parts.push(part);
        self
    }

    pub fn object(mut self, object: impl Into<String>) -> Report {
        self.objects.push(object.into());
        self
    }

    pub fn note(mut self, note: impl Into<String>) -> Report {
        self.notes.push(note.into());
        self
    }
}

/// Texts of reports name things by tokens, because names are known only when the trace has been read:
/// `{o:7}` an object, `{v:7}` a variable, `{t:7}` a thread. [`crate::render`] puts in the names.
pub fn object(object: ObjectId) -> String {
    format!("{{o:{}}}", object.0)
}

pub fn variable(var: VarIx) -> String {
    format!("{{v:{}}}", var.0)
}

pub fn thread_token(thread: ThreadIx) -> String {
    format!("{{t:{}}}", thread.0)
}

/// What makes two reports the same: locations, or objects where the trace has no locations.
pub type Key = SmallVec<[u64; 4]>;

/// At most so many different reports a detector; the rest is only counted.
pub const REPORTS_MAX: usize = 10_000;

/// The reports of one detector.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    seen: FxHashMap<Key, usize>,
    list: Vec<Report>,
    left_out: u64,
}

impl Reports {
    /// Adds a report unless one with the same key is there, which is then counted once more.
    pub fn add(&mut self, mut key: Key, report: impl FnOnce() -> Report) {
        key.sort_unstable();
        if let Some(&index) = self.seen.get(&key) {
            if let Some(report) = self.list.get_mut(index) {
                report.occurrences += 1;
            }
            return;
        }
        if self.list.len() >= REPORTS_MAX {
            self.left_out += 1;
            return;
        }
        self.seen.insert(key, self.list.len());
        self.list.push(report());
    }

    pub fn contains(&self, mut key: Key) -> bool {
        key.sort_unstable();
        self.seen.contains_key(&key)
    }

    pub fn take(&mut self) -> Vec<Report> {
        let mut list = std::mem::take(&mut self.list);
        if self.left_out > 0
            && let Some(last) = list.last_mut()
        {
            last.notes.push(format!("{} further reports of this detector were left out", self.left_out));
        }
        list
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// The key of a race: the two places, or the address if the trace has no places.
pub fn place_key(places: &[(LocationIx, ContextIx)], fallback: u64) -> Key {
    let mut key: Key = places.iter().map(|(location, _)| u64::from(location.0)).collect();
    if places.iter().any(|(location, _)| *location == LocationIx::UNKNOWN) {
        key.push(fallback | 1 << 63);
    }
    key
}
