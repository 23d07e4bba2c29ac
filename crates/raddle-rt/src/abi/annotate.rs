//! The `Annotate*` family and `raddle.h`.

use super::interface;
use crate::steer::{self, Request};
use crate::thread;
use crate::{export_with_pc, interpose, observe};
use core::ffi::{CStr, c_char, c_int, c_long};
use raddle_wire::record::lock;
use raddle_wire::{SyncOp, step};

fn say(op: SyncOp, object: usize, argument: u64) {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc();
        interpose::step(thread, pc, op, object, argument);
    }
}

fn say_text(op: SyncOp, object: usize, text: *const c_char) {
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc();
        // SAFETY: the annotation passes a C string or null.
        let text = if text.is_null() { c"" } else { unsafe { CStr::from_ptr(text) } };
        let request = Request { kind: step::CUSTOM, object, pc };
        if op == SyncOp::Custom && steer::on() {
            steer::visible(thread, request, |thread| {
                observe::sync_text(thread, pc, op, object, 0, text.to_bytes());
            });
        } else {
            observe::sync_text(thread, pc, op, object, 0, text.to_bytes());
        }
    }
}

type File = *const c_char;

extern "C" fn happens_before(_file: File, _line: c_int, object: usize) {
    say(SyncOp::Release, object, 0);
}

extern "C" fn happens_after(_file: File, _line: c_int, object: usize) {
    say(SyncOp::Acquire, object, 0);
}

extern "C" fn rwlock_create(_file: File, _line: c_int, object: usize) {
    say(SyncOp::RwlockInit, object, lock::RWLOCK);
}

extern "C" fn rwlock_destroy(_file: File, _line: c_int, object: usize) {
    if !interface::is_static(object) {
        say(SyncOp::RwlockDestroy, object, lock::RWLOCK);
    }
}

extern "C" fn rwlock_acquired(_file: File, _line: c_int, object: usize, is_write: c_long) {
    say(if is_write != 0 { SyncOp::Lock } else { SyncOp::ReadLock }, object, lock::RWLOCK);
}

extern "C" fn rwlock_released(_file: File, _line: c_int, object: usize, is_write: c_long) {
    let read = if is_write != 0 { 0 } else { lock::READ };
    say(SyncOp::Unlock, object, lock::RWLOCK | read);
}

extern "C" fn condvar_signal(_file: File, _line: c_int, object: usize) {
    say(SyncOp::Release, object, 0);
}

extern "C" fn condvar_wait(_file: File, _line: c_int, object: usize, _lock: usize) {
    say(SyncOp::Acquire, object, 0);
}

extern "C" fn benign_race(_file: File, _line: c_int, object: usize, _why: File) {
    say(SyncOp::BenignRace, object, 8);
}

extern "C" fn benign_race_sized(_file: File, _line: c_int, object: usize, size: c_long, _why: File) {
    say(SyncOp::BenignRace, object, size as u64);
}

extern "C" fn thread_name(_file: File, _line: c_int, name: File) {
    let index = thread::current().index() as usize;
    say_text(SyncOp::ThreadName, index, name);
}

fn ignore() {
    interface::ignore_accesses(1);
}

fn heed() {
    interface::ignore_accesses(-1);
}

extern "C" fn ignore_sync_begin(_file: File, _line: c_int) {
    interface::ignore_sync(1);
}

extern "C" fn ignore_sync_end(_file: File, _line: c_int) {
    interface::ignore_sync(-1);
}

/// A lock that needs no constructor: it may have been used before this, and lasts for ever.
extern "C" fn rwlock_create_static(_file: File, _line: c_int, object: usize) {
    interface::make_static(object);
}

extern "C" fn ignore_begin(_file: File, _line: c_int) {
    ignore();
}

extern "C" fn ignore_end(_file: File, _line: c_int) {
    heed();
}

/// Annotations that ask for what happens anyway, or that concern other tools.
extern "C" fn nothing() {}

extern "C" fn event(name: *const c_char, object: usize) {
    say_text(SyncOp::Custom, object, name);
}

extern "C" fn atomic_begin(name: *const c_char) {
    say_text(SyncOp::AtomicBegin, 0, name);
}

extern "C" fn atomic_end(name: *const c_char) {
    say_text(SyncOp::AtomicEnd, 0, name);
}

export_with_pc! {
    AnnotateHappensBefore => happens_before;
    AnnotateHappensAfter => happens_after;
    AnnotateCondVarSignal => condvar_signal;
    AnnotateCondVarSignalAll => condvar_signal;
    AnnotateCondVarWait => condvar_wait;
    AnnotateMutexIsNotPHB => nothing;
    AnnotateMutexIsUsedAsCondVar => nothing;
    AnnotateRWLockCreate => rwlock_create;
    AnnotateRWLockCreateStatic => rwlock_create_static;
    AnnotateRWLockDestroy => rwlock_destroy;
    AnnotateRWLockAcquired => rwlock_acquired;
    AnnotateRWLockReleased => rwlock_released;
    AnnotateTraceMemory => nothing;
    AnnotateFlushState => nothing;
    AnnotateNewMemory => nothing;
    AnnotateNoOp => nothing;
    AnnotateFlushExpectedRaces => nothing;
    AnnotateEnableRaceDetection => nothing;
    AnnotatePCQGet => condvar_wait;
    AnnotatePCQPut => condvar_signal;
    AnnotatePCQDestroy => nothing;
    AnnotatePCQCreate => nothing;
    AnnotateExpectRace => nothing;
    AnnotateBenignRace => benign_race;
    AnnotateBenignRaceSized => benign_race_sized;
    AnnotateIgnoreReadsBegin => ignore_begin;
    AnnotateIgnoreReadsEnd => ignore_end;
    AnnotateIgnoreWritesBegin => ignore_begin;
    AnnotateIgnoreWritesEnd => ignore_end;
    AnnotateIgnoreSyncBegin => ignore_sync_begin;
    AnnotateIgnoreSyncEnd => ignore_sync_end;
    AnnotatePublishMemoryRange => nothing;
    AnnotateUnpublishMemoryRange => nothing;
    AnnotateThreadName => thread_name;
    AnnotateMemoryIsInitialized => nothing;
    WTFAnnotateHappensBefore => happens_before;
    WTFAnnotateHappensAfter => happens_after;
    WTFAnnotateBenignRaceSized => benign_race_sized;
    raddle_event => event;
    raddle_atomic_begin => atomic_begin;
    raddle_atomic_end => atomic_end;
}

/// Whether the program runs under raddle.
#[unsafe(no_mangle)]
pub extern "C" fn raddle_is_active() -> c_int {
    c_int::from(crate::run::header().is_some())
}

#[unsafe(no_mangle)]
pub extern "C" fn RunningOnValgrind() -> c_int {
    0
}
