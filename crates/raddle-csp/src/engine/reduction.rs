//! Partial order reduction: stubborn sets of leaves.
//!
//! A set `C` of leaves is *closed* in a state if every rule that touches a leaf of `C` is either enabled and touches only
//! leaves of `C`, or is blocked by a leaf of `C`. Then nothing that happens outside can enable, disable or change what
//! `C` may do next, and vice versa: the enabled rules of `C` form a stubborn set (Valmari 1989), and it is enough to
//! explore those, under conditions that depend on what must be preserved:
//!
//! * **Deadlocks** (`deadlock free [F]`): nothing more. A run to a state without steps must contain a step of `C`, since
//!   those stay enabled until one is taken; it can be moved to the front.
//! * **Refinement**: all enabled rules of `C` must be `τ`. Let a run `σ` lead to a stable state: as above it contains a
//!   `τ` of `C`, which moves to the front without changing the trace. So stable failures are preserved. An infinite `τ`
//!   run stays one when a `τ` of `C` is put in front, so divergences are preserved. A *trace* that leads to no stable
//!   state could be put off for ever by `τ`s of `C`:
//!   - in `FD` that does no harm. If the reduced system puts a trace off for ever it diverges on a prefix of it, and so
//!     does the full system; either the specification diverges there and allows the trace, or a violation is found.
//!   - in `T` and `F` a rule is therefore barred from stubborn sets if it can take a leaf along a *back edge*, one of a
//!     set of local transitions that cuts every loop of the leaf (static reduction, Kurshan et al. 1998). A loop of the
//!     reduced system would lead some leaf round a local loop, over a back edge. The choice looks at the state only, so
//!     the reduced graph is the same in every order of exploration, which parallel search needs.
//!
//! Rules with resets change the mode of a controller for good and so lie on no loop; controllers need no back edges.
//! Models with `prioritise` or `chase` on top are not reduced: there, steps of independent leaves are not independent.
//!
//! Closing is tried from every leaf, and the closures share most of what they ask: which rules a leaf is in, what blocks
//! them, whether they may be used. Each worker keeps those answers in a [`Scratch`] while it is at one state, and the set
//! itself until it asks about another.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use super::combinator::Combinator;
use super::rules::{LeafId, OMEGA};
use crate::assertion::PartialOrder;
use crate::process::EventId;

/// What the reduction must keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preserve {
    Deadlocks,
    /// Traces and stable failures.
    Failures,
    /// Failures and divergences.
    Divergences,
}

/// Finds stubborn sets.
pub struct Reduction<'m> {
    /// Tells reductions apart, for what workers remember.
    id: u64,
    combinator: &'m Combinator,
    effort: PartialOrder,
    preserve: Preserve,
    /// Rules by leaf and the leaf's event.
    involving: Vec<FxHashMap<EventId, Vec<u32>>>,
    /// Rules that reset a leaf.
    resetting: Vec<Vec<u32>>,
    /// Rules that end the whole, and with it every leaf.
    terminating: Vec<u32>,
    /// Leaves a rule reads or changes.
    touched: Vec<Vec<u32>>,
    /// (leaf, state, event) with a back edge among its transitions.
    back: Vec<rustc_hash::FxHashSet<(u32, EventId)>>,
}

/// A set of leaves.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeafSet {
    words: Vec<u64>,
    list: Vec<u32>,
}

impl LeafSet {
    fn clear(&mut self, leaves: usize) {
        self.words.clear();
        self.words.resize(leaves.div_ceil(64), 0);
        self.list.clear();
    }

    fn add(&mut self, leaf: u32) {
        if !self.contains(leaf) {
            self.words[leaf as usize / 64] |= 1 << (leaf % 64);
            self.list.push(leaf);
        }
    }

    fn contains(&self, leaf: u32) -> bool {
        self.words[leaf as usize / 64] & 1 << (leaf % 64) != 0
    }
}

