//! The solver agrees with the naive twin on random traces, whatever is switched on or off.

mod support;

use raddle_predict::{CandidateKind, Keeps, Level, Options, Prediction, Reductions, predict};
use raddle_trace::generate::{Shape, generate};
use raddle_trace::{LocationIx, MemoryTrace, Op};
use std::collections::BTreeSet;
use support::cases;
use support::naive::Naive;

/// States beyond which the twin gives up on a trace.
const STATES_MAX: usize = 60_000;

fn shapes() -> Vec<(&'static str, Shape)> {
    let small = |shape: Shape| Shape { locations: 12, ..shape };
    vec![
        ("locks", small(Shape { nesting_max: 2, ..Shape::locks_only(3, 2, 2, 26) })),
        ("guarded", small(Shape { guarded_percent: 60, ..Shape::locks_only(3, 2, 3, 28) })),
        ("requests", small(Shape { requests: true, lock_percent: 65, ..Shape::locks_only(3, 2, 2, 28) })),
        ("rwlocks", small(Shape { rwlocks: 2, lock_percent: 60, ..Shape::locks_only(3, 1, 2, 26) })),
        ("semaphores", small(Shape { semaphores: 2, other_percent: 40, ..Shape::locks_only(3, 1, 2, 24) })),
        ("conditions", small(Shape { conditions: 1, other_percent: 40, ..Shape::locks_only(3, 1, 2, 26) })),
        ("barriers", small(Shape { barriers: 1, other_percent: 30, ..Shape::locks_only(3, 1, 2, 24) })),
        ("atomics", small(Shape { atomics: 2, other_percent: 40, ..Shape::locks_only(3, 1, 2, 22) })),
        ("everything", small(Shape { threads: 3, ..Shape::everything(3, 26) })),
        ("sizes", small(Shape { mixed_sizes: true, ..Shape::locks_only(3, 2, 1, 24) })),
        ("four", small(Shape::locks_only(4, 2, 2, 22))),
    ]
}

/// Atomics of generated traces never write a value twice; with few values, a read has several possible writers.
fn few_values(trace: &mut MemoryTrace) {
    for event in &mut trace.events {
        if let Op::Atomic { read, written, .. } = &mut event.op {
            *read %= 2;
            *written %= 2;
        }
    }
}

fn races_of(trace: &MemoryTrace, prediction: &Prediction) -> BTreeSet<(LocationIx, LocationIx)> {
    let races = prediction.candidates.iter().filter(|candidate| candidate.kind.is_race());
    races
        .map(|candidate| {
            let at = |party: usize| trace.events[candidate.parties[party].event.index()].location;
            (at(0).min(at(1)), at(0).max(at(1)))
        })
        .collect()
}

/// How much the twin found, to see that the comparison says something.
#[derive(Default, Debug)]
struct Tally {
    traces: u64,
    races: usize,
    race_free: u64,
    stuck: u64,
}

fn check(name: &str, shape: &Shape, seed: u64, tally: &mut Tally) {
    let mut trace = generate(shape, seed);
    if seed.is_multiple_of(2) {
        few_values(&mut trace);
    }
    let atomics = !seed.is_multiple_of(3);
    let Some(expected) = Naive::new(&trace, atomics, STATES_MAX).enumerate() else { return };
    tally.traces += 1;
    tally.races += expected.races.len();
    tally.race_free += u64::from(expected.races.is_empty());
    tally.stuck += u64::from(expected.stuck);
    let variants = [
        Options { atomics, ..Options::default() },
        Options { atomics, closure: false, ..Options::default() },
        Options { atomics, reductions: Reductions::NONE, ..Options::default() },
        Options { atomics, closure: false, reductions: Reductions::NONE, ..Options::default() },
    ];
    for options in variants {
        let prediction = predict(&trace, &options);
        let what = format!("{name}, seed {seed}, {options:?}");
        assert_eq!(races_of(&trace, &prediction), expected.races, "races of {what}");
        assert_eq!(prediction.verdict.stuck, expected.stuck, "stuck: {what}\n{:?}", expected.stuck_places);
        let stuck = prediction.candidates.iter().any(|candidate| !candidate.kind.is_race());
        assert!(stuck || !expected.stuck, "a stuck state is a candidate: {what}");
    }
}

