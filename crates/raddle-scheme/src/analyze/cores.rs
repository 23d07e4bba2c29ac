//! What a deadlock comes from, so that one is reported once.
//!
//! Twelve threads that take two locks in both orders stop in a thousand ways: who else is queueing behind the two that wait for
//! each other differs from one to the next, and nothing else does. A stuck thread waits for one thing, so who waits for whom is a
//! graph with at most one edge from each node, and what everybody waits for in the end is a circle, or a lock that no
//! waiting thread can open. That is the *core* of the deadlock: the places where its threads wait, and where the locks were made.
//! A deadlock whose cores are all known is no finding of its own.
//!
//! Threads that spin are told apart by where they were spawned and where they spin.
//!
//! A lock has no owner in the machine, since anybody may open it. Here the owner is the thread that took it last, which
//! following the schedule once more tells.

use crate::concrete::explore::{Observed, Stand};
use crate::concrete::schedule::{Schedule, Step};
use crate::concrete::state::{Loc, Machine, Origin, State, ThreadId, Value};
use crate::concrete::step::{Op, Pending, Settled};
use crate::limits::Clock;
use crate::machine::access::Action;
use crate::syntax::core::ExprId;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// Deadlocks that are followed; of more, those at known places count as known.
const FOLLOWED_MAX: usize = 2_000;

/// Where the threads of a core wait, and for which lock, or none for the end of a thread.
type Core = BTreeSet<(ExprId, Option<(Origin, u32)>)>;
type Places = BTreeSet<(ExprId, Action)>;
/// Where threads spin, and where they were spawned.
type Spinning = BTreeSet<(Option<ExprId>, ExprId, Action)>;

/// Deadlocks and livelocks, each of a kind once.
#[derive(Default)]
pub struct Cores {
    judged: BTreeSet<Vec<Stand>>,
    known: BTreeSet<Core>,
    deadlocked: BTreeSet<Places>,
    spinning: BTreeSet<Spinning>,
    followed: usize,
    /// What is reported.
    pub deadlocks: BTreeSet<Vec<Stand>>,
    pub livelocks: BTreeSet<Vec<Stand>>,
}

fn places(stuck: &[Stand]) -> Places {
    stuck.iter().map(|stand| (stand.site, stand.action)).collect()
}

impl Cores {
    /// Looks at what was not there before, the smallest first. What was chosen once stays so.
    pub fn judge(&mut self, machine: &Machine, observed: &Observed, clock: &Clock) {
        let mut fresh: Vec<(&Vec<Stand>, &Schedule)> =
            observed.deadlocks.iter().filter(|(stuck, _)| !self.judged.contains(*stuck)).collect();
        fresh.sort_by_key(|(stuck, schedule)| (stuck.len(), schedule.steps.len()));
        for (stuck, schedule) in fresh {
            self.judged.insert(stuck.clone());
            let new_places = self.deadlocked.insert(places(stuck));
            let cores = if self.followed < FOLLOWED_MAX && !clock.is_over() {
                self.followed += 1;
                cores(machine, schedule, clock)
            } else {
                Vec::new()
            };
            let mut news = cores.is_empty() && new_places;
            for core in cores {
                news |= self.known.insert(core);
            }
            if news {
                self.deadlocks.insert(stuck.clone());
            }
        }
        let mut fresh: Vec<&Vec<Stand>> =
            observed.livelocks.keys().filter(|stuck| !self.judged.contains(*stuck)).collect();
        fresh.sort_by_key(|stuck| stuck.len());
        for stuck in fresh {
            self.judged.insert(stuck.clone());
            let spawned = |stand: &Stand| observed.spawn_sites.get(&stand.thread).copied();
            let spinning = stuck.iter().map(|stand| (spawned(stand), stand.site, stand.action)).collect();
            if self.spinning.insert(spinning) {
                self.livelocks.insert(stuck.clone());
            }
        }
    }
}

/// The cores of the deadlock to which a schedule leads; none if it leads to none.
fn cores(machine: &Machine, schedule: &Schedule, clock: &Clock) -> Vec<Core> {
    let Some((state, holders)) = follow(machine, schedule, clock) else { return Vec::new() };
    let waits: Vec<Option<Op>> = state
        .thread_ids()
        .map(|id| match machine.pending(&state, id) {
            Pending::Blocked(op) => Some(op),
            _ => None,
        })
        .collect();
    let next: Vec<Option<usize>> = waits
        .iter()
        .map(|op| {
            let op = op.as_ref()?;
            let other = op.target.or_else(|| holders.get(&op.loc?).copied())?.index();
            waits[other].is_some().then_some(other)
        })
        .collect();
    let mut found = BTreeSet::new();
    for start in (0..waits.len()).filter(|&at| waits[at].is_some()) {
        // As many steps as there are threads lead into the circle, or to the one who waits for nobody.
        let mut at = start;
        for _ in 0..waits.len() {
            at = next[at].unwrap_or(at);
        }
        let mut core = Core::new();
        let first = at;
        loop {
            if let Some(op) = &waits[at] {
                let lock = op.loc.map(|loc| (state.heap[loc.object.index()].origin, loc.cell));
                core.insert((op.site, lock.filter(|_| op.action == Action::Acquire)));
            }
            match next[at] {
                Some(other) if other != first => at = other,
                _ => break,
            }
        }
        found.insert(core);
    }
    found.into_iter().collect()
}

/// The state to which a schedule leads, and who has taken the locks that are taken in it.
fn follow(
    machine: &Machine,
    schedule: &Schedule,
    clock: &Clock,
) -> Option<(State, FxHashMap<Loc, ThreadId>)> {
    let mut state = machine.initial();
    let mut holders: FxHashMap<Loc, ThreadId> = FxHashMap::default();
    let mut script = schedule.steps.iter().peekable();
    let mut chosen: Option<ThreadId> = None;
    loop {
        let mut choose = |n: i64| match script.peek() {
            Some(&&Step::Choose(value)) => {
                script.next();
                value.clamp(0, n - 1)
            }
            _ => 0,
        };
        if let Some(thread) = chosen {
            machine.step(&mut state, thread, &mut choose);
        }
        if machine.settle(&mut state, &mut choose, clock, |_, _| {}) != Settled::Yes {
            return None;
        }
        let Some(step) = script.next() else { return Some((state, holders)) };
        let Step::Act { thread: path, .. } = step else { return None };
        let thread = state.thread_ids().find(|&id| state.thread(id).path == *path)?;
        let Pending::Visible(op) = machine.pending(&state, thread) else { return None };
        if let Some(loc) = op.loc {
            let taken = match op.action {
                Action::Acquire => Some(true),
                Action::Release => Some(false),
                _ => match op.written {
                    Some(Value::LockState(taken)) => Some(taken),
                    _ => None,
                },
            };
            match taken {
                Some(true) => drop(holders.insert(loc, thread)),
                Some(false) => drop(holders.remove(&loc)),
                None => {}
            }
        }
        chosen = Some(thread);
    }
}
