//! Race detectors against their definitions, and the relations between them that the papers prove.

mod common;

use common::{Edges, HB, Naive, SHB, Set, cases, conflict, plain, run, sections, shapes};
use raddle_detect::detectors::djit::Djit;
use raddle_detect::detectors::eraser::Eraser;
use raddle_detect::detectors::fasttrack::FastTrack;
use raddle_detect::detectors::goldilocks::Goldilocks;
use raddle_detect::detectors::hb11::Hb11;
use raddle_detect::detectors::racetrack::RaceTrack;
use raddle_detect::detectors::shb::Shb;
use raddle_detect::detectors::syncp::Syncp;
use raddle_detect::detectors::wcp::Wcp;
use raddle_detect::race::Races;
use raddle_trace::generate::{Shape, generate};
use raddle_trace::{
    AccessFlags, Addr, AtomicKind, ContextIx, Event, LocationIx, MemoryTrace, ObjectId, Op, Order, ThreadIx,
};
use std::collections::{BTreeMap, BTreeSet};

fn positions(races: &Races) -> BTreeSet<u64> {
    races.all().iter().map(|&(position, _)| position).collect()
}

fn seconds(races: &[(usize, usize)]) -> BTreeSet<u64> {
    races.iter().map(|&(_, second)| second as u64).collect()
}

/// First racing access of each variable, by its first byte. Only for shapes without mixed sizes, where the two agree.
fn firsts(races: &Races) -> BTreeSet<u64> {
    let mut first = BTreeMap::new();
    for &(position, var) in races.all() {
        first.entry(var).or_insert(position);
    }
    first.into_values().collect()
}

fn naive_firsts(trace: &MemoryTrace, races: &[(usize, usize)]) -> BTreeSet<u64> {
    let mut first: BTreeMap<u64, u64> = BTreeMap::new();
    for &(_, second) in races {
        let addr = plain(&trace.events[second]).expect("an access").0;
        let entry = first.entry(addr).or_insert(second as u64);
        *entry = (*entry).min(second as u64);
    }
    first.into_values().collect()
}

fn for_each_trace(usual: u64, mut check: impl FnMut(&MemoryTrace, &Shape, &str)) {
    for (number, shape) in shapes().iter().enumerate() {
        for seed in 0..cases(usual) {
            check(&generate(shape, seed), shape, &format!("shape {number}, seed {seed}"));
        }
    }
}

#[test]
fn djit_is_happens_before() {
    let mut found = 0;
    for_each_trace(100, |trace, _, case| {
        let mut djit = Djit::keep_all();
        run(trace, &mut djit);
        let naive = Naive::new(trace, HB).races();
        assert_eq!(positions(djit.races()), seconds(&naive), "{case}");
        found += naive.len();
    });
    assert!(found > 1000);
}

#[test]
fn fasttrack_and_goldilocks_find_the_first_race_of_each_variable() {
    for_each_trace(100, |trace, shape, case| {
        if shape.mixed_sizes {
            return;
        }
        let naive = naive_firsts(trace, &Naive::new(trace, HB).races());
        let mut djit = Djit::keep_all();
        run(trace, &mut djit);
        assert_eq!(firsts(djit.races()), naive, "{case}");
        let mut fasttrack = FastTrack::keep_all();
        run(trace, &mut fasttrack);
        assert_eq!(firsts(fasttrack.races()), naive, "fasttrack, {case}");
        let mut goldilocks = Goldilocks::keep_all();
        run(trace, &mut goldilocks);
        assert_eq!(firsts(goldilocks.races()), naive, "goldilocks, {case}");
    });
}

/// With accesses of different sizes the first race of the whole trace is still found at the same place.
#[test]
fn mixed_sizes_agree_on_the_first_race() {
    let shape = Shape { mixed_sizes: true, ..Shape::everything(4, 150) };
    for seed in 0..cases(100) {
        let trace = generate(&shape, seed);
        let naive = seconds(&Naive::new(&trace, HB).races()).first().copied();
        let mut fasttrack = FastTrack::keep_all();
        run(&trace, &mut fasttrack);
        assert_eq!(positions(fasttrack.races()).first().copied(), naive, "seed {seed}");
        let mut goldilocks = Goldilocks::keep_all();
        run(&trace, &mut goldilocks);
        assert_eq!(positions(goldilocks.races()).first().copied(), naive, "seed {seed}");
    }
}

