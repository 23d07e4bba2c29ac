//! The trace file: chunks, their encoding, writing, reading. The format is specified in `docs/trace-format.md`.

pub mod chunk;
pub mod codec;
pub mod meta;
pub mod varint;
pub mod writer;
