//! Events that the user named, in a program that was not built for them.
//!
//! `raddle` has planned where they happen ([`raddle_wire::probe`]); here the plan is carried out. [`patch`] puts each module's stubs beside
//! it and lets its code go through them; [`trampolines`] is where the stubs lead; [`hooks`] finds out what an event carries and tells
//! [`crate::observe`]; [`globals`] does the same for accesses to variables, which the compiler's hooks see.
//!
//! An event is a visible operation like any other: it is recorded, it takes a turn when the program is steered, and a schedule names it.

pub mod globals;
mod hooks;
mod patch;
mod plan;
mod trampolines;
mod value;

use crate::{message, real};
use raddle_wire::probe::ENV_PLAN;

const NAME: &core::ffi::CStr = {
    const _: () = assert!(matches!(ENV_PLAN.as_bytes(), b"RADDLE_PROBES"));
    c"RADDLE_PROBES"
};

/// Carries the plan out in all modules that are loaded. Before the program begins.
pub fn start() {
    let Some(path) = real::environment(NAME) else { return };
    let Some(words) = map(path) else {
        return message::warning(format_args!(
            "the plan of the probes cannot be read, so there are no events of aspects"
        ));
    };
    if !plan::publish(words) {
        return message::warning(format_args!(
            "the plan of the probes is damaged or of another version, so there are no events of aspects"
        ));
    }
    globals::start();
    patch::all();
    crate::interpose::modules::when_loaded(patch::all);
}

fn map(path: &core::ffi::CStr) -> Option<&'static [u64]> {
    let failed = |result: isize| (-4095..0).contains(&result);
    // SAFETY: opens a file and asks for its size; `stat` is large enough and may be zero.
    unsafe {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        let fd = real::syscall(
            libc::SYS_openat,
            [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0],
        );
        if failed(fd) {
            return None;
        }
        let mut stat: libc::stat = core::mem::zeroed();
        let known = real::syscall(libc::SYS_fstat, [fd as usize, (&raw mut stat) as usize, 0, 0, 0, 0]);
        let bytes = usize::try_from(stat.st_size).ok().filter(|&bytes| !failed(known) && bytes >= 8);
        let start = bytes.map(|bytes| {
            let (prot, flags) = (libc::PROT_READ as usize, libc::MAP_PRIVATE as usize);
            real::syscall(libc::SYS_mmap, [0, bytes, prot, flags, fd as usize, 0])
        });
        real::syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
        let start = start.filter(|&start| !failed(start))?;
        Some(core::slice::from_raw_parts(start as *const u64, bytes? / 8))
    }
}

/// The handle of the calling thread, as `pthread_self` returns it.
fn own_handle() -> u64 {
    // SAFETY: asks for the calling thread's own handle.
    unsafe { libc::pthread_self() }
}
