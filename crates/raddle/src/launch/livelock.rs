//! A run in which threads go round for ever: the cycle that they go, from the end of its journal.
//!
//! That nothing got on for a while is no error. That the same operations of the same threads follow each other again and again,
//! and change nothing, is one: whatever the scheduler does, it goes on like that.

#![warn(clippy::wildcard_enum_match_arm)]

use super::exploring::Plan;
use super::steering;
use raddle_findings::naming::Namer;
use raddle_findings::{Action, Basis, Detail, Finding, Kind, Party, Thread, Wait};
use raddle_trace::journal::{Journal, Turn};
use raddle_trace::region::RegionConfig;

/// Longer cycles are not looked for.
const TURNS_MAX: usize = 512;
/// So often it has to be seen.
const REPEATS: usize = 3;

/// The turns that the run ends with again and again.
pub fn cycle(journal: &Journal) -> Option<&[Turn]> {
    let turns = &journal.turns;
    let same = |a: &Turn, b: &Turn| (a.thread, a.kind, a.object, a.pc) == (b.thread, b.kind, b.object, b.pc);
    (1..=TURNS_MAX.min(turns.len() / REPEATS)).find_map(|length| {
        let tail = &turns[turns.len() - length * REPEATS..];
        let repeats = tail.iter().zip(&tail[length..]).all(|(a, b)| same(a, b));
        repeats.then(|| &turns[turns.len() - length..])
    })
}

/// Repeats the run, and makes a finding of its cycle if it ends in one.
pub fn finding(plan: &Plan<'_>, again: &RegionConfig, by: &'static str) -> anyhow::Result<Option<Finding>> {
    let found = steering::run_journaled(plan.launch, again, plan.timeout)?;
    let Some(turns) = cycle(&found.journal) else { return Ok(None) };
    let mut namer = Namer::new(&found.modules);
    let mut parties: Vec<Party> = Vec::new();
    for turn in turns {
        let path = found.journal.threads.get(turn.thread).cloned().unwrap_or_default();
        let stack = namer.stack(&[turn.pc]);
        let operation = turn.kind.word().to_owned();
        if parties.iter().any(|party| party.thread.path == path && party.stack == stack) {
            continue;
        }
        let action = Action::Waits { wait: Wait::Other, object: None, holder: None, operation };
        parties.push(Party::new(Thread::at(path), action, stack));
    }
    Ok(Some(Finding::new(Kind::Livelock, by, Basis::observed(), parties, Detail::None)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_trace::schedule::StepKind;

    fn journal(threads: &[usize]) -> Journal {
        let turn = |(at, &thread): (usize, &usize)| Turn {
            thread,
            kind: StepKind::Load,
            failed: false,
            ordinal: at as u32 + 1,
            pc: 10 + thread as u64,
            object: 80,
            payload: Vec::new(),
        };
        Journal {
            threads: vec!["1".into(), "1.1".into()],
            turns: threads.iter().enumerate().map(turn).collect(),
        }
    }

    #[test]
    fn the_shortest_cycle_is_found() {
        assert_eq!(cycle(&journal(&[0, 0, 1, 0, 1, 0, 1])).map(<[Turn]>::len), Some(2));
        assert_eq!(cycle(&journal(&[0, 1, 1, 1])).map(<[Turn]>::len), Some(1));
        assert_eq!(cycle(&journal(&[0, 1, 0, 0, 1])), None);
        assert_eq!(cycle(&journal(&[])), None);
    }
}
