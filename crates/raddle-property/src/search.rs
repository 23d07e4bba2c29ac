//! The direct solver: can some reordering of a trace lead an automaton to a violation?
//!
//! A depth first search over the states of the trace ([`raddle_predict::state`]), each with the state of the automaton. What has been visited is
//! remembered in sixteen bytes. Threads whose next steps come first in the observed run go first, so that a witness stays close to it.
//!
//! # Reduction
//!
//! In a state, the enabled threads of a stubborn set ([`raddle_predict::stubborn`]) are enough, provided that none of their next steps concerns the
//! automaton: then every sequence of events that concern it is still found, because steps only ever lead forward (Valmari, *The state explosion
//! problem*, 1998: visibility, and no step is put off for ever). Where every stubborn set has such a step, all threads are tried.

use crate::automaton::{Automaton, Moved, StateIx};
use raddle_csp::process::EventId;
use raddle_predict::ids::Pos;
use raddle_predict::program::Program;
use raddle_predict::state::{State, Status, Undo};
use raddle_predict::stubborn::Stubborn;
use raddle_trace::ThreadIx;
use rustc_hash::FxHashSet;

/// A way to a violation: the threads that move, one step each; the last one violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    pub moves: Vec<ThreadIx>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Ways with different last steps.
    pub ways: Vec<Way>,
    /// Everything was looked at.
    pub complete: bool,
    pub states: u64,
}

struct Frame {
    choice: Vec<ThreadIx>,
    next: usize,
    automaton: StateIx,
    moved: Option<(ThreadIx, Undo)>,
}

/// Searches. `events`: by thread and step, what the automaton sees of it.
pub fn search(
    program: &Program,
    events: &[Vec<Vec<EventId>>],
    automaton: &mut Automaton,
    ways_max: usize,
    states_max: u64,
    reduced: bool,
) -> Found {
    let mut state = State::new(program);
    let limit: Vec<Pos> = program.threads.iter().map(|thread| thread.steps.len() as Pos).collect();
    let threads: Vec<ThreadIx> = program.thread_ids().collect();
    let mut stubborn = Stubborn::new(threads.len());
    let mut visited: FxHashSet<u128> = FxHashSet::default();
    let mut frames: Vec<Frame> = Vec::new();
    let mut found = Found { complete: true, ..Found::default() };
    let mut last_steps: FxHashSet<(ThreadIx, Pos)> = FxHashSet::default();
    let start = automaton.start();
    if automaton.reports(start) {
        found.ways.push(Way { moves: Vec::new() });
        return found;
    }
    let concerns = |automaton: &Automaton, state: &State<'_>, thread: ThreadIx| {
        let at = state.at[thread.index()] as usize;
        events[thread.index()].get(at).is_some_and(|step| step.iter().any(|&event| automaton.concerns(event)))
    };
    let choose = |stubborn: &mut Stubborn, automaton: &Automaton, state: &State<'_>| {
        let enabled = |thread: &ThreadIx| state.status(*thread, limit[thread.index()]) == Status::Enabled;
        let all: Vec<ThreadIx> = threads.iter().copied().filter(enabled).collect();
        let mut best = all.clone();
        if reduced {
            for &seed in &all {
                let set = stubborn.set(state, &limit, seed);
                if set.len() < best.len() && set.iter().all(|&thread| !concerns(automaton, state, thread)) {
                    best = set.to_vec();
                }
                if best.len() <= 1 {
                    break;
                }
            }
        }
        best.sort_by_key(|&thread| state.next_step(thread).map(|step| step.event));
        best
    };
    visited.insert(key(&state, start));
    let choice = choose(&mut stubborn, automaton, &state);
    frames.push(Frame { choice, next: 0, automaton: start, moved: None });
    while let Some(frame) = frames.last_mut() {
        let Some(&thread) = frame.choice.get(frame.next) else {
            if let Some((thread, undo)) = frames.pop().and_then(|frame| frame.moved) {
                state.undo(thread, &undo);
            }
            continue;
        };
        frame.next += 1;
        let at = state.at[thread.index()];
        let mut now = frame.automaton;
        let mut moved = Moved::To(now);
        for &event in events[thread.index()].get(at as usize).into_iter().flatten() {
            moved = automaton.step(now, event);
            match moved {
                Moved::To(next) => now = next,
                Moved::Violation | Moved::Refused => break,
            }
        }
        match moved {
            Moved::Refused => continue,
            Moved::Violation => {
                if last_steps.insert((thread, at)) {
                    let way =
                        frames.iter().filter_map(|frame| frame.moved.as_ref().map(|(thread, _)| *thread));
                    found.ways.push(Way { moves: way.chain([thread]).collect() });
                    if found.ways.len() >= ways_max {
                        found.complete = false;
                        return found;
                    }
                }
                continue;
            }
            Moved::To(_) => {}
        }
        let undo = state.take(thread);
        if !visited.insert(key(&state, now)) {
            state.undo(thread, &undo);
            continue;
        }
        found.states += 1;
        if found.states >= states_max {
            found.complete = false;
            return found;
        }
        let choice = choose(&mut stubborn, automaton, &state);
        frames.push(Frame { choice, next: 0, automaton: now, moved: Some((thread, undo)) });
    }
    found
}

/// State and automaton in one number.
fn key(state: &State<'_>, automaton: StateIx) -> u128 {
    let mut z = u64::from(automaton).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let high = (z ^ (z >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    state.fingerprint() ^ (u128::from(high) << 64 | u128::from(z))
}
