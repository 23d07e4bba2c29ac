//! Reads of a witness that see another write than they saw in the observed run.
//!
//! What a thread does after such a read is not known: it may go on as observed, because the value is the same or does not matter, or
//! it may leave the path that the witness relies on. When a replay has left its schedule, the last read of that kind
//! before the place is the one to blame; and every other witness that changes what is read there can be expected
//! to fail in the same way.
//!
//! The order of a witness is known step by step. Accesses between two steps count as made right after the first one, which is
//! what a replay with one thread at a time does.

use crate::candidate::Party;
use crate::ids::Pos;
use crate::intervals::{Entry, Interval, IntervalIx};
use crate::prediction::Prediction;
use crate::program::AccessKind;
use crate::witness::Witness;
use raddle_trace::model::EventIx;
use raddle_trace::{LocationIx, MemoryTrace, ThreadIx};
use std::collections::BTreeSet;

/// A read that sees another write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangedRead {
    pub thread: ThreadIx,
    /// Steps that its thread has taken before it.
    pub pos: Pos,
    pub event: EventIx,
}

/// When an access is made in a witness: in its first part, or after so many moves of its second.
type Moment = (bool, u64, EventIx);

/// A witness, as far as it says when accesses are made.
struct Times<'a> {
    prediction: &'a Prediction,
    parties: &'a [Party],
    witness: &'a Witness,
    /// Numbers of the moves of each thread after the first part.
    moves: Vec<Vec<u64>>,
}

impl<'a> Times<'a> {
    fn new(prediction: &'a Prediction, parties: &'a [Party], witness: &'a Witness) -> Times<'a> {
        let mut moves = vec![Vec::new(); prediction.program.thread_count()];
        for (number, thread) in witness.then.iter().enumerate() {
            moves[thread.index()].push(number as u64);
        }
        Times { prediction, parties, witness, moves }
    }

    /// `None`: the witness ends before it.
    fn of(&self, entry: &Entry) -> Option<Moment> {
        let party = self.parties.iter().find(|party| party.thread == entry.thread);
        if party.is_some_and(|party| entry.event >= party.event) {
            return None;
        }
        let first = self.witness.positions[entry.thread.index()];
        match entry.pos.saturating_sub(first).checked_sub(1) {
            None => {
                let last = entry.pos.checked_sub(1);
                let step = last.and_then(|last| self.prediction.program.step(entry.thread, last));
                Some((false, step.map_or(0, |step| u64::from(step.event.0)), entry.event))
            }
            Some(move_before) => {
                let number = self.moves[entry.thread.index()].get(move_before as usize)?;
                Some((true, *number, entry.event))
            }
        }
    }

    fn changed(&self, interval: &Interval, found: &mut Vec<ChangedRead>) {
        let mut observed: Vec<&Entry> = interval.entries.iter().collect();
        observed.sort_unstable_by_key(|entry| entry.event);
        let mut writer = None;
        let mut left: Vec<(Moment, &Entry, Option<EventIx>)> = Vec::new();
        for entry in observed {
            left.extend(self.of(entry).map(|moment| (moment, entry, writer)));
            if entry.kind.writes() {
                writer = Some(entry.event);
            }
        }
        left.sort_unstable_by_key(|(moment, ..)| *moment);
        let mut writer = None;
        for (_, entry, seen) in left {
            if entry.kind == AccessKind::Read && seen != writer {
                let Entry { thread, pos, event, .. } = *entry;
                found.push(ChangedRead { thread, pos, event });
            }
            if entry.kind.writes() {
                writer = Some(entry.event);
            }
        }
    }
}

impl Prediction {
    /// The reads of a witness that see another write than in the observed run, in the order of the observed run.
    pub fn changed_reads(&self, parties: &[Party], witness: &Witness) -> Vec<ChangedRead> {
        let times = Times::new(self, parties, witness);
        let mut found = Vec::new();
        for (_, interval) in self.intervals.iter() {
            times.changed(interval, &mut found);
        }
        found.sort_unstable_by_key(|read| read.event);
        found.dedup();
        found
    }

    /// Memory that is read at one of these places.
    pub fn read_at(&self, trace: &MemoryTrace, places: &BTreeSet<LocationIx>) -> Vec<IntervalIx> {
        let at = |entry: &Entry| {
            entry.kind == AccessKind::Read && places.contains(&trace.events[entry.event.index()].location)
        };
        let intervals = self.intervals.iter().filter(|(_, interval)| interval.entries.iter().any(at));
        intervals.map(|(number, _)| number).collect()
    }

    /// A read at one of these places, of this memory, that sees another write in the witness.
    pub fn changes_read_at(
        &self,
        trace: &MemoryTrace,
        (parties, witness): (&[Party], &Witness),
        places: &BTreeSet<LocationIx>,
        memory: &[IntervalIx],
    ) -> Option<LocationIx> {
        let times = Times::new(self, parties, witness);
        let mut found = Vec::new();
        for &number in memory {
            times.changed(&self.intervals.intervals[number.index()], &mut found);
        }
        let places_of = found.iter().map(|read| trace.events[read.event.index()].location);
        places_of.filter(|place| places.contains(place)).min()
    }

    /// The position of a thread before its visible operation with this number, counted from 1.
    pub fn position_of(&self, thread: ThreadIx, ordinal: u32) -> Pos {
        let steps = self.program.steps(thread);
        let visible = steps.iter().enumerate().filter(|(_, step)| step.visible);
        let found = visible.map(|(pos, _)| pos).nth(ordinal.saturating_sub(1) as usize);
        found.unwrap_or(steps.len()) as Pos
    }
}
