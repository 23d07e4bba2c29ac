//! Property driven pruning against plain `dpor`: the same races, never more executions.

mod model;

use model::Do::{self, *};
use model::{Model, enumerate};
use raddle_explore::systematic::pruning::{Access, Foresight, Place, Pruner};
use raddle_explore::systematic::search::Verdict;
use raddle_explore::systematic::{Executor, Reduction, Run, Search, ThreadId};
use raddle_sched::Random;
use raddle_wire::step;
use std::collections::BTreeSet;

const VARIABLES: u64 = 0x1000;
const MUTEXES: u64 = 0x2000;

/// Reads the code of a model: everything that control can come to, with the locks held on all ways there.
struct Code<'a>(&'a Model);

impl Code<'_> {
    /// All ways through a thread from its beginning, as (place, locks held there).
    fn ways(&self, thread: usize) -> Vec<Vec<(usize, BTreeSet<u64>)>> {
        let code = &self.0.threads[thread];
        let mut done = Vec::new();
        let mut open = vec![(0usize, BTreeSet::new(), Vec::new())];
        while let Some((at, locks, mut way)) = open.pop() {
            let Some(instruction) = code.get(at) else {
                done.push(way);
                continue;
            };
            way.push((at, locks.clone()));
            let mut after = locks.clone();
            match instruction {
                Lock(m) | Relock(m) => {
                    after.insert(MUTEXES + m);
                }
                Unlock(m) => {
                    after.remove(&(MUTEXES + m));
                }
                TryLock(_, skip) | SkipIfZero(skip) => open.push((at + 1 + skip, locks, way.clone())),
                _ => {}
            }
            open.push((at + 1, after, way));
        }
        done
    }
}

impl Foresight for Code<'_> {
    fn rest(&mut self, pc: u64) -> Option<BTreeSet<Access>> {
        let (thread, from) = ((pc >> 32) as usize, (pc & 0xffff_ffff) as usize);
        let mut rest = BTreeSet::new();
        for way in self.ways(thread) {
            for (at, locks) in way.iter().filter(|(at, _)| *at >= from) {
                let (object, writes) = match self.0.threads[thread][*at] {
                    Load(x) => (VARIABLES + x, false),
                    Store(x, _) | Add(x) => (VARIABLES + x, true),
                    _ => continue,
                };
                rest.insert(Access {
                    object: Some(object),
                    place: Place::Global,
                    bytes: 1,
                    writes,
                    atomic: false,
                    locks: locks.clone(),
                });
            }
        }
        Some(rest)
    }

    fn place(&mut self, _: u64) -> Place {
        Place::Global
    }

    fn ignores_result(&mut self, _: u64) -> bool {
        true
    }
}

/// DETECTRACE (figure 2): conflicting accesses that are enabled in one state, by object and the places in the code.
fn races(run: &Run, into: &mut BTreeSet<(u64, u64, u64)>) {
    let next = |at: usize, thread: ThreadId| {
        let later = run.steps[at..].iter().find(|step| step.event.thread == thread);
        later.map(|step| (step.event, step.pc))
    };
    for (at, step) in run.steps.iter().enumerate() {
        for (i, &a) in step.enabled.iter().enumerate() {
            for &b in &step.enabled[i + 1..] {
                let (Some((a, first)), Some((b, second))) = (next(at, a), next(at, b)) else { continue };
                let kind = |k: u8| matches!(k, step::LOAD | step::STORE | step::RMW);
                let conflict = a.op.object == b.op.object && kind(a.op.kind) && kind(b.op.kind);
                if conflict && !(a.op.only_looks() && b.op.only_looks()) {
                    into.insert((a.op.object, first.min(second), first.max(second)));
                }
            }
        }
    }
}

struct Found {
    races: BTreeSet<(u64, u64, u64)>,
    executions: u64,
    checks: u64,
    race_free: u64,
    skipped: u64,
}

