//! The visited states, in layers.
//!
//! States are kept in a [`Table`] that all workers share. A layer is a range of positions in each part of it, so nothing
//! is stored twice. A state costs its vector and five to nine bytes of index.
//!
//! Over the memory limit the search goes on on disk, see [`super::spill`]: the table becomes a buffer of recently seen
//! states, found states are appended to a log, and whether a state is new is settled when the layer ends. Sorted runs
//! are kept for each of [`PARTITIONS`] classes of states (by hash), so that sorting needs little memory beside the
//! buffer and can be divided among the workers.
//!
//! Workers only read and insert. What changes the shape of the store ([`Store::make_room`], [`Store::finish_layer`])
//! happens between passes, when nobody works.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use super::layout::Key;
use super::spill::{Log, Runs};
use super::table::{SLOTS_START, Table, hash};

/// Classes of states on disk.
const PARTITIONS: usize = 16;
/// Fewer states than this are sorted by one thread.
const PARALLEL_KEYS_MIN: usize = 1 << 14;

/// A layer: a range of positions in each part. The last part is the log's.
#[derive(Clone, Debug)]
pub struct Layer {
    pub ranges: Box<[Range<usize>]>,
}

impl Layer {
    pub fn len(&self) -> usize {
        self.ranges.iter().map(|r| r.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.iter().all(|r| r.is_empty())
    }
}

struct Disk<const W: usize> {
    log: Log<W>,
    /// Where each part starts in the log: what the workers had found when memory became short, one after the other,
    /// and then all the rest.
    bases: Vec<usize>,
    /// The ranges of the layer that was unfinished then.
    unfinished: Vec<Range<usize>>,
    /// Where the unfinished layer starts in the last part.
    layer: usize,
    runs: Vec<Runs<W>>,
}

/// See the module's head.
pub struct Store<const W: usize> {
    table: Table<W>,
    /// Bytes the table may use.
    limit: usize,
    folder: PathBuf,
    /// Where the unfinished layer starts in each part; on disk, the states that are not settled.
    fresh: Vec<usize>,
    disk: Option<Disk<W>>,
}

impl<const W: usize> Store<W> {
    /// `held_bytes`: what other things take of the limit; an eighth is left for states in any case.
    pub fn new(
        workers: usize,
        memory_limit_bytes: Option<u64>,
        held_bytes: u64,
        folder: PathBuf,
    ) -> Store<W> {
        let left = |limit: u64| limit.saturating_sub(held_bytes).max(limit / 8);
        let limit = memory_limit_bytes.map_or(usize::MAX, |b| usize::try_from(left(b)).unwrap_or(usize::MAX));
        let table = Table::new(workers, Self::keys_max(limit, SLOTS_START));
        Store { table, limit, folder, fresh: vec![0; workers], disk: None }
    }

    /// Adds states to the unfinished layer, except those seen before, on behalf of a worker. False: there is no room,
    /// and nothing was added; [`Store::make_room`] has to come first.
    pub fn insert(&self, worker: usize, batch: &[(u64, Key<W>)]) -> bool {
        self.table.insert(worker, batch)
    }

    /// Enlarges the table or, at the limit, empties it to disk. `held_bytes`: what the specification's normal form takes
    /// of the limit by now.
    pub fn make_room(&mut self, held_bytes: u64) -> io::Result<()> {
        let slots = self.table.slot_count() * 2;
        let held = usize::try_from(held_bytes).unwrap_or(usize::MAX);
        let limit = self.limit.saturating_sub(held).max(self.limit / 8);
        // The larger table has to be worth it: room for a quarter more states at least.
        let keys_max = Self::keys_max(limit, slots);
        if self.table.can_grow() && keys_max / 5 * 4 >= self.table.key_count() {
            self.table.grow(keys_max);
            return Ok(());
        }
        self.spill()
    }

    /// States that may lie beside an index of so many slots within the limit.
    fn keys_max(limit: usize, slots: usize) -> usize {
        limit.saturating_sub(Table::<W>::bytes_of(0, slots)) / Table::<W>::bytes_of(1, 0)
    }

