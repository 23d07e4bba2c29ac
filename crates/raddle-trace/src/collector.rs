//! The collector: empties the region while the program runs and writes the trace file.
//!
//! One thread of the `raddle` process takes slots that the program marked `FULL`, writes their records as a chunk,
//! zeroes the slot and gives it back. Program and collector tell each other through two futex words; the collector
//! also looks by itself every [`POLL`], so that a lost wake-up costs time and nothing else.
//!
//! *Back-pressure.* The program waits when `pending` reaches `pending_max`. The collector lowers `pending` after a slot
//! is free again, then raises `emptied` and wakes. (`pending` is raised by the program *before* it marks a slot full:
//! then it never drops below zero.)
//!
//! *Nothing is lost when the program dies*: the region belongs to this process, too. [`Collector::finish`] takes what
//! is in slots that were still being filled, up to the first record that was not written.
//!
//! *Little is lost when `raddle` itself dies*: once in [`SNAPSHOT_EVERY`] the collector writes what slots hold so far
//! that are being filled slowly. A later chunk of the same slot continues where the snapshot ended; snapshots end
//! between events, never inside one.
//!
//! *A full disk* stops the writing, not the program: slots are emptied unwritten from then on, and the file ends with
//! the reason (see [`crate::file::writer`]).

use crate::file::meta::{Ending, ModuleMeta, ProgramInfo, ProgramState, TraceInfo};
use crate::file::writer::{Origin, TraceWriter, Written};
use crate::region::{Message, Region};
use raddle_wire::record::{Record, Tag};
use raddle_wire::region::{SLOT_RECORDS, slot_state, state};
use rustix::thread::futex;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Longest time between two looks at the slots.
const POLL: Duration = Duration::from_millis(20);

/// How often slots that are not full are written as far as they go.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(1);

/// A trace could not be written at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the trace {}: {cause}", path.display())]
pub struct CollectError {
    pub path: PathBuf,
    pub cause: std::io::Error,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub path: PathBuf,
    pub written: Written,
    pub ending: Ending,
    pub messages: Vec<Message>,
}

/// Numbers that change while the collector runs, for a progress display.
#[derive(Debug, Default)]
pub struct Progress {
    pub events: AtomicU64,
    pub bytes: AtomicU64,
}

/// A running collector. Dropping it without [`Collector::finish`] leaves a readable file that counts as cut.
pub struct Collector {
    region: Arc<Region>,
    path: PathBuf,
    stop: Arc<AtomicBool>,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<Emptying>>,
}

impl Collector {
    /// Creates the file and begins to collect. The program may be started before or after.
    pub fn start(region: Arc<Region>, path: &Path, program: ProgramInfo) -> Result<Collector, CollectError> {
        let failed = |cause| CollectError { path: path.to_owned(), cause };
        let header = region.header();
        let info = TraceInfo {
            written_by: format!("raddle {}", env!("CARGO_PKG_VERSION")),
            wire_version: raddle_wire::WIRE_VERSION,
            program,
            observe: header.observe,
            steer: header.steer,
            options: header.options,
            seed: header.seed,
            started_unix_ms: unix_ms(),
            ..TraceInfo::default()
        };
        let writer = TraceWriter::create(path, &info).map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Arc::new(Progress::default());
        let emptying = Emptying::new(Arc::clone(&region), writer, Arc::clone(&progress));
        let stop_seen = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("collector".into())
            .spawn(move || emptying.run(&stop_seen))
            .map_err(failed)?;
        Ok(Collector { region, path: path.to_owned(), stop, progress, thread: Some(thread) })
    }

    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Call when the program is gone: takes what it left behind and completes the file. Whatever went wrong is in the
    /// summary's ending.
    pub fn finish(mut self, exit: ExitStatus) -> Result<Summary, CollectError> {
        let Some(mut emptying) = self.halt() else {
            let cause = std::io::Error::other("the collecting thread failed");
            return Err(CollectError { path: self.path.clone(), cause });
        };
        emptying.empty_full_slots();
        emptying.take_unfinished_slots(true);
        emptying.note_modules();
        let (messages, messages_dropped) = self.region.messages();
        let mut ending = emptying.ending(exit, messages_dropped);
        let mut writer = emptying.writer;
        let mut written = writer.written();
        let told = if messages.is_empty() { Ok(()) } else { writer.messages(&messages) };
        match told.and_then(|()| writer.finish(&ending)) {
            Ok(all) => written = all,
            // The file has everything but its end: readable, and known to be cut.
            Err(error) => ending.cut = Some(format!("writing stopped: {error}")),
        }
        Ok(Summary { path: self.path.clone(), written, ending, messages })
    }

