//! From the journal of a real run to a [`Run`]: what was performed, and who else could have gone.
//!
//! The runtime writes down what every thread comes to, and who has a turn; it never tries what a search does not ask for. Who
//! could have gone instead is computed here, with the rules of [`Objects`], from what all threads were about to do. The
//! scheduler lets somebody go only when everybody has come to an operation, so that is known at each turn.
//!
//! A turn that the rules do not allow means that the rules do not know the program (a mutex whose owner died, a semaphore that is
//! initialised again): the search would leave runs out without saying so, so it is refused ([`Unmodelled`]).
//!
//! A thread that waits in a loop ([`raddle_sched::waiting_loop`]) can go when somebody has changed what it looks at since it came to
//! its operation, or when nobody else can.

use super::objects::Objects;
use super::run::{Event, Run, Step, ThreadId};
use raddle_sched::Operation;
use raddle_sched::dependence::{FINAL, SPINS, dependent};
use raddle_wire::journal::{Arrived, Mark};
use raddle_wire::{StepKind, step};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// All threads that runs of a program have had. A thread is known by the hash of its spawn path, which is the same in every
/// run that creates it; its number is that of the run that created it first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Threads {
    paths: Vec<u64>,
}

impl Threads {
    fn id(&mut self, path: u64) -> ThreadId {
        let known = self.paths.iter().position(|&other| other == path);
        let at = known.unwrap_or_else(|| {
            self.paths.push(path);
            self.paths.len() - 1
        });
        ThreadId(at as u32)
    }

    /// Hash of a thread's spawn path.
    pub fn path(&self, thread: ThreadId) -> Option<u64> {
        self.paths.get(thread.at()).copied()
    }
}

/// How a run ended, as far as that decides what could have followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nobody could go on, or everybody had ended.
    Still,
    /// The process was gone: after its last operation nobody could do anything any more.
    Gone,
}

/// Why a run cannot be part of a search.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmodelled {
    #[error("the program {0}")]
    Unsupported(&'static str),
    #[error(
        "a thread performed `{0}` where the rules of that operation say that it cannot (an object that is initialised again, or a lock whose owner died?)"
    )]
    Impossible(&'static str),
    #[error("the run's journal ends in the middle")]
    Damaged,
}

/// A thread of the run that is read.
struct Local {
    id: ThreadId,
    path: u64,
    children: u32,
    /// From which state on it exists.
    from: usize,
    pending: Option<Operation>,
    /// The state in which it came to that.
    since: usize,
}

struct Reading {
    locals: Vec<Local>,
    objects: Objects,
    steps: Vec<Step>,
    /// Which steps changed nothing.
    idle: Vec<bool>,
    semaphores: HashMap<u64, u64>,
}

/// Reads a journal.
pub fn read(
    threads: &mut Threads,
    marks: impl Iterator<Item = Mark>,
    ended: Ended,
) -> Result<Run, Unmodelled> {
    let mut reading = Reading {
        locals: Vec::new(),
        objects: Objects::default(),
        steps: Vec::new(),
        idle: Vec::new(),
        semaphores: HashMap::new(),
    };
    for mark in marks {
        match mark {
            Mark::Born { thread, parent } => reading.born(threads, thread, parent)?,
            Mark::Arrived(arrived) => reading.arrived(arrived)?,
            Mark::Turn { thread, failed, pc } => reading.turn(thread, failed, pc)?,
            Mark::Unchanged { .. } => {
                if let Some(idle) = reading.idle.last_mut() {
                    *idle = true;
                }
            }
        }
    }
    Ok(reading.finish(ended))
}

impl Reading {
    fn local(&mut self, thread: u16) -> Result<&mut Local, Unmodelled> {
        self.locals.get_mut(usize::from(thread)).ok_or(Unmodelled::Damaged)
    }

