//! Refusal testing and revivals by definition, read off a transition system path by path: the twin of
//! `engine::refusals`.
//!
//! A behaviour is `⟨X0, a1, X1, …, an, Xn⟩`: before each event, and at the end, a set of events that a stable state refused, or
//! nothing seen (`None`). The revivals are those in which at most the last event has a set before it. With them go the stable
//! failures, which revivals and deadlocks determine: a set at the end and none before. `✓` ends a behaviour, and no refusal is
//! seen before it.

use rustc_hash::FxHashSet;

use super::observe::{Transitions, reaches_itself_by_tau};
use crate::engine::verdict::CheckError;
use crate::process::EventId;

/// Events with what was refused before each; numbers of the alphabet, `✓` is [`TICK`].
type Prefix = Vec<(Option<u8>, u8)>;
const TICK: u8 = u8::MAX;

/// All behaviours of at most so many events.
pub struct RefusalTests {
    behaviours: FxHashSet<(Prefix, Option<u8>)>,
    divergences: FxHashSet<Prefix>,
}

/// Follows every path.
pub fn refusal_tests<T: Transitions>(
    system: &mut T,
    root: T::State,
    alphabet: &[EventId],
    length: usize,
) -> Result<RefusalTests, CheckError> {
    let everything = (1u8 << alphabet.len()) - 1;
    let mut found = RefusalTests { behaviours: FxHashSet::default(), divergences: FxHashSet::default() };
    let mut todo: Vec<(Prefix, T::State)> = vec![(Vec::new(), root)];
    let mut seen: FxHashSet<(Prefix, T::State)> = todo.iter().cloned().collect();
    while let Some((prefix, state)) = todo.pop() {
        found.behaviours.insert((prefix.clone(), None));
        if reaches_itself_by_tau(system, &state)? {
            found.divergences.insert(prefix.clone());
        }
        let moves = system.moves(&state)?;
        let number = |e: EventId| alphabet.iter().position(|&a| a == e).map(|i| i as u8);
        let offered = moves.iter().filter_map(|&(e, _)| number(e)).fold(0u8, |set, i| set | 1 << i);
        let mut refused: Vec<Option<u8>> = vec![None];
        if moves.iter().all(|(e, _)| e.is_visible()) {
            refused.extend((0..=everything).filter(|x| x & offered == 0).map(Some));
        }
        for &last in &refused[1..] {
            found.behaviours.insert((prefix.clone(), last));
        }
        for (event, next) in moves {
            if event == EventId::TAU {
                if seen.insert((prefix.clone(), next.clone())) {
                    todo.push((prefix.clone(), next));
                }
                continue;
            }
            if prefix.len() == length {
                continue;
            }
            let event = number(event).unwrap_or(TICK);
            for &before in &refused {
                let mut longer = prefix.clone();
                longer.push((before, event));
                if event == TICK {
                    found.behaviours.insert((longer, None));
                } else if seen.insert((longer.clone(), next.clone())) {
                    todo.push((longer, next.clone()));
                }
            }
        }
    }
    Ok(found)
}

impl RefusalTests {
    /// Whether the model of revivals records the behaviour.
    fn is_revival((prefix, last): &(Prefix, Option<u8>)) -> bool {
        let blind = |part: &[(Option<u8>, u8)]| part.iter().all(|(refused, _)| refused.is_none());
        match last {
            None => blind(&prefix[..prefix.len().saturating_sub(1)]),
            Some(_) => blind(prefix),
        }
    }

    /// The events of the shortest behaviour that is not one of `self`; with `strict`, divergences count, and nothing after
    /// them does.
    pub fn violation(&self, implementation: &RefusalTests, revivals: bool, strict: bool) -> Option<usize> {
        // A behaviour goes on after a divergence if it goes on after that very beginning: to have seen a refusal where the
        // divergence saw none is another one. So a revival counts as after a divergence of the trace before its event.
        let diverged = |prefix: &Prefix| (0..=prefix.len()).any(|n| self.divergences.contains(&prefix[..n]));
        let behaviours = implementation
            .behaviours
            .iter()
            .filter(|b| !revivals || Self::is_revival(b))
            .filter(|b| !self.behaviours.contains(*b))
            .filter(|b| !strict || !diverged(&b.0))
            .map(|(prefix, _)| prefix.len());
        let divergences = implementation
            .divergences
            .iter()
            .filter(|d| strict && (!revivals || d.iter().all(|(r, _)| r.is_none())) && !diverged(d))
            .map(Vec::len);
        behaviours.chain(divergences).min()
    }
}
