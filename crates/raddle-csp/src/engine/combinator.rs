//! The supercombinator made ready to run: leaves, rules and packed vectors.
//!
//! Successors of a vector are found leaf by leaf. Each rule has a *leader* among its parts; under (leader, leader's
//! state) the rules it can lead are listed with the leader's next state already filled in, so the inner loop reads one
//! list a leaf and asks the other parts by one table lookup each. The leader is the part whose event is offered in the
//! smallest share of its leaf's states, so that lists are short and lookups seldom fail. `τ` and visible rules are kept
//! apart because the search wants them at different times.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::layout::{Field, Key, Layout};
use super::machine::Machine;
use super::model::Model;
use super::rules::{LeafId, OMEGA, Rule};
use crate::process::EventId;

/// An event as the combinator numbers them: 0 is `τ`, 1 is `✓`, the rest in the order of [`Combinator::labels`].
pub type Label = u32;
pub const TAU: Label = 0;
pub const TICK: Label = 1;

const NOT_OFFERED: u32 = u32::MAX;
/// In a step table: the rest is an index into the lists of several targets.
const SEVERAL: u32 = 1 << 31;
/// A step table beyond this many entries is replaced by binary search.
const STEP_TABLE_MAX: usize = 1 << 22;

/// A leaf with its place in the vector.
pub struct Leaf {
    pub name: String,
    pub machine: Arc<Machine>,
    /// A controller of a switching operator: a mode, not a process of the user's.
    pub is_controller: bool,
    /// What the machine was made of, if it was a composition: the operand of a compression.
    pub inside: Option<Arc<Model>>,
    pub field: Field,
    steps: Steps,
    taus: Led,
    visibles: Led,
}

/// Next states of a leaf by local event: how the parts that do not lead are asked.
enum Steps {
    /// Indexed by state × local events.
    Table { width: u32, entries: Vec<u32>, several: Vec<Vec<u32>> },
    /// Too large for a table: the machine itself, and the event of each local number.
    Search { events: Vec<EventId> },
}

/// Rules led by a leaf, by its state.
struct Led {
    offsets: Vec<u32>,
    entries: Vec<Entry>,
}

/// A rule as seen from its leader in a given state, for one target of the leader.
#[derive(Clone, Copy)]
struct Entry {
    label: Label,
    target: u32,
    others_start: u32,
    resets_start: u32,
    others_len: u16,
    resets_len: u16,
    rule: u32,
}

/// See the module's head.
pub struct Combinator {
    pub leaves: Vec<Leaf>,
    pub rules: Vec<Rule>,
    /// The event of each label.
    pub labels: Vec<EventId>,
    pub layout: Layout,
    /// Set in the vector of `Ω`, which is otherwise zero.
    terminated: Field,
    /// (leaf, local event) of the parts beside the leader.
    others: Vec<(u32, u32)>,
    resets: Vec<u32>,
    leading_tau: Vec<u32>,
    leading_visible: Vec<u32>,
    /// For partial order reduction: all rules in which a leaf's event occurs.
    local: Vec<FxHashMap<EventId, u32>>,
}

/// A leaf before packing.
#[derive(Clone)]
pub struct LeafSource {
    pub name: String,
    pub machine: Arc<Machine>,
    pub is_controller: bool,
    pub inside: Option<Arc<Model>>,
}

