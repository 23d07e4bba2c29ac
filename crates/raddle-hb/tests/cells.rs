//! Cells against a loop over their entries, and the search for races against the whole history of accesses.

mod common;

use common::{Random, cases};
use raddle_hb::cell::{self, ATOMIC, Cell, ENTRIES, READ, epoch_of, slot_of};
use raddle_hb::race::{self, REDUNDANT};
use raddle_hb::{Clock, Lanes, Segment};
use std::sync::atomic::Ordering;

fn entry(random: &mut Random) -> u32 {
    if random.chance(4) {
        return 0;
    }
    // Few values, so that entries are often alike.
    let segment = Segment { slot: 1 + random.below(2) as u8, epoch: 1 + random.below(2) as u16 };
    let mask = [0xff, 0x0f, 0xf0, 0x01, 0x03][random.below(5)];
    let flags = [0, READ, ATOMIC, READ | ATOMIC][random.below(4)];
    segment.name() | mask | flags
}

fn cell_of(random: &mut Random) -> Cell {
    let cell = Cell::new();
    for place in 0..ENTRIES {
        cell.set(place, entry(random));
    }
    cell
}

/// One access covers another: all of its bytes, writes if it does, plain if it is.
fn covers(one: u32, other: u32) -> bool {
    other & 0xff & !one == 0
        && (one & READ == 0 || other & READ != 0)
        && (one & ATOMIC == 0 || other & ATOMIC != 0)
}

fn same_segment(one: u32, other: u32) -> bool {
    slot_of(one) == slot_of(other) && epoch_of(one) == epoch_of(other)
}

/// What `compare` does, one entry after the other.
fn slowly(cell: &Cell, new: u32) -> Lanes {
    let lanes = |is: &dyn Fn(u32) -> bool| {
        (0..ENTRIES).filter(|&place| is(cell.entry(place))).fold(0, |bits, place| bits | 1 << place)
    };
    Lanes {
        redundant: lanes(&|old| same_segment(old, new) && covers(old, new)),
        same: lanes(&|old| same_segment(old, new)),
        own: lanes(&|old| slot_of(old) == slot_of(new)),
        zero: lanes(&|old| old == 0),
        covered: lanes(&|old| covers(new, old)),
    }
}

#[test]
fn four_entries_at_once_are_four_entries() {
    for case in 0..cases(100_000) {
        let mut random = Random(case);
        let cell = cell_of(&mut random);
        let new = entry(&mut random) | 1;
        assert_eq!(cell::compare(&cell, new), slowly(&cell, new), "case {case}");
    }
}

#[test]
fn whole_cells_are_compared_alike() {
    for case in 0..cases(100_000) {
        let mut random = Random(case);
        let cell = cell_of(&mut random);
        let read = if random.chance(2) { READ } else { 0 };
        let new = Segment { slot: 1, epoch: 1 + random.below(2) as u16 }.name() | 0xff | read;
        let (fast, slow) = (cell::compare_whole(&cell, new, read), slowly(&cell, new));
        assert_eq!(fast.redundant != 0, slow.redundant != 0, "case {case}");
        assert_eq!((fast.own, fast.zero), (slow.own, slow.zero), "case {case}");
        assert_eq!(fast.redundant & slow.redundant, fast.redundant, "case {case}");
        // An empty entry and an atomic write are covered as well; what is said to be covered is.
        assert_eq!(fast.covered & slow.covered, fast.covered, "case {case}");
    }
}

#[test]
fn redundant_stretches_end_where_one_cell_is_not() {
    for case in 0..cases(20_000) {
        let mut random = Random(case);
        let read = if random.chance(2) { READ } else { 0 };
        let new = Segment { slot: 1, epoch: 1 }.name() | 0xff | read;
        let cells: Vec<Cell> = (0..8)
            .map(|_| {
                let cell = cell_of(&mut random);
                if !random.chance(6) {
                    cell.set(random.below(ENTRIES), new & !if random.chance(2) { READ } else { 0 });
                }
                cell
            })
            .collect();
        let plain = |cell: &Cell| {
            (0..ENTRIES).any(|at| {
                let old = cell.entry(at);
                same_segment(old, new) && old & (0xff | ATOMIC) == 0xff && covers(old, new)
            })
        };
        let right = cells.iter().position(|cell| !plain(cell)).unwrap_or(cells.len());
        assert_eq!(cell::redundant_cells(&cells, new, read), right, "case {case}");
    }
}

