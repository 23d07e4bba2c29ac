//! The normal form of a specification, built as far as a check needs it.
//!
//! A node is the set of states a process can be in after a trace (subset construction, `τ`-closed). What a node knows:
//! where each event leads, the minimal acceptances (the smallest sets of events a stable member offers; `{✓}` for a
//! member that can terminate), and whether it diverges. These are exactly the traces, stable failures and divergences
//! after the trace (Roscoe 2010, 16.1), so a check of an implementation state against a node is a lookup.
//!
//! A set becomes a node number as soon as some event leads to it, but it is looked into only when a pair with it is
//! expanded; specifications much larger than the part an implementation visits cost nothing extra.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::combinator::Label;
use super::compress::minimal_sets;
use super::model::Model;
use super::room::Room;
use super::verdict::CheckError;
use crate::process::EventId;

/// The number of a node.
pub type NodeId = u32;
const NOWHERE: NodeId = NodeId::MAX;
/// Implementations with more labels than this look nodes' events up by search instead of by table.
const TABLE_LABELS_MAX: usize = 256;

/// A set of the implementation's labels.
pub type LabelSet = Box<[u64]>;

/// Whether every label of `small` is in `large`.
#[inline]
pub fn is_subset(small: &[u64], large: &[u64]) -> bool {
    small.iter().zip(large).all(|(s, l)| s & !l == 0)
}

/// Words of a set of `labels` labels.
pub fn set_words(labels: usize) -> usize {
    labels.div_ceil(64)
}

/// What the specification says after a trace.
pub struct Node {
    /// By label of the implementation: a table, or sorted pairs if there are many labels.
    table: Vec<NodeId>,
    pairs: Vec<(Label, NodeId)>,
    /// Minimal acceptances as sets of the implementation's labels; those it can never meet are left out.
    pub acceptances: Vec<LabelSet>,
    pub diverges: bool,
    /// For messages: the events allowed, and the minimal acceptances in full.
    pub allowed: Vec<EventId>,
    pub required: Vec<Vec<EventId>>,
    /// Where every event leads, also those the implementation does not have.
    pub all: Vec<(EventId, NodeId)>,
}

impl Node {
    /// The node after a label; `None` if the label is not allowed.
    #[inline(always)]
    pub fn after(&self, label: Label) -> Option<NodeId> {
        let next = if self.pairs.is_empty() {
            self.table[label as usize]
        } else {
            match self.pairs.binary_search_by_key(&label, |&(l, _)| l) {
                Ok(i) => self.pairs[i].1,
                Err(_) => NOWHERE,
            }
        };
        (next != NOWHERE).then_some(next)
    }
}

/// The transitions of a state, `τ` first.
type Moves = Arc<[(Label, u32)]>;

/// States of the specification met so far, with their transitions.
struct Explored<'m> {
    model: &'m Model,
    numbers: FxHashMap<Box<[u64]>, u32>,
    keys: Vec<Box<[u64]>>,
    transitions: Vec<Option<Moves>>,
    /// About how many bytes all this takes.
    bytes: u64,
}

impl Explored<'_> {
    fn number(&mut self, key: Box<[u64]>) -> u32 {
        if let Some(&n) = self.numbers.get(&key) {
            return n;
        }
        let n = self.keys.len() as u32;
        // The vector twice, its entry in the table with free slots, and its transitions-to-be.
        self.bytes += 2 * (16 + 8 * key.len() as u64) + 96;
        self.keys.push(key.clone());
        self.numbers.insert(key, n);
        self.transitions.push(None);
        n
    }

    fn from(&mut self, state: u32) -> Moves {
        if let Some(known) = &self.transitions[state as usize] {
            return known.clone();
        }
        let list = self.model.successors(&self.keys[state as usize]);
        let mut numbered: Vec<_> =
            list.into_iter().map(|(label, key, _)| (label, self.number(key))).collect();
        numbered.sort_unstable();
        numbered.dedup();
        self.bytes += 16 + 8 * numbered.len() as u64;
        let numbered: Arc<[_]> = numbered.into();
        self.transitions[state as usize] = Some(numbered.clone());
        numbered
    }
}

