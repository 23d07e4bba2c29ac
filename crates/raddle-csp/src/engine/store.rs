//! The visited states, in layers.
//!
//! States are divided by hash into shards, each behind its own lock; workers hand over batches, so a lock is taken once
//! for hundreds of states. A shard keeps its states in one array in the order they were found (so a layer is a range of
//! it, and nothing is stored twice) and an index of 4-byte slots with linear probing. A state thus costs its vector and
//! four to nine bytes.
//!
//! Looking a batch up goes in passes: first all slots are read, then all the states they point at, then what is left is
//! inserted. The reads of a pass do not depend on each other, so the processor overlaps their cache misses; that is
//! worth a factor of two to three on state spaces beyond the cache.
//!
//! Over the memory limit a shard goes on on disk, see [`super::spill`]: its array becomes a buffer of recently seen
//! states, found states are appended to a log, and whether a state is new is settled when the layer ends.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use super::layout::Key;
use super::spill::{Log, Runs};

/// Shards with several workers.
const SHARDS_PARALLEL: usize = 32;
/// Slots a new index has.
const INDEX_START: usize = 1 << 8;
/// A spilled shard keeps at least this many states in memory, whatever the limit says.
const BUFFER_KEYS_MIN: usize = 64;
const EMPTY: u32 = 0;

/// A layer: a range of positions in each shard.
#[derive(Clone, Debug)]
pub struct Layer {
    pub ranges: Box<[Range<u32>]>,
}

impl Layer {
    pub fn len(&self) -> usize {
        self.ranges.iter().map(|r| r.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.iter().all(|r| r.is_empty())
    }
}

struct Shard<const W: usize> {
    keys: Vec<Key<W>>,
    /// Position + 1, or [`EMPTY`].
    index: Vec<u32>,
    /// Where the unfinished layer starts: in `keys`, and as a position.
    fresh: usize,
    layer: u32,
    disk: Option<Disk<W>>,
}

struct Disk<const W: usize> {
    log: Log<W>,
    runs: Runs<W>,
}

/// See the module's head.
pub struct Store<const W: usize> {
    shards: Vec<Mutex<Shard<W>>>,
    shard_shift: u32,
    /// Bytes a shard may use.
    limit: usize,
    folder: PathBuf,
}

/// Multiply and fold, a word at a time.
#[inline(always)]
pub fn hash<const W: usize>(key: &Key<W>) -> u64 {
    let mut h: u64 = 0x51_7c_c1_b7_27_22_0a_95;
    for &word in key {
        let product = u128::from(h ^ word) * 0x9e37_79b9_7f4a_7c15_u128;
        h = (product >> 64) as u64 ^ (product as u64);
    }
    h ^ (h >> 29)
}

impl<const W: usize> Store<W> {
    pub fn new(workers: usize, memory_limit_bytes: Option<u64>, folder: PathBuf) -> Store<W> {
        let count = if workers > 1 { SHARDS_PARALLEL } else { 1 };
        let shard = || {
            Mutex::new(Shard {
                keys: Vec::new(),
                index: vec![EMPTY; INDEX_START],
                fresh: 0,
                layer: 0,
                disk: None,
            })
        };
        Store {
            shards: (0..count).map(|_| shard()).collect(),
            shard_shift: 64 - count.trailing_zeros(),
            limit: memory_limit_bytes
                .map_or(usize::MAX, |b| usize::try_from(b).unwrap_or(usize::MAX) / count),
            folder,
        }
    }

    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    #[inline(always)]
    pub fn shard_of(&self, hash: u64) -> usize {
        // A shift by 64 is not defined, and with one shard there is nothing to choose.
        if self.shards.len() == 1 { 0 } else { (hash >> self.shard_shift) as usize }
    }

    fn shard(&self, number: usize) -> MutexGuard<'_, Shard<W>> {
        self.shards[number].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Adds states to the unfinished layer, except those seen before. All belong to shard `number`.
    pub fn insert(&self, number: usize, batch: &[(u64, Key<W>)]) -> io::Result<()> {
        let mut shard = self.shard(number);
        shard.insert(batch);
        if shard.bytes() > self.limit && shard.keys.len() > BUFFER_KEYS_MIN {
            shard.spill(&self.folder)?;
        }
        Ok(())
    }

    /// Ends the layer: what was inserted and is new.
    pub fn finish_layer(&self) -> io::Result<Layer> {
        let mut ranges = Vec::with_capacity(self.shards.len());
        for number in 0..self.shards.len() {
            let mut shard = self.shard(number);
            if shard.disk.is_some() {
                shard.settle()?;
            }
            let end = shard.position();
            ranges.push(shard.layer..end);
            shard.layer = end;
            shard.fresh = shard.keys.len();
        }
        Ok(Layer { ranges: ranges.into() })
    }

    /// Copies the states at `positions` of a shard.
    pub fn read(&self, number: usize, positions: Range<u32>, out: &mut Vec<Key<W>>) -> io::Result<()> {
        out.clear();
        let shard = self.shard(number);
        let range = positions.start as usize..positions.end as usize;
        match &shard.disk {
            None => {
                out.extend_from_slice(&shard.keys[range]);
                Ok(())
            }
            Some(disk) => disk.log.read(range.start, range.end, out),
        }
    }

    /// Where the state is, if it is in memory: (shard, position). Only without spilling are positions meaningful.
    pub fn find(&self, key: &Key<W>) -> Option<(usize, u32)> {
        let h = hash(key);
        let number = self.shard_of(h);
        let shard = self.shard(number);
        shard.find(h, key).map(|position| (number, position))
    }

    pub fn is_spilled(&self) -> bool {
        (0..self.shards.len()).any(|n| self.shard(n).disk.is_some())
    }

