//! The region: one piece of shared memory between the `raddle` process and the tested program.
//!
//! `raddle` creates it (a memfd), fills in the configuration, and names it in the environment variable [`ENV_REGION`]
//! as a path that the program can open. The runtime maps it before `main`. Because the region belongs to the `raddle`
//! process as well, nothing that a thread wrote is lost when the program is killed.
//!
//! ```text
//! 0                      Header
//! MODULES_OFFSET         ModuleEntry  x MODULES_MAX
//! MESSAGES_OFFSET        MessageEntry x MESSAGES_MAX
//! SLOT_HEADERS_OFFSET    SlotHeader   x SLOTS_MAX
//! PROFILE_OFFSET         ProfileEntry x PROFILE_MAX
//! SLOTS_OFFSET           SLOTS_MAX slots of SLOT_BYTES, each a run of records
//! REPORTS_OFFSET         ReportEntry  x REPORTS_MAX (see `report`)
//! DEPENDENCIES_OFFSET    DEPENDENCY_WORDS words of lock dependencies
//! END_OFFSET             EndBlock: the crash report ([`crate::crash`])
//! BLOB_OFFSET            blob_bytes bytes: schedules and other input of variable size
//! (next page)            results of the fork server, if there is one ([`crate::server`])
//! (next page)            the journal, if there is one ([`crate::journal`])
//! ```
//!
//! The region is sparse: only slots that are used cost memory.
//!
//! # Slots
//!
//! A thread owns one slot at a time and fills it with records. States go `FREE -> FILLING -> FULL -> FREE`: the
//! program takes a free slot by compare-exchange (lowest index first, so that memory use follows the number of running
//! threads), the collector empties full ones, zeroes them and frees them. `thread` and `ordinal` say whose records
//! these are and in which order a thread filled its slots. When `pending` (full and not yet emptied) reaches
//! `pending_max`, the program waits: back-pressure instead of unbounded memory. When the program is gone, the
//! collector takes what is in `FILLING` slots up to the first zero tag.

use crate::follow::{APPLICATIONS_MAX, Application};
use crate::server::ServerBlock;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Environment variable with the path of the region (`/proc/PID/fd/N`).
pub const ENV_REGION: &str = "RADDLE_REGION";

pub const MAGIC: u64 = u64::from_le_bytes(*b"RADDLE\x01\x02");

pub const MODULES_MAX: usize = 1024;
pub const MESSAGES_MAX: usize = 64;
pub const SLOTS_MAX: usize = 16384;
pub const SLOT_BYTES: usize = 32 * 1024;
pub const SLOT_RECORDS: usize = SLOT_BYTES / crate::record::RECORD_BYTES;

pub const HEADER_BYTES: usize = 4096;
pub const MODULES_OFFSET: usize = HEADER_BYTES;
pub const MESSAGES_OFFSET: usize = MODULES_OFFSET + MODULES_MAX * size_of::<ModuleEntry>();
pub const SLOT_HEADERS_OFFSET: usize = MESSAGES_OFFSET + MESSAGES_MAX * size_of::<MessageEntry>();
pub const PROFILE_OFFSET: usize = SLOT_HEADERS_OFFSET + SLOTS_MAX * size_of::<SlotHeader>();
pub const SLOTS_OFFSET: usize = PROFILE_OFFSET + PROFILE_MAX * size_of::<ProfileEntry>();
pub const REPORTS_OFFSET: usize = SLOTS_OFFSET + SLOTS_MAX * SLOT_BYTES;
pub const DEPENDENCIES_OFFSET: usize =
    REPORTS_OFFSET + crate::report::REPORTS_MAX * crate::report::REPORT_BYTES;
pub const END_OFFSET: usize =
    (DEPENDENCIES_OFFSET + crate::report::DEPENDENCY_WORDS * 8).next_multiple_of(4096);
pub const BLOB_OFFSET: usize = END_OFFSET + crate::crash::END_BYTES;

/// Bytes of a region with a blob of the given size.
pub const fn region_bytes(blob_bytes: usize) -> usize {
    (BLOB_OFFSET + blob_bytes).next_multiple_of(4096)
}

/// Where the journal of the region that this header describes begins.
pub const fn journal_offset(header: &Header) -> usize {
    let ring = if header.server.wanted != 0 { crate::server::RING_BYTES } else { 0 };
    region_bytes(header.blob_bytes as usize) + ring
}

