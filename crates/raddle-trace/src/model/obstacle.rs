//! Why a step cannot be taken.

use super::EventIx;
use crate::ids::{ObjectId, ThreadIx};
use std::fmt;

/// Why a thread cannot take its next event now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The thread has no further event.
    Finished,
    NotForked,
    ChildRuns(ThreadIx),
    LockHeld {
        lock: ObjectId,
        by: ThreadIx,
    },
    NoSignal(ObjectId),
    BarrierNotFull(ObjectId),
    SemaphoreEmpty(ObjectId),
    OnceNotDone(ObjectId),
    OnceTaken(ObjectId),
    /// The read would see another write than observed; `None` is the initial value.
    WrongWriter {
        expected: Option<EventIx>,
        found: Option<EventIx>,
    },
    /// The operation failed in the observed run and would succeed now.
    WouldSucceed,
    /// An annotated or futex release that came earlier is missing.
    NotReleased(ObjectId),
    /// The object's life began or ended in between.
    LifeCycle(ObjectId),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Finished => write!(f, "the thread has no further event"),
            Obstacle::NotForked => write!(f, "the thread has not been created yet"),
            Obstacle::ChildRuns(child) => write!(f, "the joined thread {} has not ended", child.0),
            Obstacle::LockHeld { lock, by } => write!(f, "lock {} is held by thread {}", lock.0, by.0),
            Obstacle::NoSignal(cond) => write!(f, "condition {} was not signalled", cond.0),
            Obstacle::BarrierNotFull(barrier) => write!(f, "barrier {} is not full", barrier.0),
            Obstacle::SemaphoreEmpty(sem) => write!(f, "semaphore {} is zero", sem.0),
            Obstacle::OnceNotDone(once) => write!(f, "initialiser {} has not finished", once.0),
            Obstacle::OnceTaken(once) => write!(f, "initialiser {} has been begun already", once.0),
            Obstacle::WrongWriter { expected, found } => {
                write!(f, "the read would see {found:?} instead of {expected:?}")
            }
            Obstacle::WouldSucceed => write!(f, "the operation failed when observed and would succeed now"),
            Obstacle::NotReleased(object) => write!(f, "object {} has not been released", object.0),
            Obstacle::LifeCycle(object) => {
                write!(f, "object {} begins or ends its life in between", object.0)
            }
        }
    }
}

/// A schedule is not valid: the step at `place` cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {place} (event {event:?}) cannot be taken: {obstacle}")]
pub struct Invalid {
    pub place: usize,
    pub event: EventIx,
    pub obstacle: Obstacle,
}
