//! The analyses of §4, as the paper has them, on the graph that its machine builds.
//!
//! *May-happen-in-parallel*, read/write and write/write conflicts, the filter of harmless `cas` conflicts between two
//! threads, unretried `cas`, and deadlocks in the form for `cas` and the form for locks. Their unsoundness is the
//! paper's as well: equal contexts count as one thread, and a `cas` deadlock is seen only where the swap can certainly
//! not succeed. The better default is in [`crate::analyze`].
//!
//! Where the text leaves a choice:
//! * an access counts when it is performed, not when the evaluation of its form begins; for the atomic operands of the
//!   paper's language this is the same moment;
//! * a `cas` that certainly fails writes nothing, so it conflicts with nothing (pcounter-mutex needs this);
//! * findings are counted as program points, not states: a conflict is a pair of expressions and an address, a deadlock
//!   of `cas` a thread and its `cas`, a deadlock of locks the set of places at which threads wait. The paper's two
//!   false positives in `deadlock` (table 5) are not repetitions, as it suspects: with `k = 0` both threads share the
//!   continuations of the procedures that take the locks, so each of them seems to spin at either lock;
//! * which of the two deadlock analyses applies is decided by the language: a program with `cas` and without `acquire` is
//!   analysed as §4.3.1 says, any other as §4.3.2 says, one with both by both;
//! * several unretried `cas` on one address are one race, and a `cas` that already takes part in a reported conflict is
//!   not reported again.

use crate::abs::explore::{Graph, StateId};
use crate::abs::space::{AddrId, MAIN, Space, TidId};
use crate::graph::components;
use crate::limits::Clock;
use crate::machine::access::{Action, SitePair};
use crate::syntax::core::{Expr, ExprId, Program};
use crate::syntax::prim::Touch;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    pub sites: SitePair,
    pub actions: (Action, Action),
    pub addr: AddrId,
    pub tids: (TidId, TidId),
}

#[derive(Clone, Debug)]
pub struct Verdicts {
    /// Pairs of expressions that may happen in parallel.
    pub parallel: BTreeSet<SitePair>,
    /// Unfiltered conflicts and a state that shows each.
    pub conflicts: BTreeMap<Conflict, StateId>,
    /// What the filter of harmless conflicts left.
    pub races: BTreeMap<Conflict, StateId>,
    /// Failed and never retried, by address.
    pub unretried: BTreeMap<AddrId, BTreeMap<ExprId, (TidId, StateId)>>,
    /// A thread and the `cas` at which it spins for ever.
    pub spinning: BTreeMap<(TidId, ExprId), StateId>,
    /// Places at which all threads wait.
    pub stuck: BTreeMap<Vec<(TidId, ExprId)>, StateId>,
    /// The clock ran out before all states were looked at.
    pub incomplete: Option<String>,
}

impl Verdicts {
    /// Distinct races, as tables 3 and 4 count them.
    pub fn races_found(&self) -> usize {
        let pairs: BTreeSet<(SitePair, AddrId)> = self.races.keys().map(|c| (c.sites, c.addr)).collect();
        let reported: BTreeSet<ExprId> = pairs.iter().flat_map(|(sites, _)| [sites.0, sites.1]).collect();
        let unretried =
            self.unretried.values().filter(|sites| !sites.keys().any(|site| reported.contains(site)));
        pairs.len() + unretried.count()
    }

    /// Distinct deadlocks, as tables 5 and 6 count them.
    pub fn deadlocks_found(&self) -> usize {
        self.spinning.len() + self.stuck.len()
    }
}

pub fn analyze(space: &mut Space, graph: &Graph, clock: &Clock) -> Verdicts {
    let mut verdicts = Verdicts {
        parallel: BTreeSet::new(),
        conflicts: BTreeMap::new(),
        races: BTreeMap::new(),
        unretried: BTreeMap::new(),
        spinning: BTreeMap::new(),
        stuck: BTreeMap::new(),
        incomplete: None,
    };
    let next = graph.successors();
    // §4.3.1 is the analysis of a language with `cas`, §4.3.2 that of the language that has locks instead.
    let locks = uses(space.program, Action::Acquire) || !uses(space.program, Action::CasSucceeds);
    for id in graph.ids() {
        if clock.is_over() {
            verdicts.incomplete = Some(clock.reason());
            break;
        }
        let standing = graph.standing(space, id);
        for (i, a) in standing.iter().enumerate() {
            for b in &standing[i + 1..] {
                // The two contexts differ: they are different elements of the thread map.
                verdicts.parallel.insert(SitePair::new(space.site(a.ctx), space.site(b.ctx)));
                for x in &a.ops {
                    for y in &b.ops {
                        if x.addr != y.addr || !x.action.conflicts_with(y.action) {
                            continue;
                        }
                        let (x, y) = if x.site <= y.site { (x, y) } else { (y, x) };
                        let conflict = Conflict {
                            sites: SitePair::new(x.site, y.site),
                            actions: (x.action.min(y.action), x.action.max(y.action)),
                            addr: x.addr,
                            tids: (a.tid.min(b.tid), a.tid.max(b.tid)),
                        };
                        verdicts.conflicts.entry(conflict).or_insert(id);
                    }
                }
            }
        }
        if !locks || standing.iter().all(|s| s.tid != MAIN) {
            continue;
        }
        let waits = |action| matches!(action, Action::Acquire | Action::Join);
        let all_wait = standing.iter().all(|s| !s.ops.is_empty() && s.ops.iter().all(|op| waits(op.action)));
        if next[id.index()].is_empty() && !standing.is_empty() && all_wait {
            let places = standing.iter().map(|s| (s.tid, s.ops[0].site)).collect();
            verdicts.stuck.entry(places).or_insert(id);
        }
    }
    verdicts.races = without_harmless(&verdicts.conflicts);
    unretried(graph, &mut verdicts, clock);
    spinning(space, graph, &next, &mut verdicts, clock);
    verdicts
}

