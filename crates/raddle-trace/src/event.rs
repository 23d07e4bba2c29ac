//! Events: what a thread did, as analyses see it.
//!
//! An [`Event`] is one step of one thread. A trace hands events out in the *observed order*: synchronisation events and
//! atomics in the order of their global sequence numbers, plain memory accesses between the synchronisation events of
//! their own thread (they are ordered only within their thread, which is all that prediction needs).
//!
//! The model is the one of RaceQuest's table 4.1 (each event is a *completed* operation) with four additions: requests
//! (a thread began to wait for a lock), atomics with order and values, allocations, and the two halves of a condition
//! wait. A condition wait appears as `Unlock(m) [wait]`, `WaitBegin(c, m)`, ..., `Wait(c, m)` or `WaitFailed(c, m)`,
//! `Lock(m) [wait]`. Which signal woke which wait (the *condition instance*) is computed by [`crate::conditions`].

use crate::ids::{Addr, ContextIx, LocationIx, ObjectId, TextIx, ThreadIx};

/// One step of one thread. 40 bytes; traces have many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub thread: ThreadIx,
    /// Code location (program counter or STD location) of the operation.
    pub location: LocationIx,
    /// Call context in which it happened; the full stack is this context plus `location`.
    pub context: ContextIx,
    /// How many calls of the context, outermost first, have not returned since the thread's event before. Two events with
    /// the same context are in the same activation of a function only if the calls that lead to it were kept; a trace
    /// that knows no calls has 0 here, like its contexts.
    pub kept_calls: u32,
    pub op: Op,
}

/// Memory order of an atomic operation, in the compilers' numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Order {
    Relaxed = 0,
    Consume = 1,
    Acquire = 2,
    Release = 3,
    AcqRel = 4,
    SeqCst = 5,
}

impl Order {
    pub const ALL: [Order; 6] =
        [Order::Relaxed, Order::Consume, Order::Acquire, Order::Release, Order::AcqRel, Order::SeqCst];

    pub fn from_u8(value: u8) -> Option<Order> {
        Order::ALL.get(usize::from(value)).copied()
    }

    /// Does a load, RMW or fence of this order acquire? (Consume is promoted to acquire.)
    pub fn acquires(self) -> bool {
        !matches!(self, Order::Relaxed | Order::Release)
    }

    /// Does a store, RMW or fence of this order release?
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }
}

/// What an atomic operation does to its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicKind {
    Load,
    Store,
    /// Any read-modify-write that stored, including a successful compare-exchange.
    Rmw,
    /// A compare-exchange that failed; behaves as a load.
    CasFailed,
}

impl AtomicKind {
    pub fn reads(self) -> bool {
        !matches!(self, AtomicKind::Store)
    }

    pub fn writes(self) -> bool {
        matches!(self, AtomicKind::Store | AtomicKind::Rmw)
    }
}

/// How a lock was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Patience {
    /// Waits for ever.
    #[default]
    Blocking,
    /// try_lock and friends.
    Try,
    /// timedlock, clocklock.
    Timed,
}

/// Facts about a lock operation beside the lock itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LockFlags {
    pub patience: Patience,
    /// The lock is a read-write lock.
    pub rwlock: bool,
    pub spin: bool,
    /// The operation is the mutex half of a condition wait.
    pub wait: bool,
    /// A recursive acquisition or release that did not change the owner.
    pub nested: bool,
    /// The previous owner died holding the lock.
    pub owner_died: bool,
}