fn search(model: &Model, prune: bool) -> Found {
    let mut runner = model.clone();
    let mut search = Search::new(Reduction::Dpor, None);
    let mut found = Found { races: BTreeSet::new(), executions: 0, checks: 0, race_free: 0, skipped: 0 };
    while let Some(order) = search.next_order() {
        let mut run = runner.run(&order).unwrap();
        // Here variables are plain memory.
        for step in &mut run.steps {
            step.event.op.flags &= !raddle_sched::dependence::COMMUTES;
        }
        races(&run, &mut found.races);
        let mut code = Code(model);
        let plain = Run { steps: run.steps.clone(), pending: run.pending.clone(), blocked: run.blocked };
        let mut pruner = Pruner::new(&mut code, &plain);
        let verdict = search.absorb_pruned(&order, &run, &mut |at| prune && pruner.is_race_free(at)).unwrap();
        found.executions += u64::from(verdict == Verdict::Execution);
        found.checks += pruner.counts.checks;
        found.race_free += pruner.counts.race_free;
        found.skipped += pruner.counts.skipped;
    }
    found
}

fn locked(x: u64, m: u64) -> Vec<Do> {
    vec![Lock(m), Load(x), Store(x, 1), Unlock(m)]
}

/// Threads that only touch what their locks protect: one execution is enough, where `dpor` needs all orders of the locks.
#[test]
fn race_free_programs_need_one_execution() {
    for threads in 2..=4 {
        let model = Model::new((0..threads).map(|_| locked(0, 0)).collect());
        let (all, pruned) = (search(&model, false), search(&model, true));
        assert_eq!((pruned.executions, pruned.races.len()), (1, 0), "{threads} threads");
        assert_eq!(all.executions, (1..=threads).product::<u64>());
        assert_eq!(pruned.checks, pruned.race_free);
        assert!(pruned.skipped > 0);
    }
}

/// Figure 1: a race that needs another order of the first blocks, behind blocks that do not matter.
#[test]
fn the_running_example() {
    // x, y, z and a branch on c: 0, 1, 2; locks f1 and f2.
    let first = [locked(0, 0), vec![Store(1, 1)], locked(2, 0)].concat();
    let second =
        [locked(2, 0), vec![Lock(1), Load(0), Unlock(1), SkipIfZero(1), Store(1, 2)], locked(2, 0)].concat();
    let model = Model::new(vec![first, second]);
    let (all, pruned) = (search(&model, false), search(&model, true));
    assert_eq!(pruned.races, all.races);
    assert!(!pruned.races.is_empty());
    assert!(pruned.executions < all.executions, "{} of {}", pruned.executions, all.executions);
}

fn random_thread(random: &mut Random) -> Vec<Do> {
    let mut thread = Vec::new();
    for _ in 0..1 + random.below(3) {
        let (x, m) = (random.below(3) as u64, random.below(2) as u64);
        match random.below(6) {
            0 => thread.push([Load(x), Store(x, 1)][random.below(2)]),
            1 | 2 => thread.extend(locked(x, m)),
            3 => thread.extend([Lock(m), Load(x), Unlock(m), SkipIfZero(1), Store((x + 1) % 3, 2)]),
            4 => thread.extend([Lock(0), Lock(1), Store(x, 1), Unlock(1), Unlock(0)]),
            _ => thread.extend([Lock(m), Load(x), SkipIfZero(1), Store(x, 1), Unlock(m)]),
        }
    }
    thread
}

#[test]
fn the_same_races_and_never_more_executions() {
    let (mut checked, mut fewer) = (0, 0);
    for seed in 0..400u64 {
        let mut random = Random::new(seed * 131 + 7);
        let model = Model::new((0..2 + random.below(2)).map(|_| random_thread(&mut random)).collect());
        if enumerate(&model, |_, _, _| 0).is_none() {
            continue;
        }
        let (all, pruned) = (search(&model, false), search(&model, true));
        assert_eq!(pruned.races, all.races, "seed {seed}: {:?}", model.threads);
        assert!(pruned.executions <= all.executions, "seed {seed}");
        checked += 1;
        fewer += u64::from(pruned.executions < all.executions);
    }
    assert!(checked > 100 && fewer > 20, "{fewer} of {checked} were pruned");
}
