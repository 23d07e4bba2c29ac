//! Dependency order: Tarjan's strongly connected components over "uses the name of".

use rustc_hash::FxHashMap;

use crate::lang::ast::DeclId;

struct Search<'a> {
    uses: &'a FxHashMap<DeclId, Vec<DeclId>>,
    members: FxHashMap<DeclId, usize>,
    index: Vec<Option<u32>>,
    low: Vec<u32>,
    on_stack: Vec<bool>,
    stack: Vec<DeclId>,
    next: u32,
    components: Vec<Vec<DeclId>>,
}

/// Groups declarations so that every group only uses itself and groups before it.
pub fn components(decls: &[DeclId], uses: &FxHashMap<DeclId, Vec<DeclId>>) -> Vec<Vec<DeclId>> {
    let members = decls.iter().enumerate().map(|(i, &d)| (d, i)).collect();
    let n = decls.len();
    let mut search = Search {
        uses,
        members,
        index: vec![None; n],
        low: vec![0; n],
        on_stack: vec![false; n],
        stack: Vec::new(),
        next: 0,
        components: Vec::new(),
    };
    for &decl in decls {
        search.visit(decl);
    }
    search.components
}

impl Search<'_> {
    fn visit(&mut self, decl: DeclId) -> Option<usize> {
        let at = *self.members.get(&decl)?;
        if self.index[at].is_none() {
            stacker::maybe_grow(32 << 10, 1 << 20, || self.connect(decl, at));
        }
        Some(at)
    }

    fn connect(&mut self, decl: DeclId, at: usize) {
        self.index[at] = Some(self.next);
        self.low[at] = self.next;
        self.next += 1;
        self.stack.push(decl);
        self.on_stack[at] = true;
        let uses = self.uses;
        for &used in uses.get(&decl).map_or(&[][..], |u| &u[..]) {
            let known = self.members.get(&used).is_some_and(|&m| self.index[m].is_some());
            let Some(other) = self.visit(used) else { continue };
            if !known {
                self.low[at] = self.low[at].min(self.low[other]);
            } else if self.on_stack[other] {
                self.low[at] = self.low[at].min(self.index[other].unwrap_or(u32::MAX));
            }
        }
        if Some(self.low[at]) == self.index[at] {
            let mut component = Vec::new();
            while let Some(top) = self.stack.pop() {
                if let Some(&m) = self.members.get(&top) {
                    self.on_stack[m] = false;
                }
                component.push(top);
                if top == decl {
                    break;
                }
            }
            component.reverse();
            self.components.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The naive twin: two declarations belong together when each reaches the other.
    fn reaches(uses: &FxHashMap<DeclId, Vec<DeclId>>, from: DeclId, to: DeclId) -> bool {
        let (mut seen, mut todo) = (vec![from], vec![from]);
        while let Some(d) = todo.pop() {
            for &next in uses.get(&d).into_iter().flatten() {
                if next == to {
                    return true;
                }
                if !seen.contains(&next) {
                    seen.push(next);
                    todo.push(next);
                }
            }
        }
        false
    }

    #[test]
    fn agrees_with_reachability_on_random_graphs() {
        let mut seed = 1u64;
        let mut random = move |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for round in 0..500 {
            let n = 1 + random(8) as u32;
            let decls: Vec<DeclId> = (0..n).map(DeclId).collect();
            let mut uses: FxHashMap<DeclId, Vec<DeclId>> = FxHashMap::default();
            for _ in 0..random(2 * u64::from(n) + 1) {
                let (a, b) = (random(n.into()) as u32, random(n.into()) as u32);
                uses.entry(DeclId(a)).or_default().push(DeclId(b));
            }
            let found = components(&decls, &uses);
            let place: FxHashMap<DeclId, usize> =
                found.iter().enumerate().flat_map(|(i, c)| c.iter().map(move |&d| (d, i))).collect();
            assert_eq!(place.len(), n as usize, "round {round}");
            for &a in &decls {
                for &b in &decls {
                    let together = a == b || (reaches(&uses, a, b) && reaches(&uses, b, a));
                    assert_eq!(place[&a] == place[&b], together, "round {round}: {uses:?}");
                    if reaches(&uses, a, b) {
                        assert!(place[&b] <= place[&a], "round {round}: {uses:?}");
                    }
                }
            }
        }
    }
}