impl Combinator {
    pub fn new(sources: Vec<LeafSource>, mut rules: Vec<Rule>) -> Combinator {
        // `Ω` of the whole is the search's business; the test for it is of no use at the top.
        rules.retain(|r| r.result != OMEGA);
        rules.sort_unstable();
        rules.dedup();
        let mut labels = vec![EventId::TAU, EventId::TICK];
        let mut visible: Vec<EventId> = rules.iter().map(|r| r.result).filter(|e| e.is_visible()).collect();
        visible.sort_unstable();
        visible.dedup();
        labels.extend(visible);
        let label_of = |e: EventId| match e {
            EventId::TAU => TAU,
            EventId::TICK => TICK,
            _ => 2 + labels[2..].binary_search(&e).expect("every result has a label") as Label,
        };

        let mut local: Vec<FxHashMap<EventId, u32>> = vec![FxHashMap::default(); sources.len()];
        for rule in &rules {
            for &(leaf, event) in &rule.parts {
                let map = &mut local[leaf.0 as usize];
                let next = map.len() as u32;
                map.entry(event).or_insert(next);
            }
        }

        let mut layout = Layout::default();
        let can_terminate = rules.iter().any(|r| r.result == EventId::TICK);
        let terminated = layout.field(if can_terminate { 2 } else { 1 });
        let fields: Vec<Field> = sources.iter().map(|s| layout.field(s.machine.len())).collect();

        // How rarely each leaf offers each event, to choose leaders.
        let share: Vec<FxHashMap<EventId, f64>> = sources
            .iter()
            .zip(&local)
            .map(|(s, map)| {
                let mut count: FxHashMap<EventId, usize> = FxHashMap::default();
                for state in s.machine.states() {
                    let mut last = None;
                    for &(e, _) in s.machine.from(state) {
                        if last != Some(e) {
                            *count.entry(e).or_default() += 1;
                        }
                        last = Some(e);
                    }
                }
                map.keys()
                    .map(|&e| {
                        let offering = if e == OMEGA { 1 } else { count.get(&e).copied().unwrap_or(0) };
                        (e, offering as f64 / s.machine.len() as f64)
                    })
                    .collect()
            })
            .collect();

        // Rules by (leader, leader's event).
        let mut led: Vec<FxHashMap<EventId, Vec<u32>>> = vec![FxHashMap::default(); sources.len()];
        let mut others: Vec<(u32, u32)> = Vec::new();
        let mut resets: Vec<u32> = Vec::new();
        let mut heads: Vec<(u32, u32, u16, u16)> = Vec::with_capacity(rules.len());
        for (number, rule) in rules.iter().enumerate() {
            let leader = (0..rule.parts.len())
                .min_by(|&a, &b| {
                    let cost = |i: usize| {
                        let (leaf, e) = rule.parts[i];
                        let controller = if sources[leaf.0 as usize].is_controller { 1.0 } else { 0.0 };
                        controller + share[leaf.0 as usize][&e]
                    };
                    cost(a).total_cmp(&cost(b))
                })
                .expect("a rule has a part");
            let (leaf, event) = rule.parts[leader];
            led[leaf.0 as usize].entry(event).or_default().push(number as u32);
            heads.push((
                others.len() as u32,
                resets.len() as u32,
                (rule.parts.len() - 1) as u16,
                rule.resets.len() as u16,
            ));
            for (i, &(leaf, e)) in rule.parts.iter().enumerate() {
                if i != leader {
                    others.push((leaf.0, local[leaf.0 as usize][&e]));
                }
            }
            resets.extend(rule.resets.iter().map(|l| l.0));
        }

        let mut leaves = Vec::with_capacity(sources.len());
        let (mut leading_tau, mut leading_visible) = (Vec::new(), Vec::new());
        for (i, source) in sources.into_iter().enumerate() {
            let (mut taus, mut visibles) = (Led::new(), Led::new());
            for state in source.machine.states() {
                let omega = source.machine.omega() == Some(state);
                let pseudo = omega.then_some((OMEGA, state));
                for &(event, target) in source.machine.from(state).iter().chain(&pseudo) {
                    for &number in led[i].get(&event).map_or(&[][..], |l| l) {
                        let (others_start, resets_start, others_len, resets_len) = heads[number as usize];
                        let label = label_of(rules[number as usize].result);
                        let list = if label == TAU { &mut taus } else { &mut visibles };
                        let rule = number;
                        list.entries.push(Entry {
                            label,
                            target,
                            others_start,
                            resets_start,
                            others_len,
                            resets_len,
                            rule,
                        });
                    }
                }
                taus.close();
                visibles.close();
            }
            if !taus.entries.is_empty() {
                leading_tau.push(i as u32);
            }
            if !visibles.entries.is_empty() {
                leading_visible.push(i as u32);
            }
            let steps = Steps::of(&source.machine, &local[i]);
            leaves.push(Leaf {
                name: source.name,
                machine: source.machine,
                is_controller: source.is_controller,
                inside: source.inside,
                field: fields[i],
                steps,
                taus,
                visibles,
            });
        }
        Combinator {
            leaves,
            rules,
            labels,
            layout,
            terminated,
            others,
            resets,
            leading_tau,
            leading_visible,
            local,
        }
    }

