//! Where the threads of a steered run stand when it ends: for crash reports and for the parties of a deadlock.

use super::scheduler::{self, Held, World};
use super::stations::station;
use crate::crash;
use crate::thread::Thread;
use raddle_sched::{Phase, Sched, ThreadIx};
use raddle_wire::Header;

/// What the scheduler knows about a thread.
#[derive(Clone, Copy)]
pub struct Standing {
    /// Where in the code the thread asked for its turn; 0: it runs.
    pub pc: u64,
    pub kind: u8,
    pub object: usize,
    /// Index of the thread that holds the object.
    pub holder: Option<u32>,
    /// As in `raddle_wire::region::PHASES`.
    pub phase: u32,
    /// Its operation would block.
    pub blocked: bool,
    /// It sleeps in the kernel.
    pub asleep: bool,
}

/// The scheduler, from a handler. `None`: the run is not steered, or the scheduler's state cannot be had.
pub fn look() -> Option<Held> {
    if scheduler::on() { scheduler::lock_briefly() } else { None }
}

/// The calling thread crashes: the turn that it is in is the last one of the journal.
pub fn note_crash(thread: &Thread) {
    if thread.is_observed()
        && !thread.place().is_nobody()
        && let Some(mut sched) = look()
    {
        scheduler::note_crash(&mut sched, thread);
    }
}

impl Held {
    pub fn standing(&self, thread: &Thread) -> Option<Standing> {
        let ix = thread.place();
        self.roster.knows(ix).then(|| standing_of(self, ix))
    }
}

fn standing_of(sched: &Sched<'_>, ix: ThreadIx) -> Standing {
    let entry = &sched.roster[ix];
    let blocked = entry.is_aside();
    let pc = match entry.phase() {
        Phase::Parked => entry.access.pc,
        Phase::Waiting | Phase::Acting | Phase::Aside | Phase::AsideTimed => entry.request.pc,
        Phase::Free | Phase::Running | Phase::Away | Phase::Ended => 0,
    };
    let holder = if blocked { sched.holder(ix, &World) } else { None };
    Standing {
        pc,
        kind: entry.request.kind,
        object: entry.request.object,
        holder: holder.map(|holder| sched.roster[holder].index),
        phase: entry.phase() as u32,
        blocked,
        asleep: entry.phase() == Phase::Away,
    }
}

/// The run is ended: the call stacks of its parties, in the order of the header's, and of everybody else.
pub fn tell_stacks(header: &Header, sched: &Sched<'_>, outcome: u32, part: impl Fn(ThreadIx) -> bool) {
    let parties = sched.roster.living().filter(|&ix| part(ix));
    let others = sched.roster.living().filter(|&ix| !part(ix));
    let standing = parties.chain(others).map(|ix| (station(ix).thread(), standing_of(sched, ix)));
    crash::tell_outcome(header, outcome, standing);
}