#[test]
fn the_solver_finds_what_enumeration_finds() {
    let mut tally = Tally::default();
    for (name, shape) in shapes() {
        for seed in 0..cases(60) {
            check(name, &shape, seed, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.traces >= cases(60) * 6, "most traces are small enough for the twin: {tally:?}");
    assert!(tally.races as u64 > tally.traces && tally.stuck > tally.traces / 50, "{tally:?}");
}

/// Each reduction alone changes nothing either.
#[test]
fn no_reduction_changes_a_prediction() {
    let toggles: [fn(&mut Reductions); 5] = [
        |r| r.redundant = false,
        |r| r.intervals = false,
        |r| r.weak_order = false,
        |r| r.locksets = false,
        |r| r.same_segment = false,
    ];
    for (name, shape) in shapes() {
        for seed in 0..cases(20) {
            let trace = generate(&Shape { events: shape.events * 2, ..shape.clone() }, seed);
            let all = predict(&trace, &Options::default());
            for (number, toggle) in toggles.iter().enumerate() {
                let mut options = Options::default();
                toggle(&mut options.reductions);
                let prediction = predict(&trace, &options);
                let what = format!("{name}, seed {seed}, reduction {number}");
                assert_eq!(races_of(&trace, &prediction), races_of(&trace, &all), "{what}");
                let kinds = |prediction: &Prediction| -> BTreeSet<CandidateKind> {
                    prediction.candidates.iter().map(|candidate| candidate.kind).collect()
                };
                assert_eq!(kinds(&prediction), kinds(&all), "{what}");
                assert_eq!(prediction.verdict.stuck, all.verdict.stuck, "{what}");
            }
        }
    }
}

/// The sound level is maximal: it finds every pair that some correct reordering brings together, and no other. Nothing that is
/// sound can find more, neither sync-preserving races nor those behind reversed synchronisation (OSR).
#[test]
fn the_sound_level_finds_every_correct_reordering() {
    let mut tally = Tally::default();
    let mut beyond = 0;
    for (name, shape) in shapes().into_iter().filter(|(name, _)| *name != "sizes") {
        for seed in 0..cases(60) {
            // Up to 12 events beside those that begin and end the threads, and now and then a few more.
            let events = 12 + 2 * (seed % 6);
            let failures = shape.failures && seed % 2 == 0;
            let trace = generate(&Shape { events, variables: 2, failures, ..shape.clone() }, seed);
            let Some(expected) = Naive::keeping_reads(&trace, STATES_MAX).enumerate() else { continue };
            tally.traces += 1;
            tally.races += expected.races.len();
            tally.race_free += u64::from(expected.races.is_empty());
            tally.stuck += u64::from(expected.stuck);
            let sound = Options { level: Level::Sound, ..Options::default() };
            for options in [
                sound.clone(),
                Options { closure: false, ..sound.clone() },
                Options { reductions: Reductions::NONE, ..sound.clone() },
            ] {
                let prediction = predict(&trace, &options);
                let what = format!("{name}, seed {seed}, {options:?}");
                let races = races_of(&trace, &prediction);
                if failures {
                    // Failed try operations stay where they were: less is found, and nothing wrong.
                    assert!(races.is_subset(&expected.races), "{races:?}, {:?}: {what}", expected.races);
                    assert!(!prediction.verdict.stuck || expected.stuck, "stuck: {what}");
                    continue;
                }
                assert_eq!(races, expected.races, "races of {what}");
                assert_eq!(prediction.verdict.stuck, expected.stuck, "stuck: {what}");
                beyond += prediction.stats.answers.by_search;
            }
            // What can happen is also a candidate of the other level, except where atomics have the same value twice.
            let optimistic = predict(&trace, &Options { atomics: false, ..Options::default() });
            assert!(
                expected.races.is_subset(&races_of(&trace, &optimistic)),
                "{name}, seed {seed}: the optimistic level has every sound race"
            );
        }
    }
    println!("{tally:?}, {beyond} found by search");
    assert!(tally.traces >= cases(60) * 6, "{tally:?}");
    assert!(tally.races as u64 > tally.traces / 4 && beyond > 0, "{tally:?}, {beyond}");
}

/// With hand-overs kept, exactly those reorderings are looked at in which atomic reads and reads of what one lock protects see the
/// write that they saw: fewer than the synchronisation allows, and all that keep every read.
#[test]
fn hand_overs_are_kept_and_nothing_else() {
    let mut tally = Tally::default();
    let (mut fewer, mut more) = (0, 0);
    for (name, shape) in shapes().into_iter().filter(|(name, _)| *name != "sizes") {
        for seed in 0..cases(60) {
            let events = 12 + 2 * (seed % 6);
            let trace = generate(&Shape { events, variables: 2, failures: false, ..shape.clone() }, seed);
            let Some(expected) = Naive::keeping_hand_overs(&trace, STATES_MAX).enumerate() else { continue };
            tally.traces += 1;
            tally.races += expected.races.len();
            tally.stuck += u64::from(expected.stuck);
            let careful = Options { keeps: Keeps::HandOvers, ..Options::default() };
            for options in [
                careful.clone(),
                Options { closure: false, ..careful.clone() },
                Options { reductions: Reductions::NONE, ..careful.clone() },
            ] {
                let prediction = predict(&trace, &options);
                let what = format!("{name}, seed {seed}, {options:?}");
                if !prediction.program.keeps_reads {
                    continue;
                }
                assert_eq!(races_of(&trace, &prediction), expected.races, "races of {what}");
                assert_eq!(prediction.verdict.stuck, expected.stuck, "stuck: {what}");
            }
            let all = races_of(&trace, &predict(&trace, &Options { atomics: false, ..Options::default() }));
            let sound =
                races_of(&trace, &predict(&trace, &Options { level: Level::Sound, ..Options::default() }));
            assert!(expected.races.is_subset(&all), "{name}, seed {seed}: the synchronisation allows them");
            assert!(
                sound.is_subset(&expected.races),
                "{name}, seed {seed}: what keeps all reads keeps these"
            );
            fewer += usize::from(expected.races.len() < all.len());
            more += usize::from(sound.len() < expected.races.len());
        }
    }
    println!(
        "{tally:?}, {fewer} with fewer races than without, {more} with more than when all reads are kept"
    );
    assert!(tally.traces >= cases(60) * 6 && fewer > 0 && more > 0, "{tally:?}, {fewer}, {more}");
}
