//! Where the erroneous run differs from the recorded one.
//!
//! A step is known by its thread and ordinal. Steps of the erroneous run that the recorded one has too are brought into the order of
//! the recorded run; a longest sequence that keeps its order (patience sorting, O(n log n)) is unmarked, what remains was moved.
//! That is the smallest number of steps that have to be marked.

use super::Mark;
use super::run::Run;
use std::collections::HashMap;

/// A mark for every step of `run`.
pub(super) fn marks(run: &Run<'_>, observed: &Run<'_>) -> Vec<Mark> {
    let mut places: HashMap<(&str, u32), usize> = HashMap::new();
    for (at, step) in observed.steps.iter().enumerate() {
        places.insert((observed.threads[step.thread], step.ordinal), at);
    }
    let found: Vec<Option<usize>> = run
        .steps
        .iter()
        .map(|step| {
            let at = places.get(&(run.threads[step.thread], step.ordinal)).copied()?;
            (observed.steps[at].kind == step.kind).then_some(at)
        })
        .collect();
    let kept = longest_increasing(&found);
    let mark = |(at, found): (usize, &Option<usize>)| match found {
        None => Mark::New,
        Some(_) if kept[at] => Mark::Plain,
        Some(_) => Mark::Moved,
    };
    found.iter().enumerate().map(mark).collect()
}

/// Which of the numbers belong to a longest increasing subsequence.
fn longest_increasing(numbers: &[Option<usize>]) -> Vec<bool> {
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; numbers.len()];
    for (at, number) in numbers.iter().enumerate() {
        let Some(number) = number else { continue };
        let length = ends.partition_point(|&end| numbers[end] < Some(*number));
        before[at] = length.checked_sub(1).map(|previous| ends[previous]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut kept = vec![false; numbers.len()];
    let mut next = ends.last().copied();
    while let Some(at) = next {
        kept[at] = true;
        next = before[at];
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Tries every subset.
    fn naive(numbers: &[Option<usize>]) -> u32 {
        let increasing = |set: &u32| {
            let chosen: Vec<usize> =
                (0..numbers.len()).filter(|at| set >> at & 1 == 1).filter_map(|at| numbers[at]).collect();
            chosen.len() == set.count_ones() as usize && chosen.windows(2).all(|pair| pair[0] < pair[1])
        };
        (0..1u32 << numbers.len()).filter(increasing).map(u32::count_ones).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn as_long_as_the_longest_of_all_subsets(numbers in prop::collection::vec(prop::option::of(0usize..8), 0..10)) {
            let kept = longest_increasing(&numbers);
            let chosen: Vec<usize> =
                kept.iter().zip(&numbers).filter(|(kept, _)| **kept).filter_map(|(_, number)| *number).collect();
            prop_assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(chosen.len() as u32, naive(&numbers));
        }
    }
}
