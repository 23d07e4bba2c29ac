//! The debug sections of one file. What is stored plainly stays in the mapped file, what is compressed is unpacked once.
//!
//! gimli reads from borrowed slices, so nothing that is kept between two questions may point into the sections; a
//! [`gimli::Dwarf`] is put together for each question from the slices ([`DebugSections::borrow`]), which copies nothing.

use gimli::{Dwarf, DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use memmap2::Mmap;
use object::{CompressionFormat, Object, ObjectSection};
use std::fs::File;
use std::ops::Range;
use std::path::Path;

/// A compressed section that claims to be larger is left out: its size is a number in the file that anyone can write.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;

/// How debug information is read.
pub type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

#[derive(Debug)]
enum Bytes {
    Mapped(Range<usize>),
    Unpacked(Vec<u8>),
}

/// The debug sections of one file.
#[derive(Debug)]
pub struct DebugSections {
    map: Mmap,
    endian: RunTimeEndian,
    sections: DwarfSections<Bytes>,
}

impl DebugSections {
    /// Maps a file and finds its sections, those of split debug information if `split`.
    pub fn open(path: &Path, split: bool) -> Option<DebugSections> {
        let file = File::open(path).ok()?;
        // SAFETY: the mapping is private and only read. A file that somebody truncates while it is mapped raises
        // SIGBUS, as it would in every debugger; addr2line maps the same files.
        let map = unsafe { Mmap::map(&file) }.ok()?;
        let object = object::File::parse(&map[..]).ok()?;
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let sections = DwarfSections::load(|id| {
            let name = if split { id.dwo_name() } else { Some(id.name()) };
            let bytes = name.filter(|_| is_read(id)).and_then(|name| bytes_of(&object, name));
            Ok::<_, ()>(bytes.unwrap_or(Bytes::Mapped(0..0)))
        })
        .ok()?;
        Some(DebugSections { map, endian, sections })
    }

    /// The sections as gimli reads them.
    pub fn borrow(&self) -> Dwarf<Slice<'_>> {
        self.sections.borrow(|bytes| match bytes {
            Bytes::Mapped(range) => {
                EndianSlice::new(self.map.get(range.clone()).unwrap_or_default(), self.endian)
            }
            Bytes::Unpacked(bytes) => EndianSlice::new(bytes, self.endian),
        })
    }

    /// The whole file.
    pub fn file(&self) -> &[u8] {
        &self.map
    }

    pub fn endian(&self) -> RunTimeEndian {
        self.endian
    }
}

/// Macros and the index by addresses are never asked for.
fn is_read(id: SectionId) -> bool {
    !matches!(id, SectionId::DebugMacinfo | SectionId::DebugMacro | SectionId::DebugAranges)
}

fn bytes_of<'data>(object: &object::File<'data>, name: &str) -> Option<Bytes> {
    let section = object.section_by_name(name)?;
    let stored = section.compressed_file_range().ok()?;
    if stored.format == CompressionFormat::None {
        let start = usize::try_from(stored.offset).ok()?;
        let end = start.checked_add(usize::try_from(stored.uncompressed_size).ok()?)?;
        return Some(Bytes::Mapped(start..end));
    }
    let unpack = stored.uncompressed_size <= UNPACKED_BYTES_MAX;
    unpack.then(|| section.uncompressed_data().ok()).flatten().map(|data| Bytes::Unpacked(data.into_owned()))
}
