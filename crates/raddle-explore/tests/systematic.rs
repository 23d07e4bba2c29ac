//! Searches against brute force: the same final states, each class once, nothing blocked under `optimal`.

mod model;

use model::Do::{self, *};
use model::{Model, class, enumerate, outcome};
use raddle_explore::systematic::bounded::{Bounded, Cost};
use raddle_explore::systematic::search::{Shard, Verdict};
use raddle_explore::systematic::{Reduction, Search, ThreadId};
use raddle_sched::Random;
use std::collections::BTreeSet;

fn no_cost(_: &[ThreadId], _: Option<ThreadId>, _: ThreadId) -> u32 {
    0
}

/// Compares all reductions with enumeration; how many classes there are.
fn check(model: &Model) -> Option<usize> {
    let everything = enumerate(model, no_cost)?;
    for reduction in Reduction::ALL {
        let mut model = model.clone();
        let mut search = Search::new(reduction, None);
        let (mut classes, mut outcomes) = (BTreeSet::new(), BTreeSet::new());
        while let Some(order) = search.next_order() {
            let run = raddle_explore::systematic::Executor::run(&mut model, &order).unwrap();
            let verdict = search.absorb(&order, &run).unwrap();
            if verdict == Verdict::Execution {
                let new = classes.insert(class(&run));
                assert!(
                    new || reduction == Reduction::None,
                    "{reduction:?} repeats itself: {:?}",
                    model.threads
                );
                outcomes.insert(outcome(&model.last));
            }
        }
        let about = format!("{reduction:?}: {:?}", model.threads);
        assert_eq!(classes.len(), everything.classes.len(), "classes of {about}");
        assert_eq!(outcomes, everything.outcomes, "final states of {about}");
        let expected =
            if reduction == Reduction::None { everything.interleavings } else { classes.len() as u64 };
        assert_eq!(search.statistics.executions, expected, "executions of {about}");
        if matches!(reduction, Reduction::None | Reduction::Optimal) {
            assert_eq!(search.statistics.blocked, 0, "blocked runs of {about}");
        }
        assert_eq!(search.estimate(), (expected as f64, 0.0));
    }
    Some(everything.classes.len())
}

#[test]
fn known_programs_have_known_counts() {
    let sb = vec![vec![Store(0, 1), Load(1)], vec![Store(1, 1), Load(0)]];
    assert_eq!(check(&Model::new(sb)), Some(3), "store buffering under interleaving");
    let incs = |n| vec![vec![Load(0), Store(0, 1)]; n];
    assert_eq!(check(&Model::new(incs(2))), Some(4));
    let locked = |n| vec![vec![Lock(0), Load(0), Store(0, 1), Unlock(0)]; n];
    assert_eq!(check(&Model::new(locked(2))), Some(2));
    assert_eq!(check(&Model::new(locked(3))), Some(6));
    let crossed =
        vec![vec![Lock(0), Lock(1), Unlock(1), Unlock(0)], vec![Lock(1), Lock(0), Unlock(0), Unlock(1)]];
    assert_eq!(check(&Model::new(crossed)), Some(3), "one after the other, or deadlocked");
    // N readers and a writer (Abdulla et al., section 1): 2^N.
    let readers = |n: u64| {
        let mut threads = vec![vec![Store(0, 1)]];
        threads.extend((0..n).map(|_| vec![Load(0)]));
        threads
    };
    assert_eq!(check(&Model::new(readers(3))), Some(8));
    assert_eq!(check(&Model::new(readers(5))), Some(32));
    let adds = vec![vec![Add(0)], vec![Add(0)], vec![Add(0)]];
    assert_eq!(check(&Model::new(adds)), Some(6));
}

#[test]
fn locks_that_are_never_released() {
    check(&Model::new(vec![vec![Lock(0), Store(0, 1)], vec![Lock(0), Store(0, 2)], vec![Load(0)]])).unwrap();
    check(&Model::new(vec![vec![Lock(0)], vec![TryLock(0, 1), Store(0, 2)], vec![Lock(0), Load(0)]]))
        .unwrap();
}

#[test]
fn a_crash_ends_everything() {
    let threads = vec![vec![Load(0), SkipIfZero(1), Crash], vec![Store(1, 1), Store(0, 1), Store(2, 1)]];
    check(&Model::new(threads)).unwrap();
}

#[test]
fn conditions() {
    let waiter =
        vec![Lock(0), Load(0), SkipIfZero(1), Store(5, 1), Wait(0, 0), Wake(0), Relock(0), Unlock(0)];
    let signaller = vec![Lock(0), Store(0, 1), Signal(0), Unlock(0)];
    check(&Model::new(vec![waiter.clone(), signaller.clone()])).unwrap();
    check(&Model::new(vec![waiter.clone(), waiter.clone(), signaller.clone()])).unwrap();
    let all = vec![Lock(0), Store(0, 1), Broadcast(0), Unlock(0)];
    check(&Model::new(vec![waiter.clone(), waiter, all])).unwrap();
}

/// A thread enters the next round while the other has not left the last one.
#[test]
fn barriers_have_rounds() {
    let rounds = vec![Enter(0), Exit(0), Enter(0), Exit(0)];
    assert_eq!(check(&Model::new(vec![rounds.clone(), rounds])), Some(8));
}

const LETTERS: usize = 9;

