//! Random runs against enumeration, replay of schedules, stop points, and everything that a thread can wait for.

mod machine;

use machine::model::{self, End};
use machine::{Plan, Room, VARIABLES, run, schedule};
use raddle_sched::{
    AnyStrategy, Arrival, Conclusion, Entry, Grant, Outside, ParkedAccess, Phase, Random, Replay, Request,
    Sched, Settings, ThreadIx, join_token,
};
use raddle_wire::step;
use std::collections::BTreeSet;

fn random_words(random: &mut Random) -> Vec<String> {
    let threads = 2 + random.below(2);
    let most = if threads == 2 { 4 } else { 2 };
    (0..threads)
        .map(|_| {
            let letters = 1 + random.below(most);
            let body: String = (0..letters).map(|_| b"abAB"[random.below(4)] as char).collect();
            let all = [("", ""), ("", ""), ("l", "u"), ("m", "v"), ("lm", "vu"), ("ml", "uv")];
            let (open, close) = all[random.below(6)];
            format!("{open}{body}{close}")
        })
        .collect()
}

/// Random schedules reach exactly what enumeration reaches.
#[test]
fn random_runs_reach_what_enumeration_reaches() {
    let mut random = Random::new(7);
    let fixed =
        [vec!["aA", "aA"], vec!["aB", "bA"], vec!["lmvu", "mluv"], vec!["laAmbBvu", "mcv"], vec!["aA"; 3]];
    let fixed = fixed.iter().map(|words| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
    let made: Vec<Vec<String>> =
        (0..if cfg!(miri) { 1 } else { 60 }).map(|_| random_words(&mut random)).collect();
    for words in fixed.chain(made) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let expected = model::outcomes(&words);
        let mut found: BTreeSet<End> = BTreeSet::new();
        // Rare outcomes take their time; never is found out at the end.
        for seed in 0..if cfg!(miri) { 20 } else { 50_000 } {
            found.extend(run(&words, Plan::new(seed, AnyStrategy::RANDOM)).end);
            if found == expected {
                break;
            }
        }
        assert!(found.is_subset(&expected), "{words:?}: {found:?} beyond {expected:?}");
        assert!(cfg!(miri) || found == expected, "{words:?}: {found:?} of {expected:?}");
    }
}

/// A run's turns as a schedule make the run again, under any seed and any order of arrival.
#[test]
fn schedules_are_followed() {
    let mut random = Random::new(11);
    for seed in 0..if cfg!(miri) { 5 } else { 2000 } {
        let words = random_words(&mut random);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let first = run(&words, Plan::new(seed, AnyStrategy::RANDOM));
        if first.end == Some(End::Deadlock) {
            continue;
        }
        let blob = schedule(words.len() + 1, &first.turns, &[]);
        for one_at_a_time in [false, true] {
            let plan = Plan::new(seed + 1, AnyStrategy::RANDOM);
            let again = run(&words, Plan { schedule: Some(&blob), one_at_a_time, ..plan });
            assert_eq!((again.hash, &again.turns), (first.hash, &first.turns), "seed {seed}, {words:?}");
            assert_eq!(again.end, first.end);
        }
    }
}

/// After the last step of a schedule the strategy goes on.
#[test]
fn a_part_of_a_schedule_is_a_beginning() {
    for seed in 0..20 {
        let words = ["aAo", "bBo"];
        let first = run(&words, Plan::new(seed, AnyStrategy::RANDOM));
        let part = &first.turns[..first.turns.len() / 2];
        let blob = schedule(3, part, &[]);
        let again = run(&words, Plan { schedule: Some(&blob), ..Plan::new(seed, AnyStrategy::RANDOM) });
        assert_eq!(&again.turns[..part.len()], part);
        assert!(matches!(again.end, Some(End::Prints(_))));
    }
}

