//! Detectors of deadlocks and blocked threads against their definitions.

mod common;

use common::{Edges, Naive, cases, run, sections};
use raddle_detect::detectors::blocked::Blocked;
use raddle_detect::detectors::goodlock::Goodlock;
use raddle_detect::detectors::lockdep::Lockdep;
use raddle_detect::detectors::missedsignal::MissedSignal;
use raddle_detect::detectors::segments::Segments;
use raddle_detect::detectors::spd::Spd;
use raddle_detect::detectors::waitfor::WaitFor;
use raddle_detect::{PartAction, Report, Subject};
use raddle_findings::{Grade, Wait};
use raddle_trace::generate::{Shape, generate};
use raddle_trace::model::{Model, Obstacle, Rules};
use raddle_trace::{MemoryTrace, Op, Patience, ThreadIx};
use std::collections::BTreeSet;

fn shapes() -> Vec<Shape> {
    let base = Shape { lock_percent: 70, nesting_max: 3, ..Shape::locks_only(3, 3, 2, 60) };
    vec![
        base.clone(),
        Shape { threads: 4, locks: 4, events: 90, ..base.clone() },
        Shape { failures: true, rwlocks: 2, locks: 2, ..base.clone() },
        Shape { lock_percent: 55, nesting_max: 3, ..Shape::everything(4, 100) },
    ]
}

/// Locks of each report, sorted.
fn lock_sets(reports: &[Report]) -> BTreeSet<Vec<u64>> {
    let lock = |subject: &Subject| match *subject {
        Subject::Object(lock, _) => lock.0,
        other => panic!("{other:?} is no lock"),
    };
    let sorted = |report: &Report| {
        let mut locks: Vec<u64> = report.objects.iter().map(lock).collect();
        locks.sort_unstable();
        locks
    };
    reports.iter().map(sorted).collect()
}

