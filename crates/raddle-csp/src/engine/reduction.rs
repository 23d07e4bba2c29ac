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
//! Closing is tried from every leaf, so it has to be quick. For a rule of two leaves it need not be known whether it is
//! enabled: the other leaf belongs to the set either way, because it takes part or because it blocks. So what one leaf in
//! one of its states pulls in by such rules is the same in all states of the whole; each worker keeps it in its
//! [`Scratch`]. Only rules of more leaves, or with resets, are looked at anew. The enabled rules of a state, and with
//! them the leaves that no set may have, are found once, in the way the search finds them.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use super::combinator::{Combinator, Label};
use super::layout::Key;
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
    /// For every rule its leaves with the numbers of their events.
    parts: Vec<Vec<(LeafId, u32)>>,
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

    /// Adds the leaves of a mask.
    fn join(&mut self, mask: &[u64]) {
        for (at, (have, &more)) in self.words.iter_mut().zip(mask).enumerate() {
            let mut new = more & !*have;
            *have |= new;
            while new != 0 {
                self.list.push(at as u32 * 64 + new.trailing_zeros());
                new &= new - 1;
            }
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
        let back: Vec<rustc_hash::FxHashSet<(u32, EventId)>> = combinator
            .leaves
            .iter()
            .map(|leaf| if leaf.is_controller { Default::default() } else { back_edges(&leaf.machine) })
            .collect();
        let numbered = |&(leaf, event): &(LeafId, EventId)| (leaf, combinator.number_of(leaf, event));
        let parts = combinator.rules.iter().map(|rule| rule.parts.iter().map(numbered).collect()).collect();
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Reduction {
            id,
            combinator,
            effort,
            preserve,
            involving,
            resetting,
            terminating,
            touched,
            parts,
            back,
        }
    }

    /// A stubborn set for the state that leaves something out, if one is found.
    pub fn stubborn<const W: usize>(&self, key: &Key<W>) -> Option<LeafSet> {
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.reduction != self.id {
                scratch.start(self);
            }
            // The search asks for the hidden and the visible steps of a state one after the other.
            if scratch.key != key {
                scratch.key.clear();
                scratch.key.extend_from_slice(key);
                scratch.answer = self.find(key, scratch);
            }
            scratch.answer.clone()
        })
    }

    fn find<const W: usize>(&self, key: &Key<W>, scratch: &mut Scratch) -> Option<LeafSet> {
        if self.combinator.is_terminated(key) {
            return None;
        }
        let leaves = self.combinator.leaves.len();
        scratch.enabled.clear();
        let mut note = |_: Label, _: &Key<W>, rule: u32| {
            scratch.enabled.push(rule);
            false
        };
        self.combinator.taus(key, &mut note);
        self.combinator.visibles(key, &mut note);
        scratch.enabled.sort_unstable();
        scratch.enabled.dedup();
        scratch.barred.fill(false);
        for &rule in &scratch.enabled {
            if self.is_barred(key, rule) {
                self.touched[rule as usize].iter().for_each(|&leaf| scratch.barred[leaf as usize] = true);
            }
        }
        let mut best: Option<(usize, LeafSet)> = None;
        let mut set = LeafSet::default();
        for seed in 0..leaves as u32 {
            set.clear(leaves);
            set.add(seed);
            if let Some(enabled) = self.close(key, &mut set, scratch)
                && enabled > 0
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
        let leaves = self.combinator.leaves.len();
        let mut at = 0;
        while at < set.list.len() {
            if set.list.len() == leaves || (at > 0 && self.effort == PartialOrder::Fast) {
                return None;
            }
            let leaf = set.list[at];
            if scratch.barred[leaf as usize] {
                return None;
            }
            let pull = scratch.pull(self, leaf, key);
            set.join(&pull.leaves);
            // A rule that ends the whole touches every leaf; once is enough.
            let terminating = if at == 0 { &self.terminating[..] } else { &[] };
            for &rule in pull.open.iter().chain(terminating) {
                self.pull_in(key, rule, set);
            }
            at += 1;
        }
        if set.list.len() == leaves {
            return None;
        }
        Some(scratch.enabled.iter().filter(|&&rule| self.includes(set, rule)).count())
    }

    /// Adds what a rule that touches the set demands.
    fn pull_in(&self, key: &[u64], rule: u32, set: &mut LeafSet) {
        let parts = &self.parts[rule as usize];
        let blocks = |&&(leaf, event): &&(LeafId, u32)| !self.combinator.offers_numbered(leaf, event, key);
        if parts.iter().filter(blocks).any(|&(leaf, _)| set.contains(leaf.0)) {
            return;
        }
        match parts.iter().find(blocks) {
            Some(&(blocker, _)) => set.add(blocker.0),
            None => self.touched[rule as usize].iter().for_each(|&leaf| set.add(leaf)),
        }
    }

    /// Whether an enabled rule must not be in a stubborn set.
    fn is_barred(&self, key: &[u64], rule: u32) -> bool {
        let rule = &self.combinator.rules[rule as usize];
        match self.preserve {
            Preserve::Deadlocks => false,
            _ if rule.result != EventId::TAU => true,
            Preserve::Divergences => false,
            Preserve::Failures => rule.parts.iter().any(|&(leaf, event)| {
                self.back[leaf.0 as usize].contains(&(self.combinator.state_of(leaf, key), event))
            }),
        }
    }

    /// What a leaf pulls into a set in one of its states.
    fn pull_of(&self, leaf: u32, state: u32) -> Pull {
        let machine = &self.combinator.leaves[leaf as usize].machine;
        let pseudo = (machine.omega() == Some(state)).then_some((OMEGA, state));
        let words = self.combinator.leaves.len().div_ceil(64);
        let mut pull = Pull { leaves: vec![0; words], open: Vec::new() };
        let mut last = None;
        for &(event, _) in machine.from(state).iter().chain(&pseudo) {
            if last == Some(event) {
                continue;
            }
            last = Some(event);
            for &number in self.involving[leaf as usize].get(&event).map_or(&[][..], |l| l) {
                let rule = &self.combinator.rules[number as usize];
                if rule.parts.len() > 2 || !rule.resets.is_empty() || rule.result == EventId::TICK {
                    pull.open.push(number);
                } else {
                    for &(other, _) in &rule.parts {
                        pull.leaves[other.0 as usize / 64] |= 1 << (other.0 % 64);
                    }
                }
            }
        }
        pull.open.extend_from_slice(&self.resetting[leaf as usize]);
        pull
    }
}

