//! What happened before what in one run, and which of its races could be turned round.
//!
//! Event e *happens before* e' when a chain of ordered pairs (same thread, or dependent operations) leads from e to e'. Runs with
//! the same relation are equivalent. A *reversible race* is a pair e, e' of different threads, dependent, such that e' could go
//! where e went: nothing that its thread did before needs e, it is enabled there, and no other such event lies between them.
//!
//! Abdulla, Aronis, Jonsson and Sagonas (*Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction*, JACM 2017)
//! define a race as immediate: nothing between e and e' in happens-before. With operations that block that would lose races: from
//! `lock, unlock` to another thread's `lock` the unlock lies between, and cannot be reversed. So here "between" counts only what
//! is itself reversible, and whether e' is enabled is asked of [`Objects`]. The same goes for what threads were about to do when
//! the run ended: a thread that waits for ever might have come first.

use super::objects::Objects;
use super::run::{Event, Run, ThreadId};
use raddle_sched::dependence::{SPINS, dependent};

/// Vector clocks: of each thread, how many of its events have happened.
type Clock = Vec<u32>;

pub struct History<'a> {
    pub events: &'a [Event],
    /// What threads were about to do at the end.
    pub pending: &'a [Event],
    clocks: Vec<Clock>,
    /// Which event of its thread each one is, from 1.
    ordinals: Vec<u32>,
}

/// A race that can be turned round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The earlier event.
    pub first: usize,
    /// The later one; at the length of the run or beyond: one that was pending at the end.
    pub second: usize,
}

fn join(into: &mut Clock, other: &Clock) {
    if into.len() < other.len() {
        into.resize(other.len(), 0);
    }
    for (a, b) in into.iter_mut().zip(other) {
        *a = (*a).max(*b);
    }
}

impl<'a> History<'a> {
    pub fn new(events: &'a [Event], pending: &'a [Event]) -> History<'a> {
        let threads = events.iter().chain(pending).map(|event| event.thread.at() + 1).max().unwrap_or(0);
        let mut history = History {
            events,
            pending,
            clocks: Vec::with_capacity(events.len()),
            ordinals: Vec::with_capacity(events.len()),
        };
        let mut last: Vec<Option<usize>> = vec![None; threads];
        for (at, event) in events.iter().enumerate() {
            let own = event.thread.at();
            let mut clock = last[own].map_or_else(|| vec![0; threads], |i| history.clocks[i].clone());
            for i in (0..at).rev() {
                let other = &events[i];
                if other.thread != event.thread
                    && clock[other.thread.at()] < history.ordinals[i]
                    && dependent(&other.op, &event.op)
                {
                    join(&mut clock, &history.clocks[i]);
                }
            }
            clock[own] += 1;
            history.ordinals.push(clock[own]);
            history.clocks.push(clock);
            last[own] = Some(at);
        }
        history
    }

    pub fn event(&self, at: usize) -> &Event {
        self.events.get(at).unwrap_or_else(|| &self.pending[at - self.events.len()])
    }

    /// Did the first event have to happen before the second?
    pub fn before(&self, first: usize, second: usize) -> bool {
        self.clocks[second][self.events[first].thread.at()] >= self.ordinals[first]
    }

    /// The last event of a thread before a place of the run.
    fn previous(&self, thread: ThreadId, before: usize) -> Option<usize> {
        self.events[..before.min(self.events.len())].iter().rposition(|event| event.thread == thread)
    }

    /// Did `first` have to happen before the thread of `second` came to that operation?
    pub fn before_arrival(&self, first: usize, second: usize) -> bool {
        let own = self.previous(self.event(second).thread, second);
        own.is_some_and(|own| self.before(first, own))
    }

    /// Where the thread of an event came to it: after its previous event.
    pub fn arrival(&self, at: usize) -> usize {
        self.previous(self.event(at).thread, at).map_or(0, |own| own + 1)
    }

    /// The events after `first`, up to `end`, that did not need it.
    pub fn without(&self, first: usize, end: usize) -> Vec<Event> {
        let after = first + 1..end.min(self.events.len());
        after.filter(|&at| !self.before(first, at)).map(|at| self.events[at]).collect()
    }

    /// All races that can be turned round, in order of their second event.
    pub fn races(&self) -> Vec<Race> {
        let mut races = Vec::new();
        for second in 0..self.events.len() + self.pending.len() {
            let event = *self.event(second);
            let end = second.min(self.events.len());
            let mut reversible: Vec<usize> = Vec::new();
            for first in (0..end).rev() {
                let other = &self.events[first];
                if other.thread == event.thread
                    || !dependent(&other.op, &event.op)
                    || reversible.iter().any(|&later| self.before(first, later))
                    || self.before_arrival(first, second)
                    || !self.enabled_without(first, end, &event)
                    || event.op.has(SPINS) && !self.has_news_without(first, second)
                {
                    continue;
                }
                reversible.push(first);
            }
            races.extend(reversible.into_iter().map(|first| Race { first, second }));
        }
        races
    }

    /// Could the event go after everything before `first`, and what did not need `first` after it?
    fn enabled_without(&self, first: usize, end: usize, event: &Event) -> bool {
        let mut objects = Objects::default();
        self.events[..first].iter().for_each(|event| objects.perform(event));
        for at in first + 1..end {
            if !self.before(first, at) {
                objects.perform(&self.events[at]);
            }
        }
        objects.enables(event.thread, &event.op)
    }

    /// A thread waits in a loop before its operation: has anybody but `first` changed what it looks at since it came there?
    fn has_news_without(&self, first: usize, second: usize) -> bool {
        let event = self.event(second);
        (self.arrival(second)..second.min(self.events.len())).any(|at| {
            let other = &self.events[at];
            at != first
                && other.thread != event.thread
                && !self.before(first, at)
                && !other.failed
                && !other.op.only_looks()
                && dependent(&other.op, &event.op)
        })
    }

    /// An event by its thread, which of the thread's it is, and what happened before it.
    pub fn name(&self, at: usize) -> u64 {
        let own = self.events[at].thread.at() as u64 + 1;
        let clock = self.clocks[at].iter().fold(own, |state, &count| mix(state ^ u64::from(count)));
        mix(clock ^ u64::from(self.events[at].failed))
    }
}

/// One round of splitmix64.
pub fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The first events of threads in a sequence that nothing in it comes before: with which of them it could begin.
pub fn initials(sequence: &[Event]) -> Vec<ThreadId> {
    let mut seen: Vec<ThreadId> = Vec::new();
    let mut found = Vec::new();
    for (at, event) in sequence.iter().enumerate() {
        if !seen.contains(&event.thread) {
            seen.push(event.thread);
            if sequence[..at].iter().all(|other| !other.ordered_with(event)) {
                found.push(event.thread);
            }
        }
    }
    found
}

/// Where in the sequence the event's thread goes first, if the sequence could begin with that, or is independent of the event:
/// the *weak initials* of the paper.
pub enum Begins {
    With(usize),
    Besides,
    No,
}

pub fn begins(sequence: &[Event], event: &Event) -> Begins {
    match sequence.iter().position(|other| other.thread == event.thread) {
        Some(at) if sequence[..at].iter().all(|other| !other.ordered_with(&sequence[at])) => Begins::With(at),
        Some(_) => Begins::No,
        None if sequence.iter().all(|other| !other.ordered_with(event)) => Begins::Besides,
        None => Begins::No,
    }
}

/// The events of a run.
pub fn events(run: &Run) -> Vec<Event> {
    run.steps.iter().map(|step| step.event).collect()
}