/// Many short-lived threads: slots are reused, and the verdicts stay.
#[test]
fn slots_of_ended_threads_can_be_reused() {
    let shape = Shape { end_percent: 40, threads: 12, ..Shape::locks_only(12, 2, 3, 200) };
    for seed in 0..cases(60) {
        let trace = generate(&shape, seed);
        let mut djit = Djit::keep_all();
        run(&trace, &mut djit);
        let naive = Naive::new(&trace, HB).races();
        assert_eq!(positions(djit.races()), seconds(&naive), "seed {seed}");
    }
}

#[test]
fn shb_is_schedulable_happens_before() {
    for_each_trace(100, |trace, _, case| {
        let mut shb = Shb::keep_all();
        run(trace, &mut shb);
        let naive = Naive::new(trace, SHB).races();
        assert_eq!(positions(shb.races()), seconds(&naive), "{case}");
    });
}

/// The relation of the definition, by iteration to the fixed point.
fn naive_wcp(trace: &MemoryTrace) -> BTreeSet<u64> {
    let count = trace.events.len();
    let happens = Naive::new(trace, HB);
    let certain = Naive::new(trace, Edges { mutexes: false, ..HB });
    let sections: Vec<_> = sections(trace).into_iter().filter(|section| !section.rwlock).collect();
    let inside = |section: &common::Section, event: usize| {
        event == section.acquire || Some(event) == section.release || section.contains(event, trace)
    };
    // before[e] = events that are <wcp e.
    let mut before: Vec<Set> = vec![Set::default(); count];
    for early in &sections {
        let Some(release) = early.release else { continue };
        for late in sections.iter().filter(|late| late.lock == early.lock && late.acquire > release) {
            for event in (0..count).filter(|&event| late.contains(event, trace)) {
                let conflicts = |other: usize| conflict(&trace.events[other], &trace.events[event]);
                if (0..count).any(|other| early.contains(other, trace) && conflicts(other)) {
                    before[event].insert(release);
                }
            }
        }
    }
    loop {
        let old = before.clone();
        for early in &sections {
            let Some(first) = early.release else { continue };
            for late in sections.iter().filter(|late| late.lock == early.lock && late.acquire > first) {
                let Some(second) = late.release else { continue };
                let ordered = (0..count).filter(|&event| inside(late, event)).any(|event| {
                    (0..count).any(|other| inside(early, other) && before[event].contains(other))
                });
                if ordered {
                    before[second].insert(first);
                }
            }
        }
        for event in 0..count {
            for middle in 0..event {
                if happens.before[event].contains(middle) {
                    let weak = before[middle].clone();
                    before[event].add_all(&weak);
                }
                if before[event].contains(middle) {
                    before[event].add_all(&happens.before[middle]);
                }
            }
        }
        if before == old {
            break;
        }
    }
    let mut racy = BTreeSet::new();
    for second in 0..count {
        for first in 0..second {
            let ordered = before[second].contains(first) || certain.before[second].contains(first);
            if conflict(&trace.events[first], &trace.events[second]) && !ordered {
                racy.insert(second as u64);
            }
        }
    }
    racy
}

#[test]
fn wcp_is_weak_causal_precedence() {
    let mut more_than_hb = 0;
    for_each_trace(40, |trace, _, case| {
        let mut wcp = Wcp::keep_all();
        run(trace, &mut wcp);
        let naive = naive_wcp(trace);
        assert_eq!(positions(wcp.races()), naive, "{case}");
        let mut djit = Djit::keep_all();
        run(trace, &mut djit);
        more_than_hb += usize::from(positions(djit.races()).len() < naive.len());
    });
    assert!(more_than_hb > 0, "wcp should sometimes predict what happens-before does not see");
}

#[test]
fn the_papers_inclusions_hold() {
    for_each_trace(200, |trace, _, case| {
        let (mut djit, mut shb) = (Djit::keep_all(), Shb::keep_all());
        let (mut wcp, mut syncp) = (Wcp::keep_all(), Syncp::every_event());
        run(trace, &mut djit);
        run(trace, &mut shb);
        run(trace, &mut wcp);
        run(trace, &mut syncp);
        let (hb, shb, wcp) = (positions(djit.races()), positions(shb.races()), positions(wcp.races()));
        let syncp: BTreeSet<u64> = syncp.races().iter().map(|race| race.second).collect();
        assert_eq!(hb.first(), shb.first(), "the first hb race is an shb race: {case}");
        assert!(shb.is_subset(&hb), "shb within hb: {case}");
        assert!(hb.is_subset(&wcp), "hb within wcp: {case}");
        assert!(shb.is_subset(&syncp), "shb within syncp: {case}");
    });
}

