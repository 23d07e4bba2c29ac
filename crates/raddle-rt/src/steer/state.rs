//! The scheduler's state: one entry a thread, under one lock, and the futex on which each thread waits for its turn.

use super::objects::{BARRIERS_MAX, Barrier, release};
use super::roster::Roster;
pub use super::roster::{Entry, NOBODY, Phase, grant};
use super::{Request, debugger, dice, journal, profile, schedule, strategy};
use crate::interpose::cancel;
use crate::spin::{Spin, SpinGuard};
use crate::thread::Thread;
use crate::{init, real};
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use raddle_wire::region::{PARTIES_MAX, option, outcome, steer};
use raddle_wire::step;

static ON: AtomicBool = AtomicBool::new(false);

/// Calls on the program's own pipes are visible operations.
static ORDERS_CALLS: AtomicBool = AtomicBool::new(false);

#[inline]
pub fn orders_calls() -> bool {
    ORDERS_CALLS.load(Ordering::Relaxed)
}

/// The beginning of a signal handler is a visible operation.
static ORDERS_HANDLERS: AtomicBool = AtomicBool::new(false);

#[inline]
pub fn orders_handlers() -> bool {
    ORDERS_HANDLERS.load(Ordering::Relaxed)
}

/// Is the program steered?
#[inline]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub struct Sched {
    pub entries: Roster,
    /// Whose turn it is or will be.
    pub chosen: u32,
    /// Thread of the last turn.
    pub last: u32,
    /// Turns in a row of `last`.
    pub run_length: u32,
    /// `queue`: turns in a row that `last` may take while others wait.
    pub slice: u32,
    pub decisions: u64,
    /// Hash of all turns so far.
    turns_hash: u64,
    pub tickets: u64,
    pub random: u64,
    pub strategy: u32,
    pub parameters: [u64; 8],
    pub replay: schedule::Replay,
    /// Futex word of a thread that is to be woken when the lock is released.
    woken: *const AtomicU32,
    pub change_points: [u64; strategy::pct::DEPTH_MAX],
    pub walk: strategy::surw::Walk,
    profiled: bool,
    /// Nobody's turn begins while somebody runs.
    pub one_at_a_time: bool,
    pub(super) barriers: [Barrier; BARRIERS_MAX],
}

// SAFETY: the thread pointers are only followed under the lock or by their own threads.
unsafe impl Send for Sched {}

/// The scheduler's state under its lock. A thread that is to be woken is woken after the lock has been released: on one
/// processor it would otherwise run at once, only to find the lock taken.
pub struct Held {
    guard: ManuallyDrop<SpinGuard<'static, Sched>>,
}

pub fn lock() -> Held {
    Held { guard: ManuallyDrop::new(SCHED.lock()) }
}

impl Deref for Held {
    type Target = Sched;
    fn deref(&self) -> &Sched {
        &self.guard
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Sched {
        &mut self.guard
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let woken = core::mem::replace(&mut self.guard.woken, core::ptr::null());
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
        if !woken.is_null() {
            // SAFETY: the word belongs to an entry of the static table.
            real::futex_wake_private(unsafe { &*woken });
        }
    }
}

static SCHED: Spin<Sched> = Spin::new(Sched {
    entries: Roster::new(),
    chosen: NOBODY,
    last: NOBODY,
    run_length: 0,
    slice: 1,
    decisions: 0,
    turns_hash: 0,
    tickets: 0,
    random: 1,
    strategy: 0,
    parameters: [0; 8],
    replay: schedule::Replay::new(),
    woken: core::ptr::null(),
    change_points: [0; strategy::pct::DEPTH_MAX],
    walk: strategy::surw::Walk::new(),
    profiled: false,
    one_at_a_time: false,
    barriers: [const { Barrier::new() }; BARRIERS_MAX],
});

pub enum Grant {
    Go,
    Fail,
    Wait,
    /// A signal handler comes first.
    Handler,
    /// The thread was cancelled: its next operation is another one. The turn stays its own.
    Cancel,
}

/// A thread that takes this many turns in a row while others could is treated as if it had yielded: it spins.
const SPIN_TURNS_MAX: u32 = 200;
/// Under `queue` a slice is no spinning.
const SPIN_TURNS_MAX_QUEUE: u32 = 2 * strategy::queue::SLICE_MAX;

impl Sched {
    pub fn entry(&mut self, thread: &Thread) -> &mut Entry {
        &mut self.entries[thread.sched as usize]
    }

