//! How many turns a second the scheduler gives on one core, on a random model: threads that lock and unlock a few mutexes and do
//! other operations between. Prints, and asserts nothing about time:
//!
//! ```console
//! $ cargo test --release -p raddle-sched --test speed -- --ignored --nocapture
//! ```

mod machine;

use machine::Room;
use raddle_sched::{
    AnyStrategy, Arrival, Entry, Grant, Outside, Phase, Random, Request, Sched, Settings, ThreadIx,
};
use raddle_wire::region::strategy;
use raddle_wire::step;
use std::time::Instant;

struct Nothing;

impl Outside for Nothing {
    fn is_asleep(&self, _: ThreadIx, _: &Entry) -> bool {
        false
    }
    fn mutex_holder(&self, _: ThreadIx, _: usize) -> u32 {
        0
    }
    fn cancel_is_due(&self, _: ThreadIx, _: u8) -> bool {
        false
    }
    fn cancel_ends_waiting(&self, _: ThreadIx, _: u8) -> bool {
        false
    }
    fn expects_signal(&self) -> bool {
        false
    }
    fn asks_sleepers(&self) -> bool {
        false
    }
}

const THREADS: usize = 4;
const MUTEXES: usize = 3;
const TURNS: u64 = 2_000_000;

/// Gives so many turns; how many of them had to wait.
fn turns(which: u32, count: u64) -> u64 {
    let mut room = Room::new(THREADS);
    let mut sched = Sched::idle();
    let strategy = AnyStrategy::new(which, &[3, 1000, 0, 0, 0, 0, 0, 0], &[], false);
    sched.start(room.tables(), Settings { seed: 1, strategy, one_at_a_time: false });
    for thread in 0..THREADS {
        sched.register(thread as u32, thread as u64 + 1).unwrap();
    }
    let mut model = Random::new(2);
    let mut holders = [None; MUTEXES];
    let mut held = [None; THREADS];
    let mut wishes = [(step::LOAD, 100); THREADS];
    let (mut done, mut waited) = (0, 0);
    while done < count {
        // Everybody who runs arrives, as far as somebody goes.
        for thread in 0..THREADS {
            let ix = ThreadIx(thread as u32);
            if matches!(sched.roster[ix].phase(), Phase::Aside) {
                continue;
            }
            let (kind, object) = wishes[thread];
            let request = Request { kind, object, pc: 0 };
            let arrival =
                Arrival { request, steps: 0, detail: raddle_sched::Detail::NONE, yields: &mut false };
            if sched.arrive(ix, arrival, &Nothing) != Grant::Go {
                continue;
            }
            if kind == step::LOCK && holders[object].is_some() {
                waited += 1;
                sched.set_aside(ix, false, &Nothing);
                continue;
            }
            match kind {
                step::LOCK => (holders[object], held[thread]) = (Some(thread), Some(object)),
                step::UNLOCK => {
                    (holders[object], held[thread]) = (None, None);
                    sched.release(object);
                }
                _ => {}
            }
            wishes[thread] = match (held[thread], model.below(4)) {
                (Some(mutex), 0) => (step::UNLOCK, mutex),
                (None, 0) => (step::LOCK, model.below(MUTEXES)),
                _ => (step::LOAD, 100 + model.below(4)),
            };
            done += 1;
            sched.finish(ix, done as u32, &Nothing);
        }
        sched.effects.take_wakes().for_each(drop);
        assert_eq!(sched.effects.conclusion(), None, "nobody holds two");
    }
    waited
}

#[test]
#[ignore = "prints a rate"]
fn turns_a_second() {
    for (name, which) in [("random", strategy::RANDOM), ("pct", strategy::PCT), ("pos", strategy::POS)] {
        let start = Instant::now();
        let waited = turns(which, TURNS);
        let rate = TURNS as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!("{name}: {rate:.1} million turns a second, {waited} of them waited");
    }
}

/// The model itself, in a few turns.
#[test]
fn the_model_gives_turns() {
    for which in [strategy::RANDOM, strategy::PCT, strategy::POS] {
        assert!(turns(which, 2000) > 0, "somebody had to wait");
    }
}