/// Cycles of two and three requests, with gate locks and modes, by trying all.
fn naive_cycles(trace: &MemoryTrace, ordered: &dyn Fn(usize, usize) -> bool) -> BTreeSet<Vec<u64>> {
    struct Ask {
        event: usize,
        thread: ThreadIx,
        lock: u64,
        read: bool,
        held: Vec<(u64, bool)>,
    }
    let sections = sections(trace);
    let asks: Vec<Ask> = sections
        .iter()
        .filter(|s| match trace.events[s.acquire].op {
            Op::Lock { flags, .. } | Op::ReadLock { flags, .. } => flags.patience == Patience::Blocking,
            _ => false,
        })
        .map(|s| Ask {
            event: s.acquire,
            thread: s.thread,
            lock: s.lock.0,
            read: s.read,
            held: sections
                .iter()
                .filter(|other| other.lock != s.lock && other.contains(s.acquire, trace))
                .map(|other| (other.lock.0, other.read))
                .collect(),
        })
        .collect();
    let gate = |a: &Ask, b: &Ask| {
        ordered(a.event, b.event) || a.held.iter().any(|x| b.held.iter().any(|y| x.0 == y.0 && !(x.1 && y.1)))
    };
    let mut found = BTreeSet::new();
    let mut try_cycle = |cycle: &[&Ask]| {
        let ok = cycle.iter().enumerate().all(|(place, ask)| {
            let next = cycle[(place + 1) % cycle.len()];
            next.held.iter().any(|(lock, read)| *lock == ask.lock && !(*read && ask.read))
                && cycle[..place].iter().all(|other| other.thread != ask.thread && !gate(other, ask))
        });
        if ok {
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

/// Only cycles whose acquisitions forks and joins do not order.
#[test]
fn segments_leaves_out_what_forks_and_joins_order() {
    let (mut found, mut left_out) = (0, 0);
    let edges = Edges { channels: false, mutexes: false, reads_from: false, lives: false };
    for (number, shape) in shapes().iter().enumerate() {
        let shape = Shape { end_percent: 10, threads: 5, ..shape.clone() };
        for seed in 0..cases(60) {
            let trace = generate(&shape, seed);
            let naive = Naive::new(&trace, edges);
            let ordered = |a: usize, b: usize| naive.before[a].contains(b) || naive.before[b].contains(a);
            let all = lock_sets(&run(&trace, &mut Segments::default()));
            let short: BTreeSet<Vec<u64>> = all.iter().filter(|locks| locks.len() <= 3).cloned().collect();
            let expected = naive_cycles(&trace, &ordered);
            assert_eq!(short, expected, "shape {number}, seed {seed}");
            found += expected.len();
            left_out += naive_cycles(&trace, &|_, _| false).len() - expected.len();
        }
    }
    assert!(found > 20 && left_out > 20, "{found} found, {left_out} left out");
}

#[test]
fn goodlock_finds_the_cycles_and_lockdep_too() {
    let mut found = 0;
    for (number, shape) in shapes().iter().enumerate() {
        for seed in 0..cases(60) {
            let trace = generate(shape, seed);
            let all = lock_sets(&run(&trace, &mut Goodlock::default()));
            let short: BTreeSet<Vec<u64>> = all.iter().filter(|locks| locks.len() <= 3).cloned().collect();
            assert_eq!(short, naive_cycles(&trace, &|_, _| false), "shape {number}, seed {seed}");
            let chains = lock_sets(&run(&trace, &mut Lockdep::default()));
            if shape.rwlocks == 0 {
                assert_eq!(chains, all, "shape {number}, seed {seed}");
            } else {
                assert!(chains.is_subset(&all), "shape {number}, seed {seed}");
            }
            found += all.len();
        }
    }
    assert!(found > 100);
}

#[test]
fn spd_deadlocks_are_among_the_cycles_of_goodlock() {
    for (number, shape) in shapes().iter().enumerate() {
        for seed in 0..cases(150) {
            let trace = generate(shape, seed);
            let cycles = lock_sets(&run(&trace, &mut Goodlock::default()));
            let deadlocks = lock_sets(&run(&trace, &mut Spd::new()));
            assert!(deadlocks.is_subset(&cycles), "shape {number}, seed {seed}: {deadlocks:?} {cycles:?}");
        }
    }
}

/// A trace that ends in a deadlock or with blocked threads, against the model: who cannot take any further step?
#[test]
fn what_is_blocked_at_the_end_is_told() {
    let (mut deadlocks, mut blocked) = (0, 0);
    let lock_shape =
        Shape { requests: true, lock_percent: 70, nesting_max: 3, ..Shape::locks_only(3, 3, 2, 60) };
    for seed in 0..cases(300) {
        let trace = generate(&lock_shape, seed);
        // Who asked last and got nothing?
        let mut pending: Vec<(ThreadIx, u64)> = Vec::new();
        for thread in 0..trace.tables.threads.len() as u32 {
            let last = trace.events.iter().rev().find(|event| event.thread == ThreadIx(thread));
            if let Some(Op::Request { lock, .. }) = last.map(|event| event.op) {
                pending.push((ThreadIx(thread), lock.0));
            }
        }
        let sections = sections(&trace);
        let holder =
            |lock: u64| sections.iter().find(|s| s.lock.0 == lock && s.release.is_none()).map(|s| s.thread);
        // Threads from which following "waits for the holder" comes back to them.
        let waits = |thread: ThreadIx| {
            pending.iter().find(|(who, _)| *who == thread).and_then(|(_, lock)| holder(*lock))
        };
        let on_cycle = |thread: ThreadIx| {
            let mut at = waits(thread);
            for _ in 0..pending.len() {
                match at {
                    Some(next) if next == thread => return true,
                    Some(next) => at = waits(next),
                    None => return false,
                }
            }
            false
        };
        let expected: BTreeSet<ThreadIx> = pending.iter().map(|(t, _)| *t).filter(|&t| on_cycle(t)).collect();
        let reports = run(&trace, &mut WaitFor::default());
        let told: BTreeSet<ThreadIx> =
            reports.iter().flat_map(|report| &report.parts).map(|part| part.thread).collect();
        assert_eq!(told, expected, "seed {seed}");
        assert!(reports.iter().all(|report| report.basis.grade() == Grade::Observed));
        for part in reports.iter().flat_map(|report| &report.parts) {
            let &(_, lock) = pending.iter().find(|(who, _)| *who == part.thread).expect("it waits");
            let PartAction::Waits { subject: Subject::Object(told, _), holder: Some(by), .. } = part.action
            else {
                panic!("seed {seed}: {:?}", part.action)
            };
            assert_eq!((told.0, Some(by)), (lock, holder(lock)), "seed {seed}");
            let held: BTreeSet<u64> = sections
                .iter()
                .filter(|s| s.thread == part.thread && s.release.is_none())
                .map(|s| s.lock.0)
                .collect();
            let told: BTreeSet<u64> = part
                .held
                .iter()
                .map(|held| match held.lock {
                    Subject::Object(lock, _) => lock.0,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(told, held, "seed {seed}");
        }
        deadlocks += reports.len();
        // Whoever waits and is not in a cycle waits for a holder that is itself stuck: blocked says so.
        let rest: BTreeSet<ThreadIx> = pending
            .iter()
            .filter(|(t, lock)| !expected.contains(t) && holder(*lock).is_some())
            .map(|(t, _)| *t)
            .collect();
        let reports = run(&trace, &mut Blocked::default());
        let told: BTreeSet<ThreadIx> =
            reports.iter().flat_map(|report| &report.parts).map(|part| part.thread).collect();
        assert_eq!(told, rest, "seed {seed}");
        blocked += rest.len();
    }
    assert!(deadlocks > 5 && blocked > 0, "{deadlocks} deadlocks, {blocked} blocked");
}

/// Conditions: a thread that waits at the end is blocked; if a signal came too early it was missed.
#[test]
fn waits_that_are_never_woken_are_told() {
    let shape = Shape { conditions: 1, other_percent: 40, failures: true, ..Shape::locks_only(3, 1, 2, 40) };
    let mut missed = 0;
    for seed in 0..cases(300) {
        let full = generate(&shape, seed);
        // Cut the trace: the generator wakes everybody in the end.
        let cut = full.events.len() / 2;
        let trace = MemoryTrace { tables: full.tables.clone(), events: full.events[..cut].to_vec() };
        let model = Model::new(&trace, Rules::default());
        let mut waiting: Vec<(ThreadIx, usize)> = Vec::new();
        let mut lost: Option<usize> = None;
        let mut late = BTreeSet::new();
        let mut state = model.start();
        let mut waiters: BTreeSet<ThreadIx> = BTreeSet::new();
        let mut woken = 0_usize;
        for (index, event) in trace.events.iter().enumerate() {
            match event.op {
                Op::WaitBegin { .. } => {
                    waiters.insert(event.thread);
                    waiting.push((event.thread, index));
                }
                Op::Wait { .. } => {
                    waiters.remove(&event.thread);
                    woken = woken.saturating_sub(1);
                    waiting.retain(|(thread, _)| *thread != event.thread);
                }
                Op::WaitFailed { .. } => {
                    waiters.remove(&event.thread);
                    woken = woken.min(waiters.len());
                    waiting.retain(|(thread, _)| *thread != event.thread);
                    if lost.is_some() {
                        late.insert(index as u64);
                    }
                }
                Op::Signal { .. } if woken < waiters.len() => woken += 1,
                Op::Broadcast { .. } if woken < waiters.len() => woken = waiters.len(),
                Op::Signal { .. } | Op::Broadcast { .. } => lost = Some(index),
                _ => {}
            }
            state.step(event.thread).expect("observed");
        }
        for &(thread, index) in &waiting {
            // Blocked for the model too: nothing left, or no signal.
            assert!(matches!(state.obstacle(thread), Some(Obstacle::Finished | Obstacle::NoSignal(_))));
            if lost.is_some_and(|lost| lost < index) {
                late.insert(index as u64);
            }
        }
        let reports = run(&trace, &mut MissedSignal::default());
        let told: BTreeSet<u64> = reports.iter().map(|report| report.parts[1].position).collect();
        assert!(told.is_subset(&late), "seed {seed}: {told:?} {late:?}");
        assert_eq!(told.is_empty(), late.is_empty(), "seed {seed}");
        missed += told.len();
        let blocked = run(&trace, &mut Blocked::default());
        let told: BTreeSet<ThreadIx> = blocked
            .iter()
            .filter(|report| matches!(report.parts[0].action, PartAction::Waits { wait: Wait::Signal, .. }))
            .map(|report| report.parts[0].thread)
            .collect();
        assert_eq!(told, waiting.iter().map(|(thread, _)| *thread).collect(), "seed {seed}");
    }
    assert!(missed > 20);
}

/// The C library refuses a join of oneself; the thread meant to wait for its own end.
#[test]
fn a_join_of_oneself_is_told() {
    use raddle_trace::{ContextIx, Event, Location};
    let mut trace = MemoryTrace::default();
    let other = trace.tables.add_thread(Some(ThreadIx::MAIN));
    for (number, op) in [Op::Fork { child: other }, Op::JoinFailed { child: other }].into_iter().enumerate() {
        for thread in [ThreadIx::MAIN, other] {
            // Main's own join failed because it ran out of time.
            if number == 0 && thread == other {
                continue;
            }
            let location = trace.tables.intern_location(Location::Foreign(number as u32));
            trace.events.push(Event { thread, location, context: ContextIx::ROOT, kept_calls: 0, op });
        }
    }
    let reports = run(&trace, &mut WaitFor::default());
    assert_eq!(reports.len(), 1);
    assert_eq!((reports[0].kind, reports[0].parts[0].thread), (raddle_findings::Kind::Deadlock, other));
}
