//! Opens a trace, whatever its format.

use crate::file::TraceFile;
use crate::file::index::{error_at, is_trace};
use crate::source::{EventSource, TraceError};
use crate::std_format::{InputDialect, StdReader, looks_like_std};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes looked at to tell formats apart.
const HEAD_BYTES: u64 = 4096;

/// An open trace.
pub enum OpenTrace {
    Raddle(Box<TraceFile>),
    Std(Box<StdReader<File>>),
}

impl OpenTrace {
    pub fn open(path: &Path) -> Result<OpenTrace, TraceError> {
        OpenTrace::open_as(path, InputDialect::Auto)
    }

    /// Opens a trace; STD text is taken as the dialect.
    pub fn open_as(path: &Path, dialect: InputDialect) -> Result<OpenTrace, TraceError> {
        let failed = |error: std::io::Error| error_at(path, 0, format!("cannot open the trace: {error}"));
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(error_at(path, 0, "this is a folder; name the trace file in it"));
        }
        let mut head = Vec::new();
        file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(failed)?;
        if metadata.is_file() && metadata.len() == 0 {
            return Err(error_at(path, 0, "the trace is empty; record one with `raddle record`"));
        }
        if is_trace(&head) {
            return Ok(OpenTrace::Raddle(Box::new(TraceFile::open(path)?)));
        }
        if looks_like_std(&head) && !head.is_empty() {
            let file = File::open(path).map_err(failed)?;
            let name = path.display().to_string();
            let reader = StdReader::new(file, name, Some(metadata.len())).with_dialect(dialect);
            return Ok(OpenTrace::Std(Box::new(reader)));
        }
        Err(error_at(
            path,
            0,
            "neither a Raddle trace nor STD text (`T0|w(V1)|12`); record one with `raddle record`",
        ))
    }

    /// Why the trace does not cover the whole run, if that is known.
    pub fn cut(&self) -> Option<String> {
        match self {
            OpenTrace::Raddle(file) => file.index().cut(),
            OpenTrace::Std(_) => None,
        }
    }

    /// What whoever reads results about this trace should know, once it has been read: see [`StdReader::remarks`].
    pub fn remarks(&self) -> Vec<String> {
        match self {
            OpenTrace::Raddle(_) => Vec::new(),
            OpenTrace::Std(reader) => reader.remarks(),
        }
    }

    fn source(&mut self) -> &mut dyn EventSource {
        match self {
            OpenTrace::Raddle(file) => &mut **file,
            OpenTrace::Std(reader) => &mut **reader,
        }
    }
}

impl EventSource for OpenTrace {
    fn next_batch(&mut self, batch: &mut Vec<crate::Event>) -> Result<(), TraceError> {
        self.source().next_batch(batch)
    }

    fn tables(&self) -> &crate::Tables {
        match self {
            OpenTrace::Raddle(file) => file.tables(),
            OpenTrace::Std(reader) => reader.tables(),
        }
    }

    fn progress(&self) -> Option<(u64, u64)> {
        match self {
            OpenTrace::Raddle(file) => file.progress(),
            OpenTrace::Std(reader) => reader.progress(),
        }
    }
}

/// Opens a trace as a source of events.
pub fn open(path: &Path) -> Result<Box<dyn EventSource>, TraceError> {
    Ok(Box::new(OpenTrace::open(path)?))
}
