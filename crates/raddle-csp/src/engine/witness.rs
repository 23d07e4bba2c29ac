//! From a faulty pair back to the start: the path of a counterexample.
//!
//! The search stores no parents. A pair of layer `i` of a ply (`i > 0`) has a `τ` predecessor in layer `i - 1`; a pair of
//! the first layer has a visible predecessor somewhere in the ply before. So the earlier layers are expanded once more,
//! backwards, and the least predecessor is taken each time, which makes the path the same in every run.

use super::combinator::{Label, TAU};
use super::layout::Key;
use super::model::Emit;
use super::normal::LabelSet;
use super::refusals::{self, Allowed};
use super::search::{PROBED, Search, Violation};
use super::verdict::CheckError;

/// A step of the search: label, rule, and the pair it leads to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Taken<const W: usize> {
    pub label: Label,
    pub rule: u32,
    pub to: Key<W>,
}

/// The steps from the initial pair to the faulty one.
pub fn path<const W: usize>(
    search: &Search<'_, W>,
    violation: &Violation<W>,
) -> Result<Vec<Taken<W>>, CheckError> {
    if violation.layer == PROBED
        && let Some(steps) = &search.probed
    {
        return Ok(steps.clone());
    }
    let mut steps: Vec<Taken<W>> = Vec::new();
    let mut at = violation.clone();
    let mut ply =
        search.plies.iter().position(|p| (p.first..p.end).contains(&at.layer)).expect("a layer has a ply");
    loop {
        let span = search.plies[ply];
        let (candidates, taus) = if at.layer > span.first {
            (at.layer - 1..at.layer, true)
        } else if ply > 0 {
            ply -= 1;
            (search.plies[ply].first..search.plies[ply].end, false)
        } else {
            break;
        };
        let (from, label, rule) =
            predecessor(search, &at.key, candidates, taus)?.expect("a pair was reached from an earlier one");
        steps.push(Taken { label, rule, to: at.key });
        at = from;
    }
    steps.reverse();
    Ok(steps)
}

/// The refusals on a path that decide where the specification is at its end.
pub fn refusals_on<const W: usize>(
    search: &Search<'_, W>,
    path: &[Taken<W>],
) -> Result<Vec<(usize, LabelSet)>, CheckError> {
    let Some(kind) = search.claims.after_refusal else { return Ok(Vec::new()) };
    let mut seen = Vec::new();
    let mut from = search.model.initial();
    let mut position = 0;
    for step in path {
        if step.label != TAU {
            let look = refusals::look(search, &from, kind)?;
            if look.narrows(step.label) {
                seen.push((position, look.offers));
            }
            position += 1;
        }
        from = step.to;
    }
    Ok(seen)
}

/// The least predecessor among the layers. Layers with fewer `τ`s come first.
fn predecessor<const W: usize>(
    search: &Search<'_, W>,
    target: &Key<W>,
    layers: std::ops::Range<usize>,
    taus: bool,
) -> Result<Option<(Violation<W>, Label, u32)>, CheckError> {
    let mut keys = Vec::new();
    for layer in layers {
        let mut best: Option<(Key<W>, Label, u32)> = None;
        for (part, range) in search.layers[layer].ranges.iter().enumerate() {
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start + 8192);
                search.disk(search.store.read(part, start..end, &mut keys))?;
                start = end;
                for key in &keys {
                    if best.as_ref().is_some_and(|(least, ..)| search.compare(least, key).is_lt()) {
                        continue;
                    }
                    if let Some((label, rule)) = leads_to(search, key, target, taus)? {
                        best = Some((*key, label, rule));
                    }
                }
            }
        }
        if let Some((key, label, rule)) = best {
            return Ok(Some((Violation { key, layer }, label, rule)));
        }
    }
    Ok(None)
}

/// The least (label, rule) that takes `key` to `target`.
pub fn leads_to<const W: usize>(
    search: &Search<'_, W>,
    key: &Key<W>,
    target: &Key<W>,
    taus: bool,
) -> Result<Option<(Label, u32)>, CheckError> {
    let mut found: Option<(Label, u32)> = None;
    let mut keep = |label, rule| found = Some(found.map_or((label, rule), |f| f.min((label, rule))));
    if taus {
        let mut compare = |label: Label, next: &Key<W>, rule: u32| {
            if next == target {
                keep(label, rule);
            }
            false
        };
        search.taus(key, &mut compare as Emit<'_, W>);
        return Ok(found);
    }
    // Most keys do not lead to the target whatever the node; look at the node only for those that might.
    let mut stripped = *target;
    search.node_field.set(&mut stripped, search.node_field.get(key));
    let mut possible: Vec<(Label, u32)> = Vec::new();
    let mut compare = |label: Label, next: &Key<W>, rule: u32| {
        if *next == stripped {
            possible.push((label, rule));
        }
        false
    };
    search.visibles(key, &mut compare as Emit<'_, W>);
    if possible.is_empty() {
        return Ok(None);
    }
    if let Some(kind) = search.claims.after_refusal {
        let look = refusals::look(search, key, kind)?;
        for (label, rule) in possible {
            if matches!(look.after(label), Allowed::To(after) if after == search.node_field.get(target)) {
                keep(label, rule);
            }
        }
        return Ok(found);
    }
    let node = search.node_of(key)?;
    for (label, rule) in possible {
        let after = match &node {
            None => Some(search.node_field.get(target)),
            Some(node) => node.after(label),
        };
        if after == Some(search.node_field.get(target)) {
            keep(label, rule);
        }
    }
    Ok(found)
}

/// A shortest `τ` loop through `key`.
pub fn cycle<const W: usize>(search: &Search<'_, W>, key: &Key<W>) -> Vec<Taken<W>> {
    let mut parents: rustc_hash::FxHashMap<Key<W>, (Key<W>, u32)> = rustc_hash::FxHashMap::default();
    let mut queue = std::collections::VecDeque::from([*key]);
    while let Some(at) = queue.pop_front() {
        let mut closed = None;
        let mut visit = |_: Label, next: &Key<W>, rule: u32| {
            if next == key {
                closed = Some(rule);
                return true;
            }
            if !parents.contains_key(next) {
                parents.insert(*next, (at, rule));
                queue.push_back(*next);
            }
            false
        };
        search.taus(&at, &mut visit as Emit<'_, W>);
        if let Some(rule) = closed {
            let mut steps = vec![Taken { label: TAU, rule, to: *key }];
            let mut back = at;
            while back != *key {
                let (parent, rule) = parents[&back];
                steps.push(Taken { label: TAU, rule, to: back });
                back = parent;
            }
            steps.reverse();
            return steps;
        }
    }
    Vec::new()
}
