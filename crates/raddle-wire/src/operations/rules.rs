//! What the columns of the table of operations say, and the enabling rules that follow.
//!
//! An operation's [`Effect`] says what it does to its object; its [`Demand`] what has to hold of the object before; [`Situation`] are
//! the facts that a demand is about. Nothing here knows a single operation: a new one with an effect that others have already needs no
//! line in this file.

/// Kinds of objects that operations concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// None: the operation concerns its thread or its process only.
    Nothing,
    Thread,
    /// A mutex, a spin lock, a read-write lock.
    Lock,
    Condition,
    Barrier,
    Semaphore,
    /// The control word of a one-time initialisation.
    Once,
    /// A futex word.
    Futex,
    /// What annotations and custom events name.
    Annotated,
    Signal,
    /// Something in the kernel that passes order on: a pipe, a socket, a message queue, a semaphore set, a lock of a file.
    Channel,
}

/// What an operation does to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing that another operation could depend on.
    Nothing,
    /// A thread begins, ends, is created, is waited for.
    Begins,
    Ends,
    Forks,
    Joins,
    /// A lock is taken, taken for reading, given back.
    Locks,
    LocksShared,
    Unlocks,
    /// The thread is about to wait for the object.
    Asks,
    /// A condition wakes one waiter, wakes all.
    Signals,
    SignalsAll,
    /// A thread begins to wait on a condition; its wait is over.
    BeginsWait,
    IsWoken,
    /// A barrier is entered, left.
    Enters,
    Leaves,
    /// One is taken from a semaphore, given to it.
    Takes,
    Gives,
    /// An initialiser begins, has ended, is found to have ended.
    OnceBegins,
    OnceEnds,
    OncePasses,
    /// Something is passed on through the object; what was passed on is received.
    Sends,
    Receives,
    /// The object's life begins, ends.
    Creates,
    Destroys,
    /// Races on the object are expected.
    Excuses,
}

/// What has to hold of an object before an operation on it can be taken: the enabling rule.
///
/// The rule is written down here and nowhere else. The scheduler, the model of a trace, prediction's states, its partial order
/// reduction and its CSP text ask it; each supplies the facts by a [`Situation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Demand {
    Nothing,
    /// The thread was created.
    Forked,
    /// The thread has ended.
    Ended,
    /// Nobody holds the lock.
    Unlocked,
    /// Nobody holds the lock for writing.
    NotWriteLocked,
    /// A signal has come since the wait began.
    Signalled,
    /// Enough threads have entered for the round.
    RoundComplete,
    /// The count is above zero.
    Positive,
    /// Nobody has begun the initialiser.
    NotBegun,
    /// The initialiser has ended.
    Initialised,
    /// All that was observed to be sent before has been sent.
    Sent,
}

/// The facts that a [`Demand`] is about, as they are for one thread and one object at one moment. Whoever asks gives the facts of
/// the kind of object that it asks about; the others stay as in [`Situation::UNKNOWN`], where nothing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    pub forked: bool,
    pub ended: bool,
    /// Somebody holds the lock for writing, so that this thread has to wait.
    pub write_locked: bool,
    /// Somebody holds the lock for reading, so that a writer has to wait.
    pub read_locked: bool,
    pub signalled: bool,
    pub round_complete: bool,
    pub count: u32,
    pub begun: bool,
    pub initialised: bool,
    pub sent: bool,
}

impl Situation {
    pub const UNKNOWN: Situation = Situation {
        forked: false,
        ended: false,
        write_locked: false,
        read_locked: false,
        signalled: false,
        round_complete: false,
        count: 0,
        begun: false,
        initialised: false,
        sent: false,
    };

    pub const fn lock(write_locked: bool, read_locked: bool) -> Situation {
        Situation { write_locked, read_locked, ..Situation::UNKNOWN }
    }

    pub const fn count(count: u32) -> Situation {
        Situation { count, ..Situation::UNKNOWN }
    }

