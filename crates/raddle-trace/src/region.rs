//! The `raddle` side of the region: creates the shared memory and looks into it.
//!
//! The layout is defined by [`raddle_wire::region`]. Here it is given a safe face: everything that the tested program
//! may change while we look is read through atomics, one word at a time, so that no Rust reference ever promises that
//! shared memory stands still. The program is not trusted: counts and lengths that it wrote are clamped to the
//! layout's limits before they are used.

use memmap2::{MmapOptions, MmapRaw};
use raddle_wire::crash::EndBlock;
use raddle_wire::record::Record;
use raddle_wire::region::{
    self, BLOB_OFFSET, BUILD_ID_MAX, Header, MESSAGE_TEXT_MAX, MESSAGES_MAX, MESSAGES_OFFSET,
    MODULE_PATH_MAX, MODULES_MAX, MODULES_OFFSET, MessageEntry, ModuleEntry, SLOT_BYTES, SLOT_HEADERS_OFFSET,
    SLOT_RECORDS, SLOTS_MAX, SLOTS_OFFSET, SlotHeader,
};
use raddle_wire::report::{self, REPORT_WORDS, REPORTS_MAX};
use raddle_wire::server::{RUN_BYTES, RUNS_MAX, RunEntry, end_offset, ring_offset};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// How the program shall be observed and steered; becomes the region's [`Header`].
#[derive(Clone, Debug)]
pub struct RegionConfig {
    /// Bits of [`region::observe`].
    pub observe: u32,
    /// One of [`region::steer`].
    pub steer: u32,
    /// Bits of [`region::option`].
    pub options: u64,
    pub seed: u64,
    /// Slots that may be full and not yet emptied before the program waits.
    pub pending_max: u32,
    pub strategy: u32,
    pub parameters: [u64; 8],
    /// Settings of online detection, by [`region::detect`].
    pub detect: [u64; region::detect::COUNT],
    /// Input of variable size, for example a schedule.
    pub blob: Vec<u8>,
    /// Processor that the program is to stay on.
    pub processor: Option<u32>,
    /// The program is to become a fork server.
    pub server: bool,
    /// How the fork server makes its runs: one of [`raddle_wire::server::mode`].
    pub server_mode: u32,
    /// Most bytes of the journal of turns; 0: none is wanted. Only what is written costs memory.
    pub journal_max: u64,
    /// Bit n: a demo leaves out function n of [`raddle_wire::calls`].
    pub calls_left_out: u64,
    /// How long the run took that is to be repeated, in milliseconds; 0: not known.
    pub repeated_run_ms: u64,
}

/// Back-pressure sets in when this many slots (32 KiB each) wait for the collector.
pub const PENDING_MAX_DEFAULT: u32 = 128;

impl Default for RegionConfig {
    /// Records memory accesses and synchronisation of a program that runs freely.
    fn default() -> Self {
        RegionConfig {
            observe: region::observe::RECORD,
            steer: region::steer::FREE,
            options: region::option::MEMORY | region::option::ALLOCATIONS,
            seed: 0,
            pending_max: PENDING_MAX_DEFAULT,
            strategy: 0,
            parameters: [0; 8],
            detect: [0; region::detect::COUNT],
            blob: Vec::new(),
            processor: None,
            server: false,
            server_mode: 0,
            journal_max: 0,
            calls_left_out: 0,
            repeated_run_ms: 0,
        }
    }
}

/// [`report::ReportEntry`] with a body that may change under our eyes.
#[repr(C)]
struct AtomicReport {
    state: AtomicU32,
    used: AtomicU32,
    body: [AtomicU64; REPORT_WORDS],
}

const _: () = assert!(size_of::<AtomicReport>() == size_of::<report::ReportEntry>());

/// A message of the runtime.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    pub level: MessageLevel,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageLevel {
    Note,
    Warning,
    Error,
}

/// The shared memory. Lives as long as the `raddle` process wants it; the program has its own mapping.
pub struct Region {
    map: MmapRaw,
    file: File,
    blob_bytes: usize,
}

