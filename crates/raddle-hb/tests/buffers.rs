//! The bounded buffer of a location's stores, and the choices among them.
//!
//! The twin forgets nothing: it keeps what fig. 3.12 of Lidbury's thesis says of every store that was ever made. Whatever an acquiring load
//! chooses among the stores that are left, it must get what the twin knows of that store, however long ago the head of a release
//! sequence has left the buffer.

mod common;

use common::{Heap, Random, cases};
use raddle_hb::release_sequence::Effect;
use raddle_hb::stores::STORES_MAX;
use raddle_hb::weak::{Chooser, Performer, Preference, Wish};
use raddle_hb::{Domain, Location, MemoryOrder, SLOTS, Segment, ThreadClocks};
use std::collections::BTreeMap;

type Map = BTreeMap<u8, u16>;

fn join(to: &mut Map, from: &Map) {
    for (&slot, &epoch) in from {
        let known = to.entry(slot).or_insert(0);
        *known = epoch.max(*known);
    }
}

const THREADS: usize = 3;

/// The figure's state of a thread: `C`, `F_rel`, `F_acq`.
#[derive(Clone, Default)]
struct Figure {
    c: Map,
    f_rel: Map,
    f_acq: Map,
}

/// The figure's `V`, and `L` at every store there was; the value of a store is its place here.
struct Twin {
    v: BTreeMap<usize, Map>,
    l: Vec<Map>,
}

impl Twin {
    fn load(&self, figure: &mut Figure, store: usize, order: MemoryOrder) {
        join(if order.acquires() { &mut figure.c } else { &mut figure.f_acq }, &self.l[store]);
    }

    fn store(&mut self, figure: &Figure, me: usize, order: MemoryOrder, update: bool) {
        let mut l = if update { self.l.last().cloned().unwrap_or_default() } else { Map::new() };
        if order.releases() {
            join(&mut l, &figure.c);
            if !update {
                self.v.clear();
            }
            self.v.insert(me, figure.c.clone());
        } else {
            if !update {
                let own = self.v.remove(&me).unwrap_or_default();
                join(&mut l, &own);
                self.v = BTreeMap::from([(me, own)]);
            }
            join(&mut l, &figure.f_rel);
        }
        self.l.push(l);
    }
}

struct Thread {
    clocks: Box<ThreadClocks>,
    segment: Segment,
    figure: Figure,
}

fn threads(domain: &Domain<Heap>) -> Vec<Thread> {
    let thread = |ix: usize| {
        let segment = Segment { slot: ix as u8 + 1, epoch: 1 };
        let mut clocks = Box::new(ThreadClocks::EMPTY);
        clocks.clear(&domain.generations);
        clocks.enter(segment);
        Thread { clocks, segment, figure: Figure { c: Map::from([(segment.slot, 1)]), ..Figure::default() } }
    };
    (0..THREADS).map(thread).collect()
}

/// One operation on the location. Stores go to the end; which store a load reads is `pick`'s choice among those offered. Says which
/// store was read.
fn perform(
    domain: &Domain<Heap>,
    location: &mut Location,
    thread: &mut Thread,
    (me, twin): (usize, &mut Twin),
    (wish, order): (Wish, MemoryOrder),
    pick: impl FnOnce(usize) -> usize,
) -> usize {
    let last = twin.l.len() - 1;
    let mut performer = Performer { clocks: &mut thread.clocks, segment: thread.segment, thread: me as u32 };
    let pick = |count| if wish == Wish::Load { pick(count) } else { 0 };
    let mut chosen = location
        .choose(domain, &mut performer, (last as u64, 3), wish, order, pick)
        .expect("there is memory");
    let read = chosen.older_value().map_or(last, |value| value as usize);
    if wish != Wish::Store {
        chosen.read(domain, performer.clocks, order);
        twin.load(&mut thread.figure, read, order);
    }
    match wish {
        Wish::Load => chosen.note_reader(domain, performer.segment),
        Wish::Store | Wish::Update | Wish::Exchange { .. } => {
            let update = wish != Wish::Store;
            let effect = if update { Effect::Update } else { Effect::Store };
            chosen.write(domain, &mut performer, last as u64 + 1, effect, order);
            twin.store(&thread.figure, me, order, update);
        }
    }
    if wish != Wish::Load && order.releases() {
        thread.segment = thread.segment.next().expect("few segments");
        thread.clocks.enter(thread.segment);
        thread.figure.c.insert(thread.segment.slot, thread.segment.epoch);
    }
    read
}