    /// Ends the layer: what was inserted and is new.
    pub fn finish_layer(&mut self) -> io::Result<Layer> {
        let count = self.table.part_count();
        if self.disk.is_some() {
            self.settle()?;
        }
        let ranges = match &mut self.disk {
            None => {
                let parts = (0..count).map(|part| self.fresh[part]..self.table.len(part));
                let ranges: Vec<_> = parts.chain(std::iter::once(0..0)).collect();
                self.fresh = (0..count).map(|part| self.table.len(part)).collect();
                ranges
            }
            Some(disk) => {
                let end = disk.log.key_count() - disk.bases[count];
                let mut ranges = std::mem::replace(&mut disk.unfinished, vec![0..0; count]);
                ranges.push(disk.layer..end);
                disk.layer = end;
                ranges
            }
        };
        Ok(Layer { ranges: ranges.into() })
    }

    /// Copies the states at `positions` of a part.
    pub fn read(&self, part: usize, positions: Range<usize>, out: &mut Vec<Key<W>>) -> io::Result<()> {
        out.clear();
        match &self.disk {
            None => {
                self.table.read(part, positions, out);
                Ok(())
            }
            Some(disk) => {
                let base = disk.bases[part];
                disk.log.read(base + positions.start, base + positions.end, out)
            }
        }
    }

    /// Where the state is, if it is in memory: (part, position). Only without spilling are positions meaningful.
    pub fn find(&self, key: &Key<W>) -> Option<(usize, usize)> {
        self.table.find(key)
    }

    pub fn is_spilled(&self) -> bool {
        self.disk.is_some()
    }

    /// States found; on disk without those of the unfinished layer that are not settled yet.
    pub fn state_count(&self) -> u64 {
        self.disk.as_ref().map_or_else(|| self.table.key_count(), |d| d.log.key_count()) as u64
    }

    /// Bytes in memory: vectors and index.
    pub fn memory_bytes(&self) -> u64 {
        self.table.bytes() as u64
    }

    /// Bytes on disk.
    pub fn disk_bytes(&self) -> u64 {
        self.disk.as_ref().map_or(0, |disk| {
            disk.runs.iter().map(Runs::bytes).sum::<u64>() + (disk.log.key_count() * 8 * W) as u64
        })
    }

    /// On disk: finds out which of the fresh states are new and appends those to the log.
    fn settle(&mut self) -> io::Result<()> {
        let Some(disk) = &mut self.disk else { return Ok(()) };
        let (table, fresh) = (&self.table, &self.fresh);
        let log = &mut disk.log;
        each_partition(
            table,
            fresh,
            &mut disk.runs,
            |runs, keys| runs.subtract_from(keys),
            |keys| log.append(&keys),
        )?;
        self.fresh = (0..self.table.part_count()).map(|part| self.table.len(part)).collect();
        Ok(())
    }

    /// Moves everything to disk and empties the memory; the unfinished layer goes on.
    fn spill(&mut self) -> io::Result<()> {
        if self.disk.is_none() {
            self.disk = Some(self.first_spill()?);
        } else {
            self.settle()?;
        }
        let disk = self.disk.as_mut().expect("was just made");
        let (folder, count) = (&self.folder, self.table.part_count());
        let add = |runs: &mut Runs<W>, keys: &mut Vec<Key<W>>| {
            if keys.is_empty() { Ok(()) } else { runs.add(folder, keys) }
        };
        each_partition(&self.table, &vec![0; count], &mut disk.runs, add, |_| Ok(()))?;
        let keys_max = Self::keys_max(self.limit, self.table.slot_count());
        self.table.clear(keys_max);
        self.fresh = vec![0; count];
        Ok(())
    }