    pub fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(dice::STRIDE);
        dice::splitmix(self.random)
    }

    /// The thread has come to a visible operation.
    pub fn arrive(&mut self, thread: &mut Thread, request: Request) -> Grant {
        let me = thread.sched;
        self.tickets += 1;
        let ticket = self.tickets;
        let entry = &mut self.entries[me as usize];
        entry.request = request;
        entry.grant.store(grant::NONE, Ordering::Relaxed);
        if !matches!(entry.phase, Phase::Aside | Phase::AsideTimed) {
            // A thread that is woken for its turn comes by here again: its operation is not a new one.
            if entry.phase != Phase::Waiting {
                entry.drawn = false;
            }
            entry.phase = Phase::Waiting;
            entry.lost = false;
            entry.ticket = ticket;
        }
        if self.replay.active() {
            return schedule::arrive(self, thread);
        }
        if self.chosen == NOBODY && !(self.is_queue() && strategy::queue::arrived(self, me as usize)) {
            self.choose();
        }
        if self.chosen == me && core::mem::take(&mut thread.yields) {
            // It has yielded or slept since its last turn: somebody else goes, if anybody can. Only now, because what
            // others may choose from must not depend on how far this thread has come by itself.
            self.lets_others_go(me as usize);
            self.choose();
        }
        if self.chosen == me {
            if self.is_cancelled_at(thread, request.kind) {
                return Grant::Cancel;
            }
            self.entries[me as usize].phase = Phase::Acting;
            return Grant::Go;
        }
        Grant::Wait
    }

    /// The thread goes after everybody else who can go. When all have yielded, a new round begins: whoever yields would
    /// otherwise wait for others that are passed over like itself, and by priority the same one might be taken for ever.
    fn lets_others_go(&mut self, me: usize) {
        self.entries[me].yielded = true;
        if !self.entries.people().any(|entry| entry.eligible() && !entry.yielded) {
            self.entries.for_each(|entry| entry.yielded = false);
            self.entries[me].yielded = true;
        }
    }

    /// Is this where the thread acts on having been cancelled? It runs on then, to its clean-up.
    pub fn is_cancelled_at(&mut self, thread: &Thread, kind: u8) -> bool {
        let entry = self.entry(thread);
        let acts = entry.cancelled && cancel::due(thread, kind);
        if acts {
            entry.phase = Phase::Running;
        }
        acts
    }

    pub fn is_acting(&mut self, thread: &Thread) -> bool {
        self.entry(thread).phase == Phase::Acting
    }

    /// The operation has been performed.
    pub fn finish(&mut self, thread: &mut Thread) {
        let me = thread.sched;
        let entry = &mut self.entries[me as usize];
        if entry.phase == Phase::Acting {
            entry.phase = Phase::Running;
        }
        let failed = core::mem::take(&mut entry.failed);
        let request = entry.request;
        self.turns_hash = step::turn_hash(self.turns_hash, thread.path, request.kind, failed, thread.steps);
        if let Some(header) = init::header() {
            header.turns_hash.store(self.turns_hash, Ordering::Relaxed);
        }
        if journal::on() && !raddle_wire::journal::has_payload(request.kind) {
            let step =
                step::StepWord { thread: me as u16, kind: request.kind, failed, ordinal: thread.steps };
            journal::turn(step, request.pc, request.object as u64);
        }
        self.run_length = if self.last == me { self.run_length + 1 } else { 1 };
        if self.last != me {
            self.entries.for_each(|entry| entry.yielded = false);
        }
        self.last = me;
        if self.profiled {
            profile::count(thread, self.entries[me as usize].request.object);
        }
        if self.run_length > if self.is_queue() { SPIN_TURNS_MAX_QUEUE } else { SPIN_TURNS_MAX } {
            self.lets_others_go(me as usize);
        }
        if self.replay.active() {
            schedule::advance(self);
            return;
        }
        if self.is_queue() && strategy::queue::keeps(self, me as usize) {
            self.decided();
            self.chosen = NOBODY;
            return;
        }
        self.choose();
    }