/// Whether the program has an expression that takes a lock, or one that swaps.
fn uses(program: &Program, what: Action) -> bool {
    program.exprs.iter().any(|expr| match expr {
        Expr::CasVar(..) => what == Action::CasSucceeds,
        Expr::PrimCall(prim, _) => {
            what == Action::CasSucceeds && matches!(prim.touch(), Touch::CasRef | Touch::CasVector)
        }
        Expr::AcquireVar(_) | Expr::Acquire(_) => what == Action::Acquire,
        _ => false,
    })
}

/// §4.2.1, *Filtering Harmless Conflicts*: for an address and two threads, one read/cas conflict and one cas/cas conflict,
/// or only the latter, and no other conflict on that address.
fn without_harmless(conflicts: &BTreeMap<Conflict, StateId>) -> BTreeMap<Conflict, StateId> {
    let mut by_addr: BTreeMap<AddrId, Vec<Conflict>> = BTreeMap::new();
    conflicts.keys().for_each(|c| by_addr.entry(c.addr).or_default().push(*c));
    let harmless = |all: &[Conflict]| {
        let tids: BTreeSet<(TidId, TidId)> = all.iter().map(|c| c.tids).collect();
        let pairs: BTreeSet<(SitePair, bool)> =
            all.iter().map(|c| (c.sites, c.actions == (Action::CasSucceeds, Action::CasSucceeds))).collect();
        let only_cas = all.iter().all(|c| {
            matches!(
                c.actions,
                (Action::CasSucceeds, Action::CasSucceeds) | (Action::Read, Action::CasSucceeds)
            )
        });
        let swaps = pairs.iter().filter(|pair| pair.1).count();
        tids.len() == 1 && only_cas && swaps == 1 && pairs.len() - swaps <= 1
    };
    conflicts
        .iter()
        .filter(|(conflict, _)| !harmless(&by_addr[&conflict.addr]))
        .map(|(conflict, state)| (*conflict, *state))
        .collect()
}

fn unretried(graph: &Graph, verdicts: &mut Verdicts, clock: &Clock) {
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); graph.states.len()];
    let mut attempts: BTreeMap<(TidId, ExprId), Vec<u32>> = BTreeMap::new();
    for (at, edge) in graph.edges.iter().enumerate() {
        before[edge.to.index()].push(edge.from.0);
        if edge.done.is_some_and(|op| op.action.is_cas()) {
            attempts.entry((edge.tid, edge.site)).or_default().push(at as u32);
        }
    }
    for ((tid, site), edges) in attempts {
        if clock.is_over() {
            verdicts.incomplete = Some(clock.reason());
            return;
        }
        let mut ahead = vec![false; graph.states.len()];
        let mut work: Vec<u32> = edges.iter().map(|&at| graph.edges[at as usize].from.0).collect();
        while let Some(state) = work.pop() {
            if !std::mem::replace(&mut ahead[state as usize], true) {
                work.extend(&before[state as usize]);
            }
        }
        for &at in &edges {
            let edge = &graph.edges[at as usize];
            if let Some(op) = edge.done
                && op.action == Action::CasFails
                && !ahead[edge.to.index()]
            {
                verdicts.unretried.entry(op.addr).or_default().entry(site).or_insert((tid, edge.from));
            }
        }
    }
}

/// §4.3.1: a `cas` that fails, cannot succeed, and comes back, while every other thread joins or spins as well.
fn spinning(space: &mut Space, graph: &Graph, next: &[Vec<u32>], verdicts: &mut Verdicts, clock: &Clock) {
    let component = components(next);
    let count = component.iter().max().map_or(0, |&max| max as usize + 1);
    let mut movers: Vec<BTreeSet<TidId>> = vec![BTreeSet::new(); count];
    let mut outcomes: BTreeMap<(StateId, TidId, ExprId), (bool, bool)> = BTreeMap::new();
    for edge in &graph.edges {
        let c = component[edge.from.index()] as usize;
        if component[edge.to.index()] as usize == c {
            movers[c].insert(edge.tid);
        }
        if let Some(op) = edge.done
            && op.action.is_cas()
        {
            let (success, failure) = outcomes.entry((edge.from, edge.tid, edge.site)).or_default();
            *success |= op.action == Action::CasSucceeds;
            *failure |= op.action == Action::CasFails;
        }
    }
    for ((state, tid, site), (success, failure)) in outcomes {
        if clock.is_over() {
            verdicts.incomplete = Some(clock.reason());
            return;
        }
        let c = component[state.index()] as usize;
        if success || !failure || movers[c].is_empty() {
            continue;
        }
        let standing = graph.standing(space, state);
        let joins = |s: &crate::abs::explore::Standing| s.ops.iter().any(|op| op.action == Action::Join);
        let others_join = standing.iter().filter(|s| s.tid != tid).all(joins);
        let alone = standing.iter().filter(|s| s.tid == tid && !joins(s)).count() == 1;
        if (others_join && alone) || movers[c].len() > 1 {
            verdicts.spinning.entry((tid, site)).or_insert(state);
        }
    }
}