/// Eraser by its description: which accesses count, and what locks they have in common.
fn naive_eraser(trace: &MemoryTrace, ownership: bool) -> BTreeSet<u64> {
    let sections = sections(trace);
    let mut accesses: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, event) in trace.events.iter().enumerate() {
        if let Some((addr, ..)) = plain(event) {
            accesses.entry(addr).or_default().push(index);
        }
    }
    let mut reported = BTreeSet::new();
    for list in accesses.values() {
        let thread = |place: usize| trace.events[list[place]].thread;
        // The first access by another thread than the owner; with ownership, by another than the second owner.
        let change = |from: usize| (from..list.len()).find(|&place| thread(place) != thread(from));
        let Some(mut start) = change(0) else { continue };
        if ownership {
            let Some(next) = change(start) else { continue };
            start = next;
        }
        for end in start..list.len() {
            let counted = &list[start..=end];
            let written = counted.iter().any(|&index| plain(&trace.events[index]).unwrap().2);
            let common = sections.iter().map(|section| section.lock).any(|lock| {
                counted.iter().all(|&index| {
                    let write = plain(&trace.events[index]).unwrap().2;
                    sections.iter().any(|s| s.lock == lock && !(write && s.read) && s.contains(index, trace))
                })
            });
            if written && !common {
                reported.insert(list[end] as u64);
                break;
            }
        }
    }
    reported
}

#[test]
fn eraser_is_the_lockset_discipline() {
    for_each_trace(60, |trace, shape, case| {
        if shape.mixed_sizes {
            return;
        }
        for ownership in [false, true] {
            let mut eraser = Eraser::keep_all(ownership);
            run(trace, &mut eraser);
            assert_eq!(positions(eraser.races()), naive_eraser(trace, ownership), "{ownership}, {case}");
        }
    });
}

fn naive_racetrack(trace: &MemoryTrace) -> BTreeSet<u64> {
    let unlocked = Edges { mutexes: false, ..HB };
    let mut naive = Naive::new(trace, unlocked);
    // Read-write locks do not order either: rebuild without any lock edges by dropping the lock operations.
    let mut bare = trace.clone();
    for event in &mut bare.events {
        if matches!(event.op, Op::Lock { .. } | Op::ReadLock { .. } | Op::Unlock { .. }) {
            event.op = Op::Yield;
        }
    }
    let bare_naive = Naive::new(&bare, unlocked);
    naive.before = bare_naive.before;
    let sections = sections(trace);
    let held = |index: usize| -> BTreeSet<u64> {
        let write = plain(&trace.events[index]).unwrap().2;
        let holding = sections.iter().filter(|s| !(write && s.read) && s.contains(index, trace));
        holding.map(|s| s.lock.0).collect()
    };
    let mut locks: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut reported = BTreeSet::new();
    for second in 0..trace.events.len() {
        let Some((addr, ..)) = plain(&trace.events[second]) else { continue };
        let earlier = (0..second).filter(|&first| plain(&trace.events[first]).is_some_and(|a| a.0 == addr));
        let concurrent: Vec<usize> = earlier.filter(|&first| !naive.before[second].contains(first)).collect();
        let mine = held(second);
        let lockset = match locks.get(&addr) {
            Some(set) if !concurrent.is_empty() => set.intersection(&mine).copied().collect(),
            _ => mine,
        };
        // The threadset forgets a thread's accesses when somebody who knows its last one accesses the variable.
        let accesses: Vec<usize> = (0..second)
            .filter(|&index| plain(&trace.events[index]).is_some_and(|access| access.0 == addr))
            .collect();
        let forgotten = |first: usize| {
            let owner = trace.events[first].thread;
            accesses.iter().filter(|&&k| k > first && trace.events[k].thread != owner).any(|&k| {
                let last = accesses.iter().filter(|&&j| j < k && trace.events[j].thread == owner).max();
                last.is_some_and(|&last| naive.before[k].contains(last))
            })
        };
        let conflicts = concurrent
            .iter()
            .any(|&first| !forgotten(first) && conflict(&trace.events[first], &trace.events[second]));
        if conflicts && lockset.is_empty() {
            reported.insert(second as u64);
        }
        locks.insert(addr, lockset);
    }
    reported
}