    fn born(&mut self, threads: &mut Threads, thread: u16, parent: u32) -> Result<(), Unmodelled> {
        if usize::from(thread) != self.locals.len() {
            return Err(Unmodelled::Damaged);
        }
        let path = match thread {
            0 => step::hash(step::HASH_START, b"1"),
            _ => {
                let parent = self.locals.get_mut(parent as usize).ok_or(Unmodelled::Damaged)?;
                parent.children += 1;
                step::child_hash(parent.path, parent.children)
            }
        };
        // Born in its creator's turn, which is written down afterwards.
        let from = if thread == 0 { 0 } else { self.steps.len() + 1 };
        let id = threads.id(path);
        self.locals.push(Local { id, path, children: 0, from, pending: None, since: 0 });
        Ok(())
    }

    fn arrived(&mut self, arrived: Arrived) -> Result<(), Unmodelled> {
        let Arrived { thread, kind, flags, bytes, mut object, mut second } = arrived;
        match StepKind::from_u8(kind) {
            // Without an object it is a thread that yields.
            Some(StepKind::Syscall) if object != 0 => {
                return Err(Unmodelled::Unsupported("waits in system calls (pipes)"));
            }
            Some(StepKind::Handler) => return Err(Unmodelled::Unsupported("handles signals")),
            Some(StepKind::Cancel) => return Err(Unmodelled::Unsupported("cancels threads")),
            Some(StepKind::FutexWait) => return Err(Unmodelled::Unsupported("waits on futex words")),
            Some(StepKind::Join) => {
                let child = usize::try_from(object & !(1 << 63)).ok();
                let child = child.and_then(|child| self.locals.get(child)).ok_or(Unmodelled::Damaged)?;
                object = child.path;
            }
            Some(StepKind::Start | StepKind::End) => object = self.local(thread)?.path,
            Some(StepKind::Fork) => {
                let local = self.local(thread)?;
                object = step::child_hash(local.path, local.children + 1);
            }
            Some(StepKind::SemWait | StepKind::SemPost) => {
                if self.objects.semaphore(object).is_some_and(|value| value != second as i64) {
                    return Err(Unmodelled::Unsupported("initialises a semaphore again"));
                }
                second = *self.semaphores.entry(object).or_insert(second);
            }
            Some(
                StepKind::Lock
                | StepKind::ReadLock
                | StepKind::Unlock
                | StepKind::Relock
                | StepKind::Signal
                | StepKind::Broadcast
                | StepKind::Wait
                | StepKind::Wake
                | StepKind::BarrierEnter
                | StepKind::BarrierExit
                | StepKind::OnceBegin
                | StepKind::OnceEnd
                | StepKind::OncePassed
                | StepKind::Load
                | StepKind::Store
                | StepKind::Rmw
                | StepKind::Fence
                | StepKind::Read
                | StepKind::Write
                | StepKind::Syscall
                | StepKind::FutexWake
                | StepKind::Acquire
                | StepKind::Release
                | StepKind::Custom
                | StepKind::Detach,
            ) => {}
            // The process exits.
            None => {}
        }
        let since = self.steps.len();
        let local = self.local(thread)?;
        local.pending = Some(Operation { kind, flags, bytes, object, second });
        local.since = since;
        Ok(())
    }

    /// Who can go now, sorted.
    fn enabled(&self) -> Vec<ThreadId> {
        let now = self.steps.len();
        let able: Vec<(&Local, &Operation)> = self
            .locals
            .iter()
            .filter(|local| local.from <= now)
            .filter_map(|local| Some((local, local.pending.as_ref()?)))
            .filter(|(local, op)| self.objects.enables(local.id, op))
            .collect();
        let has_news = |local: &Local, op: &Operation| {
            (local.since..now).any(|at| !self.idle[at] && dependent(&self.steps[at].event.op, op))
        };
        let going = |&&(local, op): &&(&Local, &Operation)| !op.has(SPINS) || has_news(local, op);
        let mut enabled: Vec<ThreadId> = able.iter().filter(going).map(|(local, _)| local.id).collect();
        if enabled.is_empty() {
            enabled = able.iter().map(|(local, _)| local.id).collect();
        }
        enabled.sort_unstable();
        enabled
    }

