//! Random runs against enumeration, and everything that a thread can wait for.

mod machine;

use machine::hand::{World, round_robin, seeded_threads, with_threads, woken};
use machine::model::{self, End};
use machine::{Plan, run};
use raddle_sched::{AnyStrategy, Conclusion, Grant, Phase, Random, Sched, ThreadIx, join_token};
use raddle_wire::step;
use std::collections::BTreeSet;

/// Random schedules reach exactly what enumeration reaches.
#[test]
fn random_runs_reach_what_enumeration_reaches() {
    let mut random = Random::new(7);
    let fixed =
        [vec!["aA", "aA"], vec!["aB", "bA"], vec!["lmvu", "mluv"], vec!["laAmbBvu", "mcv"], vec!["aA"; 3]];
    let fixed = fixed.iter().map(|words| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
    let made: Vec<Vec<String>> =
        (0..if cfg!(miri) { 1 } else { 60 }).map(|_| model::random_words(&mut random)).collect();
    for words in fixed.chain(made).take(if cfg!(miri) { 2 } else { usize::MAX }) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let expected = model::outcomes(&words);
        let mut found: BTreeSet<End> = BTreeSet::new();
        // Rare outcomes take their time; never is found out at the end.
        for seed in 0..if cfg!(miri) { 4 } else { 50_000 } {
            found.extend(run(&words, Plan::new(seed, AnyStrategy::RANDOM)).end);
            if found == expected {
                break;
            }
        }
        assert!(found.is_subset(&expected), "{words:?}: {found:?} beyond {expected:?}");
        assert!(cfg!(miri) || found == expected, "{words:?}: {found:?} of {expected:?}");
    }
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
        for _ in 0..if cfg!(miri) { 30 } else { 300 } {
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
#[cfg_attr(miri, ignore = "a thousand rounds")]
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

/// A thread with a time limit takes a turn that lies open where nobody is in line, and only there.
#[test]
fn an_open_turn_is_claimed_by_who_can_give_up() {
    let queue = || AnyStrategy::new(raddle_wire::region::strategy::QUEUE, &[0; 8], &[], false);
    for in_line in [false, true] {
        with_threads(3, queue(), |sched| {
            let world = World::default();
            let (main, timed) = (ThreadIx(0), ThreadIx(1));
            sched.claim(timed, None, &world);
            assert_eq!(sched.chosen(), main, "it is somebody's turn");
            assert_eq!(sched.arrive(main, request!(step::STORE, 1), &world), Grant::Go);
            sched.finish(main, 1, &world);
            // It would go on for its slice, and does something else.
            sched.leave(main, &world);
            assert_eq!(sched.arrive(timed, request!(step::SEM_WAIT, 9), &world), Grant::Go);
            assert!(!sched.set_aside(timed, true, &world));
            assert!(sched.chosen().is_nobody(), "the third one runs");
            if in_line {
                // It is in line as soon as it waits, and the turn is not left open then.
                assert_eq!(sched.arrive(ThreadIx(2), request!(step::STORE, 1), &world), Grant::Go);
            }
            woken(sched);
            sched.claim(timed, None, &world);
            let expected = if in_line { (ThreadIx(2), vec![]) } else { (timed, vec![timed.0]) };
            assert_eq!((sched.chosen(), woken(sched)), expected);
        });
    }
}

/// When everybody has yielded a new round begins, and nobody is passed over for ever.
#[test]
fn a_round_of_yields_begins_anew() {
    with_threads(2, round_robin(), |sched| {
        let world = World::default();
        for _ in 0..4 {
            for me in [ThreadIx(0), ThreadIx(1)] {
                let other = ThreadIx(1 - me.0);
                assert_eq!(sched.chosen(), me);
                // It is taken at its word, the other one goes first and yields as well: then this one goes.
                let mut yields = true;
                assert_eq!(sched.arrive(me, request!(step::STORE, 1, yields), &world), Grant::Wait);
                assert!(sched.roster[me].has_yielded() && !yields);
                let mut yields = true;
                assert_eq!(sched.arrive(other, request!(step::STORE, 1, yields), &world), Grant::Wait);
                assert!(sched.roster[other].has_yielded() && !sched.roster[me].has_yielded());
                assert_eq!(woken(sched), [me.0]);
                assert_eq!(sched.arrive(me, request!(step::STORE, 1), &world), Grant::Go);
                sched.finish(me, 1, &world);
            }
        }
    });
}

/// What an operation left as it was is no news for a loop: under `follow` an exchange that changes nothing is a round of it.
#[test]
#[cfg_attr(miri, ignore = "thousands of rounds")]
fn changing_nothing_is_waiting() {
    let follow = || AnyStrategy::new(raddle_wire::region::strategy::FOLLOW, &[0; 8], &[], false);
    for unchanged in [true, false] {
        with_threads(1, follow(), |sched| {
            let world = World::default();
            assert!(sched.is_exhaustive() && !sched.one_at_a_time());
            let mut rounds = 0;
            while rounds < 3000 && sched.arrive(ThreadIx(0), request!(step::RMW, 1), &world) == Grant::Go {
                let news = sched.take_news(ThreadIx(0)).expect("it has come to something");
                assert_eq!(news.word() as u8, step::RMW);
                assert_eq!(sched.take_news(ThreadIx(0)), None);
                if unchanged {
                    sched.note_unchanged(ThreadIx(0));
                    assert!(sched.roster[ThreadIx(0)].is_unchanged());
                }
                rounds += 1;
                sched.finish(ThreadIx(0), rounds, &world);
                assert!(!sched.roster[ThreadIx(0)].is_unchanged());
                woken(sched);
            }
            assert_eq!(sched.effects.conclusion(), unchanged.then_some(Conclusion::Stuck));
            assert_eq!(rounds == 3000, !unchanged, "{rounds} rounds");
        });
    }
}

/// A search counts a cycle of waiting threads as one when nobody else can go, whoever found it.
#[test]
fn a_search_sees_cycles_at_the_end() {
    let follow = AnyStrategy::new(raddle_wire::region::strategy::FOLLOW, &[0; 8], &[], false);
    with_threads(3, follow, |sched| {
        let world = World::default();
        let join = |thread: u32| join_token(1 - thread);
        assert_eq!(
            sched.arrive(ThreadIx(2), request!(step::STORE, 1), &world),
            Grant::Wait,
            "main goes first"
        );
        assert_eq!(sched.arrive(ThreadIx(1), request!(step::JOIN, join(1)), &world), Grant::Wait);
        for thread in 0..2 {
            assert_eq!(sched.chosen(), ThreadIx(thread));
            assert_eq!(sched.arrive(ThreadIx(thread), request!(step::JOIN, join(thread)), &world), Grant::Go);
            sched.set_aside(ThreadIx(thread), false, &world);
            assert_eq!(sched.effects.conclusion(), None, "the third one can go");
        }
        assert_eq!(sched.arrive(ThreadIx(2), request!(step::STORE, 1), &world), Grant::Go);
        sched.end(ThreadIx(2));
        sched.finish(ThreadIx(2), 1, &world);
        assert_eq!(sched.effects.conclusion(), Some(Conclusion::Deadlock { on_cycle: true }));
    });
}

/// What is shown of a run's progress are its choices, and arrivals have an order.
#[test]
fn choices_are_counted() {
    let outcome = run(&["o"], Plan::new(1, AnyStrategy::RANDOM));
    assert!(outcome.decisions > 0);
    with_threads(2, AnyStrategy::RANDOM, |sched| {
        let world = World::default();
        let me = sched.chosen();
        assert_eq!(sched.steps_shown(), 0);
        assert_eq!(sched.arrive(ThreadIx(1), request!(step::STORE, 1), &world), Grant::Wait);
        assert_eq!(sched.arrive(me, request!(step::STORE, 1), &world), Grant::Go);
        assert!(sched.roster[ThreadIx(1)].ticket() < sched.roster[me].ticket());
        sched.finish(me, 1, &world);
        assert_eq!(sched.steps_shown(), 1);
        assert!(!sched.may_lie_open() && sched.patience(ThreadIx(1), 0).is_none());
        sched.barrier_init(0x600, 2);
        assert_eq!(sched.barrier_count(0x600), 2);
    });
}