    /// Whether any rule gives a `τ`.
    pub fn has_tau_rules(&self) -> bool {
        !self.leading_tau.is_empty()
    }

    /// Whether the vector is `Ω`.
    pub fn is_terminated(&self, key: &[u64]) -> bool {
        self.terminated.get(key) != 0
    }

    /// The state of a leaf.
    pub fn state_of(&self, leaf: LeafId, key: &[u64]) -> u32 {
        self.leaves[leaf.0 as usize].field.get(key)
    }

    /// Whether the leaf offers the event in its state in `key`.
    pub fn offers(&self, leaf: LeafId, event: EventId, key: &[u64]) -> bool {
        let l = &self.leaves[leaf.0 as usize];
        l.steps.get(&l.machine, l.field.get(key), self.local[leaf.0 as usize][&event]) != NOT_OFFERED
    }

    /// The number of an event among those of the leaf, for [`Self::offers_numbered`].
    pub fn number_of(&self, leaf: LeafId, event: EventId) -> u32 {
        self.local[leaf.0 as usize][&event]
    }

    /// [`Self::offers`] for an event that is known by its number.
    pub fn offers_numbered(&self, leaf: LeafId, event: u32, key: &[u64]) -> bool {
        let l = &self.leaves[leaf.0 as usize];
        l.steps.get(&l.machine, l.field.get(key), event) != NOT_OFFERED
    }

    /// Calls `emit(label, next, rule)` for every `τ` step of `key` until it answers true; says whether it did.
    ///
    /// Words of the key beyond the combinator's own (the search keeps the specification there) are passed on as they are,
    /// also into `Ω`.
    #[inline]
    pub fn taus<const W: usize>(&self, key: &Key<W>, emit: impl FnMut(Label, &Key<W>, u32) -> bool) -> bool {
        self.fire::<W, true>(key, emit)
    }

    /// The same for the other steps, `✓` included.
    #[inline]
    pub fn visibles<const W: usize>(
        &self,
        key: &Key<W>,
        emit: impl FnMut(Label, &Key<W>, u32) -> bool,
    ) -> bool {
        self.fire::<W, false>(key, emit)
    }

    #[inline(always)]
    fn fire<const W: usize, const TAUS: bool>(
        &self,
        key: &Key<W>,
        mut emit: impl FnMut(Label, &Key<W>, u32) -> bool,
    ) -> bool {
        if self.terminated.mask != 0 && self.is_terminated(key) {
            return false;
        }
        let leading = if TAUS { &self.leading_tau } else { &self.leading_visible };
        for &leader in leading {
            let leaf = &self.leaves[leader as usize];
            let state = leaf.field.get(key) as usize;
            let led = if TAUS { &leaf.taus } else { &leaf.visibles };
            let range = led.offsets[state] as usize..led.offsets[state + 1] as usize;
            'entries: for entry in &led.entries[range] {
                let mut next = *key;
                leaf.field.set(&mut next, entry.target);
                let start = entry.others_start as usize;
                let others = &self.others[start..start + entry.others_len as usize];
                for (done, &(other, local)) in others.iter().enumerate() {
                    let partner = &self.leaves[other as usize];
                    let target = partner.steps.get(&partner.machine, partner.field.get(key), local);
                    if target & SEVERAL != 0 {
                        if target == NOT_OFFERED {
                            continue 'entries;
                        }
                        if self.several(key, &next, entry, &others[done..], &mut emit) {
                            return true;
                        }
                        continue 'entries;
                    }
                    partner.field.set(&mut next, target);
                }
                if self.finish(entry, &mut next, &mut emit) {
                    return true;
                }
            }
        }
        false
    }

    #[inline(always)]
    fn finish<const W: usize>(
        &self,
        entry: &Entry,
        next: &mut Key<W>,
        emit: &mut impl FnMut(Label, &Key<W>, u32) -> bool,
    ) -> bool {
        if entry.resets_len != 0 {
            let start = entry.resets_start as usize;
            for &leaf in &self.resets[start..start + entry.resets_len as usize] {
                self.leaves[leaf as usize].field.set(next, 0);
            }
        }
        if entry.label == TICK {
            for leaf in &self.leaves {
                leaf.field.set(next, 0);
            }
            self.terminated.set(next, 1);
        }
        emit(entry.label, next, entry.rule)
    }

    /// The slow path: some part has several next states for its event.
    fn several<const W: usize>(
        &self,
        key: &Key<W>,
        next: &Key<W>,
        entry: &Entry,
        rest: &[(u32, u32)],
        emit: &mut impl FnMut(Label, &Key<W>, u32) -> bool,
    ) -> bool {
        let mut partial = vec![*next];
        for &(other, local) in rest {
            let partner = &self.leaves[other as usize];
            let targets = partner.steps.all(&partner.machine, partner.field.get(key), local);
            let mut grown = Vec::with_capacity(partial.len() * targets.len());
            for base in &partial {
                for &target in &targets {
                    let mut next = *base;
                    partner.field.set(&mut next, target);
                    grown.push(next);
                }
            }
            partial = grown;
        }
        partial.iter_mut().any(|next| self.finish(entry, next, emit))
    }
}

