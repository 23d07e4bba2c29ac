//! What happens when a thread comes through a probe.

use super::plan::{self, Plan};
use super::trampolines::Frame;
use super::value::{Situation, Text};
use crate::steer::{self, Request};
use crate::thread::{self, Thread};
use crate::{interpose, observe};
use raddle_wire::probe::{target, what};
use raddle_wire::record::lock;
use raddle_wire::{SyncOp, step};

/// Events before; returns where the thread goes on.
pub extern "C" fn before(frame: &Frame) -> u64 {
    let Some(plan) = plan::plan() else { return 0 };
    let Some(probe) = plan.probe(frame.probe) else { return 0 };
    if probe[5] != 0 {
        let situation = Situation { frame: Some(frame), ..Situation::default() };
        tell(plan, probe, (probe[4], probe[5]), &situation, place(probe, frame));
    }
    let module = probe[0] as usize;
    let code = (plan::bias(module).unwrap_or(0) as u64).wrapping_add(probe[2]);
    match probe[1] {
        // SAFETY: a slot that the dynamic linker has filled, in a module that is loaded.
        target::SLOT => unsafe { *(code as *const u64) },
        target::BLOB => (plan::blob(module) as u64).wrapping_add(probe[2]),
        _ => code,
    }
}

/// Events after a function has returned.
pub extern "C" fn after(frame: &Frame, returned: u64) {
    let Some(plan) = plan::plan() else { return };
    let Some(probe) = plan.probe(frame.probe) else { return };
    let situation = Situation { frame: Some(frame), returned, ..Situation::default() };
    tell(plan, probe, (probe[6], probe[7]), &situation, place(probe, frame));
}

/// A line is about to run.
pub extern "C" fn line(number: u64, pc: u64) {
    let Some(plan) = plan::plan() else { return };
    let Some(probe) = plan.probe(number) else { return };
    tell(plan, probe, (probe[4], probe[5]), &Situation::default(), pc);
}

/// The program counter of an event: as of a call, so the address behind its first byte for a place that is no call.
fn place(probe: &[u64], frame: &Frame) -> u64 {
    match probe[3] {
        0 => frame.return_address,
        address => (plan::bias(probe[0] as usize).unwrap_or(0) as u64).wrapping_add(address + 1),
    }
}

fn tell(plan: Plan, _probe: &[u64], (at, count): (u64, u64), situation: &Situation<'_>, pc: u64) {
    let Some(thread) = thread::observed() else { return };
    let mut at = at as usize;
    for _ in 0..count {
        let Some(event) = plan.event(at) else { return };
        at = event.next;
        if !situation.meets(event) {
            continue;
        }
        if event.what != what::EVENT {
            // What cannot be read is no lock.
            if let Some(object) = situation.object(event) {
                modelled(thread, pc, event.what, object);
            }
            continue;
        }
        {
            let mut text = Text::new();
            situation.write(plan, event, &mut text);
            say(thread, pc, text.as_bytes());
        }
    }
}

/// A function that a model calls an operation on a lock, or an edge between threads.
fn modelled(thread: &Thread, pc: u64, what: u64, object: usize) {
    let (op, argument) = match what {
        what::LOCK => (SyncOp::Lock, 0),
        what::TRYLOCK => (SyncOp::Lock, lock::TRY),
        what::RDLOCK => (SyncOp::ReadLock, lock::RWLOCK),
        what::UNLOCK => (SyncOp::Unlock, 0),
        what::RDUNLOCK => (SyncOp::Unlock, lock::RWLOCK | lock::READ),
        what::ACQUIRE => (SyncOp::Acquire, 0),
        what::RELEASE => (SyncOp::Release, 0),
        _ => return,
    };
    interpose::step(thread, pc, op, object, argument);
}

/// An event of the user's own. All of them are about one object: what matters is their order among each other.
pub fn say(thread: &Thread, pc: u64, text: &[u8]) {
    const OBJECT: usize = 0;
    let act = |thread: &Thread| observe::sync_text(thread, pc, SyncOp::Custom, OBJECT, 0, text);
    if !steer::on() {
        return act(thread);
    }
    let request = Request { kind: step::CUSTOM, object: OBJECT, pc };
    if steer::visible(thread, request, act).is_none() {
        act(thread);
        steer::failed(thread);
    }
}
