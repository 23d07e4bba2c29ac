//! Detectors of atomicity violations and high-level races against their definitions.

mod common;

use common::{Section, cases, plain, run, sections};
use raddle_detect::detectors::aerodrome::Aerodrome;
use raddle_detect::detectors::atomicsets::{AtomicSetSerialisability, AtomicSets};
use raddle_detect::detectors::atomizer::Atomizer;
use raddle_detect::detectors::avio::Avio;
use raddle_detect::detectors::correlated::{Correlated, Thresholds};
use raddle_detect::detectors::velodrome::Velodrome;
use raddle_detect::detectors::views::Views;
use raddle_detect::region::Regions;
use raddle_trace::generate::{Shape, generate};
use raddle_trace::{MemoryTrace, Op, ThreadIx};
use std::collections::{BTreeMap, BTreeSet};

fn shapes() -> Vec<Shape> {
    vec![
        Shape { regions: true, other_percent: 25, lock_percent: 25, ..Shape::locks_only(3, 2, 3, 50) },
        Shape { regions: true, other_percent: 20, ..Shape::locks_only(2, 1, 4, 30) },
        Shape { regions: true, ..Shape::everything(4, 90) },
        Shape { regions: true, mixed_sizes: true, ..Shape::everything(3, 60) },
    ]
}

fn regions() -> [Regions; 2] {
    [Regions::Marked, Regions::CriticalSections]
}

/// The transaction of each event: events of one region have the same number, others their own.
fn transactions(trace: &MemoryTrace, regions: &Regions) -> Vec<usize> {
    let mut depth: BTreeMap<ThreadIx, (u32, usize)> = BTreeMap::new();
    let mut result = Vec::new();
    for (index, event) in trace.events.iter().enumerate() {
        let (depth, begin) = depth.entry(event.thread).or_default();
        let marked = matches!(regions, Regions::Marked);
        let (enters, leaves) = match event.op {
            Op::AtomicBegin { .. } => (marked, false),
            Op::AtomicEnd { .. } => (false, marked),
            Op::Lock { .. } | Op::ReadLock { .. } => (!marked, false),
            Op::Unlock { .. } => (false, !marked),
            _ => (false, false),
        };
        if *depth == 0 {
            *begin = index;
        }
        result.push(*begin);
        if enters {
            *depth += 1;
        }
        if leaves {
            *depth = depth.saturating_sub(1);
        }
    }
    result
}

/// Is there a cycle in the graph of all conflicts between transactions?
fn naive_unserialisable(trace: &MemoryTrace, regions: &Regions) -> bool {
    let transaction = transactions(trace, regions);
    let sections = sections(trace);
    let count = trace.events.len();
    let mut edges: BTreeSet<(usize, usize)> = BTreeSet::new();
    let channel = |op: &Op| -> Option<(bool, u64, bool, bool)> {
        Some(match *op {
            Op::Signal { cond } | Op::Broadcast { cond } => (false, cond.0, true, false),
            Op::Wait { cond, .. } => (false, cond.0, false, true),
            Op::BarrierEnter { barrier } => (false, barrier.0, true, false),
            Op::BarrierExit { barrier } => (false, barrier.0, false, true),
            Op::SemPost { sem } => (false, sem.0, true, false),
            Op::SemWait { sem } => (false, sem.0, false, true),
            Op::OnceEnd { once } => (false, once.0, true, false),
            Op::OncePassed { once } => (false, once.0, false, true),
            Op::Atomic { addr, kind, .. } => (true, addr.0, kind.writes(), kind.reads()),
            _ => return None,
        })
    };
    for late in 0..count {
        for early in 0..late {
            let (a, b) = (&trace.events[early], &trace.events[late]);
            let conflict = common::conflict(a, b)
                || a.thread == b.thread
                || matches!(a.op, Op::Fork { child } if child == b.thread)
                || matches!(b.op, Op::Join { child } if child == a.thread)
                || matches!((channel(&a.op), channel(&b.op)),
                    (Some((m, x, true, _)), Some((n, y, _, true))) if (m, x) == (n, y))
                || lock_conflict(&sections, early, late);
            if conflict && transaction[early] != transaction[late] {
                edges.insert((transaction[early], transaction[late]));
            }
        }
    }
    // Remove sources until none is left; what remains has a cycle.
    let mut nodes: BTreeSet<usize> = transaction.iter().copied().collect();
    loop {
        let source = nodes.iter().copied().find(|node| !edges.iter().any(|(_, to)| to == node));
        let Some(source) = source else { break };
        nodes.remove(&source);
        edges.retain(|(from, _)| *from != source);
    }
    !nodes.is_empty()
}