    /// States found, finished layers or not.
    pub fn state_count(&self) -> u64 {
        (0..self.shards.len()).map(|n| u64::from(self.shard(n).position())).sum()
    }

    /// Bytes in memory: vectors and index.
    pub fn memory_bytes(&self) -> u64 {
        (0..self.shards.len()).map(|n| self.shard(n).bytes() as u64).sum()
    }

    /// Bytes on disk.
    pub fn disk_bytes(&self) -> u64 {
        (0..self.shards.len())
            .map(|n| match &self.shard(n).disk {
                None => 0,
                Some(disk) => disk.runs.bytes() + (disk.log.key_count() * 8 * W) as u64,
            })
            .sum()
    }
}

impl<const W: usize> Shard<W> {
    fn bytes(&self) -> usize {
        self.keys.len() * 8 * W + self.index.len() * 4
    }

    /// The position the next state gets. On disk, states of the unfinished layer have none yet.
    fn position(&self) -> u32 {
        let len = self.disk.as_ref().map_or(self.keys.len(), |d| d.log.key_count());
        u32::try_from(len).expect("fewer than 2^32 states a shard")
    }

    fn find(&self, hash: u64, key: &Key<W>) -> Option<u32> {
        let mask = self.index.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.index[slot] {
                EMPTY => return None,
                entry if self.keys[entry as usize - 1] == *key => return Some(entry - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    fn insert(&mut self, batch: &[(u64, Key<W>)]) {
        // At most seven eighths full: linear probing degrades beyond.
        while (self.keys.len() + batch.len()) * 8 > self.index.len() * 7 {
            self.grow();
        }
        const PASS: usize = 64;
        let mask = self.index.len() - 1;
        for part in batch.chunks(PASS) {
            let mut entries = [EMPTY; PASS];
            for (entry, (hash, _)) in entries.iter_mut().zip(part) {
                *entry = self.index[*hash as usize & mask];
            }
            let mut known = 0u64;
            for (i, (entry, (_, key))) in entries.iter().zip(part).enumerate() {
                if *entry != EMPTY && self.keys[*entry as usize - 1] == *key {
                    known |= 1 << i;
                }
            }
            for (i, (hash, key)) in part.iter().enumerate() {
                if known & 1 << i != 0 {
                    continue;
                }
                let mut slot = *hash as usize & mask;
                loop {
                    match self.index[slot] {
                        EMPTY => {
                            self.keys.push(*key);
                            self.index[slot] = self.keys.len() as u32;
                            break;
                        }
                        entry if self.keys[entry as usize - 1] == *key => break,
                        _ => slot = (slot + 1) & mask,
                    }
                }
            }
        }
    }

    fn grow(&mut self) {
        let mask = self.index.len() * 2 - 1;
        let mut index = vec![EMPTY; mask + 1];
        for (i, key) in self.keys.iter().enumerate() {
            let mut slot = hash(key) as usize & mask;
            while index[slot] != EMPTY {
                slot = (slot + 1) & mask;
            }
            index[slot] = i as u32 + 1;
        }
        self.index = index;
    }

    /// On disk: finds out which of the fresh states are new and appends those to the log.
    fn settle(&mut self) -> io::Result<()> {
        let Some(disk) = &mut self.disk else { return Ok(()) };
        let mut fresh = self.keys[self.fresh..].to_vec();
        fresh.sort_unstable();
        disk.runs.subtract_from(&mut fresh)?;
        disk.log.append(&fresh)?;
        self.fresh = self.keys.len();
        Ok(())
    }

    /// Moves everything to disk and empties the memory; the unfinished layer goes on.
    fn spill(&mut self, folder: &std::path::Path) -> io::Result<()> {
        if self.disk.is_none() {
            let mut log = Log::new(folder)?;
            // Positions in memory and in the log are the same from here on.
            log.append(&self.keys)?;
            self.disk = Some(Disk { log, runs: Runs::default() });
        } else {
            self.settle()?;
        }
        self.keys.sort_unstable();
        let disk = self.disk.as_mut().expect("was just made");
        disk.runs.add(folder, &self.keys)?;
        self.keys = Vec::new();
        self.index = vec![EMPTY; INDEX_START];
        self.fresh = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::semantics::random::Random;

    /// Layers of random states, in memory and spilled, against a plain set.
    #[test]
    fn layers_are_what_is_new() {
        for (workers, limit) in [(1, None), (2, None), (1, Some(40_000)), (2, Some(100_000))] {
            let folder = tempfile::tempdir().unwrap();
            let store: Store<1> = Store::new(workers, limit, folder.path().to_path_buf());
            let mut random = Random::new(11);
            let mut seen: BTreeSet<Key<1>> = BTreeSet::new();
            for layer in 0..10 {
                let keys: Vec<Key<1>> = (0..4_000).map(|_| [random.below(40_000) as u64]).collect();
                for key in &keys {
                    let h = hash(key);
                    store.insert(store.shard_of(h), &[(h, *key)]).unwrap();
                }
                let found = store.finish_layer().unwrap();
                let mut got: Vec<Key<1>> = Vec::new();
                for (n, range) in found.ranges.iter().enumerate() {
                    let mut part = Vec::new();
                    store.read(n, range.clone(), &mut part).unwrap();
                    got.extend(part);
                }
                got.sort_unstable();
                let new: BTreeSet<Key<1>> = keys.iter().copied().filter(|k| !seen.contains(k)).collect();
                assert_eq!(
                    got,
                    new.iter().copied().collect::<Vec<_>>(),
                    "layer {layer} with limit {limit:?}"
                );
                seen.extend(new);
            }
            assert_eq!(store.state_count(), seen.len() as u64);
            assert_eq!(store.is_spilled(), limit.is_some());
        }
    }
}
