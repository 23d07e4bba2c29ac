//! Deadlocks of waits and stolen signals against their definitions, tried out over all prefixes and all interleavings.

mod support;

use raddle_predict::{Candidate, CandidateKind, Options, predict};
use raddle_trace::generate::{Shape, generate};
use raddle_trace::{LocationIx, MemoryTrace};
use std::collections::BTreeSet;
use support::cases;
use support::naive::Naive;

/// States beyond which the twin gives up on a trace.
const STATES_MAX: usize = 60_000;

/// Few locks, held while waiting; threads end and are joined.
fn shape(seed: u64) -> Shape {
    let threads = 2 + (seed % 2) as u32;
    let base = Shape::locks_only(threads, 2 + (seed / 2 % 2) as u32, 1, 24 + seed % 16);
    Shape {
        conditions: 1,
        nesting_max: 3,
        lock_percent: 60,
        other_percent: 50,
        end_percent: 10,
        requests: seed.is_multiple_of(3),
        locations: 12,
        ..base
    }
}

fn parties(candidate: &Candidate) -> Vec<(usize, usize)> {
    candidate.parties.iter().map(|party| (party.thread.index(), party.event.index())).collect()
}

fn places(trace: &MemoryTrace, parties: impl Iterator<Item = usize>) -> Vec<LocationIx> {
    let mut places: Vec<LocationIx> = parties.map(|event| trace.events[event].location).collect();
    places.sort_unstable();
    places
}

/// Options with which nothing but what gets stuck is looked for, with so many states for searches.
fn stuck_only(budget_states: u64) -> Options {
    let mut options = Options { atomics: false, budget_states, ..Options::default() };
    options.checks.races = false;
    options
}

#[test]
fn cycles_of_waits_are_those_of_all_prefixes() {
    let (mut cycles, mut checked) = (0, 0);
    for seed in 0..cases(600) {
        let trace = generate(&shape(seed), seed);
        let naive = Naive::new(&trace, false, STATES_MAX);
        // Without states for a search, what is found comes from the linear passes.
        let prediction = predict(&trace, &stuck_only(0));
        let deadlocks = prediction.candidates.iter().filter(|c| c.kind == CandidateKind::Deadlock);
        let told: BTreeSet<Vec<LocationIx>> =
            deadlocks.clone().map(|c| places(&trace, parties(c).into_iter().map(|party| party.1))).collect();
        for cycle in naive.wait_cycles() {
            cycles += 1;
            let wanted = places(&trace, cycle.iter().map(|&(_, event)| event));
            assert!(told.contains(&wanted), "seed {seed}: {cycle:?} is missing, told: {told:?}");
        }
        for candidate in deadlocks {
            let parties = parties(candidate);
            if let Some(reached) = naive.reaches_blocked(&parties) {
                checked += 1;
                assert!(reached, "seed {seed}: nobody can be blocked at {parties:?}");
            }
        }
    }
    println!("{cycles} cycles, {checked} candidates checked");
    assert!(cycles > cases(600) / 60 && checked > cases(600) / 60, "{cycles} cycles, {checked} checked");
}

#[test]
fn stolen_signals_are_exchanges_that_get_stuck() {
    let (mut stolen, mut elsewhere) = (0, 0);
    for seed in 0..cases(300) {
        let shape = Shape { threads: 3, other_percent: 60, requests: false, ..shape(seed) };
        let trace = generate(&shape, seed);
        let naive = || Naive::new(&trace, false, STATES_MAX);
        let Some(plain) = naive().enumerate() else { continue };
        let exchanges: Option<Vec<_>> =
            naive().exchanges().into_iter().map(|pair| naive().exchanged(pair).enumerate()).collect();
        let Some(exchanges) = exchanges else { continue };
        let prediction = predict(&trace, &stuck_only(10_000_000));
        let stuck: Vec<&Candidate> = prediction.candidates.iter().filter(|c| !c.kind.is_race()).collect();
        let told: BTreeSet<LocationIx> = stuck
            .iter()
            .flat_map(|candidate| parties(candidate))
            .map(|(_, event)| trace.events[event].location)
            .collect();
        stolen += usize::from(exchanges.iter().any(|found| found.stuck));
        // Where threads are stuck at other places than ever without an exchange, one of these is told.
        for places in exchanges.iter().flat_map(|found| &found.stuck_places) {
            if !plain.stuck_places.contains(places) {
                elsewhere += 1;
                let any = places.iter().any(|(_, location)| told.contains(location));
                assert!(any, "seed {seed}: stuck at {places:?}, told: {told:?}");
            }
        }
        // Each is a state that the trace, or an exchange of two signals, can come to.
        for candidate in stuck {
            let parties = parties(candidate);
            let reached = naive().reaches_blocked(&parties) == Some(true)
                || naive()
                    .exchanges()
                    .into_iter()
                    .any(|pair| naive().exchanged(pair).reaches_blocked(&parties) != Some(false));
            assert!(reached, "seed {seed}: nobody can be blocked at {parties:?}: {candidate:?}");
        }
    }
    println!("{stolen} traces with stolen signals, {elsewhere} times stuck at other places");
    assert!(stolen > 5 && elsewhere > 5, "{stolen} with stolen signals, {elsewhere} elsewhere");
}

/// A thread that joins itself waits for itself, although the C library lets it go on.
#[test]
fn a_join_of_oneself_is_a_deadlock_of_one() {
    use raddle_predict::Level;
    use raddle_trace::{ContextIx, Event, Location, Op, ThreadIx};
    let mut trace = MemoryTrace::default();
    trace.tables.add_thread(Some(ThreadIx::MAIN));
    let (main, other) = (ThreadIx::MAIN, ThreadIx(1));
    let ops = [
        (main, Op::Fork { child: other }),
        (other, Op::Start { parent: main }),
        (other, Op::JoinFailed { child: other }),
        (other, Op::End),
        (main, Op::Join { child: other }),
        (main, Op::End),
    ];
    for (number, (thread, op)) in ops.into_iter().enumerate() {
        let location = trace.tables.intern_location(Location::Foreign(number as u32));
        trace.events.push(Event { thread, location, context: ContextIx::ROOT, kept_calls: 0, op });
    }
    for level in [Level::Sound, Level::Optimistic] {
        let prediction = predict(&trace, &Options { level, ..Options::default() });
        let found: Vec<_> = prediction.candidates.iter().map(|c| (c.kind, parties(c))).collect();
        assert_eq!(found, [(CandidateKind::Deadlock, vec![(1, 2)])], "{level:?}");
    }
    // A join that ran out of time, of another thread, is none.
    trace.events[2].op = Op::JoinFailed { child: main };
    assert_eq!(predict(&trace, &Options::default()).candidates.len(), 0);
}
