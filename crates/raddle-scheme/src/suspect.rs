//! Suspects: what the interleaving abstract machine cannot exclude.
//!
//! Unlike the paper's analyses these are sound: a thread id that may stand for several threads conflicts with itself,
//! and a state is a possible deadlock when every thread in it *may* have to wait, even if it also may go on.

use crate::abs::explore::{Graph, MayFail, Standing, StateId};
use crate::abs::space::{Addr, Space, TidId};
use crate::abs::step::AbsOp;
use crate::concrete::state::Origin;
use crate::limits::Clock;
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
    /// Errors that may be raised, and operations that can only fail.
    pub errors: BTreeMap<ExprId, MayFail>,
    /// Every place a thread may be at in a settled state.
    pub places: BTreeSet<(TidId, ExprId)>,
    /// The clock ran out before all states were looked at.
    pub incomplete: Option<String>,
}

pub fn suspects(space: &mut Space, graph: &Graph, clock: &Clock) -> Suspects {
    let mut out = Suspects::default();
    for id in graph.ids() {
        if clock.is_over() {
            out.incomplete = Some(clock.reason());
            break;
        }
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
        for places in stuck(space, &standing) {
            out.deadlocks.entry(places).or_insert(id);
        }
    }
    for (&site, failure) in &graph.failures {
        if failure.raised || failure.certain {
            out.errors.insert(site, *failure);
        }
    }
    out
}

/// Ways in which nobody can go on in this state.
///
/// Every thread that stands for one concrete thread must wait. One that stands for many keeps the contexts that it ever
/// had, so they only say where some of its threads may be; all of them may have ended. If somebody waits to join one of
/// them, though, that one has not ended and must itself be able to wait.
fn stuck(space: &Space, standing: &[Standing]) -> Vec<Vec<(TidId, ExprId)>> {
    let waiting: BTreeSet<TidId> =
        standing.iter().filter(|s| s.ops.iter().any(|op| op.may_wait)).map(|s| s.tid).collect();
    let goes_on = |tid: TidId| standing.iter().any(|s| s.tid == tid) && !waiting.contains(&tid);
    let wait = |s: &Standing| {
        let feasible = |op: &&AbsOp| match space.addr_of(op.addr) {
            Addr::Result(joined) if op.action == Action::Join => !goes_on(joined),
            _ => true,
        };
        s.ops.iter().filter(|op| op.may_wait).find(feasible).map(|op| (s.tid, op.site))
    };
    let (many, single): (Vec<&Standing>, Vec<&Standing>) = standing.iter().partition(|s| s.many);
    if single.is_empty() {
        return many.into_iter().filter_map(wait).map(|place| vec![place]).collect();
    }
    single.into_iter().map(wait).collect::<Option<Vec<_>>>().into_iter().collect()
}
