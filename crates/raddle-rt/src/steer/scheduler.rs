//! The scheduler of this process: [`raddle_sched::Sched`] under one lock, and what ties it to threads and to the shared region.
//!
//! Here is what the scheduler does not know: where threads sleep ([`super::stations`]), what the kernel says about them
//! ([`World`]), the journal, and how a run is ended ([`super::conclusion`]). Effects that were noted under the lock are carried
//! out when it is released ([`Held`]).

use super::cancellation as cancel;
use super::stations::{self, grant, station};
use super::{Request, conclusion, debugger, dice, journal, noise, profile, schedule, tasks};
use crate::spin::{self, Spin, SpinGuard};
use crate::thread::Thread;
use crate::{real, run};
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use raddle_sched::dependence::FINAL;
use raddle_sched::{AnyStrategy, Arrival, Detail, Entry, Operation, Outside, Sched, Settings, ThreadIx};
pub use raddle_sched::{Grant, join_token};
use raddle_wire::Header;
use raddle_wire::crash::NAME_MAX;
use raddle_wire::journal::{Arrived, has_payload};
use raddle_wire::region::{BLOB_OFFSET, option, steer};
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

/// Visible operations are counted by thread and object.
static PROFILED: AtomicBool = AtomicBool::new(false);

static SCHED: Spin<Sched<'static>> = Spin::new(Sched::idle());

/// A timer runs: a signal will come, and may help threads that wait for each other.
static EXPECTS_SIGNAL: AtomicBool = AtomicBool::new(false);

pub fn expect_signal(expected: bool) {
    EXPECTS_SIGNAL.store(expected, Ordering::Relaxed);
}

/// The program has a handler of a signal, by which a thread may help those that wait, itself among them.
static HAS_HANDLERS: AtomicBool = AtomicBool::new(false);

pub fn note_handlers() {
    HAS_HANDLERS.store(true, Ordering::Relaxed);
}

pub fn has_handlers() -> bool {
    HAS_HANDLERS.load(Ordering::Relaxed)
}

/// Nobody can go unless this thread, which is set aside, runs the handler of a signal that has come to it.
static HANDLER_DUE: AtomicU32 = AtomicU32::new(u32::MAX);

/// May a thread that waits for its turn run its handlers now? When a signal comes is chance, so under a seed it may only where it makes
/// no difference when it came: where all wait for it. A schedule says when.
pub fn handlers_may_run(thread: &Thread) -> bool {
    let me = thread.place();
    HANDLER_DUE.load(Ordering::Relaxed) == me.0 || replaying() && lock().handler_is_next(me)
}

pub fn note_handled() {
    HANDLER_DUE.store(u32::MAX, Ordering::Relaxed);
}

/// Will the thread run a handler before it sleeps again? A signal is pending for it, waits for it to leave the runtime, or has just woken it.
fn is_about_to_handle(ix: ThreadIx, entry: &Entry) -> bool {
    if station(ix).thread().signals.is_ready() || tasks::is_signalled(entry.os_tid) {
        HANDLER_DUE.store(ix.0, Ordering::Relaxed);
        return true;
    }
    entry.os_tid != crate::real::gettid() && !tasks::asleep(entry.os_tid)
}

/// What the scheduler asks about this process.
pub struct World;

impl Outside for World {
    fn is_asleep(&self, _: ThreadIx, entry: &Entry) -> bool {
        tasks::asleep(entry.os_tid)
    }

    fn mutex_holder(&self, ix: ThreadIx, object: usize) -> u32 {
        // Other locks have no owner word where a mutex has it, and the objects of models may be no memory at all.
        if station(ix).thread().turns.mutex.load(Ordering::Relaxed) != object {
            return 0;
        }
        // SAFETY: the thread waits for this mutex, so it exists.
        unsafe { crate::arch::mutex::holder(object) }
    }

    fn cancel_is_due(&self, ix: ThreadIx, kind: u8) -> bool {
        cancel::due(station(ix).thread(), kind)
    }

    fn cancel_ends_waiting(&self, ix: ThreadIx, kind: u8) -> bool {
        cancel::ends_waiting(station(ix).thread(), kind)
    }

    fn expects_signal(&self) -> bool {
        EXPECTS_SIGNAL.load(Ordering::Relaxed)
    }

    fn is_about_to_handle(&self, ix: ThreadIx, entry: &Entry) -> bool {
        has_handlers() && is_about_to_handle(ix, entry)
    }

    #[inline]
    fn asks_sleepers(&self) -> bool {
        super::clock::on()
    }
}