/// Bytes of the whole region that this header describes.
pub const fn bytes_of(header: &Header) -> usize {
    journal_offset(header) + (header.journal_max as usize).next_multiple_of(4096)
}

/// Bits of [`Header::observe`].
pub mod observe {
    pub const RECORD: u32 = 1 << 0;
    pub const DETECT: u32 = 1 << 1;
}

/// Values of [`Header::steer`].
pub mod steer {
    pub const FREE: u32 = 0;
    pub const NOISE: u32 = 1;
    pub const CONTROL: u32 = 2;
    pub const REPLAY: u32 = 3;
}

/// Bits of [`Header::options`].
pub mod option {
    /// Record plain memory accesses (not only synchronisation).
    pub const MEMORY: u64 = 1 << 0;
    /// Record memory accesses also before the first thread is created.
    pub const BEFORE_FIRST_FORK: u64 = 1 << 1;
    /// Do not drop accesses that repeat an earlier one of the same thread segment.
    pub const KEEP_REDUNDANT: u64 = 1 << 2;
    /// Record allocations.
    pub const ALLOCATIONS: u64 = 1 << 3;
    /// After the last step of a schedule: go on under round robin instead of running free.
    pub const THEN_ROUND_ROBIN: u64 = 1 << 4;
    /// Count visible operations by thread and object ([`super::ProfileEntry`]).
    pub const PROFILE: u64 = 1 << 5;
    /// Every plain access is a visible operation.
    pub const VISIBLE_ALL: u64 = 1 << 6;
    /// Plain accesses made at the listed sites are visible operations.
    pub const VISIBLE_SITES: u64 = 1 << 7;
    /// Record what comes from outside (system calls, signals) in the journal, or take it from the schedule.
    pub const DEMO: u64 = 1 << 8;
    /// Addresses of allocations depend on the order of allocations alone.
    pub const STABLE_MEMORY: u64 = 1 << 9;
    /// The program runs under a debugger: stop where the run would be ended.
    pub const DEBUGGER: u64 = 1 << 10;
    /// Steered threads run one at a time between visible operations as well: the next turn begins when everybody has
    /// come to an operation.
    pub const ONE_AT_A_TIME: u64 = 1 << 11;
    /// Map sparse tables from files in memory, as is done by itself where the system refuses them otherwise.
    pub const SHARED_TABLES: u64 = 1 << 24;
    /// Online detection: end the program at the first report that `raddle` shows.
    pub const HALT_ON_ERROR: u64 = 1 << 32;
    /// Online detection: look for lock orders that can close a cycle.
    pub const LOCK_ORDER: u64 = 1 << 33;
    /// Online detection: report misuse of locks.
    pub const LOCK_MISUSE: u64 = 1 << 34;
    /// Online detection: report threads that nobody joined.
    pub const THREAD_LEAKS: u64 = 1 << 35;
    /// Online detection: atomic loads may read older stores where the language allows it.
    pub const WEAK: u64 = 1 << 36;
}

/// Places of [`Header::detect`]: settings of online detection.
pub mod detect {
    /// Records of history kept for a thread slot, as a power of two (0: the default).
    pub const HISTORY_BITS: usize = 0;
    /// Exit status when a report ends the program.
    pub const EXIT_STATUS: usize = 1;
    /// How a load chooses among the stores that it may read ([`super::weak`]).
    pub const WEAK_CHOICE: usize = 2;
    pub const COUNT: usize = 4;
}

/// Values of [`Header::detect`] at [`detect::WEAK_CHOICE`].
pub mod weak {
    /// The oldest store with probability 1/2, the next with 1/4, and so on.
    pub const OLDEST: u32 = 0;
    /// Each with the same probability.
    pub const UNIFORM: u32 = 1;
    /// The newest store with probability 1/2, the one before with 1/4, and so on.
    pub const NEWEST: u32 = 2;
}

/// Values of [`Header::strategy`].
pub mod strategy {
    pub const RANDOM: u32 = 0;
    pub const ROUND_ROBIN: u32 = 1;
    pub const QUEUE: u32 = 2;
    pub const PCT: u32 = 3;
    pub const POS: u32 = 4;
    pub const DELAY: u32 = 5;
    pub const SURW: u32 = 6;
    /// No preemption except where a list says so; for shrinking.
    pub const GUIDED: u32 = 7;
    /// Along a given prefix of threads, then on without preemption; for exhaustive search.
    pub const FOLLOW: u32 = 8;
    /// Reads-from constraints over random priorities of operations.
    pub const RFF: u32 = 9;
    /// Stretches of each thread's operations in a random order.
    pub const PERIOD: u32 = 10;
}