    /// First come, first served: the turn can lie open.
    pub fn is_queue(&self) -> bool {
        self.strategy == raddle_wire::region::strategy::QUEUE && !self.one_at_a_time
    }

    /// The operation would block: somebody else's turn. True when the thread has been cancelled.
    pub fn set_aside(&mut self, thread: &mut Thread, timed: bool) -> bool {
        let me = thread.sched as usize;
        if self.entries[me].cancelled && cancel::ends_waiting(thread, self.entries[me].request.kind) {
            return true;
        }
        if self.replay.active() {
            schedule::would_block(self, thread);
        }
        self.entries[me].phase = if timed { Phase::AsideTimed } else { Phase::Aside };
        self.check_cycle(me);
        self.choose();
        false
    }

    /// A timed operation was given its turn and still would block: does it give up?
    pub fn times_out(&mut self, thread: &Thread) -> bool {
        if self.replay.active() {
            return false;
        }
        let others = self
            .entries
            .living()
            .filter(|&i| i != thread.sched as usize)
            .any(|i| matches!(self.entries[i].phase, Phase::Running | Phase::Waiting));
        !others || self.next_random() & 3 == 0
    }

    pub fn anybody_runs(&self) -> bool {
        self.entries.people().any(|entry| entry.phase == Phase::Running)
    }

    /// Threads that were passed over and have been woken since, by a signal from another thread for one, run again: whether
    /// they have come to their next operation already is a question of time.
    fn welcome_back(&mut self) {
        self.entries.for_each(|entry| {
            if entry.phase == Phase::Away && !entry.lost && !super::tasks::asleep(entry.os_tid) {
                entry.phase = Phase::Running;
            }
        });
    }

    /// A decision is made.
    fn decided(&mut self) {
        self.decisions += 1;
        if let Some(header) = init::header() {
            header.steps.store(self.decisions, Ordering::Relaxed);
            if header.report.load(Ordering::Relaxed) != 0 {
                self.report();
            }
        }
    }

    /// Chooses who is next, and wakes it if it is waiting.
    pub fn choose(&mut self) {
        if super::clock::on() {
            self.welcome_back();
        }
        if (self.one_at_a_time || strategy::looks_ahead(self.strategy)) && self.anybody_runs() {
            // The last one to arrive chooses.
            self.chosen = NOBODY;
            return;
        }
        self.decided();
        if self.is_queue() {
            let head = strategy::queue::head(self);
            self.chosen = head;
            if head != NOBODY {
                self.wake(head as usize);
                return;
            }
            if self.anybody_runs() {
                // It lies open for whoever comes first.
                return;
            }
        }
        let any_fresh = self.entries.people().any(|entry| entry.eligible() && !entry.yielded);
        let mut best = NOBODY;
        let mut count = 0;
        for i in self.entries.living() {
            if self.entries[i].eligible() && !(any_fresh && self.entries[i].yielded) {
                count += 1;
                if best == NOBODY {
                    best = i as u32;
                }
            }
        }
        if count > 1 {
            best = strategy::pick(self, any_fresh, count);
        }
        self.chosen = best;
        if best != NOBODY {
            strategy::chosen(self, best as usize);
            self.wake(best as usize);
            return;
        }
        let busy_outside = crate::interpose::signal::expected()
            || self.entries.people().any(|entry| matches!(entry.phase, Phase::Away | Phase::Parked));
        let waiting = self.entries.people().any(|entry| entry.phase == Phase::Aside);
        if waiting && !busy_outside {
            self.conclude(outcome::DEADLOCK, |entry| entry.phase == Phase::Aside);
        }
    }