impl Region {
    /// Creates a region and fills in the configuration. Nothing but address space is used until somebody writes.
    pub fn create(config: &RegionConfig) -> io::Result<Region> {
        let blob_bytes = config.blob.len();
        let mut header =
            Header::new(config.observe, config.steer, config.options, config.seed, blob_bytes as u64);
        header.pending_max = config.pending_max.max(1);
        header.collector_pid = std::process::id();
        header.strategy = config.strategy;
        header.parameters = config.parameters;
        header.processor = config.processor.map_or(0, |processor| processor + 1);
        header.server.wanted = u32::from(config.server);
        header.server.mode = config.server_mode;
        header.journal_max = config.journal_max;
        header.calls_left_out = config.calls_left_out;
        header.repeated_run_ms = config.repeated_run_ms;
        let bytes = region::bytes_of(&header);
        let fd = rustix::fs::memfd_create("raddle-region", rustix::fs::MemfdFlags::CLOEXEC)?;
        let file = File::from(fd);
        file.set_len(bytes as u64)?;
        let map = MmapOptions::new().len(bytes).map_raw(&file)?;
        let region = Region { map, file, blob_bytes };
        header.detect = config.detect;
        // SAFETY: the map is at least HEADER_BYTES long, page-aligned, and nobody else knows of it yet, so nothing
        // refers to the header while it is written.
        unsafe { region.map.as_mut_ptr().cast::<Header>().write(header) };
        for (cell, &byte) in region.blob_cells().iter().zip(&config.blob) {
            cell.store(byte, Ordering::Relaxed);
        }
        Ok(region)
    }

