//! Orders, progress and coverage against their definitions.

mod common;

use common::{cases, plain, run};
use raddle_detect::Feed;
use raddle_detect::coverage::{Coverage, Covered, Saturation};
use raddle_detect::detectors::nonprogress::NonProgress;
use raddle_detect::detectors::order::{Order, OrderFacts};
use raddle_detect::training::place_name;
use raddle_findings::Kind;
use raddle_trace::generate::{Shape, generate};
use raddle_trace::{LocationIx, MemoryTrace, ObjectId, Op, ThreadIx};
use std::collections::{BTreeMap, BTreeSet};

/// First executions of places on an object, in the observed order.
fn firsts(trace: &MemoryTrace) -> BTreeMap<u64, Vec<(LocationIx, ThreadIx)>> {
    let mut firsts: BTreeMap<u64, Vec<(LocationIx, ThreadIx)>> = BTreeMap::new();
    for event in &trace.events {
        let Some((addr, ..)) = plain(event) else { continue };
        let list = firsts.entry(addr).or_default();
        if !list.iter().any(|(location, _)| *location == event.location) {
            list.push((event.location, event.thread));
        }
    }
    firsts
}

fn orders(trace: &MemoryTrace) -> BTreeSet<(LocationIx, LocationIx)> {
    let mut pairs = BTreeSet::new();
    for list in firsts(trace).values() {
        for (place, late) in list.iter().enumerate() {
            pairs.extend(
                list[..place].iter().filter(|early| early.1 != late.1).map(|early| (early.0, late.0)),
            );
        }
    }
    pairs
}

#[test]
fn order_learns_and_checks() {
    let shape = Shape { locations: 5, ..Shape::locks_only(3, 1, 2, 40) };
    let mut found = 0;
    for seed in 0..cases(200) {
        let (good, other) = (generate(&shape, seed), generate(&shape, seed + 1_000_000));
        let mut learner = Order::new(None);
        run(&good, &mut learner);
        let learnt = orders(&good);
        assert_eq!(learner.facts(&good.tables).seen.len(), learnt.len(), "seed {seed}");
        let mut facts = OrderFacts::default();
        facts.add(learner.facts(&good.tables));
        let mut checker = Order::new(Some(facts));
        run(&other, &mut checker);
        // The generator gives both traces the same numbers for the same places.
        let required = |a, b| learnt.contains(&(a, b)) && !learnt.contains(&(b, a));
        let expected = orders(&other).iter().filter(|(a, b)| required(*b, *a)).count();
        assert_eq!(checker.violations().len(), expected, "seed {seed}");
        found += expected;
    }
    assert!(found > 20);
}

/// Events of a thread since its last progress, up to and with an event.
fn row(trace: &MemoryTrace, thread: ThreadIx, upto: usize) -> Vec<usize> {
    let mine = (0..=upto).rev().filter(|&event| trace.events[event].thread == thread);
    mine.take_while(|&event| {
        !matches!(
            trace.events[event].op,
            Op::Write { .. } | Op::Fork { .. } | Op::Join { .. } | Op::Start { .. } | Op::End
        )
    })
    .collect()
}

#[test]
fn nonprogress_is_a_long_row_without_progress() {
    let shape = Shape { write_percent: 15, locations: 8, failures: true, ..Shape::locks_only(3, 1, 2, 120) };
    let mut counts = [0; 3];
    for seed in 0..cases(300) {
        let trace = generate(&shape, seed);
        // Some rows are longer, some shorter.
        let bound = 8 + (seed % 24) as usize;
        let fails = |row: &[usize]| row.iter().any(|&e| matches!(trace.events[e].op, Op::LockFailed { .. }));
        let mut expected = BTreeMap::new();
        for (index, event) in trace.events.iter().enumerate() {
            let mine = row(&trace, event.thread, index);
            if mine.len() != bound + 1 {
                continue;
            }
            let partner = (0..trace.tables.threads.len() as u32).map(ThreadIx).any(|other| {
                let theirs = row(&trace, other, index);
                other != event.thread && fails(&theirs) && theirs.len() > bound / 2
            });
            let livelock = partner && fails(&mine);
            // A place is told once.
            expected.entry(event.location).or_insert(livelock);
            counts[usize::from(livelock)] += 1;
        }
        let reports = run(&trace, &mut NonProgress::new(bound as u64, 1_000));
        let told: BTreeMap<_, _> =
            reports.iter().map(|report| (report.parts[0].location, report.kind == Kind::Livelock)).collect();
        assert_eq!(told, expected, "seed {seed}");
        counts[2] += u32::from(told.is_empty());
    }
    assert!(counts.iter().all(|&count| count > 10), "non-progress, livelock, neither: {counts:?}");
}

