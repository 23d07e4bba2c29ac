//! `dpor`: dynamic partial order reduction.
//!
//! Flanagan and Godefroid, *Dynamic Partial-Order Reduction for Model Checking Software* (POPL 2005), as in figure 2 of Wang, Yang,
//! Gupta and Gopalakrishnan's paper on property driven pruning. For each operation that a thread is about to do, the latest one
//! before it that is dependent, may be co-enabled and does not happen before the thread came there gets a backtracking point:
//! the thread itself, or one that has to go before it, or else everybody who was enabled.
//!
//! Deviations: "does not happen before" stands in Flanagan and Godefroid's paper, not in the figure; operations that cannot go yet are
//! looked at too, as there; sleep sets are added, without which classes are run more than once; and the points are
//! computed when a run is over. At that time each operation stands for itself at all states between its thread's arrival and
//! its turn, so all dependent ones in between get a point, besides the latest one before the arrival. Of the threads that the paper
//! leaves to choice one is taken that is awake: where the racing thread itself sleeps, at an operation before the racing one,
//! its point would be lost with it. Where all of them sleep, everybody who can go is tried.

use super::history::History;
use super::run::{Event, ThreadId};
use super::search::Node;
use raddle_sched::dependence::dependent;
use raddle_wire::step;

/// Can the two ever be enabled in one state? Never what only the other one enables. Entering a barrier and leaving it is not of
/// that kind: a thread may enter the next round before another has left the last one.
fn may_be_co_enabled(first: &Event, second: &Event) -> bool {
    use raddle_sched::dependence::GIVES_UP;
    if second.op.has(GIVES_UP) {
        return true;
    }
    !matches!(
        (first.op.kind, second.op.kind),
        (step::UNLOCK | step::WAIT, step::LOCK | step::RELOCK)
            | (step::END, step::JOIN)
            | (step::FORK, step::START)
    )
}

pub fn update(path: &mut [Node], history: &History<'_>, free: usize) {
    for second in 0..history.events.len() + history.pending.len() {
        let event = *history.event(second);
        let arrival = history.arrival(second);
        let end = second.min(history.events.len());
        for first in (0..end).rev() {
            let other = &history.events[first];
            let races = other.thread != event.thread
                && dependent(&other.op, &event.op)
                && may_be_co_enabled(other, &event)
                && !history.before_arrival(first, second);
            if !races {
                continue;
            }
            if first >= free {
                add(&mut path[first], history, first, second);
            }
            if first < arrival {
                break;
            }
        }
    }
}

fn add(node: &mut Node, history: &History<'_>, first: usize, second: usize) {
    let event = history.event(second);
    let end = second.min(history.events.len());
    let needed = |thread| {
        let own = (first + 1..end).find(|&at| history.events[at].thread == thread);
        own.is_some_and(|at| history.before_arrival(at, second))
    };
    let asleep = |thread: ThreadId| node.asleep.iter().any(|event| event.thread == thread);
    let awake: Vec<_> = node
        .enabled
        .iter()
        .copied()
        .filter(|&thread| (thread == event.thread || needed(thread)) && !asleep(thread))
        .collect();
    if awake.iter().any(|thread| node.backtrack.contains(thread)) {
        return;
    }
    match awake.iter().find(|&&thread| thread == event.thread).or(awake.first()) {
        Some(&thread) => try_also(node, thread),
        None => node.enabled.clone().into_iter().for_each(|thread| try_also(node, thread)),
    }
}

fn try_also(node: &mut Node, thread: ThreadId) {
    if !node.backtrack.contains(&thread) {
        node.backtrack.push(thread);
    }
}
