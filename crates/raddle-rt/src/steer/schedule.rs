//! Replay: turns are given in the order of a schedule.
//!
//! The schedule names, for each turn, the thread, which of its visible operations this is, and of what kind. A thread
//! that comes with something else has *diverged*, and so has one whose operation would block although the schedule
//! says that it completes: the run ends there and says what was expected and what was found. Operations marked as
//! failed are not performed; their failure is handed to the program.
//!
//! After the last step come the stop points: a thread is parked before a certain access. When all are parked at the
//! same time, the run has shown what it was meant to show. Without stop points the run goes on under the strategy.

use super::state::{self, Entry, Grant, NOBODY, Phase, Sched, grant};
use super::watch;
use crate::thread::Thread;
use crate::{init, real};
use core::sync::atomic::Ordering;
use raddle_wire::Header;
use raddle_wire::region::{BLOB_OFFSET, MODULES_OFFSET, ModuleEntry, outcome};
use raddle_wire::step::{self, HEAD_WORDS, PLACE_CODE, SITE_WORDS, STOP_WORDS, StepWord};

pub const STOPS_MAX: usize = 8;

#[derive(Clone, Copy)]
struct Stop {
    thread: u64,
    after: u32,
    occurrence: u32,
    code: bool,
    address: usize,
    seen: u32,
    parked: bool,
}

/// What a parked thread is about to access.
#[derive(Clone, Copy)]
pub struct ParkedAccess {
    pub pc: u64,
    pub address: usize,
    pub bytes: usize,
    pub aux: u8,
}

impl ParkedAccess {
    pub const fn new() -> ParkedAccess {
        ParkedAccess { pc: 0, address: 0, bytes: 0, aux: 0 }
    }
}

pub struct Replay {
    loaded: bool,
    words: *const u64,
    threads: usize,
    steps: usize,
    cursor: usize,
    stops: [Stop; STOPS_MAX],
    stop_count: usize,
    /// Words of the blob between which the payload still to be given lies.
    payload: usize,
    payload_end: usize,
    orders_calls: bool,
    orders_handlers: bool,
}

impl Replay {
    pub const fn new() -> Replay {
        const NO_STOP: Stop =
            Stop { thread: 0, after: 0, occurrence: 0, code: true, address: 0, seen: 0, parked: false };
        Replay {
            loaded: false,
            words: core::ptr::null(),
            threads: 0,
            steps: 0,
            cursor: 0,
            stops: [NO_STOP; STOPS_MAX],
            stop_count: 0,
            payload: 0,
            payload_end: 0,
            orders_calls: false,
            orders_handlers: false,
        }
    }

    /// Does the schedule still decide?
    pub fn active(&self) -> bool {
        self.loaded && (self.cursor < self.steps || self.stop_count > 0)
    }

    fn word(&self, at: usize) -> u64 {
        // SAFETY: `load` checked that all words it counted lie in the mapped blob.
        unsafe { self.words.add(at).read_volatile() }
    }

    fn step(&self, at: usize) -> StepWord {
        StepWord::unpack(self.word(HEAD_WORDS + self.threads + at))
    }

    fn next(&self) -> Option<StepWord> {
        if self.cursor < self.steps { Some(self.step(self.cursor)) } else { None }
    }
}