fn lock_conflict(sections: &[Section], early: usize, late: usize) -> bool {
    let first = sections.iter().find(|section| section.release == Some(early));
    let second = sections.iter().find(|section| section.acquire == late);
    matches!((first, second), (Some(a), Some(b)) if a.lock == b.lock && !(a.read && b.read))
}

#[test]
fn velodrome_and_aerodrome_decide_serialisability() {
    let (mut yes, mut no) = (0, 0);
    for (number, shape) in shapes().iter().enumerate() {
        for seed in 0..cases(100) {
            let trace = generate(shape, seed);
            for kind in regions() {
                let naive = naive_unserialisable(&trace, &kind);
                let mut velodrome = Velodrome::new(kind.clone());
                run(&trace, &mut velodrome);
                let case = format!("shape {number}, seed {seed}, {kind:?}");
                assert_eq!(!velodrome.violations().is_empty(), naive, "velodrome, {case}");
                let mut aerodrome = Aerodrome::new(kind.clone());
                run(&trace, &mut aerodrome);
                assert_eq!(!aerodrome.violations().is_empty(), naive, "aerodrome, {case}");
                *if naive { &mut yes } else { &mut no } += 1;
            }
        }
    }
    assert!(yes > 50 && no > 50, "{yes} unserialisable, {no} serialisable");
}

/// Dead nodes are collected: a long trace does not keep a node for each event.
#[test]
fn velodrome_forgets_what_is_over() {
    let shape = Shape { regions: true, other_percent: 20, ..Shape::locks_only(4, 2, 8, 20_000) };
    let mut velodrome = Velodrome::new(Regions::Marked);
    run(&generate(&shape, 1), &mut velodrome);
    assert!(velodrome.live_max() < 2_000, "{} nodes alive", velodrome.live_max());
}

fn held_at(sections: &[Section], trace: &MemoryTrace, index: usize, write: bool) -> BTreeSet<u64> {
    let holding = sections.iter().filter(|s| !(write && s.read) && s.contains(index, trace));
    holding.map(|section| section.lock.0).collect()
}

/// Does the lockset discipline call the access racy, looking at all accesses up to it?
fn naive_racy(trace: &MemoryTrace, sections: &[Section], index: usize) -> bool {
    let (addr, ..) = plain(&trace.events[index]).unwrap();
    let list: Vec<usize> =
        (0..=index).filter(|&i| plain(&trace.events[i]).is_some_and(|access| access.0 == addr)).collect();
    let owner = trace.events[list[0]].thread;
    let Some(start) = list.iter().position(|&i| trace.events[i].thread != owner) else { return false };
    let counted = &list[start..];
    let write = |i: usize| plain(&trace.events[i]).unwrap().2;
    let mut sets = counted.iter().map(|&i| held_at(sections, trace, i, write(i)));
    let first = sets.next().unwrap();
    let common = sets.fold(first, |common, set| common.intersection(&set).copied().collect());
    counted.iter().any(|&i| write(i)) && common.is_empty()
}

