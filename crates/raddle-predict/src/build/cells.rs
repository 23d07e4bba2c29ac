//! Cells: the pieces of memory whose reads keep their writers when nothing but correct reorderings is asked for.
//!
//! Accesses that overlap belong to one cell. In a cell that all of them touch whole, as in most programs, a read depends
//! on the last write alone. Where they overlap in part, every write keeps its place among the writes too: fewer
//! reorderings than there are, and none that is wrong. Memory that one thread touches, or that nobody writes, has no cell:
//! nothing that others do changes what is read there.

//!
//! Which cells are kept is a question of how much is to be claimed ([`Keeps`]). *Hand-overs* are the memory that one lock protects:
//! a flag or the head of a list that is read under the lock, and decides what the thread does next. As in Eraser, what its
//! first thread did there before anybody else came needs no lock.

use crate::options::Keeps;
use crate::program::{Access, AccessKind, Accesses, Program};
use raddle_trace::{Event, ThreadIx};

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub start: u64,
    end: u64,
    /// Every access touches all of it.
    pub whole: bool,
    /// One lock protects it.
    pub protected: bool,
}

/// All cells, by address.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    cells: Vec<Cell>,
}

struct Growing {
    cell: Cell,
    thread: u32,
    shared: bool,
    written: bool,
}

/// What is known about the use of a cell, access by access in the observed order.
#[derive(Clone, Default)]
struct Use {
    owner: Option<ThreadIx>,
    /// Locks that every access has held since a second thread came, and whether each was held for reading only.
    common: Option<Vec<crate::ids::LockIx>>,
    atomic: bool,
    decides: bool,
}

impl Cells {
    /// The cells of a program that are to be kept.
    pub fn of(program: &Program, events: &[Event], keeps: &Keeps) -> Cells {
        let mut cells = Cells::shared(&program.accesses, events);
        if *keeps == Keeps::Reads {
            return cells;
        }
        let mut uses: Vec<Use> = vec![Use::default(); cells.cells.len()];
        for access in program.accesses.iter().filter(|access| access.kind != AccessKind::Free) {
            let end = access.start.saturating_add(u64::from(access.size));
            let first = cells.cells.partition_point(|cell| cell.end <= access.start);
            for (cell, used) in cells.cells[first..].iter().zip(&mut uses[first..]) {
                if cell.start >= end {
                    break;
                }
                used.add(program, access, &events[access.event.index()], keeps);
            }
        }
        let mut uses = uses.into_iter();
        cells.cells.retain_mut(|cell| {
            let used = uses.next().expect("one for each cell");
            cell.protected = used.common.is_some_and(|common| !common.is_empty());
            used.atomic || used.decides || (*keeps == Keeps::HandOvers && cell.protected)
        });
        cells
    }

    fn shared(accesses: &Accesses, events: &[Event]) -> Cells {
        let mut all: Vec<(u64, u64, u32, bool)> = accesses
            .iter()
            .filter(|access| access.kind != AccessKind::Free)
            .map(|access| {
                let end = access.start.saturating_add(u64::from(access.size));
                (access.start, end, events[access.event.index()].thread.0, access.kind.writes())
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        let mut cells = Vec::new();
        let mut now: Option<Growing> = None;
        let mut keep = |growing: Option<Growing>| {
            cells.extend(growing.filter(|g| g.shared && g.written).map(|g| g.cell));
        };
        for (start, end, thread, writes) in all {
            match &mut now {
                Some(growing) if start < growing.cell.end => {
                    growing.cell.whole &= (start, end) == (growing.cell.start, growing.cell.end);
                    growing.cell.end = growing.cell.end.max(end);
                    growing.shared |= growing.thread != thread;
                    growing.written |= writes;
                }
                _ => {
                    let cell = Cell { start, end, whole: true, protected: false };
                    keep(now.replace(Growing { cell, thread, shared: false, written: writes }));
                }
            }
        }
        keep(now);
        Cells { cells }
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The cell that an address belongs to.
    pub fn at(&self, address: u64) -> Option<Cell> {
        let place = self.cells.partition_point(|cell| cell.start <= address).checked_sub(1)?;
        Some(self.cells[place]).filter(|cell| address < cell.end)
    }
}

impl Use {
    fn add(&mut self, program: &Program, access: &Access, event: &Event, keeps: &Keeps) {
        self.atomic |= matches!(access.kind, AccessKind::AtomicRead | AccessKind::AtomicWrite);
        if let Keeps::ReadsAt(places) = keeps {
            self.decides |= access.kind == AccessKind::Read && places.contains(&event.location);
            return;
        }
        let owner = *self.owner.get_or_insert(event.thread);
        if self.common.is_none() && owner == event.thread {
            return;
        }
        let held = program.lockset(event.thread, access.pos);
        let protects = |lock: &crate::ids::LockIx| {
            held.iter().any(|(other, shared)| other == lock && !(*shared && access.kind.writes()))
        };
        match &mut self.common {
            None => self.common = Some(held.iter().map(|(lock, _)| *lock).filter(protects).collect()),
            Some(common) => common.retain(protects),
        }
    }
}
