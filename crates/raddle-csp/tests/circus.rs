//! Models as translated from Circus, a clock over a memory of two variables, against the same machine written by hand.
//!
//! The counts published for FDR 4 on the variant with an internal choice at the full hour (`CTOCPre` of the project
//! Circus2CSP, `7N` states) are below what can be reached, and its logs keep no verdicts; so the twin here decides:
//! program counter and memory as a tuple, followed step by step. States, verdicts in `F` and `FD` and the number of visible
//! events before a deadlock have to be the same.

use std::collections::{HashMap, VecDeque};

use raddle_csp::assertion::SemanticModel;
use raddle_csp::engine::{Behaviour, CheckOptions};
use raddle_csp::lang::session::Script;

/// What the twin and the script have in common.
#[derive(Clone, Copy, Debug)]
struct Model {
    /// Seconds of a minute and minutes of an hour.
    n: usize,
    /// Whether the seconds are chosen anew when a minute ends.
    chooses: bool,
    /// The largest number that the memory takes; `n - 1` is enough for all.
    largest: usize,
    /// Whether the ticks, too, are hidden.
    hides_ticks: bool,
    /// The values that the memory may begin with.
    first: usize,
}

/// Where the clock is, with the values it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Begin,
    ZeroSeconds,
    ZeroMinutes,
    ReadMinutes,
    ReadSeconds { minutes: usize },
    Offer { minutes: usize, seconds: usize },
    Tell { minutes: usize, seconds: usize },
    WriteSeconds { seconds: usize },
    ReadMinutesAgain,
    ReadSecondsAgain { minutes: usize },
    NextMinute { minutes: usize },
    Choose,
    SetMinutes { chosen: usize },
    SetSeconds { chosen: usize },
}

/// Where the clock is, and the seconds and minutes in the memory.
type State = (At, usize, usize);

impl Model {
    fn script(&self) -> String {
        let Model { n, largest, first, .. } = self;
        let hour = if self.chooses {
            "|~| y : {0..N-1} @ set.min.1 -> set.sec.y -> SKIP"
        } else {
            "set.min.((k+1)%N) -> SKIP"
        };
        let hidden = if self.hides_ticks { "union(M, {tick, time})" } else { "M" };
        format!(
            "N = {n}
channel tick, time
channel out : {{0..N}}.{{0..N}}
datatype X = sec | min
channel get, set : X.{{0..N}}
channel end
M = {{| get, set, end |}}
VAR(x, v) = get.x.v -> VAR(x, v) [] set.x?w:{{0..{largest}}} -> VAR(x, w) [] end -> SKIP
MEM(s, m) = VAR(sec, s) [| {{end}} |] VAR(min, m)
CLOCK = set.sec.0 -> set.min.0 -> (let
    L = get.min?m -> get.sec?s -> (
        tick -> set.sec.((s+1)%N) -> get.min?k -> get.sec?t -> ((t == 0 & {hour}) [] (t != 0 & SKIP))
        [] time -> out.m.s -> SKIP) ; L
  within L) ; end -> SKIP
SYSTEM = |~| s : {{0..{first}}}, m : {{0..{first}}} @ (CLOCK [| M |] MEM(s, m)) \\ {hidden}
assert SYSTEM :[deadlock free [F]]
assert SYSTEM :[deadlock free [FD]]
"
        )
    }

    /// The steps of a state, and whether they can be seen.
    fn steps(&self, (at, sec, min): State) -> Vec<(bool, State)> {
        let n = self.n;
        let hidden = |at| vec![(false, (at, sec, min))];
        let seconds = |value: usize, at| match value <= self.largest {
            true => vec![(false, (at, value, min))],
            false => Vec::new(),
        };
        let minutes = |value: usize, at| match value <= self.largest {
            true => vec![(false, (at, sec, value))],
            false => Vec::new(),
        };
        match at {
            At::Begin => {
                let all = (0..=self.first).flat_map(|s| (0..=self.first).map(move |m| (s, m)));
                all.map(|(s, m)| (false, (At::ZeroSeconds, s, m))).collect()
            }
            At::ZeroSeconds => seconds(0, At::ZeroMinutes),
            At::ZeroMinutes => minutes(0, At::ReadMinutes),
            At::ReadMinutes => hidden(At::ReadSeconds { minutes: min }),
            At::ReadSeconds { minutes } => hidden(At::Offer { minutes, seconds: sec }),
            At::Offer { minutes, seconds } => vec![
                (!self.hides_ticks, (At::WriteSeconds { seconds }, sec, min)),
                (!self.hides_ticks, (At::Tell { minutes, seconds }, sec, min)),
            ],
            At::Tell { .. } => vec![(true, (At::ReadMinutes, sec, min))],
            At::WriteSeconds { seconds: read } => seconds((read + 1) % n, At::ReadMinutesAgain),
            At::ReadMinutesAgain => hidden(At::ReadSecondsAgain { minutes: min }),
            At::ReadSecondsAgain { .. } if sec != 0 => hidden(At::ReadMinutes),
            At::ReadSecondsAgain { .. } if self.chooses => hidden(At::Choose),
            At::ReadSecondsAgain { minutes } => hidden(At::NextMinute { minutes }),
            At::NextMinute { minutes: read } => minutes((read + 1) % n, At::ReadMinutes),
            At::Choose => (0..n).map(|chosen| (false, (At::SetMinutes { chosen }, sec, min))).collect(),
            At::SetMinutes { chosen } => minutes(1, At::SetSeconds { chosen }),
            At::SetSeconds { chosen } => seconds(chosen, At::ReadMinutes),
        }
    }