    pub const fn once(begun: bool, initialised: bool) -> Situation {
        Situation { begun, initialised, ..Situation::UNKNOWN }
    }

    /// Of a thread that waits on a condition or inside a barrier.
    pub const fn waiter(woken: bool) -> Situation {
        Situation { signalled: woken, round_complete: woken, ..Situation::UNKNOWN }
    }

    pub const fn thread(forked: bool, ended: bool) -> Situation {
        Situation { forked, ended, ..Situation::UNKNOWN }
    }

    pub const fn channel(sent: bool) -> Situation {
        Situation { sent, ..Situation::UNKNOWN }
    }
}

impl Demand {
    /// Is the demand met?
    #[inline]
    pub const fn is_met(self, now: Situation) -> bool {
        match self {
            Demand::Nothing => true,
            Demand::Forked => now.forked,
            Demand::Ended => now.ended,
            Demand::Unlocked => !now.write_locked && !now.read_locked,
            Demand::NotWriteLocked => !now.write_locked,
            Demand::Signalled => now.signalled,
            Demand::RoundComplete => now.round_complete,
            Demand::Positive => now.count > 0,
            Demand::NotBegun => !now.begun,
            Demand::Initialised => now.initialised,
            Demand::Sent => now.sent,
        }
    }
}

impl Effect {
    /// When an operation with this effect can be taken.
    pub const fn demand(self) -> Demand {
        match self {
            Effect::Begins => Demand::Forked,
            Effect::Joins => Demand::Ended,
            Effect::Locks => Demand::Unlocked,
            Effect::LocksShared => Demand::NotWriteLocked,
            Effect::IsWoken => Demand::Signalled,
            Effect::Leaves => Demand::RoundComplete,
            Effect::Takes => Demand::Positive,
            Effect::OnceBegins => Demand::NotBegun,
            Effect::OncePasses => Demand::Initialised,
            Effect::Receives => Demand::Sent,
            Effect::Nothing
            | Effect::Ends
            | Effect::Forks
            | Effect::Unlocks
            | Effect::Asks
            | Effect::Signals
            | Effect::SignalsAll
            | Effect::BeginsWait
            | Effect::Enters
            | Effect::Gives
            | Effect::OnceEnds
            | Effect::Sends
            | Effect::Creates
            | Effect::Destroys
            | Effect::Excuses => Demand::Nothing,
        }
    }

    /// Can taking an operation with this effect make a demand on the same object unmet for somebody else? Two operations whose
    /// demands the other one revokes compete: they do not commute.
    pub const fn revokes(self, demand: Demand) -> bool {
        match self {
            Effect::Locks => matches!(demand, Demand::Unlocked | Demand::NotWriteLocked),
            Effect::LocksShared => matches!(demand, Demand::Unlocked),
            Effect::Takes => matches!(demand, Demand::Positive),
            Effect::OnceBegins => matches!(demand, Demand::NotBegun),
            Effect::Nothing
            | Effect::Begins
            | Effect::Ends
            | Effect::Forks
            | Effect::Joins
            | Effect::Unlocks
            | Effect::Asks
            | Effect::Signals
            | Effect::SignalsAll
            | Effect::BeginsWait
            | Effect::IsWoken
            | Effect::Enters
            | Effect::Leaves
            | Effect::Gives
            | Effect::OnceEnds
            | Effect::OncePasses
            | Effect::Sends
            | Effect::Receives
            | Effect::Creates
            | Effect::Destroys
            | Effect::Excuses => false,
        }
    }

    /// Does it begin or end the life of its object?
    pub const fn begins_or_ends_life(self) -> bool {
        matches!(self, Effect::Creates | Effect::Destroys)
    }
}

/// How an operation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Done,
    /// It gave up (a try, a time limit) or was refused: its effect did not take place.
    Failed,
}

/// What an operation passes on between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Nothing.
    None,
    /// The thread learns what was released to the object.
    Acquires,
    /// What the thread has done becomes known through the object.
    Releases,
}
