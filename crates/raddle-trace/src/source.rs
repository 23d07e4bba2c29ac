//! Where events come from.
//!
//! Analyses are written against [`EventSource`], so that they run on a recorded trace, on a converted one, on an
//! in-memory one in tests, and in one pass over files that do not fit into memory.

use crate::event::Event;
use crate::tables::Tables;

/// Something that hands out events in the observed order, a batch at a time.
pub trait EventSource {
    /// Replaces the contents of `batch` by the next events; an empty batch is the end.
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError>;

    /// Tables as far as they are known by now; complete after the last batch.
    fn tables(&self) -> &Tables;

    /// How much has been read and how much there is, in the same unit, for a progress display.
    fn progress(&self) -> Option<(u64, u64)> {
        None
    }
}

/// A trace could not be read. Names the file and the place in it.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {place}: {problem}")]
pub struct TraceError {
    pub file: String,
    /// `offset 0x1234`, `line 3, column 7`, ...
    pub place: String,
    pub problem: String,
}

/// A whole trace in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryTrace {
    pub tables: Tables,
    pub events: Vec<Event>,
}

impl MemoryTrace {
    pub fn read(source: &mut dyn EventSource) -> Result<MemoryTrace, TraceError> {
        let mut events = Vec::new();
        let mut batch = Vec::new();
        loop {
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            events.extend_from_slice(&batch);
        }
        Ok(MemoryTrace { tables: source.tables().clone(), events })
    }

    pub fn source(&self) -> MemorySource<'_> {
        MemorySource { trace: self, next: 0 }
    }
}

/// Hands out the events of a [`MemoryTrace`].
pub struct MemorySource<'a> {
    trace: &'a MemoryTrace,
    next: usize,
}

const BATCH_EVENTS: usize = 4096;

impl EventSource for MemorySource<'_> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        batch.clear();
        let end = self.trace.events.len().min(self.next + BATCH_EVENTS);
        batch.extend_from_slice(&self.trace.events[self.next..end]);
        self.next = end;
        Ok(())
    }

    fn tables(&self) -> &Tables {
        &self.trace.tables
    }

    fn progress(&self) -> Option<(u64, u64)> {
        Some((self.next as u64, self.trace.events.len() as u64))
    }
}