    fn first_states(&self) -> Vec<State> {
        if self.first == 0 { vec![(At::ZeroSeconds, 0, 0)] } else { vec![(At::Begin, 0, 0)] }
    }
}

/// What following every step shows.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    states: usize,
    /// Visible events before the nearest deadlock.
    deadlock: Option<usize>,
    diverges: bool,
}

fn follow(model: &Model) -> Seen {
    let mut events: HashMap<State, usize> = HashMap::new();
    let mut waiting: VecDeque<(State, usize)> = model.first_states().into_iter().map(|s| (s, 0)).collect();
    let mut deadlock = None;
    while let Some((state, seen)) = waiting.pop_front() {
        if events.get(&state).is_some_and(|&before| before <= seen) {
            continue;
        }
        events.insert(state, seen);
        let steps = model.steps(state);
        if steps.is_empty() {
            deadlock = Some(deadlock.map_or(seen, |before: usize| before.min(seen)));
        }
        for (visible, next) in steps {
            match visible {
                true => waiting.push_back((next, seen + 1)),
                false => waiting.push_front((next, seen)),
            }
        }
    }
    // A state that does not lead to itself by hidden steps loses all of them in the end.
    let mut left: Vec<State> = events.keys().copied().collect();
    loop {
        let keep: Vec<State> = left
            .iter()
            .copied()
            .filter(|&state| model.steps(state).iter().any(|(visible, next)| !visible && left.contains(next)))
            .collect();
        if keep.len() == left.len() {
            break;
        }
        left = keep;
    }
    Seen { states: events.len(), deadlock, diverges: !left.is_empty() }
}

fn agree(model: Model) -> Seen {
    let seen = follow(&model);
    let mut script = match Script::from_text("clock.csp", model.script()) {
        Ok(script) => script,
        Err(refused) => panic!("{:?}", refused.diagnostics),
    };
    for (i, semantics) in
        [SemanticModel::Failures, SemanticModel::FailuresDivergences].into_iter().enumerate()
    {
        let options = CheckOptions { every_state: true, ..CheckOptions::default() };
        let outcome = script.check(i, &options).expect("an answer");
        let strict = semantics == SemanticModel::FailuresDivergences;
        let holds = seen.deadlock.is_none() && !(strict && seen.diverges);
        assert_eq!(outcome.holds, holds, "{model:?} {}: {seen:?}", semantics.name());
        if holds && model.first == 0 {
            assert_eq!(outcome.statistics.pairs as usize, seen.states, "{model:?}");
        }
        if let (Some(found), Some(length)) = (outcome.counterexamples.first(), seen.deadlock)
            && matches!(found.behaviour, Behaviour::Deadlock)
        {
            assert_eq!(found.trace.len(), length, "{model:?}");
        }
    }
    seen
}

#[test]
fn a_clock_over_a_memory_is_the_machine_written_by_hand() {
    for n in [2, 3, 5] {
        for chooses in [false, true] {
            for largest in [0, n - 2, n - 1, n] {
                for hides_ticks in [false, true] {
                    for first in [0, n] {
                        agree(Model { n, chooses, largest, hides_ticks, first });
                    }
                }
            }
        }
    }
}

/// `CTOCPre` is free of deadlock, with all states that it has.
#[test]
fn a_choice_at_the_full_hour_is_free_of_deadlock() {
    for n in [8, 15] {
        let clock = Model { n, chooses: true, largest: n, hides_ticks: false, first: 0 };
        assert_eq!(agree(clock), Seen { states: 17 * n + 4, deadlock: None, diverges: false });
    }
}
