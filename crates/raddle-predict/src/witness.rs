//! Witnesses: reorderings that lead to an error, and the schedules made of them.
//!
//! A witness is kept as what distinguishes it from the observed run: the observed order restricted to a position per
//! thread, then some further steps. A run of a million steps costs a few numbers, and is written out only when somebody
//! wants the schedule.

use crate::candidate::{Party, Role};
use crate::ids::Pos;
use crate::names::Names;
use crate::program::Program;
pub use raddle_findings::Fidelity;
use raddle_trace::schedule::{Block, NameIx, Schedule, Step, StepKind, Stop, StopPlace, step_of};
use raddle_trace::{MemoryTrace, ThreadIx};

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The steps below these positions, in observed order, come first.
    pub positions: Vec<Pos>,
    /// Then one step of each of these threads.
    pub then: Vec<ThreadIx>,
    pub fidelity: Fidelity,
}

impl Witness {
    /// All steps: the threads that take them, in order.
    pub fn moves(&self, program: &Program) -> Vec<ThreadIx> {
        let mut taken: Vec<Pos> = vec![0; program.thread_count()];
        let mut moves = Vec::new();
        for &thread in &program.order {
            let pos = &mut taken[thread.index()];
            if *pos < self.positions[thread.index()] {
                *pos += 1;
                moves.push(thread);
            }
        }
        moves.extend_from_slice(&self.then);
        moves
    }

    /// Where each thread is at the end.
    pub fn end(&self) -> Vec<Pos> {
        let mut end = self.positions.clone();
        for thread in &self.then {
            end[thread.index()] += 1;
        }
        end
    }

    /// The schedule that enforces this witness, with stop points or expected blocks for the parties.
    pub fn schedule(
        &self,
        trace: &MemoryTrace,
        program: &Program,
        names: &Names,
        about: &str,
        parties: &[Party],
    ) -> Schedule {
        let mut writer = Writer { trace, names, schedule: Schedule::new(about), locations: Vec::new() };
        let mut taken: Vec<Pos> = vec![0; program.thread_count()];
        let mut ordinals: Vec<u32> = vec![0; program.thread_count()];
        for thread in self.moves(program) {
            let step = &program.steps(thread)[taken[thread.index()] as usize];
            taken[thread.index()] += 1;
            if !step.visible {
                continue;
            }
            ordinals[thread.index()] += 1;
            writer.step(thread, ordinals[thread.index()], step.event.index());
        }
        for party in parties {
            let after = ordinals[party.thread.index()];
            match party.role {
                Role::Blocked => writer.block(party, after + 1),
                Role::Accesses => writer.stop(program, party, taken[party.thread.index()], after),
            }
        }
        writer.schedule
    }
}

struct Writer<'t> {
    trace: &'t MemoryTrace,
    names: &'t Names,
    schedule: Schedule,
    /// Texts of locations that were used already, by location number.
    locations: Vec<Option<NameIx>>,
}

impl Writer<'_> {
    fn thread(&mut self, thread: ThreadIx) -> NameIx {
        let name = self.trace.tables.threads.get(thread.index()).map_or("?", |thread| &thread.name);
        self.schedule.intern(name)
    }

    fn location(&mut self, event: usize) -> NameIx {
        let location = self.trace.events[event].location;
        if self.locations.len() <= location.index() {
            self.locations.resize(location.index() + 1, None);
        }
        if let Some(name) = self.locations[location.index()] {
            return name;
        }
        let name = self.schedule.intern(&self.names.code(&self.trace.tables, location));
        self.locations[location.index()] = Some(name);
        name
    }

    fn object(&mut self, event: usize) -> NameIx {
        let name = self.names.object_of(&self.trace.tables, &self.trace.events[event].op);
        self.schedule.intern(&name)
    }

    fn step(&mut self, thread: ThreadIx, ordinal: u32, event: usize) {
        let Some((kind, failed)) = visible_kind(&self.trace.events[event].op) else { return };
        let (thread, object, comment) = (self.thread(thread), self.object(event), self.location(event));
        self.schedule.steps.push(Step { thread, ordinal, kind, failed, object, comment });
    }

    fn block(&mut self, party: &Party, ordinal: u32) {
        let event = party.event.index();
        let Some((kind, _)) = visible_kind(&self.trace.events[event].op) else { return };
        let (thread, object, comment) = (self.thread(party.thread), self.object(event), self.location(event));
        self.schedule.blocks.push(Block { thread, ordinal, kind, object, comment });
    }

    /// The how-manieth access at its location, counted from the last visible operation, is the party's?
    fn stop(&mut self, program: &Program, party: &Party, pos: Pos, after: u32) {
        let events = &self.trace.events;
        let target = &events[party.event.index()];
        // Invisible steps do not restart the count: go back to the last visible one.
        let steps = program.steps(party.thread);
        let last = steps[..pos as usize].iter().rev().find(|step| step.visible);
        let from = last.map_or(0, |step| step.event.index());
        let occurrence = events[from..party.event.index()]
            .iter()
            .filter(|event| event.thread == party.thread && event.location == target.location)
            .filter(|event| is_access(&event.op))
            .count() as u32
            + 1;
        let place = self.schedule.intern(&self.names.code(&self.trace.tables, target.location));
        let comment = self.names.access(&self.trace.tables, &target.op);
        let (thread, comment) = (self.thread(party.thread), self.schedule.intern(&comment));
        let place = StopPlace::Code(place);
        self.schedule.stops.push(Stop { thread, after, occurrence, place, comment });
    }
}

fn is_access(op: &raddle_trace::Op) -> bool {
    use raddle_trace::Op;
    matches!(op, Op::Read { .. } | Op::Write { .. } | Op::Atomic { .. } | Op::Free { .. })
}

/// The operation that an event stands for in a schedule; a request stands for the lock that it asks for, and entering a
/// barrier for leaving it when that is what a thread is blocked in.
fn visible_kind(op: &raddle_trace::Op) -> Option<(StepKind, bool)> {
    use raddle_trace::{Op, ops_about};
    match op {
        Op::Request { read: true, .. } => Some((StepKind::ReadLock, false)),
        Op::Request { .. } => Some((StepKind::Lock, false)),
        Op::SemRequest { .. } => Some((StepKind::SemWait, false)),
        Op::Lock { .. }
        | Op::LockFailed { .. }
        | Op::ReadLock { .. }
        | Op::ReadLockFailed { .. }
        | Op::Unlock { .. }
        | Op::SemInit { .. }
        | Op::SemWait { .. }
        | Op::SemWaitFailed { .. }
        | Op::SemPost { .. }
        | ops_about!(
            Memory, Nothing, Thread, Condition, Barrier, Once, Futex, Annotated, Signal, Channel, Life
        ) => step_of(op),
    }
}
