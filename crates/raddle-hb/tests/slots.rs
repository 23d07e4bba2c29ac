//! Slots and segments against the set of all names that were ever given.
//!
//! The twin remembers every access by the thread that really made it. Names may be given again only when nothing in a cell
//! can bear them any more, and clocks that go by names must say what clocks that go by threads would say, but for the
//! one case that the rules admit: a slot that went to a thread which did not know all of it.

mod common;

use common::{Random, cases};
use raddle_hb::cell::EPOCH_MAX;
use raddle_hb::segment::SegmentTable;
use raddle_hb::slots::{SlotTable, THREAD_SLOTS};
use raddle_hb::{Clock, Generations, SLOTS, Segment};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn segments_count_up_and_end() {
    let first = Segment { slot: 7, epoch: 1 };
    assert_eq!(first.next(), Some(Segment { slot: 7, epoch: 2 }));
    assert_eq!(Segment { slot: 7, epoch: EPOCH_MAX as u16 }.next(), None);
    assert_eq!(Segment::NONE.next(), None);
    assert_eq!(Segment::NONE.name(), 0);
}

/// No name is given twice between two wipes, and no slot has two owners.
#[test]
fn names_of_segments_are_given_once() {
    for case in 0..cases(300) {
        let mut random = Random(case);
        let mut table = SegmentTable::default();
        let mut owned: Vec<Segment> = Vec::new();
        let mut given: BTreeSet<u32> = BTreeSet::new();
        let mut wipes = 0;
        // Where rounds are dear, fewer threads end: all slots have been used sooner.
        let (rounds, one_in) = if cfg!(miri) { (450, 4) } else { (3000, 2) };
        for _ in 0..rounds {
            let detaches = random.chance(one_in) && !owned.is_empty();
            if detaches {
                let last = owned.swap_remove(random.below(owned.len()));
                // A thread that synchronised much has used up its slot.
                let epoch = if random.chance(2) { EPOCH_MAX as u16 } else { last.epoch };
                table.detach(Segment { epoch, ..last });
                continue;
            }
            let mut wiped = false;
            let segment = table.attach(|| wiped = true);
            if wiped {
                wipes += 1;
                // Owners go on in their slots, so only their names are left.
                given.retain(|name| owned.iter().any(|owner| owner.name() == *name));
            }
            if segment.is_none() {
                assert_eq!(owned.len(), SLOTS - 1, "case {case}: there was a slot");
                table.detach(Segment::NONE);
                continue;
            }
            assert!(owned.iter().all(|owner| owner.slot != segment.slot), "case {case}: two owners");
            assert!(given.insert(segment.name()), "case {case}: a name was given twice");
            owned.push(segment);
        }
        assert!(wipes > 0, "case {case}: the table never started over");
    }
}

/// A thread of the model: what it knows by names, and what it knows by threads.
struct Thread {
    clock: Box<Clock>,
    segment: Segment,
    /// For each life of a slot (slot, owner): up to which epoch it is really known.
    known: BTreeMap<(u8, usize), u16>,
}

/// Every name that stands in memory since the last wipe, with who wrote it.
#[derive(Default)]
struct Memory {
    written: BTreeSet<(u8, u16, usize)>,
}

