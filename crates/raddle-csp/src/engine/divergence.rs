//! Divergence on the fly: `τ` loops within a ply.
//!
//! All states of a `τ` loop are reached by the same traces, so they lie in the same ply: it is enough to look at each
//! ply by itself, right after its `τ` closure is complete. The loops are the non-trivial strongly connected components
//! of the ply's `τ` graph (Tarjan 1972, iterative). The least pair on any loop is reported, so the answer does not
//! depend on the order in which pairs were found.
//!
//! Most models need none of this. A global loop leads every leaf that moves round a local loop, so rules are struck out
//! as long as some part of theirs lies on no local loop made of `τ` rules; if none is left, nothing can diverge.

use rustc_hash::FxHashMap;

use super::combinator::Label;
use super::layout::Key;
use super::machine::Machine;
use super::model::{Emit, Model};
use super::rules::OMEGA;
use super::search::{Ply, Search, Specification, Violation, lock};
use super::verdict::CheckError;
use crate::process::EventId;

/// Whether the rules admit a `τ` loop at all. False is certain, true is not.
pub fn possible(model: &Model) -> bool {
    if !model.outer.is_empty() {
        return true;
    }
    let combinator = &model.combinator;
    let mut rules: Vec<usize> = (0..combinator.rules.len())
        .filter(|&r| combinator.rules[r].result == EventId::TAU && combinator.rules[r].resets.is_empty())
        .collect();
    loop {
        let mut used: Vec<Vec<EventId>> = vec![Vec::new(); combinator.leaves.len()];
        for &r in &rules {
            for &(leaf, event) in &combinator.rules[r].parts {
                used[leaf.0 as usize].push(event);
            }
        }
        let looping: Vec<Vec<EventId>> = used
            .into_iter()
            .zip(&combinator.leaves)
            .map(|(mut events, leaf)| {
                events.sort_unstable();
                events.dedup();
                events_on_loops(&leaf.machine, &events)
            })
            .collect();
        let before = rules.len();
        rules.retain(|&r| {
            combinator.rules[r].parts.iter().all(|(l, e)| looping[l.0 as usize].binary_search(e).is_ok())
        });
        if rules.is_empty() {
            return false;
        }
        if rules.len() == before {
            return true;
        }
    }
}