/// A plain access, or a range of bytes accessed by one library call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AccessFlags {
    pub volatile: bool,
    /// C++ virtual table pointer.
    pub vptr: bool,
    /// Made by a library function (memcpy, strlen, ...) on the program's behalf.
    pub library: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    // Memory.
    Read {
        addr: Addr,
        size: u32,
        flags: AccessFlags,
    },
    Write {
        addr: Addr,
        size: u32,
        flags: AccessFlags,
    },
    /// `read` and `written` are the low 64 bits of the values (0 where there is none).
    Atomic {
        addr: Addr,
        size: u8,
        kind: AtomicKind,
        order: Order,
        read: u64,
        written: u64,
    },
    Fence {
        order: Order,
    },
    Alloc {
        addr: Addr,
        size: u64,
    },
    Free {
        addr: Addr,
    },

    // Threads.
    Start {
        parent: ThreadIx,
    },
    End,
    Fork {
        child: ThreadIx,
    },
    Join {
        child: ThreadIx,
    },
    JoinFailed {
        child: ThreadIx,
    },
    Detach {
        child: ThreadIx,
    },
    Cancel {
        thread: ThreadIx,
    },

    // Locks. `Lock` is exclusive: a mutex, a spin lock, or a read-write lock in write mode.
    Request {
        lock: ObjectId,
        read: bool,
        flags: LockFlags,
    },
    Lock {
        lock: ObjectId,
        flags: LockFlags,
    },
    LockFailed {
        lock: ObjectId,
        flags: LockFlags,
    },
    ReadLock {
        lock: ObjectId,
        flags: LockFlags,
    },
    ReadLockFailed {
        lock: ObjectId,
        flags: LockFlags,
    },
    /// Releases whichever mode the thread holds.
    Unlock {
        lock: ObjectId,
        flags: LockFlags,
    },

    // Conditions.
    Signal {
        cond: ObjectId,
    },
    Broadcast {
        cond: ObjectId,
    },
    WaitBegin {
        cond: ObjectId,
        lock: ObjectId,
    },
    Wait {
        cond: ObjectId,
        lock: ObjectId,
    },
    /// Timed out.
    WaitFailed {
        cond: ObjectId,
        lock: ObjectId,
    },

    // Barriers, semaphores, one-time initialisation.
    BarrierInit {
        barrier: ObjectId,
        count: u32,
    },
    BarrierEnter {
        barrier: ObjectId,
    },
    BarrierExit {
        barrier: ObjectId,
    },
    SemInit {
        sem: ObjectId,
        value: u32,
    },
    SemRequest {
        sem: ObjectId,
    },
    SemWait {
        sem: ObjectId,
    },
    SemWaitFailed {
        sem: ObjectId,
    },
    SemPost {
        sem: ObjectId,
    },
    OnceBegin {
        once: ObjectId,
    },
    OnceEnd {
        once: ObjectId,
    },
    OncePassed {
        once: ObjectId,
    },

    // Life of synchronisation objects: the address may be reused for another object afterwards.
    Init {
        object: ObjectId,
        kind: ObjectKind,
    },
    Destroy {
        object: ObjectId,
        kind: ObjectKind,
    },

    // Futexes, signals, processes.
    FutexWake {
        word: Addr,
        count: u32,
    },
    FutexWait {
        word: Addr,
    },
    FutexWaitFailed {
        word: Addr,
    },
    SignalEnter {
        signal: u32,
    },
    SignalExit {
        signal: u32,
    },
    ProcessFork {
        pid: u32,
    },
    ProcessExec {
        path: TextIx,
    },
    ProcessExit {
        status: i32,
    },

    // What the program says about itself.
    Custom {
        name: TextIx,
        object: ObjectId,
    },
    AtomicBegin {
        name: TextIx,
    },
    AtomicEnd {
        name: TextIx,
    },
    /// Annotated happens-before: everything before a `Release` of an object is before what follows its `Acquire`.
    Acquire {
        object: ObjectId,
    },
    Release {
        object: ObjectId,
    },
    BenignRace {
        addr: Addr,
        size: u32,
    },
    /// sched_yield, sleeps.
    Yield,
    /// Accesses that a limit kept out of the trace.
    Lost {
        count: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    Mutex,
    Rwlock,
    Condition,
    Barrier,
    Semaphore,
}

impl Op {
    /// Plain accesses are ordered only within their thread; everything else has a place in the global order.
    pub fn is_plain_access(&self) -> bool {
        matches!(self, Op::Read { .. } | Op::Write { .. })
    }
}
