//! Which files are mapped where, so that program counters can be named after the process is gone.

use crate::thread::{self, Busy};
use crate::{export_with_pc, observe, real_fn, run, spin};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use raddle_wire::SyncOp;
use raddle_wire::region::{BUILD_ID_MAX, MODULE_PATH_MAX, MODULES_MAX, MODULES_OFFSET, ModuleEntry};

mod c {
    use super::*;
    real_fn! {
        fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    }
}

static TABLE: spin::Spin<u32> = spin::Spin::new(0);
/// Who else wants to know of new modules: the address of a function, or 0.
static ALSO: AtomicUsize = AtomicUsize::new(0);

/// Calls the function whenever modules were loaded after the start.
pub fn when_loaded(function: fn()) {
    ALSO.store(function as usize, Ordering::Release);
}

/// Lists all mapped modules that are not listed yet.
pub fn register(image: u32) {
    let mut scan = Scan { image };
    let _guard = TABLE.lock();
    // SAFETY: the callback only reads what the loader shows it.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut scan).cast()) };
}

struct Scan {
    image: u32,
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description, `register` a valid scan.
    let (info, scan) = unsafe { (&*info, &*data.cast::<Scan>()) };
    let Some(header) = run::header() else { return 1 };
    // SAFETY: the loader's table is valid for its count.
    let segments = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let (mut start, mut end) = (u64::MAX, 0);
    let mut build_id = ([0u8; BUILD_ID_MAX], 0usize);
    for segment in segments {
        if segment.p_type == libc::PT_LOAD {
            start = start.min(info.dlpi_addr + segment.p_vaddr);
            end = end.max(info.dlpi_addr + segment.p_vaddr + segment.p_memsz);
        } else if segment.p_type == libc::PT_NOTE {
            // SAFETY: note segments are mapped.
            let notes = unsafe {
                core::slice::from_raw_parts(
                    (info.dlpi_addr + segment.p_vaddr) as *const u8,
                    segment.p_memsz as usize,
                )
            };
            find_build_id(notes, &mut build_id);
        }
    }
    let index = header.modules.load(Ordering::Relaxed) as usize;
    if start >= end || index >= MODULES_MAX || listed(header, index, start, end, scan.image) {
        return 0;
    }
    let mut path = [0u8; MODULE_PATH_MAX];
    let name = match info.dlpi_name.is_null() {
        true => b"",
        // SAFETY: the dynamic linker passes a C string, which lives while it goes through its list.
        false => unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes(),
    };
    let used = if name.is_empty() && info.dlpi_adds > 0 {
        own_path(&mut path, index)
    } else {
        copy(&mut path, name)
    };
    if used == 0 {
        return 0;
    }
    let entry = ModuleEntry {
        start,
        end,
        bias: info.dlpi_addr,
        path_bytes: used as u16,
        build_id_bytes: build_id.1 as u16,
        image: scan.image,
        build_id: build_id.0,
        path,
    };
    // SAFETY: the entry lies in the mapped region and only the holder of TABLE writes entries.
    unsafe { entry_at(header, index).write(entry) };
    header.modules.store(index as u32 + 1, Ordering::Release);
    0
}

fn entry_at(header: &raddle_wire::Header, index: usize) -> *mut ModuleEntry {
    let base = core::ptr::from_ref(header) as usize;
    (base + MODULES_OFFSET + index * size_of::<ModuleEntry>()) as *mut ModuleEntry
}

fn listed(header: &raddle_wire::Header, count: usize, start: u64, end: u64, image: u32) -> bool {
    (0..count).any(|index| {
        // SAFETY: entries below the count are complete.
        let entry = unsafe { &*entry_at(header, index) };
        (entry.start, entry.end, entry.image) == (start, end, image)
    })
}

fn copy(path: &mut [u8], name: &[u8]) -> usize {
    let used = name.len().min(path.len());
    path[..used].copy_from_slice(&name[..used]);
    used
}

/// The loader does not name the program itself; the first nameless module is the program, later ones are the vdso.
fn own_path(path: &mut [u8; MODULE_PATH_MAX], index: usize) -> usize {
    if index != 0 && run::image() == 0 {
        return 0;
    }
    let link = c"/proc/self/exe";
    // SAFETY: the buffer is valid for its length.
    let used = unsafe {
        crate::real::syscall(
            libc::SYS_readlinkat,
            [libc::AT_FDCWD as usize, link.as_ptr() as usize, path.as_mut_ptr() as usize, path.len(), 0, 0],
        )
    };
    used.max(0) as usize
}

/// Looks for a GNU build-id note.
fn find_build_id(mut notes: &[u8], found: &mut ([u8; BUILD_ID_MAX], usize)) {
    const HEAD_BYTES: usize = 12;
    const BUILD_ID: u32 = 3;
    while notes.len() >= HEAD_BYTES {
        let word = |at: usize| u32::from_le_bytes([notes[at], notes[at + 1], notes[at + 2], notes[at + 3]]);
        let (name, desc, kind) = (word(0) as usize, word(4) as usize, word(8));
        let desc_at = HEAD_BYTES + name.next_multiple_of(4);
        let end = desc_at.saturating_add(desc.next_multiple_of(4));
        if end > notes.len() {
            return;
        }
        if kind == BUILD_ID && notes[HEAD_BYTES..].starts_with(b"GNU\0") && desc <= BUILD_ID_MAX {
            found.0[..desc].copy_from_slice(&notes[desc_at..desc_at + desc]);
            found.1 = desc;
            return;
        }
        notes = &notes[end..];
    }
}

extern "C" fn do_dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
    let pc = thread::current().caller_pc();
    // SAFETY: as the program asks.
    let handle = unsafe { c::dlopen(path, flags) };
    if !handle.is_null()
        && let Some(thread) = thread::observed()
    {
        {
            let _busy = Busy::enter(thread);
            register(run::image());
            let also = ALSO.load(Ordering::Acquire);
            if also != 0 {
                // SAFETY: put there by `when_loaded`.
                unsafe { core::mem::transmute::<usize, fn()>(also)() };
            }
        }
        observe::sync(thread, pc, SyncOp::ModuleLoad, handle as usize, 0);
    }
    handle
}

export_with_pc! {
    dlopen => do_dlopen;
}
