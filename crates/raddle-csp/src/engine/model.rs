//! A compiled process: a combinator, and around it the functions that rules cannot express.
//!
//! `prioritise` and `prioritisepo` have negative premises (an event may happen *unless* another can), `chase` looks ahead
//! and `deter` takes one of several; all work on the whole list of successors. At the top of a process they are kept as wrappers, together with hidings and renamings
//! above them, and applied to each list; deeper down the compiler makes their operand an explicit leaf.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::combinator::{Combinator, Label, TAU, TICK};
use super::layout::Key;
use crate::process::EventId;

/// Numbers of words for which the search is compiled; a vector uses the next larger.
pub const WORDS: [usize; 6] = [1, 2, 3, 4, 8, 64];

/// States of a chased chain that are compared one by one.
const CHASE_LINEAR_MAX: usize = 32;

/// Runs `$body` with the constant `$w` set to the smallest supported number of words not below `$words`.
macro_rules! with_words {
    ($words:expr, $w:ident => $body:expr) => {
        match $words {
            0..=1 => {
                const $w: usize = 1;
                $body
            }
            2 => {
                const $w: usize = 2;
                $body
            }
            3 => {
                const $w: usize = 3;
                $body
            }
            4 => {
                const $w: usize = 4;
                $body
            }
            5..=8 => {
                const $w: usize = 8;
                $body
            }
            9..=64 => {
                const $w: usize = 64;
                $body
            }
            words => unreachable!("the compiler refuses vectors of {words} words"),
        }
    };
}
pub(crate) use with_words;

/// A function on successor lists.
pub enum Outer {
    /// Rank of each label; `None`: not ordered.
    Prioritise(Vec<Option<u32>>),
    /// The labels above each label.
    Order(Vec<Vec<Label>>),
    /// One transition for each label, and only `✓` where it is possible.
    OneOfEach,
    /// Images of each label.
    Relabel(Vec<SmallVec<[Label; 1]>>),
    Chase,
}

/// See the module's head.
pub struct Model {
    pub combinator: Combinator,
    /// From the inside out.
    pub outer: Vec<Outer>,
    /// The event of each label; begins with those of the combinator.
    pub labels: Vec<EventId>,
}

/// What is called for each step. As a trait object, so that callers off the hot path share one copy of the code.
pub type Emit<'a, const W: usize> = &'a mut dyn FnMut(Label, &Key<W>, u32) -> bool;

/// A step of a model: what happens, the next vector, the rule used.
pub type Successor<const W: usize> = (Label, Key<W>, u32);

impl Model {
    /// Words of a vector.
    pub fn words(&self) -> usize {
        self.combinator.layout.words()
    }

    pub fn event(&self, label: Label) -> EventId {
        self.labels[label as usize]
    }

    pub fn label(&self, event: EventId) -> Option<Label> {
        self.labels.iter().position(|&e| e == event).map(|i| i as Label)
    }

    pub fn initial<const W: usize>(&self) -> Key<W> {
        let mut key = [0; W];
        for level in 0..self.outer.len() {
            if matches!(self.outer[level], Outer::Chase) {
                key = self.chase(level, &key);
            }
        }
        key
    }

    /// Whether some state may have a `τ`; false allows the search to skip looking.
    pub fn may_have_taus(&self) -> bool {
        self.combinator.has_tau_rules() || !self.outer.is_empty()
    }

    pub fn is_terminated(&self, key: &[u64]) -> bool {
        self.combinator.is_terminated(key)
    }

    /// Calls `emit` for every `τ` step until it answers true; says whether it did.
    #[inline]
    pub fn taus<const W: usize>(
        &self,
        key: &Key<W>,
        mut emit: impl FnMut(Label, &Key<W>, u32) -> bool,
    ) -> bool {
        if self.outer.is_empty() {
            return self.combinator.taus(key, emit);
        }
        self.listed(self.outer.len(), key).iter().any(|(l, next, rule)| *l == TAU && emit(*l, next, *rule))
    }

    /// The same for visible steps and `✓`.
    #[inline]
    pub fn visibles<const W: usize>(
        &self,
        key: &Key<W>,
        mut emit: impl FnMut(Label, &Key<W>, u32) -> bool,
    ) -> bool {
        if self.outer.is_empty() {
            return self.combinator.visibles(key, emit);
        }
        self.listed(self.outer.len(), key).iter().any(|(l, next, rule)| *l != TAU && emit(*l, next, *rule))
    }