    fn halt(&mut self) -> Option<Emptying> {
        self.stop.store(true, Ordering::Release);
        self.region.header().filled.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.region.header().filled, futex::Flags::empty(), u32::MAX >> 1);
        self.thread.take()?.join().ok()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.halt();
        }
    }
}

/// How far the contents of a slot have been written already.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct SlotProgress {
    ordinal: u32,
    thread: u32,
    image: u32,
    records: usize,
}

/// The work of the collector's thread.
struct Emptying {
    region: Arc<Region>,
    writer: TraceWriter,
    progress: Arc<Progress>,
    slots: Vec<SlotProgress>,
    modules_written: usize,
    records: Vec<Record>,
    /// Why nothing is written any more.
    cut: Option<String>,
}

impl Emptying {
    fn new(region: Arc<Region>, writer: TraceWriter, progress: Arc<Progress>) -> Emptying {
        Emptying {
            region,
            writer,
            progress,
            slots: Vec::new(),
            modules_written: 0,
            records: Vec::with_capacity(SLOT_RECORDS),
            cut: None,
        }
    }

    fn run(mut self, stop: &AtomicBool) -> Emptying {
        let mut snapshot_due = Instant::now() + SNAPSHOT_EVERY;
        let timeout =
            futex::Timespec { tv_sec: POLL.as_secs() as i64, tv_nsec: i64::from(POLL.subsec_nanos()) };
        while !stop.load(Ordering::Acquire) {
            let region = Arc::clone(&self.region);
            let filled = &region.header().filled;
            let before = filled.load(Ordering::Acquire);
            let emptied = self.empty_full_slots();
            if Instant::now() >= snapshot_due {
                self.note_modules();
                self.take_unfinished_slots(false);
                snapshot_due = Instant::now() + SNAPSHOT_EVERY;
            }
            if emptied == 0 {
                // Returns at once if a slot was filled since `before`; every other outcome means: look again.
                let _ = futex::wait(filled, futex::Flags::empty(), before, Some(&timeout));
            }
        }
        self
    }