#[test]
fn atomizer_is_reduction() {
    let mut found = 0;
    for (number, shape) in shapes().iter().enumerate().filter(|(_, shape)| !shape.mixed_sizes) {
        for seed in 0..cases(60) {
            let trace = generate(shape, seed);
            let sections = sections(&trace);
            let transaction = transactions(&trace, &Regions::Marked);
            let mut words: BTreeMap<usize, Vec<(usize, char)>> = BTreeMap::new();
            for (index, event) in trace.events.iter().enumerate() {
                let begin = transaction[index];
                if !matches!(trace.events[begin].op, Op::AtomicBegin { .. }) {
                    continue;
                }
                let letter = match event.op {
                    Op::Lock { .. } | Op::ReadLock { .. } => 'R',
                    Op::Unlock { .. } => 'L',
                    Op::Atomic { .. } => 'N',
                    Op::Read { .. } | Op::Write { .. } if naive_racy(&trace, &sections, index) => 'N',
                    _ => 'B',
                };
                words.entry(begin).or_default().push((index, letter));
            }
            // The first letter at which no word of the form R* N? L* (with B anywhere) can go on.
            let mut expected = BTreeSet::new();
            for word in words.values() {
                for end in 1..=word.len() {
                    let letters: String =
                        word[..end].iter().map(|(_, letter)| *letter).filter(|&l| l != 'B').collect();
                    let rest = letters.trim_start_matches('R');
                    let rest = rest.strip_prefix('N').unwrap_or(rest);
                    if !rest.trim_start_matches('L').is_empty() {
                        expected.insert(word[end - 1].0 as u64);
                        break;
                    }
                }
            }
            let mut atomizer = Atomizer::new(Regions::Marked);
            run(&trace, &mut atomizer);
            let violations: BTreeSet<u64> = atomizer.violations().iter().copied().collect();
            assert_eq!(violations, expected, "shape {number}, seed {seed}");
            found += expected.len();
        }
    }
    assert!(found > 50);
}

/// Does an operation on the lock move both ways at this event: only one thread has taken it so far, or each time another
/// lock was held, the same one?
fn naive_protected(sections: &[Section], lock: u64, upto: usize) -> bool {
    let taken: Vec<&Section> =
        sections.iter().filter(|section| section.lock.0 == lock && section.acquire <= upto).collect();
    let threads: BTreeSet<ThreadIx> = taken.iter().map(|section| section.thread).collect();
    let mut held = taken.iter().map(|section| -> BTreeSet<u64> {
        let open = |other: &&Section| {
            other.thread == section.thread
                && !other.read
                && other.lock.0 != lock
                && other.acquire < section.acquire
                && other.release.is_none_or(|release| release > section.acquire)
        };
        sections.iter().filter(open).map(|other| other.lock.0).collect()
    });
    let first = held.next().unwrap_or_default();
    let common = held.fold(first, |common, set| common.intersection(&set).copied().collect());
    threads.len() <= 1 || !common.is_empty()
}

#[test]
fn protected_locks_move_both_ways() {
    let (mut found, mut fewer) = (0, 0);
    let shapes = [
        Shape {
            regions: true,
            other_percent: 20,
            nesting_max: 3,
            lock_percent: 40,
            ..Shape::locks_only(3, 3, 3, 90)
        },
        Shape {
            regions: true,
            other_percent: 25,
            nesting_max: 2,
            lock_percent: 30,
            ..Shape::locks_only(2, 2, 3, 60)
        },
    ];
    for shape in &shapes {
        for seed in 0..cases(150) {
            let trace = generate(shape, seed);
            let sections = sections(&trace);
            let transaction = transactions(&trace, &Regions::Marked);
            let mut state: BTreeMap<usize, (bool, bool)> = BTreeMap::new();
            let mut expected = BTreeSet::new();
            for (index, event) in trace.events.iter().enumerate() {
                let begin = transaction[index];
                if !matches!(trace.events[begin].op, Op::AtomicBegin { .. }) {
                    continue;
                }
                let (committed, violated) = state.entry(begin).or_default();
                let moves = |lock: u64| naive_protected(&sections, lock, index);
                let (right, left, racy) = match event.op {
                    Op::Lock { lock, .. } | Op::ReadLock { lock, .. } => (!moves(lock.0), false, false),
                    Op::Unlock { lock, .. } => (false, !moves(lock.0), false),
                    Op::Read { .. } | Op::Write { .. } => {
                        (false, false, naive_racy(&trace, &sections, index))
                    }
                    _ => (false, false, false),
                };
                if *committed && !*violated && (right || racy) {
                    *violated = true;
                    expected.insert(index as u64);
                }
                *committed |= racy || left;
            }
            let violations = |mut atomizer: Atomizer| -> BTreeSet<u64> {
                run(&trace, &mut atomizer);
                atomizer.violations().iter().copied().collect()
            };
            assert_eq!(violations(Atomizer::with_protected_locks(Regions::Marked)), expected, "seed {seed}");
            found += expected.len();
            fewer += usize::from(violations(Atomizer::new(Regions::Marked)).len() > expected.len());
        }
    }
    assert!(found > 20 && fewer > 20, "{found} found, {fewer} times fewer than without");
}