/// A cell that only keeps what is news never calls anything redundant that its segment has not covered.
#[test]
fn redundant_means_covered_by_the_same_segment() {
    for case in 0..cases(3000) {
        let mut random = Random(case);
        let cell = Cell::new();
        let mut made: Vec<u32> = Vec::new();
        let mut segments = [Segment { slot: 1, epoch: 1 }, Segment { slot: 2, epoch: 1 }];
        for _ in 0..30 {
            let who = random.below(2);
            if random.chance(5) {
                segments[who] = segments[who].next().unwrap();
            }
            let mask = [0xff, 0x0f, 0xf0, 0x01][random.below(4)];
            let new = segments[who].name() | mask | [0, READ][random.below(2)];
            let lanes = cell::compare(&cell, new);
            match cell::place_of_news(&lanes, || random.next() as u32) {
                Some(place) => cell.set(place, new),
                None => {
                    assert!(made.iter().any(|&old| same_segment(old, new) && covers(old, new)), "case {case}")
                }
            }
            made.push(new);
        }
    }
}

/// Threads that release and acquire at random, one cell, and all accesses ever made to it.
struct World {
    clocks: Vec<Clock>,
    segments: Vec<Segment>,
    lock: Vec<u16>,
    made: Vec<u32>,
    cell: Cell,
    /// An access was pushed out by chance: from here on a race may go unseen.
    forgot: bool,
}

impl World {
    fn new(threads: usize) -> World {
        let segments: Vec<Segment> =
            (0..threads).map(|thread| Segment { slot: thread as u8 + 1, epoch: 1 }).collect();
        let clocks = segments
            .iter()
            .map(|segment| {
                let mut clock = Clock::EMPTY;
                clock.times[usize::from(segment.slot)] = 1;
                clock
            })
            .collect();
        World { clocks, segments, lock: vec![0; 256], made: Vec::new(), cell: Cell::new(), forgot: false }
    }

    fn synchronise(&mut self, thread: usize, releases: bool) {
        let clock = &mut self.clocks[thread];
        for slot in 0..256 {
            let (known, passed) = (&mut clock.times[slot], &mut self.lock[slot]);
            match releases {
                true => *passed = (*passed).max(*known),
                false => *known = (*known).max(*passed),
            }
        }
        if releases {
            self.segments[thread] = self.segments[thread].next().unwrap();
            clock.times[usize::from(self.segments[thread].slot)] = self.segments[thread].epoch;
        }
    }

    /// The access races with one of the history, by definition.
    fn races(&self, thread: usize, new: u32) -> bool {
        self.made.iter().any(|&old| {
            let before = self.clocks[thread].times[slot_of(old) as usize] as u32 >= epoch_of(old);
            old & new & 0xff != 0 && old & new & READ == 0 && old & new & ATOMIC == 0 && !before
        })
    }

    fn access(&mut self, thread: usize, mask: u32, flags: u32, random: &mut Random) -> (bool, bool) {
        let new = self.segments[thread].name() | mask | flags;
        let right = self.races(thread, new);
        let mut by_chance = false;
        let mut roll = || {
            by_chance = true;
            random.next() as u32
        };
        let clock = &self.clocks[thread];
        let whole = mask == 0xff && flags & ATOMIC == 0;
        let mut look = match whole {
            true => race::look_at_whole(clock, &self.cell, new, flags & READ, &mut roll),
            false => race::look(clock, &self.cell, new, &mut roll),
        };
        if look.place != REDUNDANT {
            race::put(clock, &self.cell, new, &mut look, &mut roll);
        }
        self.forgot |= by_chance;
        self.made.push(new);
        (look.race != 0, right)
    }
}

#[test]
fn races_are_those_of_the_history() {
    let (mut racing, mut quiet) = (0, 0);
    for case in 0..cases(20_000) {
        let mut random = Random(case);
        let mut world = World::new(2 + random.below(3));
        for step in 0..24 {
            let thread = random.below(world.segments.len());
            match random.below(6) {
                0 => world.synchronise(thread, true),
                1 => world.synchronise(thread, false),
                _ => {
                    let mask = [0xff, 0xff, 0x0f, 0x80][random.below(4)];
                    let flags = [0, READ, ATOMIC, READ | ATOMIC][random.below(4)];
                    let (said, right) = world.access(thread, mask, flags, &mut random);
                    assert!(!said || right, "case {case}, step {step}: made up");
                    // A redundant access says nothing: its segment has said it already.
                    let news = world.made[..world.made.len() - 1].iter().all(|&old| {
                        !(same_segment(old, world.segments[thread].name()) && covers(old, mask | flags))
                    });
                    assert!(said || !right || !news || world.forgot, "case {case}, step {step}: overlooked");
                    *(if right { &mut racing } else { &mut quiet }) += 1;
                }
            }
        }
    }
    assert!(racing > quiet / 20 && quiet > racing / 20, "{racing} races, {quiet} without");
}

