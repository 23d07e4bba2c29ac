//! Walking a compiled process step by step: for interactive exploration and for replaying counterexamples.

use super::check::step;
use super::combinator::Label;
use super::model::Model;
use super::verdict::Step;
use crate::process::EventId;

/// A step that can be taken: what the whole does, the next state, the rule.
type Possible = (Label, Box<[u64]>, u32);

/// States looked at for [`Walk::acceptances`].
const ACCEPTANCE_STATES_MAX: usize = 100_000;

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

    fn successors(&self) -> Vec<Possible> {
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

    /// Takes the steps of a counterexample of this model; false, and nothing changed, if they are not possible.
    pub fn follow(&mut self, path: &[Step]) -> bool {
        let (states, steps) = (self.states.len(), self.steps.len());
        // Several steps may look alike and lead to different states: the others are tried when one leads nowhere.
        let mut open: Vec<Vec<Possible>> = Vec::new();
        while open.len() < path.len() {
            let wanted = &path[open.len()];
            let fitting = |&(label, _, rule): &Possible| step(self.model, label, rule) == *wanted;
            let mut candidates: Vec<_> = self.successors().into_iter().filter(fitting).collect();
            candidates.reverse();
            open.push(candidates);
            loop {
                let Some(last) = open.last_mut() else { return false };
                if let Some((label, next, rule)) = last.pop() {
                    self.steps.push(step(self.model, label, rule));
                    self.states.push(next);
                    break;
                }
                open.pop();
                if open.is_empty() {
                    self.states.truncate(states);
                    self.steps.truncate(steps);
                    return false;
                }
                self.undo();
            }
        }
        true
    }

    /// What may be offered after the events so far, whatever hidden steps come next: the sets of visible events of the
    /// stable states that hidden steps lead to, the smallest ones.
    pub fn acceptances(&self) -> Vec<Vec<EventId>> {
        let mut seen: rustc_hash::FxHashSet<Box<[u64]>> =
            rustc_hash::FxHashSet::from_iter([Box::from(self.here())]);
        let mut todo: Vec<Box<[u64]>> = vec![Box::from(self.here())];
        let mut found: Vec<Vec<EventId>> = Vec::new();
        while let Some(state) = todo.pop() {
            let mut offers = Vec::new();
            let mut stable = !self.model.is_terminated(&state);
            for (label, next, _) in self.model.successors(&state) {
                match self.model.event(label) {
                    EventId::TAU => {
                        stable = false;
                        if seen.len() < ACCEPTANCE_STATES_MAX && seen.insert(next.clone()) {
                            todo.push(next);
                        }
                    }
                    EventId::TICK => stable = false,
                    event => offers.push(event),
                }
            }
            if stable {
                offers.sort_unstable();
                offers.dedup();
                found.push(offers);
            }
        }
        found.sort();
        found.dedup();
        let within = |a: &Vec<EventId>, b: &Vec<EventId>| a.iter().all(|e| b.contains(e));
        let all = found.clone();
        found.retain(|set| !all.iter().any(|other| other != set && within(other, set)));
        found
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
