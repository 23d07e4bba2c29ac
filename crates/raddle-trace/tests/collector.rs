//! The collector, with this test in the part of the program: it fills slots exactly as the runtime does.

use raddle_trace::collector::{Collector, Summary};
use raddle_trace::file::writer::Origin;
use raddle_trace::file::{Ending, ProgramInfo, TraceFile, TraceInfo, TraceWriter};
use raddle_trace::region::{Region, RegionConfig};
use raddle_trace::{EventSource, MemoryTrace, Op};
use raddle_wire::record::{Record, SyncOp, Tag, access};
use raddle_wire::region::{ModuleEntry, SLOT_RECORDS, SLOTS_MAX, message_level, slot_state, state};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// One thread of the pretended program.
struct Actor {
    region: Arc<Region>,
    thread: u32,
    ordinal: u32,
    slot: Option<usize>,
    at: usize,
}

impl Actor {
    fn new(region: &Arc<Region>, thread: u32) -> Actor {
        Actor { region: Arc::clone(region), thread, ordinal: 0, slot: None, at: 0 }
    }

    fn close(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        let (header, slot) = (self.region.header(), self.region.slot_header(slot));
        slot.records.store(self.at as u32, Ordering::Relaxed);
        header.pending.fetch_add(1, Ordering::Relaxed);
        slot.state.store(slot_state::FULL, Ordering::Release);
        header.filled.fetch_add(1, Ordering::Release);
        wake(&header.filled);
    }

