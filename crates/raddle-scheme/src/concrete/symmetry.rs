//! States that differ only in which of several equal threads is where.
//!
//! Twelve threads that run the same procedure have 12! names for each way in which they can stand. The form that is computed here
//! leaves the names out: threads are ordered by what they are about to do and what they know, and two states with the same
//! form are isomorphic by the renaming that the orders give. An exploration that identifies such states sees one of each orbit
//! and nothing is lost, because isomorphic states have isomorphic futures (Ip and Dill, *Better Verification Through Symmetry*,
//! 1996; Clarke, Enders, Filkorn and Jha, *Exploiting Symmetry in Temporal Logic Model Checking*, 1996). The order is a
//! heuristic where threads share objects: a bad one tells isomorphic states apart, which costs states but no truth.
//!
//! # Looking ahead
//!
//! Whoever spawned the threads most often joins them one by one, and then the name of a thread is its place in that queue. But
//! the steps between two joins are local: nobody notices them, and nothing changes their outcome as long as they do not look
//! at the value that the join gave. So a thread that waits is taken to be where it will be when the threads it joins on
//! the way have ended, with their results standing for themselves ([`Value::Result`]), and the threads it waits for become a
//! set. The look-ahead decides which states are identified; steps are always taken by the states themselves.
//!
//! Ended threads and variables that nobody can ask for any more are left out. A thread that failed stays: its failure is a finding.

use super::canon::{Canon, ENDED, Style, Walk};
use super::state::*;
use super::step::Pending;
use crate::machine::plan::Plan;
use crate::syntax::prim::Prim;

/// Local steps by which a waiting thread is followed.
const AHEAD_MAX: usize = 2_000;
/// Threads beyond which states are compared by name: ranks are bytes.
pub const SYMMETRIC_THREADS_MAX: usize = 200;

/// A thread that has no rank.
pub const UNRANKED: u8 = u8::MAX;

/// A state up to renaming.
pub struct Orbit {
    pub canon: Canon,
    /// The rank of each thread in the form, [`UNRANKED`] for ended ones.
    pub ranks: Box<[u8]>,
}