/// A schedule that the program cannot follow ends the run, and says where.
#[test]
fn divergence_is_told() {
    let words = ["aA", "bB"];
    let first = run(&words, Plan::new(3, AnyStrategy::RANDOM));
    for at in 0..first.turns.len() {
        let mut turns = first.turns.clone();
        turns[at].kind = step::CUSTOM;
        let blob = schedule(3, &turns, &[]);
        let again = run(&words, Plan { schedule: Some(&blob), ..Plan::new(3, AnyStrategy::RANDOM) });
        let Some(Conclusion::Diverged { thread, expected }) = again.conclusion else {
            panic!("turn {at}: {:?}", again.conclusion)
        };
        assert_eq!((thread.at(), expected), (usize::from(turns[at].thread), Some(turns[at])));
        assert_eq!(again.turns, first.turns[..at]);
    }
    // The schedule says that the second lock completes, and it would block.
    let lock = |thread, ordinal| step::StepWord { thread, kind: step::LOCK, failed: false, ordinal };
    let mut turns = first.turns.iter().copied().filter(|turn| turn.thread == 0).take(2).collect::<Vec<_>>();
    let start = |thread| step::StepWord { thread, kind: step::START, failed: false, ordinal: 1 };
    turns.extend([start(1), start(2), lock(1, 2), lock(2, 2)]);
    let blob = schedule(3, &turns, &[]);
    let again = run(&["lu", "lu"], Plan { schedule: Some(&blob), ..Plan::new(3, AnyStrategy::RANDOM) });
    assert_eq!(
        again.conclusion,
        Some(Conclusion::Diverged { thread: ThreadIx(2), expected: Some(lock(2, 2)) })
    );
}

/// Two threads stand before their conflicting atomics at one moment: what the stop points were for.
#[test]
fn stop_points_park_both() {
    let words = ["aA", "bA"];
    let first = run(&words, Plan::new(3, AnyStrategy::RANDOM));
    // Everything but the two stores and what comes after them.
    let turns: Vec<_> = first
        .turns
        .iter()
        .copied()
        .filter(|turn| turn.thread != 0 && turn.ordinal <= 2 || turn.kind == step::FORK)
        .collect();
    let stops = [(1, 2, VARIABLES), (2, 2, VARIABLES)];
    let blob = schedule(3, &turns, &stops);
    let again = run(&words, Plan { schedule: Some(&blob), ..Plan::new(3, AnyStrategy::RANDOM) });
    assert_eq!(again.conclusion, Some(Conclusion::Parked));
    // A thread that comes past its stop point has diverged.
    let blob = schedule(3, &turns, &[(1, 2, VARIABLES + 3), (2, 2, VARIABLES)]);
    let again = run(&words, Plan { schedule: Some(&blob), ..Plan::new(3, AnyStrategy::RANDOM) });
    assert_eq!(again.conclusion, Some(Conclusion::Diverged { thread: ThreadIx(1), expected: None }));
}

/// Blobs whose counts lie are refused, whatever they are.
#[test]
fn damaged_schedules_are_refused() {
    let mut random = Random::new(5);
    let whole = schedule(2, &[], &[(0, 1, 5)]);
    assert!(Replay::load(&whole, |_| 0, |_| {}).is_ok());
    for cut in 0..whole.len() {
        assert!(Replay::load(&whole[..cut], |_| 0, |_| {}).is_err(), "cut at {cut}");
    }
    for _ in 0..if cfg!(miri) { 100 } else { 20_000 } {
        let mut blob: Vec<u64> = (0..random.below(40)).map(|_| random.draw() % 6).collect();
        if random.below(4) == 0 && !blob.is_empty() {
            let at = random.below(blob.len());
            blob[at] = random.draw();
        }
        let mut sites = 0;
        if let Ok(mut replay) = Replay::load(&blob, |module| module as usize, |_| sites += 1) {
            while let Some((words, bytes)) = replay.next_payload() {
                assert!(words.len() * 8 >= bytes);
            }
        }
    }
}