/// Those of the sorted `events` that label a transition on a loop of the machine restricted to them.
fn events_on_loops(machine: &Machine, events: &[EventId]) -> Vec<EventId> {
    if events.is_empty() {
        return Vec::new();
    }
    // `OMEGA` changes nothing: a loop by itself.
    let mut found: Vec<EventId> = events.iter().copied().filter(|&e| e == OMEGA).collect();
    let edges = |s: u32| machine.from(s).iter().filter(|(e, _)| events.binary_search(e).is_ok());
    let lists: Vec<Vec<(EventId, u32)>> =
        machine.states().map(|s| edges(s).map(|&(_, t)| (EventId::TAU, t)).collect()).collect();
    let (component, _) = super::compress::tau_components(&Machine::numbered(lists));
    for s in machine.states() {
        for &(e, t) in edges(s) {
            if component[s as usize] == component[t as usize] {
                found.push(e);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Numbers the pairs of a ply from 0.
enum Numbering<const W: usize> {
    /// From positions in the store: range of each part, and the number of its first pair.
    Positions(Vec<(std::ops::Range<usize>, usize)>),
    /// Spilled: a table of its own.
    Table(FxHashMap<Key<W>, u32>),
}

/// The least pair on a `τ` loop in the ply, if there is one.
pub fn find<const W: usize>(search: &Search<'_, W>, ply: Ply) -> Result<Option<Violation<W>>, CheckError> {
    // The layers of a ply follow each other in every part; a part may have nothing of some, as when the search went to
    // disk in between.
    let parts = search.layers[ply.first].ranges.len();
    let ranges: Vec<std::ops::Range<usize>> = (0..parts)
        .map(|part| {
            let layers = &search.layers[ply.first..ply.end];
            let mut filled = layers.iter().map(|layer| &layer.ranges[part]).filter(|range| !range.is_empty());
            let first = filled.next().cloned().unwrap_or(0..0);
            filled.fold(first, |whole, next| whole.start..next.end)
        })
        .collect();
    let total: usize = ranges.iter().map(|r| r.len()).sum();
    let numbering = if search.store.is_spilled() {
        let mut table = FxHashMap::default();
        let mut keys = Vec::new();
        for (part, range) in ranges.iter().enumerate() {
            search.disk(search.store.read(part, range.clone(), &mut keys))?;
            for key in &keys {
                let next = table.len() as u32;
                table.insert(*key, next);
            }
        }
        Numbering::Table(table)
    } else {
        let mut before = 0;
        let starts = ranges.iter().map(|range| {
            let start = before;
            before += range.len();
            (range.clone(), start)
        });
        Numbering::Positions(starts.collect())
    };
    let number = |key: &Key<W>| -> Option<usize> {
        match &numbering {
            Numbering::Table(table) => table.get(key).map(|&n| n as usize),
            Numbering::Positions(starts) => {
                let (part, position) = search.store.find(key)?;
                let (range, start) = &starts[part];
                range.contains(&position).then(|| start + (position - range.start))
            }
        }
    };
    let exempt = |key: &Key<W>| -> Result<bool, CheckError> {
        match search.specification {
            Specification::Anything => Ok(false),
            Specification::Normal(form) => Ok(lock(form).node(search.node_field.get(key))?.diverges),
        }
    };
    let mut tarjan = Tarjan::new(total);
    let mut keys = Vec::new();
    for (part, range) in ranges.iter().enumerate() {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + 4096);
            search.disk(search.store.read(part, start..end, &mut keys))?;
            start = end;
            for key in &keys {
                let n = number(key).expect("a pair of the ply has a number");
                if tarjan.is_new(n) && !exempt(key)? {
                    tarjan.visit(search, *key, n, &number);
                }
            }
        }
    }
    let Some(key) = tarjan.least else { return Ok(None) };
    let layer = layer_of(search, ply, &key)?;
    Ok(Some(Violation { key, layer }))
}

fn layer_of<const W: usize>(search: &Search<'_, W>, ply: Ply, key: &Key<W>) -> Result<usize, CheckError> {
    let mut keys = Vec::new();
    for layer in ply.first..ply.end {
        for (part, range) in search.layers[layer].ranges.iter().enumerate() {
            search.disk(search.store.read(part, range.clone(), &mut keys))?;
            if keys.contains(key) {
                return Ok(layer);
            }
        }
    }
    unreachable!("the pair was found in this ply")
}

struct Tarjan<const W: usize> {
    /// 0: not seen; else index + 1.
    index: Vec<u32>,
    low: Vec<u32>,
    done: Vec<bool>,
    stack: Vec<(usize, Key<W>)>,
    next: u32,
    least: Option<Key<W>>,
}

impl<const W: usize> Tarjan<W> {
    fn new(states: usize) -> Tarjan<W> {
        Tarjan {
            index: vec![0; states],
            low: vec![0; states],
            done: vec![false; states],
            stack: Vec::new(),
            next: 1,
            least: None,
        }
    }

    fn is_new(&self, n: usize) -> bool {
        self.index[n] == 0
    }

    fn keep_least(&mut self, search: &Search<'_, W>, key: Key<W>) {
        if self.least.is_none_or(|least| search.compare(&key, &least).is_lt()) {
            self.least = Some(key);
        }
    }

    fn visit(
        &mut self,
        search: &Search<'_, W>,
        root: Key<W>,
        n: usize,
        number: &impl Fn(&Key<W>) -> Option<usize>,
    ) {
        struct Frame<const W: usize> {
            n: usize,
            targets: Vec<(usize, Key<W>)>,
            at: usize,
        }
        let mut frames: Vec<Frame<W>> = Vec::new();
        let enter = |tarjan: &mut Tarjan<W>, key: Key<W>, n: usize, frames: &mut Vec<Frame<W>>| {
            tarjan.index[n] = tarjan.next;
            tarjan.low[n] = tarjan.next;
            tarjan.next += 1;
            tarjan.stack.push((n, key));
            let mut targets = Vec::new();
            let mut keep = |_: Label, next: &Key<W>, _: u32| {
                // Pairs of earlier plies lie on no loop of this one.
                targets.extend(number(next).map(|t| (t, *next)));
                false
            };
            search.taus(&key, &mut keep as Emit<'_, W>);
            if targets.iter().any(|&(t, _)| t == n) {
                tarjan.keep_least(search, key);
            }
            frames.push(Frame { n, targets, at: 0 });
        };
        enter(self, root, n, &mut frames);
        while let Some(frame) = frames.last_mut() {
            let n = frame.n;
            if let Some(&(t, key)) = frame.targets.get(frame.at) {
                frame.at += 1;
                if self.index[t] == 0 {
                    enter(self, key, t, &mut frames);
                } else if !self.done[t] {
                    self.low[n] = self.low[n].min(self.index[t]);
                }
                continue;
            }
            frames.pop();
            if let Some(parent) = frames.last() {
                self.low[parent.n] = self.low[parent.n].min(self.low[n]);
            }
            if self.low[n] == self.index[n] {
                let start = self.stack.iter().rposition(|&(m, _)| m == n).expect("a root is on the stack");
                let members = self.stack.split_off(start);
                if members.len() > 1 {
                    members.iter().for_each(|&(_, key)| self.keep_least(search, key));
                }
                for (m, _) in members {
                    self.done[m] = true;
                }
            }
        }
    }
}
