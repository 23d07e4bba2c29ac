//! The program that a trace shows: one sequence of steps per thread, and what each step waits for.
//!
//! This is RaceQuest's PROGRAM (§4.4) in the form of data. A thread is the sequence of its synchronisation events
//! (THREAD_i); an [`Action`] says under which condition a step can be taken (SYNC). Memory accesses are no steps: they
//! constrain nothing, so a thread that is *at* a position can make every access of the segment it is in.
//!
//! | action | can be taken when | otherwise the thread |
//! | --- | --- | --- |
//! | any step with needs | the needed steps were taken (fork before start, end before join, initialisation before use) | is blocked at starts, joins, waits; else strays |
//! | `Lock` | nobody holds the lock in a conflicting mode | is blocked; after a try: strays |
//! | `WaitBegin` | always; but if it is *guarded* and its signal was sent already, the program would not have waited | strays |
//! | `Wait` | its signal was sent after its `WaitBegin` | is blocked |
//! | `BarrierExit` | enough threads have entered | is blocked |
//! | `SemWait` | the count is positive | is blocked |
//! | `OncePassed` | the initialiser has ended | is blocked while it runs, strays if it has not begun |
//! | `Atomic` | the register has the value that was read | strays |
//!
//! To *stray* is to leave the observed path: the real thread would not block, it would do something that the trace does
//! not show. Nothing is predicted behind such a step, and a state in which a thread could stray is not a deadlock.
//!
//! Where every read is to keep its writer ([`crate::options::Level::Sound`]), accesses to memory that threads share are steps too:
//! `Atomic` ones whose values are the events that wrote them. All that is said of atomics holds for them.
//!
//! # Deviations from the paper
//!
//! * A wait needs its signal *after* its beginning; a signal that comes first is lost. The paper's SIGNAL process
//!   remembers it. This is what makes missed signals visible.
//! * A wait is guarded if the thread read memory before it that somebody wrote while it waited: the usual loop around a
//!   wait. Such a thread would have seen the new value and not have waited.
//! * A barrier can be entered again while threads of the last round are still leaving it, as real ones can.
//! * A read-write lock counts its readers and needs no maximum.
//! * Successful try operations, atomics and one-time initialisers are modelled.

use crate::ids::{BarrierIx, InstanceIx, LockIx, LocksetIx, OnceIx, Pos, RegisterIx, SemIx, ValueIx};
use raddle_trace::ThreadIx;
use raddle_trace::model::EventIx;
use raddle_wire::Effect;

/// What a step does, and what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Only its needs matter.
    Free,
    Lock {
        lock: LockIx,
        shared: bool,
        tries: bool,
    },
    Unlock {
        lock: LockIx,
        shared: bool,
    },
    Signal {
        instance: InstanceIx,
    },
    /// Releases `lock` (if the thread has it) and begins to wait.
    WaitBegin {
        lock: LockIx,
        instance: InstanceIx,
        guarded: bool,
    },
    Wait {
        instance: InstanceIx,
    },
    BarrierEnter {
        barrier: BarrierIx,
    },
    BarrierExit {
        barrier: BarrierIx,
    },
    SemWait {
        sem: SemIx,
    },
    SemPost {
        sem: SemIx,
    },
    OncePassed {
        once: OnceIx,
    },
    /// `expects` and `sets` are `NONE` for what only stores, only loads, or was observed out of order.
    Atomic {
        register: RegisterIx,
        expects: ValueIx,
        sets: ValueIx,
    },
}