/// The scheduler under its lock. A thread that is to be woken is woken after the lock has been released: on one
/// processor it would otherwise run at once, only to find the lock taken.
pub struct Held {
    guard: ManuallyDrop<SpinGuard<'static, Sched<'static>>>,
    /// How far the run had come when the lock was taken.
    decisions: u64,
    turns_hash: u64,
}

#[inline]
pub fn lock() -> Held {
    Held::new(SCHED.lock())
}

/// In a handler: `None` if somebody holds the lock and does not let go, perhaps because the handler interrupted it.
pub fn lock_briefly() -> Option<Held> {
    spin::lock_briefly(&SCHED).map(Held::new)
}

impl Deref for Held {
    type Target = Sched<'static>;
    fn deref(&self) -> &Sched<'static> {
        &self.guard
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Sched<'static> {
        &mut self.guard
    }
}

impl Held {
    #[inline]
    fn new(guard: SpinGuard<'static, Sched<'static>>) -> Held {
        let (decisions, turns_hash) = (guard.progress().decisions, guard.turns_hash());
        Held { guard: ManuallyDrop::new(guard), decisions, turns_hash }
    }

    /// Tells `raddle` how far the run has come, and hears whether it wants to know where everybody is.
    fn publish(&mut self) {
        let decided = self.guard.progress().decisions != self.decisions;
        if !decided && self.guard.turns_hash() == self.turns_hash {
            return;
        }
        let Some(header) = run::header() else { return };
        header.turns_hash.store(self.guard.turns_hash(), Ordering::Relaxed);
        if decided {
            header.steps.store(self.guard.steps_shown(), Ordering::Relaxed);
            if header.report.load(Ordering::Relaxed) != 0 {
                conclusion::report(&mut self.guard);
            }
        }
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        self.publish();
        if let Some(end) = self.guard.effects.conclusion() {
            conclusion::conclude(&self.guard, end);
        }
        if self.guard.effects.replay_is_over() {
            REPLAYING.store(false, Ordering::Relaxed);
        }
        // One that is awake sees the grant by itself.
        let sleeps = |ix: &ThreadIx| station(*ix).grant.swap(grant::GIVEN, Ordering::AcqRel) == grant::ASLEEP;
        let mut asleep = [ThreadIx::NOBODY; raddle_sched::effects::WAKES_MAX];
        for (place, ix) in asleep.iter_mut().zip(self.guard.effects.take_wakes()) {
            *place = if sleeps(&ix) { ix } else { ThreadIx::NOBODY };
        }
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
        if super::kept::on() {
            // They look when it is their turn on the processor.
            return;
        }
        for ix in asleep.into_iter().filter(|ix| !ix.is_nobody()) {
            real::futex_wake_private(&station(ix).grant);
        }
    }
}

/// The thread has come to a visible operation.
pub fn arrive(thread: &Thread, request: Request, detail: Detail) -> Grant {
    let me = thread.place();
    let mut sched = lock();
    station(me).grant.store(grant::NONE, Ordering::Relaxed);
    let mut yields = thread.turns.yields.get();
    let grant = sched.arrive(
        me,
        Arrival { request, steps: thread.turns.steps(), detail, yields: &mut yields },
        &World,
    );
    if let Some(operation) = sched.take_news(me) {
        let Operation { kind, flags, bytes, object, second } = operation;
        journal::arrived(&Arrived { thread: me.0 as u16, kind, flags, bytes, object, second });
    }
    thread.turns.yields.set(yields);
    grant
}

/// The thread's operation has been performed.
pub fn finish(thread: &Thread) {
    finish_locked(&mut lock(), thread);
}

/// It was not: its failure has been reported.
pub fn finish_failed(thread: &Thread) {
    let mut sched = lock();
    sched.fail(thread.place());
    finish_locked(&mut sched, thread);
}

/// Writes the thread's turn into the journal.
fn write_down(sched: &Sched<'static>, me: ThreadIx, failed: bool, ordinal: u32) {
    let request = sched.roster[me].request;
    if journal::on() && !has_payload(request.kind) {
        let step = step::StepWord { thread: me.0 as u16, kind: request.kind, failed, ordinal };
        journal::turn(step, request.pc, request.object as u64);
    } else if sched.is_exhaustive() {
        journal::unwritten(me.0);
    }
    if sched.is_exhaustive() && sched.roster[me].is_unchanged() {
        journal::unchanged(me.0);
    }
}