/// Places in [`Header::parameters`] of a run with noise.
pub mod noise {
    /// Of a thousand chances, so many are taken.
    pub const PER_MILLE: usize = 0;
    /// Longest sleep in microseconds; 0: only yields.
    pub const STRENGTH_US: usize = 1;
    /// Bits [`BEFORE`] and [`AFTER`].
    pub const PLACE: usize = 2;
    /// Bit k: operations of kind k ([`crate::step`]). 0: all.
    pub const KINDS: usize = 3;

    /// What noise does ([`SLEEP`] and the like).
    pub const HOW: usize = 4;
    /// Not 0: only at operations on one variable in [`VARIABLES`], which the seed chooses.
    pub const ONE_VARIABLE: usize = 5;

    /// Values of [`HOW`].
    pub const SLEEP: u64 = 0;
    /// Computes for as long, and keeps its processor.
    pub const BUSY: u64 = 1;
    /// Stops one thread of the run for as long as others get on.
    pub const HALT: u64 = 2;
    /// Waits until another thread has come to a chance as well.
    pub const MEET: u64 = 3;

    pub const VARIABLES: u64 = 4;

    /// The region's blob: how many stretches of code have noise, and for each [`RANGE_WORDS`] words: its first byte and
    /// the byte behind its last, in the numbering of its file, and the hash of the file's name. None: everywhere.
    pub const RANGE_WORDS: usize = 3;
    pub const RANGES_MAX: usize = 256;

    pub const BEFORE: u64 = 1;
    pub const AFTER: u64 = 2;
}

/// Values of [`Header::state`].
pub mod state {
    /// No runtime has attached (the program is not instrumented, or died before `main`).
    pub const NONE: u32 = 0;
    pub const RUNNING: u32 = 1;
    /// The program ended through `exit` or a return from `main`.
    pub const EXITED: u32 = 2;
    /// The program became another one with `exec`.
    pub const EXECED: u32 = 3;
    /// The runtime gave up; the last message says why.
    pub const REFUSED: u32 = 4;
}

/// Written by both sides; every field that changes while the program runs is atomic.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    pub magic: u64,
    pub version: u32,
    pub header_bytes: u32,

    // Configuration, written by `raddle` before the program starts.
    pub observe: u32,
    pub steer: u32,
    pub options: u64,
    pub seed: u64,
    /// Most slots that may be full and not yet emptied before the program waits.
    pub pending_max: u32,
    pub collector_pid: u32,
    pub strategy: u32,
    /// One more than the number of the processor that the program is to stay on; 0: anywhere.
    pub processor: u32,
    /// Parameters of the strategy.
    pub parameters: [u64; 8],
    pub blob_bytes: u64,
    /// Most bytes of the journal; 0: none is written.
    pub journal_max: u64,
    /// Bit n: a demo does not hold the results of function n ([`crate::calls`]); it is really called in a replay too.
    pub calls_left_out: u64,
    /// How long the run took that is to be repeated, in milliseconds; 0: not known.
    pub repeated_run_ms: u64,
    /// See [`detect`].
    pub detect: [u64; detect::COUNT],
    /// As `options` and `detect`, but with what the program itself wants ([`crate::report::text`]): valid once `raddle` has
    /// answered the program's texts.
    pub options_answered: AtomicU64,
    pub detect_answered: [AtomicU64; detect::COUNT],
    /// Grows when the program has too much memory: the runtime is to forget what it can do without.
    pub forget: AtomicU32,

    // Written by the program.
    /// Process that attached first; others apply for a region of their own ([`crate::follow`]).
    pub claimed_pid: AtomicU32,
    /// Applications are answered.
    pub follows: AtomicU32,
    /// A futex word: how many have applied.
    pub applicants: AtomicU32,
    pub applications: [Application; APPLICATIONS_MAX],
    /// How many program images (exec) of that process attached.
    pub images: AtomicU32,
    pub state: AtomicU32,
    pub exit_status: AtomicI32,
    /// Signal that is killing the program, if the runtime saw it coming.
    pub death_signal: AtomicU32,
    pub threads: AtomicU32,
    pub modules: AtomicU32,
    pub messages: AtomicU32,
    /// Reports of the online detector, also those for which there was no entry.
    pub reports: AtomicU32,
    /// Words of lock dependencies written, also those for which there was no room.
    pub dependency_words: AtomicU32,
    /// One more than the highest slot ever used.
    pub slots_high: AtomicU32,
    /// Next sequence number of synchronisation events.
    pub sequence: AtomicU64,

    // Futex words.
    /// Grows when a slot becomes full; the collector waits for it.
    pub filled: AtomicU32,
    /// Grows when a slot was emptied; the program waits for it under back-pressure.
    pub emptied: AtomicU32,
    /// Slots that are full and not yet emptied.
    pub pending: AtomicU32,

    // Steering.
    /// One of [`outcome`]; stored last, after everything that explains it.
    pub outcome: AtomicU32,
    /// Steps of the schedule (replay) or decisions (control) taken.
    pub steps: AtomicU64,
    /// Hash of all turns so far: who took which operation ([`crate::step::turn_hash`]).
    pub turns_hash: AtomicU64,
    /// Bytes of the journal that are complete.
    pub journal_bytes: AtomicU64,
    /// How many of `parties` are filled in.
    pub party_count: AtomicU32,
    /// `raddle` is about to end the run and wants to know where the threads are.
    pub report: AtomicU32,
    pub parties: [PartyEntry; PARTIES_MAX],

    pub server: ServerBlock,
}