/// A world in which everything can be set.
#[derive(Default)]
struct World {
    asleep: Vec<u32>,
    signals: bool,
    asks: bool,
    due: bool,
    ends_waiting: bool,
}

impl Outside for World {
    fn is_asleep(&self, ix: ThreadIx, _: &Entry) -> bool {
        self.asleep.contains(&ix.0)
    }
    fn mutex_holder(&self, _: usize) -> u32 {
        0
    }
    fn cancel_is_due(&self, _: ThreadIx, _: u8) -> bool {
        self.due
    }
    fn cancel_ends_waiting(&self, _: ThreadIx, _: u8) -> bool {
        self.ends_waiting
    }
    fn expects_signal(&self) -> bool {
        self.signals
    }
    fn asks_sleepers(&self) -> bool {
        self.asks
    }
}

/// What arrives. Whether its thread yields is looked at by nobody, unless a variable is given.
macro_rules! request {
    ($kind:expr, $object:expr) => {
        request!($kind, $object, false)
    };
    ($kind:expr, $object:expr, $yields:expr) => {
        Arrival {
            request: Request { kind: $kind, object: $object, pc: 0 },
            steps: 0,
            detail: raddle_sched::Detail::NONE,
            yields: &mut $yields,
        }
    };
}

/// Some threads that all exist, under a strategy.
fn with_threads(count: usize, strategy: AnyStrategy<'static>, each: impl FnOnce(&mut Sched<'_>)) {
    seeded_threads(count, 1, strategy, each);
}

fn seeded_threads(
    count: usize,
    seed: u64,
    strategy: AnyStrategy<'static>,
    each: impl FnOnce(&mut Sched<'_>),
) {
    let mut room = Room::new(count);
    let mut sched = Sched::idle();
    let settings = Settings { seed, strategy, one_at_a_time: false };
    sched.start(room.tables(), settings);
    for thread in 0..count {
        sched.register(thread as u32, thread as u64 + 1).expect("there is room");
    }
    each(&mut sched);
}

/// Who was woken.
fn woken(sched: &mut Sched<'_>) -> Vec<u32> {
    sched.effects.take_wakes().map(|ix| ix.0).collect()
}

fn round_robin() -> AnyStrategy<'static> {
    AnyStrategy::new(raddle_wire::region::strategy::ROUND_ROBIN, &[0; 8], &[], false)
}

const CONDITION: usize = 0x500;

/// Waiting on a condition: signals wake as many as they say, and only those who wait.
#[test]
fn signals_wake_waiters() {
    with_threads(4, round_robin(), |sched| {
        assert_eq!(sched.signal(CONDITION, 1), 0, "nobody waits");
        for thread in [1, 2, 3] {
            sched.begin_wait(ThreadIx(thread), CONDITION);
            assert!(!sched.signalled(ThreadIx(thread), false));
        }
        assert_eq!(sched.signal(CONDITION, 1), 1);
        let awake = |sched: &mut Sched<'_>| (1..4).filter(|&t| sched.signalled(ThreadIx(t), false)).count();
        assert_eq!(awake(sched), 1);
        assert_eq!(awake(sched), 0, "an answered wait is over");
        assert_eq!(sched.signal(CONDITION, usize::MAX), 2);
        assert_eq!(awake(sched), 2);
        sched.begin_wait(ThreadIx(1), CONDITION);
        assert!(!sched.signalled(ThreadIx(1), true), "it gives up");
        assert_eq!(sched.signal(CONDITION, 1), 0);
    });
}