fn compare(what: &str, times: impl Fn(usize) -> u16, map: &Map) {
    for slot in 0..SLOTS {
        assert_eq!(times(slot), map.get(&(slot as u8)).copied().unwrap_or(0), "{what}, slot {slot}");
    }
}

#[test]
fn stores_that_leave_the_buffer_take_no_sequence_with_them() {
    let domain = &Domain::<Heap>::new();
    let (mut old_reads, mut far_reads) = (0, 0);
    for case in 0..cases(200) {
        let mut random = Random(case);
        let mut threads = threads(domain);
        let mut location = Location::NONE;
        let mut twin = Twin { v: BTreeMap::new(), l: vec![Map::new()] };
        // One thread does most, so that its sequences grow longer than the buffer.
        let busy = random.below(THREADS);
        let steps = STORES_MAX as usize * if cfg!(miri) { 5 } else { 12 } / 4;
        for step in 0..steps {
            let me = if random.chance(12) { random.below(THREADS) } else { busy };
            let thread = &mut threads[me];
            let orders =
                [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel];
            let order = if random.chance(8) { orders[random.below(4)] } else { MemoryOrder::Relaxed };
            let wish = [Wish::Store, Wish::Store, Wish::Store, Wish::Update, Wish::Load][random.below(5)];
            if random.chance(40) {
                thread.clocks.fence(domain, thread.segment, order, true);
                if order.acquires() {
                    let read = thread.figure.f_acq.clone();
                    join(&mut thread.figure.c, &read);
                }
                if order.releases() {
                    thread.figure.f_rel = thread.figure.c.clone();
                    thread.segment = thread.segment.next().expect("few segments");
                    thread.clocks.enter(thread.segment);
                    thread.figure.c.insert(thread.segment.slot, thread.segment.epoch);
                }
            }
            let newest = twin.l.len() - 1;
            let choice = random.next();
            let mut offered = 1;
            let read = perform(domain, &mut location, thread, (me, &mut twin), (wish, order), |count| {
                offered = count;
                choice as usize % count
            });
            assert!(offered <= STORES_MAX as usize, "case {case}, step {step}: {offered} candidates");
            old_reads += usize::from(read != newest);
            far_reads += usize::from(newest - read > STORES_MAX as usize / 2);
            // Comparing all slots takes Miri long.
            if cfg!(miri) && step % 40 != 0 {
                continue;
            }
            let what = format!("case {case}, step {step}");
            compare(&format!("{what}, C"), |slot| thread.clocks.clock.times[slot], &thread.figure.c);
            compare(
                &format!("{what}, F_acq"),
                |slot| thread.clocks.fence_acquire.times[slot],
                &thread.figure.f_acq,
            );
        }
        location.clear(domain);
    }
    assert!(cfg!(miri) || old_reads > 0 && far_reads > 0, "{old_reads} old reads, {far_reads} from far back");
}

/// When slots start over, epochs say no more who knows what: only the last store is left, and what it passes on stays.
#[test]
fn a_new_generation_leaves_only_the_last_store() {
    let domain = &Domain::<Heap>::new();
    let mut threads = threads(domain);
    let mut location = Location::NONE;
    let mut twin = Twin { v: BTreeMap::new(), l: vec![Map::new()] };
    for _ in 0..5 {
        let store = (Wish::Store, MemoryOrder::Release);
        perform(domain, &mut location, &mut threads[0], (0, &mut twin), store, |_| 0);
    }
    let reads = |threads: &mut Vec<Thread>, location: &mut Location, twin: &mut Twin, me: usize| {
        let mut offered = 1;
        let read = perform(
            domain,
            location,
            &mut threads[me],
            (me, twin),
            (Wish::Load, MemoryOrder::Relaxed),
            |count| {
                offered = count;
                count - 1
            },
        );
        (read, offered)
    };
    assert_eq!(reads(&mut threads, &mut location, &mut twin, 1), (0, 6), "the initial value and five stores");
    // Nobody is in slot 7.
    domain.generations.restart(std::iter::once(7));
    assert_eq!(reads(&mut threads, &mut location, &mut twin, 2), (5, 1));
    perform(
        domain,
        &mut location,
        &mut threads[2],
        (2, &mut twin),
        (Wish::Load, MemoryOrder::Acquire),
        |_| 0,
    );
    assert_eq!(threads[2].clocks.clock.times[1], 5, "the fifth release passes on what its thread knew");
    location.clear(domain);
}

