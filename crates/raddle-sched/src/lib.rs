//! Who takes the next visible operation.
//!
//! A steered program runs one *turn* at a time. A thread that comes to a visible operation *arrives* and waits; when it has been
//! given its turn it performs the operation and *finishes*; then somebody is chosen, by a [`strategy`] or from a schedule
//! ([`replay`]). This crate is told what threads did and says what is to happen: whom to wake, whom to let go, that the
//! run is over. It does not know how a thread is put to sleep, what a mutex is, or that there is a kernel; what it has to
//! ask, it asks an [`Outside`].
//!
//! # What may happen under the scheduler's lock
//!
//! There is one [`Sched`] and one lock around it, which is the caller's. Everything here is called with that lock held and
//! takes time in proportion to the living threads, no more. Nothing here sleeps, allocates or calls the program. An effect
//! ([`effects::Effects`]) is *noted* under the lock and *done* after it has been released: a thread that is woken on the same
//! processor would otherwise run at once, only to find the lock taken. The one exception is what [`Outside`] answers, and
//! none of its answers may come back here.
//!
//! # Who may write a phase
//!
//! A thread's [`Phase`] is written in this crate and nowhere else, by the following transitions. "Itself" and "another" say
//! which thread makes the call.
//!
//! | from | to | when | by |
//! | --- | --- | --- | --- |
//! | `Free` | `Running` | [`Sched::register`]: the thread was created, inside its creator's turn | another |
//! | `Running` | `Waiting` | [`Sched::arrive`] | itself |
//! | `Waiting` | `Acting` | [`Sched::arrive`] says that it may go | itself |
//! | `Acting` | `Running` | [`Sched::finish`] | itself |
//! | `Acting` | `Aside`, `AsideTimed` | [`Sched::set_aside`]: the operation would block | itself |
//! | `Aside`, `AsideTimed` | `Waiting` | [`Sched::release`], [`Sched::signal`], [`Sched::cancel`]: what it waits for has changed | another, in its turn |
//! | `AsideTimed` | `Acting` | it is chosen although nothing has changed, and may give up | itself |
//! | `Running` | `Away` | [`Sched::leave`], or [`Sched::pass_over`] by somebody who waits and sees that it sleeps | both |
//! | `Away` | `Running` | [`Sched::come_back`], or at a decision that finds it awake | both |
//! | any but `Acting` | `Running` | [`Sched::interrupt`], [`Sched::strike`]: a handler or a clean-up comes first | both |
//! | `Running`, `Waiting` | `Parked` | [`Sched::access`]: it stands before its stop point | itself |
//! | `Acting` | `Ended` | [`Sched::end`], inside its last turn | itself |
//!
//! # When a thread counts as running
//!
//! `Running` means: between two operations, and expected to come to the next one by itself. The choice among threads depends
//! on which exist and which of them are set aside; both change only inside somebody's turn, never by arrival. So a thread
//! that is still on its way can be chosen, and is then waited for, and the same seed makes the same choices on a loaded
//! machine. A strategy that has to know what everybody is about to do ([`strategy::Strategy::looks_ahead`]), and a run in which
//! one thread runs at a time, put the decision off until nobody is `Running`; then the last one to arrive decides, and what
//! it decides does not depend on which one it was.
//!
//! A thread in a system call that only the outside world ends is `Away`, not `Running`: nobody waits for it. Whether a thread
//! sleeps in the kernel is found out by those who wait ([`Sched::pass_over`]), and depends on time; that is what demos record.
//!
//! # Enabling
//!
//! The rule is the table's ([`raddle_wire::Demand`]). For conditions, barriers and ends of threads the facts are known here, and the
//! rule is asked here. What a mutex or a semaphore lets happen, only the object itself knows: an operation on it is tried in its
//! turn, and its thread set aside with the object that it waits for. It is enabled again when that object is released. A timed operation is always enabled: given its turn it may give up.
//! When nobody is enabled and nobody is outside, the threads that are set aside are a deadlock; a cycle of threads that
//! wait for each other's mutexes or ends is one even while others run.

#![no_std]
// A match over operations names them or their kinds, so that a new line of the table stops the compiler where it matters.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod courtesy;
pub mod dependence;
pub mod effects;
pub mod objects;
pub mod random;
pub mod replay;
pub mod roster;
pub mod sched;
pub mod strategy;
pub mod tokens;
pub mod view;
pub mod waiting_loop;

pub use dependence::{Detail, Operation};
pub use effects::{Conclusion, Effects};
pub use random::Random;
pub use replay::{ParkedAccess, Replay};
pub use roster::{Entry, Phase, Roster, Tables, ThreadIx};
pub use sched::{Arrival, Grant, Outside, Sched, Settings};
pub use strategy::{AnyStrategy, Note, Strategy};
pub use view::{Progress, Tools, View};

/// A thread's request for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What kind of operation it is (`raddle_wire::step`).
    pub kind: u8,
    pub object: usize,
    pub pc: u64,
}

/// The object that stands for the end of a thread, for those who join it.
pub const fn join_token(index: u32) -> usize {
    1 << 63 | index as usize
}