pub const PARTIES_MAX: usize = 32;

/// A thread's part in what ended a steered run.
#[repr(C)]
#[derive(Debug)]
pub struct PartyEntry {
    pub thread: AtomicU32,
    /// Visible operation (`crate::step`) that it waits for or is about to do; `step::NONE` for a plain access.
    pub kind: AtomicU32,
    pub pc: AtomicU64,
    pub object: AtomicU64,
    /// Thread that holds the object, or `u32::MAX`.
    pub holder: AtomicU32,
    /// Visible operations done by the thread.
    pub ordinal: AtomicU32,
    /// Plain access: bytes and [`crate::record::access`] bits. Otherwise what was expected: kind and ordinal.
    pub detail: AtomicU64,
    /// Hash of the thread's spawn path (`crate::step::hash`).
    pub path: AtomicU64,
    /// What it is doing: index into [`PHASES`].
    pub phase: AtomicU32,
    pub reserved: u32,
}

/// What a thread of a steered run can be doing, as the end of a sentence that begins with its name.
pub const PHASES: [&str; 9] = [
    "does not exist",
    "runs its own code",
    "waits for its turn",
    "has its turn",
    "is blocked",
    "is blocked and can give up",
    "sleeps in the kernel",
    "is parked at a stop point",
    "has ended",
];

impl PartyEntry {
    pub const fn new() -> PartyEntry {
        PartyEntry {
            thread: AtomicU32::new(0),
            kind: AtomicU32::new(0),
            pc: AtomicU64::new(0),
            object: AtomicU64::new(0),
            holder: AtomicU32::new(u32::MAX),
            ordinal: AtomicU32::new(0),
            detail: AtomicU64::new(0),
            path: AtomicU64::new(0),
            phase: AtomicU32::new(0),
            reserved: 0,
        }
    }

