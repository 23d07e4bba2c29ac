//! One run under a scheduler: round robin, random, or a stored schedule that is followed step by step.

use super::explore::{Stand, explore_from};
use super::schedule::{Schedule, Step};
use super::state::*;
use super::step::{Event, Op, Pending, Settled};
use crate::limits::Clock;
use crate::machine::access::Action;

/// Who moves next.
pub enum Scheduler {
    /// Threads take turns.
    RoundRobin,
    /// A seeded choice at every step.
    Random(u64),
    /// Exactly these steps; the run stops behind the last.
    Replay(Schedule),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All threads ended; the value of the main one.
    Finished(String),
    /// Nobody can move.
    Deadlock(Vec<Stand>),
    /// A thread failed.
    Failed { thread: String, message: String },
    /// The schedule is used up. `pending` says what each thread would do next.
    ScheduleEnds { pending: Vec<String>, race: Option<(String, String)> },
    /// The schedule does not fit the program.
    Diverged { step: usize, message: String },
    /// A limit was met.
    Limit(String),
}

pub struct Run {
    pub ending: Ending,
    /// What happened, as a schedule that replays it.
    pub schedule: Schedule,
    /// Threads that spin for ever from where a schedule ends.
    pub livelock: Option<Vec<Stand>>,
    /// The swap that a schedule ends with, if it failed and nobody will try it again.
    pub unretried: Option<Stand>,
    /// Where a thread failed: those that wait for ever because of it, if nobody can move.
    pub waiting: Vec<Stand>,
    /// Threads that failed on the way, and how.
    pub errors: Vec<(String, String)>,
    pub output: String,
}

/// One line of a run's log.
pub enum Note<'a> {
    Step { thread: String, what: &'a str },
    Output { thread: String, text: &'a str },
}

/// A small generator (xorshift64*): the same seed gives the same run everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }
}

pub fn run(
    machine: &Machine,
    scheduler: Scheduler,
    seed: u64,
    steps_max: usize,
    clock: &Clock,
    mut log: impl FnMut(Note),
) -> Run {
    let mut dice = Dice::new(seed);
    let mut walk = match &scheduler {
        Scheduler::Random(seed) => Dice::new(*seed ^ 0x5eed),
        _ => Dice::new(seed),
    };
    let mut script = match scheduler {
        Scheduler::Replay(ref schedule) => schedule.steps.iter().peekable(),
        _ => [].iter().peekable(),
    };
    let replay = matches!(scheduler, Scheduler::Replay(_));
    let mut state = machine.initial();
    let mut schedule = Schedule::default();
    let mut output = String::new();
    let mut turn = 0usize;
    let mut taken = 0usize;
    let mut chosen: Option<ThreadId> = None;
    let mut failed: Option<Stand> = None;
    let mut failures: std::collections::BTreeSet<ThreadId> = Default::default();
    let mut errors = Vec::new();
    let mut waiting = Vec::new();
    let ending = loop {
        let mut made = Vec::new();
        let mut choose = |n: i64| {
            let value = match script.peek() {
                Some(Step::Choose(value)) if replay => {
                    let value = (*value).clamp(0, n - 1);
                    script.next();
                    value
                }
                _ => dice.below(n as u64) as i64,
            };
            made.push(value);
            value
        };
        let mut events = Vec::new();
        if let Some(thread) = chosen {
            events.push((thread, machine.step(&mut state, thread, &mut choose)));
        }
        let settled =
            machine.settle(&mut state, &mut choose, clock, |thread, event| events.push((thread, event)));
        schedule.steps.extend(made.into_iter().map(Step::Choose));
        for (thread, event) in events {
            if let Event::Output(text) = event {
                log(Note::Output { thread: state.thread(thread).name(), text: &text });
                output.push_str(&text);
            }
        }
        machine.collect(&mut state);
        if settled == Settled::OutOfSteps {
            break Ending::Limit(
                "a thread runs on without a visible operation; is the recursion unbounded?".to_owned(),
            );
        }
        if settled == Settled::OutOfTime {
            break Ending::Limit(clock.reason());
        }
        let pending: Vec<Pending> = state.thread_ids().map(|id| machine.pending(&state, id)).collect();
        // A schedule may go on after a thread has failed: what it was kept for comes later. A run ends here.
        let new = state.thread_ids().find(|id| is_failure(state.thread(*id)) && !failures.contains(id));
        for id in state.thread_ids().filter(|id| !failures.contains(id)) {
            if let Some(Ending::Failed { thread, message }) = failure(state.thread(id)) {
                errors.push((thread, message));
            }
        }
        failures.extend(state.thread_ids().filter(|&id| is_failure(state.thread(id))));
        if let Some(ending) = new.and_then(|id| failure(state.thread(id)))
            && !(replay && script.peek().is_some())
        {
            if !pending.iter().any(|p| matches!(p, Pending::Visible(_))) {
                waiting = waiting_threads(&state, &pending);
            }
            break ending;
        }
        let enabled: Vec<(ThreadId, &Op)> = pending
            .iter()
            .enumerate()
            .filter_map(|(at, p)| match p {
                Pending::Visible(op) => Some((ThreadId(at as u32), op)),
                _ => None,
            })
            .collect();
        if enabled.is_empty() {
            break at_rest(machine, &state, &pending);
        }
        if taken >= steps_max || clock.is_over() {
            let reason = if clock.is_over() { clock.reason() } else { format!("{steps_max} steps taken") };
            break Ending::Limit(reason);
        }
        let (thread, op) = if replay {
            match script.next() {
                None => break schedule_ends(machine, &state, &pending),
                Some(step) => match follow(machine, &state, &pending, step) {
                    Ok(chosen) => chosen,
                    Err(message) => break Ending::Diverged { step: taken + 1, message },
                },
            }
        } else if matches!(scheduler, Scheduler::Random(_)) {
            enabled[walk.below(enabled.len() as u64) as usize]
        } else {
            turn += 1;
            enabled[turn % enabled.len()]
        };
        failed = (op.action == Action::CasFails).then(|| Stand {
            thread: state.thread(thread).path.clone(),
            site: op.site,
            action: op.action,
        });
        let what = machine.describe(&state, op);
        log(Note::Step { thread: state.thread(thread).name(), what: &what });
        schedule.steps.push(Step::Act { thread: state.thread(thread).path.clone(), what: Some(what) });
        taken += 1;
        chosen = Some(thread);
    };
    let (livelock, unretried) = match ending {
        Ending::ScheduleEnds { .. } | Ending::Finished(_) | Ending::Deadlock(_) if replay => {
            aftermath(machine, &state, failed, clock)
        }
        _ => (None, None),
    };
    Run { ending, schedule, output, livelock, unretried, waiting, errors }
}