/// Barriers let everybody pass when the last one comes, and start over.
#[test]
fn barriers_open_for_the_last() {
    with_threads(3, round_robin(), |sched| {
        sched.barrier_init(0x600, 3);
        for round in 0..3 {
            let (generation, last) = sched.arrive_barrier(0x600);
            assert!(!last && !sched.barrier_passed(0x600, generation), "round {round}");
            assert!(!sched.arrive_barrier(0x600).1);
            assert!(sched.arrive_barrier(0x600).1);
            assert!(sched.barrier_passed(0x600, generation));
        }
        // More than there is room for: everybody passes.
        (0..300).for_each(|at| sched.barrier_init(0x1000 + at, 2));
        assert_eq!(sched.arrive_barrier(0x9000), (0, true));
        assert!(sched.barrier_passed(0x9000, 0));
    });
}

/// A thread that leaves for a system call is not waited for; when it is back, or found awake, it is.
#[test]
fn who_is_away_is_not_waited_for() {
    with_threads(2, round_robin(), |sched| {
        let mut world = World { asks: true, asleep: vec![1], ..World::default() };
        sched.leave(ThreadIx(1), &world);
        for _ in 0..5 {
            assert_eq!(sched.arrive(ThreadIx(0), request!(step::STORE, 1), &world), Grant::Go);
            sched.finish(ThreadIx(0), 1, &world);
            assert_eq!(sched.chosen(), ThreadIx(0), "the other one is away");
        }
        world.asleep.clear();
        assert_eq!(sched.arrive(ThreadIx(0), request!(step::STORE, 1), &world), Grant::Go);
        sched.finish(ThreadIx(0), 2, &world);
        assert_eq!(sched.chosen(), ThreadIx(1), "it was found awake");
        sched.pass_over(ThreadIx(1), true);
        sched.choose(&world);
        assert_eq!(sched.chosen(), ThreadIx(0), "a lost one is not asked again");
        sched.come_back(ThreadIx(1));
        assert_eq!(sched.roster[ThreadIx(1)].phase(), Phase::Running);
    });
}

/// Everybody waits: a deadlock, unless somebody outside can help.
#[test]
fn nobody_can_go() {
    for (signals, away) in [(false, false), (true, false), (false, true)] {
        with_threads(2, round_robin(), |sched| {
            let world = World { signals, asleep: vec![1], ..World::default() };
            if away {
                sched.leave(ThreadIx(1), &world);
            } else {
                sched.end(ThreadIx(1));
            }
            assert_eq!(sched.arrive(ThreadIx(0), request!(step::SEM_WAIT, 9), &world), Grant::Go);
            assert!(!sched.set_aside(ThreadIx(0), false, &world));
            let expected = (!signals && !away).then_some(Conclusion::Deadlock { on_cycle: false });
            assert_eq!(sched.effects.conclusion(), expected);
            let entry = &sched.roster[ThreadIx(0)];
            assert!(expected.is_none_or(|conclusion| conclusion.concerns(ThreadIx(0), entry)));
        });
    }
}

/// Two threads that join each other are a cycle even while a third one runs.
#[test]
fn a_cycle_is_a_deadlock_although_others_run() {
    with_threads(3, round_robin(), |sched| {
        let world = World::default();
        assert_eq!(sched.arrive(ThreadIx(0), request!(step::JOIN, join_token(1)), &world), Grant::Go);
        sched.set_aside(ThreadIx(0), false, &world);
        assert_eq!(sched.effects.conclusion(), None);
        assert_eq!(sched.chosen(), ThreadIx(1));
        assert_eq!(sched.arrive(ThreadIx(1), request!(step::JOIN, join_token(0)), &world), Grant::Go);
        sched.set_aside(ThreadIx(1), false, &world);
        let conclusion = sched.effects.conclusion().expect("a cycle");
        assert_eq!(conclusion, Conclusion::Deadlock { on_cycle: true });
        let concerned: Vec<u32> =
            (0..3).filter(|&ix| conclusion.concerns(ThreadIx(ix), &sched.roster[ThreadIx(ix)])).collect();
        assert_eq!(concerned, [0, 1]);
    });
}

