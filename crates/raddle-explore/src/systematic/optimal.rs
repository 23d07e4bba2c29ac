//! `optimal`: wakeup trees.
//!
//! Abdulla, Aronis, Jonsson and Sagonas, *Optimal Dynamic Partial Order Reduction* (POPL 2014), algorithm 2. What is to be tried at a
//! state is not a set of threads but an ordered tree of sequences: following one to its leaf leads to a run that is not
//! blocked. For every reversible race e, e' of a complete run, the sequence v of what did not need e, and then e', is put into
//! the tree of the state before e, unless a thread that is asleep there could begin it. Each class is run exactly once, and
//! no run is blocked.
//!
//! Deviations: races are those of [`super::history`], which knows of operations that block; the run need not have ended by itself
//! (a crash is dependent on everything).

use super::history::{Begins, History, begins};
use super::run::{Event, ThreadId};
use super::search::Node;
use serde::{Deserialize, Serialize};

/// Sequences of events that share their beginnings, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupTree {
    children: Vec<(Event, WakeupTree)>,
}

impl WakeupTree {
    /// What follows the first child.
    pub fn subtree(&self) -> WakeupTree {
        self.children.first().map_or_else(WakeupTree::default, |(_, tree)| tree.clone())
    }

    /// The step under way is the first child; what it was called before it was taken does not matter.
    pub fn begin_with(&mut self, event: Event) {
        match self.children.first_mut() {
            Some((first, _)) => *first = event,
            None => self.children.push((event, WakeupTree::default())),
        }
    }

    pub fn add_child(&mut self, event: Event) {
        if !self.children.iter().any(|(other, _)| other.thread == event.thread) {
            self.children.push((event, WakeupTree::default()));
        }
    }

    pub fn drop_first(&mut self) {
        if !self.children.is_empty() {
            self.children.remove(0);
        }
    }

    pub fn drop_while(&mut self, mut unwanted: impl FnMut(&Event) -> bool) {
        while self.children.first().is_some_and(|(event, _)| unwanted(event)) {
            self.children.remove(0);
        }
    }

    pub fn children_count(&self) -> usize {
        self.children.len()
    }

    /// The threads along the first branch, down to its leaf.
    pub fn first_sequence(&self) -> Vec<ThreadId> {
        let mut sequence = Vec::new();
        let mut tree = self;
        while let Some((event, below)) = tree.children.first() {
            sequence.push(event.thread);
            tree = below;
        }
        sequence
    }

    /// Adds the sequence, unless a branch that is there already leads to its runs.
    fn insert(&mut self, mut sequence: Vec<Event>) {
        let mut tree = self;
        let mut is_root = true;
        loop {
            if tree.children.is_empty() && !is_root {
                return;
            }
            is_root = false;
            let branch = tree.children.iter().position(|(event, _)| match begins(&sequence, event) {
                Begins::With(at) => {
                    sequence.remove(at);
                    true
                }
                Begins::Besides => true,
                Begins::No => false,
            });
            match branch {
                Some(at) => tree = &mut tree.children[at].1,
                None => break,
            }
        }
        for event in sequence {
            tree.children.push((event, WakeupTree::default()));
            let last = tree.children.len() - 1;
            tree = &mut tree.children[last].1;
        }
    }
}

pub fn update(path: &mut [Node], history: &History<'_>, free: usize) {
    for race in history.races() {
        if race.first < free {
            continue;
        }
        let mut reversed = history.without(race.first, usize::MAX);
        reversed.push(*history.event(race.second));
        let node = &mut path[race.first];
        let seen = node.asleep.iter().any(|event| !matches!(begins(&reversed, event), Begins::No));
        if !seen {
            node.wakeup.insert(reversed);
        }
    }
}