/// States that are looked at behind the end of a schedule.
const AFTERMATH_MAX: usize = 5_000;

/// What comes of the state in which a schedule ends: whether its threads spin for ever, and whether the swap that failed last is
/// ever tried again.
fn aftermath(
    machine: &Machine,
    state: &State,
    failed: Option<Stand>,
    clock: &Clock,
) -> (Option<Vec<Stand>>, Option<Stand>) {
    let after = explore_from(machine, state, Schedule::default(), AFTERMATH_MAX, clock);
    if after.incomplete.is_some() {
        return (None, None);
    }
    let livelock = after.idle.then(|| after.observed.livelocks.into_keys().next()).flatten();
    let retried = |stand: &Stand| {
        machine.program.is_retried(stand.site) || after.swaps.contains(&(stand.thread.clone(), stand.site))
    };
    (livelock, failed.filter(|stand| !retried(stand)))
}

fn is_failure(thread: &Thread) -> bool {
    matches!(&thread.control, Control::Failed(failure) if failure.kind != FailureKind::Inherited)
}

/// How a run ends whose last step made a thread fail.
fn failure(thread: &Thread) -> Option<Ending> {
    let Control::Failed(failure) = &thread.control else { return None };
    if failure.kind == FailureKind::Inherited {
        return None;
    }
    Some(match failure.kind {
        FailureKind::Limit => Ending::Limit(failure.message.clone()),
        _ => Ending::Failed { thread: thread.name(), message: failure.message.clone() },
    })
}

fn waiting_threads(state: &State, pending: &[Pending]) -> Vec<Stand> {
    let waits = |(thread, pending): (&std::rc::Rc<Thread>, &Pending)| match pending {
        Pending::Blocked(op) => Some(Stand { thread: thread.path.clone(), site: op.site, action: op.action }),
        _ => None,
    };
    state.threads.iter().zip(pending).filter_map(waits).collect()
}

fn at_rest(machine: &Machine, state: &State, pending: &[Pending]) -> Ending {
    let stuck = waiting_threads(state, pending);
    match &state.threads[0].control {
        Control::Done(value) if stuck.is_empty() => Ending::Finished(machine.show(state, value, true)),
        _ => Ending::Deadlock(stuck),
    }
}

fn schedule_ends(machine: &Machine, state: &State, pending: &[Pending]) -> Ending {
    let mut lines = Vec::new();
    let mut ops: Vec<(&Thread, &Op)> = Vec::new();
    for (thread, pending) in state.threads.iter().zip(pending) {
        lines.push(match pending {
            Pending::Finished => format!("{} has ended", thread.name()),
            Pending::Blocked(op) => format!("{} waits: {}", thread.name(), machine.describe(state, op)),
            Pending::Visible(op) => {
                ops.push((thread, op));
                format!("{} is about to {}", thread.name(), machine.describe(state, op))
            }
            Pending::Local => unreachable!("the state is settled"),
        });
    }
    let race = ops.iter().enumerate().find_map(|(i, (t, a))| {
        let (u, _) = ops[i + 1..]
            .iter()
            .find(|(_, b)| a.loc.is_some() && a.loc == b.loc && a.action.conflicts_with(b.action))?;
        Some((t.name(), u.name()))
    });
    Ending::ScheduleEnds { pending: lines, race }
}

/// The thread that a step of a schedule names, when it can do what the step says.
fn follow<'a>(
    machine: &Machine,
    state: &State,
    pending: &'a [Pending],
    step: &Step,
) -> Result<(ThreadId, &'a Op), String> {
    let Step::Act { thread, what } = step else {
        return Err("the schedule gives an outcome of random where none is asked for".to_owned());
    };
    let Some(at) = state.threads.iter().position(|t| t.path == *thread) else {
        return Err(format!("there is no thread {} yet", path_name(thread)));
    };
    match &pending[at] {
        Pending::Visible(op) => {
            let now = machine.describe(state, op);
            match what {
                Some(what) if *what != now => {
                    Err(format!("thread {} is about to `{now}`, not to `{what}`", path_name(thread)))
                }
                _ => Ok((ThreadId(at as u32), op)),
            }
        }
        Pending::Blocked(op) => {
            Err(format!("thread {} waits: {}", path_name(thread), machine.describe(state, op)))
        }
        _ => Err(format!("thread {} has ended", path_name(thread))),
    }
}