/// What a quick look decides, the long one decides alike.
#[test]
fn the_quick_place_is_a_right_one() {
    let mut quick = 0;
    for case in 0..cases(50_000) {
        let mut random = Random(case);
        let cell = cell_of(&mut random);
        let new = entry(&mut random) | Segment { slot: 1, epoch: 2 }.name() | 1;
        let mut clock = Box::new(Clock::EMPTY);
        clock.times[usize::from(slot_of(new) as u8)] = epoch_of(new) as u16;
        let Some(place) = race::quick_place(&cell::compare(&cell, new)) else { continue };
        quick += 1;
        let look = race::look(&clock, &cell, new, || 0);
        assert_eq!(look.race, 0, "case {case}");
        assert_eq!(look.place == REDUNDANT, place == REDUNDANT, "case {case}");
        if place != REDUNDANT {
            let old = cell.entry(place);
            assert!(old == 0 || slot_of(old) == slot_of(new) && covers(new, old), "case {case}");
        }
    }
    assert!(quick > 0);
}

#[test]
fn released_memory_remembers_only_the_release() {
    let mut random = Random(1);
    let cell = cell_of(&mut random);
    race::replace_all(&cell, 0x77);
    let entries: Vec<u32> = (0..ENTRIES).map(|place| cell.0[place].load(Ordering::Relaxed)).collect();
    assert_eq!(entries, [0x77, 0, 0, 0]);
    assert_eq!(cell::place_of_news(&cell::compare(&Cell::default(), 0x101), || 0), Some(0));
}

/// Threads that come to an empty cell at once all leave their access there, as long as there are places.
#[test]
fn an_empty_cell_is_claimed_by_one_thread_at_a_time() {
    for round in 0..if cfg!(miri) { 3 } else { 300 } {
        let cell = Cell::new();
        std::thread::scope(|scope| {
            for slot in 1..=2u8 {
                let cell = &cell;
                scope.spawn(move || {
                    let segment = Segment { slot, epoch: 1 };
                    let mut clock = Box::new(Clock::EMPTY);
                    clock.times[usize::from(slot)] = 1;
                    let new = segment.name() | 0xff | READ;
                    let mut look = race::look(&clock, cell, new, || 0);
                    race::put(&clock, cell, new, &mut look, || 0);
                });
            }
        });
        let here: Vec<u32> = (0..ENTRIES).map(|place| slot_of(cell.entry(place))).collect();
        assert!(here.contains(&1) && here.contains(&2), "round {round}: {here:?}");
    }
}

/// Another thread's access comes between the look at an empty cell and the taking of a place: the look is made again, and sees it.
#[test]
fn a_place_that_was_taken_meanwhile_is_looked_at_again() {
    for (between, raced) in
        [(0xff, true), (0xff | READ, true), (0x0f, true), (0xff | ATOMIC, true), (0, false)]
    {
        let cell = Cell::new();
        let new = |slot: u8, what: u32| Segment { slot, epoch: 1 }.name() | what;
        let mut clock = Box::new(Clock::EMPTY);
        clock.times[1] = 1;
        let own = new(1, 0xff);
        let mut look = race::look(&clock, &cell, own, || 0);
        assert!(look.fresh && look.race == 0, "the cell is empty");
        if between != 0 {
            cell.set(look.place, new(2, between));
        }
        race::put(&clock, &cell, own, &mut look, || 0);
        assert_eq!(look.race != 0, raced, "{between:#x}");
        let here: Vec<u32> = (0..ENTRIES).map(|place| cell.entry(place)).collect();
        assert!(here.contains(&own), "{between:#x}: {here:x?}");
        assert!(between == 0 || here.contains(&new(2, between)), "{between:#x}: nothing is lost: {here:x?}");
    }
    // It was an access of one's own segment, from a signal handler: once is enough.
    let cell = Cell::new();
    let clock = Box::new(Clock::EMPTY);
    let own = Segment { slot: 1, epoch: 1 }.name() | 0xff;
    let mut look = race::look(&clock, &cell, own, || 0);
    cell.set(look.place, own);
    race::put(&clock, &cell, own, &mut look, || 0);
    assert_eq!((0..ENTRIES).filter(|&place| cell.entry(place) != 0).count(), 1);
}

/// Memory that was released: every later access to a byte of it races, whatever its thread knows and whatever it does; but where there is
/// somebody's access to name, that one is named.
#[test]
fn released_memory_races_with_everything() {
    for case in 0..cases(2000) {
        let mut random = Random(case);
        let cell = cell_of(&mut random);
        let release = Segment { slot: 1, epoch: 3 }.name() | [0xff, 0x0f][random.below(2)];
        race::release_all(&cell, release);
        let mut clock = Box::new(Clock::EMPTY);
        let knows_release = random.chance(2);
        (clock.times[1], clock.times[2]) = (if knows_release { 3 } else { 2 }, 5);
        let mask = [0xff, 0x0f, 0xf0, 0x80][random.below(4)];
        let new = Segment { slot: 2, epoch: 5 }.name() | mask | [0, READ][random.below(2)];
        let look = race::look(&clock, &cell, new, || 0);
        let touches = mask & release & 0xff != 0;
        assert_eq!(look.race != 0, touches, "case {case}");
        if touches {
            let expected = if knows_release { cell::RELEASED } else { 1 };
            assert_eq!(slot_of(look.race), expected, "case {case}");
        }
    }
}