/// Reads the blob. A blob that does not fit its own counts is refused.
pub fn load(sched: &mut Sched, header: &'static Header) {
    let words = (core::ptr::from_ref(header) as usize + BLOB_OFFSET) as *const u64;
    let total = header.blob_bytes as usize / 8;
    let replay = &mut sched.replay;
    replay.words = words;
    let mut head = [usize::MAX; HEAD_WORDS];
    if total >= HEAD_WORDS {
        for (at, word) in head.iter_mut().enumerate() {
            *word = replay.word(at) as usize;
        }
    }
    let [threads, steps, stops, blocks, sites, payload] = head;
    let before_sites =
        threads.saturating_add(steps).saturating_add(stops.saturating_mul(STOP_WORDS)).saturating_add(blocks);
    let needed = before_sites
        .saturating_add(sites.saturating_mul(SITE_WORDS))
        .saturating_add(payload.saturating_add(7) / 8);
    if stops > STOPS_MAX || needed.saturating_add(HEAD_WORDS) > total {
        crate::message::fatal(format_args!("the schedule in the shared region is damaged"));
    }
    replay.threads = threads;
    replay.steps = steps;
    replay.stop_count = stops;
    for i in 0..stops {
        let at = HEAD_WORDS + threads + steps + i * STOP_WORDS;
        let module = replay.word(at + 5);
        let address = replay.word(at + 4) as usize + module_bias(header, module);
        let thread = replay.word(at) as usize;
        replay.stops[i] = Stop {
            thread: if thread < threads { replay.word(HEAD_WORDS + thread) } else { 0 },
            after: replay.word(at + 1) as u32,
            occurrence: replay.word(at + 2) as u32,
            code: replay.word(at + 3) == PLACE_CODE,
            address,
            seen: 0,
            parked: false,
        };
    }
    let at = HEAD_WORDS + before_sites;
    for i in 0..sites {
        let address = replay.word(at + i * SITE_WORDS) as usize;
        super::visible::add_site(address + module_bias(header, replay.word(at + i * SITE_WORDS + 1)));
    }
    replay.payload = at + sites * SITE_WORDS;
    replay.payload_end = replay.payload + payload.div_ceil(8);
    replay.loaded = true;
    let knows = |kind: u8| (0..steps).any(|at| replay.step(at).kind == kind);
    (replay.orders_calls, replay.orders_handlers) = (knows(step::SYSCALL), knows(step::HANDLER));
}

/// Does the schedule know of system calls? One that was made from a trace does not.
pub fn orders_calls(sched: &Sched) -> bool {
    sched.replay.orders_calls
}

/// Does it know of signal handlers?
pub fn orders_handlers(sched: &Sched) -> bool {
    sched.replay.orders_handlers
}

/// What the next step with a payload is to be given. `None`: the schedule has no more.
pub fn next_payload(sched: &mut Sched) -> Option<&'static [u8]> {
    let replay = &mut sched.replay;
    if replay.payload >= replay.payload_end {
        return None;
    }
    let bytes = replay.word(replay.payload) as usize;
    let words = bytes.div_ceil(8);
    if words > replay.payload_end - replay.payload - 1 {
        return None;
    }
    // SAFETY: inside the blob, which stays mapped and is not written while the program runs.
    let payload =
        unsafe { core::slice::from_raw_parts(replay.words.add(replay.payload + 1).cast::<u8>(), bytes) };
    replay.payload += 1 + words;
    Some(payload)
}

/// Where the module with this file name is loaded.
pub fn module_bias(header: &Header, name_hash: u64) -> usize {
    if name_hash == 0 {
        return 0;
    }
    let base = core::ptr::from_ref(header) as usize + MODULES_OFFSET;
    for index in 0..header.modules.load(Ordering::Acquire) as usize {
        // SAFETY: entries below the count are complete.
        let entry = unsafe { &*((base + index * size_of::<ModuleEntry>()) as *const ModuleEntry) };
        let path = &entry.path[..usize::from(entry.path_bytes)];
        let name = match path.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => &path[slash + 1..],
            None => path,
        };
        if step::hash(step::HASH_START, name) == name_hash {
            return entry.bias as usize;
        }
    }
    0
}

/// The schedule's number for a thread.
pub fn thread_of(sched: &Sched, path: u64) -> u32 {
    let replay = &sched.replay;
    if !replay.loaded {
        return NOBODY;
    }
    (0..replay.threads).find(|&i| replay.word(HEAD_WORDS + i) == path).map_or(NOBODY, |i| i as u32)
}

/// Which stops concern a thread, as bits.
pub fn stops_of(sched: &Sched, path: u64) -> u32 {
    let replay = &sched.replay;
    if !replay.loaded {
        return 0;
    }
    (0..replay.stop_count).filter(|&i| replay.stops[i].thread == path).fold(0, |bits, i| bits | 1 << i)
}

/// Whether the program knows the kind of its operation only when it performs it.
fn matches(expected: u8, found: u8) -> bool {
    expected == found || (found == step::ONCE_BEGIN && expected == step::ONCE_PASSED)
}

