//! Clocks against maps from slot to epoch.
//!
//! The twin of a clock is a map; of a generation that starts slots over, the removal of those slots from every map. Random
//! operations are done on both, and after each everything that can be asked is compared.

mod common;

use common::{Heap, Random, cases};
use raddle_hb::spin::Spin;
use raddle_hb::{Clock, Domain, Epoch, Location, ObjectClock, SLOTS};
use std::collections::BTreeMap;

type Map = BTreeMap<u8, Epoch>;

fn join(to: &mut Map, from: &Map) {
    for (&slot, &epoch) in from {
        let known = to.entry(slot).or_insert(0);
        *known = epoch.max(*known);
    }
}

const THREADS: usize = 4;
const OBJECTS: usize = 3;

struct Both<'d> {
    domain: &'d Domain<Heap>,
    threads: Vec<Clock>,
    objects: Vec<ObjectClock>,
    thread_maps: Vec<Map>,
    object_maps: Vec<Map>,
}

impl<'d> Both<'d> {
    fn new(domain: &'d Domain<Heap>) -> Both<'d> {
        let threads = (0..THREADS).map(|_| Clock::EMPTY).collect();
        let objects = (0..OBJECTS).map(|_| ObjectClock::NONE).collect();
        Both {
            domain,
            threads,
            objects,
            thread_maps: vec![Map::new(); THREADS],
            object_maps: vec![Map::new(); OBJECTS],
        }
    }

    fn two(&mut self, one: usize, other: usize) -> (&mut Clock, &mut Clock) {
        let [one, other] = self.threads.get_disjoint_mut([one, other]).unwrap();
        (one, other)
    }

    fn step(&mut self, random: &mut Random, reach: usize) {
        let thread = random.below(THREADS);
        let other = (thread + 1 + random.below(THREADS - 1)) % THREADS;
        let object = random.below(OBJECTS);
        let second = (object + 1 + random.below(OBJECTS - 1)) % OBJECTS;
        let slot = 1 + random.below(reach) as u8;
        let domain = self.domain;
        match random.below(11) {
            0 => {
                domain.generations.widen(slot);
                let epoch = 1 + random.below(1000) as Epoch;
                self.threads[thread].set(&domain.generations, slot, epoch);
                self.thread_maps[thread].insert(slot, epoch);
            }
            1 => {
                self.threads[thread].clear(&domain.generations);
                self.thread_maps[thread].clear();
            }
            2 => {
                let map = self.thread_maps[other].clone();
                self.thread_maps[thread] = map;
                let (to, from) = self.two(thread, other);
                to.copy_from(&domain.generations, from);
            }
            3 => {
                let map = self.thread_maps[other].clone();
                join(&mut self.thread_maps[thread], &map);
                let (to, from) = self.two(thread, other);
                to.join(&domain.generations, from);
            }
            4 => {
                self.objects[object].acquire_into(domain, &mut self.threads[thread]);
                join(&mut self.thread_maps[thread], &self.object_maps[object]);
            }
            5 | 6 => {
                self.objects[object].release_from(domain, &mut self.threads[thread]);
                join(&mut self.object_maps[object], &self.thread_maps[thread]);
            }
            7 => {
                self.objects[object].assign_from(domain, &mut self.threads[thread]);
                self.object_maps[object] = self.thread_maps[thread].clone();
            }
            8 => {
                let [to, from] = self.objects.get_disjoint_mut([object, second]).unwrap();
                if random.chance(2) {
                    to.copy_from(domain, from);
                } else {
                    let copy = from.copy(domain);
                    to.clear(domain);
                    *to = copy;
                }
                self.object_maps[object] = self.object_maps[second].clone();
            }
            9 => {
                self.objects[object].clear(domain);
                self.object_maps[object].clear();
            }
            _ => {
                let slots: Vec<u8> =
                    (0..1 + random.below(3)).map(|_| 1 + random.below(reach) as u8).collect();
                domain.generations.restart(slots.iter().copied());
                for map in self.thread_maps.iter_mut().chain(&mut self.object_maps) {
                    map.retain(|slot, _| !slots.contains(slot));
                }
            }
        }
    }

    fn compare(&mut self, case: u64) {
        let domain = self.domain;
        for (clock, map) in self.threads.iter_mut().zip(&self.thread_maps) {
            clock.refresh(&domain.generations);
            for slot in 0..SLOTS {
                let right = map.get(&(slot as u8)).copied().unwrap_or(0);
                assert_eq!(clock.times[slot], right, "case {case}, slot {slot}");
            }
            assert!(!clock.empty || map.values().all(|&epoch| epoch == 0), "case {case}");
        }
        for (clock, map) in self.objects.iter_mut().zip(&self.object_maps) {
            for slot in 0..SLOTS {
                let right = map.get(&(slot as u8)).copied().unwrap_or(0);
                assert_eq!(clock.time_of(domain, slot as u8), right, "case {case}, slot {slot}");
            }
        }
    }
}

#[test]
fn clocks_are_maps() {
    // Few slots meet often; many make clocks wider.
    for reach in [3, 20, 255] {
        let domain = &Domain::new();
        for case in 0..cases(1500) {
            let mut random = Random(case);
            let mut both = Both::new(domain);
            both.threads.iter_mut().for_each(|clock| clock.clear(&domain.generations));
            for _ in 0..40 {
                both.step(&mut random, reach);
            }
            both.compare(case);
            both.objects.iter_mut().for_each(|clock| clock.clear(domain));
        }
    }
}

#[test]
fn readers_keep_their_first_epochs() {
    let domain = Domain::<Heap>::new();
    for case in 0..cases(2000) {
        let mut random = Random(case);
        let mut noted = ObjectClock::NONE;
        let mut map = Map::new();
        let mut clock = Box::new(Clock::EMPTY);
        for _ in 0..20 {
            let (slot, epoch) = (1 + random.below(20) as u8, 1 + random.below(9) as Epoch);
            domain.generations.widen(slot);
            if random.chance(2) {
                noted.first_at(&domain, slot, epoch);
                map.entry(slot).or_insert(epoch);
            } else {
                clock.set(&domain.generations, slot, epoch);
            }
            let right = map.iter().any(|(&slot, &epoch)| epoch <= clock.times[usize::from(slot)]);
            assert_eq!(noted.any_within(&clock), right, "case {case}");
        }
        noted.clear(&domain);
    }
}

/// A clock that was released when few slots were in use is widened, and blocks are used again.
#[test]
fn blocks_go_round() {
    let domain = Domain::<Heap>::new();
    let mut clock = Box::new(Clock::EMPTY);
    clock.set(&domain.generations, 3, 7);
    let mut kept: Vec<ObjectClock> = Vec::new();
    for round in 0..if cfg!(miri) { 20 } else { 5000 } {
        if round == 10 {
            domain.generations.widen(200);
            clock.set(&domain.generations, 200, 9);
        }
        let mut object = ObjectClock::NONE;
        object.release_from(&domain, &mut clock);
        kept.push(object);
        if round % 3 == 0 {
            kept.swap_remove(round / 2 % kept.len()).clear(&domain);
        }
    }
    for object in &mut kept {
        assert_eq!(object.time_of(&domain, 3), 7);
        object.release_from(&domain, &mut clock);
        assert_eq!((object.time_of(&domain, 3), object.time_of(&domain, 200)), (7, 9));
        object.clear(&domain);
    }
    domain.reset_after_fork();
}

/// A barrier: who leaves a round knows what was passed on in the rounds up to it, and nothing of the round that gathers already. The twin
/// keeps a map for each round.
#[test]
fn generations_are_kept_apart() {
    const PARTIES: usize = 3;
    let domain = &Domain::<Heap>::new();
    domain.generations.widen(PARTIES as u8);
    for case in 0..cases(500) {
        let mut random = Random(case);
        let mut barrier = Location::NONE;
        let mut clocks: Vec<Clock> = (0..PARTIES).map(|_| Clock::EMPTY).collect();
        let mut maps = vec![Map::new(); PARTIES];
        let (mut gathers, mut complete) = (Map::new(), Map::new());
        let mut inside = [false; PARTIES];
        for step in 0..30 {
            let me = random.below(PARTIES);
            let slot = me as u8 + 1;
            if random.chance(2) {
                let epoch = maps[me].get(&slot).copied().unwrap_or(0) + 1;
                clocks[me].set(&domain.generations, slot, epoch);
                maps[me].insert(slot, epoch);
            }
            if inside[me] {
                // It may leave late, when others have entered the next round; never when that is complete.
                barrier.acquire_generation(domain, &mut clocks[me]);
                join(&mut maps[me], &complete);
            } else {
                barrier.release(domain, &mut clocks[me]);
                join(&mut gathers, &maps[me]);
            }
            inside[me] = !inside[me];
            if inside.iter().all(|&inside| inside) {
                barrier.complete_generation(domain);
                complete = std::mem::take(&mut gathers);
            }
            for (clock, map) in clocks.iter_mut().zip(&maps) {
                clock.refresh(&domain.generations);
                for slot in 1..=PARTIES as u8 {
                    let right = map.get(&slot).copied().unwrap_or(0);
                    assert_eq!(
                        clock.times[usize::from(slot)],
                        right,
                        "case {case}, step {step}, slot {slot}"
                    );
                }
            }
        }
        barrier.clear(domain);
    }
}

/// The lock for tables lets one in at a time, and says when it would have to wait.
#[test]
fn a_spin_lock_lets_one_in() {
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    let spin: Spin<u64, Heap> = Spin::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..rounds {
                    let mut guard = match round % 2 {
                        0 => spin.lock(),
                        _ => match spin.try_lock() {
                            Some(guard) => guard,
                            None => spin.lock(),
                        },
                    };
                    // Two steps, so that somebody else inside would be noticed.
                    let before = *guard;
                    std::hint::black_box(&before);
                    *guard = before + 1;
                }
            });
        }
    });
    let guard = spin.lock();
    assert_eq!(*guard, 3 * rounds);
    assert!(spin.try_lock().is_none());
    // In a child process nobody holds it.
    spin.reset_after_fork();
    assert!(spin.try_lock().is_some());
    drop(guard);
}