#[test]
fn slots_are_used_again_without_inventing_races() {
    let (mut restarts, mut reuses) = (0, 0);
    for case in 0..cases(60) {
        let mut random = Random(case);
        let (mut table, generations) = (SlotTable::default(), Generations::new());
        let mut threads: Vec<Option<Thread>> = Vec::new();
        let mut memory = Memory::default();
        for _ in 0..if cfg!(miri) { 120 } else { 1200 } {
            let living: Vec<usize> = (0..threads.len()).filter(|&ix| threads[ix].is_some()).collect();
            match random.below(5) {
                // A new thread, which knows what some other one knows, or nothing.
                0 | 1 => {
                    let mut clock = Box::new(Clock::EMPTY);
                    clock.clear(&generations);
                    let mut known = BTreeMap::new();
                    if !living.is_empty() && !random.chance(4) {
                        let parent = threads[living[random.below(living.len())]].as_mut().unwrap();
                        clock.copy_from(&generations, &mut parent.clock);
                        known = parent.known.clone();
                    }
                    let mut wiped = false;
                    let before = generations.current();
                    let segment = table.attach(&generations, &mut clock, || wiped = true);
                    if wiped {
                        restarts += 1;
                        assert!(generations.current() > before);
                        memory.written.clear();
                        // What running threads write is still theirs.
                        for (ix, thread) in threads.iter().enumerate() {
                            let Some(thread) = thread else { continue };
                            memory.written.insert((thread.segment.slot, thread.segment.epoch, ix));
                        }
                    }
                    if segment.is_none() {
                        assert_eq!(living.len(), THREAD_SLOTS - 1, "case {case}: there was a slot");
                        continue;
                    }
                    clock.set(&generations, segment.slot, segment.epoch);
                    let me = threads.len();
                    reuses += usize::from(segment.epoch > 1);
                    known.insert((segment.slot, me), segment.epoch);
                    memory.written.insert((segment.slot, segment.epoch, me));
                    threads.push(Some(Thread { clock, segment, known }));
                }
                // A thread ends, perhaps with its slot used up.
                2 if !living.is_empty() => {
                    let ix = living[random.below(living.len())];
                    let thread = threads[ix].take().unwrap();
                    let epoch = if random.chance(2) { EPOCH_MAX as u16 } else { thread.segment.epoch };
                    memory.written.insert((thread.segment.slot, epoch, ix));
                    table.detach(Segment { epoch, ..thread.segment });
                }
                // One thread passes what it knows to another and begins a new segment.
                _ if living.len() > 1 => {
                    let from = living[random.below(living.len())];
                    let to = living[random.below(living.len())];
                    if from == to {
                        continue;
                    }
                    let [from_thread, to_thread] = threads.get_disjoint_mut([from, to]).unwrap();
                    let (source, target) = (from_thread.as_mut().unwrap(), to_thread.as_mut().unwrap());
                    target.clock.join(&generations, &mut source.clock);
                    for (&key, &epoch) in &source.known {
                        let entry = target.known.entry(key).or_insert(0);
                        *entry = epoch.max(*entry);
                    }
                    if let Some(next) = source.segment.next() {
                        source.segment = next;
                        source.clock.times[usize::from(next.slot)] = next.epoch;
                        source.known.insert((next.slot, from), next.epoch);
                        memory.written.insert((next.slot, next.epoch, from));
                    }
                }
                _ => {}
            }
        }
        // What a thread really knows, its clock knows: a race that is told is one.
        for thread in threads.iter_mut().flatten() {
            thread.clock.refresh(&generations);
            for &(slot, epoch, owner) in &memory.written {
                let really = thread.known.get(&(slot, owner)).is_some_and(|&known| known >= epoch);
                let says = thread.clock.times[usize::from(slot)] >= epoch;
                assert!(!really || says, "case {case}: slot {slot} at {epoch} was forgotten");
            }
        }
    }
    let all_used = restarts > 0 || cfg!(miri);
    assert!(all_used && reuses > 0, "{restarts} restarts, {reuses} slots used again");
}

/// Rule 3: when every slot is used up the shadow is wiped, once, and all of them begin again in a new generation.
#[test]
fn spent_slots_begin_again_together() {
    let (mut table, generations) = (SlotTable::new(), Generations::new());
    let (slots, mut wipes) = (THREAD_SLOTS - 1, 0);
    let first = generations.current();
    for round in 0..slots + if cfg!(miri) { 2 } else { 3 * slots } {
        let mut clock = Box::new(Clock::EMPTY);
        clock.clear(&generations);
        let segment = table.attach(&generations, &mut clock, || wipes += 1);
        assert_eq!((usize::from(segment.slot), segment.epoch), (1 + round % slots, 1), "round {round}");
        assert_eq!(wipes, round / slots, "round {round}");
        assert_eq!((generations.current() - first) as usize, wipes, "round {round}");
        table.detach(Segment { epoch: EPOCH_MAX as u16, ..segment });
    }
}

/// Rule 1: a thread that joined another takes over its slot and nothing is given up.
#[test]
fn a_slot_goes_to_who_knows_all_of_it() {
    let (mut table, generations) = (SlotTable::new(), Generations::new());
    let mut main = Box::new(Clock::EMPTY);
    let mut segment = table.attach(&generations, &mut main, || unreachable!());
    main.set(&generations, segment.slot, segment.epoch);
    for round in 0..if cfg!(miri) { 20 } else { 1000 } {
        let mut child = Box::new(Clock::EMPTY);
        child.copy_from(&generations, &mut main);
        let own = table.attach(&generations, &mut child, || unreachable!());
        assert_eq!(own.slot, 2, "round {round}: each finds the slot of the one before");
        child.set(&generations, own.slot, own.epoch);
        table.detach(own);
        main.join(&generations, &mut child);
        segment = segment.next().unwrap();
        main.set(&generations, segment.slot, segment.epoch);
    }
}