fn racetrack_equals_its_twin(trace: &MemoryTrace, case: &str) {
    let mut racetrack = RaceTrack::keep_all();
    run(trace, &mut racetrack);
    assert_eq!(positions(racetrack.races()), naive_racetrack(trace), "{case}");
}

#[test]
fn racetrack_is_threadsets_and_locksets() {
    for_each_trace(60, |trace, shape, case| {
        if !shape.mixed_sizes {
            racetrack_equals_its_twin(trace, case);
        }
    });
}

/// The writes of an ended thread are not those of the thread that continues in its slot (found at this seed).
#[test]
fn racetrack_keeps_threads_of_one_slot_apart() {
    racetrack_equals_its_twin(&generate(&shapes()[1], 3473), "shape 1, seed 3473");
    let shape = Shape { end_percent: 40, ..Shape::locks_only(8, 2, 3, 120) };
    for seed in 0..cases(60) {
        racetrack_equals_its_twin(&generate(&shape, seed), &format!("short lives, seed {seed}"));
    }
}

/// C11's happens-before from its axioms: release sequences along the modification order, and fences.
fn naive_hb11(trace: &MemoryTrace) -> BTreeSet<u64> {
    let events = &trace.events;
    // Everything but atomics and fences orders as usual.
    let mut bare = trace.clone();
    for event in &mut bare.events {
        if matches!(event.op, Op::Atomic { .. } | Op::Fence { .. }) {
            event.op = Op::Yield;
        }
    }
    let atomic = |index: usize| match events[index].op {
        Op::Atomic { addr, kind, order, .. } => Some((addr, kind, order)),
        _ => None,
    };
    // Is `member` in the release sequence headed by `head`?
    let in_sequence = |head: usize, member: usize| {
        let (addr, ..) = atomic(head).unwrap();
        (head + 1..=member).all(|index| match atomic(index) {
            Some((other, kind, _)) if other == addr && kind.writes() => {
                events[index].thread == events[head].thread || kind == raddle_trace::AtomicKind::Rmw
            }
            _ => true,
        })
    };
    let fence = |index: usize| match events[index].op {
        Op::Fence { order } => Some(order),
        _ => None,
    };
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for load in 0..events.len() {
        let Some((addr, kind, order)) = atomic(load) else { continue };
        if !kind.reads() {
            continue;
        }
        let stores = |index: &usize| atomic(*index).is_some_and(|(a, k, _)| a == addr && k.writes());
        let Some(store) = (0..load).rev().find(stores) else { continue };
        let mut sources = Vec::new();
        for head in (0..=store).filter(stores).filter(|&head| in_sequence(head, store)) {
            let (_, _, order) = atomic(head).unwrap();
            if order.releases() {
                sources.push(head);
            }
            let before = |index: &usize| events[*index].thread == events[head].thread;
            sources
                .extend((0..head).filter(before).filter(|&f| fence(f).is_some_and(|order| order.releases())));
        }
        let mut targets = Vec::new();
        if order.acquires() {
            targets.push(load);
        }
        let after = |index: &usize| events[*index].thread == events[load].thread;
        let later = (load + 1..events.len()).filter(after);
        targets.extend(later.filter(|&f| fence(f).is_some_and(|order| order.acquires())));
        for &source in &sources {
            edges.extend(targets.iter().map(|&target| (source, target)));
        }
    }
    let base = Naive::new(&bare, HB);
    let mut before: Vec<Set> = Vec::new();
    for index in 0..events.len() {
        let mut set = Set::default();
        for earlier in 0..index {
            if base.before[index].contains(earlier) || edges.contains(&(earlier, index)) {
                set.insert(earlier);
                let more = before[earlier].clone();
                set.add_all(&more);
            }
        }
        before.push(set);
    }
    let bytes = |index: usize| match events[index].op {
        Op::Atomic { addr, size, kind, .. } => Some((addr.0, addr.0 + u64::from(size), kind.writes(), true)),
        _ => plain(&events[index]).map(|(from, to, write)| (from, to, write, false)),
    };
    let mut racy = BTreeSet::new();
    for second in 0..events.len() {
        for first in 0..second {
            let (Some(a), Some(b)) = (bytes(first), bytes(second)) else { continue };
            let conflict = a.0 < b.1 && b.0 < a.1 && (a.2 || b.2) && !(a.3 && b.3);
            if conflict && events[first].thread != events[second].thread && !before[second].contains(first) {
                racy.insert(second as u64);
            }
        }
    }
    racy
}