impl Led {
    fn new() -> Led {
        Led { offsets: vec![0], entries: Vec::new() }
    }

    fn close(&mut self) {
        self.offsets.push(u32::try_from(self.entries.len()).expect("fewer than 2^32 led rules"));
    }
}

impl Steps {
    fn of(machine: &Machine, local: &FxHashMap<EventId, u32>) -> Steps {
        let width = local.len();
        let mut events = vec![EventId::TAU; width];
        for (&e, &l) in local {
            events[l as usize] = e;
        }
        if machine.len().saturating_mul(width) > STEP_TABLE_MAX {
            return Steps::Search { events };
        }
        let mut entries = vec![NOT_OFFERED; machine.len() * width];
        let mut several: Vec<Vec<u32>> = Vec::new();
        for state in machine.states() {
            let pseudo = (machine.omega() == Some(state)).then_some((OMEGA, state));
            for &(e, target) in machine.from(state).iter().chain(&pseudo) {
                let Some(&l) = local.get(&e) else { continue };
                let entry = &mut entries[state as usize * width + l as usize];
                if *entry == NOT_OFFERED {
                    *entry = target;
                } else if *entry & SEVERAL == 0 {
                    several.push(vec![*entry, target]);
                    *entry = SEVERAL | (several.len() - 1) as u32;
                } else {
                    several[(*entry & !SEVERAL) as usize].push(target);
                }
            }
        }
        Steps::Table { width: width as u32, entries, several }
    }

    /// The next state, or [`NOT_OFFERED`], or something else with the bit [`SEVERAL`].
    #[inline(always)]
    fn get(&self, machine: &Machine, state: u32, local: u32) -> u32 {
        match self {
            Steps::Table { width, entries, .. } => entries[(state * width + local) as usize],
            Steps::Search { .. } => match self.all(machine, state, local)[..] {
                [] => NOT_OFFERED,
                [only] => only,
                _ => SEVERAL,
            },
        }
    }

    fn all(&self, machine: &Machine, state: u32, local: u32) -> Vec<u32> {
        match self {
            Steps::Table { width, entries, several } => match entries[(state * width + local) as usize] {
                NOT_OFFERED => Vec::new(),
                entry if entry & SEVERAL != 0 => several[(entry & !SEVERAL) as usize].clone(),
                entry => vec![entry],
            },
            Steps::Search { events } => match events[local as usize] {
                OMEGA => (machine.omega() == Some(state)).then_some(state).into_iter().collect(),
                event => machine.after(state, event).iter().map(|&(_, t)| t).collect(),
            },
        }
    }
}
