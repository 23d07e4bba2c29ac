//! The changing part of a synchronisation object.

use crate::event::Op;
use crate::ids::ThreadIx;
use raddle_wire::Effect;
use raddle_wire::operations::Outcome;

/// One object's changing part. Only the fields of its kind are used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Object {
    pub(super) writer: Option<ThreadIx>,
    /// How often the writer holds it.
    pub(super) depth: u32,
    pub(super) readers: Vec<ThreadIx>,
    /// Semaphore count.
    pub(super) count: u32,
    /// Threads that entered a barrier so far, and the place of each that is inside.
    pub(super) entered: u32,
    pub(super) inside: Vec<(ThreadIx, u32)>,
    pub(super) once_begun: bool,
    pub(super) once_done: bool,
    /// Moments (in `State::taken`) of signals that no waiter has used yet, and of the last broadcast.
    pub(super) signals: Vec<u32>,
    pub(super) broadcast: Option<u32>,
    /// Waiters and the moment they began.
    pub(super) waiting: Vec<(ThreadIx, u32)>,
    pub(super) executed: u32,
    pub(super) lives: u32,
    pub(super) releases: u32,
}

impl Object {
    /// An operation of the table is taken: what changes follows from its effect.
    pub(super) fn take(&mut self, thread: ThreadIx, op: &Op, moment: u32) {
        let Some((sync, _, _)) = op.sync_words() else { return };
        let done = sync.outcome() == Outcome::Done;
        match sync.effect() {
            Effect::Locks if done => {
                self.depth = if self.writer == Some(thread) { self.depth + 1 } else { 1 };
                self.writer = Some(thread);
            }
            Effect::LocksShared if done => self.readers.push(thread),
            Effect::Unlocks => {
                if self.writer == Some(thread) {
                    self.depth -= 1;
                    self.writer = (self.depth > 0).then_some(thread);
                } else if let Some(place) = self.readers.iter().position(|&reader| reader == thread) {
                    self.readers.remove(place);
                }
            }
            Effect::Signals => self.signals.push(moment),
            Effect::SignalsAll => self.broadcast = Some(moment),
            Effect::BeginsWait => self.waiting.push((thread, moment)),
            Effect::IsWoken => {
                // A wait that gave up uses no signal.
                if let (true, Some(Some(place))) = (done, self.usable_signal(thread)) {
                    self.signals.remove(place);
                }
                self.waiting.retain(|(waiter, _)| *waiter != thread);
                // Signals older than every waiter can wake nobody any more.
                let oldest = self.waiting.iter().map(|&(_, began)| began).min();
                self.signals.retain(|&signal| oldest.is_some_and(|oldest| signal > oldest));
            }
            Effect::Enters => {
                self.entered += 1;
                self.inside.push((thread, self.entered));
            }
            Effect::Leaves => {
                if let Some(place) = self.inside.iter().position(|(who, _)| *who == thread) {
                    self.inside.remove(place);
                }
            }
            Effect::Gives => self.count += 1,
            Effect::Takes if done => self.count = self.count.saturating_sub(1),
            Effect::OnceBegins => self.once_begun = true,
            Effect::OnceEnds => self.once_done = true,
            Effect::Sends => self.releases += 1,
            Effect::Creates | Effect::Destroys => {
                let (executed, lives) = (self.executed, self.lives);
                *self = Object { executed, lives, ..Object::default() };
                if let Op::BarrierInit { count, .. } | Op::SemInit { value: count, .. } = *op {
                    self.count = count;
                }
            }
            // Failed attempts, and what changes nothing that another operation on the object could depend on.
            Effect::Locks
            | Effect::LocksShared
            | Effect::Takes
            | Effect::Nothing
            | Effect::Begins
            | Effect::Ends
            | Effect::Forks
            | Effect::Joins
            | Effect::Asks
            | Effect::OncePasses
            | Effect::Receives
            | Effect::Excuses => {}
        }
    }

    /// The signal that a waiter would use up: `Some(Some(place))`, or `Some(None)` for a broadcast, which is not used
    /// up. A waiter takes the oldest signal younger than itself: that leaves the most for the others, because who
    /// began to wait later can use only younger ones.
    pub(super) fn usable_signal(&self, thread: ThreadIx) -> Option<Option<usize>> {
        let &(_, began) = self.waiting.iter().find(|(waiter, _)| *waiter == thread)?;
        if self.broadcast.is_some_and(|moment| moment > began) {
            return Some(None);
        }
        self.signals.iter().position(|&moment| moment > began).map(Some)
    }
}
