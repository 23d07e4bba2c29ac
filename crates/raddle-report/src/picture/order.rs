//! What a schedule says about its own run: who holds which lock from when to when, who waits, and which steps synchronise.
//!
//! A condition wait releases a mutex that its step does not name. It is the one that the thread takes back afterwards; if the run
//! ends before that, it is the one that the thread took last of those it holds.
//!
//! An edge leads from a step to the next step of another thread that it is ordered before by the objects' rules: creation to start,
//! end to join, release of a lock to its next acquisition, signal to wake-up, post to wait, arrival at a barrier to departure,
//! initialisation to its use. Accesses to one atomic are joined from the last store to the load after it; whether that orders
//! more than the two depends on their memory orders, which a schedule does not have, and the edge says so.

#![warn(clippy::wildcard_enum_match_arm)]

use super::run::Run;
use super::{Stretch, words};
use raddle_trace::schedule::{NameIx, StepKind};
use std::collections::{HashMap, VecDeque};

/// A stretch of a thread, by steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    pub thread: usize,
    pub stretch: Stretch,
    pub what: NameIx,
    /// Index of the step with which it begins; `None`: before the first.
    pub from: Option<usize>,
    /// Index of the step with which it ends; `None`: never.
    pub to: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    Creates,
    Ends,
    HandsOver,
    Wakes,
    Posts,
    Arrives,
    Initialises,
    /// The later access may see what the earlier one stored.
    Precedes,
}

/// One step is ordered before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub from: usize,
    pub to: usize,
    pub why: Why,
}

/// For each `wait`, the mutex that the thread takes back: the object of its next `relock`.
fn relocked(run: &Run<'_>) -> HashMap<usize, NameIx> {
    let mut next: HashMap<usize, NameIx> = HashMap::new();
    let mut found = HashMap::new();
    for (at, step) in run.steps.iter().enumerate().rev() {
        if step.kind == StepKind::Relock {
            next.insert(step.thread, step.object);
        } else if step.kind == StepKind::Wait
            && let Some(mutex) = next.remove(&step.thread)
        {
            found.insert(at, mutex);
        }
    }
    found
}

struct Open {
    what: NameIx,
    from: usize,
    depth: u32,
    read: bool,
}

/// The locks that are held and the waits, in the order in which they begin.
pub fn spans(run: &Run<'_>) -> Vec<Interval> {
    let relocked = relocked(run);
    let mut open: Vec<Vec<Open>> = (0..run.threads.len()).map(|_| Vec::new()).collect();
    let mut waits: Vec<Option<(NameIx, usize)>> = vec![None; run.threads.len()];
    let mut closed = Vec::new();
    let mut close = |thread: usize, held: Open, to: Option<usize>| {
        let stretch = if held.read { Stretch::HoldsForReading } else { Stretch::Holds };
        closed.push(Interval { thread, stretch, what: held.what, from: Some(held.from), to });
    };
    let mut waited = Vec::new();
    for (at, step) in run.steps.iter().enumerate() {
        let held = &mut open[step.thread];
        match step.kind {
            StepKind::Lock | StepKind::ReadLock | StepKind::Relock if !step.failed => {
                match held.iter_mut().find(|held| held.what == step.object) {
                    Some(again) => again.depth += 1,
                    None => held.push(Open {
                        what: step.object,
                        from: at,
                        depth: 1,
                        read: step.kind == StepKind::ReadLock,
                    }),
                }
            }
            StepKind::Unlock if !step.failed => {
                if let Some(ix) = held.iter().position(|held| held.what == step.object) {
                    held[ix].depth -= 1;
                    if held[ix].depth == 0 {
                        close(step.thread, held.remove(ix), Some(at));
                    }
                }
            }
            StepKind::Wait => {
                let mutex = relocked.get(&at).copied().or_else(|| held.last().map(|held| held.what));
                if let Some(ix) = held.iter().position(|held| Some(held.what) == mutex) {
                    close(step.thread, held.remove(ix), Some(at));
                }
                waits[step.thread] = Some((step.object, at));
            }
            StepKind::Wake => {
                if let Some((what, from)) = waits[step.thread].take() {
                    let (thread, stretch) = (step.thread, Stretch::Waits);
                    waited.push(Interval { thread, stretch, what, from: Some(from), to: Some(at) });
                }
            }
            StepKind::Fork
            | StepKind::Start
            | StepKind::End
            | StepKind::Join
            | StepKind::Detach
            | StepKind::Cancel
            | StepKind::Lock
            | StepKind::ReadLock
            | StepKind::Unlock
            | StepKind::Relock
            | StepKind::Signal
            | StepKind::Broadcast
            | StepKind::BarrierEnter
            | StepKind::BarrierExit
            | StepKind::SemWait
            | StepKind::SemPost
            | StepKind::OnceBegin
            | StepKind::OnceEnd
            | StepKind::OncePassed
            | StepKind::Load
            | StepKind::Store
            | StepKind::Rmw
            | StepKind::Fence
            | StepKind::FutexWake
            | StepKind::FutexWait
            | StepKind::Acquire
            | StepKind::Release
            | StepKind::Custom
            | StepKind::Read
            | StepKind::Write
            | StepKind::Syscall
            | StepKind::Handler => {}
        }
    }
    for (thread, held) in open.into_iter().enumerate() {
        held.into_iter().for_each(|held| close(thread, held, None));
    }
    for (thread, wait) in waits.into_iter().enumerate() {
        let stretch = Stretch::Waits;
        waited.extend(wait.map(|(what, from)| Interval {
            thread,
            stretch,
            what,
            from: Some(from),
            to: None,
        }));
    }
    closed.extend(waited);
    closed.sort_by_key(|interval| interval.from);
    closed
}