pub fn arrive(sched: &mut Sched, thread: &mut Thread) -> Grant {
    let me = thread.sched as usize;
    let Some(expected) = sched.replay.next() else {
        // Only stop points are left. An atomic operation can be one; a thread that comes past its own has missed it.
        if thread.stops != 0 {
            let request = sched.entries[me].request;
            if matches!(request.kind, step::LOAD | step::STORE | step::RMW)
                && reached(sched, thread, request.pc, request.object, 1)
            {
                let aux = if request.kind == step::LOAD { 0 } else { raddle_wire::record::access::WRITE };
                park(sched, thread, ParkedAccess { pc: request.pc, address: request.object, bytes: 1, aux });
            } else {
                diverge(sched, me, None);
            }
        }
        return Grant::Wait;
    };
    if sched.one_at_a_time {
        if sched.anybody_runs() {
            return Grant::Wait;
        }
        wake_due(sched);
    }
    if u32::from(expected.thread) != sched.entries[me].schedule_thread {
        return Grant::Wait;
    }
    let found = sched.entries[me].request.kind;
    if sched.is_cancelled_at(thread, found) {
        return Grant::Cancel;
    }
    if expected.kind == step::HANDLER && found != step::HANDLER && expected.ordinal == thread.steps + 1 {
        sched.entries[me].phase = Phase::Acting;
        return Grant::Handler;
    }
    if !matches(expected.kind, found) || expected.ordinal != thread.steps + 1 {
        diverge(sched, me, Some(expected));
    }
    sched.entries[me].phase = Phase::Acting;
    if expected.failed && expected.kind != step::RMW { Grant::Fail } else { Grant::Go }
}

/// The step was taken.
pub fn advance(sched: &mut Sched) {
    sched.replay.cursor += 1;
    sched.decisions += 1;
    if let Some(header) = init::header() {
        header.steps.store(sched.replay.cursor as u64, Ordering::Relaxed);
    }
    match sched.replay.next() {
        Some(_) => wake_due(sched),
        None if sched.replay.active() => {
            // Threads that already wait at an operation may be past their stop.
            let missed = sched.entries.living().find(|&i| {
                // SAFETY: listed threads stay valid.
                sched.entries[i].phase == Phase::Waiting && unsafe { (*sched.entries[i].thread).stops } != 0
            });
            if let Some(index) = missed {
                diverge(sched, index, None);
            }
            conclude_if_parked(sched);
        }
        None => {
            state::replay_is_over();
            sched.chosen = NOBODY;
            sched.choose();
        }
    }
}

/// Wakes the thread of the next step, if it has come to its operation and may begin.
pub fn wake_due(sched: &mut Sched) {
    let Some(next) = sched.replay.next() else { return };
    if sched.one_at_a_time && sched.anybody_runs() {
        // The last one to arrive, to end or to go to sleep does it.
        return;
    }
    let waiting = sched.entries.living().find(|&i| {
        sched.entries[i].schedule_thread == u32::from(next.thread) && sched.entries[i].phase == Phase::Waiting
    });
    if let Some(index) = waiting {
        sched.wake(index);
    }
}

/// The schedule says that the operation completes, but it would block.
pub fn would_block(sched: &mut Sched, thread: &Thread) {
    let expected = sched.replay.next();
    diverge(sched, thread.sched as usize, expected);
}

/// The thread is not given what the schedule promised.
pub fn desynchronised(sched: &mut Sched, index: usize) -> ! {
    let expected = sched.replay.next();
    diverge(sched, index, expected)
}

fn diverge(sched: &mut Sched, index: usize, expected: Option<StepWord>) -> ! {
    if let Some(header) = init::header() {
        let entry = &sched.entries[index];
        let party = &header.parties[0];
        // SAFETY: listed threads stay valid.
        let (steps, path) = unsafe { ((*entry.thread).steps, (*entry.thread).path) };
        party.path.store(path, Ordering::Relaxed);
        party.thread.store(entry.index, Ordering::Relaxed);
        party.kind.store(u32::from(entry.request.kind), Ordering::Relaxed);
        party.pc.store(entry.request.pc, Ordering::Relaxed);
        party.object.store(entry.request.object as u64, Ordering::Relaxed);
        party.ordinal.store(steps + 1, Ordering::Relaxed);
        party.detail.store(expected.map_or(u64::MAX, StepWord::pack), Ordering::Relaxed);
        header.party_count.store(1, Ordering::Relaxed);
        header.outcome.store(outcome::DIVERGED, Ordering::Release);
    }
    state::end_run()
}