impl Action {
    /// What it does to its object, in the words of the table of operations; the table says when that is possible.
    pub const fn effect(self) -> Effect {
        match self {
            Action::Free | Action::Atomic { .. } => Effect::Nothing,
            Action::Lock { shared: false, .. } => Effect::Locks,
            Action::Lock { shared: true, .. } => Effect::LocksShared,
            Action::Unlock { .. } => Effect::Unlocks,
            Action::Signal { .. } => Effect::SignalsAll,
            Action::WaitBegin { .. } => Effect::BeginsWait,
            Action::Wait { .. } => Effect::IsWoken,
            Action::BarrierEnter { .. } => Effect::Enters,
            Action::BarrierExit { .. } => Effect::Leaves,
            Action::SemWait { .. } => Effect::Takes,
            Action::SemPost { .. } => Effect::Gives,
            Action::OncePassed { .. } => Effect::OncePasses,
        }
    }
}

/// One step of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The event that it stands for; for steps that the trace does not have (the start of a thread of a foreign trace,
    /// the lock a thread was waiting for when the trace ended) the nearest one.
    pub event: EventIx,
    pub action: Action,
    /// Range in [`Program::needs`].
    needs: (u32, u32),
    /// Counts as a visible operation in schedules.
    pub visible: bool,
    /// Without what it needs, the thread blocks here (a join, a start). Otherwise it would go on, but not as observed.
    pub waits: bool,
}

impl Step {
    pub(crate) fn new(event: EventIx, action: Action, visible: bool, waits: bool) -> Step {
        Step { event, action, needs: (0, 0), visible, waits }
    }
}

/// In every reordering, this thread must have come to this position before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    pub thread: ThreadIx,
    pub pos: Pos,
}

/// One time that a thread held a lock.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// Step that acquires it. The thread holds the lock at positions `acquire + 1 ..= release`.
    pub acquire: Pos,
    /// Step that releases it; `Pos::MAX` if the trace ends before.
    pub release: Pos,
    pub event: EventIx,
    pub shared: bool,
}

/// How one thread used one lock.
#[derive(Clone, Debug, Default)]
pub struct LockUse {
    pub exclusive: Vec<Hold>,
    pub shared: Vec<Hold>,
}

impl LockUse {
    /// The last time it was acquired in this mode before the thread came to `pos`.
    pub fn last_before(holds: &[Hold], pos: Pos) -> Option<&Hold> {
        holds[..holds.partition_point(|hold| hold.acquire < pos)].last()
    }

    /// The hold that is open at a position.
    pub fn open_at(&self, pos: Pos) -> Option<&Hold> {
        let open = |holds| LockUse::last_before(holds, pos).filter(|hold| hold.release >= pos);
        open(&self.exclusive).or_else(|| open(&self.shared))
    }

    /// Will it be acquired at or after `pos`, before `limit`, in a mode that the effect makes impossible?
    pub fn competes_between(&self, pos: Pos, limit: Pos, effect: Effect) -> bool {
        let within = |holds: &[Hold]| {
            holds
                .get(holds.partition_point(|hold| hold.acquire < pos))
                .is_some_and(|hold| hold.acquire < limit)
        };
        let competes = |holds, other: Effect| effect.revokes(other.demand()) && within(holds);
        competes(&self.exclusive, Effect::Locks) || competes(&self.shared, Effect::LocksShared)
    }
}

/// A lock and who used it.
#[derive(Clone, Debug, Default)]
pub struct Lock {
    /// By thread, in the order of their numbers.
    pub uses: Vec<(ThreadIx, LockUse)>,
}

impl Lock {
    pub fn use_by(&self, thread: ThreadIx) -> Option<&LockUse> {
        let place = self.uses.binary_search_by_key(&thread, |(thread, _)| *thread).ok()?;
        Some(&self.uses[place].1)
    }
}

/// Positions of the steps that concern an object, by thread.
#[derive(Clone, Debug, Default)]
pub struct Users {
    threads: Vec<(ThreadIx, Vec<Pos>)>,
}