/// The C++ library writes the guard of a local static by itself and announces the end of the initialisation: whoever reads that value afterwards
/// knows what the initialiser did, also where loads may read older stores.
#[test]
fn a_value_written_unseen_passes_on_what_was_announced_with_it() {
    let domain = &Domain::<Heap>::new();
    let mut threads = threads(domain);
    let mut guard = Location::NONE;
    let read = |thread: &mut Thread, guard: &mut Location, memory: u64| {
        let mut performer = Performer { clocks: &mut thread.clocks, segment: thread.segment, thread: 1 };
        let order = MemoryOrder::Acquire;
        let pick = |count: usize| count - 1;
        let mut chosen = guard
            .choose(domain, &mut performer, (memory, 0), Wish::Load, order, pick)
            .expect("there is memory");
        let value = chosen.older_value().unwrap_or(memory);
        chosen.read(domain, performer.clocks, order);
        chosen.note_reader(domain, performer.segment);
        value
    };
    assert_eq!(read(&mut threads[1], &mut guard, 0), 0, "not initialised yet");
    assert_eq!(threads[1].clocks.clock.times[1], 0);
    guard.release(domain, &mut threads[0].clocks.clock);
    assert_eq!(read(&mut threads[1], &mut guard, 1), 1);
    assert_eq!(threads[1].clocks.clock.times[1], 1, "the initialiser's segment is known");
    guard.clear(domain);
}

/// How often each of four candidates is taken, in percent.
fn shares(preference: Preference, wish: Wish) -> [u64; 4] {
    let chooser = Chooser { seed: 7, preference };
    let mut counts = [0u64; 4];
    let rounds = if cfg!(miri) { 400 } else { 100_000 };
    for nth in 0..rounds {
        counts[chooser.pick(nth % 5, nth, wish, 4)] += 1;
    }
    counts.map(|count| (count * 100 + rounds / 2) / rounds)
}

/// The newest first: one half, one quarter, one eighth, and the rest (again one eighth) for the last. A store goes elsewhere than to the
/// end in one of four cases, and then as the preference says: at the end remain 3/4 + 1/4 of the preference's own share.
#[test]
fn choices_are_as_often_as_their_preference_says() {
    let near = |found: [u64; 4], right: [u64; 4]| {
        let tolerance = if cfg!(miri) { 12 } else { 1 };
        found.iter().zip(right).all(|(&found, right)| found.abs_diff(right) <= tolerance)
    };
    for (preference, wish, right) in [
        (Preference::Uniform, Wish::Load, [25, 25, 25, 25]),
        (Preference::Newest, Wish::Load, [50, 25, 13, 13]),
        (Preference::Oldest, Wish::Update, [13, 13, 25, 50]),
        (Preference::Newest, Wish::Store, [88, 6, 3, 3]),
    ] {
        let found = shares(preference, wish);
        assert!(near(found, right), "{preference:?}, {wish:?}: {found:?}, expected {right:?}");
    }
    // The same choice of the same thread in a run with the same seed is the same; another thread's is its own.
    let chooser = Chooser { seed: 7, preference: Preference::Uniform };
    let row = |name| (0..50).map(|nth| chooser.pick(name, nth, Wish::Load, 4)).collect::<Vec<_>>();
    assert_eq!(row(1), row(1));
    assert_ne!(row(1), row(2));
}
