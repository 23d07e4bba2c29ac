//! Demos: what comes into the program from outside, recorded once and given again.
//!
//! Lidbury, *Dynamic Analysis for Concurrent Modern C/C++ Applications* (2019), §4.4: sparse record and replay. The order of
//! visible operations makes a run repeatable except for what the outside world decides: results of some system calls,
//! and signals. These become visible operations themselves. While recording, a call that may block is made outside of
//! any turn, so that others go on; then its thread waits for its turn, in which the result enters the journal. A replay
//! makes no such call at all: in its turn the thread is given the recorded result. So the network peer may be gone.
//!
//! Signals are held back until their thread comes to its next visible operation (or are handled at once if it is in a
//! system call), and the handler's beginning is a visible operation. In a replay, signals that really arrive are
//! dropped, and handlers run where the schedule says.
//!
//! Deviation from the thesis: the order of turns is recorded for every strategy, not only for `queue`, because which
//! thread is away in a system call is decided by the outside world under `random` as well.

pub mod descriptors;
pub mod numbers;

use crate::interpose::signal;
use crate::real;
use crate::steer::{self, Request, journal};
use crate::thread::{Busy, Deferred, Thread};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use raddle_wire::Header;
use raddle_wire::region::{option, steer as steering};
use raddle_wire::step;

const OFF: u32 = 0;
const RECORD: u32 = 1;
const REPLAY: u32 = 2;
static MODE: AtomicU32 = AtomicU32::new(OFF);

pub fn start(header: &Header) {
    let mode = match (header.options & option::DEMO != 0, header.steer) {
        (true, steering::CONTROL) => RECORD,
        (true, steering::REPLAY) => REPLAY,
        _ => OFF,
    };
    LEFT_OUT.store(header.calls_left_out, Ordering::Relaxed);
    MODE.store(mode, Ordering::Relaxed);
}

/// In a forked child: the demo is its parent's.
pub fn stop() {
    MODE.store(OFF, Ordering::Relaxed);
}

pub fn on() -> bool {
    MODE.load(Ordering::Relaxed) != OFF
}

/// Is this run a demo given again, also when all of it has been given?
pub fn is_replay() -> bool {
    MODE.load(Ordering::Relaxed) == REPLAY
}

/// Are results given instead of asked for?
pub fn replaying() -> bool {
    is_replay() && steer::replaying()
}

/// May a call take long?
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// It returns at once, and is made inside the turn.
    Short,
    /// It may wait for the outside world, and is made before the turn.
    Long,
}

/// Memory that a call writes to: where, and how many bytes at most.
pub type Room = (usize, usize);

/// A call whose result comes from outside: a negative error number, or what the call returns.
///
/// `outputs` tells, for a result, which memory the call has written. Without a demo the call is simply made.
pub fn outside<const N: usize>(
    thread: &Thread,
    call: u32,
    length: Length,
    perform: impl FnOnce() -> isize,
    outputs: impl Fn(isize) -> [Room; N],
) -> isize {
    outside_pieces(
        thread,
        call,
        length,
        perform,
        |result, each| outputs(result).into_iter().for_each(each),
        |_| (),
    )
}

/// The same for a call that writes any number of pieces: `outputs` names them one by one. `made` is told the result, in the
/// turn: what takes or gives numbers of descriptors belongs there.
pub fn outside_pieces(
    thread: &Thread,
    call: u32,
    length: Length,
    perform: impl FnOnce() -> isize,
    outputs: impl Fn(isize, &mut dyn FnMut(Room)),
    made: impl Fn(isize),
) -> isize {
    let pc = thread.caller_pc();
    if replaying() {
        thread.cancellation.tries.set(length == Length::Short);
        let result = given(thread, pc, call, &outputs, &made);
        thread.cancellation.tries.set(false);
        return result;
    }
    if !on() {
        let result =
            if length == Length::Long && steer::on() { left_out(thread, perform) } else { perform() };
        made(result);
        return result;
    }
    let early = if length == Length::Long { Ok(away(thread, perform)) } else { Err(perform) };
    let request = Request { kind: step::SYSCALL, object: call as usize, pc };
    thread.cancellation.tries.set(length == Length::Short);
    let recorded = steer::visible(thread, request, |thread| {
        let result = match early {
            Ok(result) => result,
            Err(perform) => perform(),
        };
        thread.turns.count_step();
        record(thread, pc, call, result, &outputs);
        made(result);
        result
    });
    thread.cancellation.tries.set(false);
    recorded.unwrap_or(-(libc::EIO as isize))
}