#[test]
fn avio_finds_the_unserialisable_interleavings() {
    for (number, shape) in shapes().iter().enumerate().filter(|(_, shape)| !shape.mixed_sizes) {
        for seed in 0..cases(60) {
            let trace = generate(shape, seed);
            let access = |index: usize| plain(&trace.events[index]);
            let mut expected = BTreeSet::new();
            for second in 0..trace.events.len() {
                let Some((addr, _, write)) = access(second) else { continue };
                let thread = trace.events[second].thread;
                let same = |index: usize| access(index).is_some_and(|a| a.0 == addr);
                let Some(first) =
                    (0..second).rev().find(|&index| same(index) && trace.events[index].thread == thread)
                else {
                    continue;
                };
                let types = (access(first).unwrap().2, write);
                let bad = |between: usize| {
                    let remote = access(between).unwrap().2;
                    // r W r, w W r, w R w, r W w.
                    matches!(
                        (types.0, remote, types.1),
                        (false, true, false)
                            | (true, true, false)
                            | (true, false, true)
                            | (false, true, true)
                    )
                };
                if (first + 1..second).any(|index| same(index) && bad(index)) {
                    expected.insert((first as u64, second as u64));
                }
            }
            let mut avio = Avio::new(None);
            run(&trace, &mut avio);
            let found: BTreeSet<(u64, u64)> =
                avio.interleavings().map(|i| (i.first.position, i.second.position)).collect();
            assert_eq!(found, expected, "shape {number}, seed {seed}");
        }
    }
}

/// Training silences what good runs do, and nothing else.
#[test]
fn avio_reports_only_broken_invariants() {
    let shape = Shape { locations: 6, ..Shape::locks_only(3, 1, 2, 80) };
    let mut silenced = 0;
    for seed in 0..cases(40) {
        let (good, other) = (generate(&shape, seed), generate(&shape, seed + 1_000_000));
        let mut learner = Avio::new(None);
        run(&good, &mut learner);
        let facts = learner.facts(&good.tables);
        assert!(run(&good, &mut Avio::new(Some(facts.clone()))).is_empty(), "seed {seed}");
        let all = run(&other, &mut Avio::new(None)).len();
        let some = run(&other, &mut Avio::new(Some(facts))).len();
        assert!(some <= all);
        silenced += all - some;
    }
    assert!(silenced > 0);
}

