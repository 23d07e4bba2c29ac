//! Changing a module's code: the stubs beside it, then the places that lead to them.
//!
//! No memory is ever writable and executable at once, and none has to become executable after it was written through a mapping: stubs are
//! written to a file in memory and mapped from there, code is written through `/proc/self/mem`. That also works where the system forbids
//! to make writable memory executable (`PR_SET_MDWE`). Where that file is not to be had, the rights of the page are changed for a moment.
//!
//! Every patch says what it replaces. A place that holds something else (a debugger's breakpoint, another tool's patch, another build)
//! stays as it is, and the user is told.

use super::plan::{self, Module};
use super::{globals, trampolines};
use crate::{message, real, run};
use core::sync::atomic::Ordering;
use raddle_wire::probe::{SLOT_AROUND, SLOT_BEFORE, SLOT_LINE, identity};
use raddle_wire::region::{MODULES_OFFSET, ModuleEntry};

const PAGE: usize = 4096;

fn failed(result: isize) -> bool {
    (-4095..0).contains(&result)
}

/// Carries the plan out in all modules that were loaded since it was done last.
pub fn all() {
    let (Some(plan), Some(header)) = (plan::plan(), run::header()) else { return };
    let base = core::ptr::from_ref(header) as usize + MODULES_OFFSET;
    for index in 0..header.modules.load(Ordering::Acquire) as usize {
        // SAFETY: entries below the count are complete.
        let entry = unsafe { &*((base + index * size_of::<ModuleEntry>()) as *const ModuleEntry) };
        if entry.image != run::image() {
            continue;
        }
        let path = &entry.path[..usize::from(entry.path_bytes)];
        let id = identity(&entry.build_id[..usize::from(entry.build_id_bytes)], path);
        for ix in 0..plan.modules() {
            let Some(module) = plan.module(ix) else { continue };
            if module.identity() == id && plan::bias(ix).is_none() {
                apply(module, ix, entry.bias as usize);
            }
        }
    }
    globals::placed();
}

fn apply(module: Module, ix: usize, bias: usize) {
    let Some(bytes) = module.blob() else { return };
    let blob = bias.wrapping_add(module.distance());
    if module.patches() == 0 {
        return plan::place(ix, bias, 0);
    }
    if !map_blob(module, bytes, bias, blob) {
        return message::warning(format_args!(
            "there is no room for probes beside a module at {bias:#x}, so its aspects have no events"
        ));
    }
    plan::place(ix, bias, blob);
    let mut refused = 0;
    let memory = open_memory();
    for patch in (0..module.patches()).filter_map(|patch| module.patch(patch)) {
        let (address, count, old, new) = patch;
        refused += usize::from(!write(memory, bias.wrapping_add(address), count, old, new));
    }
    if let Some(memory) = memory {
        // SAFETY: closes what was opened here.
        unsafe { real::syscall(libc::SYS_close, [memory, 0, 0, 0, 0, 0]) };
    }
    if refused > 0 {
        message::warning(format_args!(
            "{refused} of {} places of probes hold other code than planned (a breakpoint?) and stay as they are",
            module.patches()
        ));
    }
}

fn map_blob(module: Module, bytes: &[u8], bias: usize, blob: usize) -> bool {
    let whole = bytes.len().next_multiple_of(PAGE);
    // SAFETY: makes a file in memory, fills it, and maps it where nothing else is mapped.
    unsafe {
        let name = c"raddle probes";
        let fd = real::syscall(
            libc::SYS_memfd_create,
            [name.as_ptr() as usize, libc::MFD_CLOEXEC as usize, 0, 0, 0, 0],
        );
        if failed(fd) {
            return false;
        }
        let fd = fd as usize;
        let put = |from: *const u8, count: usize, at: usize| {
            real::syscall(libc::SYS_pwrite64, [fd, from as usize, count, at, 0, 0]) == count as isize
        };
        let word = |value: usize, at: usize| put((&raw const value).cast(), 8, at);
        let mut sound = put(bytes.as_ptr(), bytes.len(), 0)
            && word(trampolines::before as *const () as usize, SLOT_BEFORE)
            && word(trampolines::around as *const () as usize, SLOT_AROUND)
            && word(trampolines::line as *const () as usize, SLOT_LINE);
        for at in (0..module.slots()).filter_map(|slot| module.slot(slot)) {
            let planned = bytes.as_ptr().add(at).cast::<usize>().read_unaligned();
            sound &= word(planned.wrapping_add(bias), at);
        }
        let prot = (libc::PROT_READ | libc::PROT_EXEC) as usize;
        let flags = (libc::MAP_PRIVATE | libc::MAP_FIXED_NOREPLACE) as usize;
        let mapped =
            if sound { real::syscall(libc::SYS_mmap, [blob, whole, prot, flags, fd, 0]) } else { -1 };
        real::syscall(libc::SYS_close, [fd, 0, 0, 0, 0, 0]);
        if !failed(mapped) && mapped as usize != blob {
            // A kernel that does not know the flag takes the address as a wish.
            real::syscall(libc::SYS_munmap, [mapped as usize, whole, 0, 0, 0, 0]);
        }
        mapped as usize == blob
    }
}

fn open_memory() -> Option<usize> {
    let path = c"/proc/self/mem";
    let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
    // SAFETY: opens a file.
    let fd = unsafe {
        real::syscall(libc::SYS_openat, [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0])
    };
    (!failed(fd)).then_some(fd as usize)
}

/// Replaces bytes of code, if they are what they should be.
fn write(memory: Option<usize>, address: usize, count: usize, old: [u64; 2], new: [u64; 2]) -> bool {
    let (old, new) = (core::ptr::from_ref(&old).cast::<u8>(), core::ptr::from_ref(&new).cast::<u8>());
    // SAFETY: code of a module that is loaded, and arrays of sixteen bytes; `count` was checked to be no more.
    let holds = (0..count).all(|at| unsafe { *((address + at) as *const u8) == *old.add(at) });
    if !holds {
        return false;
    }
    if let Some(memory) = memory {
        // SAFETY: writes to this process's own memory, where it holds what the plan replaces.
        let written =
            unsafe { real::syscall(libc::SYS_pwrite64, [memory, new as usize, count, address, 0, 0]) };
        if written == count as isize {
            return true;
        }
    }
    let first = address & !(PAGE - 1);
    let whole = (address + count).next_multiple_of(PAGE) - first;
    let protect = |rights: i32| {
        // SAFETY: changes the rights of pages of code, and gives them back.
        !failed(unsafe { real::syscall(libc::SYS_mprotect, [first, whole, rights as usize, 0, 0, 0]) })
    };
    // Asked for first: where it is refused, the page must not lose its right to execute either.
    if !protect(libc::PROT_READ | libc::PROT_EXEC) || !protect(libc::PROT_READ | libc::PROT_WRITE) {
        return false;
    }
    for at in 0..count {
        // SAFETY: writable for the moment.
        unsafe { *((address + at) as *mut u8) = *new.add(at) };
    }
    protect(libc::PROT_READ | libc::PROT_EXEC)
}