    fn reserve(&mut self, records: usize) {
        if self.slot.is_some() && self.at + records <= SLOT_RECORDS {
            return;
        }
        self.close();
        let region = Arc::clone(&self.region);
        loop {
            let header = region.header();
            if header.pending.load(Ordering::Relaxed) < header.pending_max {
                let free = (0..SLOTS_MAX).find(|&slot| {
                    let state = &region.slot_header(slot).state;
                    let (free, filling) = (slot_state::FREE, slot_state::FILLING);
                    state.compare_exchange(free, filling, Ordering::Acquire, Ordering::Relaxed).is_ok()
                });
                let slot = free.expect("there are enough slots");
                let slot_header = region.slot_header(slot);
                slot_header.thread.store(self.thread, Ordering::Relaxed);
                slot_header.ordinal.store(self.ordinal, Ordering::Relaxed);
                header.slots_high.fetch_max(slot as u32 + 1, Ordering::Relaxed);
                self.ordinal += 1;
                (self.slot, self.at) = (Some(slot), 0);
                return;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn write(&mut self, record: Record) {
        let slot = self.slot.expect("reserved");
        self.region.write_record(slot, self.at, record);
        self.at += 1;
    }

    fn access(&mut self, pc: u64, address: u64) {
        self.reserve(1);
        self.write(Record::new(Tag::Access, access::WRITE | 2, pc, address));
    }

    fn sync(&mut self, op: SyncOp, object: u64, arg: u64) -> u64 {
        self.reserve(2);
        let sequence = self.region.header().sequence.fetch_add(1, Ordering::SeqCst);
        self.write(Record::new(Tag::Sync, op as u8, 0x40_1000, object));
        self.write(Record::new(Tag::Ext, 0, arg, sequence));
        sequence
    }
}

fn wake(word: &AtomicU32) {
    let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::empty(), 1);
}

fn begin(folder: &Path, config: &RegionConfig) -> (Arc<Region>, Collector, PathBuf) {
    let path = folder.join("trace.raddle");
    let region = Arc::new(Region::create(config).unwrap());
    region.header().state.store(state::RUNNING, Ordering::Release);
    let program = ProgramInfo { command: vec!["./bank".into()], directory: "/tmp".into() };
    let collector = Collector::start(Arc::clone(&region), &path, program).unwrap();
    (region, collector, path)
}

fn read(path: &Path) -> (TraceFile, MemoryTrace) {
    let mut file = TraceFile::open(path).unwrap();
    let trace = MemoryTrace::read(&mut file).unwrap();
    (file, trace)
}

fn exited(region: &Region, collector: Collector) -> Summary {
    region.header().state.store(state::EXITED, Ordering::Release);
    collector.finish(ExitStatus::from_raw(3 << 8)).unwrap()
}

#[test]
fn many_threads_under_back_pressure_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = RegionConfig { pending_max: 2, ..RegionConfig::default() };
    let (region, collector, path) = begin(folder.path(), &config);
    const THREADS: u32 = 6;
    const ROUNDS: u64 = 3000;
    let mut main = Actor::new(&region, 0);
    main.sync(SyncOp::Start, 0, 0);
    for thread in 1..=THREADS {
        main.sync(SyncOp::Fork, u64::from(thread), 0);
    }
    std::thread::scope(|scope| {
        for thread in 1..=THREADS {
            let region = &region;
            scope.spawn(move || {
                let mut actor = Actor::new(region, thread);
                actor.sync(SyncOp::Start, 0, 0);
                for round in 0..ROUNDS {
                    let sequence = actor.sync(SyncOp::Lock, 0x1000, 0);
                    // The address says where in the order this access belongs.
                    actor.access(0x40_2000 + round % 7, sequence * 8);
                    actor.sync(SyncOp::Unlock, 0x1000, 0);
                }
                actor.sync(SyncOp::End, 0, 0);
                actor.close();
            });
        }
    });
    for thread in 1..=THREADS {
        main.sync(SyncOp::Join, u64::from(thread), 0);
    }
    let summary = exited(&region, collector);
    assert_eq!(summary.ending.cut, None);
    assert_eq!(summary.ending.exit_status, Some(3));
    assert_eq!(summary.written.events, 1 + u64::from(THREADS) * (4 + 3 * ROUNDS));
    assert_eq!(region.header().pending.load(Ordering::Relaxed), 0);

    let (file, trace) = read(&path);
    assert_eq!((file.damaged(), file.index().cut()), (0, None));
    assert_eq!(trace.tables.threads.len(), 1 + THREADS as usize);
    assert_eq!(trace.tables.threads[2].name, "1.2");
    // Main's Start is not handed out.
    assert_eq!(trace.events.len() as u64, summary.written.events - 1);
    let mut last = 0;
    for event in &trace.events {
        if let Op::Write { addr, .. } = event.op {
            assert!(addr.0 / 8 >= last, "accesses follow their lock");
            last = addr.0 / 8;
        }
    }
}

#[test]
fn a_killed_program_leaves_everything_up_to_its_last_complete_event() {
    let folder = tempfile::tempdir().unwrap();
    let (region, collector, path) = begin(folder.path(), &RegionConfig::default());
    let mut main = Actor::new(&region, 0);
    main.sync(SyncOp::Start, 0, 0);
    main.access(0x40_2000, 0x5000);
    main.sync(SyncOp::Fork, 1, 0);
    let mut child = Actor::new(&region, 1);
    child.sync(SyncOp::Start, 0, 0);
    child.access(0x40_3000, 0x6000);
    // Killed between the two records of an event, and between the two words of a record.
    child.write(Record::new(Tag::Sync, SyncOp::Lock as u8, 0x40_3004, 0x7000));
    main.reserve(1);
    region.write_record(main.slot.unwrap(), main.at, Record { word0: 0, word1: 0x9999 });
    let summary = collector.finish(ExitStatus::from_raw(9)).unwrap();
    assert_eq!(summary.ending.signal, Some(9));
    let (file, trace) = read(&path);
    assert_eq!(file.index().cut().unwrap(), "the program was killed by signal 9 (SIGKILL)");
    let ops: Vec<&Op> = trace.events.iter().map(|event| &event.op).collect();
    assert!(
        matches!(ops[..], [Op::Write { .. }, Op::Fork { .. }, Op::Start { .. }, Op::Write { .. }]),
        "{ops:?}"
    );
    assert_eq!(file.damaged(), 1, "the half event is dropped and counted");
}

#[test]
fn modules_messages_and_state_reach_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (region, collector, path) =
        begin(folder.path(), &RegionConfig { seed: 99, ..RegionConfig::default() });
    let mut module = ModuleEntry {
        start: 0x1000,
        end: 0x2000,
        bias: 0x1000,
        path_bytes: 9,
        build_id_bytes: 2,
        image: 0,
        build_id: [0; 32],
        path: [0; 448],
    };
    module.path[..9].copy_from_slice(b"/bin/bank");
    module.build_id[..2].copy_from_slice(&[0xab, 0x01]);
    region.write_module(0, module);
    region.write_message(message_level::ERROR, "two runtimes in one process");
    region.header().state.store(state::REFUSED, Ordering::Release);
    collector.finish(ExitStatus::from_raw(66 << 8)).unwrap();
    let (file, trace) = read(&path);
    let index = file.index();
    assert_eq!(index.info.program.command, ["./bank"]);
    assert_eq!(index.info.seed, 99);
    assert_eq!(trace.tables.modules[0].path, "/bin/bank");
    assert_eq!(trace.tables.modules[0].build_id, [0xab, 0x01]);
    assert_eq!(index.messages[0].text, "two runtimes in one process");
    assert_eq!(index.ending.as_ref().unwrap().state, raddle_trace::file::meta::ProgramState::Refused);
    assert!(index.cut().unwrap().contains("gave up"));
}