    /// Value of [`region::ENV_REGION`] for the program: a path through which it can open the region.
    pub fn env_value(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// The descriptor behind [`Region::env_value`].
    pub fn descriptor(&self) -> u32 {
        self.file.as_raw_fd().unsigned_abs()
    }

    pub fn header(&self) -> &Header {
        // SAFETY: written by `create`, inside the map, aligned. Fields that change after the program has started are
        // atomics; the others are written by nobody after `create`.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    pub fn slot_header(&self, slot: usize) -> &SlotHeader {
        assert!(slot < SLOTS_MAX);
        // SAFETY: the slot headers lie inside the map, are aligned, and consist of atomics and of padding that nobody
        // reads; any bytes are valid for them.
        unsafe { &*self.map.as_ptr().add(SLOT_HEADERS_OFFSET).cast::<SlotHeader>().add(slot) }
    }

    /// One more than the highest slot that the program ever used.
    pub fn slots_high(&self) -> usize {
        (self.header().slots_high.load(Ordering::Acquire) as usize).min(SLOTS_MAX)
    }

    /// Reports of the online detector so far, also those for which there was no entry.
    pub fn reports(&self) -> usize {
        self.header().reports.load(Ordering::Acquire) as usize
    }

    /// The words of all lock dependencies written so far.
    pub fn dependency_words(&self) -> Vec<u64> {
        let used = self.header().dependency_words.load(Ordering::Acquire) as usize;
        // SAFETY: the area lies inside the map, is aligned, and is only looked at through atomics.
        let words = unsafe {
            let start = self.map.as_ptr().add(region::DEPENDENCIES_OFFSET).cast::<AtomicU64>();
            std::slice::from_raw_parts(start, report::DEPENDENCY_WORDS)
        };
        words[..used.min(report::DEPENDENCY_WORDS)].iter().map(|word| word.load(Ordering::Acquire)).collect()
    }

    fn report_entry(&self, ix: usize) -> &AtomicReport {
        assert!(ix < REPORTS_MAX);
        // SAFETY: the entries lie inside the map, are aligned, and are only looked at through atomics, for which any
        // bytes are valid.
        unsafe { &*self.map.as_ptr().add(region::REPORTS_OFFSET).cast::<AtomicReport>().add(ix) }
    }

    /// The body of a report that is complete.
    pub fn report(&self, ix: usize) -> Option<Vec<u64>> {
        let entry = self.report_entry(ix);
        if entry.state.load(Ordering::Acquire) == report::state::EMPTY {
            return None;
        }
        let used = (entry.used.load(Ordering::Relaxed) as usize).min(REPORT_WORDS);
        Some(entry.body[..used].iter().map(|word| word.load(Ordering::Relaxed)).collect())
    }

    /// Tells the program what became of a report.
    pub fn answer_report(&self, ix: usize, shown: bool) {
        let answer = if shown { report::state::SHOWN } else { report::state::SUPPRESSED };
        self.report_entry(ix).state.store(answer, Ordering::Release);
    }

    /// Tells the program the settings that its own wishes lead to; before the answer to their entry.
    pub fn answer_settings(&self, options: u64, detect: &[u64; region::detect::COUNT]) {
        let header = self.header();
        header.options_answered.store(options, Ordering::Release);
        for (cell, &value) in header.detect_answered.iter().zip(detect) {
            cell.store(value, Ordering::Release);
        }
    }

    /// As the runtime does; for tests.
    pub fn write_report(&self, words: &[u64]) {
        let ix = self.header().reports.fetch_add(1, Ordering::AcqRel) as usize;
        let entry = self.report_entry(ix);
        for (cell, &word) in entry.body.iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
        entry.used.store(words.len() as u32, Ordering::Relaxed);
        entry.state.store(report::state::COMPLETE, Ordering::Release);
    }

    fn slot_words(&self, slot: usize) -> &[AtomicU64] {
        assert!(slot < SLOTS_MAX);
        // SAFETY: the slot lies inside the map and is aligned (offsets are multiples of 4096 or of SLOT_BYTES);
        // every access to it goes through atomics, on this side and, as far as we are concerned, on the other.
        unsafe {
            let start = self.map.as_ptr().add(SLOTS_OFFSET + slot * SLOT_BYTES).cast::<AtomicU64>();
            std::slice::from_raw_parts(start, SLOT_BYTES / 8)
        }
    }

    /// Appends the records `from..to` of a slot to `records`, ending early at the first record that was not written.
    pub fn read_slot(&self, slot: usize, from: usize, to: usize, records: &mut Vec<Record>) {
        let words = self.slot_words(slot);
        let to = to.min(SLOT_RECORDS);
        for pair in words[2 * from.min(to)..2 * to].chunks_exact(2) {
            // The writer stores word0 last: once it is there, so is word1.
            let word0 = pair[0].load(Ordering::Acquire);
            let record = Record { word0, word1: pair[1].load(Ordering::Relaxed) };
            if record.tag_byte() == 0 {
                return;
            }
            records.push(record);
        }
    }

    /// Zeroes the first `records` records of a slot.
    pub fn clear_slot(&self, slot: usize, records: usize) {
        for word in &self.slot_words(slot)[..2 * records.min(SLOT_RECORDS)] {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Writes a record into a slot as a program would; for tests that play the program's part.
    pub fn write_record(&self, slot: usize, at: usize, record: Record) {
        let words = self.slot_words(slot);
        words[2 * at + 1].store(record.word1, Ordering::Relaxed);
        words[2 * at].store(record.word0, Ordering::Release);
    }

    /// How many modules the program has announced.
    pub fn modules(&self) -> usize {
        (self.header().modules.load(Ordering::Acquire) as usize).min(MODULES_MAX)
    }

    /// A module that is below [`Region::modules`].
    pub fn module(&self, ix: usize) -> ModuleEntry {
        assert!(ix < MODULES_MAX);
        // SAFETY: inside the map and aligned; ModuleEntry is plain integers, so any bytes are valid. A volatile copy
        // because the program could, by mistake, still be writing it; we then hold a strange copy, nothing worse.
        let mut entry =
            unsafe { self.map.as_ptr().add(MODULES_OFFSET).cast::<ModuleEntry>().add(ix).read_volatile() };
        entry.path_bytes = entry.path_bytes.min(MODULE_PATH_MAX as u16);
        entry.build_id_bytes = entry.build_id_bytes.min(BUILD_ID_MAX as u16);
        entry
    }

    /// Writes a module entry as a program would; for tests that play the program's part.
    pub fn write_module(&self, ix: usize, entry: ModuleEntry) {
        assert!(ix < MODULES_MAX);
        // SAFETY: inside the map, aligned, plain integers; the entry is published afterwards through the atomic count.
        unsafe {
            self.map.as_mut_ptr().add(MODULES_OFFSET).cast::<ModuleEntry>().add(ix).write_volatile(entry);
        }
        self.header().modules.fetch_max(ix as u32 + 1, Ordering::Release);
    }

    /// The runtime's messages so far, and how many more were dropped because there were too many.
    pub fn messages(&self) -> (Vec<Message>, u32) {
        let announced = self.header().messages.load(Ordering::Acquire);
        let mut messages = Vec::new();
        for ix in 0..(announced as usize).min(MESSAGES_MAX) {
            // SAFETY: as for modules; `level` is read through its atomic first, which orders the copy of the text.
            let (level, bytes, text) = unsafe {
                let entry = self.map.as_ptr().add(MESSAGES_OFFSET).cast::<MessageEntry>().add(ix);
                let level = (*entry).level.load(Ordering::Acquire);
                let bytes = (&raw const (*entry).bytes).read_volatile();
                let text: [u8; MESSAGE_TEXT_MAX] = (&raw const (*entry).text).read_volatile();
                (level, bytes, text)
            };
            let level = match level {
                0 => continue,
                region::message_level::NOTE => MessageLevel::Note,
                region::message_level::WARNING => MessageLevel::Warning,
                _ => MessageLevel::Error,
            };
            let text = &text[..(bytes as usize).min(MESSAGE_TEXT_MAX)];
            messages.push(Message { level, text: String::from_utf8_lossy(text).into_owned() });
        }
        (messages, announced.saturating_sub(MESSAGES_MAX as u32))
    }

    /// Writes a message as a program would; for tests that play the program's part.
    pub fn write_message(&self, level: u32, text: &str) {
        let ix = self.header().messages.fetch_add(1, Ordering::AcqRel) as usize;
        if ix >= MESSAGES_MAX {
            return;
        }
        let length = text.len().min(MESSAGE_TEXT_MAX);
        // SAFETY: inside the map, aligned; the index was taken by this call alone, and `level` publishes the text.
        unsafe {
            let entry = self.map.as_mut_ptr().add(MESSAGES_OFFSET).cast::<MessageEntry>().add(ix);
            (&raw mut (*entry).bytes).write_volatile(length as u32);
            let target = (&raw mut (*entry).text).cast::<u8>();
            for (at, &byte) in text.as_bytes()[..length].iter().enumerate() {
                target.add(at).write_volatile(byte);
            }
            (*entry).level.store(level, Ordering::Release);
        }
    }

    fn blob_cells(&self) -> &[AtomicU8] {
        // SAFETY: the blob lies inside the map and is only ever accessed as atomic bytes on this side.
        unsafe {
            std::slice::from_raw_parts(self.map.as_ptr().add(BLOB_OFFSET).cast::<AtomicU8>(), self.blob_bytes)
        }
    }

    /// The journal as far as it is complete.
    pub fn journal(&self) -> Vec<u8> {
        let header = self.header();
        let bytes = header.journal_bytes.load(Ordering::Acquire).min(header.journal_max) as usize;
        // SAFETY: the journal lies inside the map; it is read as atomic bytes, whatever the program does meanwhile.
        let cells = unsafe {
            let start = self.map.as_ptr().add(region::journal_offset(header)).cast::<AtomicU8>();
            std::slice::from_raw_parts(start, bytes)
        };
        cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
    }

    /// What the program counted: thread, its parent, object, and how many visible operations (none of them 0).
    pub fn profile(&self) -> Vec<[u64; 4]> {
        // SAFETY: the table lies inside the map, is aligned, and consists of atomics.
        let entries = unsafe {
            let start = self.map.as_ptr().add(region::PROFILE_OFFSET).cast::<region::ProfileEntry>();
            std::slice::from_raw_parts(start, region::PROFILE_MAX)
        };
        let words = |entry: &region::ProfileEntry| {
            [&entry.thread, &entry.parent, &entry.object, &entry.count]
                .map(|word| word.load(Ordering::Relaxed))
        };
        entries.iter().map(words).filter(|row| row[3] != 0).collect()
    }

    /// Result number `run` of the fork server; only in a region that was made for one.
    pub fn run_entry(&self, run: u32) -> &RunEntry {
        assert!(self.header().server.wanted != 0, "the region has no ring");
        let at = ring_offset(self.blob_bytes) + run as usize % RUNS_MAX * RUN_BYTES;
        // SAFETY: the ring lies inside the map, is aligned to pages, and consists of atomics.
        unsafe { &*self.map.as_ptr().add(at).cast::<RunEntry>() }
    }

    /// The crash report as it stands in the region ([`crate::crash`] reads it).
    pub fn end_block(&self) -> &EndBlock {
        // SAFETY: the block lies inside the map, is aligned to pages, and consists of atomics.
        unsafe { &*self.map.as_ptr().add(region::END_OFFSET).cast::<EndBlock>() }
    }

    /// The crash report of run number `run` of the fork server; only in a region that was made for one.
    pub fn end_block_of_run(&self, run: u32) -> &EndBlock {
        assert!(self.header().server.wanted != 0, "the region has no ring");
        let at = ring_offset(self.blob_bytes) + end_offset(run);
        // SAFETY: as above, behind the ring.
        unsafe { &*self.map.as_ptr().add(at).cast::<EndBlock>() }
    }

    /// Writes the blob anew, between two runs of a fork server. What does not fit is refused.
    pub fn rewrite_blob(&self, bytes: &[u8]) -> bool {
        for (cell, &byte) in self.blob_cells().iter().zip(bytes) {
            cell.store(byte, Ordering::Relaxed);
        }
        bytes.len() <= self.blob_bytes
    }

    /// A copy of the blob, which the program may have changed.
    pub fn blob(&self) -> Vec<u8> {
        self.blob_cells().iter().map(|cell| cell.load(Ordering::Relaxed)).collect()
    }
}

const _: () = assert!(SLOTS_OFFSET.is_multiple_of(8) && SLOT_HEADERS_OFFSET.is_multiple_of(8));
const _: () = assert!(region::PROFILE_OFFSET.is_multiple_of(8));

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_wire::Tag;

    #[test]
    fn a_region_can_be_opened_through_its_path() {
        let region =
            Region::create(&RegionConfig { seed: 7, blob: b"schedule".to_vec(), ..Default::default() })
                .unwrap();
        let other = File::options().read(true).write(true).open(region.env_value()).unwrap();
        let bytes = region::region_bytes(8);
        assert_eq!(other.metadata().unwrap().len(), bytes as u64);
        let map = MmapOptions::new().len(bytes).map_raw(&other).unwrap();
        let magic = u64::from_le_bytes(*b"RADDLE\x01\x02");
        // SAFETY: both maps live, nobody writes.
        assert_eq!(unsafe { map.as_ptr().cast::<u64>().read() }, magic);
        assert_eq!(region.blob(), b"schedule");
        assert_eq!(region.header().seed, 7);
    }

    #[test]
    fn slots_end_at_the_first_zero_tag() {
        let region = Region::create(&RegionConfig::default()).unwrap();
        for at in [0, 1, 3] {
            region.write_record(5, at, Record::new(Tag::Access, 2, 0x1000 + at as u64, 64));
        }
        let mut records = Vec::new();
        region.read_slot(5, 0, SLOT_RECORDS, &mut records);
        assert_eq!(records.len(), 2);
        region.clear_slot(5, 4);
        records.clear();
        region.read_slot(5, 0, SLOT_RECORDS, &mut records);
        assert!(records.is_empty());
    }

    #[test]
    fn messages_beyond_the_limit_are_counted() {
        let region = Region::create(&RegionConfig::default()).unwrap();
        for _ in 0..MESSAGES_MAX + 3 {
            region.write_message(region::message_level::WARNING, "two runtimes");
        }
        let (messages, dropped) = region.messages();
        assert_eq!((messages.len(), dropped), (MESSAGES_MAX, 3));
        assert_eq!(messages[0], Message { level: MessageLevel::Warning, text: "two runtimes".into() });
    }
}