/// A timed wait can be chosen, and gives up when it is alone.
#[test]
fn timed_waits_give_up() {
    with_threads(1, round_robin(), |sched| {
        let world = World::default();
        assert_eq!(sched.arrive(ThreadIx(0), request!(step::SEM_WAIT, 9), &world), Grant::Go);
        assert!(sched.times_out(ThreadIx(0)), "nobody else can post");
        sched.set_aside(ThreadIx(0), true, &world);
        assert_eq!((sched.chosen(), woken(sched)), (ThreadIx(0), vec![0]), "it is enabled all the same");
        assert_eq!(sched.arrive(ThreadIx(0), request!(step::SEM_WAIT, 9), &world), Grant::Go);
        sched.fail(ThreadIx(0));
        assert!(sched.roster[ThreadIx(0)].failed());
        sched.finish(ThreadIx(0), 1, &world);
        assert!(!sched.roster[ThreadIx(0)].failed());
    });
    with_threads(2, round_robin(), |sched| {
        let given_up = (0..4000).filter(|_| sched.times_out(ThreadIx(0))).count();
        assert!((800..1200).contains(&given_up), "once in four: {given_up}");
    });
}

/// Cancellation: a waiting thread is woken where that ends its wait, and acts when its turn comes.
#[test]
fn cancellation_reaches_who_waits() {
    use raddle_sched::objects::Cancelled;
    with_threads(2, round_robin(), |sched| {
        let mut world = World::default();
        assert_eq!(sched.arrive(ThreadIx(0), request!(step::SEM_WAIT, 9), &world), Grant::Go);
        sched.set_aside(ThreadIx(0), false, &world);
        assert_eq!(sched.find(0), Some(ThreadIx(0)));
        assert_eq!(sched.cancel(ThreadIx(0), &world), Cancelled::Later, "this wait goes on");
        world.ends_waiting = true;
        assert_eq!(sched.cancel(ThreadIx(0), &world), Cancelled::Woken);
        assert!(sched.roster[ThreadIx(0)].is_cancelled());
        assert_eq!(sched.roster[ThreadIx(0)].phase(), Phase::Waiting);
        assert_eq!(sched.arrive(ThreadIx(1), request!(step::STORE, 1), &world), Grant::Go);
        sched.finish(ThreadIx(1), 1, &world);
        assert_eq!((sched.chosen(), woken(sched)), (ThreadIx(0), vec![0]));
        world.due = true;
        assert_eq!(sched.arrive(ThreadIx(0), request!(step::SEM_WAIT, 9), &world), Grant::Cancel);
        assert_eq!(sched.roster[ThreadIx(0)].phase(), Phase::Running, "it runs to its clean-up");
        assert!(sched.set_aside(ThreadIx(0), false, &world), "it does not wait any more");
        sched.strike(ThreadIx(0));
        assert!(!sched.roster[ThreadIx(0)].is_cancelled());
        sched.leave(ThreadIx(1), &world);
        assert_eq!(sched.cancel(ThreadIx(1), &world), Cancelled::Away);
    });
}

/// A thread that yields lets the others go; when all have yielded nobody is left out.
#[test]
fn yielding_goes_round() {
    let pct = AnyStrategy::new(raddle_wire::region::strategy::PCT, &[1, 10, 0, 0, 0, 0, 0, 0], &[], false);
    with_threads(3, pct, |sched| {
        let world = World::default();
        let mut went = [0; 3];
        for _ in 0..300 {
            let me = match sched.chosen() {
                nobody if nobody.is_nobody() => ThreadIx(0),
                chosen => chosen,
            };
            let mut yields = true;
            let arrival = request!(step::STORE, 1, yields);
            if sched.arrive(me, arrival, &world) == Grant::Go {
                went[me.at()] += 1;
                sched.finish(me, 1, &world);
            } else {
                let next = sched.chosen();
                assert_eq!(sched.arrive(next, request!(step::STORE, 1), &world), Grant::Go);
                went[next.at()] += 1;
                sched.finish(next, 1, &world);
            }
            woken(sched);
        }
        assert!(went.iter().all(|&turns| turns > 0), "{went:?}");
    });
}

