//! States on disk: sorted runs for "was it seen", a log for "which were found, in order".
//!
//! Delayed duplicate detection (Stern and Dill 1998; Korf 2004): when memory is short the visited states lie in sorted
//! files, and a whole layer of candidates is sorted and held against them at once. A run remembers every
//! [`FENCE_KEYS`]-th key in memory, so a small layer reads only the blocks its keys can be in and a large layer reads
//! the file from front to back; either way each block is read at most once a layer. Runs of a partition are merged when
//! there are many. Files are unlinked temporary files, so nothing is left behind however the process ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::layout::Key;

/// Keys between two fences: a block is read in one go.
const FENCE_KEYS: usize = 1024;
/// A partition with more runs merges them into one.
const RUNS_MAX: usize = 8;

fn encode<const W: usize>(keys: &[Key<W>], out: &mut Vec<u8>) {
    out.clear();
    for word in keys.iter().flatten() {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

fn decode<const W: usize>(bytes: &[u8], out: &mut Vec<Key<W>>) {
    for chunk in bytes.chunks_exact(8 * W) {
        let mut key = [0; W];
        for (word, part) in key.iter_mut().zip(chunk.chunks_exact(8)) {
            *word = u64::from_le_bytes(part.try_into().expect("eight bytes"));
        }
        out.push(key);
    }
}

/// Keys in the order they were added.
pub struct Log<const W: usize> {
    file: File,
    len: usize,
}

impl<const W: usize> Log<W> {
    pub fn new(folder: &Path) -> io::Result<Log<W>> {
        Ok(Log { file: tempfile::tempfile_in(folder)?, len: 0 })
    }

    pub fn key_count(&self) -> usize {
        self.len
    }

    pub fn append(&mut self, keys: &[Key<W>]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for part in keys.chunks(FENCE_KEYS * 16) {
            encode(part, &mut bytes);
            self.file.write_all_at(&bytes, (self.len * 8 * W) as u64)?;
            self.len += part.len();
        }
        Ok(())
    }

    /// Adds the keys `start..end` to `out`.
    pub fn read(&self, start: usize, end: usize, out: &mut Vec<Key<W>>) -> io::Result<()> {
        let mut bytes = vec![0; (end - start) * 8 * W];
        self.file.read_exact_at(&mut bytes, (start * 8 * W) as u64)?;
        decode(&bytes, out);
        Ok(())
    }
}

/// A sorted file of keys.
pub struct Run<const W: usize> {
    log: Log<W>,
    /// First key of each block.
    fences: Vec<Key<W>>,
}

impl<const W: usize> Run<W> {
    /// Writes sorted keys.
    pub fn write(folder: &Path, sorted: &[Key<W>]) -> io::Result<Run<W>> {
        debug_assert!(sorted.is_sorted());
        let mut log = Log::new(folder)?;
        log.append(sorted)?;
        Ok(Run { log, fences: sorted.iter().step_by(FENCE_KEYS).copied().collect() })
    }

    fn block(&self, number: usize, out: &mut Vec<Key<W>>) -> io::Result<()> {
        out.clear();
        let start = number * FENCE_KEYS;
        self.log.read(start, (start + FENCE_KEYS).min(self.log.key_count()), out)
    }

    /// Removes from the sorted `keys` those that the run has.
    fn subtract_from(&self, keys: &mut Vec<Key<W>>) -> io::Result<()> {
        let mut block: Vec<Key<W>> = Vec::new();
        let mut loaded = usize::MAX;
        let mut failure = None;
        keys.retain(|key| {
            if failure.is_some() {
                return true;
            }
            let Some(number) = self.fences.partition_point(|f| f <= key).checked_sub(1) else { return true };
            if number != loaded {
                if let Err(e) = self.block(number, &mut block) {
                    failure = Some(e);
                    return true;
                }
                loaded = number;
            }
            block.binary_search(key).is_err()
        });
        failure.map_or(Ok(()), Err)
    }
}

/// The runs of a partition.
pub struct Runs<const W: usize> {
    runs: Vec<Run<W>>,
}

impl<const W: usize> Default for Runs<W> {
    fn default() -> Runs<W> {
        Runs { runs: Vec::new() }
    }
}

impl<const W: usize> Runs<W> {
    /// Adds sorted keys as a run.
    pub fn add(&mut self, folder: &Path, sorted: &[Key<W>]) -> io::Result<()> {
        self.runs.push(Run::write(folder, sorted)?);
        if self.runs.len() > RUNS_MAX {
            self.merge(folder)?;
        }
        Ok(())
    }

    /// Removes from the sorted `keys` everything any run has.
    pub fn subtract_from(&self, keys: &mut Vec<Key<W>>) -> io::Result<()> {
        self.runs.iter().try_for_each(|run| run.subtract_from(keys))
    }

    /// Bytes on disk.
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(|r| (r.log.key_count() * 8 * W) as u64).sum()
    }

    fn merge(&mut self, folder: &Path) -> io::Result<()> {
        struct Cursor<const W: usize> {
            block: Vec<Key<W>>,
            number: usize,
            at: usize,
        }
        let mut cursors: Vec<Cursor<W>> = Vec::new();
        for run in &self.runs {
            let mut block = Vec::new();
            run.block(0, &mut block)?;
            cursors.push(Cursor { block, number: 0, at: 0 });
        }
        let mut merged = Run { log: Log::new(folder)?, fences: Vec::new() };
        let mut buffer: Vec<Key<W>> = Vec::new();
        let mut last = None;
        loop {
            let least = (0..cursors.len())
                .filter_map(|i| cursors[i].block.get(cursors[i].at).map(|&key| (key, i)))
                .min();
            let Some((key, i)) = least else { break };
            let cursor = &mut cursors[i];
            cursor.at += 1;
            if cursor.at == cursor.block.len()
                && (cursor.number + 1) * FENCE_KEYS < self.runs[i].log.key_count()
            {
                cursor.number += 1;
                cursor.at = 0;
                self.runs[i].block(cursor.number, &mut cursor.block)?;
            }
            // The same key can lie in several runs: memory forgets, so a state may be written again.
            if last == Some(key) {
                continue;
            }
            last = Some(key);
            if (merged.log.key_count() + buffer.len()).is_multiple_of(FENCE_KEYS) {
                merged.fences.push(key);
            }
            buffer.push(key);
            if buffer.len() == FENCE_KEYS * 16 {
                merged.log.append(&buffer)?;
                buffer.clear();
            }
        }
        merged.log.append(&buffer)?;
        self.runs = vec![merged];
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::semantics::random::Random;

    #[test]
    fn runs_subtract_like_a_set() {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random::new(3);
        let mut runs: Runs<2> = Runs::default();
        let mut seen: BTreeSet<Key<2>> = BTreeSet::new();
        for round in 0..30 {
            let count = if round % 3 == 0 { 5000 } else { 40 };
            let keys: BTreeSet<Key<2>> =
                (0..count).map(|_| [random.below(200) as u64, random.below(300) as u64]).collect();
            let mut left: Vec<_> = keys.iter().copied().collect();
            runs.subtract_from(&mut left).unwrap();
            let expected: Vec<_> = keys.difference(&seen).copied().collect();
            assert_eq!(left, expected, "round {round}");
            runs.add(folder.path(), &keys.iter().copied().collect::<Vec<_>>()).unwrap();
            seen.extend(keys);
        }
    }
}