/// Nobody has moved for a while.
pub fn look(sched: &mut Sched, elapsed_ms: u64, stuck_ms: u64) {
    // A thread that has been woken, or is in its turn, may be without a processor for long on a loaded machine, so only
    // processor time counts. The caller is known to be awake for another reason.
    let caller = real::gettid();
    let one_at_a_time = sched.one_at_a_time;
    let on_the_way = |entry: &Entry| {
        // Its turn has been given to it, and it is about to see that; the caller, too, after it last looked.
        let granted = entry.phase == Phase::Waiting && entry.grant.load(Ordering::Acquire) == grant::GIVEN;
        granted
            || matches!(entry.phase, Phase::Running | Phase::Waiting | Phase::Acting | Phase::Away)
                && entry.os_tid != caller
                && !watch::is_away(entry)
                && watch::computed_ms(entry) < stuck_ms
                && !(one_at_a_time && entry.phase == Phase::Running && watch::is_lost(entry))
    };
    if sched.entries.people().any(on_the_way) {
        return;
    }
    if sched.one_at_a_time {
        let mut passed = false;
        sched.entries.for_each(|entry| {
            if entry.phase == Phase::Running && (watch::is_away(entry) || watch::is_lost(entry)) {
                entry.phase = Phase::Away;
                passed = true;
            }
        });
        if passed {
            sched.decisions += 1;
            wake_due(sched);
            return;
        }
    }
    let next = sched.replay.next();
    let due = next.and_then(|next| {
        sched.entries.living().find(|&i| sched.entries[i].schedule_thread == u32::from(next.thread))
    });
    match due {
        // The thread whose turn it is sleeps in the kernel: give it some time.
        Some(index)
            if matches!(sched.entries[index].phase, Phase::Running | Phase::Acting | Phase::Away)
                && elapsed_ms < stuck_ms / 4 => {}
        Some(index) => diverge(sched, index, next),
        None if elapsed_ms < stuck_ms / 4 => {}
        None => sched.conclude(outcome::STUCK, |entry| !matches!(entry.phase, Phase::Free | Phase::Ended)),
    }
}

/// In a replay the schedule knows who is woken: the waiting thread whose wake-up comes first.
pub fn next_to_wake(sched: &Sched, on: usize) -> Option<usize> {
    if !sched.replay.active() {
        return None;
    }
    (sched.replay.cursor..sched.replay.steps).find_map(|at| {
        let next = sched.replay.step(at);
        if !matches!(next.kind, step::WAKE | step::FUTEX_WAIT) || next.failed {
            return None;
        }
        sched.entries.living().find(|&i| {
            let entry = &sched.entries[i];
            entry.schedule_thread == u32::from(next.thread) && entry.waits_on == on && !entry.woken
        })
    })
}

#[cold]
#[inline(never)]
pub fn access(thread: &mut Thread, pc: u64, aux: u8, address: usize, bytes: usize) {
    let mut sched = state::lock();
    if !reached(&mut sched, thread, pc, address, bytes) {
        return;
    }
    park(&mut sched, thread, ParkedAccess { pc, address, bytes, aux });
    drop(sched);
    loop {
        // The run ends with the process: by success, or by somebody's divergence.
        real::sleep_us(1_000_000);
    }
}

/// Is this access one of the thread's stop points?
fn reached(sched: &mut Sched, thread: &Thread, pc: u64, address: usize, bytes: usize) -> bool {
    let mut reached = false;
    for i in 0..sched.replay.stop_count {
        let stop = &mut sched.replay.stops[i];
        if thread.stops & 1 << i == 0 || stop.after != thread.steps {
            continue;
        }
        let here = if stop.code {
            stop.address as u64 == pc
        } else {
            (address..address + bytes).contains(&stop.address)
        };
        if here {
            stop.seen += 1;
            stop.parked |= stop.seen == stop.occurrence;
            reached |= stop.parked;
        }
    }
    reached
}

fn park(sched: &mut Sched, thread: &Thread, access: ParkedAccess) {
    let entry = sched.entry(thread);
    entry.phase = Phase::Parked;
    entry.access = access;
    conclude_if_parked(sched);
}

fn conclude_if_parked(sched: &mut Sched) {
    let replay = &sched.replay;
    let all = replay.stop_count > 0 && replay.stops[..replay.stop_count].iter().all(|stop| stop.parked);
    if all && replay.cursor >= replay.steps {
        sched.conclude(outcome::PARKED, |entry| entry.phase == Phase::Parked);
    }
}
