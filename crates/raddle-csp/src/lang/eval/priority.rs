//! `prioritisepo(P, E, O, M)`: priority by a partial order of events.
//!
//! `O` holds pairs (above, below). `τ` and `✓` are above all events of `E` that are not in `M`; the order is the
//! transitive closure of all that. An event is stopped where the process can do something above it. Events outside `E`
//! have no place in the order. As in FDR it is an error if the order has a loop, if something is above an event of `M`,
//! or if `O` or `M` mention an event that is not in `E`.

use super::value::{Set, Value};
use super::{Evaluator, Fault, Result};
use crate::lang::source::Span;
use crate::process::{EventId, ProcId};

impl Evaluator {
    pub(super) fn prioritised_by_order(
        &mut self,
        p: ProcId,
        among: &Set,
        order: &Set,
        first: &Set,
        span: Span,
    ) -> Result<ProcId> {
        let among = self.events_listed(among, span)?;
        let first = self.events_listed(first, span)?;
        let mut above = Vec::new();
        for (a, b) in self.pairs(order, span)? {
            above.push((self.event(&a, span)?, self.event(&b, span)?));
        }
        let mentioned = above.iter().flat_map(|&(a, b)| [a, b]).chain(first.iter().copied());
        for event in mentioned {
            if !among.contains(&event) {
                let name = self.arena.events.name(event).to_string();
                return Err(Fault::new(span, format!("`prioritisepo` does not order `{name}`"))
                    .note("the second argument has to hold all events of the third and the fourth"));
            }
        }
        let below = among.iter().filter(|e| !first.contains(e));
        above.extend(below.flat_map(|&e| [(EventId::TAU, e), (EventId::TICK, e)]));
        let closed = closure(above);
        if let Some(&(event, _)) = closed.iter().find(|(a, b)| a == b) {
            let name = self.arena.events.name(event).to_string();
            return Err(Fault::new(span, format!("`prioritisepo` sets `{name}` above itself"))
                .note("the order has a loop"));
        }
        if let Some(&(a, b)) = closed.iter().find(|(_, b)| first.contains(b)) {
            let (a, b) = (self.arena.events.name(a).to_string(), self.arena.events.name(b).to_string());
            return Err(Fault::new(
                span,
                format!("`{b}` is to be as high as hidden events, but `{a}` is above it"),
            )
            .note("take it out of the fourth argument of `prioritisepo`, or out of the order"));
        }
        Ok(self.arena.prioritise_order(p, closed))
    }

    fn events_listed(&mut self, set: &Set, span: Span) -> Result<Vec<EventId>> {
        let listed = self.listed(set, span)?;
        listed.items.iter().map(|value: &Value| self.event(value, span)).collect()
    }
}

/// The transitive closure, sorted.
fn closure(pairs: Vec<(EventId, EventId)>) -> Vec<(EventId, EventId)> {
    let mut next: std::collections::BTreeMap<EventId, Vec<EventId>> = Default::default();
    for &(a, b) in &pairs {
        next.entry(a).or_default().push(b);
    }
    let mut out = Vec::new();
    for &start in next.keys() {
        let mut seen = std::collections::BTreeSet::new();
        let mut todo = next[&start].clone();
        while let Some(at) = todo.pop() {
            if seen.insert(at) {
                todo.extend(next.get(&at).into_iter().flatten());
            }
        }
        out.extend(seen.into_iter().map(|b| (start, b)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Warshall's algorithm.
    fn naive(pairs: &[(EventId, EventId)], n: u32) -> Vec<(EventId, EventId)> {
        let mut related = vec![vec![false; n as usize]; n as usize];
        for &(a, b) in pairs {
            related[a.0 as usize][b.0 as usize] = true;
        }
        for k in 0..n as usize {
            for i in 0..n as usize {
                for j in 0..n as usize {
                    related[i][j] |= related[i][k] && related[k][j];
                }
            }
        }
        let all = (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
        all.filter(|&(a, b)| related[a as usize][b as usize]).map(|(a, b)| (EventId(a), EventId(b))).collect()
    }

    #[test]
    fn the_closure_is_that_of_the_textbook() {
        let mut random = crate::semantics::random::Random::new(5);
        for case in 0..500 {
            let n = 1 + random.below(7) as u32;
            let pairs: Vec<(EventId, EventId)> = (0..random.below(9))
                .map(|_| (EventId(random.below(n as usize) as u32), EventId(random.below(n as usize) as u32)))
                .collect();
            assert_eq!(closure(pairs.clone()), naive(&pairs, n), "case {case}: {pairs:?}");
        }
    }
}
