//! What one run tells about the next: how many decisions it takes, and which threads use which objects how often.

use std::collections::BTreeMap;

/// Thread (hash of its spawn path), its parent, object, and how many visible operations.
pub type ProfileRow = [u64; 4];

/// What is known about a run before it starts.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    /// Choices of a run; 0 if nothing is known.
    pub steps: u64,
    pub profile: Vec<ProfileRow>,
    /// Which reads are to see which writes, as `rff` is told ([`crate::feedback::words`]).
    pub constraints: Vec<u64>,
}

impl Estimate {
    /// The objects that several threads use, each with the operations that a thread *and all its descendants* do on it:
    /// the table of the strategy `surw` (see its file in the runtime for the layout).
    pub fn walks(&self) -> Vec<u64> {
        let mut parents: BTreeMap<u64, u64> = BTreeMap::new();
        let mut by_object: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
        for &[thread, parent, object, count] in &self.profile {
            parents.insert(thread, parent);
            if object != 0 {
                *by_object.entry(object).or_default().entry(thread).or_default() += count;
            }
        }
        by_object.retain(|_, threads| threads.len() > 1);
        let mut objects = Vec::new();
        let mut rows = Vec::new();
        for (&object, threads) in &by_object {
            let mut subtree: BTreeMap<u64, u64> = BTreeMap::new();
            for (&thread, &count) in threads {
                let mut at = Some(thread);
                // Spawn paths have a root; the bound only guards against a damaged table.
                for _ in 0..=parents.len() {
                    let Some(ancestor) = at else { break };
                    *subtree.entry(ancestor).or_default() += count;
                    at = parents.get(&ancestor).copied().filter(|&parent| parent != 0);
                }
            }
            objects.extend([object, rows.len() as u64 / 2, subtree.len() as u64]);
            rows.extend(subtree.into_iter().flat_map(|(thread, count)| [thread, count]));
        }
        let mut words = vec![objects.len() as u64 / 3, rows.len() as u64 / 2];
        words.extend(objects);
        words.extend(rows);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_count_what_their_descendants_do() {
        // 1 -> 2 -> 3; object 80 is used by 2 (twice) and 3 (five times), object 88 by 3 alone.
        let profile = vec![[2, 1, 80, 2], [3, 2, 80, 5], [3, 2, 88, 1], [1, 0, 0, 4]];
        let words = Estimate { profile, ..Estimate::default() }.walks();
        assert_eq!(words, [1, 3, 80, 0, 3, 1, 7, 2, 7, 3, 5]);
    }

    #[test]
    fn nothing_shared_is_an_empty_table() {
        assert_eq!(Estimate { profile: vec![[1, 0, 80, 2]], ..Estimate::default() }.walks(), [0, 0]);
    }
}
