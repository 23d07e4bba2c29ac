//! What all race detectors share: who accessed, and how a race is told.

use crate::report::{Part, PartAction, Report, Reports, Subject, place_key};
use crate::step::{Step, VarIx};
use raddle_findings::{Access, Basis, Detail, Kind, Role};
use raddle_trace::{AccessFlags, ContextIx, LocationIx, Op, ThreadIx, ops_about};

/// What an access does, in one word: it lies where alignment leaves a [`Site`] room for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// 0: not an access, or so many that they were not kept.
    bytes: u16,
    flags: u16,
}

const READS: u16 = 1;
const WRITES: u16 = 2;
const ATOMIC: u16 = 4;
const VPTR: u16 = 8;

impl Touch {
    /// Bits of [`Touch::bits`].
    pub const BITS: u32 = 20;

    #[inline]
    pub fn of(op: &Op) -> Touch {
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        let plain = |size: u32, flags: AccessFlags, way: u16| Touch {
            bytes: if size > u32::from(u16::MAX) { 0 } else { size as u16 },
            flags: way | flag(flags.vptr, VPTR),
        };
        match *op {
            Op::Read { size, flags, .. } => plain(size, flags, READS),
            Op::Write { size, flags, .. } => plain(size, flags, WRITES),
            Op::Atomic { size, kind, .. } => Touch {
                bytes: size.into(),
                flags: ATOMIC | flag(kind.reads(), READS) | flag(kind.writes(), WRITES),
            },
            Op::Fence { .. } | Op::Alloc { .. } | Op::Free { .. } | Op::Lost { .. } | ops_about!(Sync) => {
                Touch::default()
            }
        }
    }

    #[inline]
    pub fn bits(self) -> u32 {
        u32::from(self.bytes) << 4 | u32::from(self.flags)
    }

    pub fn from_bits(bits: u32) -> Touch {
        Touch { bytes: (bits >> 4) as u16, flags: (bits & 15) as u16 }
    }

    /// How the access is called in patterns of accesses.
    pub fn word(self) -> &'static str {
        if self.flags & WRITES != 0 { "write" } else { "read" }
    }

    pub fn bytes(self) -> u64 {
        self.bytes.into()
    }

    pub fn is_atomic(self) -> bool {
        self.flags & ATOMIC != 0
    }

    pub fn is_vptr(self) -> bool {
        self.flags & VPTR != 0
    }

    pub fn access(self) -> Access {
        match (self.flags & READS != 0, self.flags & WRITES != 0) {
            (true, false) => Access::Read,
            (false, true) => Access::Write,
            (true, true) => Access::ReadWrite,
            (false, false) => Access::Any,
        }
    }
}

/// A step that may turn out to be part of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Site {
    pub thread: ThreadIx,
    pub location: LocationIx,
    pub context: ContextIx,
    pub touch: Touch,
    pub position: u64,
}

impl Site {
    #[inline]
    pub fn of(step: &Step<'_>) -> Site {
        Site {
            thread: step.event.thread,
            location: step.event.location,
            context: step.event.context,
            touch: Touch::of(&step.event.op),
            position: step.position,
        }
    }

    pub fn part(&self, action: PartAction) -> Part {
        let &Site { thread, location, context, position, .. } = self;
        Part { thread, location, context, position, action, held: Vec::new() }
    }

    /// The access that this step is.
    pub fn accesses(&self, subject: Option<Subject>) -> Part {
        self.part(PartAction::Accesses { touch: self.touch, subject })
    }

    pub fn plays(&self, role: Role, subject: Option<Subject>) -> Part {
        self.part(PartAction::Plays { role, subject })
    }
}

/// Collects the races of one detector.
#[derive(Clone, Debug)]
pub struct Races {
    by: &'static str,
    basis: Basis,
    reports: Reports,
    /// Every racing access and variable, if they were asked for.
    all: Option<Vec<(u64, VarIx)>>,
}

impl Races {
    pub fn new(by: &'static str, basis: Basis) -> Races {
        Races { by, basis, reports: Reports::default(), all: None }
    }

    /// Keeps every racing access, for comparisons.
    pub fn keep_all(mut self) -> Races {
        self.all = Some(Vec::new());
        self
    }

    /// Place in the observed order and variable of every access that raced with an earlier one.
    pub fn all(&self) -> &[(u64, VarIx)] {
        self.all.as_deref().unwrap_or(&[])
    }

    /// The step races with an earlier access.
    #[cold]
    pub fn race(&mut self, var: VarIx, first: Site, step: &Step<'_>) {
        if let Some(all) = &mut self.all
            && all.last() != Some(&(step.position, var))
        {
            all.push((step.position, var));
        }
        self.add(var, first, Site::of(step), Detail::None);
    }

    /// The variable is accessed without a consistent lock; the earlier access is just the last one before.
    #[cold]
    pub fn unprotected(&mut self, var: VarIx, first: Site, step: &Step<'_>) {
        if let Some(all) = &mut self.all {
            all.push((step.position, var));
        }
        self.add(var, first, Site::of(step), Detail::NoCommonLock);
    }

    fn add(&mut self, var: VarIx, first: Site, second: Site, detail: Detail) {
        let (by, basis, subject) = (self.by, &self.basis, Some(Subject::Variable(var)));
        self.reports.add(place_key(&[first, second], u64::from(var.0)), || {
            Report::new(by, Kind::DataRace, basis.clone())
                .detail(detail)
                .part(first.accesses(subject))
                .part(second.accesses(subject))
        });
    }

    pub fn take(&mut self) -> Vec<Report> {
        self.reports.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_trace::{Addr, AtomicKind, Order};

    #[test]
    fn an_access_survives_its_packing() {
        let flags = AccessFlags { vptr: true, ..AccessFlags::default() };
        let addr = Addr(8);
        let rmw = AtomicKind::Rmw;
        for (op, bytes, access, atomic, vptr) in [
            (Op::Read { addr, size: 8, flags }, 8, Access::Read, false, true),
            (
                Op::Write { addr, size: 65_535, flags: Default::default() },
                65_535,
                Access::Write,
                false,
                false,
            ),
            (Op::Write { addr, size: 65_536, flags: Default::default() }, 0, Access::Write, false, false),
            (
                Op::Atomic { addr, size: 4, kind: rmw, order: Order::Relaxed, read: 0, written: 1 },
                4,
                Access::ReadWrite,
                true,
                false,
            ),
            (Op::End, 0, Access::Any, false, false),
        ] {
            let touch = Touch::from_bits(Touch::of(&op).bits());
            assert!(touch.bits() < 1 << Touch::BITS);
            assert_eq!(
                (touch.bytes(), touch.access(), touch.is_atomic(), touch.is_vptr()),
                (bytes, access, atomic, vptr),
                "{op:?}"
            );
        }
        assert_eq!(size_of::<Site>(), 24, "the word lies in what was padding");
    }
}