    pub fn wake(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        if entry.phase != Phase::Running {
            if entry.grant.swap(grant::GIVEN, Ordering::AcqRel) != grant::ASLEEP {
                // It is awake and sees the grant by itself.
                return;
            }
            let word = core::ptr::from_ref(&entry.grant);
            let before = core::mem::replace(&mut self.woken, word);
            if !before.is_null() && before != word {
                // SAFETY: the word belongs to an entry of the static table.
                real::futex_wake_private(unsafe { &*before });
            }
        }
    }

    /// Who holds what this entry waits for, as far as that can be known.
    fn holder(&self, index: usize) -> Option<usize> {
        let entry = &self.entries[index];
        let tid = match entry.request.kind {
            // SAFETY: a thread waits for this mutex, so it exists.
            step::LOCK | step::RELOCK => unsafe { crate::interpose::mutex::holder(entry.request.object) },
            step::JOIN => {
                return self
                    .entries
                    .living()
                    .find(|&i| join_token(self.entries[i].index) == entry.request.object);
            }
            _ => 0,
        };
        self.entries.living().find(|&i| tid != 0 && self.entries[i].os_tid == tid)
    }

    /// Do threads wait for each other in a cycle that nobody else can break?
    fn check_cycle(&mut self, start: usize) {
        let mut at = start;
        for _ in 0..self.entries.live_count() {
            if self.entries[at].phase != Phase::Aside {
                return;
            }
            match self.holder(at) {
                Some(next) if next == start => {
                    let mut on = start;
                    loop {
                        self.entries[on].on_cycle = true;
                        match self.holder(on) {
                            Some(next) if !self.entries[next].on_cycle => on = next,
                            _ => break,
                        }
                    }
                    self.conclude(outcome::DEADLOCK, |entry| entry.on_cycle);
                }
                Some(next) => at = next,
                None => return,
            }
        }
    }

    /// Says how the run ended and ends the program.
    pub fn conclude(&mut self, what: u32, part: impl Fn(&Entry) -> bool) -> ! {
        self.tell(what, part);
        end_run()
    }

    /// The run makes no progress: where is everybody?
    pub fn report(&mut self) -> ! {
        self.entries.for_each(|entry| {
            if entry.phase == Phase::Running && super::tasks::asleep(entry.os_tid) {
                entry.phase = Phase::Away;
            }
        });
        self.conclude(outcome::STUCK, |entry| !matches!(entry.phase, Phase::Free | Phase::Ended))
    }

    fn tell(&self, what: u32, part: impl Fn(&Entry) -> bool) {
        if let Some(header) = init::header() {
            let mut count = 0;
            for i in self.entries.living() {
                if count >= PARTIES_MAX || !part(&self.entries[i]) {
                    continue;
                }
                let holder = self.holder(i).map_or(NOBODY, |holder| self.entries[holder].index);
                let entry = &self.entries[i];
                let party = &header.parties[count];
                let parked = entry.phase == Phase::Parked;
                // SAFETY: a listed thread's structure stays valid.
                let (steps, path) = unsafe { ((*entry.thread).steps, (*entry.thread).path) };
                party.path.store(path, Ordering::Relaxed);
                party.thread.store(entry.index, Ordering::Relaxed);
                party.kind.store(
                    u32::from(if parked { step::NONE } else { entry.request.kind }),
                    Ordering::Relaxed,
                );
                party.pc.store(if parked { entry.access.pc } else { entry.request.pc }, Ordering::Relaxed);
                let object = if parked { entry.access.address } else { entry.request.object };
                party.object.store(object as u64, Ordering::Relaxed);
                party.holder.store(holder, Ordering::Relaxed);
                party.ordinal.store(steps, Ordering::Relaxed);
                party.phase.store(entry.phase as u32, Ordering::Relaxed);
                let detail = entry.access.bytes as u64 | u64::from(entry.access.aux) << 32;
                party.detail.store(if parked { detail } else { 0 }, Ordering::Relaxed);
                count += 1;
            }
            header.party_count.store(count as u32, Ordering::Relaxed);
            header.outcome.store(what, Ordering::Release);
        }
    }
}