    fn turn(&mut self, thread: u16, failed: bool, pc: u64) -> Result<(), Unmodelled> {
        let enabled = self.enabled();
        let local = self.local(thread)?;
        let op = local.pending.take().ok_or(Unmodelled::Damaged)?;
        let event = Event { thread: local.id, op, failed };
        if !enabled.contains(&event.thread) {
            return Err(Unmodelled::Impossible(step::WORDS.get(usize::from(op.kind)).unwrap_or(&"exit")));
        }
        self.objects.perform(&event);
        self.idle.push(failed || op.only_looks());
        self.steps.push(Step { event, pc, enabled });
        Ok(())
    }

    fn finish(mut self, ended: Ended) -> Run {
        let now = self.steps.len();
        let pending: Vec<Event> = self
            .locals
            .iter()
            .filter(|local| local.from <= now)
            .filter_map(|local| Some(Event { thread: local.id, op: local.pending?, failed: false }))
            .collect();
        if ended == Ended::Gone
            && let Some(last) = self.steps.last_mut()
        {
            last.event.op.flags |= FINAL;
        }
        Run { steps: self.steps, pending, blocked: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrived(thread: u16, kind: u8, object: u64) -> Mark {
        Mark::Arrived(Arrived { thread, kind, flags: 0, bytes: 1, object, second: 0 })
    }

    fn turn(thread: u16) -> Mark {
        Mark::Turn { thread, failed: false, pc: 0 }
    }

    /// Main creates two threads, which lock one mutex; the second has to wait.
    fn example() -> Vec<Mark> {
        vec![
            Mark::Born { thread: 0, parent: 0 },
            arrived(0, step::FORK, 0),
            Mark::Born { thread: 1, parent: 0 },
            arrived(1, step::START, 0),
            turn(0),
            arrived(0, step::FORK, 0),
            Mark::Born { thread: 2, parent: 0 },
            turn(0),
            arrived(0, step::JOIN, 1 << 63 | 1),
            arrived(2, step::START, 0),
            turn(1),
            arrived(1, step::LOCK, 64),
            turn(2),
            arrived(2, step::LOCK, 64),
            turn(1),
            arrived(1, step::UNLOCK, 64),
        ]
    }

    #[test]
    fn who_could_have_gone_is_computed() {
        let mut threads = Threads::default();
        let run = read(&mut threads, example().into_iter(), Ended::Still).unwrap();
        let enabled: Vec<Vec<u32>> =
            run.steps.iter().map(|step| step.enabled.iter().map(|thread| thread.0).collect()).collect();
        // A thread cannot go in the turn that creates it, and main cannot join before the end.
        assert_eq!(enabled, [vec![0], vec![0, 1], vec![1, 2], vec![1, 2], vec![1, 2]]);
        assert_eq!(run.pending.len(), 3, "main joins, one unlocks, one waits for that");
        assert_eq!(threads.path(ThreadId(2)), Some(step::hash(step::HASH_START, b"1.2")));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut marks = example();
        marks.push(turn(2));
        let refused = read(&mut Threads::default(), marks.into_iter(), Ended::Still);
        assert_eq!(refused.unwrap_err(), Unmodelled::Impossible("lock"));
        let twice = [Mark::Born { thread: 0, parent: 0 }, turn(0)];
        assert_eq!(
            read(&mut Threads::default(), twice.into_iter(), Ended::Gone).unwrap_err(),
            Unmodelled::Damaged
        );
    }

    #[test]
    fn damaged_journals_never_panic() {
        let mut random = raddle_sched::Random::new(5);
        for _ in 0..2000 {
            let mut marks = example();
            for _ in 0..1 + random.below(4) {
                let at = random.below(marks.len());
                marks[at] = match random.below(4) {
                    0 => turn(random.below(4) as u16),
                    1 => arrived(random.below(4) as u16, random.below(40) as u8, random.draw()),
                    2 => Mark::Born { thread: random.below(4) as u16, parent: random.below(4) as u32 },
                    _ => Mark::Unchanged { thread: 0 },
                };
            }
            let _ = read(&mut Threads::default(), marks.into_iter(), Ended::Gone);
        }
    }
}