impl<'m> Reduction<'m> {
    pub fn new(combinator: &'m Combinator, effort: PartialOrder, preserve: Preserve) -> Reduction<'m> {
        let leaves = combinator.leaves.len();
        let mut involving: Vec<FxHashMap<EventId, Vec<u32>>> = vec![FxHashMap::default(); leaves];
        let mut resetting = vec![Vec::new(); leaves];
        let mut terminating = Vec::new();
        let mut touched = Vec::with_capacity(combinator.rules.len());
        for (number, rule) in combinator.rules.iter().enumerate() {
            let mut all: Vec<u32> = Vec::new();
            for &(leaf, event) in &rule.parts {
                involving[leaf.0 as usize].entry(event).or_default().push(number as u32);
                all.push(leaf.0);
            }
            for leaf in &rule.resets {
                resetting[leaf.0 as usize].push(number as u32);
                all.push(leaf.0);
            }
            if rule.result == EventId::TICK {
                terminating.push(number as u32);
                all = (0..leaves as u32).collect();
            }
            all.sort_unstable();
            all.dedup();
            touched.push(all);
        }
        let back = combinator
            .leaves
            .iter()
            .map(|leaf| if leaf.is_controller { Default::default() } else { back_edges(&leaf.machine) })
            .collect();
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Reduction { id, combinator, effort, preserve, involving, resetting, terminating, touched, back }
    }

    /// A stubborn set for the state that leaves something out, if one is found.
    pub fn stubborn(&self, key: &[u64]) -> Option<LeafSet> {
        SCRATCH.with_borrow_mut(|scratch| {
            // The search asks for the hidden and the visible steps of a state one after the other.
            if scratch.reduction != self.id || scratch.key != key {
                scratch.start(self, key);
                scratch.answer = self.find(key, scratch);
            }
            scratch.answer.clone()
        })
    }

    fn find(&self, key: &[u64], scratch: &mut Scratch) -> Option<LeafSet> {
        if self.combinator.is_terminated(key) {
            return None;
        }
        let leaves = self.combinator.leaves.len();
        let mut best: Option<(usize, LeafSet)> = None;
        let mut set = LeafSet::default();
        for seed in 0..leaves as u32 {
            set.clear(leaves);
            set.add(seed);
            if let Some(enabled) = self.close(key, &mut set, scratch)
                && enabled > 0
                && set.list.len() < leaves
                && best.as_ref().is_none_or(|(fewest, _)| enabled < *fewest)
            {
                best = Some((enabled, set.clone()));
                if self.effort != PartialOrder::Precise || enabled == 1 {
                    break;
                }
            }
        }
        best.map(|(_, set)| set)
    }

    /// Whether a rule belongs to the stubborn set.
    pub fn includes(&self, set: &LeafSet, rule: u32) -> bool {
        self.touched[rule as usize].iter().any(|&leaf| set.contains(leaf))
    }

    /// Closes the set; the number of enabled rules in it, or `None` if the set may not be used.
    fn close(&self, key: &[u64], set: &mut LeafSet, scratch: &mut Scratch) -> Option<usize> {
        scratch.enabled.clear();
        let mut at = 0;
        while at < set.list.len() {
            if at > 0 && self.effort == PartialOrder::Fast {
                return None;
            }
            let leaf = set.list[at];
            at += 1;
            self.look_at_leaf(key, leaf, scratch);
            let (start, end) = match scratch.leaves[leaf as usize] {
                LeafNote::Barred => return None,
                LeafNote::Rules(start, end) => (start as usize, end as usize),
                LeafNote::Unknown => (0, 0),
            };
            for &rule in &scratch.rules_of_leaves[start..end] {
                match scratch.rules[rule as usize] {
                    RuleNote::Blocked(first, last) => {
                        let blockers = &scratch.blockers[first as usize..last as usize];
                        if !blockers.iter().any(|&leaf| set.contains(leaf)) {
                            set.add(blockers[0]);
                        }
                    }
                    _ => {
                        scratch.enabled.push(rule);
                        for &leaf in &self.touched[rule as usize] {
                            set.add(leaf);
                        }
                    }
                }
            }
        }
        scratch.enabled.sort_unstable();
        scratch.enabled.dedup();
        Some(scratch.enabled.len())
    }

    /// Notes the rules that a leaf may take part in, or that one of them bars it from every set.
    fn look_at_leaf(&self, key: &[u64], leaf: u32, scratch: &mut Scratch) {
        if !matches!(scratch.leaves[leaf as usize], LeafNote::Unknown) {
            return;
        }
        scratch.noted_leaves.push(leaf);
        let machine = &self.combinator.leaves[leaf as usize].machine;
        let state = self.combinator.state_of(LeafId(leaf), key);
        let pseudo = (machine.omega() == Some(state)).then_some((OMEGA, state));
        let start = scratch.rules_of_leaves.len();
        let mut barred = false;
        let mut last = None;
        for &(event, _) in machine.from(state).iter().chain(&pseudo) {
            if last == Some(event) {
                continue;
            }
            last = Some(event);
            for &rule in self.involving[leaf as usize].get(&event).map_or(&[][..], |l| l) {
                barred |= self.look_at_rule(key, rule, scratch);
                scratch.rules_of_leaves.push(rule);
            }
        }
        for &rule in self.resetting[leaf as usize].iter().chain(&self.terminating) {
            barred |= self.look_at_rule(key, rule, scratch);
            scratch.rules_of_leaves.push(rule);
        }
        scratch.leaves[leaf as usize] = if barred {
            LeafNote::Barred
        } else {
            LeafNote::Rules(start as u32, scratch.rules_of_leaves.len() as u32)
        };
    }

    /// Notes what a rule waits for; says whether it is enabled and must not be in a stubborn set.
    fn look_at_rule(&self, key: &[u64], rule: u32, scratch: &mut Scratch) -> bool {
        if !matches!(scratch.rules[rule as usize], RuleNote::Unknown) {
            return matches!(scratch.rules[rule as usize], RuleNote::Barred);
        }
        scratch.noted_rules.push(rule);
        let parts = &self.combinator.rules[rule as usize].parts;
        let first = scratch.blockers.len() as u32;
        for &(leaf, event) in parts {
            if !self.combinator.offers(leaf, event, key) {
                scratch.blockers.push(leaf.0);
            }
        }
        let last = scratch.blockers.len() as u32;
        let visible = || {
            self.preserve != Preserve::Deadlocks
                && self.combinator.rules[rule as usize].result != EventId::TAU
        };
        let along_back_edge = || {
            self.preserve == Preserve::Failures
                && parts.iter().any(|&(leaf, event)| {
                    self.back[leaf.0 as usize].contains(&(self.combinator.state_of(leaf, key), event))
                })
        };
        let note = if first < last {
            RuleNote::Blocked(first, last)
        } else if visible() || along_back_edge() {
            RuleNote::Barred
        } else {
            RuleNote::Enabled
        };
        scratch.rules[rule as usize] = note;
        matches!(note, RuleNote::Barred)
    }
}

/// What is known about a rule in the state a worker is at.
#[derive(Clone, Copy, Debug, Default)]
enum RuleNote {
    #[default]
    Unknown,
    Enabled,
    /// Enabled, and no set that has it may be used.
    Barred,
    /// A range of [`Scratch::blockers`].
    Blocked(u32, u32),
}

/// What is known about a leaf in the state a worker is at.
#[derive(Clone, Copy, Debug, Default)]
enum LeafNote {
    #[default]
    Unknown,
    /// It is part of a barred rule.
    Barred,
    /// A range of [`Scratch::rules_of_leaves`].
    Rules(u32, u32),
}

/// What a worker knows about the state it is at.
#[derive(Debug, Default)]
struct Scratch {
    reduction: u64,
    key: Vec<u64>,
    answer: Option<LeafSet>,
    rules: Vec<RuleNote>,
    leaves: Vec<LeafNote>,
    /// The rules and leaves that have a note.
    noted_rules: Vec<u32>,
    noted_leaves: Vec<u32>,
    blockers: Vec<u32>,
    rules_of_leaves: Vec<u32>,
    enabled: Vec<u32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Scratch {
    /// Forgets the state before.
    fn start(&mut self, reduction: &Reduction, key: &[u64]) {
        if self.reduction != reduction.id {
            self.reduction = reduction.id;
            self.rules = vec![RuleNote::Unknown; reduction.combinator.rules.len()];
            self.leaves = vec![LeafNote::Unknown; reduction.combinator.leaves.len()];
            self.noted_rules.clear();
            self.noted_leaves.clear();
        }
        for rule in self.noted_rules.drain(..) {
            self.rules[rule as usize] = RuleNote::Unknown;
        }
        for leaf in self.noted_leaves.drain(..) {
            self.leaves[leaf as usize] = LeafNote::Unknown;
        }
        self.key.clear();
        self.key.extend_from_slice(key);
        self.blockers.clear();
        self.rules_of_leaves.clear();
    }
}

/// (state, event) pairs whose removal leaves a machine without loops: targets on the stack of a depth-first search.
fn back_edges(machine: &super::machine::Machine) -> rustc_hash::FxHashSet<(u32, EventId)> {
    const UNSEEN: u8 = 0;
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    let mut colour = vec![UNSEEN; machine.len()];
    let mut edges: rustc_hash::FxHashSet<(u32, EventId)> = Default::default();
    let mut stack: Vec<(u32, usize)> = vec![(0, 0)];
    colour[0] = OPEN;
    while let Some(&mut (state, ref mut edge)) = stack.last_mut() {
        let Some(&(event, target)) = machine.from(state).get(*edge) else {
            colour[state as usize] = DONE;
            stack.pop();
            continue;
        };
        *edge += 1;
        match colour[target as usize] {
            OPEN => {
                edges.insert((state, event));
            }
            UNSEEN => {
                colour[target as usize] = OPEN;
                stack.push((target, 0));
            }
            _ => {}
        }
    }
    edges
}
