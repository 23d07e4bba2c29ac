//! `syncp` and `spd` against brute force, and their witnesses against the model of the trace.

mod common;

use common::{FIXED, Naive, Set, cases, conflict, run, shapes};
use raddle_detect::detectors::shb::Shb;
use raddle_detect::detectors::spd::{Limits, Spd, SpdDeadlock};
use raddle_detect::detectors::syncp::Syncp;
use raddle_trace::generate::{Shape, generate};
use raddle_trace::model::{EventIx, Model, ReadsFrom, Rules};
use raddle_trace::{MemoryTrace, Op, Patience, ThreadIx};
use std::collections::BTreeSet;

/// Second accesses of all sync-preserving races, by definition.
fn naive_races(trace: &MemoryTrace) -> BTreeSet<u64> {
    let naive = Naive::new(trace, FIXED);
    let mut racy = BTreeSet::new();
    for second in 0..trace.events.len() {
        for first in 0..second {
            if !conflict(&trace.events[first], &trace.events[second]) {
                continue;
            }
            let mut set = naive.before_unread[first].clone();
            set.add_all(&naive.before_unread[second]);
            if let Some(closure) = naive.closure(set)
                && !closure.contains(first)
                && !closure.contains(second)
            {
                racy.insert(second as u64);
            }
        }
    }
    racy
}

#[test]
fn syncp_finds_exactly_the_sync_preserving_races() {
    let mut found_any = 0;
    for (number, shape) in shapes().iter().enumerate() {
        for seed in 0..cases(60) {
            let trace = generate(shape, seed);
            let mut syncp = Syncp::every_event();
            run(&trace, &mut syncp);
            let found: BTreeSet<u64> = syncp.races().iter().map(|race| race.second).collect();
            assert_eq!(found, naive_races(&trace), "shape {number}, seed {seed}");
            found_any += found.len();
        }
    }
    assert!(found_any > 100, "the shapes should make races");
}

#[test]
fn syncp_witnesses_are_valid_schedules() {
    for (number, shape) in shapes().iter().enumerate() {
        for seed in 0..cases(100) {
            let trace = generate(shape, seed);
            let mut syncp = Syncp::every_event();
            run(&trace, &mut syncp);
            let model = Model::new(&trace, Rules::default());
            for race in syncp.races() {
                let schedule = race.witness.schedule(&trace);
                let (first, second) = (EventIx(race.first as u32), EventIx(race.second as u32));
                if let Err(invalid) = model.check_race(&schedule, first, second) {
                    panic!("shape {number}, seed {seed}, race {race:?}: {invalid}");
                }
            }
        }
    }
}

