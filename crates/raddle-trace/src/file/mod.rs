//! The trace file: chunks, their encoding, writing, reading. The format is specified in `docs/trace-format.md`.

pub mod chunk;
pub mod codec;
pub mod index;
pub mod meta;
pub mod reader;
pub mod varint;
pub mod writer;

pub use index::Index;
pub use meta::{Ending, ProgramInfo, TraceInfo};
pub use reader::TraceFile;
pub use writer::TraceWriter;