/// The rules to take in one state. The stubborn set is looked for when the first rule is asked about: where nothing can
/// happen there is nothing to leave out.
pub struct Chosen<'a, const W: usize> {
    reduction: &'a Reduction<'a>,
    key: &'a Key<W>,
    set: Option<Option<LeafSet>>,
}

impl<'a, const W: usize> Chosen<'a, W> {
    pub fn new(reduction: &'a Reduction<'a>, key: &'a Key<W>) -> Chosen<'a, W> {
        Chosen { reduction, key, set: None }
    }

    pub fn includes(&mut self, rule: u32) -> bool {
        let set = self.set.get_or_insert_with(|| self.reduction.stubborn(self.key));
        set.as_ref().is_none_or(|set| self.reduction.includes(set, rule))
    }
}

/// What a leaf in one of its states pulls into a set.
#[derive(Debug, Default)]
struct Pull {
    /// A mask of the leaves that belong to the set in every state of the whole.
    leaves: Vec<u64>,
    /// Rules for which that depends on the other leaves.
    open: Vec<u32>,
}

/// Leaves with more states than this are looked at anew each time, to save memory.
const REMEMBERED_STATES_MAX: usize = 1 << 14;

/// What a worker knows.
#[derive(Debug, Default)]
struct Scratch {
    reduction: u64,
    /// The state it was asked about last, and the answer.
    key: Vec<u64>,
    answer: Option<LeafSet>,
    /// By leaf and state.
    pulls: Vec<Vec<Option<Box<Pull>>>>,
    /// For a leaf with too many states.
    fresh: Pull,
    /// The enabled rules of that state, and for every leaf whether one of them keeps it out of every set.
    enabled: Vec<u32>,
    barred: Vec<bool>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Scratch {
    /// Forgets the reduction before.
    fn start(&mut self, reduction: &Reduction) {
        self.reduction = reduction.id;
        self.key.clear();
        self.barred = vec![false; reduction.combinator.leaves.len()];
        self.pulls = reduction
            .combinator
            .leaves
            .iter()
            .map(|leaf| {
                let states = leaf.machine.len();
                let remembered = if states > REMEMBERED_STATES_MAX { 0 } else { states };
                (0..remembered).map(|_| None).collect()
            })
            .collect();
    }

    fn pull(&mut self, reduction: &Reduction, leaf: u32, key: &[u64]) -> &Pull {
        let state = reduction.combinator.state_of(LeafId(leaf), key);
        match self.pulls[leaf as usize].get_mut(state as usize) {
            Some(known) => known.get_or_insert_with(|| Box::new(reduction.pull_of(leaf, state))),
            None => {
                self.fresh = reduction.pull_of(leaf, state);
                &self.fresh
            }
        }
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