impl Users {
    pub(crate) fn add(&mut self, thread: ThreadIx, pos: Pos) {
        match self.threads.binary_search_by_key(&thread, |(thread, _)| *thread) {
            Ok(place) => self.threads[place].1.push(pos),
            Err(place) => self.threads.insert(place, (thread, vec![pos])),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (ThreadIx, &[Pos])> {
        self.threads.iter().map(|(thread, positions)| (*thread, positions.as_slice()))
    }

    pub fn len(&self) -> usize {
        self.threads.len()
    }

    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    pub fn of(&self, thread: ThreadIx) -> &[Pos] {
        match self.threads.binary_search_by_key(&thread, |(thread, _)| *thread) {
            Ok(place) => &self.threads[place].1,
            Err(_) => &[],
        }
    }

    /// Threads with a step in `pos(thread) .. limit(thread)`.
    pub fn between<'a>(&'a self, pos: &'a [Pos], limit: &'a [Pos]) -> impl Iterator<Item = ThreadIx> + 'a {
        self.threads.iter().filter_map(move |(thread, positions)| {
            let next = positions.get(positions.partition_point(|&p| p < pos[thread.index()]))?;
            (*next < limit[thread.index()]).then_some(*thread)
        })
    }
}

#[derive(Clone, Debug, Default)]
pub struct Semaphore {
    pub start: u32,
    pub posts: Users,
    pub waits: Users,
}

#[derive(Clone, Debug, Default)]
pub struct Barrier {
    pub count: u32,
    pub enters: Users,
}

impl Barrier {
    /// Exactly as many threads use it as it waits for: who meets whom is the same in every reordering.
    pub fn is_regular(&self) -> bool {
        self.enters.len() == self.count as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Once {
    pub thread: ThreadIx,
    /// Step that begins the initialiser, and the one that ends it.
    pub begin: Pos,
    pub end: Pos,
}

/// A memory location accessed by atomics.
#[derive(Clone, Debug)]
pub struct Register {
    /// As in [`Access::start`].
    pub addr: u64,
    pub start: ValueIx,
    pub reads: Users,
    /// Positions and the values set there.
    pub writes: Vec<(ThreadIx, Pos, ValueIx)>,
    pub writers: Users,
}

/// A signal or broadcast and the waits it woke.
#[derive(Clone, Debug)]
pub struct Instance {
    pub thread: ThreadIx,
    pub signal: Pos,
    /// Threads woken, and the position at which each of them waits (its `Wait` is the next step).
    pub woken: Vec<(ThreadIx, Pos)>,
}

/// A thread's steps.
#[derive(Clone, Debug, Default)]
pub struct ThreadSteps {
    pub steps: Vec<Step>,
    /// Locks held at each position; one entry more than steps.
    pub locksets: Vec<LocksetIx>,
    /// How many of the steps were taken in the observed run. Less than all if the trace ends while the thread waits.
    pub observed: Pos,
    /// The trace ends before the thread does: what it would do next is not known.
    pub open_ended: bool,
}

/// How an access touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
    Free,
}

impl AccessKind {
    pub fn writes(self) -> bool {
        matches!(self, AccessKind::Write | AccessKind::AtomicWrite | AccessKind::Free)
    }

    pub fn is_atomic(self) -> bool {
        matches!(self, AccessKind::AtomicRead | AccessKind::AtomicWrite)
    }

    /// Would they race if two threads made them at the same time?
    pub fn conflicts(self, other: AccessKind) -> bool {
        (self.writes() || other.writes()) && !(self.is_atomic() && other.is_atomic())
    }
}

/// One access to memory.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Translated by the [`crate::address_space`].
    pub start: u64,
    pub size: u32,
    pub pos: Pos,
    /// It has the thread and the place in the code.
    pub event: EventIx,
    pub kind: AccessKind,
}

/// Accesses to memory in observed order, in pieces: they are most of what a program has, and who has looked at a piece
/// for the last time can let go of it.
#[derive(Clone, Debug, Default)]
pub struct Accesses {
    pieces: Vec<Vec<Access>>,
}

impl Accesses {
    const PIECE: usize = 1 << 18;