    pub fn copy_from(&self, other: &PartyEntry) {
        for (to, from) in [
            (&self.thread, &other.thread),
            (&self.kind, &other.kind),
            (&self.holder, &other.holder),
            (&self.ordinal, &other.ordinal),
            (&self.phase, &other.phase),
        ] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for (to, from) in [
            (&self.pc, &other.pc),
            (&self.object, &other.object),
            (&self.detail, &other.detail),
            (&self.path, &other.path),
        ] {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

impl Default for PartyEntry {
    fn default() -> Self {
        PartyEntry::new()
    }
}

/// Values of [`Header::outcome`]: how a steered run ended, if not by itself.
pub mod outcome {
    pub const NONE: u32 = 0;
    /// Every thread waits, or a cycle of threads waits for each other: `parties` are the waiting threads.
    pub const DEADLOCK: u32 = 1;
    /// All stop points were reached: `parties` are the parked threads.
    pub const PARKED: u32 = 2;
    /// The program did something else than the schedule says: party 0 is the thread and what it did.
    pub const DIVERGED: u32 = 3;
    /// Nothing moved for too long: `parties` are the threads and where they are.
    pub const STUCK: u32 = 4;
    /// More threads than a step word can name.
    pub const TOO_MANY_THREADS: u32 = 5;
}

/// Exit status of a program that the runtime ended because its steered run had an outcome.
pub const OUTCOME_STATUS: i32 = 99;

const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);

pub mod slot_state {
    pub const FREE: u32 = 0;
    pub const FILLING: u32 = 1;
    pub const FULL: u32 = 2;
}

#[repr(C)]
#[derive(Debug)]
pub struct SlotHeader {
    pub state: AtomicU32,
    pub thread: AtomicU32,
    /// n-th slot of this thread.
    pub ordinal: AtomicU32,
    /// Records in a full slot.
    pub records: AtomicU32,
    pub image: AtomicU32,
    pub reserved: [u32; 3],
}

/// Different pairs of thread and object that are counted; more are dropped.
pub const PROFILE_MAX: usize = 4096;

/// How many visible operations a thread did on an object. Entries are a hash table; one with count 0 is free.
#[repr(C)]
#[derive(Debug)]
pub struct ProfileEntry {
    /// Hashes of the spawn paths of the thread and of its parent.
    pub thread: AtomicU64,
    pub parent: AtomicU64,
    pub object: AtomicU64,
    pub count: AtomicU64,
}

pub const MODULE_PATH_MAX: usize = 448;
pub const BUILD_ID_MAX: usize = 32;

/// A mapped file. Entries below `Header::modules` are complete.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleEntry {
    pub start: u64,
    pub end: u64,
    pub bias: u64,
    pub path_bytes: u16,
    pub build_id_bytes: u16,
    pub image: u32,
    pub build_id: [u8; BUILD_ID_MAX],
    pub path: [u8; MODULE_PATH_MAX],
}

const _: () = assert!(size_of::<ModuleEntry>() == 512);

pub const MESSAGE_TEXT_MAX: usize = 500;

pub mod message_level {
    pub const NOTE: u32 = 1;
    pub const WARNING: u32 = 2;
    pub const ERROR: u32 = 3;
}

/// The runtime's one message channel. `level` is stored last; a zero level is an entry not yet complete. Messages
/// beyond [`MESSAGES_MAX`] are counted in `Header::messages` and dropped.
#[repr(C)]
#[derive(Debug)]
pub struct MessageEntry {
    pub level: AtomicU32,
    pub bytes: u32,
    pub text: [u8; MESSAGE_TEXT_MAX],
}

impl Header {
    /// A header as `raddle` writes it before the program starts.
    pub const fn new(observe: u32, steer: u32, options: u64, seed: u64, blob_bytes: u64) -> Header {
        Header {
            magic: MAGIC,
            version: crate::WIRE_VERSION,
            header_bytes: size_of::<Header>() as u32,
            observe,
            steer,
            options,
            seed,
            pending_max: 512,
            collector_pid: 0,
            strategy: 0,
            processor: 0,
            parameters: [0; 8],
            blob_bytes,
            journal_max: 0,
            calls_left_out: 0,
            repeated_run_ms: 0,
            detect: [0; detect::COUNT],
            options_answered: AtomicU64::new(0),
            detect_answered: [const { AtomicU64::new(0) }; detect::COUNT],
            forget: AtomicU32::new(0),
            claimed_pid: AtomicU32::new(0),
            follows: AtomicU32::new(0),
            applicants: AtomicU32::new(0),
            applications: [const { Application::new() }; APPLICATIONS_MAX],
            images: AtomicU32::new(0),
            state: AtomicU32::new(state::NONE),
            exit_status: AtomicI32::new(0),
            death_signal: AtomicU32::new(0),
            threads: AtomicU32::new(0),
            modules: AtomicU32::new(0),
            messages: AtomicU32::new(0),
            reports: AtomicU32::new(0),
            dependency_words: AtomicU32::new(0),
            slots_high: AtomicU32::new(0),
            sequence: AtomicU64::new(0),
            filled: AtomicU32::new(0),
            emptied: AtomicU32::new(0),
            pending: AtomicU32::new(0),
            outcome: AtomicU32::new(outcome::NONE),
            steps: AtomicU64::new(0),
            turns_hash: AtomicU64::new(0),
            journal_bytes: AtomicU64::new(0),
            party_count: AtomicU32::new(0),
            report: AtomicU32::new(0),
            parties: [const { PartyEntry::new() }; PARTIES_MAX],
            server: ServerBlock::new(),
        }
    }
}