#[test]
fn a_file_without_an_end_has_the_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let (region, collector, path) = begin(folder.path(), &RegionConfig::default());
    let mut main = Actor::new(&region, 0);
    main.sync(SyncOp::Start, 0, 0);
    main.access(0x40_2000, 0x5000);
    main.access(0x40_2004, 0x5004);
    // The slot is far from full: only a snapshot can bring it into the file, without the event that is still last.
    while collector.progress().events.load(Ordering::Relaxed) < 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    main.access(0x40_2008, 0x5008);
    drop(collector);
    let (file, trace) = read(&path);
    assert!(file.index().ending.is_none());
    assert!(file.index().cut().unwrap().contains("interrupted"));
    assert_eq!(trace.events.len(), 1);
}

#[test]
fn snapshots_and_the_rest_of_a_slot_join_without_a_seam() {
    let folder = tempfile::tempdir().unwrap();
    let (region, collector, path) = begin(folder.path(), &RegionConfig::default());
    let mut main = Actor::new(&region, 0);
    main.sync(SyncOp::Start, 0, 0);
    for round in 0..3 {
        let before = collector.progress().events.load(Ordering::Relaxed);
        for step in 0..10 {
            main.sync(SyncOp::Lock, 0x1000, 0);
            main.access(0x40_2000, (round * 10 + step) * 8);
            main.sync(SyncOp::Unlock, 0x1000, 0);
        }
        while collector.progress().events.load(Ordering::Relaxed) < before + 29 {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    main.close();
    exited(&region, collector);
    let (file, trace) = read(&path);
    assert!(file.index().streams[0].chunks.len() >= 4);
    let writes: Vec<u64> = trace
        .events
        .iter()
        .filter_map(|event| match event.op {
            Op::Write { addr, .. } => Some(addr.0 / 8),
            _ => None,
        })
        .collect();
    assert_eq!(writes, (0..30).collect::<Vec<_>>());
    assert_eq!(trace.events.len(), 90);
}

#[test]
fn images_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let (region, collector, path) = begin(folder.path(), &RegionConfig::default());
    let mut before = Actor::new(&region, 0);
    before.sync(SyncOp::Start, 0, 0);
    before.access(0x40_2000, 0x5000);
    before.sync(SyncOp::ProcessExec, 0, 0);
    before.write(Record::new(
        Tag::Text,
        8,
        u64::from_le_bytes(*b"/bin/l\0\0"),
        u64::from_le_bytes(*b"s\0\0\0\0\0\0\0"),
    ));
    let mut after = Actor::new(&region, 0);
    after.reserve(2);
    region.slot_header(after.slot.unwrap()).image.store(1, Ordering::Relaxed);
    after.sync(SyncOp::Start, 0, 0);
    after.access(0x40_2000, 0x5000);
    exited(&region, collector);
    let (_, trace) = read(&path);
    assert_eq!(trace.tables.threads.len(), 2);
    assert_eq!(trace.tables.threads[1].name, "1@1");
    let Op::ProcessExec { path } = trace.events[1].op else { panic!("{:?}", trace.events[1]) };
    assert_eq!(trace.tables.text(path), "/bin/ls\0");
    assert!(
        trace
            .events
            .iter()
            .any(|event| matches!(event.op, Op::Write { addr, .. } if addr.0 == 1 << 48 | 0x5000))
    );
}

/// Runs one test of this binary in a process of its own, which may limit the size of its files: the signal for that is
/// ignored.
fn limited(test: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let me = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; exec \"$0\" --exact --ignored \"$1\" --nocapture";
    let output = std::process::Command::new("sh")
        .args(["-c", script, me.to_str().unwrap(), test])
        .env("RADDLE_TEST_FOLDER", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    folder
}

#[test]
fn a_full_disk_stops_the_writing_and_says_so() {
    let folder = limited("disk_is_full_inside");
    let (file, trace) = read(&folder.path().join("trace.raddle"));
    let cut = file.index().cut().unwrap();
    assert!(cut.starts_with("writing stopped: "), "{cut}");
    assert_eq!(file.index().damage, None);
    assert_eq!(trace.tables.modules.len(), 1);
    assert!(!trace.events.is_empty());
    assert_eq!(trace.events.len() as u64, file.index().ending.as_ref().unwrap().events - 1);
}

#[test]
#[ignore = "run by a_full_disk_stops_the_writing_and_says_so"]
fn disk_is_full_inside() {
    let Some(folder) = std::env::var_os("RADDLE_TEST_FOLDER") else { return };
    let (region, collector, _) = begin(Path::new(&folder), &RegionConfig::default());
    // Only now, because the limit holds for the region as well.
    let limit = rustix::process::Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    let mut main = Actor::new(&region, 0);
    main.sync(SyncOp::Start, 0, 0);
    let mut random = 1u64;
    for _ in 0..400_000 {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        main.access(0x40_2000, random >> 16);
    }
    main.close();
    let mut module = region.module(0);
    module.path_bytes = 4;
    region.write_module(0, module);
    let summary = exited(&region, collector);
    assert!(summary.ending.cut.is_some());
}

/// A limit that falls right behind a chunk of records must not take the room of the last chunk.
#[test]
fn a_limit_on_files_leaves_room_for_the_end() {
    limited("limit_behind_a_chunk_inside");
}

#[test]
#[ignore = "run by a_limit_on_files_leaves_room_for_the_end"]
fn limit_behind_a_chunk_inside() {
    let Some(folder) = std::env::var_os("RADDLE_TEST_FOLDER") else { return };
    let mut random = 1u64;
    let records: Vec<Record> = (0..20_000)
        .map(|_| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            Record::new(Tag::Access, access::WRITE | 2, 0x40_2000, random >> 16)
        })
        .collect();
    let write = |name: &str| -> (Vec<u64>, std::io::Result<()>) {
        let path = Path::new(&folder).join(name);
        let mut writer = TraceWriter::create(&path, &TraceInfo::default()).unwrap();
        let mut ends = Vec::new();
        for ordinal in 0..6 {
            let origin = Origin { ordinal, ..Origin::default() };
            if writer.records(origin, &records).is_ok() {
                ends.push(writer.written().bytes);
            }
        }
        (ends, writer.finish(&Ending::default()).map(|_| ()))
    };
    let (ends, finished) = write("free.trace");
    finished.unwrap();
    let limit = Some(ends[4] + 20);
    rustix::process::setrlimit(
        rustix::process::Resource::Fsize,
        rustix::process::Rlimit { current: limit, maximum: limit },
    )
    .unwrap();
    let (some, finished) = write("limited.trace");
    assert!(!some.is_empty() && some.len() < ends.len(), "{some:?} of {ends:?}");
    finished.unwrap();
}

#[test]
fn an_unwritable_place_is_an_error_that_names_it() {
    let region = Arc::new(Region::create(&RegionConfig::default()).unwrap());
    let error =
        Collector::start(region, Path::new("/nonexistent/trace"), ProgramInfo::default()).err().unwrap();
    assert!(error.to_string().contains("/nonexistent/trace"), "{error}");
}

#[test]
fn reading_in_batches_is_the_same_as_reading_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (region, collector, path) = begin(folder.path(), &RegionConfig::default());
    let mut main = Actor::new(&region, 0);
    main.sync(SyncOp::Start, 0, 0);
    for step in 0..20_000 {
        main.access(0x40_2000, step * 4);
    }
    exited(&region, collector);
    let mut file = TraceFile::open(&path).unwrap();
    let (mut batch, mut seen) = (Vec::new(), 0u64);
    loop {
        file.next_batch(&mut batch).unwrap();
        if batch.is_empty() {
            break;
        }
        for event in &batch {
            assert!(matches!(event.op, Op::Write { addr, .. } if addr.0 == seen * 4));
            seen += 1;
        }
    }
    assert_eq!(seen, 20_000);
}
