//! The visited states in memory: one table that all workers read and write at the same time, without locks.
//!
//! States lie in *segments*; a worker fills segments of its own, in the order it finds states, so what it found
//! together it later expands together. That order is worth a lot: neighbours have successors in common, and a worker
//! that expands neighbours one after the other drops most repetitions in its own cache. (Dividing states among shards by
//! hash, the obvious way to share a table, destroys it: two workers then do almost twice the work of one.)
//!
//! The index has one 4-byte entry a slot, with linear probing: the position of a state plus one in the low bits and, in
//! the bits that are left, a piece of the state's hash, so that a probe seldom reads a state in vain. A worker writes a
//! new state to the end of its own segment first and then tries to swap the entry into an empty slot (release, so that
//! whoever sees the entry sees the state). If another worker was faster with the same state, the place is used for the
//! next one. A slot never changes once it is full, so a state is in the table exactly once.
//!
//! Looking a batch up goes in passes: first all slots are read, then all the states they point at, then what is left is
//! inserted. The reads of a pass do not depend on each other, so the processor overlaps their cache misses; that is
//! worth a factor of two to three on state spaces beyond the cache.
//!
//! Room for a batch is reserved before it is inserted. When there is none, nothing is inserted and the caller has to
//! bring all workers to a halt and make room: [`Table::grow`] has the table for itself (`&mut`).

use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use super::layout::Key;

/// Slots a new index has.
pub const SLOTS_START: usize = 1 << 8;
/// States that are inserted together, and for which room is reserved together.
pub const INSERT_KEYS_MAX: usize = 64;
/// Words of a segment.
const SEGMENT_WORDS: usize = 1 << 12;
/// Fewer states than this are moved to a larger index by one thread.
const GROW_PARALLEL_KEYS_MIN: usize = 1 << 16;
const EMPTY: u32 = 0;

/// Multiply and fold, a word at a time. Slots are chosen by the low bits, entries marked by the high ones.
#[inline(always)]
pub fn hash<const W: usize>(key: &Key<W>) -> u64 {
    let mut h: u64 = 0x51_7c_c1_b7_27_22_0a_95;
    for &word in key {
        let product = u128::from(h ^ word) * 0x9e37_79b9_7f4a_7c15_u128;
        h = (product >> 64) as u64 ^ (product as u64);
    }
    h ^ (h >> 29)
}

/// A run of states of one part.
struct Segment<const W: usize> {
    keys: Box<[[AtomicU64; W]]>,
    part: u32,
    /// Position within the part of the first state.
    start: usize,
}

/// What one worker found: its segments in order, and how many states there are in them.
#[derive(Default)]
struct Own {
    segments: Vec<u32>,
    len: usize,
}

/// On cache lines of its own: its worker writes it all the time.
#[derive(Default)]
#[repr(align(128))]
struct Part(Mutex<Own>);

/// What all workers write, on cache lines of its own: beside it lies what they read all the time.
#[derive(Default)]
#[repr(align(128))]
struct Shared {
    segments_used: AtomicU32,
    /// States that may still be inserted.
    room: AtomicI64,
}

/// See the module's head.
pub struct Table<const W: usize> {
    index: Box<[AtomicU32]>,
    /// Bits of an entry that hold the position plus one.
    position_mask: u32,
    segments: Box<[OnceLock<Segment<W>>]>,
    parts: Box<[Part]>,
    capacity: usize,
    shared: Shared,
}

impl<const W: usize> Table<W> {
    const SEGMENT_KEYS: usize =
        if SEGMENT_WORDS / W > 64 { (SEGMENT_WORDS / W).next_power_of_two() } else { 64 };

    /// A table for at most `keys_max` states, until it grows.
    pub fn new(parts: usize, keys_max: usize) -> Table<W> {
        let mut table = Table {
            index: Box::default(),
            position_mask: 0,
            segments: Box::default(),
            parts: (0..parts).map(|_| Part::default()).collect(),
            capacity: 0,
            shared: Shared::default(),
        };
        table.resize(SLOTS_START, keys_max);
        table
    }

    /// States that fit in `slots`: linear probing degrades beyond seven eighths.
    fn load_max(slots: usize) -> usize {
        slots / 8 * 7
    }

    fn own(&self, part: usize) -> MutexGuard<'_, Own> {
        self.parts[part].0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// States in a part.
    pub fn len(&self, part: usize) -> usize {
        self.own(part).len
    }