/// A thread that yields may go on all the same, as in a free run; mostly it does not.
#[test]
fn yielding_forbids_nothing() {
    let mut first = [0u32; 2];
    for seed in 0..if cfg!(miri) { 5 } else { 400 } {
        let random = AnyStrategy::new(raddle_wire::region::strategy::RANDOM, &[0; 8], &[], false);
        seeded_threads(2, seed, random, |sched| {
            let world = World::default();
            let me = sched.chosen();
            let mut yields = true;
            let arrival = request!(step::STORE, 1, yields);
            let went = sched.arrive(me, arrival, &world) == Grant::Go;
            first[usize::from(went)] += 1;
        });
    }
    let [gave_way, went_on] = first;
    if !cfg!(miri) {
        assert!(gave_way > 100 && went_on > 100, "{gave_way} gave way, {went_on} went on");
    }
}

/// A thread that spins for long is treated as if it had yielded.
#[test]
fn spinning_is_yielding() {
    let pct = AnyStrategy::new(raddle_wire::region::strategy::PCT, &[1, 10, 0, 0, 0, 0, 0, 0], &[], false);
    with_threads(2, pct, |sched| {
        let world = World::default();
        let mut turns = Vec::new();
        for _ in 0..1000 {
            let me = sched.chosen();
            assert_eq!(sched.arrive(me, request!(step::LOAD, 1), &world), Grant::Go);
            turns.push(me.0);
            sched.finish(me, 1, &world);
        }
        assert!(turns.contains(&0) && turns.contains(&1), "by priority alone one would go for ever");
        assert_eq!(turns[1..200], vec![turns[1]; 199], "two hundred turns are honest work");
    });
}

/// An open turn: whoever has the slice takes it, others wait for it or claim it.
#[test]
fn an_open_turn_is_taken_or_claimed() {
    let queue = AnyStrategy::new(raddle_wire::region::strategy::QUEUE, &[0; 8], &[], false);
    with_threads(2, queue, |sched| {
        let world = World::default();
        assert!(sched.may_lie_open());
        let mut kept = 0;
        for _ in 0..200 {
            assert_eq!(sched.arrive(ThreadIx(0), request!(step::STORE, 1), &world), Grant::Go);
            sched.finish(ThreadIx(0), 1, &world);
            kept += usize::from(sched.chosen().is_nobody());
        }
        assert!(kept > 100, "alone it goes on: {kept}");
        // The other one comes while the turn lies open, waits for a while, and claims it.
        let mut claimed = false;
        for looks in 0..3 {
            let grant = sched.arrive(ThreadIx(1), request!(step::STORE, 1), &world);
            if grant == Grant::Go {
                claimed = true;
                break;
            }
            let patience = sched.patience(ThreadIx(1), looks).expect("it is in line");
            assert!(patience.us >= 60 && patience.us <= 5000);
            sched.claim(ThreadIx(1), Some(patience), &world);
        }
        assert!(claimed, "nobody else made use of the turn");
        assert!(sched.patience(ThreadIx(1), 0).is_none(), "it is not in line any more");
        sched.finish(ThreadIx(1), 1, &world);
        sched.interrupt(ThreadIx(1));
    });
}

/// One thread more than there is room for ends the run.
#[test]
fn there_is_an_end_of_room() {
    with_threads(2, round_robin(), |sched| {
        assert_eq!(sched.register(2, 3), None);
        let conclusion = sched.effects.conclusion();
        assert_eq!(conclusion, Some(Conclusion::TooManyThreads));
        assert!(!conclusion.unwrap().concerns(ThreadIx(0), &sched.roster[ThreadIx(0)]));
        sched.conclude(Conclusion::Stuck);
        assert_eq!(sched.effects.conclusion(), conclusion, "what is found out first stands");
        assert!(Conclusion::Stuck.concerns(ThreadIx(0), &sched.roster[ThreadIx(0)]));
    });
}