/// A call that the demo leaves out: really made, in a replay too. It may wait for long, so others go on meanwhile.
pub fn left_out<T>(thread: &Thread, call: impl FnOnce() -> T) -> T {
    steer::leave(thread);
    let result = call();
    steer::come_back(thread);
    result
}

static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// Does the demo leave this function out ([`raddle_wire::calls`])?
pub fn leaves_out(function: u32) -> bool {
    on() && LEFT_OUT.load(Ordering::Relaxed) >> function & 1 != 0
}

/// A call that waits for the outside world: others go on meanwhile, and a signal's handler runs at once.
pub fn away(thread: &Thread, perform: impl FnOnce() -> isize) -> isize {
    steer::leave(thread);
    thread.turns.away.set(true);
    let result = perform();
    thread.turns.away.set(false);
    steer::come_back(thread);
    result
}

/// Which memory a call with this result has written.
type Outputs<'a> = &'a dyn Fn(isize, &mut dyn FnMut(Room));

fn record(thread: &Thread, pc: u64, call: u32, result: isize, outputs: Outputs<'_>) {
    let filled = |(address, bytes): Room| if address == 0 { 0 } else { bytes };
    let mut total = 2 * size_of::<u64>();
    outputs(result, &mut |room| total += size_of::<u64>() + filled(room));
    journal::turn_with(steer::step_of(thread, step::SYSCALL), pc, total, |sink| {
        sink.put(bytes_of(&[u64::from(call), result as u64]));
        outputs(result, &mut |room| {
            let bytes = filled(room);
            sink.put(bytes_of(&[bytes as u64]));
            if bytes > 0 {
                // SAFETY: the call has just written these bytes of the program's memory.
                sink.put(unsafe { core::slice::from_raw_parts(room.0 as *const u8, bytes) });
            }
        });
    });
}

fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: any words are bytes.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Takes the result from the schedule.
fn given(thread: &Thread, pc: u64, call: u32, outputs: Outputs<'_>, made: &dyn Fn(isize)) -> isize {
    let request = Request { kind: step::SYSCALL, object: call as usize, pc };
    let given = steer::visible(thread, request, |thread| {
        thread.turns.count_step();
        let mut payload = Payload { rest: steer::next_payload().unwrap_or(&[]) };
        let (found, result) = (payload.word(), payload.word());
        let (Some(found), Some(result)) = (found, result) else {
            if steer::replaying() {
                steer::desynchronised(thread, NO_MORE_RESULTS);
            }
            return None;
        };
        if found != u64::from(call) {
            steer::desynchronised(thread, "the demo has the result of another system call here")
        }
        let result = result as i64 as isize;
        outputs(result, &mut |(address, room)| {
            let bytes = payload.word().unwrap_or(0) as usize;
            let source = payload.take(bytes).unwrap_or(&[]);
            if address != 0 {
                // SAFETY: the program passed this room; no more than it has is written.
                unsafe {
                    crate::arch::copy_forward(address as *mut u8, source.as_ptr(), source.len().min(room));
                }
            }
        });
        made(result);
        Some(result)
    });
    match given {
        Some(Some(result)) => result,
        Some(None) => beyond_the_end(thread),
        None => -(libc::EIO as isize),
    }
}

const NO_MORE_RESULTS: &str = "the demo has no more results of system calls";
/// So long the end of the program may be on its way.
const END_WAIT_MS: u64 = 2_000;

/// The recorded run was over before this thread came so far: another thread ended it, and is about to do so again.
fn beyond_the_end(thread: &Thread) -> ! {
    steer::leave(thread);
    let start = real::now_ms();
    while real::now_ms() - start < END_WAIT_MS {
        real::sleep_us(1_000);
    }
    steer::desynchronised(thread, NO_MORE_RESULTS)
}

struct Payload {
    rest: &'static [u8],
}

impl Payload {
    fn take(&mut self, bytes: usize) -> Option<&'static [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u64> {
        self.take(8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes)
    }
}

/// What becomes of a signal that arrives.
pub enum Arrival {
    /// It is handled now: there is no demo.
    Handle,
    /// It waits for its thread's next visible operation.
    Keep,
    /// It has been sent to the main thread, or a replay delivers it when its time comes.
    Drop,
}

/// Called in the context of a signal: takes no lock.
pub fn arrival(thread: &Thread, number: i32) -> Arrival {
    match MODE.load(Ordering::Relaxed) {
        RECORD if thread.is_observed() => Arrival::Keep,
        RECORD if steer::pass_to_main(number) => Arrival::Drop,
        REPLAY if steer::replaying() => Arrival::Drop,
        _ => Arrival::Handle,
    }
}