#[test]
fn starvation_is_a_lock_that_others_keep_taking() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..cases(300) {
        let shape = Shape {
            failures: true,
            requests: seed % 2 == 0,
            lock_percent: 70,
            rwlocks: 1,
            ..Shape::locks_only(3, 1, 2, 120)
        };
        let trace = generate(&shape, seed);
        let bound = 1 + seed % 4;
        let wants = |event: usize| match trace.events[event].op {
            Op::Request { lock, .. } | Op::LockFailed { lock, .. } | Op::ReadLockFailed { lock, .. } => {
                Some(lock)
            }
            _ => None,
        };
        let takes = |event: usize, wanted: ObjectId| match trace.events[event].op {
            Op::Lock { lock, .. } | Op::ReadLock { lock, .. } => lock == wanted,
            _ => false,
        };
        let mut expected = BTreeSet::new();
        for first in 0..trace.events.len() {
            let Some(lock) = wants(first) else { continue };
            let thread = trace.events[first].thread;
            let until = (first..trace.events.len())
                .find(|&event| trace.events[event].thread == thread && takes(event, lock));
            // Readers do not keep a reader out.
            let reads = |event: usize| {
                matches!(
                    trace.events[event].op,
                    Op::ReadLock { .. } | Op::ReadLockFailed { .. } | Op::Request { read: true, .. }
                )
            };
            let turns = (first..until.unwrap_or(trace.events.len()))
                .filter(|&event| trace.events[event].thread != thread && takes(event, lock))
                .filter(|&event| !(reads(first) && reads(event)));
            // Only the first wish since the thread last had the lock counts.
            let earlier = (0..first)
                .rev()
                .filter(|&event| trace.events[event].thread == thread)
                .find(|&event| takes(event, lock) || wants(event) == Some(lock));
            if earlier.is_none_or(|event| takes(event, lock)) && turns.count() as u64 > bound {
                expected.insert(trace.events[first].location);
            }
        }
        let reports = run(&trace, &mut NonProgress::new(1_000_000, bound));
        let told: BTreeSet<_> = reports
            .iter()
            .map(|report| {
                assert_eq!(report.kind, Kind::Starvation);
                report.parts[0].location
            })
            .collect();
        assert_eq!(told, expected, "seed {seed}");
        *if told.is_empty() { &mut no } else { &mut yes } += 1;
    }
    assert!(yes > 10 && no > 10, "{yes} yes, {no} no");
}

fn covered(trace: &MemoryTrace) -> BTreeSet<Covered> {
    let (mut feed, mut coverage) = (Feed::new(), Coverage::new());
    for event in &trace.events {
        coverage.step(&feed.step(event));
    }
    coverage.covered(&trace.tables).into_iter().collect()
}

/// A dependency by its two events; locks and variables are told apart.
#[derive(Clone, Copy)]
struct Pair {
    from: usize,
    to: usize,
    object: (bool, u64),
}

/// All dependencies of a trace: conflicting accesses with no write in between and no later read of the first one's
/// thread, and acquisitions of a lock one after the other. In the order of their second events.
fn dependencies(trace: &MemoryTrace) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for to in 0..trace.events.len() {
        let b = &trace.events[to];
        if let Op::Lock { lock, .. } = b.op {
            let last = (0..to)
                .rev()
                .find(|&e| matches!(trace.events[e].op, Op::Lock { lock: l, .. } if l == lock))
                .filter(|&e| trace.events[e].thread != b.thread);
            pairs.extend(last.map(|from| Pair { from, to, object: (true, lock.0) }));
        }
        for from in 0..to {
            let a = &trace.events[from];
            if !common::conflict(a, b) {
                continue;
            }
            let (addr, _, writes) = plain(a).unwrap();
            let hidden = (from + 1..to).any(|between| {
                plain(&trace.events[between]).is_some_and(|(other, _, write)| {
                    other == addr && (write || !writes && trace.events[between].thread == a.thread)
                })
            });
            if !hidden {
                pairs.push(Pair { from, to, object: (false, addr) });
            }
        }
    }
    pairs
}