#[test]
fn hb11_is_happens_before_of_c11() {
    let shape = Shape {
        other_percent: 70,
        lock_percent: 5,
        atomics: 2,
        weak_orders: true,
        ..Shape::locks_only(3, 1, 3, 90)
    };
    let mut different = 0;
    for seed in 0..cases(200) {
        let mut trace = generate(&shape, seed);
        if seed % 2 == 0 {
            // Plain accesses to atomic memory conflict with the atomic ones.
            for event in &mut trace.events {
                if let Op::Read { addr, .. } | Op::Write { addr, .. } = &mut event.op
                    && addr.0 == 8
                {
                    addr.0 = 8 * 4;
                }
            }
        }
        let mut hb11 = Hb11::keep_all();
        run(&trace, &mut hb11);
        assert_eq!(positions(hb11.races()), naive_hb11(&trace), "seed {seed}");
        let mut djit = Djit::keep_all();
        run(&trace, &mut djit);
        different += usize::from(positions(hb11.races()) != positions(djit.races()));
    }
    assert!(different > 20, "weak orders should matter");
}

/// What makes `unordered` right for all of the family: their order contains that of C and C++11.
#[test]
fn what_the_others_find_is_unordered_for_hb11_too() {
    let mut found = 0;
    let weak = Shape { atomics: 2, weak_orders: true, ..Shape::everything(4, 120) };
    for seed in 0..cases(200) {
        for shape in [&weak, &Shape::everything(4, 120)] {
            let trace = generate(shape, seed);
            let (mut hb11, mut djit) = (Hb11::keep_all(), Djit::keep_all());
            let (mut fasttrack, mut goldilocks) = (FastTrack::keep_all(), Goldilocks::keep_all());
            run(&trace, &mut hb11);
            run(&trace, &mut djit);
            run(&trace, &mut fasttrack);
            run(&trace, &mut goldilocks);
            let exact = positions(hb11.races());
            for others in [djit.races(), fasttrack.races(), goldilocks.races()] {
                assert!(positions(others).is_subset(&exact), "seed {seed}");
                found += positions(others).len();
            }
        }
    }
    assert!(found > 1000, "{found}");
}

/// A compiler asks whether a function-local static is made by an acquire load of its guard: no operation of its own.
#[test]
fn the_guard_of_a_static_orders_for_all() {
    let mut trace = MemoryTrace { tables: Default::default(), events: Vec::new() };
    let other = trace.tables.add_thread(Some(ThreadIx::MAIN));
    let (guard, value) = (Addr(0x100), Addr(0x108));
    let load = |addr| Op::Atomic {
        addr,
        size: 1,
        kind: AtomicKind::Load,
        order: Order::Acquire,
        read: 1,
        written: 0,
    };
    let plain = AccessFlags::default();
    for (thread, op) in [
        (ThreadIx::MAIN, Op::Fork { child: other }),
        (ThreadIx::MAIN, Op::OnceBegin { once: ObjectId(guard.0) }),
        (ThreadIx::MAIN, Op::Write { addr: value, size: 8, flags: plain }),
        (ThreadIx::MAIN, Op::OnceEnd { once: ObjectId(guard.0) }),
        (other, load(guard)),
        (other, Op::Read { addr: value, size: 8, flags: plain }),
    ] {
        trace.events.push(Event {
            thread,
            location: LocationIx::UNKNOWN,
            context: ContextIx::ROOT,
            kept_calls: 0,
            op,
        });
    }
    assert!(run(&trace, &mut Hb11::default()).is_empty());
    assert!(run(&trace, &mut Djit::default()).is_empty());
    assert!(run(&trace, &mut FastTrack::default()).is_empty());
    assert!(run(&trace, &mut Goldilocks::default()).is_empty());
    assert!(run(&trace, &mut Shb::default()).is_empty());
    assert!(run(&trace, &mut Syncp::new()).is_empty());
    trace.events.remove(4);
    assert_eq!(run(&trace, &mut Djit::default()).len(), 1);
}
