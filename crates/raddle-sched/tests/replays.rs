//! Replay of schedules and stop points.

mod machine;

use machine::hand::{World, round_robin, woken};
use machine::model::{self, End};
use machine::{Plan, Room, VARIABLES, run, schedule};
use raddle_sched::{
    AnyStrategy, Conclusion, Grant, ParkedAccess, Phase, Random, Replay, Sched, Settings, ThreadIx,
};
use raddle_wire::step;

/// A run's turns as a schedule make the run again, under any seed and any order of arrival.
#[test]
fn schedules_are_followed() {
    let mut random = Random::new(11);
    for seed in 0..if cfg!(miri) { 2 } else { 2000 } {
        let words = model::random_words(&mut random);
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
    for seed in 0..if cfg!(miri) { 3 } else { 20 } {
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

fn word(thread: u16, kind: u8, ordinal: u32) -> step::StepWord {
    step::StepWord { thread, kind, failed: false, ordinal }
}

/// Main and its first two children in a replay, all running.
fn replaying(blob: &[u64], one_at_a_time: bool, each: impl FnOnce(&mut Sched<'_>)) {
    let mut room = Room::new(3);
    let mut sched = Sched::idle();
    sched.replay = Replay::load(blob, |module| module as usize, |_| {}).unwrap();
    sched.start(room.tables(), Settings { seed: 1, strategy: round_robin(), one_at_a_time });
    for thread in 0..3 {
        sched.register(thread as u32, machine::path_of(thread)).unwrap();
    }
    each(&mut sched);
}

/// A handler begins where the schedule has it: the thread comes with its own operation, is told so, and comes back to it afterwards.
#[test]
fn handlers_begin_where_the_schedule_says() {
    let blob = schedule(3, &[word(0, step::HANDLER, 1), word(0, step::STORE, 2)], &[]);
    // A demo brings the signal along: the thread begins the handler at whatever operation it has come to.
    let mut demo = blob.clone();
    demo[5] = 16;
    demo.extend([8, 0]);
    let world = World::default();
    let main = ThreadIx(0);
    for (blob, brought) in [(&blob, false), (&demo, true)] {
        replaying(blob, false, |sched| {
            assert!(sched.replay.orders_handlers() && !sched.replay.orders_calls());
            assert_eq!(sched.due(), Some(main));
            let grant = sched.arrive(main, request!(step::STORE, 1), &world);
            assert!(sched.handler_is_next(main) && !sched.handler_is_next(ThreadIx(1)));
            sched.interrupt(main);
            if brought {
                assert_eq!((grant, sched.roster[main].phase()), (Grant::Handler, Phase::Acting));
            } else {
                // It comes from the program itself, and the thread waits for it.
                assert_eq!((grant, sched.roster[main].phase()), (Grant::Wait, Phase::Running));
            }
            assert_eq!(sched.arrive(main, request!(step::HANDLER, 10), &world), Grant::Go);
            sched.finish(main, 1, &world);
            assert_eq!(sched.steps_shown(), 1);
            assert!(!sched.effects.replay_is_over() && !sched.handler_is_next(main));
            let mut arrival = request!(step::STORE, 1);
            arrival.steps = 1;
            assert_eq!(sched.arrive(main, arrival, &world), Grant::Go);
            sched.finish(main, 2, &world);
            assert!(sched.effects.replay_is_over());
            assert_eq!(sched.due(), None);
        });
    }
    let blob = schedule(3, &[word(0, step::SYSCALL, 1)], &[]);
    replaying(&blob, false, |sched| assert!(sched.replay.orders_calls() && !sched.replay.orders_handlers()));
}

/// A cancelled thread acts on it in its own turn, and the turn stays its own: what it does instead is the step.
#[test]
fn cancelled_threads_act_in_their_turn() {
    let blob = schedule(3, &[word(1, step::END, 1)], &[]);
    let world = World { due: true, ..World::default() };
    replaying(&blob, false, |sched| {
        let (main, other) = (ThreadIx(0), ThreadIx(1));
        sched.cancel(other, &world);
        assert_eq!(sched.arrive(main, request!(step::STORE, 1), &world), Grant::Wait, "not its step");
        assert_eq!(sched.arrive(other, request!(step::SEM_WAIT, 1), &world), Grant::Cancel);
        sched.strike(other);
        assert_eq!(sched.arrive(other, request!(step::END, 0), &world), Grant::Go);
        sched.end(other);
        sched.finish(other, 1, &world);
        assert!(sched.has_ended(1) && sched.effects.replay_is_over());
    });
}

/// Who sleeps in the kernel lets the next step begin: when it leaves, and when it is found asleep.
#[test]
fn sleepers_do_not_hold_up_a_replay() {
    let blob = schedule(3, &[word(1, step::STORE, 1), word(2, step::STORE, 1)], &[]);
    let world = World::default();
    replaying(&blob, true, |sched| {
        let (main, one, other) = (ThreadIx(0), ThreadIx(1), ThreadIx(2));
        assert_eq!(sched.arrive(one, request!(step::STORE, 1), &world), Grant::Wait, "others run");
        assert_eq!(sched.arrive(other, request!(step::STORE, 1), &world), Grant::Wait, "main runs");
        assert!(woken(sched).is_empty());
        sched.leave(main, &world);
        assert_eq!(woken(sched), [one.0]);
        assert_eq!(sched.arrive(one, request!(step::STORE, 1), &world), Grant::Go);
        sched.finish(one, 1, &world);
        assert!(!woken(sched).contains(&other.0), "the first goes on to its next operation");
        let decisions = sched.progress().decisions;
        let lost = |ix: ThreadIx, _: &raddle_sched::Entry| (ix == one).then_some(true);
        assert!(sched.pass_over_where(lost));
        assert!(!sched.pass_over_where(lost), "it does not run any more");
        assert!(sched.roster[one].is_lost());
        sched.passed_over_in_replay();
        assert!(sched.progress().decisions > decisions, "that is progress");
        assert_eq!(woken(sched), [other.0]);
    });
}

/// A stop point that is a place in the code, the second time that its thread comes there; for an atomic operation as well.
#[test]
fn stop_points_in_code_count_their_visits() {
    let mut blob = schedule(3, &[], &[]);
    let at = |thread: u64, after: u64, occurrence: u64, offset: u64, module: u64| {
        [thread, after, occurrence, step::PLACE_CODE, offset, module]
    };
    blob[2] = 2;
    blob.extend(at(0, 0, 2, 0x10, 0x400));
    blob.extend(at(1, 3, 1, 0x20, 0x400));
    let access = |pc| ParkedAccess { pc, address: 0x700, bytes: 4, aux: 0 };
    replaying(&blob, false, |sched| {
        let (main, other) = (ThreadIx(0), ThreadIx(1));
        assert!(!sched.access(main, 0, access(0x20)), "somebody else's");
        assert!(!sched.access(main, 0, access(0x410)), "the first visit");
        assert!(sched.access(main, 0, access(0x410)));
        assert_eq!(sched.effects.conclusion(), None);
        let mut arrival = request!(step::STORE, 0x700);
        (arrival.steps, arrival.request.pc) = (3, 0x420);
        assert_eq!(sched.arrive(ThreadIx(2), request!(step::STORE, 1), &World::default()), Grant::Wait);
        assert_eq!(sched.arrive(other, arrival, &World::default()), Grant::Wait);
        let conclusion = sched.effects.conclusion().expect("both stand there");
        assert_eq!(conclusion, Conclusion::Parked);
        let concerned = (0..3).filter(|&ix| conclusion.concerns(ThreadIx(ix), &sched.roster[ThreadIx(ix)]));
        assert_eq!(concerned.collect::<Vec<_>>(), [0, 1]);
        assert!(sched.roster[other].access.aux & raddle_wire::record::access::WRITE != 0, "it would store");
    });
}

/// Whoever has diverged is concerned, and nobody else.
#[test]
fn divergence_concerns_its_thread() {
    let blob = schedule(3, &[word(1, step::STORE, 1)], &[]);
    replaying(&blob, false, |sched| {
        assert_eq!(sched.arrive(ThreadIx(1), request!(step::LOAD, 1), &World::default()), Grant::Wait);
        let conclusion = sched.effects.conclusion().expect("that is no store");
        let concerned = (0..3).filter(|&ix| conclusion.concerns(ThreadIx(ix), &sched.roster[ThreadIx(ix)]));
        assert_eq!(concerned.collect::<Vec<_>>(), [1]);
    });
}