/// For each event that takes something over, the last one before it that passed it on, if another thread did.
fn naive_sync_pairs(trace: &MemoryTrace) -> BTreeSet<Covered> {
    let events = &trace.events;
    let name = |event: usize| place_name(&trace.tables, events[event].location);
    let mut pairs = BTreeSet::new();
    for (late, event) in events.iter().enumerate() {
        let mut takes_from = |passes_on: &dyn Fn(usize) -> bool| {
            if let Some(early) = (0..late).rev().find(|&early| passes_on(early))
                && events[early].thread != event.thread
            {
                pairs.insert(Covered::SyncPair(name(early), name(late)));
            }
        };
        if let Op::Lock { lock, .. } | Op::ReadLock { lock, .. } = event.op {
            takes_from(&|e| matches!(events[e].op, Op::Unlock { lock: l, .. } if l == lock));
        }
        if let Some(object) = common::receives(&event.op) {
            takes_from(&|e| common::sends(&events[e].op) == Some(object));
        }
        if let Op::Join { child } = event.op {
            takes_from(&|e| events[e].thread == child);
        }
        if events[..late].iter().all(|earlier| earlier.thread != event.thread) {
            takes_from(&|e| matches!(events[e].op, Op::Fork { child } if child == event.thread));
        }
    }
    pairs
}

/// Not only locks: conditions, barriers, semaphores, atomics, one-time initialisers, forks and joins.
#[test]
fn coverage_counts_all_kinds_of_synchronisation() {
    let shape = Shape { locations: 10, end_percent: 10, ..Shape::everything(4, 80) };
    for seed in 0..cases(200) {
        let trace = generate(&shape, seed);
        let is_pair = |thing: &Covered| matches!(thing, Covered::SyncPair(..));
        let found: BTreeSet<Covered> = covered(&trace).into_iter().filter(is_pair).collect();
        assert_eq!(found, naive_sync_pairs(&trace), "seed {seed}");
    }
}

/// Synchronisation pairs and iRoots of all kinds against their definitions, on traces that are shorter than the window.
#[test]
fn coverage_counts_pairs_and_roots() {
    let shape = Shape { locations: 10, ..Shape::locks_only(3, 2, 2, 36) };
    let mut seen = [0; 6];
    for seed in 0..cases(200) {
        let trace = generate(&shape, seed);
        let name = |event: usize| place_name(&trace.tables, trace.events[event].location);
        let thread = |event: usize| trace.events[event].thread;
        let mut expected = BTreeSet::new();
        expected.extend(naive_sync_pairs(&trace));
        let pairs = dependencies(&trace);
        for new in &pairs {
            expected.insert(Covered::Root(1, vec![name(new.from), name(new.to)]));
            for old in &pairs {
                let same_object = old.object == new.object;
                let four = vec![name(old.from), name(old.to), name(new.from), name(new.to)];
                if thread(old.from) == thread(new.to) && thread(old.to) == thread(new.from) {
                    if same_object && old.to == new.from {
                        let three = vec![name(old.from), name(old.to), name(new.to)];
                        expected.insert(Covered::Root(2, three));
                    } else if !same_object && old.to < new.from {
                        expected.insert(Covered::Root(5, four));
                    }
                } else if thread(old.from) == thread(new.from)
                    && thread(old.to) == thread(new.to)
                    && old.from <= new.from
                    && old.to <= new.to
                    && (old.from, old.to) != (new.from, new.to)
                {
                    expected.insert(Covered::Root(if same_object { 3 } else { 4 }, four));
                }
            }
        }
        let found = covered(&trace);
        for thing in &found {
            match thing {
                Covered::SyncPair(..) => seen[0] += 1,
                Covered::Root(idiom, _) => seen[usize::from(*idiom)] += 1,
            }
        }
        assert_eq!(found, expected, "seed {seed}");
    }
    assert!(seen.iter().all(|&count| count > 20), "each column should be tried: {seen:?}");
}

#[test]
fn coverage_saturates() {
    let shape = Shape { locations: 4, ..Shape::locks_only(2, 1, 1, 60) };
    let mut saturation = Saturation::default();
    for seed in 0..40 {
        saturation.add(covered(&generate(&shape, seed)).into_iter().collect());
    }
    let runs = &saturation.runs;
    assert!(runs.windows(2).all(|pair| pair[0].iter().zip(&pair[1]).all(|(a, b)| a <= b)));
    assert!(runs[39][1] > 0 && runs[39][0] == runs[38][0], "pairs saturate with so few places");
    let svg = saturation.svg();
    assert!(svg.starts_with("<svg") && svg.matches("<polyline").count() == 6);
}
