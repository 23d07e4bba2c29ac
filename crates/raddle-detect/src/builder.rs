//! From reports to findings: numbers of the trace become names, stacks and objects.

use crate::allocations::Moment;
use crate::report::{Holding, Part, PartAction, Remark, Report, Subject};
use crate::step::Names;
use raddle_findings::finding::Creation;
use raddle_findings::naming::Namer;
use raddle_findings::{self as findings, Action, Finding, HeldLock, Object, Party, Place, What};
use raddle_trace::{Addr, Op, Tables, ThreadIx};

/// Names all that one report is about.
struct Builder<'a> {
    tables: &'a Tables,
    names: &'a Names,
    namer: &'a mut Namer,
}

/// Turns a report into a finding.
pub fn finding(report: &Report, tables: &Tables, names: &Names, namer: &mut Namer) -> Finding {
    let mut builder = Builder { tables, names, namer };
    let parties = report.parts.iter().map(|part| builder.party(part)).collect();
    let at = last_position(report);
    let mut objects: Vec<Object> = Vec::new();
    for &subject in &report.objects {
        let object = builder.object(subject, at);
        if !objects.contains(&object) {
            objects.push(object);
        }
    }
    let mut finding =
        Finding::about(report.kind, report.by, report.basis.clone(), objects, parties, report.detail.clone());
    finding.remarks = report.remarks.iter().map(|&remark| builder.remark(remark)).collect();
    if report.occurrences > 1 {
        finding.remarks.push(findings::Remark::Occurrences { times: report.occurrences });
    }
    finding
}

/// The addresses that a report names, each with the moment at which it means them.
pub(crate) fn moments<'a>(report: &'a Report, names: &'a Names) -> impl Iterator<Item = Moment> + 'a {
    let address = |subject: Subject| names.address(subject);
    let at = last_position(report);
    let objects = report.objects.iter().map(move |&subject| (address(subject), at));
    let parts = report.parts.iter().flat_map(move |part| {
        let held = part.held.iter().map(|held| held.lock);
        part.action.subject().into_iter().chain(held).map(move |subject| (address(subject), part.position))
    });
    objects.chain(parts)
}

fn last_position(report: &Report) -> u64 {
    report.parts.iter().map(|part| part.position).max().unwrap_or(0)
}

impl Builder<'_> {
    fn party(&mut self, part: &Part) -> Party {
        let thread = self.namer.thread(self.tables, part.thread);
        let action = self.action(&part.action, part.position);
        let stack = self.namer.stack_of(self.tables, part.location, part.context);
        let mut party = Party::new(thread, action, stack);
        party.locks = part.held.iter().map(|held| self.held(held, part.position)).collect();
        party.created = self.created(part.thread).map(Box::new);
        party
    }

    fn action(&mut self, action: &PartAction, at: u64) -> Action {
        let object = action.subject().map(|subject| self.object(subject, at));
        match *action {
            PartAction::Accesses { touch, .. } => Action::Accesses {
                access: touch.access(),
                bytes: touch.bytes(),
                atomic: touch.is_atomic(),
                vptr: touch.is_vptr(),
                object,
            },
            PartAction::Waits { wait, holder, .. } => {
                let holder = holder.map(|holder| self.path(holder));
                Action::Waits { wait, object, holder, operation: String::new() }
            }
            PartAction::Acquires { read, .. } => Action::Acquires { object, read },
            PartAction::SignalsNobody { .. } => Action::SignalsNobody { object },
            PartAction::Plays { role, .. } => Action::Plays { role, object },
        }
    }

    fn held(&mut self, held: &Holding, at: u64) -> HeldLock {
        HeldLock {
            lock: self.object(held.lock, at),
            read: held.read,
            acquired: self.namer.stack_of(self.tables, held.location, held.context),
        }
    }

    fn created(&mut self, thread: ThreadIx) -> Option<Creation> {
        let fork = self.names.fork(thread)?;
        Some(Creation {
            by: self.namer.thread(self.tables, fork.thread),
            stack: self.namer.stack_of(self.tables, fork.location, fork.context),
        })
    }

    /// What a number of the trace stood for at a place of the observed order.
    fn object(&mut self, subject: Subject, at: u64) -> Object {
        let address = self.names.address(subject);
        if let Some(block) = self.names.allocation((address, at)) {
            let op = Op::Alloc { addr: Addr(block.addr), size: block.bytes };
            self.namer.learn(block.thread, block.location, block.context, &op);
        }
        match self.names.object(subject) {
            (_, What::Memory) => self.namer.memory(self.tables, address),
            (thread, What::Thread) => {
                let thread = self.namer.thread(self.tables, ThreadIx(thread.0 as u32));
                Object { name: None, what: What::Thread, place: Place::Thread { thread } }
            }
            (object, what) => self.namer.object(self.tables, object, what),
        }
    }

    fn path(&self, thread: ThreadIx) -> String {
        self.namer.thread(self.tables, thread).path
    }

    fn remark(&self, remark: Remark) -> findings::Remark {
        match remark {
            Remark::HolderEnded(thread) => findings::Remark::HolderEnded { thread: self.path(thread) },
            Remark::WaitTimedOut(thread) => findings::Remark::WaitTimedOut { thread: self.path(thread) },
            Remark::CyclesCut => findings::Remark::CyclesCut,
            Remark::LeftOut(reports) => findings::Remark::LeftOut { reports },
        }
    }
}