/// The run has shown what it was to show.
pub fn end_run() -> ! {
    if debugger::on() {
        debugger::stop();
    }
    real::exit_group(raddle_wire::region::OUTCOME_STATUS)
}

pub const fn join_token(index: u32) -> usize {
    1 << 63 | index as usize
}

/// Starts steering with the main thread, if the run is to be steered.
pub fn adopt_main(main: &mut Thread) {
    let Some(header) = init::header() else { return };
    main.path = step::hash(step::HASH_START, b"1");
    main.name[0] = b'1';
    if header.steer == steer::NOISE {
        strategy::noise::start(header);
    }
    if !matches!(header.steer, steer::CONTROL | steer::REPLAY) {
        return;
    }
    let mut sched = lock();
    sched.random = super::server::seed(header);
    sched.strategy = header.strategy;
    sched.parameters = header.parameters;
    MAIN_TID.store(real::gettid(), Ordering::Relaxed);
    if header.steer == steer::REPLAY {
        schedule::load(&mut sched, header);
        REPLAYING.store(sched.replay.active(), Ordering::Relaxed);
        if header.options & option::THEN_ROUND_ROBIN != 0 {
            sched.strategy = raddle_wire::region::strategy::ROUND_ROBIN;
        }
    }
    journal::start(header);
    crate::demo::start(header);
    let orders = header.steer == steer::CONTROL || crate::demo::on() || schedule::orders_calls(&sched);
    ORDERS_CALLS.store(orders, Ordering::Relaxed);
    // A demo has ways of its own with signals.
    let handlers = header.steer == steer::CONTROL || schedule::orders_handlers(&sched);
    ORDERS_HANDLERS.store(handlers && !crate::demo::on(), Ordering::Relaxed);
    debugger::start(header);
    super::visible::start(header);
    sched.profiled = header.options & option::PROFILE != 0;
    sched.one_at_a_time = header.options & option::ONE_AT_A_TIME != 0;
    dice::start();
    super::clock::start(sched.one_at_a_time && !crate::demo::on());
    strategy::prepare(&mut sched, header);
    register(&mut sched, main);
    sched.chosen = 0;
    ON.store(true, Ordering::Relaxed);
}

fn register(sched: &mut Sched, thread: &mut Thread) {
    let Some(at) = sched.entries.add() else {
        sched.conclude(outcome::TOO_MANY_THREADS, |_| false);
    };
    thread.sched = at as u32;
    let priority = sched.next_random() | 1 << 63;
    let schedule_thread = schedule::thread_of(sched, thread.path);
    thread.stops = schedule::stops_of(sched, thread.path);
    let entry = &mut sched.entries[at];
    *entry = Entry::new();
    entry.phase = Phase::Running;
    entry.thread = thread;
    entry.index = thread.index;
    entry.priority = priority;
    entry.schedule_thread = schedule_thread;
    strategy::surw::registered(sched, at, thread.path);
    journal::born(at as u32, thread.parent);
}

/// The thread goes into a system call that waits for the outside world: others go on.
pub fn leave(thread: &Thread) {
    let mut sched = lock();
    sched.entry(thread).phase = Phase::Away;
    if sched.replay.active() {
        schedule::wake_due(&mut sched);
    } else if sched.chosen == thread.sched || sched.chosen == NOBODY {
        sched.choose();
    }
}

pub fn come_back(thread: &Thread) {
    lock().entry(thread).phase = Phase::Running;
}

/// A signal has arrived at a thread that waits for its turn: it is no longer waiting.
pub fn interrupt(thread: &Thread) {
    let mut sched = lock();
    let entry = sched.entry(thread);
    if entry.phase != Phase::Acting {
        entry.phase = Phase::Running;
    }
}

/// A schedule still decides. Not read under the lock: a signal may arrive while its thread holds it.
static REPLAYING: AtomicBool = AtomicBool::new(false);

pub fn replaying() -> bool {
    REPLAYING.load(Ordering::Relaxed)
}

