//! Cells: the pieces of memory whose reads keep their writers when nothing but correct reorderings is asked for.
//!
//! Accesses that overlap belong to one cell. In a cell that all of them touch whole, as in most programs, a read depends
//! on the last write alone. Where they overlap in part, every write keeps its place among the writes too: fewer
//! reorderings than there are, and none that is wrong. Memory that one thread touches, or that nobody writes, has no cell:
//! nothing that others do changes what is read there.

use crate::program::{AccessKind, Accesses};
use raddle_trace::Event;

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub start: u64,
    end: u64,
    /// Every access touches all of it.
    pub whole: bool,
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

impl Cells {
    pub fn of(accesses: &Accesses, events: &[Event]) -> Cells {
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
                    let cell = Cell { start, end, whole: true };
                    keep(now.replace(Growing { cell, thread, shared: false, written: writes }));
                }
            }
        }
        keep(now);
        Cells { cells }
    }

    /// The cell that an address belongs to.
    pub fn at(&self, address: u64) -> Option<Cell> {
        let place = self.cells.partition_point(|cell| cell.start <= address).checked_sub(1)?;
        Some(self.cells[place]).filter(|cell| address < cell.end)
    }
}
