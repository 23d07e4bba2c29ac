//! What is noticed in a settled state.

use crate::concrete::schedule::Schedule;
use crate::concrete::state::*;
use crate::concrete::step::{Op, Pending};
use crate::machine::access::{Action, SitePair};
use crate::syntax::core::ExprId;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A race, up to which threads and which objects of one origin take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RaceKey {
    pub sites: SitePair,
    /// Actions at the first and the second site.
    pub actions: (Action, Action),
    pub origin: Origin,
    pub cell: u32,
}

/// A thread and the place where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stand {
    pub thread: Rc<[u32]>,
    pub site: ExprId,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub struct RaceSeen {
    pub threads: (Rc<[u32]>, Rc<[u32]>),
    /// In every state seen, the order of the two made no difference to the cell.
    pub benign: bool,
    pub schedule: Schedule,
}

#[derive(Clone, Debug)]
pub struct ErrorSeen {
    pub thread: Rc<[u32]>,
    pub failure: Rc<Failure>,
    pub schedule: Schedule,
}

/// A `cas` that failed for good.
#[derive(Clone, Debug)]
pub struct Unretried {
    pub stand: Stand,
    pub origin: Origin,
    pub cell: u32,
    pub schedule: Schedule,
}

/// Everything noticed during an exploration.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub races: BTreeMap<RaceKey, RaceSeen>,
    pub deadlocks: BTreeMap<Vec<Stand>, Schedule>,
    pub livelocks: BTreeMap<Vec<Stand>, Schedule>,
    pub unretried: BTreeMap<ExprId, Unretried>,
    pub errors: BTreeMap<(ExprId, String), ErrorSeen>,
    /// Results of the main thread in runs that ended well.
    pub results: BTreeSet<String>,
    /// Spawn sites by thread path, for naming threads.
    pub spawn_sites: BTreeMap<Rc<[u32]>, ExprId>,
    /// A machine limit cut a path short.
    pub cut: Option<String>,
}

impl Observed {
    /// How many different things were seen.
    pub fn situations(&self) -> usize {
        self.races.len()
            + self.deadlocks.len()
            + self.livelocks.len()
            + self.unretried.len()
            + self.errors.len()
    }

    /// Takes over what another search has seen.
    pub fn absorb(&mut self, other: Observed) {
        for (key, seen) in other.races {
            let benign = seen.benign;
            self.races.entry(key).or_insert(seen).benign &= benign;
        }
        for (key, schedule) in other.deadlocks {
            self.deadlocks.entry(key).or_insert(schedule);
        }
        for (key, schedule) in other.livelocks {
            self.livelocks.entry(key).or_insert(schedule);
        }
        for (key, seen) in other.unretried {
            self.unretried.entry(key).or_insert(seen);
        }
        for (key, error) in other.errors {
            self.errors.entry(key).or_insert(error);
        }
        self.results.extend(other.results);
        self.spawn_sites.extend(other.spawn_sites);
    }

    /// Looks at a settled state; `path` gives the schedule that leads to it.
    pub fn look(
        &mut self,
        machine: &Machine,
        state: &State,
        pending: &[Pending],
        path: &dyn Fn() -> Schedule,
    ) {
        if let Some(limit) = state.limit() {
            // What the thread would have done is unknown, so nothing that follows from its end is known either.
            self.cut = Some(limit.to_owned());
            return;
        }
        for thread in &state.threads {
            if let Some(site) = thread.spawn_site
                && !self.spawn_sites.contains_key(&thread.path)
            {
                self.spawn_sites.insert(thread.path.clone(), site);
            }
        }
        self.look_for_races(state, pending, path);
        for thread in &state.threads {
            if let Control::Failed(failure) = &thread.control {
                match failure.kind {
                    FailureKind::Inherited | FailureKind::Limit => {}
                    FailureKind::Raised | FailureKind::Wrong => {
                        self.errors.entry((failure.site, failure.message.clone())).or_insert_with(|| {
                            ErrorSeen {
                                thread: thread.path.clone(),
                                failure: failure.clone(),
                                schedule: path(),
                            }
                        });
                    }
                }
            }
        }
        if pending.iter().any(|p| matches!(p, Pending::Visible(_) | Pending::Local)) {
            return;
        }
        let mut stuck: Vec<Stand> = Vec::new();
        for (thread, pending) in state.threads.iter().zip(pending) {
            if let Pending::Blocked(op) = pending {
                stuck.push(Stand { thread: thread.path.clone(), site: op.site, action: op.action });
            }
        }
        if !stuck.is_empty() {
            stuck.sort();
            self.deadlocks.entry(stuck).or_insert_with(path);
        } else if let Control::Done(value) = &state.threads[0].control {
            self.results.insert(machine.show(state, value, true));
        }
    }

    fn look_for_races(&mut self, state: &State, pending: &[Pending], path: &dyn Fn() -> Schedule) {
        let ops: Vec<(usize, &Op, Loc)> = pending
            .iter()
            .enumerate()
            .filter_map(|(at, pending)| match pending {
                Pending::Visible(op) => op.loc.map(|loc| (at, op, loc)),
                _ => None,
            })
            .collect();
        for (i, &(first, a, loc)) in ops.iter().enumerate() {
            for &(second, b, other) in &ops[i + 1..] {
                if loc != other || !a.action.conflicts_with(b.action) {
                    continue;
                }
                let (a, b, first, second) =
                    if a.site <= b.site { (a, b, first, second) } else { (b, a, second, first) };
                let key = RaceKey {
                    sites: SitePair::new(a.site, b.site),
                    actions: if a.site == b.site && b.action < a.action {
                        (b.action, a.action)
                    } else {
                        (a.action, b.action)
                    },
                    origin: state.heap[loc.object.index()].origin,
                    cell: loc.cell,
                };
                let benign = order_is_irrelevant(state.read(loc), a, b);
                let threads = (state.threads[first].path.clone(), state.threads[second].path.clone());
                let seen =
                    self.races.entry(key).or_insert_with(|| RaceSeen { threads, benign, schedule: path() });
                seen.benign &= benign;
            }
        }
    }
}

/// Two conflicting operations commute when neither changes what the other sees.
fn order_is_irrelevant(now: &Value, a: &Op, b: &Op) -> bool {
    let same = |x: &Option<Value>, y: &Value| x.as_ref().is_some_and(|x| x.same(y));
    match (a.action, b.action) {
        (Action::Write, Action::Write) => match (&a.written, &b.written) {
            (Some(x), Some(y)) => x.same(y),
            _ => false,
        },
        (Action::Write, Action::Read) => same(&a.written, now),
        (Action::Read, Action::Write) => same(&b.written, now),
        _ => false,
    }
}