fn finish_locked(sched: &mut Sched<'static>, thread: &Thread) {
    let me = thread.place();
    let entry = &sched.roster[me];
    let (request, failed) = (entry.request, entry.failed());
    if !entry.is_noted() {
        write_down(sched, me, failed, thread.turns.steps());
    }
    if PROFILED.load(Ordering::Relaxed) {
        profile::count(thread, request.object);
    }
    sched.finish(me, thread.turns.steps(), &World);
}

/// The operation would block: somebody else's turn. True when the thread has been cancelled.
pub fn set_aside(thread: &Thread, timed: bool) -> bool {
    lock().set_aside(thread.place(), timed, &World)
}

/// The operation of this turn left its object as it was.
pub fn note_unchanged(thread: &Thread) {
    lock().note_unchanged(thread.place());
}

/// Is every choice that of an exhaustive search? Then what an operation is about has to be told.
#[inline]
pub fn is_searched() -> bool {
    SEARCHED.load(Ordering::Relaxed)
}

static SEARCHED: AtomicBool = AtomicBool::new(false);

/// A timed operation was given its turn and still would block: does it give up?
pub fn times_out(thread: &Thread) -> bool {
    lock().times_out(thread.place())
}

/// The turn of a visible access begins. There may be no other operation of its thread, so it is written down now. False: the
/// thread was given no turn.
pub fn begin_access(thread: &Thread) -> bool {
    let (me, mut sched) = (thread.place(), lock());
    let acts = sched.begin_access(me, thread.turns.steps());
    if acts {
        write_down(&sched, me, false, thread.turns.steps());
    }
    acts
}

/// The thread crashes: the turn that it is in is the last one of the journal.
pub fn note_crash(sched: &mut Sched<'static>, thread: &Thread) {
    if let Some(ordinal) = sched.note_crash(thread.place()) {
        write_down(sched, thread.place(), false, ordinal);
    }
}

fn blob(header: &'static Header) -> &'static [u64] {
    let start = (core::ptr::from_ref(header) as usize + BLOB_OFFSET) as *const u64;
    // SAFETY: the blob is mapped with the region, aligned, and not written while the program runs.
    unsafe { core::slice::from_raw_parts(start, header.blob_bytes as usize / 8) }
}

/// Starts steering with the main thread, if the run is to be steered.
pub fn adopt_main(main: &Thread) {
    let Some(header) = run::header() else { return };
    main.turns.path.set(step::hash(step::HASH_START, b"1"));
    let mut name = [0; NAME_MAX];
    name[0] = b'1';
    main.turns.name.set(name);
    if header.steer == steer::NOISE {
        noise::start(header);
        super::visible::start(header);
    }
    if !matches!(header.steer, steer::CONTROL | steer::REPLAY) {
        return;
    }
    let mut sched = lock();
    MAIN_TID.store(real::gettid(), Ordering::Relaxed);
    let mut strategy = header.strategy;
    if header.steer == steer::REPLAY {
        sched.replay = schedule::load(header, blob(header));
        REPLAYING.store(sched.replay.active(), Ordering::Relaxed);
        if header.options & option::THEN_ROUND_ROBIN != 0 {
            strategy = raddle_wire::region::strategy::ROUND_ROBIN;
        }
    }
    journal::start(header);
    crate::demo::start(header);
    let orders = header.steer == steer::CONTROL || crate::demo::on() || sched.replay.orders_calls();
    ORDERS_CALLS.store(orders, Ordering::Relaxed);
    // A demo has ways of its own with signals.
    let handlers = header.steer == steer::CONTROL || sched.replay.orders_handlers();
    ORDERS_HANDLERS.store(handlers && !crate::demo::on(), Ordering::Relaxed);
    debugger::start(header);
    super::visible::start(header);
    PROFILED.store(header.options & option::PROFILE != 0, Ordering::Relaxed);
    let one_at_a_time = header.options & option::ONE_AT_A_TIME != 0;
    dice::start();
    super::clock::start(one_at_a_time && !crate::demo::on());
    let strategy = AnyStrategy::new(strategy, &header.parameters, blob(header), one_at_a_time);
    let settings = Settings { seed: crate::run::seed(header), strategy, one_at_a_time };
    // SAFETY: a process has one main thread, and is steered from there on or not at all.
    sched.start(unsafe { stations::tables() }, settings);
    SEARCHED.store(sched.is_exhaustive(), Ordering::Relaxed);
    register(&mut sched, main);
    ON.store(true, Ordering::Relaxed);
}

/// Gives the thread its place. Without room the run ends, when the lock is released.
fn register(sched: &mut Sched<'static>, thread: &Thread) {
    let Some(ix) = sched.register(thread.index(), thread.turns.path.get()) else { return };
    thread.turns.set_place(ix);
    thread.turns.stops.set(sched.roster[ix].stops);
    stations::occupy(ix, thread);
    journal::born(ix.0, thread.life.parent.get());
}

/// The thread goes into a system call that waits for the outside world: others go on.
pub fn leave(thread: &Thread) {
    if super::kept::on() {
        super::kept::repeat(raddle_wire::server::kept_reason::NOBODY, 1);
    }
    lock().leave(thread.place(), &World);
}

pub fn come_back(thread: &Thread) {
    lock().come_back(thread.place());
}

/// A signal has arrived at a thread that waits for its turn: it is no longer waiting.
pub fn interrupt(thread: &Thread) {
    lock().interrupt(thread.place());
}

/// A schedule still decides. Not read under the lock: a signal may arrive while its thread holds it.
static REPLAYING: AtomicBool = AtomicBool::new(false);

pub fn replaying() -> bool {
    REPLAYING.load(Ordering::Relaxed)
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

/// What the next step with a payload is to be given. `None`: the schedule has no more.
pub fn next_payload() -> Option<&'static [u8]> {
    let (words, bytes) = lock().replay.next_payload()?;
    // SAFETY: the words hold at least so many bytes.
    Some(unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), bytes) })
}

