//! Random walks: whole runs, one after the other, each under a schedule of its own.
//!
//! The breadth-first exploration gives the shortest schedules, but what it cannot finish it has only seen near the start. A
//! walk goes to the end: a program that deadlocks in most of its runs deadlocks in one of the first walks. Every second walk
//! chooses uniformly at each step; the others give each thread a priority and lower the priority of the running one at a
//! few random moments (Burckhardt, Kothari, Musuvathi, Nagarakatte, *A Randomized Scheduler with Probabilistic Guarantees of
//! Finding Bugs*, 2010), which finds what needs one thread to be far ahead. `random` is uniform in all of them.
//!
//! A walk that comes to no end may be caught: if the states that can be reached from where it was given up are few, they are
//! explored, and threads that spin there for ever are found.

use super::canon::fingerprint;
use super::explore::{Observed, explore_from};
use super::run::{Dice, Scheduler, run};
use super::schedule::{Schedule, Step};
use super::state::*;
use super::step::{Pending, Settled};
use crate::limits::Clock;
use rustc_hash::FxHashSet;

/// Bounds of the walks.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub walks_max: usize,
    /// Visible operations in one walk.
    pub steps_max: usize,
    /// States that are looked at where a walk was given up.
    pub states_max: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { walks_max: 400, steps_max: 20_000, states_max: 1_000 }
    }
}

/// What was seen, and in how many walks.
pub struct Walked {
    pub observed: Observed,
    pub walks: usize,
    pub steps: usize,
}

/// Moments at which the running thread falls behind, in a walk by priorities.
const CHANGES: usize = 2;
/// Walks without an end from which spinning threads are looked for.
const SPINNING_MAX: usize = 3;
/// Walks without anything new after which there are no more.
const IDLE_MAX: usize = 60;
/// Walks that got lost in local steps after which there are no more: each takes its time.
const ENDLESS_MAX: usize = 3;

pub fn walk(machine: &Machine, bounds: Bounds, seed: u64, clock: &Clock) -> Walked {
    let mut out = Walked { observed: Observed::default(), walks: 0, steps: 0 };
    let mut longest = 16;
    let (mut spinning, mut endless) = (0, 0);
    let mut known = (0, 0);
    while out.walks < bounds.walks_max && !clock.is_over() {
        // Nothing new for a while: most likely there is nothing new.
        let situations = out.observed.situations();
        if situations > known.0 {
            known = (situations, out.walks);
        }
        if out.walks - known.1 > IDLE_MAX {
            break;
        }
        let mut walk =
            Walk::new(seed ^ (out.walks as u64).wrapping_mul(0x9e37_79b9), out.walks % 2 == 1, longest);
        let end = walk.go(machine, bounds.steps_max, clock, &mut out.observed);
        out.walks += 1;
        out.steps += walk.taken;
        longest = longest.max(walk.taken.min(bounds.steps_max));
        if matches!(end, End::Endless) {
            endless += 1;
            if endless == ENDLESS_MAX {
                break;
            }
        }
        if let End::GivenUp(state) = end
            && spinning < SPINNING_MAX
        {
            spinning += 1;
            let schedule = Schedule { steps: walk.steps };
            let around = explore_from(machine, &state, schedule, bounds.states_max, clock);
            if around.incomplete.is_none() {
                for (key, schedule) in around.observed.livelocks {
                    out.observed.livelocks.entry(key).or_insert(schedule);
                }
            }
        }
    }
    out
}

/// The schedule with what each step does, which most walks need not know.
fn spelled(machine: &Machine, schedule: Schedule, clock: &Clock) -> Schedule {
    let count = schedule.steps.len();
    let again = run(machine, Scheduler::Replay(schedule.clone()), 0, usize::MAX, clock, |_| {}).schedule;
    if again.steps.len() == count { again } else { schedule }
}

enum End {
    /// Nobody can move, or a limit was met.
    Over,
    /// A thread went on for long without doing anything that others notice.
    Endless,
    /// There were more steps to take.
    GivenUp(Box<State>),
}

struct Walk {
    dice: Dice,
    choices: Dice,
    steps: Vec<Step>,
    taken: usize,
    /// The priority of each thread, and the steps at which it falls; none in a uniform walk.
    priorities: Option<(Vec<u64>, Vec<usize>)>,
    /// States seen, as long as the walk may still be new to us.
    seen: FxHashSet<u128>,
}

impl Walk {
    fn new(seed: u64, by_priority: bool, longest: usize) -> Walk {
        let mut dice = Dice::new(seed);
        let priorities = by_priority
            .then(|| (Vec::new(), (0..CHANGES).map(|_| dice.below(longest as u64) as usize).collect()));
        Walk {
            choices: Dice::new(seed ^ 0xc401ce),
            dice,
            steps: Vec::new(),
            taken: 0,
            priorities,
            seen: FxHashSet::default(),
        }
    }

    fn go(&mut self, machine: &Machine, steps_max: usize, clock: &Clock, observed: &mut Observed) -> End {
        let mut state = machine.initial();
        let mut chosen: Option<ThreadId> = None;
        loop {
            let (choices, steps) = (&mut self.choices, &mut self.steps);
            let mut choose = |n: i64| {
                let choice = choices.below(n.unsigned_abs()) as i64;
                steps.push(Step::Choose(choice));
                choice
            };
            if let Some(thread) = chosen {
                machine.step(&mut state, thread, &mut choose);
            }
            if machine.settle(&mut state, &mut choose, clock, |_, _| {}) != Settled::Yes {
                return End::Endless;
            }
            machine.collect(&mut state);
            let pending: Vec<Pending> = state.thread_ids().map(|id| machine.pending(&state, id)).collect();
            let path = || spelled(machine, Schedule { steps: self.steps.clone() }, clock);
            observed.look(machine, &state, &pending, &path);
            let enabled: Vec<ThreadId> =
                state.thread_ids().filter(|id| matches!(pending[id.index()], Pending::Visible(_))).collect();
            if enabled.is_empty() || state.limit().is_some() {
                return End::Over;
            }
            // A walk by priorities may stay with one thread that spins: where it has been before, chance decides.
            let again = self.priorities.is_some() && !self.seen.insert(fingerprint(&machine.canon(&state)));
            if self.taken >= steps_max || clock.is_over() {
                return End::GivenUp(Box::new(state));
            }
            let thread = self.next(&enabled, again);
            self.steps.push(Step::Act { thread: state.thread(thread).path.clone(), what: None });
            self.taken += 1;
            chosen = Some(thread);
        }
    }

    fn next(&mut self, enabled: &[ThreadId], again: bool) -> ThreadId {
        let any = enabled[self.dice.below(enabled.len() as u64) as usize];
        let Some((priorities, changes)) = &mut self.priorities else { return any };
        let highest = enabled.iter().map(|id| id.index() + 1).max().unwrap_or(0);
        while priorities.len() < highest {
            priorities.push((1 << 20) + self.dice.below(1 << 20));
        }
        if again {
            return any;
        }
        let first = enabled.iter().copied().max_by_key(|id| priorities[id.index()]).unwrap_or(any);
        if let Some(change) = changes.iter().position(|&step| step == self.taken) {
            priorities[first.index()] = change as u64;
            return enabled.iter().copied().max_by_key(|id| priorities[id.index()]).unwrap_or(any);
        }
        first
    }
}