/// A thread of a few instructions, whole in itself: what it locks it unlocks, mostly.
fn random_thread(random: &mut Random, kinds: usize) -> Vec<Do> {
    let mut thread = Vec::new();
    for _ in 0..1 + random.below(3) {
        let x = random.below(2) as u64;
        match random.below(kinds) {
            0 => thread.push(Load(x)),
            1 => thread.push(Store(x, 1 + random.below(3) as i64)),
            2 => thread.push(Add(x)),
            3 => thread.extend([Lock(x), [Load(0), Store(0, 1), Add(1)][random.below(3)], Unlock(x)]),
            4 => thread.extend([Load(x), SkipIfZero(1), Store(1 - x, 5)]),
            5 => thread.extend([Acquire(x), Add(0), Post(x)]),
            6 => thread.extend([TryLock(x, 2), Add(0), Unlock(x)]),
            7 => thread.extend([ReadLock(x), Load(x), Unlock(x)]),
            8 => thread.push([Lock(x), Post(x), Signal(x), Broadcast(x), Acquire(x)][random.below(5)]),
            _ => unreachable!(),
        }
    }
    thread
}

#[test]
fn random_programs() {
    let mut checked = 0;
    for seed in 0..300u64 {
        let mut random = Random::new(seed * 7919 + 1);
        let threads = 2 + random.below(2);
        let kinds = 1 + random.below(LETTERS);
        let program = (0..threads).map(|_| random_thread(&mut random, kinds)).collect();
        checked += usize::from(check(&Model::new(program)).is_some());
    }
    assert!(checked > 180, "{checked} programs were small enough");
}

#[test]
fn random_programs_with_barriers_and_conditions() {
    let mut checked = 0;
    for seed in 0..200u64 {
        let mut random = Random::new(seed * 104_729 + 3);
        let program = (0..2 + random.below(2)).map(|_| match random.below(4) {
            0 => vec![Store(0, 1), Enter(0), Exit(0), Load(0)],
            1 => vec![Lock(0), Wait(0, 0), Wake(0), Relock(0), Add(0), Unlock(0)],
            2 => vec![Lock(0), Signal(0), Unlock(0), Add(1)],
            _ => random_thread(&mut random, LETTERS),
        });
        checked += usize::from(check(&Model::new(program.collect())).is_some());
    }
    assert!(checked > 60, "{checked} programs were small enough");
}

#[test]
fn bounds_count_what_enumeration_counts() {
    for seed in 0..120u64 {
        let mut random = Random::new(seed * 31 + 5);
        let program = (0..2 + random.below(2)).map(|_| random_thread(&mut random, LETTERS)).collect();
        let model = Model::new(program);
        for cost in [Cost::Preemptions, Cost::Delays] {
            let Some(everything) = enumerate(&model, |enabled, last, t| cost.of(enabled, last, t)) else {
                continue;
            };
            for bound in 0..4 {
                let mut all = Bounded::new(cost, bound, false);
                all.run(&mut model.clone(), |_, _| ()).unwrap();
                let expected: Vec<u64> =
                    (0..=bound).map(|k| everything.by_cost.get(&k).copied().unwrap_or(0)).collect();
                assert_eq!(all.counts, expected, "{cost:?} {bound} {:?}", model.threads);
                let mut reduced = Bounded::new(cost, bound, true);
                reduced.run(&mut model.clone(), |_, _| ()).unwrap();
                let classes: Vec<u64> = (0..=bound)
                    .map(|k| everything.class_costs.values().filter(|&&least| least == k).count() as u64)
                    .collect();
                assert_eq!(reduced.counts, classes, "{cost:?} {bound} {:?}", model.threads);
                assert!(reduced.runs <= all.runs);
            }
        }
    }
}

#[test]
fn shards_add_up() {
    for seed in 0..40u64 {
        let mut random = Random::new(seed * 17 + 11);
        let program: Vec<_> = (0..3).map(|_| random_thread(&mut random, LETTERS)).collect();
        let model = Model::new(program);
        let Some(everything) = enumerate(&model, no_cost) else { continue };
        for reduction in [Reduction::Sleep, Reduction::Dpor, Reduction::Source, Reduction::Optimal] {
            let mut classes = BTreeSet::new();
            let mut executions = 0;
            for index in 0..3 {
                let mut model = model.clone();
                let mut search = Search::new(reduction, Some(Shard { index, count: 3 }));
                while let Some(order) = search.next_order() {
                    let run = raddle_explore::systematic::Executor::run(&mut model, &order).unwrap();
                    if search.absorb(&order, &run).unwrap() == Verdict::Execution {
                        classes.insert(class(&run));
                    }
                }
                executions += search.statistics.executions;
            }
            let about = format!("{reduction:?} {:?}", model.threads);
            assert_eq!(executions, everything.classes.len() as u64, "{about}");
            assert_eq!(classes, everything.classes, "{about}");
        }
    }
}

/// A search that is written down after every run, and read back, is the same search.
#[test]
fn a_search_goes_on_where_it_stopped() {
    let program = vec![
        vec![Lock(0), Add(0), Unlock(0), Load(1)],
        vec![Lock(0), Add(0), Unlock(0)],
        vec![Add(1), Add(0)],
    ];
    for reduction in Reduction::ALL {
        let mut model = Model::new(program.clone());
        let mut whole = Search::new(reduction, None);
        whole.run(&mut model.clone(), |_, _| ()).unwrap_or_else(|_| panic!("it follows its orders"));
        let mut search = Search::new(reduction, None);
        while let Some(order) = search.next_order() {
            let run = raddle_explore::systematic::Executor::run(&mut model, &order).unwrap();
            search.absorb(&order, &run).unwrap();
            let text = serde_json::to_string(&search).unwrap();
            search = serde_json::from_str(&text).unwrap();
        }
        assert!(search.is_complete());
        assert_eq!(search.statistics, whole.statistics, "{reduction:?}");
    }
}