    /// Nothing was forgotten so far, so all states in memory are different and go to the log as they are.
    fn first_spill(&self) -> io::Result<Disk<W>> {
        let mut log = Log::new(&self.folder)?;
        let (mut bases, mut unfinished) = (Vec::new(), Vec::new());
        let mut keys = Vec::new();
        for part in 0..self.table.part_count() {
            let len = self.table.len(part);
            bases.push(log.key_count());
            unfinished.push(self.fresh[part]..len);
            for start in (0..len).step_by(1 << 16) {
                keys.clear();
                self.table.read(part, start..len.min(start + (1 << 16)), &mut keys);
                log.append(&keys)?;
            }
        }
        bases.push(log.key_count());
        let runs = (0..PARTITIONS).map(|_| Runs::default()).collect();
        Ok(Disk { log, bases, unfinished, layer: 0, runs })
    }
}

/// Sorts the states of each partition from the given positions on, lets `work` loose on them, and hands what it leaves
/// to `done`, partition by partition; as many partitions at a time as there are workers.
fn each_partition<const W: usize>(
    table: &Table<W>,
    from: &[usize],
    partitions: &mut [Runs<W>],
    work: impl Fn(&mut Runs<W>, &mut Vec<Key<W>>) -> io::Result<()> + Sync,
    mut done: impl FnMut(Vec<Key<W>>) -> io::Result<()>,
) -> io::Result<()> {
    let count: usize = (0..table.part_count()).map(|part| table.len(part) - from[part]).sum();
    if count == 0 {
        return Ok(());
    }
    let one = |number: usize, runs: &mut Runs<W>| -> io::Result<Vec<Key<W>>> {
        let mut keys = Vec::with_capacity(count / PARTITIONS * 9 / 8);
        let mut piece = Vec::new();
        for part in 0..table.part_count() {
            let len = table.len(part);
            for start in (from[part]..len).step_by(1 << 12) {
                piece.clear();
                table.read(part, start..len.min(start + (1 << 12)), &mut piece);
                keys.extend(piece.iter().filter(|key| hash(key) as usize % PARTITIONS == number));
            }
        }
        keys.sort_unstable();
        work(runs, &mut keys)?;
        Ok(keys)
    };
    let width = if count < PARALLEL_KEYS_MIN { 1 } else { table.part_count() };
    for (group, members) in partitions.chunks_mut(width).enumerate() {
        let (first, others) = members.split_first_mut().expect("a group has members");
        let results: Vec<io::Result<Vec<Key<W>>>> = std::thread::scope(|scope| {
            let one = &one;
            let threads: Vec<_> = others
                .iter_mut()
                .enumerate()
                .map(|(i, runs)| scope.spawn(move || one(group * width + 1 + i, runs)))
                .collect();
            let leader = one(group * width, first);
            let others = threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            std::iter::once(leader).chain(others).collect()
        });
        for keys in results {
            done(keys?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::semantics::random::Random;

    /// Layers of random states, in memory and spilled, against a plain set.
    #[test]
    fn layers_are_what_is_new() {
        for (workers, limit) in [(1, None), (2, None), (1, Some(40_000)), (2, Some(100_000)), (3, Some(0))] {
            let folder = tempfile::tempdir().unwrap();
            let mut store: Store<1> = Store::new(workers, limit, 0, folder.path().to_path_buf());
            let mut random = Random::new(11);
            let mut seen: BTreeSet<Key<1>> = BTreeSet::new();
            let mut layers = Vec::new();
            for layer in 0..10 {
                let keys: Vec<Key<1>> = (0..4_000).map(|_| [random.below(40_000) as u64]).collect();
                for (i, key) in keys.iter().enumerate() {
                    while !store.insert(i / 7 % workers, &[(hash(key), *key)]) {
                        store.make_room(0).unwrap();
                    }
                }
                let found = store.finish_layer().unwrap();
                let new: BTreeSet<Key<1>> = keys.iter().copied().filter(|k| !seen.contains(k)).collect();
                seen.extend(&new);
                layers.push((found, new.into_iter().collect::<Vec<_>>()));
                // Earlier layers stay readable, wherever they are now.
                for (number, (found, new)) in layers.iter().enumerate() {
                    let mut got: Vec<Key<1>> = Vec::new();
                    for (part, range) in found.ranges.iter().enumerate() {
                        let mut keys = Vec::new();
                        store.read(part, range.clone(), &mut keys).unwrap();
                        got.extend(keys);
                    }
                    got.sort_unstable();
                    assert_eq!(&got, new, "layer {number} after {layer} with limit {limit:?}");
                }
            }
            assert_eq!(store.state_count(), seen.len() as u64);
            assert_eq!(store.is_spilled(), limit.is_some());
        }
    }
}
