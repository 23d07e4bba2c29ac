//! Walking a compiled process step by step: for interactive exploration and for replaying counterexamples.

use super::check::step;
use super::combinator::Label;
use super::model::Model;
use super::verdict::Step;
use crate::process::EventId;

/// A run of a model that can be extended and taken back.
///
/// Steps are offered in a fixed order (by event, then by what the components do), so a number names the same step in
/// every session.
pub struct Walk<'m> {
    model: &'m Model,
    states: Vec<Box<[u64]>>,
    steps: Vec<Step>,
}

impl<'m> Walk<'m> {
    /// A walk at the initial state.
    pub fn new(model: &'m Model) -> Walk<'m> {
        Walk { model, states: vec![model.start()], steps: Vec::new() }
    }

    fn here(&self) -> &[u64] {
        &self.states[self.states.len() - 1]
    }

    fn successors(&self) -> Vec<(Label, Box<[u64]>, u32)> {
        let mut list = self.model.successors(self.here());
        list.sort_by(|a, b| (self.model.event(a.0), a.2, &a.1).cmp(&(self.model.event(b.0), b.2, &b.1)));
        list
    }

    /// The steps possible now.
    pub fn offers(&self) -> Vec<Step> {
        self.successors().iter().map(|&(label, _, rule)| step(self.model, label, rule)).collect()
    }

    /// Takes the step with this number in [`Walk::offers`]; false if there is none.
    pub fn take(&mut self, number: usize) -> bool {
        let mut list = self.successors();
        if number >= list.len() {
            return false;
        }
        let (label, next, rule) = list.swap_remove(number);
        self.steps.push(step(self.model, label, rule));
        self.states.push(next);
        true
    }

    /// Takes back the last step; false at the start.
    pub fn undo(&mut self) -> bool {
        if self.steps.pop().is_none() {
            return false;
        }
        self.states.pop();
        true
    }

    /// The steps taken.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The visible events done so far.
    pub fn trace(&self) -> Vec<EventId> {
        self.steps.iter().map(|s| s.event).filter(|&e| e != EventId::TAU).collect()
    }

    /// The state number of each component.
    pub fn component_states(&self) -> Vec<u32> {
        let leaves = self.model.combinator.leaves.iter().filter(|l| !l.is_controller);
        leaves.map(|l| l.field.get(self.here())).collect()
    }

    /// Whether the process has terminated.
    pub fn is_terminated(&self) -> bool {
        self.model.is_terminated(self.here())
    }
}
