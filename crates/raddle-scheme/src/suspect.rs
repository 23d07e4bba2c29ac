//! Suspects: what the interleaving abstract machine cannot exclude.
//!
//! Unlike the paper's analyses these are sound: a thread id that may stand for several threads conflicts with itself,
//! and a state is a possible deadlock when every thread in it *may* have to wait, even if it also may go on.

use crate::abs::explore::{Graph, StateId};
use crate::abs::space::{Addr, Space, TidId};
use crate::concrete::state::Origin;
use crate::machine::access::{Action, SitePair};
use crate::syntax::core::ExprId;
use std::collections::{BTreeMap, BTreeSet};

/// Two accesses that may happen at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RaceSuspect {
    pub sites: SitePair,
    pub actions: (Action, Action),
    pub origin: Origin,
    pub cell: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct RaceEvidence {
    pub state: StateId,
    pub tids: (TidId, TidId),
    /// Both write the same known value, wherever they meet.
    pub benign: bool,
}

#[derive(Debug, Default)]
pub struct Suspects {
    pub races: BTreeMap<RaceSuspect, RaceEvidence>,
    pub deadlocks: BTreeMap<Vec<(TidId, ExprId)>, StateId>,
    pub errors: BTreeMap<ExprId, (TidId, StateId)>,
    /// Every place a thread may be at in a settled state.
    pub places: BTreeSet<(TidId, ExprId)>,
}

pub fn suspects(space: &mut Space, graph: &Graph) -> Suspects {
    let mut out = Suspects::default();
    for id in graph.ids() {
        let standing = graph.standing(space, id);
        let store = graph.states[id.index()].store;
        for (i, a) in standing.iter().enumerate() {
            out.places.insert((a.tid, space.site(a.ctx)));
            for (j, b) in standing.iter().enumerate().skip(i) {
                if i == j && !a.many {
                    continue;
                }
                for x in &a.ops {
                    for y in &b.ops {
                        let Addr::Cell(origin, cell, _) = space.addr_of(x.addr) else { continue };
                        if x.addr != y.addr || !x.action.conflicts_with(y.action) {
                            continue;
                        }
                        let ((x, s), (y, t)) = if x.site <= y.site {
                            ((x, a.tid), (y, b.tid))
                        } else {
                            ((y, b.tid), (x, a.tid))
                        };
                        let actions = if x.site == y.site && y.action < x.action {
                            (y.action, x.action)
                        } else {
                            (x.action, y.action)
                        };
                        let benign = actions == (Action::Write, Action::Write)
                            && match (x.written, y.written) {
                                (Some(v), Some(w)) => {
                                    let (v, w) = (space.value_of(v), space.value_of(w));
                                    !space.equal(store, &v, &w).1
                                }
                                _ => false,
                            };
                        let suspect =
                            RaceSuspect { sites: SitePair::new(x.site, y.site), actions, origin, cell };
                        let evidence = RaceEvidence { state: id, tids: (s, t), benign };
                        out.races.entry(suspect).or_insert(evidence).benign &= benign;
                    }
                }
            }
        }
        let mut stuck: BTreeMap<TidId, ExprId> = BTreeMap::new();
        let tids: BTreeSet<TidId> = standing.iter().map(|s| s.tid).collect();
        for s in &standing {
            if let Some(op) = s.ops.iter().find(|op| op.may_wait) {
                stuck.insert(s.tid, op.site);
            }
        }
        if !tids.is_empty() && stuck.len() == tids.len() {
            out.deadlocks.entry(stuck.into_iter().collect()).or_insert(id);
        }
    }
    for (&site, failure) in &graph.failures {
        if failure.raised {
            out.errors.insert(site, (failure.tid, failure.state));
        }
    }
    out
}
