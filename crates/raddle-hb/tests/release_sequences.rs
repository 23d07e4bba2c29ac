//! What atomics pass on, against the table of fig. 3.12 of Lidbury's thesis written down with maps.

mod common;

use common::{Heap, Random, cases};
use raddle_hb::{Domain, Location, MemoryOrder, SLOTS, Segment, ThreadClocks};
use std::collections::BTreeMap;

type Map = BTreeMap<u8, u16>;

fn join(to: &mut Map, from: &Map) {
    for (&slot, &epoch) in from {
        let known = to.entry(slot).or_insert(0);
        *known = epoch.max(*known);
    }
}

const THREADS: usize = 4;
const LOCATIONS: usize = 2;
const ORDERS: [MemoryOrder; 6] = [
    MemoryOrder::Relaxed,
    MemoryOrder::Consume,
    MemoryOrder::Acquire,
    MemoryOrder::Release,
    MemoryOrder::AcqRel,
    MemoryOrder::SeqCst,
];

/// The figure's state of a thread: `C`, `F_rel`, `F_acq`.
#[derive(Clone, Default)]
struct Figure {
    c: Map,
    f_rel: Map,
    f_acq: Map,
}

/// The figure's state of a location: `L`, `V`.
#[derive(Clone, Default)]
struct Place {
    l: Map,
    v: BTreeMap<usize, Map>,
}

impl Place {
    fn load(&self, t: &mut Figure, order: MemoryOrder) {
        join(if order.acquires() { &mut t.c } else { &mut t.f_acq }, &self.l);
    }

    fn store(&mut self, t: &Figure, me: usize, order: MemoryOrder, update: bool) {
        match (order.releases(), update) {
            (true, false) => {
                self.l = t.c.clone();
                self.v = BTreeMap::from([(me, t.c.clone())]);
            }
            (false, false) => {
                let own = self.v.remove(&me).unwrap_or_default();
                self.l = own.clone();
                join(&mut self.l, &t.f_rel);
                self.v = BTreeMap::from([(me, own)]);
            }
            (true, true) => {
                join(&mut self.l, &t.c);
                self.v.insert(me, t.c.clone());
            }
            (false, true) => join(&mut self.l, &t.f_rel),
        }
    }
}

fn compare(what: &str, case: u64, times: impl Fn(usize) -> u16, map: &Map) {
    for slot in 0..SLOTS {
        let right = map.get(&(slot as u8)).copied().unwrap_or(0);
        assert_eq!(times(slot), right, "case {case}, {what}, slot {slot}");
    }
}

#[test]
fn atomics_pass_on_what_the_figure_says() {
    let domain = &Domain::<Heap>::new();
    for case in 0..cases(6000) {
        let mut random = Random(case);
        let mut clocks: Vec<Box<ThreadClocks>> =
            (0..THREADS).map(|_| Box::new(ThreadClocks::EMPTY)).collect();
        let mut segments: Vec<Segment> =
            (0..THREADS).map(|ix| Segment { slot: ix as u8 + 1, epoch: 1 }).collect();
        let mut figures = vec![Figure::default(); THREADS];
        for ix in 0..THREADS {
            clocks[ix].clear(&domain.generations);
            clocks[ix].enter(segments[ix]);
            figures[ix].c.insert(segments[ix].slot, 1);
        }
        let mut locations: Vec<Location> = (0..LOCATIONS).map(|_| Location::NONE).collect();
        let mut places = vec![Place::default(); LOCATIONS];
        for _ in 0..24 {
            let (ix, at) = (random.below(THREADS), random.below(LOCATIONS));
            let order = ORDERS[random.below(ORDERS.len())];
            let (location, place) = (&mut locations[at], &mut places[at]);
            let (own, figure) = (&mut clocks[ix], &mut figures[ix]);
            let kind = random.below(4);
            if kind == 0 || kind == 2 {
                location.load(domain, own, order);
                place.load(figure, order);
            }
            if kind == 1 || kind == 2 {
                location.store(domain, own, ix as u32, order, kind == 2);
                place.store(figure, ix, order, kind == 2);
            }
            if kind == 3 {
                own.fence(domain, segments[ix], order, false);
                if order.acquires() {
                    let read = figure.f_acq.clone();
                    join(&mut figure.c, &read);
                }
                if order.releases() {
                    figure.f_rel = figure.c.clone();
                }
            }
            if kind != 0 && order.releases() {
                segments[ix] = segments[ix].next().unwrap();
                own.enter(segments[ix]);
                figure.c.insert(segments[ix].slot, segments[ix].epoch);
            }
        }
        for (own, figure) in clocks.iter().zip(&figures) {
            compare("C", case, |slot| own.clock.times[slot], &figure.c);
            compare("F_rel", case, |slot| own.fence_release.times[slot], &figure.f_rel);
            compare("F_acq", case, |slot| own.fence_acquire.times[slot], &figure.f_acq);
        }
        for (location, place) in locations.iter_mut().zip(&places) {
            // What an acquire load gets is all that can be seen of a location.
            let mut reader = Box::new(ThreadClocks::EMPTY);
            reader.clear(&domain.generations);
            location.load(domain, &mut reader, MemoryOrder::Acquire);
            compare("L", case, |slot| reader.clock.times[slot], &place.l);
            location.clear(domain);
        }
    }
}

/// Readers of a read-write lock pass on to writers and not to each other.
#[test]
fn readers_pass_on_to_writers_only() {
    let domain = Domain::<Heap>::new();
    let mut threads: Vec<Box<ThreadClocks>> = (0..3).map(|_| Box::new(ThreadClocks::EMPTY)).collect();
    for (ix, thread) in threads.iter_mut().enumerate() {
        thread.enter(Segment { slot: ix as u8 + 1, epoch: 5 });
    }
    let mut lock = Location::NONE;
    lock.acquire(&domain, &mut threads[0].clock);
    lock.release_by_reader(&domain, &mut threads[0].clock);
    lock.acquire(&domain, &mut threads[1].clock);
    assert_eq!(threads[1].clock.times[1], 0, "a reader knows nothing of another");
    lock.release_by_reader(&domain, &mut threads[1].clock);
    lock.acquire(&domain, &mut threads[2].clock);
    lock.acquire_from_readers(&domain, &mut threads[2].clock);
    assert_eq!(threads[2].clock.times[1..4], [5, 5, 5], "a writer knows both");
    lock.release(&domain, &mut threads[2].clock);
    lock.acquire(&domain, &mut threads[0].clock);
    assert_eq!(threads[0].clock.times[1..4], [5, 5, 5]);
    lock.clear(&domain);
}

#[test]
fn orders_are_numbered_as_the_compilers_do() {
    for (number, order) in ORDERS.into_iter().enumerate() {
        assert_eq!(MemoryOrder::from_c(number as i32), order);
    }
    assert_eq!(MemoryOrder::from_c(17), MemoryOrder::Relaxed);
}