/// A demo cannot be enforced any further.
pub fn desynchronised(thread: &Thread, why: &str) -> ! {
    crate::message::warning(format_args!("{why}"));
    let mut sched = lock();
    let expected = sched.replay.next();
    sched.diverge(thread.place(), expected);
    drop(sched);
    unreachable!("the run has ended")
}

/// The thread's operation just done, as a step.
pub fn step_of(thread: &Thread, kind: u8) -> step::StepWord {
    step::StepWord { thread: thread.place().0 as u16, kind, failed: false, ordinal: thread.turns.steps() }
}

/// A new thread exists; called inside its creator's turn.
pub fn add_child(parent: &Thread, child: &Thread) {
    parent.turns.children.set(parent.turns.children.get() + 1);
    child.turns.path.set(step::child_hash(parent.turns.path.get(), parent.turns.children.get()));
    child.turns.parent_path.set(parent.turns.path.get());
    child.turns.name.set(child_name(&parent.turns.name.get(), parent.turns.children.get()));
    if on() {
        let mut sched = lock();
        register(&mut sched, child);
        sched.born(parent.place(), child.place());
    }
}

/// `1.2` and 3 make `1.2.3`, as far as there is room.
fn child_name(parent: &[u8; NAME_MAX], mut n: u32) -> [u8; NAME_MAX] {
    // The last byte stays zero.
    const LAST: usize = NAME_MAX - 1;
    let mut name = [0; NAME_MAX];
    let mut used = parent.iter().position(|&byte| byte == 0).unwrap_or(LAST).min(LAST);
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
        if used < LAST {
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
    if !on() || thread.place().is_nobody() {
        return;
    }
    if is_searched() && !replaying() {
        // What others do before the exit, and what they no longer do, is for the search to decide.
        let request = Request { kind: step::NONE, object: 0, pc: 0 };
        super::wait_for_turn(thread, request, Detail { flags: FINAL, ..Detail::NONE });
        let _sched = lock();
        journal::exit(thread.place().0);
    }
    {
        let _sched = lock();
        journal::stop();
    }
    if replaying() {
        // The access that led here is over, and its turn with it.
        super::settle(thread);
        leave(thread);
        let start = real::now_ms();
        while replaying() && real::now_ms() - start < EXIT_WAIT_MS {
            real::sleep_us(100);
        }
    }
}

/// The new thread runs and knows its own thread id.
pub fn start(thread: &Thread) {
    if on() && !thread.place().is_nobody() {
        lock().set_os_tid(thread.place(), thread.os_tid());
        debugger::name(thread);
    }
}

/// The thread's last operation; called inside its turn.
pub fn end_thread(thread: &Thread) {
    let mut sched = lock();
    // A kept process has one kernel thread, and the kernel's list is that thread's.
    if !super::kept::on() {
        super::robust::abandon(|mutex| sched.release(mutex));
    }
    sched.end(thread.place());
}

/// Has the thread with this index ended? It exists, because somebody asks.
pub fn has_ended(index: u32) -> bool {
    lock().has_ended(index)
}

/// In a forked child.
pub fn stop_steering() {
    ON.store(false, Ordering::Relaxed);
    SCHED.reset_after_fork();
}