/// The races of `shb` get their witnesses afterwards, every one of them.
#[test]
fn shb_witnesses_are_valid_schedules() {
    let mut checked = 0;
    for (number, shape) in shapes().iter().enumerate() {
        for seed in 0..cases(60) {
            let trace = generate(shape, seed);
            let mut reports = run(&trace, &mut Shb::default());
            raddle_detect::witness::complete(&mut reports, &trace);
            let model = Model::new(&trace, Rules::default());
            for report in &reports {
                let case = format!("shape {number}, seed {seed}, {report:?}");
                let witness = report.witness.as_ref().unwrap_or_else(|| panic!("no witness: {case}"));
                let [first, second] = [0, 1].map(|part| EventIx(report.parts[part].position as u32));
                if let Err(invalid) = model.check_race(&witness.schedule(&trace), first, second) {
                    panic!("{case}: {invalid}");
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "the shapes should make races, not only {checked}");
}

/// In the usual mode each pair of locations that has a race is found, in at least one of its events.
#[test]
fn syncp_reports_are_among_the_races() {
    for shape in shapes() {
        for seed in 0..cases(60) {
            let trace = generate(&shape, seed);
            let mut all = Syncp::every_event();
            run(&trace, &mut all);
            let mut usual = Syncp::new();
            let reports = run(&trace, &mut usual);
            assert_eq!(reports.is_empty(), all.races().is_empty(), "seed {seed}");
            let racy: BTreeSet<u64> = all.races().iter().map(|race| race.second).collect();
            assert!(usual.races().iter().all(|race| racy.contains(&race.second)), "seed {seed}");
        }
    }
}

fn deadlock_shapes() -> Vec<Shape> {
    let base = Shape { lock_percent: 70, nesting_max: 3, ..Shape::locks_only(3, 3, 2, 60) };
    vec![
        base.clone(),
        Shape { threads: 4, locks: 4, events: 90, ..base.clone() },
        Shape { failures: true, rwlocks: 1, locks: 2, ..base.clone() },
        Shape { lock_percent: 55, nesting_max: 3, ..Shape::everything(4, 100) },
    ]
}

/// Sorted locks of all sync-preserving deadlocks of two and three threads, by definition.
fn naive_deadlocks(trace: &MemoryTrace) -> BTreeSet<Vec<u64>> {
    let naive = Naive::new(trace, FIXED);
    struct Ask {
        event: usize,
        thread: ThreadIx,
        lock: u64,
        held: Vec<u64>,
    }
    let asks: Vec<Ask> = naive
        .sections
        .iter()
        .filter(|section| {
            let op = &trace.events[section.acquire].op;
            matches!(op, Op::Lock { flags, .. } if flags.patience == Patience::Blocking && !flags.rwlock)
        })
        .map(|section| {
            let holding = naive.sections.iter().filter(|other| {
                !other.rwlock && other.lock != section.lock && other.contains(section.acquire, trace)
            });
            let held = holding.map(|other| other.lock.0).collect();
            Ask { event: section.acquire, thread: section.thread, lock: section.lock.0, held }
        })
        .collect();
    let disjoint = |a: &Ask, b: &Ask| a.held.iter().all(|lock| !b.held.contains(lock));
    let mut found = BTreeSet::new();
    let mut try_cycle = |cycle: &[&Ask]| {
        let ok = cycle.iter().enumerate().all(|(place, ask)| {
            let next = cycle[(place + 1) % cycle.len()];
            next.held.contains(&ask.lock)
                && cycle[..place].iter().all(|other| other.thread != ask.thread && disjoint(other, ask))
        });
        if !ok {
            return;
        }
        let mut set = Set::default();
        for ask in cycle {
            set.add_all(&naive.before_unread[ask.event]);
        }
        if let Some(closure) = naive.closure(set)
            && cycle.iter().all(|ask| !closure.contains(ask.event))
        {
            let mut locks: Vec<u64> = cycle.iter().map(|ask| ask.lock).collect();
            locks.sort_unstable();
            found.insert(locks);
        }
    };
    for a in &asks {
        for b in &asks {
            try_cycle(&[a, b]);
            for c in &asks {
                try_cycle(&[a, b, c]);
            }
        }
    }
    found
}

/// Compares with the definition; says how many deadlocks there are.
fn spd_equals_its_twin(trace: &MemoryTrace, case: &str) -> usize {
    let mut spd = Spd::every_cycle(Limits { threads_max: 3, ..Limits::default() });
    let mut feed = raddle_detect::Feed::new();
    for event in &trace.events {
        raddle_detect::Detector::step(&mut spd, &feed.step(event));
    }
    let names = feed.into_names();
    let end = raddle_detect::End { tables: &trace.tables, names: &names, events: 0 };
    raddle_detect::Detector::finish(&mut spd, &end);
    let locks_of = |deadlock: &SpdDeadlock| {
        let mut locks: Vec<u64> =
            deadlock.parts.iter().map(|part| names.address(names.lock(part.1))).collect();
        locks.sort_unstable();
        locks
    };
    let found: BTreeSet<Vec<u64>> = spd.deadlocks().iter().map(locks_of).collect();
    assert_eq!(found, naive_deadlocks(trace), "{case}");
    found.len()
}

#[test]
fn spd_finds_exactly_the_sync_preserving_deadlocks() {
    let mut found = 0;
    for (number, shape) in deadlock_shapes().iter().enumerate() {
        for seed in 0..cases(60) {
            found += spd_equals_its_twin(&generate(shape, seed), &format!("shape {number}, seed {seed}"));
        }
    }
    assert!(found > 20, "the shapes should make deadlocks");
}

/// Two threads that hold the same read-write lock in read mode have no gate in common (found at this seed).
#[test]
fn spd_does_not_take_a_shared_lock_for_a_gate() {
    let shape = &deadlock_shapes()[2];
    assert!(spd_equals_its_twin(&generate(shape, 2532), "shape 2, seed 2532") > 0);
}

#[test]
fn spd_witnesses_end_in_the_deadlock() {
    let mut checked = 0;
    for (number, shape) in deadlock_shapes().iter().enumerate() {
        for seed in 0..cases(200) {
            let trace = generate(shape, seed);
            let mut spd = Spd::new();
            run(&trace, &mut spd);
            let model = Model::new(&trace, Rules { reads_from: ReadsFrom::Same, exact_failures: false });
            for deadlock in spd.deadlocks() {
                let schedule = deadlock.witness.schedule(&trace);
                let threads: Vec<ThreadIx> = deadlock.parts.iter().map(|part| part.0).collect();
                if let Err(invalid) = model.check_deadlock(&schedule, &threads) {
                    panic!("shape {number}, seed {seed}, {deadlock:?}: {invalid}");
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "the shapes should make deadlocks, not only {checked}");
}