/// The steps that synchronise threads, by the later one. Only between different threads.
pub fn edges(run: &Run<'_>) -> Vec<Link> {
    let relocked = relocked(run);
    let mut links = Vec::new();
    let mut forked: HashMap<&str, usize> = HashMap::new();
    let mut ended: HashMap<&str, usize> = HashMap::new();
    let mut last: HashMap<(NameIx, Release), usize> = HashMap::new();
    let mut posts: HashMap<NameIx, VecDeque<usize>> = HashMap::new();
    for (at, step) in run.steps.iter().enumerate() {
        let mut link = |from: Option<usize>, why: Why| {
            if let Some(from) = from.filter(|from| run.steps[*from].thread != step.thread) {
                links.push(Link { from, to: at, why });
            }
        };
        let key = |what| (step.object, what);
        match step.kind {
            StepKind::Fork => {
                forked.insert(run.schedule.name(step.object), at);
            }
            StepKind::Start => link(forked.get(run.threads[step.thread]).copied(), Why::Creates),
            StepKind::End => {
                ended.insert(run.threads[step.thread], at);
            }
            StepKind::Join if !step.failed => {
                link(ended.get(run.schedule.name(step.object)).copied(), Why::Ends);
            }
            StepKind::Unlock => {
                last.insert(key(Release::Lock), at);
            }
            StepKind::Lock | StepKind::ReadLock | StepKind::Relock if !step.failed => {
                link(last.get(&key(Release::Lock)).copied(), Why::HandsOver);
            }
            StepKind::Signal | StepKind::Broadcast => {
                last.insert(key(Release::Condition), at);
            }
            StepKind::Wait => {
                if let Some(mutex) = relocked.get(&at) {
                    last.insert((*mutex, Release::Lock), at);
                }
            }
            StepKind::Wake if !step.failed => link(last.get(&key(Release::Condition)).copied(), Why::Wakes),
            StepKind::SemPost => posts.entry(step.object).or_default().push_back(at),
            StepKind::SemWait if !step.failed => {
                link(posts.get_mut(&step.object).and_then(VecDeque::pop_front), Why::Posts);
            }
            StepKind::BarrierEnter => {
                last.insert(key(Release::Barrier), at);
            }
            StepKind::BarrierExit => link(last.get(&key(Release::Barrier)).copied(), Why::Arrives),
            StepKind::OnceEnd => {
                last.insert(key(Release::Once), at);
            }
            StepKind::OncePassed => link(last.get(&key(Release::Once)).copied(), Why::Initialises),
            StepKind::Release => {
                last.insert(key(Release::Annotated), at);
            }
            StepKind::Acquire => link(last.get(&key(Release::Annotated)).copied(), Why::HandsOver),
            StepKind::FutexWake => {
                last.insert(key(Release::Futex), at);
            }
            StepKind::FutexWait if !step.failed => {
                link(last.get(&key(Release::Futex)).copied(), Why::Wakes);
            }
            StepKind::Load => link(stored(&last, step.object), Why::Precedes),
            StepKind::Store => {
                last.insert(key(Release::Atomic), at);
            }
            StepKind::Rmw => {
                link(stored(&last, step.object), Why::Precedes);
                if !step.failed {
                    last.insert(key(Release::Atomic), at);
                }
            }
            StepKind::Join
            | StepKind::Detach
            | StepKind::Cancel
            | StepKind::Lock
            | StepKind::ReadLock
            | StepKind::Relock
            | StepKind::Wake
            | StepKind::SemWait
            | StepKind::OnceBegin
            | StepKind::FutexWait
            | StepKind::Fence
            | StepKind::Custom
            | StepKind::Read
            | StepKind::Write
            | StepKind::Syscall
            | StepKind::Handler => {}
        }
    }
    links
}

/// The last store to an atomic that has a name: two without one need not be the same.
fn stored(last: &HashMap<(NameIx, Release), usize>, object: NameIx) -> Option<usize> {
    last.get(&(object, Release::Atomic)).copied().filter(|_| object != NameIx(0))
}

/// What kind of release a step was: an address can be used as more than one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Release {
    Lock,
    Condition,
    Barrier,
    Once,
    Annotated,
    Futex,
    Atomic,
}

/// Does the step signal a condition?
pub(super) fn is_signal(kind: StepKind) -> bool {
    matches!(kind, StepKind::Signal | StepKind::Broadcast)
}

/// Does the thread wait for a condition from here on?
pub(super) fn begins_to_wait(kind: StepKind) -> bool {
    kind == StepKind::Wait
}

/// Signals that find nobody waiting for their condition.
pub fn lost_signals(run: &Run<'_>) -> Vec<usize> {
    let mut waiting: HashMap<NameIx, usize> = HashMap::new();
    let mut lost = Vec::new();
    for (at, step) in run.steps.iter().enumerate() {
        let count = waiting.entry(step.object).or_default();
        if step.kind == StepKind::Wait {
            *count += 1;
        } else if step.kind == StepKind::Wake {
            *count = count.saturating_sub(1);
        } else if is_signal(step.kind) && *count == 0 {
            lost.push(at);
        }
    }
    lost
}

impl Why {
    pub fn words(self, object: &str) -> String {
        words::link(self, object)
    }
}