    /// All successors below the wrapper `level`.
    fn listed<const W: usize>(&self, level: usize, key: &Key<W>) -> Vec<Successor<W>> {
        let Some(below) = level.checked_sub(1) else {
            let mut list = Vec::new();
            let mut push = |label: Label, next: &Key<W>, rule: u32| {
                list.push((label, *next, rule));
                false
            };
            self.combinator.taus(key, &mut push as Emit<'_, W>);
            self.combinator.visibles(key, &mut push as Emit<'_, W>);
            return list;
        };
        let mut list = self.listed(below, key);
        match &self.outer[below] {
            Outer::Prioritise(rank) => {
                let first = list.iter().filter_map(|&(l, ..)| rank[l as usize]).min();
                list.retain(|&(l, ..)| rank[l as usize].is_none_or(|r| Some(r) == first));
            }
            Outer::Order(above) => {
                let offered: Vec<Label> = list.iter().map(|&(l, ..)| l).collect();
                list.retain(|&(l, ..)| !above[l as usize].iter().any(|a| offered.contains(a)));
            }
            Outer::OneOfEach => {
                if list.iter().any(|&(l, ..)| l == TICK) {
                    list.retain(|&(l, ..)| l == TICK);
                }
                list.sort_unstable();
                list.dedup_by_key(|&mut (l, ..)| l);
            }
            Outer::Relabel(images) => {
                let mut out = Vec::with_capacity(list.len());
                for (l, next, rule) in list {
                    out.extend(images[l as usize].iter().map(|&image| (image, next, rule)));
                }
                return out;
            }
            Outer::Chase => {
                if let Some(&(.., rule)) = list.iter().find(|&&(l, ..)| l == TAU) {
                    // Only a vector on a `τ` loop is left unstable by `chase`: it diverges.
                    return vec![(TAU, *key, rule)];
                }
                for (_, next, _) in &mut list {
                    *next = self.chase(below, next);
                }
            }
        }
        list
    }

    /// Follows first `τ`s below the wrapper `level`; on a loop, the least vector of it stands for the divergence.
    fn chase<const W: usize>(&self, level: usize, key: &Key<W>) -> Key<W> {
        let mut seen: Vec<Key<W>> = vec![*key];
        // Chains are short as a rule; only long ones are worth a table.
        let mut places: FxHashMap<Key<W>, usize> = FxHashMap::default();
        loop {
            let at = seen[seen.len() - 1];
            let Some(next) = self.listed(level, &at).into_iter().find(|&(l, ..)| l == TAU).map(|(_, n, _)| n)
            else {
                return at;
            };
            let tabled = places.len();
            let place = places.get(&next).copied();
            let place = place.or_else(|| Some(tabled + seen[tabled..].iter().position(|k| *k == next)?));
            if let Some(start) = place {
                return *seen[start..].iter().min().expect("a loop is not empty");
            }
            seen.push(next);
            if seen.len() - tabled == CHASE_LINEAR_MAX {
                places.extend(seen[tabled..].iter().enumerate().map(|(i, &k)| (k, tabled + i)));
            }
        }
    }

    /// Successors with the size known only at run time: for counterexamples, graphs and specifications.
    pub fn successors(&self, key: &[u64]) -> Vec<(Label, Box<[u64]>, u32)> {
        with_words!(self.words(), W => {
            let mut wide = [0u64; W];
            wide[..key.len()].copy_from_slice(key);
            let mut list: Vec<(Label, Box<[u64]>, u32)> = Vec::new();
            let mut push = |label: Label, next: &Key<W>, rule: u32| {
                list.push((label, Box::from(&next[..key.len()]), rule));
                false
            };
            self.taus(&wide, &mut push as Emit<'_, W>);
            self.visibles(&wide, &mut push as Emit<'_, W>);
            list
        })
    }

    /// The initial vector for [`Model::successors`].
    pub fn start(&self) -> Box<[u64]> {
        with_words!(self.words(), W => {
            let key: Key<W> = self.initial();
            Box::from(&key[..self.words()])
        })
    }
}