    fn slot(&mut self, slot: usize) -> &mut SlotProgress {
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, SlotProgress::default());
        }
        &mut self.slots[slot]
    }

    /// Writes, zeroes and frees the slots that are full; says how many.
    fn empty_full_slots(&mut self) -> usize {
        let region = Arc::clone(&self.region);
        let mut count = 0;
        for slot in 0..region.slots_high() {
            let header = region.slot_header(slot);
            if header.state.load(Ordering::Acquire) != slot_state::FULL {
                continue;
            }
            let used = (header.records.load(Ordering::Relaxed) as usize).min(SLOT_RECORDS);
            self.write_slot(slot, used, true);
            *self.slot(slot) = SlotProgress::default();
            region.clear_slot(slot, used);
            header.state.store(slot_state::FREE, Ordering::Release);
            region.header().pending.fetch_sub(1, Ordering::AcqRel);
            count += 1;
            // Wake early: a program that waits shall not wait for the rest of the slots.
            region.header().emptied.fetch_add(1, Ordering::Release);
            let _ = futex::wake(&region.header().emptied, futex::Flags::empty(), u32::MAX >> 1);
        }
        count
    }

    /// Writes what slots hold that are being filled. `last`: the program is gone, take everything.
    fn take_unfinished_slots(&mut self, last: bool) {
        let region = Arc::clone(&self.region);
        for slot in 0..region.slots_high() {
            if region.slot_header(slot).state.load(Ordering::Acquire) == slot_state::FILLING {
                self.write_slot(slot, SLOT_RECORDS, last);
            }
        }
    }

    /// Writes the records of a slot that have not been written yet, up to `to`. Unless the slot is `complete`, the last
    /// event is held back, because its later records may be missing.
    fn write_slot(&mut self, slot: usize, to: usize, complete: bool) {
        let region = Arc::clone(&self.region);
        let now = owner(&region, slot);
        let progress = self.slot(slot);
        if (SlotProgress { records: 0, ..*progress }) != now {
            *progress = now;
        }
        let from = progress.records;
        self.records.clear();
        region.read_slot(slot, from, to, &mut self.records);
        if !complete {
            if owner(&region, slot) != now {
                // The slot had just been taken and its owner was not yet written down: next time.
                return;
            }
            self.records.truncate(last_event_begins(&self.records));
        }
        self.slot(slot).records = from + self.records.len();
        if self.cut.is_some() {
            return;
        }
        let origin =
            Origin { thread: now.thread, image: now.image, ordinal: now.ordinal, first_record: from as u32 };
        if let Err(error) = self.writer.records(origin, &self.records) {
            self.cut = Some(format!("writing stopped: {error}"));
        }
        let written = self.writer.written();
        self.progress.events.store(written.events, Ordering::Relaxed);
        self.progress.bytes.store(written.bytes, Ordering::Relaxed);
    }

    /// Writes modules that the program has announced since the last time.
    fn note_modules(&mut self) {
        let known = self.region.modules();
        if known <= self.modules_written {
            return;
        }
        let modules: Vec<ModuleMeta> = (self.modules_written..known)
            .map(|ix| {
                let entry = self.region.module(ix);
                let path = &entry.path[..usize::from(entry.path_bytes)];
                let build_id = &entry.build_id[..usize::from(entry.build_id_bytes)];
                ModuleMeta {
                    path: String::from_utf8_lossy(path).into_owned(),
                    start: entry.start,
                    end: entry.end,
                    bias: entry.bias,
                    build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
                    image: entry.image,
                }
            })
            .collect();
        self.modules_written = known;
        if let Err(error) = self.writer.modules(&modules) {
            self.cut.get_or_insert(format!("writing stopped: {error}"));
        }
    }

    fn ending(&self, exit: ExitStatus, messages_dropped: u32) -> Ending {
        let header = self.region.header();
        let program_state = match header.state.load(Ordering::Acquire) {
            state::NONE => ProgramState::Unattached,
            state::EXITED => ProgramState::Exited,
            state::EXECED => ProgramState::Execed,
            state::REFUSED => ProgramState::Refused,
            _ => ProgramState::Running,
        };
        let cut = self.cut.clone().or_else(|| match (program_state, exit.signal()) {
            (ProgramState::Unattached, _) => {
                Some("no Raddle runtime attached to the program, so nothing was recorded".to_owned())
            }
            (ProgramState::Refused, _) => Some("the runtime gave up; see its messages".to_owned()),
            (_, Some(signal)) => Some(format!(
                "the program was killed by signal {signal} ({})",
                crate::file::meta::signal_name(signal)
            )),
            (ProgramState::Execed, None) => {
                Some("the program became another one (exec) that was not recorded".to_owned())
            }
            (ProgramState::Running, None) => {
                Some("the program left without telling its runtime (for example through _exit)".to_owned())
            }
            (ProgramState::Exited, None) => None,
        });
        Ending {
            state: program_state,
            exit_status: exit.code(),
            signal: exit.signal(),
            cut,
            threads: header.threads.load(Ordering::Relaxed),
            images: header.images.load(Ordering::Relaxed),
            messages_dropped,
            events: self.writer.written().events,
            ended_unix_ms: unix_ms(),
        }
    }
}

/// Whose records a slot holds, none of them written yet.
fn owner(region: &Region, slot: usize) -> SlotProgress {
    let header = region.slot_header(slot);
    SlotProgress {
        ordinal: header.ordinal.load(Ordering::Acquire),
        thread: header.thread.load(Ordering::Acquire),
        image: header.image.load(Ordering::Acquire),
        records: 0,
    }
}

/// Where the last event of a run of records begins, with the stack records that belong to it.
fn last_event_begins(records: &[Record]) -> usize {
    records
        .iter()
        .rposition(|record| record.tag_byte() != Tag::Ext as u8 && record.tag_byte() != Tag::Text as u8)
        .unwrap_or(0)
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