impl Machine<'_> {
    /// The form of a settled state; none for states with too many threads.
    pub fn orbit(&self, state: &State) -> Option<Orbit> {
        if state.threads.len() > SYMMETRIC_THREADS_MAX {
            return None;
        }
        let (ahead, awaited) = self.look_ahead(state);
        let is_ranked =
            |id: &ThreadId| id.index() == 0 || !matches!(state.thread(*id).control, Control::Done(_));
        let mut order: Vec<(bool, Canon, ThreadId)> = ahead
            .thread_ids()
            .filter(is_ranked)
            .map(|id| {
                let mut alone = Walk::new(self, &ahead, Style::Alone, Vec::new());
                alone.thread(ahead.thread(id), &awaited[id.index()]);
                (id.index() != 0, alone.finish(), id)
            })
            .collect();
        order.sort_by(|a, b| (a.0, &a.1, &state.thread(a.2).path).cmp(&(b.0, &b.1, &state.thread(b.2).path)));
        let mut ranks = vec![ENDED; state.threads.len()];
        for (rank, (.., id)) in order.iter().enumerate() {
            ranks[id.index()] = rank as u32;
        }
        let bytes = ranks.iter().map(|&rank| if rank == ENDED { UNRANKED } else { rank as u8 }).collect();
        let mut walk = Walk::new(self, &ahead, Style::Ranked, ranks);
        walk.words.push(order.len() as u32);
        for (.., id) in &order {
            walk.thread(ahead.thread(*id), &awaited[id.index()]);
        }
        Some(Orbit { canon: walk.finish(), ranks: bytes })
    }

    /// The state in which every thread that waits for others is where it will be after them, and whom it waits for.
    fn look_ahead(&self, state: &State) -> (State, Vec<Vec<ThreadId>>) {
        let mut ahead = state.clone();
        let mut awaited = vec![Vec::new(); state.threads.len()];
        for id in state.thread_ids() {
            for _ in 0..AHEAD_MAX {
                if ahead.thread(id).finished() {
                    break;
                }
                let plan = self.plan(ahead.thread(id)).map(|(_, plan)| plan);
                match plan {
                    Some(Plan::Join(Value::Thread(other))) if !state.thread(other).finished() => {
                        awaited[id.index()].push(other);
                        if other == id {
                            break;
                        }
                        let thread = ahead.thread_mut(id);
                        if let Some(frame) = thread.stack.pop() {
                            thread.context = frame.context;
                        }
                        thread.control = Control::Return(Value::Result(other));
                    }
                    // A thread that waits for nobody stands where it is.
                    _ if awaited[id.index()].is_empty() => break,
                    plan => {
                        let free = plan.is_none_or(|plan| self.is_free(&ahead, id, &plan));
                        if !free || !matches!(self.pending(&ahead, id), Pending::Local) {
                            break;
                        }
                        self.step(&mut ahead, id, &mut |_| 0);
                    }
                }
            }
            awaited[id.index()].sort_unstable();
            awaited[id.index()].dedup();
        }
        (ahead, awaited)
    }

    /// Whether a step neither depends on a value to come nor does anything that must wait for its moment.
    fn is_free(&self, state: &State, id: ThreadId, plan: &Plan<Value>) -> bool {
        let known = |value: &Value| !matches!(value, Value::Result(_));
        match plan {
            Plan::Spawn(_) | Plan::LockVar { .. } | Plan::LockValue { .. } | Plan::CasVar { .. } => false,
            Plan::Branch { test, .. } => known(test),
            Plan::OrTest { value, .. } => known(value),
            Plan::Apply { f, .. } => known(f),
            Plan::Join(thread) => {
                matches!(thread, Value::Thread(other) if *other != id && state.thread(*other).finished())
            }
            Plan::PrimApply {
                prim: Prim::Cons | Prim::Vector | Prim::NewRef | Prim::Void | Prim::Newline,
                ..
            } => true,
            Plan::PrimApply { prim: Prim::Random, .. } => false,
            Plan::PrimApply { args, .. } => args.iter().all(known),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::concrete::canon::fingerprint;
    use crate::limits::Clock;
    use crate::{Source, parse};
    use std::collections::BTreeSet;

    /// Numbers of states by name and up to renaming.
    fn states(text: &str) -> (usize, usize) {
        let program = parse(Source::new("symmetric.scm", text)).expect("well formed");
        let machine = Machine::new(&program);
        let (mut named, mut orbits) = (BTreeSet::new(), BTreeSet::new());
        let mut work: Vec<State> = machine
            .outcomes(&machine.initial(), None, &Clock::unlimited())
            .into_iter()
            .map(|o| o.state)
            .collect();
        while let Some(state) = work.pop() {
            if !named.insert(fingerprint(&machine.canon(&state))) {
                continue;
            }
            orbits.insert(fingerprint(&machine.orbit(&state).expect("few threads").canon));
            for id in state.thread_ids() {
                if let Pending::Visible(_) = machine.pending(&state, id) {
                    work.extend(
                        machine.outcomes(&state, Some(id), &Clock::unlimited()).into_iter().map(|o| o.state),
                    );
                }
            }
        }
        (named.len(), orbits.len())
    }

    /// Worked out by hand: n threads that each write once can stand in 2^n ways, which are n + 1 up to renaming; the main
    /// thread's definition of `x` before and its read afterwards are one step each.
    #[test]
    fn equal_threads_are_counted() {
        let one_by_one = "(define x 0) (define (f) (set! x 1))
            (define a (spawn (f))) (define b (spawn (f))) (define c (spawn (f))) (define d (spawn (f)))
            (join a) (join b) (join c) (join d) x";
        let (named, orbits) = states(one_by_one);
        assert_eq!(orbits, 1 + 4 + 1 + 1, "of {named}");
        let in_a_list = "(define x 0) (define (f) (set! x 1))
            (define all (map (lambda (n) (spawn (f))) (list 1 2 3 4)))
            (for-each (lambda (t) (join t)) all) x";
        assert_eq!(states(in_a_list).1, 1 + 4 + 1 + 1);
        let with_lets = "(define x 0) (define (f) (set! x 1))
            (let* ((a (spawn (f))) (b (spawn (f))) (c (spawn (f))) (d (spawn (f)))) (join a) (join b) (join c) (join d) x)";
        assert_eq!(states(with_lets).1, 1 + 4 + 1 + 1);
    }

    /// Results that are used tell the threads apart.
    #[test]
    fn results_that_matter_are_told_apart() {
        let text = "(define x 0) (define (f) (set! x (+ x 1)) x)
            (define a (spawn (f))) (define b (spawn (f))) (- (join a) (join b))";
        let (named, orbits) = states(text);
        assert!(orbits <= named && orbits * 2 > named, "{orbits} of {named}");
    }
}