    /// States in all parts.
    pub fn key_count(&self) -> usize {
        (0..self.parts.len()).map(|p| self.len(p)).sum()
    }

    pub fn slot_count(&self) -> usize {
        self.index.len()
    }

    /// Bytes in use: vectors and index.
    pub fn bytes(&self) -> usize {
        Self::bytes_of(self.key_count(), self.index.len())
    }

    /// Bytes of so many states with so many slots.
    pub fn bytes_of(keys: usize, slots: usize) -> usize {
        keys * 8 * W + slots * size_of::<AtomicU32>()
    }

    /// Whether entries of an index twice as large could still hold every position.
    pub fn can_grow(&self) -> bool {
        Self::segments_for(Self::load_max(self.index.len() * 2), self.part_count()) * Self::SEGMENT_KEYS
            < u32::MAX as usize
    }

    /// Every part may leave its last segment unfilled.
    fn segments_for(capacity: usize, parts: usize) -> usize {
        capacity.div_ceil(Self::SEGMENT_KEYS) + parts
    }

    #[inline(always)]
    fn key_at(&self, position: u32) -> &[AtomicU64; W] {
        let position = position as usize;
        let segment =
            self.segments[position / Self::SEGMENT_KEYS].get().expect("a position lies in a segment");
        &segment.keys[position % Self::SEGMENT_KEYS]
    }

    #[inline(always)]
    fn is_at(&self, position: u32, key: &Key<W>) -> bool {
        let there = self.key_at(position);
        (0..W).all(|i| there[i].load(Ordering::Relaxed) == key[i])
    }

    #[inline(always)]
    fn mark(&self, hash: u64) -> u32 {
        (hash >> 32) as u32 & !self.position_mask
    }

    /// Adds the states that are not there yet to a part; false if there is no room for so many, and then does nothing.
    /// Only one thread at a time gets anywhere with the same part.
    pub fn insert(&self, part: usize, batch: &[(u64, Key<W>)]) -> bool {
        debug_assert!(batch.len() <= INSERT_KEYS_MAX);
        let wanted = batch.len() as i64;
        if self.shared.room.fetch_sub(wanted, Ordering::Relaxed) < wanted {
            self.shared.room.fetch_add(wanted, Ordering::Relaxed);
            return false;
        }
        let mask = self.index.len() - 1;
        let mut entries = [EMPTY; INSERT_KEYS_MAX];
        for (entry, (hash, _)) in entries.iter_mut().zip(batch) {
            *entry = self.index[*hash as usize & mask].load(Ordering::Acquire);
        }
        let mut known = 0u64;
        for (i, (entry, (hash, key))) in entries.iter().zip(batch).enumerate() {
            if self.holds(*entry, *hash, key) {
                known |= 1 << i;
            }
        }
        let mut own = self.own(part);
        let before = own.len;
        for (i, (hash, key)) in batch.iter().enumerate() {
            if known & 1 << i == 0 {
                self.insert_one(part, &mut own, *hash, key);
            }
        }
        let added = (own.len - before) as i64;
        drop(own);
        self.shared.room.fetch_add(wanted - added, Ordering::Relaxed);
        true
    }

    #[inline(always)]
    fn holds(&self, entry: u32, hash: u64, key: &Key<W>) -> bool {
        entry != EMPTY
            && entry & !self.position_mask == self.mark(hash)
            && self.is_at((entry & self.position_mask) - 1, key)
    }