    pub fn push(&mut self, access: Access) {
        match self.pieces.last_mut() {
            Some(piece) if piece.len() < Accesses::PIECE => piece.push(access),
            _ => {
                // Small programs need little.
                let room = if self.pieces.is_empty() { 0 } else { Accesses::PIECE };
                let mut piece = Vec::with_capacity(room);
                piece.push(access);
                self.pieces.push(piece);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Access> {
        self.pieces.iter().flatten()
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&Access) -> bool) {
        for piece in &mut self.pieces {
            piece.retain(&mut keep);
            piece.shrink_to_fit();
        }
        self.pieces.retain(|piece| !piece.is_empty());
    }

    /// Gives them out, and each piece back to the system when it is done with.
    pub fn drain(self) -> impl Iterator<Item = Access> {
        self.pieces.into_iter().flatten()
    }
}

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub struct Program {
    pub threads: Vec<ThreadSteps>,
    pub needs: Vec<Need>,
    pub locks: Vec<Lock>,
    pub semaphores: Vec<Semaphore>,
    pub barriers: Vec<Barrier>,
    pub onces: Vec<Once>,
    pub registers: Vec<Register>,
    pub instances: Vec<Instance>,
    /// Sorted lists of held locks and whether each is held shared.
    pub locksets: Vec<Vec<(LockIx, bool)>>,
    /// All steps in the observed order. Steps that were not taken there are missing.
    pub order: Vec<ThreadIx>,
    pub accesses: Accesses,
    /// Accesses to shared memory are steps, and every write is a value of its own.
    pub keeps_reads: bool,
    /// Events that the model would not have allowed.
    pub oddities: u64,
    /// Accesses that the recording left out.
    pub lost_accesses: u64,
    /// Synchronisation and atomic events of the trace.
    pub synchronisation: u64,
}

impl Program {
    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    pub fn steps(&self, thread: ThreadIx) -> &[Step] {
        &self.threads[thread.index()].steps
    }

    pub fn step(&self, thread: ThreadIx, pos: Pos) -> Option<&Step> {
        self.threads[thread.index()].steps.get(pos as usize)
    }

    pub fn needs_of(&self, step: &Step) -> &[Need] {
        &self.needs[step.needs.0 as usize..step.needs.1 as usize]
    }

    pub fn lockset(&self, thread: ThreadIx, pos: Pos) -> &[(LockIx, bool)] {
        &self.locksets[self.threads[thread.index()].locksets[pos as usize].index()]
    }

    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadIx> + use<> {
        (0..self.threads.len() as u32).map(ThreadIx)
    }

    /// Takes over needs in any order.
    pub(crate) fn set_needs(&mut self, mut needs: Vec<(ThreadIx, Pos, Need)>) {
        needs.sort_unstable_by_key(|&(thread, pos, need)| (thread, pos, need.thread, need.pos));
        self.needs = Vec::with_capacity(needs.len());
        for (thread, pos, need) in needs {
            let step = &mut self.threads[thread.index()].steps[pos as usize];
            let at = self.needs.len() as u32;
            if step.needs.1 != at || step.needs.0 == step.needs.1 {
                step.needs.0 = at;
            }
            self.needs.push(need);
            step.needs.1 = at + 1;
        }
    }

    /// The same program with further needs.
    pub(crate) fn with_needs(&self, mut needs: Vec<(ThreadIx, Pos, Need)>) -> Program {
        for thread in self.thread_ids() {
            for (pos, step) in self.steps(thread).iter().enumerate() {
                needs.extend(self.needs_of(step).iter().map(|&need| (thread, pos as Pos, need)));
            }
        }
        let mut program = self.clone();
        for step in program.threads.iter_mut().flat_map(|thread| &mut thread.steps) {
            step.needs = (0, 0);
        }
        program.set_needs(needs);
        program
    }

    /// How many visible operations a thread has completed at a position.
    pub fn visible_before(&self, thread: ThreadIx, pos: Pos) -> u32 {
        self.steps(thread)[..pos as usize].iter().filter(|step| step.visible).count() as u32
    }
}