/// Does a signal wait for the thread to come to a visible operation?
pub fn has_signal(thread: &Thread) -> bool {
    MODE.load(Ordering::Relaxed) == RECORD && thread.signals.is_ready()
}

/// A call that was really made, in the thread's turn, and brought nothing from outside.
pub fn note_inside(thread: &Thread, pc: u64) {
    note(thread, step::SYSCALL, pc);
}

/// A wait for descriptors of the program's own has come to its limit.
pub fn note_failed(thread: &Thread, pc: u64) {
    thread.turns.count_step();
    let step = raddle_wire::step::StepWord { failed: true, ..steer::step_of(thread, step::SYSCALL) };
    journal::turn_with(step, pc, 0, |_| {});
}

/// A handler begins, in the thread's turn, of a signal that nobody holds in a demo.
pub fn note_handler(thread: &Thread) {
    note(thread, step::HANDLER, 0);
}

fn note(thread: &Thread, kind: u8, pc: u64) {
    thread.turns.count_step();
    if replaying() {
        steer::next_payload();
    }
    journal::turn_with(steer::step_of(thread, kind), pc, 0, |_| {});
}

/// A descriptor that leads outside was made, or is given: then something has to stand for it.
pub fn opened(thread: &Thread, fd: i32) {
    if replaying() {
        numbers::stand_in(thread, fd);
    } else {
        descriptors::set(fd, descriptors::Leads::Outside);
    }
}

/// Has a signal come to a thread that waits for its turn, whose handler can run now? What the thread waits for may never come
/// otherwise: in the kernel, too, a handler interrupts a wait. In a replay the demo says when it comes.
pub fn may_handle(thread: &Thread) -> bool {
    thread.signals.is_ready()
        && match MODE.load(Ordering::Relaxed) {
            RECORD => true,
            REPLAY => false,
            _ => steer::handlers_may_run(thread),
        }
}

/// Runs the handlers of what has come to a thread that waits for its turn.
pub fn handle(thread: &Thread) {
    match on() {
        true => signal_point(thread),
        false => {
            steer::note_handled();
            signal::deliver_waiting(thread);
        }
    }
}

/// Runs the handlers of signals that have arrived. The thread is at a visible operation, or in a system call.
pub fn signal_point(thread: &Thread) {
    if MODE.load(Ordering::Relaxed) != RECORD {
        return;
    }
    while let Some(mut first) = signal::take_deferred(thread) {
        let held = signal::hold(thread, first.signal);
        let busy = thread.open();
        let away = thread.turns.away.take();
        let request = Request { kind: step::HANDLER, object: first.signal as usize, pc: 0 };
        steer::visible(thread, request, |thread| {
            thread.turns.count_step();
            // SAFETY: a valid description, as bytes.
            let info: &[u8] = unsafe {
                core::slice::from_raw_parts((&raw const first.info).cast(), size_of::<libc::siginfo_t>())
            };
            let number = [first.signal as u64];
            let bytes = size_of_val(&number) + info.len();
            journal::turn_with(steer::step_of(thread, step::HANDLER), 0, bytes, |sink| {
                sink.put(bytes_of(&number));
                sink.put(info);
            });
        });
        signal::handle(first.signal, &mut first.info, (&raw mut first.context).cast());
        thread.close(busy);
        thread.turns.away.set(away);
        thread.signals.hold_only(held);
    }
}

/// The schedule says that a handler runs now; called inside the turn, which ends before the handler begins.
pub fn replay_handler(thread: &Thread) {
    // SAFETY: plain data.
    let mut delivered: Deferred = unsafe { core::mem::zeroed() };
    {
        let _busy = Busy::enter(thread);
        thread.turns.count_step();
        let mut payload = Payload { rest: steer::next_payload().unwrap_or(&[]) };
        let (number, info) = (payload.word(), payload.take(size_of::<libc::siginfo_t>()));
        let (Some(number), Some(info)) = (number, info) else {
            steer::desynchronised(thread, "the demo has no more signals")
        };
        delivered.signal = number as i32;
        // SAFETY: both are as long as a description.
        unsafe {
            crate::arch::copy_forward((&raw mut delivered.info).cast(), info.as_ptr(), info.len());
        }
        steer::end_turn(thread);
    }
    let busy = thread.open();
    if (1..65).contains(&delivered.signal) {
        signal::handle(delivered.signal, &mut delivered.info, (&raw mut delivered.context).cast());
    }
    thread.close(busy);
}
