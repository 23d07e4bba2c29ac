//! What a trace holds, in numbers: one pass over its events.

use crate::describe::kind;
use crate::file::meta::{ProgramInfo, ProgramState};
use crate::open::OpenTrace;
use crate::region::Message;
use crate::source::{EventSource, TraceError};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Facts about one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadInfo {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_name: Option<String>,
    pub events: u64,
}

/// How the recorded program ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndInfo {
    pub state: ProgramState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    pub text: String,
}

/// Facts about a trace.
#[derive(Clone, Debug, Serialize)]
pub struct Info {
    pub file: String,
    /// `raddle` or `std`.
    pub format: &'static str,
    pub bytes: u64,
    pub events: u64,
    pub bytes_per_event: f64,
    pub kinds: BTreeMap<&'static str, u64>,
    pub threads: Vec<ThreadInfo>,
    pub modules: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<EndInfo>,
    /// Why the trace does not cover the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    pub messages: Vec<Message>,
    /// Of a foreign trace: its dialect, and lines that do not fit those before them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Events whose records were incomplete or made no sense.
    pub damaged_events: u64,
    pub chunks: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

/// Reads a whole trace and counts. `tick` is called after each batch, for a progress display.
pub fn info(path: &Path, tick: &mut dyn FnMut(&dyn EventSource)) -> Result<Info, TraceError> {
    let mut trace = OpenTrace::open(path)?;
    let mut kinds: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut per_thread: Vec<u64> = Vec::new();
    let (mut batch, mut events) = (Vec::new(), 0u64);
    loop {
        trace.next_batch(&mut batch)?;
        if batch.is_empty() {
            break;
        }
        events += batch.len() as u64;
        // Events of one kind come in runs: one look at the map a run.
        for run in batch.chunk_by(|a, b| std::ptr::eq(kind(&a.op), kind(&b.op))) {
            *kinds.entry(kind(&run[0].op)).or_default() += run.len() as u64;
        }
        for event in &batch {
            let ix = event.thread.index();
            if per_thread.len() <= ix {
                per_thread.resize(ix + 1, 0);
            }
            per_thread[ix] += 1;
        }
        tick(&trace);
    }
    let tables = trace.tables();
    let threads = tables
        .threads
        .iter()
        .enumerate()
        .map(|(ix, thread)| ThreadInfo {
            name: thread.name.clone(),
            given_name: thread.given_name.clone(),
            events: per_thread.get(ix).copied().unwrap_or(0),
        })
        .collect();
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut info = Info {
        file: path.display().to_string(),
        format: "std",
        bytes,
        events,
        bytes_per_event: if events == 0 { 0.0 } else { bytes as f64 / events as f64 },
        kinds,
        threads,
        modules: tables.modules.iter().map(|module| module.path.clone()).collect(),
        program: None,
        end: None,
        cut: trace.cut(),
        messages: Vec::new(),
        remarks: trace.remarks(),
        damaged_events: 0,
        chunks: 0,
        duration_ms: None,
    };
    if let OpenTrace::Raddle(file) = &trace {
        let index = file.index();
        info.format = "raddle";
        info.program = Some(index.info.program.clone());
        info.messages = index.messages.clone();
        info.damaged_events = file.damaged();
        info.chunks = index.chunks;
        if let Some(ending) = &index.ending {
            info.end = Some(EndInfo {
                state: ending.state,
                exit_status: ending.exit_status,
                signal: ending.signal,
                text: ending.describe(),
            });
            info.duration_ms = ending
                .ended_unix_ms
                .checked_sub(index.info.started_unix_ms)
                .filter(|_| index.info.started_unix_ms > 0);
        }
    }
    Ok(info)
}
