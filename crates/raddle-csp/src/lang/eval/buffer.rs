//! `BUFFER(n, {(in, out), ...})`.
//!
//! A buffer takes in events and gives the event that belongs to each out in the same order. It holds at most `n` and
//! refuses further input when it is full. Each state is a call of its own, made when the engine asks for it, so that a
//! large buffer costs only the states that are reached.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::value::Set;
use super::{CallBody, Evaluator, Fault, Result};
use crate::lang::source::Span;
use crate::process::{EventId, ProcId};

/// What a buffer is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
    capacity: usize,
    /// Input and output.
    pairs: Vec<(EventId, EventId)>,
}

impl Evaluator {
    pub(super) fn buffer(&mut self, capacity: i64, pairs: &Set, span: Span) -> Result<ProcId> {
        let capacity = usize::try_from(capacity).ok().filter(|&n| n > 0).ok_or_else(|| {
            Fault::new(span, format!("a buffer cannot have room for {capacity} events"))
                .note("the first argument has to be at least 1")
        })?;
        let mut events = Vec::new();
        let mut seen = BTreeSet::new();
        for (a, b) in self.pairs(pairs, span)? {
            let pair = (self.event(&a, span)?, self.event(&b, span)?);
            for event in [pair.0, pair.1] {
                if !seen.insert(event) {
                    let name = self.arena.events.name(event).to_string();
                    return Err(Fault::new(span, format!("`{name}` occurs twice in the pairs of a buffer"))
                        .note("every event has to be the input or the output of one pair"));
                }
            }
            events.push(pair);
        }
        let kind = Rc::new(Kind { capacity, pairs: events });
        Ok(self.buffer_state(&kind, Vec::new()))
    }

    fn buffer_state(&mut self, kind: &Rc<Kind>, held: Vec<EventId>) -> ProcId {
        let key = (kind.clone(), held);
        if let Some(&known) = self.buffers.get(&key) {
            return known;
        }
        let names: Vec<String> = key.1.iter().map(|&e| self.arena.events.name(e).to_string()).collect();
        let (call, process) = self.own_call(&format!("BUFFER({}, <{}>)", kind.capacity, names.join(", ")));
        self.bytes += super::CALL_BYTES + 2 * names.iter().map(|n| 2 + n.len() as u64).sum::<u64>();
        self.bodies.insert(call, CallBody::Buffer(kind.clone(), key.1.clone()));
        self.buffers.insert(key, process);
        process
    }

    pub(super) fn buffer_body(&mut self, kind: &Rc<Kind>, held: &[EventId]) -> ProcId {
        let mut choices = Vec::new();
        if held.len() < kind.capacity {
            for &(input, output) in &kind.pairs {
                let next = self.buffer_state(kind, [held, &[output]].concat());
                choices.push((input, next));
            }
        }
        if let Some((&first, rest)) = held.split_first() {
            let next = self.buffer_state(kind, rest.to_vec());
            choices.push((first, next));
        }
        self.arena.prefixes(choices)
    }
}