/// The schedule has been followed to its end.
pub fn replay_is_over() {
    REPLAYING.store(false, Ordering::Relaxed);
}

/// Sends a signal that came to a thread which the runtime does not know (yet, or any longer) to the main thread. False:
/// that one is gone as well.
pub fn pass_to_main(signal: i32) -> bool {
    let main = MAIN_TID.load(Ordering::Relaxed);
    // SAFETY: takes no pointers.
    main != 0
        && main != real::gettid()
        && unsafe {
            real::syscall(
                libc::SYS_tgkill,
                [real::getpid() as usize, main as usize, signal as usize, 0, 0, 0],
            ) == 0
        }
}

static MAIN_TID: AtomicU32 = AtomicU32::new(0);

pub fn next_payload() -> Option<&'static [u8]> {
    schedule::next_payload(&mut lock())
}

/// A demo cannot be enforced any further.
pub fn desynchronised(thread: &Thread, why: &str) -> ! {
    crate::message::warning(format_args!("{why}"));
    let mut sched = lock();
    schedule::desynchronised(&mut sched, thread.sched as usize)
}

/// The thread's operation just done, as a step.
pub fn step_of(thread: &Thread, kind: u8) -> step::StepWord {
    step::StepWord { thread: thread.sched as u16, kind, failed: false, ordinal: thread.steps }
}

/// A new thread exists; called inside its creator's turn.
pub fn add_child(parent: &mut Thread, child: &mut Thread) {
    parent.children += 1;
    child.path = step::child_hash(parent.path, parent.children);
    child.parent_path = parent.path;
    child.name = child_name(&parent.name, parent.children);
    if on() {
        let mut sched = lock();
        register(&mut sched, child);
        strategy::surw::born(&mut sched, parent.sched, child.sched);
    }
}

/// `1.2` and 3 make `1.2.3`, as far as there is room.
fn child_name(parent: &[u8; 16], mut n: u32) -> [u8; 16] {
    let mut name = [0; 16];
    let mut used = parent.iter().position(|&byte| byte == 0).unwrap_or(15).min(15);
    name[..used].copy_from_slice(&parent[..used]);
    let mut digits = [0u8; 11];
    let mut count = 0;
    while n > 0 {
        digits[count] = b'0' + (n % 10) as u8;
        n /= 10;
        count += 1;
    }
    digits[count] = b'.';
    for &digit in digits[..=count].iter().rev() {
        if used < 15 {
            name[used] = digit;
            used += 1;
        }
    }
    name
}

/// How long an exit waits for the rest of a schedule.
const EXIT_WAIT_MS: u64 = 2_000;

/// The program is about to exit. What other threads do from now on is not worth a place in the journal; and a replay lets them
/// first do what they did before.
pub fn before_exit(thread: &Thread) {
    if !on() || thread.sched == NOBODY {
        return;
    }
    {
        let _sched = lock();
        journal::stop();
    }
    if replaying() {
        leave(thread);
        let start = real::now_ms();
        while replaying() && real::now_ms() - start < EXIT_WAIT_MS {
            real::sleep_us(100);
        }
    }
}

/// The new thread runs and knows its own thread id.
pub fn start(thread: &mut Thread) {
    if on() && thread.sched != NOBODY {
        lock().entry(thread).os_tid = thread.os_tid.load(Ordering::Relaxed);
        debugger::name(thread);
    }
}

/// The thread's last operation; called inside its turn.
pub fn end_thread(thread: &mut Thread) {
    let mut sched = lock();
    sched.entry(thread).phase = Phase::Ended;
    sched.entries.bury(thread.sched as usize);
    release(&mut sched, join_token(thread.index));
}

/// Has the thread with this index ended? It exists, because somebody asks.
pub fn has_ended(index: u32) -> bool {
    let sched = lock();
    !sched.entries.people().any(|entry| entry.index == index)
}

/// In a forked child.
pub fn stop_steering() {
    ON.store(false, Ordering::Relaxed);
    SCHED.reset_after_fork();
}