/// All eleven patterns, by trying every choice of events.
#[test]
fn atomicsets_finds_the_eleven_patterns() {
    let patterns = [
        "r0 W0 w0",
        "r0 W0 r0",
        "w0 R0 w0",
        "w0 W0 r0",
        "w0 W0 w0",
        "w0 W0 W1 w1",
        "w0 W1 w1 W0",
        "w0 R0 R1 w1",
        "r0 W0 W1 r1",
        "r0 W1 r1 W0",
        "w0 R1 w1 R0",
    ];
    let shape =
        Shape { regions: true, other_percent: 30, lock_percent: 10, ..Shape::locks_only(2, 1, 2, 30) };
    let mut found_any = 0;
    for seed in 0..cases(150) {
        let trace = generate(&shape, seed);
        let transaction = transactions(&trace, &Regions::Marked);
        let in_unit = |index: usize| matches!(trace.events[transaction[index]].op, Op::AtomicBegin { .. });
        let accesses: Vec<usize> =
            (0..trace.events.len()).filter(|&i| plain(&trace.events[i]).is_some() && in_unit(i)).collect();
        let units: BTreeSet<usize> = accesses.iter().map(|&index| transaction[index]).collect();
        let vars: BTreeSet<u64> = accesses.iter().map(|&i| plain(&trace.events[i]).unwrap().0).collect();
        let mut exists = false;
        for &ours in &units {
            for &theirs in units.iter().filter(|&&u| trace.events[u].thread != trace.events[ours].thread) {
                for &first in &vars {
                    for &second in vars.iter().filter(|&&v| v != first) {
                        for pattern in patterns {
                            exists |= subsequence(
                                &trace,
                                &transaction,
                                &accesses,
                                pattern,
                                ours,
                                theirs,
                                [first, second],
                            );
                        }
                    }
                    if vars.len() == 1 {
                        for pattern in &patterns[..5] {
                            exists |= subsequence(
                                &trace,
                                &transaction,
                                &accesses,
                                pattern,
                                ours,
                                theirs,
                                [first, first],
                            );
                        }
                    }
                }
            }
        }
        let mut detector = AtomicSetSerialisability::new(Regions::Marked, AtomicSets::default());
        run(&trace, &mut detector);
        assert_eq!(!detector.violations().is_empty(), exists, "seed {seed}");
        found_any += usize::from(exists);
    }
    assert!(found_any > 10);
}

fn subsequence(
    trace: &MemoryTrace,
    transaction: &[usize],
    accesses: &[usize],
    pattern: &str,
    ours: usize,
    theirs: usize,
    vars: [u64; 2],
) -> bool {
    let mut wanted = pattern.split(' ').peekable();
    for &index in accesses {
        let Some(element) = wanted.peek() else { break };
        let letter = element.as_bytes()[0] as char;
        let var = vars[usize::from(element.as_bytes()[1] - b'0')];
        let unit = if letter.is_lowercase() { ours } else { theirs };
        let write = letter.eq_ignore_ascii_case(&'w');
        let (addr, _, writes) = plain(&trace.events[index]).unwrap();
        if transaction[index] == unit && addr == var && writes == write {
            wanted.next();
        }
    }
    wanted.peek().is_none()
}

#[test]
fn views_is_view_consistency() {
    let shape = Shape { guarded_percent: 0, nesting_max: 2, ..Shape::locks_only(3, 3, 5, 90) };
    let mut found = 0;
    for seed in 0..cases(150) {
        let trace = generate(&shape, seed);
        let mut views: BTreeMap<usize, BTreeSet<BTreeSet<u64>>> = BTreeMap::new();
        for section in sections(&trace).iter().filter(|section| section.release.is_some()) {
            let inside = (0..trace.events.len()).filter(|&index| section.contains(index, &trace));
            let view: BTreeSet<u64> =
                inside.filter_map(|index| plain(&trace.events[index])).map(|a| a.0).collect();
            if !view.is_empty() {
                views.entry(section.thread.index()).or_default().insert(view);
            }
        }
        let mut expected = BTreeSet::new();
        for (owner, theirs) in &views {
            for max in theirs.iter().filter(|v| !theirs.iter().any(|w| w != *v && v.is_subset(w))) {
                for (other, ours) in views.iter().filter(|(other, _)| *other != owner) {
                    let meets: Vec<BTreeSet<u64>> =
                        ours.iter().map(|v| v.intersection(max).copied().collect()).collect();
                    let chain = meets.iter().all(|a| meets.iter().all(|b| a.is_subset(b) || b.is_subset(a)));
                    if !chain {
                        expected.insert((*owner, *other));
                    }
                }
            }
        }
        let mut detector = Views::default();
        run(&trace, &mut detector);
        let inconsistent: BTreeSet<(usize, usize)> = detector.inconsistent().iter().copied().collect();
        assert_eq!(inconsistent, expected, "seed {seed}");
        found += expected.len();
    }
    assert!(found > 20);
}