    #[inline(always)]
    fn insert_one(&self, part: usize, own: &mut Own, hash: u64, key: &Key<W>) {
        let mask = self.index.len() - 1;
        let mut slot = hash as usize & mask;
        let mut written = None;
        loop {
            let mut entry = self.index[slot].load(Ordering::Acquire);
            if entry == EMPTY {
                let position = *written.get_or_insert_with(|| self.write(part, own, key));
                let new = self.mark(hash) | (position + 1);
                match self.index[slot].compare_exchange(EMPTY, new, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        own.len += 1;
                        return;
                    }
                    Err(other) => entry = other,
                }
            }
            if self.holds(entry, hash, key) {
                return;
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Writes a state behind the last of a part, without counting it, and says where that is.
    fn write(&self, part: usize, own: &mut Own, key: &Key<W>) -> u32 {
        let offset = own.len % Self::SEGMENT_KEYS;
        if own.len / Self::SEGMENT_KEYS == own.segments.len() {
            let segment = self.shared.segments_used.fetch_add(1, Ordering::Relaxed);
            self.segments[segment as usize].get_or_init(|| Segment {
                keys: (0..Self::SEGMENT_KEYS).map(|_| [const { AtomicU64::new(0) }; W]).collect(),
                part: part as u32,
                start: own.len,
            });
            own.segments.push(segment);
        }
        let segment = *own.segments.last().expect("a segment was just made");
        let position = segment * Self::SEGMENT_KEYS as u32 + offset as u32;
        let place = self.key_at(position);
        for i in 0..W {
            place[i].store(key[i], Ordering::Relaxed);
        }
        position
    }

    /// Where the state is: (part, position in it).
    pub fn find(&self, key: &Key<W>) -> Option<(usize, usize)> {
        let hash = hash(key);
        let mask = self.index.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let entry = self.index[slot].load(Ordering::Acquire);
            if entry == EMPTY {
                return None;
            }
            if self.holds(entry, hash, key) {
                let position = (entry & self.position_mask) as usize - 1;
                let segment =
                    self.segments[position / Self::SEGMENT_KEYS].get().expect("a position lies in a segment");
                return Some((segment.part as usize, segment.start + position % Self::SEGMENT_KEYS));
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds the states at `positions` of a part to `out`.
    pub fn read(&self, part: usize, positions: Range<usize>, out: &mut Vec<Key<W>>) {
        let mut at = positions.start;
        while at < positions.end {
            let number = self.own(part).segments[at / Self::SEGMENT_KEYS];
            let segment = self.segments[number as usize].get().expect("a part's segments were made");
            let end = positions.end.min((at / Self::SEGMENT_KEYS + 1) * Self::SEGMENT_KEYS);
            let range = at - segment.start..end - segment.start;
            out.extend(
                segment.keys[range].iter().map(|key| std::array::from_fn(|i| key[i].load(Ordering::Relaxed))),
            );
            at = end;
        }
    }

    /// Doubles the index, for at most `keys_max` states.
    pub fn grow(&mut self, keys_max: usize) {
        self.resize(self.index.len() * 2, keys_max);
    }

    /// Forgets everything but the size of the index.
    pub fn clear(&mut self, keys_max: usize) {
        let slots = self.index.len();
        *self = Table::new(self.parts.len(), keys_max);
        self.resize(slots, keys_max);
    }

    fn resize(&mut self, slots: usize, keys_max: usize) {
        let count = self.key_count();
        self.capacity = Self::load_max(slots).min(keys_max).max(INSERT_KEYS_MAX);
        let segments = Self::segments_for(Self::load_max(slots), self.part_count());
        let mut kept = std::mem::take(&mut self.segments).into_vec();
        kept.resize_with(segments.max(kept.len()), OnceLock::new);
        self.segments = kept.into();
        let positions = self.segments.len() * Self::SEGMENT_KEYS;
        self.position_mask = u32::MAX.checked_shr((positions as u32).leading_zeros()).unwrap_or(0);
        self.shared.room = AtomicI64::new(self.capacity.saturating_sub(count) as i64);
        self.index = (0..slots).map(|_| AtomicU32::new(EMPTY)).collect();
        let table = &*self;
        if count < GROW_PARALLEL_KEYS_MIN || table.parts.len() == 1 {
            (0..table.parts.len()).for_each(|part| table.index_part(part));
        } else {
            std::thread::scope(|scope| {
                for part in 1..table.parts.len() {
                    scope.spawn(move || table.index_part(part));
                }
                table.index_part(0);
            });
        }
    }

    /// Enters the states of a part into an index that has none of them. They are all different.
    fn index_part(&self, part: usize) {
        let mask = self.index.len() - 1;
        let own = self.own(part);
        for (i, number) in own.segments.iter().enumerate() {
            let segment = self.segments[*number as usize].get().expect("a part's segments were made");
            let count = (own.len - i * Self::SEGMENT_KEYS).min(Self::SEGMENT_KEYS);
            let first = *number * Self::SEGMENT_KEYS as u32;
            for start in (0..count).step_by(INSERT_KEYS_MAX) {
                let keys = &segment.keys[start..count.min(start + INSERT_KEYS_MAX)];
                // As in `insert`: the misses of all first, then the swaps, which do not overlap.
                let mut hashes = [0u64; INSERT_KEYS_MAX];
                let mut touched = 0;
                for (h, key) in hashes.iter_mut().zip(keys) {
                    *h = hash::<W>(&std::array::from_fn(|i| key[i].load(Ordering::Relaxed)));
                    touched |= self.index[*h as usize & mask].load(Ordering::Relaxed);
                }
                std::hint::black_box(touched);
                for (j, &h) in hashes[..keys.len()].iter().enumerate() {
                    let entry = self.mark(h) | (first + (start + j) as u32 + 1);
                    let mut slot = h as usize & mask;
                    while self.index[slot].load(Ordering::Relaxed) != EMPTY
                        || self.index[slot]
                            .compare_exchange(EMPTY, entry, Ordering::AcqRel, Ordering::Relaxed)
                            .is_err()
                    {
                        slot = (slot + 1) & mask;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::semantics::random::Random;

    fn contents<const W: usize>(table: &Table<W>, part: usize) -> Vec<Key<W>> {
        let mut keys = Vec::new();
        table.read(part, 0..table.len(part), &mut keys);
        keys
    }

    /// One part against a plain set, in order of discovery, through several sizes.
    #[test]
    fn a_table_keeps_first_meetings_in_order() {
        let mut table: Table<2> = Table::new(1, usize::MAX);
        let mut random = Random::new(5);
        let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
        for _ in 0..400 {
            let batch: Vec<(u64, Key<2>)> = (0..1 + random.below(INSERT_KEYS_MAX))
                .map(|_| [random.below(100) as u64, random.below(90) as u64])
                .map(|key| (hash(&key), key))
                .collect();
            while !table.insert(0, &batch) {
                table.grow(usize::MAX);
            }
            order.extend(batch.iter().map(|(_, key)| *key).filter(|key| seen.insert(*key)));
        }
        assert_eq!(contents(&table, 0), order);
        for (position, key) in order.iter().enumerate() {
            assert_eq!(table.find(key), Some((0, position)));
        }
        assert_eq!(table.find(&[100, 0]), None);
    }

    /// Several threads insert the same states in different orders: each is there once, wherever.
    #[test]
    fn workers_do_not_insert_a_state_twice() {
        const KEYS: usize = 30_000;
        for workers in [2, 3, 8] {
            let mut table: Table<1> = Table::new(workers, usize::MAX);
            while table.capacity < KEYS + workers * INSERT_KEYS_MAX {
                table.grow(usize::MAX);
            }
            std::thread::scope(|scope| {
                for part in 0..workers {
                    let table = &table;
                    scope.spawn(move || {
                        let keys: Vec<Key<1>> = (0..KEYS)
                            .map(|i| [((i * [1, 7, 11, 13, 17, 19, 23, 29][part]) % KEYS) as u64])
                            .collect();
                        for batch in keys.chunks(INSERT_KEYS_MAX) {
                            let batch: Vec<_> = batch.iter().map(|key| (hash(key), *key)).collect();
                            assert!(table.insert(part, &batch), "there is room for all");
                        }
                    });
                }
            });
            table.grow(usize::MAX);
            let mut all: Vec<Key<1>> = (0..workers).flat_map(|part| contents(&table, part)).collect();
            all.sort_unstable();
            assert_eq!(all.len(), KEYS, "{workers} workers");
            assert!(all.iter().enumerate().all(|(i, key)| key[0] == i as u64), "{workers} workers");
            for part in 0..workers {
                for (position, key) in contents(&table, part).iter().enumerate() {
                    assert_eq!(table.find(key), Some((part, position)));
                }
            }
        }
    }

    #[test]
    fn without_room_nothing_is_inserted() {
        let mut table: Table<1> = Table::new(1, usize::MAX);
        table.clear(100);
        let batch =
            |from: u64| -> Vec<(u64, Key<1>)> { (from..from + 60).map(|i| (hash(&[i]), [i])).collect() };
        assert!(table.insert(0, &batch(0)));
        assert!(!table.insert(0, &batch(60)), "100 is the limit");
        assert!(table.insert(0, &batch(0)[..40]), "known states need no room in the end");
        assert_eq!(table.key_count(), 60);
    }
}