/// See the module's head.
pub struct NormalForm<'m> {
    states: Explored<'m>,
    /// The states of each node.
    members: Vec<Box<[u32]>>,
    /// What is known of those that were looked into.
    nodes: Vec<Option<Arc<Node>>>,
    numbers: FxHashMap<Box<[u32]>, NodeId>,
    /// The parts of nodes asked for by [`NormalForm::refusing`].
    parts: FxHashMap<(NodeId, LabelSet), Option<NodeId>>,
    /// The implementation's label for each label here.
    translation: Vec<Option<Label>>,
    label_count: usize,
    nodes_max: usize,
    room: Room,
    /// About how many bytes the nodes take.
    bytes: u64,
}

impl<'m> NormalForm<'m> {
    /// The normal form of `spec` against an implementation with the given labels. Node 0 is the initial one.
    pub fn new(
        spec: &'m Model,
        implementation: &[EventId],
        nodes_max: usize,
        room: Room,
    ) -> Result<NormalForm<'m>, CheckError> {
        let number: FxHashMap<EventId, Label> =
            implementation.iter().enumerate().map(|(i, &e)| (e, i as Label)).collect();
        let translation = spec.labels.iter().map(|e| number.get(e).copied()).collect();
        let states = Explored {
            model: spec,
            numbers: FxHashMap::default(),
            keys: Vec::new(),
            transitions: Vec::new(),
            bytes: 0,
        };
        let label_count = implementation.len();
        let mut form = NormalForm {
            states,
            members: Vec::new(),
            nodes: Vec::new(),
            numbers: FxHashMap::default(),
            parts: FxHashMap::default(),
            translation,
            label_count,
            nodes_max,
            room,
            bytes: 0,
        };
        let start = form.states.number(spec.start());
        form.intern(vec![start])?;
        Ok(form)
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> u64 {
        self.states.bytes + self.bytes
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// There is always the initial node.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Looks into nodes until all are known, but gives up beyond `limit` nodes or `members_max` states in them: says
    /// whether all are.
    pub fn complete(&mut self, limit: usize, members_max: usize) -> Result<bool, CheckError> {
        let mut at = 0;
        let mut members = 0;
        while at < self.nodes.len() {
            members += self.members[at].len();
            if self.nodes.len() > limit || members > members_max {
                return Ok(false);
            }
            self.node(at as NodeId)?;
            at += 1;
        }
        Ok(true)
    }

    /// The states of the specification in a node, as packed vectors, least first: a name of the node that does not
    /// depend on the order of discovery.
    pub fn content(&self, node: NodeId) -> Vec<&[u64]> {
        let mut keys: Vec<&[u64]> =
            self.members[node as usize].iter().map(|&s| &self.states.keys[s as usize][..]).collect();
        keys.sort_unstable();
        keys
    }

    fn intern(&mut self, mut set: Vec<u32>) -> Result<NodeId, CheckError> {
        set.sort_unstable();
        set.dedup();
        let mut seen: rustc_hash::FxHashSet<u32> = set.iter().copied().collect();
        let mut at = 0;
        while at < set.len() {
            // The set and the marks of its members.
            self.room.hold(self.nodes.len(), self.bytes() + 24 * set.len() as u64)?;
            for &(label, target) in self.states.from(set[at]).iter() {
                if label != 0 {
                    break;
                }
                if seen.insert(target) {
                    set.push(target);
                }
            }
            at += 1;
        }
        set.sort_unstable();
        let set: Box<[u32]> = set.into();
        if let Some(&known) = self.numbers.get(&set) {
            return Ok(known);
        }
        let id = self.nodes.len() as NodeId;
        self.bytes += 2 * (16 + 4 * set.len() as u64) + 64;
        self.members.push(set.clone());
        self.nodes.push(None);
        self.numbers.insert(set, id);
        Ok(id)
    }

    /// The states of a node that are stable and offer nothing outside of `offers`, as a node; nothing if there is none.
    pub fn refusing(&mut self, id: NodeId, offers: &LabelSet) -> Result<Option<NodeId>, CheckError> {
        let asked = (id, offers.clone());
        if let Some(&known) = self.parts.get(&asked) {
            return Ok(known);
        }
        let mut part = Vec::new();
        for &state in self.members[id as usize].clone().iter() {
            // `τ` is label 0 and `✓` is label 1.
            let within = |&(label, _): &(Label, u32)| {
                label > 1
                    && self.translation[label as usize]
                        .is_some_and(|own| offers[own as usize / 64] & 1 << (own % 64) != 0)
            };
            if self.states.from(state).iter().all(within) {
                part.push(state);
            }
        }
        let found = if part.is_empty() { None } else { Some(self.intern(part)?) };
        self.bytes += 48 + 8 * offers.len() as u64;
        self.parts.insert(asked, found);
        Ok(found)
    }

    /// What is known about a node, computed at the first call.
    pub fn node(&mut self, id: NodeId) -> Result<Arc<Node>, CheckError> {
        if let Some(known) = &self.nodes[id as usize] {
            return Ok(known.clone());
        }
        if self.nodes.len() > self.nodes_max {
            let name = "the normal form of the specification".to_string();
            return Err(CheckError::TooManyStates { name, limit: self.nodes_max });
        }
        let members = self.members[id as usize].clone();
        let mut by_label: FxHashMap<Label, Vec<u32>> = FxHashMap::default();
        let mut offers: Vec<Vec<Label>> = Vec::new();
        for &s in members.iter() {
            let list = self.states.from(s);
            let stable = list.first().is_none_or(|&(l, _)| l > 1);
            let ticks = list.iter().any(|&(l, _)| l == 1);
            for &(label, target) in list.iter().filter(|&&(l, _)| l != 0) {
                by_label.entry(label).or_default().push(target);
            }
            if stable {
                let mut offer: Vec<Label> = list.iter().map(|&(l, _)| l).collect();
                offer.dedup();
                offers.push(offer);
            } else if ticks {
                offers.push(vec![1]);
            }
        }
        let diverges = self.has_tau_loop(&members);
        let mut events: Vec<_> = by_label.into_iter().collect();
        events.sort_unstable_by_key(|&(l, _)| l);
        let mut all = Vec::with_capacity(events.len());
        let mut pairs = Vec::new();
        for (label, targets) in events {
            let next = self.intern(targets)?;
            all.push((self.states.model.event(label), next));
            if let Some(own) = self.translation[label as usize] {
                pairs.push((own, next));
            }
        }
        pairs.sort_unstable();
        let minimal = minimal_sets(offers);
        let mut acceptances = Vec::new();
        'sets: for set in &minimal {
            let mut bits = vec![0u64; set_words(self.label_count)];
            for &label in set {
                let Some(own) = self.translation[label as usize] else { continue 'sets };
                bits[own as usize / 64] |= 1 << (own % 64);
            }
            acceptances.push(bits.into());
        }
        let mut table = Vec::new();
        if self.label_count <= TABLE_LABELS_MAX {
            table = vec![NOWHERE; self.label_count];
            for &(label, next) in &pairs {
                table[label as usize] = next;
            }
            pairs = Vec::new();
        } else if pairs.is_empty() {
            table = vec![NOWHERE; self.label_count];
        }
        let event = |l: &Label| self.states.model.event(*l);
        let node = Arc::new(Node {
            table,
            pairs,
            acceptances,
            diverges,
            allowed: all.iter().map(|&(e, _)| e).collect(),
            required: minimal.iter().map(|set| set.iter().map(event).collect()).collect(),
            all,
        });
        let lists: usize = node.required.iter().map(|set| 24 + 4 * set.len()).sum();
        let sets = node.acceptances.len() * (16 + 8 * set_words(self.label_count));
        let tables = 4 * node.table.len() + 8 * node.pairs.len() + 12 * node.all.len();
        self.bytes += (300 + lists + sets + tables) as u64;
        self.nodes[id as usize] = Some(node.clone());
        Ok(node)
    }

    /// Whether the `τ`-closed set has a `τ` loop: not everything can be taken away in topological order.
    fn has_tau_loop(&mut self, members: &[u32]) -> bool {
        let mut incoming: FxHashMap<u32, u32> = members.iter().map(|&s| (s, 0)).collect();
        for &s in members {
            for &(_, t) in self.states.from(s).iter().take_while(|&&(l, _)| l == 0) {
                *incoming.get_mut(&t).expect("the set is closed under τ") += 1;
            }
        }
        let mut free: Vec<u32> = members.iter().copied().filter(|s| incoming[s] == 0).collect();
        let mut removed = 0;
        while let Some(s) = free.pop() {
            removed += 1;
            for &(_, t) in self.states.from(s).iter().take_while(|&&(l, _)| l == 0) {
                let count = incoming.get_mut(&t).expect("the set is closed under τ");
                *count -= 1;
                if *count == 0 {
                    free.push(t);
                }
            }
        }
        removed < members.len()
    }
}