/// A plain access at a stop point parks its thread.
#[test]
fn accesses_park() {
    let blob = schedule(2, &[], &[(0, 0, 0x700)]);
    let mut room = Room::new(2);
    let mut sched = Sched::idle();
    sched.replay = Replay::load(&blob, |_| 0, |_| {}).unwrap();
    sched.start(room.tables(), Settings { seed: 1, strategy: round_robin(), one_at_a_time: false });
    let main = sched.register(0, machine::path_of(0)).unwrap();
    assert_eq!(sched.roster[main].stops, 1);
    let access = |address| ParkedAccess { pc: 1, address, bytes: 4, aux: 0 };
    assert!(!sched.access(main, 0, access(0x704)));
    assert!(!sched.access(main, 1, access(0x6fe)), "one operation too late");
    assert!(sched.access(main, 0, access(0x6fe)));
    assert_eq!(sched.effects.conclusion(), Some(Conclusion::Parked));
}

/// With one thread at a time, a thread that parks lets the next one begin: nobody else would wake it.
#[test]
fn who_parks_lets_the_next_one_begin() {
    let next = step::StepWord { thread: 1, kind: step::START, failed: false, ordinal: 1 };
    let blob = schedule(2, &[next], &[(0, 0, 0x700)]);
    let mut room = Room::new(2);
    let mut sched = Sched::idle();
    sched.replay = Replay::load(&blob, |_| 0, |_| {}).unwrap();
    sched.start(room.tables(), Settings { seed: 1, strategy: round_robin(), one_at_a_time: true });
    let main = sched.register(0, machine::path_of(0)).unwrap();
    let other = sched.register(1, machine::path_of(1)).unwrap();
    assert_eq!(sched.arrive(other, request!(step::START, 0), &World::default()), Grant::Wait, "main runs");
    assert!(woken(&mut sched).is_empty());
    assert!(sched.access(main, 0, ParkedAccess { pc: 1, address: 0x700, bytes: 4, aux: 0 }));
    assert_eq!(sched.effects.conclusion(), None, "a step is left");
    assert_eq!(woken(&mut sched), [other.0]);
    assert_eq!(sched.arrive(other, request!(step::START, 0), &World::default()), Grant::Go);
    sched.finish(other, 1, &World::default());
    assert_eq!(sched.effects.conclusion(), Some(Conclusion::Parked));
}

/// A turn that is written down before it is finished, at the beginning of an access or in a crash, counts once.
#[test]
fn a_turn_is_noted_once() {
    let world = World::default();
    let hash_after = |noted: fn(&mut Sched<'_>)| {
        let mut hash = 0;
        with_threads(1, round_robin(), |sched| {
            let main = ThreadIx(0);
            assert_eq!(sched.note_crash(main), None, "it is in no turn");
            assert!(!sched.begin_access(main, 1), "it was given no turn");
            assert_eq!(sched.arrive(main, request!(step::WRITE, 0x700), &world), Grant::Go);
            noted(sched);
            sched.finish(main, 1, &world);
            assert!(!sched.roster[main].is_noted());
            hash = sched.turns_hash();
        });
        hash
    };
    let plain = hash_after(|sched| assert!(!sched.roster[ThreadIx(0)].is_noted()));
    let access = hash_after(|sched| {
        assert!(sched.begin_access(ThreadIx(0), 1) && sched.roster[ThreadIx(0)].is_noted());
        assert_eq!(sched.note_crash(ThreadIx(0)), None, "the access stands there already");
    });
    let crash = hash_after(|sched| {
        assert_eq!(sched.note_crash(ThreadIx(0)), Some(1));
        assert_eq!(sched.note_crash(ThreadIx(0)), None);
    });
    assert_eq!((access, crash), (plain, plain));
}
