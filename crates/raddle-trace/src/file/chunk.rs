//! Chunks: the frames of a trace file.
//!
//! A trace file is a preamble followed by chunks. A chunk has a header of fixed size that says how long the chunk is,
//! whose records it holds and which sequence numbers they span, and that is protected by its own checksum; the payload
//! has another. A reader can therefore walk from header to header without decoding anything, and a file that was cut
//! at any byte is good up to the last complete chunk.

use raddle_wire::region::SLOT_RECORDS;

/// First bytes of a trace file.
pub const MAGIC: [u8; 8] = *b"RADDLETR";

/// Version of the file format that this build writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;

/// Magic, version, and four bytes that are zero.
pub const PREAMBLE_BYTES: usize = 16;

pub const CHUNK_MAGIC: [u8; 4] = *b"RCHK";
pub const CHUNK_HEADER_BYTES: usize = 64;

/// Most records that a chunk may hold: a reader allocates no more than this asks for.
pub const CHUNK_RECORDS_MAX: u32 = 1 << 16;
const _: () = assert!(SLOT_RECORDS <= CHUNK_RECORDS_MAX as usize);

/// Most bytes of a payload, stored or plain.
pub const CHUNK_BYTES_MAX: u32 = 1 << 22;

/// `first_sequence` of a chunk without any sequence number.
pub const NO_SEQUENCE: u64 = u64::MAX;

/// What a chunk holds. Readers skip kinds that they do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkKind {
    /// JSON: what was run and how it was observed. First chunk.
    Info = 1,
    /// Records of one thread, see [`super::codec`].
    Records = 2,
    /// JSON: modules of the process, in addition to those of earlier chunks.
    Modules = 3,
    /// JSON: messages of the runtime.
    Messages = 4,
    /// JSON: how it ended. Last chunk; a file without it was cut.
    End = 5,
    /// JSON: the thread table of a trace that was converted; its thread indices are used as they are.
    Threads = 6,
}

impl ChunkKind {
    pub fn from_u8(value: u8) -> Option<ChunkKind> {
        Some(match value {
            1 => ChunkKind::Info,
            2 => ChunkKind::Records,
            3 => ChunkKind::Modules,
            4 => ChunkKind::Messages,
            5 => ChunkKind::End,
            6 => ChunkKind::Threads,
            _ => return None,
        })
    }
}

/// The header of a chunk, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkHeader {
    /// A [`ChunkKind`], or one that this build does not know.
    pub kind: u8,
    /// Bytes of the payload in the file.
    pub stored_bytes: u32,
    /// Bytes of the payload once decompressed; equal to `stored_bytes` in a chunk that is not compressed.
    pub plain_bytes: u32,
    pub compressed: bool,
    pub thread: u32,
    pub image: u32,
    /// n-th slot of the thread in this image.
    pub ordinal: u32,
    /// Where in that slot the records begin.
    pub first_record: u32,
    pub records: u32,
    /// Records that begin an event (the others extend one, or describe the stack).
    pub events: u32,
    pub first_sequence: u64,
    pub last_sequence: u64,
    pub payload_crc: u32,
}

impl ChunkHeader {
    pub fn to_bytes(&self) -> [u8; CHUNK_HEADER_BYTES] {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&CHUNK_MAGIC);
        bytes[4] = self.kind;
        bytes[5] = u8::from(self.compressed);
        let numbers = [
            self.stored_bytes,
            self.plain_bytes,
            self.thread,
            self.image,
            self.ordinal,
            self.first_record,
            self.records,
            self.payload_crc,
        ];
        for (place, number) in bytes[8..40].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes[40..48].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.last_sequence.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.events.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header; the error says what is wrong with it.
    pub fn from_bytes(bytes: &[u8; CHUNK_HEADER_BYTES]) -> Result<ChunkHeader, &'static str> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if bytes[0..4] != CHUNK_MAGIC {
            return Err("no chunk begins here");
        }
        if crc32fast::hash(&bytes[..60]) != u32_at(60) {
            return Err("the checksum of the chunk's header is wrong");
        }
        let header = ChunkHeader {
            kind: bytes[4],
            compressed: bytes[5] == 1,
            stored_bytes: u32_at(8),
            plain_bytes: u32_at(12),
            thread: u32_at(16),
            image: u32_at(20),
            ordinal: u32_at(24),
            first_record: u32_at(28),
            records: u32_at(32),
            payload_crc: u32_at(36),
            first_sequence: u64_at(40),
            last_sequence: u64_at(48),
            events: u32_at(56),
        };
        if bytes[5] > 1 {
            return Err("the chunk is compressed in a way that this version does not know");
        }
        if header.stored_bytes > CHUNK_BYTES_MAX || header.plain_bytes > CHUNK_BYTES_MAX {
            return Err("the chunk claims to be larger than chunks may be");
        }
        if header.records > CHUNK_RECORDS_MAX || header.events > header.records {
            return Err("the chunk claims to hold more records than chunks may hold");
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_and_every_bit_is_protected() {
        let header = ChunkHeader {
            kind: ChunkKind::Records as u8,
            stored_bytes: 10,
            plain_bytes: 20,
            compressed: true,
            thread: 3,
            image: 1,
            ordinal: 4,
            first_record: 17,
            records: 2048,
            events: 1000,
            first_sequence: 1 << 40,
            last_sequence: (1 << 40) + 5,
            payload_crc: 0xdead_beef,
        };
        let bytes = header.to_bytes();
        assert_eq!(ChunkHeader::from_bytes(&bytes), Ok(header));
        for bit in 0..CHUNK_HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(ChunkHeader::from_bytes(&damaged).is_err(), "bit {bit} is not protected");
        }
    }
}
