//! Stores any trace in Raddle's own format.

use crate::encode::{TraceEncoder, location_code};
use crate::event::Event;
use crate::file::index::error_at;
use crate::file::meta::{Ending, LocationKind, ModuleMeta, ProgramInfo, ThreadMeta, TraceInfo};
use crate::file::writer::{Origin, TraceWriter, Written};
use crate::source::{EventSource, TraceError};
use crate::tables::{Location, Tables};
use raddle_wire::record::Record;
use std::path::Path;

/// Records that a thread gathers before they become a chunk.
const CHUNK_RECORDS: usize = 8 * 1024;

/// Writes all events of a source into a new trace file. `came_from` describes where they came from.
pub fn write_trace(
    source: &mut dyn EventSource,
    path: &Path,
    came_from: ProgramInfo,
) -> Result<Written, TraceError> {
    let failed = |error: std::io::Error| error_at(path, 0, format!("cannot write the trace: {error}"));
    let mut batch = Vec::new();
    source.next_batch(&mut batch)?;
    let info = TraceInfo {
        written_by: format!("raddle {}", env!("CARGO_PKG_VERSION")),
        wire_version: raddle_wire::WIRE_VERSION,
        program: came_from,
        locations: location_kind(source.tables()),
        ..TraceInfo::default()
    };
    let mut output =
        Output { writer: TraceWriter::create(path, &info).map_err(failed)?, ordinals: Vec::new() };
    let mut encoder = TraceEncoder::default();
    while !batch.is_empty() {
        for event in &batch {
            check_location(event, source.tables(), path)?;
            encoder.event(event, source.tables());
            let thread = event.thread.0;
            let records = &mut encoder.threads[event.thread.index()].records;
            if records.len() >= CHUNK_RECORDS {
                output.records(thread, records).map_err(failed)?;
            }
        }
        source.next_batch(&mut batch)?;
    }
    for (thread, records) in encoder.threads.iter_mut().enumerate() {
        output.records(thread as u32, &mut records.records).map_err(failed)?;
    }
    output.finish(source.tables()).map_err(failed)
}

struct Output {
    writer: TraceWriter,
    /// Next ordinal of each thread.
    ordinals: Vec<u32>,
}

impl Output {
    fn records(&mut self, thread: u32, records: &mut Vec<Record>) -> std::io::Result<()> {
        let ix = thread as usize;
        if self.ordinals.len() <= ix {
            self.ordinals.resize(ix + 1, 0);
        }
        let origin = Origin { thread, ordinal: self.ordinals[ix], ..Origin::default() };
        self.ordinals[ix] += 1;
        self.writer.records(origin, records)?;
        records.clear();
        Ok(())
    }

    fn finish(mut self, tables: &Tables) -> std::io::Result<Written> {
        let threads: Vec<ThreadMeta> = tables
            .threads
            .iter()
            .map(|thread| ThreadMeta {
                name: thread.name.clone(),
                given_name: thread.given_name.clone(),
                parent: thread.parent.map(|parent| parent.0),
                children: thread.children,
            })
            .collect();
        self.writer.threads(&threads)?;
        let modules: Vec<ModuleMeta> = tables
            .modules
            .iter()
            .map(|module| ModuleMeta {
                path: module.path.clone(),
                start: module.start,
                end: module.end,
                bias: module.bias,
                build_id: module.build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
                image: 0,
            })
            .collect();
        if !modules.is_empty() {
            self.writer.modules(&modules)?;
        }
        let events = self.writer.written().events;
        self.writer.finish(&Ending { threads: threads.len() as u32, events, ..Ending::default() })
    }
}

fn location_kind(tables: &Tables) -> LocationKind {
    let foreign = tables.locations().iter().any(|location| matches!(location, Location::Foreign(_)));
    if foreign { LocationKind::Foreign } else { LocationKind::Pc }
}

fn check_location(event: &Event, tables: &Tables, path: &Path) -> Result<(), TraceError> {
    match location_code(tables.location(event.location)) {
        Some(_) => Ok(()),
        None => Err(error_at(
            path,
            0,
            "a trace of a program that replaced itself by exec cannot be written again; copy the file instead",
        )),
    }
}