#[test]
fn correlated_is_common_use_without_common_lock() {
    let shape = Shape {
        guarded_percent: 100,
        nesting_max: 2,
        lock_percent: 50,
        locations: 10,
        ..Shape::locks_only(3, 2, 4, 300)
    };
    let thresholds = Thresholds { support_min: 3, confidence_min_percent: 30 };
    let mut found = 0;
    for seed in 0..cases(150) {
        let mut trace = generate(&shape, seed);
        let sections = sections(&trace);
        // Only accesses under the variable's own lock are kept: each variable is well protected.
        for index in 0..trace.events.len() {
            let Some((addr, ..)) = plain(&trace.events[index]) else { continue };
            if !held_at(&sections, &trace, index, false).contains(&((addr / 8 - 1) % 2)) {
                trace.events[index].op = Op::Yield;
            }
        }
        // Units: what a thread does until an outermost acquisition of a lock that it took so in the same unit.
        let mut units: Vec<BTreeSet<u64>> = Vec::new();
        let mut current: BTreeMap<ThreadIx, usize> = BTreeMap::new();
        let mut depth: BTreeMap<ThreadIx, u32> = BTreeMap::new();
        let mut taken: BTreeMap<ThreadIx, BTreeSet<u64>> = BTreeMap::new();
        for event in &trace.events {
            let unit = *current.entry(event.thread).or_insert_with(|| {
                units.push(BTreeSet::new());
                units.len() - 1
            });
            let depth = depth.entry(event.thread).or_default();
            match event.op {
                Op::Lock { lock, .. } => {
                    let taken = taken.entry(event.thread).or_default();
                    if *depth == 0 && !taken.insert(lock.0) {
                        current.remove(&event.thread);
                        *taken = BTreeSet::from([lock.0]);
                    }
                    *depth += 1;
                }
                Op::Unlock { .. } => *depth -= 1,
                _ => {
                    if let Some((addr, ..)) = plain(event) {
                        units[unit].insert(addr);
                    }
                }
            }
        }
        let accesses = |addr: u64| -> Vec<usize> {
            (0..trace.events.len())
                .filter(|&i| plain(&trace.events[i]).is_some_and(|a| a.0 == addr))
                .collect()
        };
        let locks = |list: &[usize]| -> BTreeSet<u64> {
            let mut sets = list.iter().map(|&index| held_at(&sections, &trace, index, false));
            let first = sets.next().unwrap();
            sets.fold(first, |common, set| common.intersection(&set).copied().collect())
        };
        let vars: BTreeSet<u64> = trace.events.iter().filter_map(plain).map(|a| a.0).collect();
        let mut expected = 0;
        for &a in &vars {
            for &b in vars.iter().filter(|&&b| b > a) {
                let together = units.iter().filter(|unit| unit.contains(&a) && unit.contains(&b)).count();
                let share =
                    |var| 100 * together >= 30 * units.iter().filter(|unit| unit.contains(&var)).count();
                let (list_a, list_b) = (accesses(a), accesses(b));
                let threads = |list: &[usize]| {
                    list.iter().map(|&i| trace.events[i].thread).collect::<BTreeSet<_>>().len()
                };
                let written = list_a.iter().chain(&list_b).any(|&i| plain(&trace.events[i]).unwrap().2);
                let (locks_a, locks_b) = (locks(&list_a), locks(&list_b));
                let bad = together >= 3
                    && share(a)
                    && share(b)
                    && threads(&list_a) > 1
                    && threads(&list_b) > 1
                    && written
                    && !locks_a.is_empty()
                    && !locks_b.is_empty()
                    && locks_a.is_disjoint(&locks_b);
                expected += usize::from(bad);
            }
        }
        let mut detector = Correlated::new(thresholds, Regions::Marked);
        run(&trace, &mut detector);
        assert_eq!(detector.found().len(), expected, "seed {seed}");
        found += expected;
    }
    assert!(found > 0);
}
