//! Schedules in this process ([`raddle_sched::replay`] says how they are followed): read from the shared region, with places
//! turned into addresses; stop points at plain accesses; and what is done when nobody has moved for a while.

use super::scheduler;
use super::stations::{grant, station};
use super::watch;
use crate::real;
use crate::thread::Thread;
use core::sync::atomic::Ordering;
use raddle_sched::{Conclusion, Entry, ParkedAccess, Phase, Replay, Sched, ThreadIx};
use raddle_wire::Header;
use raddle_wire::region::{MODULES_OFFSET, ModuleEntry};
use raddle_wire::step;

/// Reads the blob. One that does not fit its own counts is refused.
pub fn load(header: &'static Header, blob: &'static [u64]) -> Replay<'static> {
    let bias = |module| module_bias(header, module);
    match Replay::load(blob, bias, super::visible::add_site) {
        Ok(replay) => replay,
        Err(_) => crate::message::fatal(format_args!("the schedule in the shared region is damaged")),
    }
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

/// Nobody has moved for a while.
pub fn look(sched: &mut Sched<'_>, elapsed_ms: u64) {
    let (stuck_ms, asleep_ms) = (watch::stuck_ms(), watch::asleep_ms());
    // A thread that has been woken, or is in its turn, may be without a processor for long on a loaded machine, so only
    // processor time counts. The caller is known to be awake for another reason.
    let caller = real::gettid();
    let one_at_a_time = sched.one_at_a_time();
    let on_the_way = |ix: ThreadIx, entry: &Entry| {
        // Its turn has been given to it, and it is about to see that; the caller, too, after it last looked.
        let granted =
            entry.phase() == Phase::Waiting && station(ix).grant.load(Ordering::Acquire) == grant::GIVEN;
        granted
            || matches!(entry.phase(), Phase::Running | Phase::Waiting | Phase::Acting | Phase::Away)
                && entry.os_tid != caller
                && !watch::is_away(ix, entry)
                && watch::computed_ms(ix, entry) < stuck_ms
                && !(one_at_a_time && entry.phase() == Phase::Running && watch::is_lost(ix, entry))
    };
    if sched.roster.living().any(|ix| on_the_way(ix, &sched.roster[ix])) {
        return;
    }
    let passes =
        |ix, entry: &Entry| (watch::is_away(ix, entry) || watch::is_lost(ix, entry)).then_some(false);
    if one_at_a_time && sched.pass_over_where(passes) {
        sched.passed_over_in_replay();
        return;
    }
    let next = sched.replay.next();
    match sched.due() {
        // The thread whose turn it is sleeps in the kernel: give it some time.
        Some(ix)
            if matches!(sched.roster[ix].phase(), Phase::Running | Phase::Acting | Phase::Away)
                && elapsed_ms < asleep_ms => {}
        Some(ix) => sched.diverge(ix, next),
        None if elapsed_ms < asleep_ms => {}
        None => sched.conclude(Conclusion::Stuck),
    }
}

#[cold]
#[inline(never)]
pub fn access(thread: &Thread, pc: u64, aux: u8, address: usize, bytes: usize) {
    let access = ParkedAccess { pc, address, bytes, aux };
    if !scheduler::lock().access(thread.place(), thread.turns.steps(), access) {
        return;
    }
    loop {
        // The run ends with the process: by success, or by somebody's divergence.
        real::sleep_us(1_000_000);
    }
}
