//! `sanitizer/common_interface_defs.h`, `coverage_interface.h` and `allocator_interface.h`: what programs ask of any sanitizer.
//!
//! A program that says `#if __has_feature(thread_sanitizer)` may call these, and must link. The names are weak: who brings functions of
//! its own for coverage keeps them.
//!
//! Deviations: places are told as function, module and offset, without lines (`raddle` reads debug information, the runtime does not).
//! Functions under `silent!` do nothing, and docs/visibility.md says so to users: reports go to the `raddle` process, so their path cannot be
//! changed; nothing is counted for coverage; malloc hooks are not installed, which the result says; `__tsan_check_no_mutexes_held` checks nothing.

use crate::message::Text;
use crate::{export_with_pc, message, observe, real, thread};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, Ordering};
use raddle_wire::record::access::WRITE;

/// Calls that a printed stack shows at most.
const PRINTED_FRAMES_MAX: usize = 64;

/// Where an address of code lies, as the dynamic linker knows it.
struct Place {
    function: Option<&'static CStr>,
    module: &'static CStr,
    offset: usize,
}

fn place(pc: usize) -> Option<Place> {
    // SAFETY: all fields may be zero.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked about.
    let known = unsafe { libc::dladdr(pc as *const c_void, &raw mut found) } != 0;
    if !known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: names of a module that is loaded; null was excluded.
    unsafe {
        Some(Place {
            function: (!found.dli_sname.is_null()).then(|| CStr::from_ptr(found.dli_sname)),
            module: CStr::from_ptr(found.dli_fname),
            offset: pc - found.dli_fbase as usize,
        })
    }
}

fn text(name: &CStr) -> &str {
    name.to_str().unwrap_or("?")
}

extern "C" fn print_stack_trace() {
    let thread = thread::current();
    let frames = thread.calls.innermost::<PRINTED_FRAMES_MAX>(thread.caller_pc());
    for (number, &pc) in frames.iter().take_while(|&&pc| pc != 0).enumerate() {
        let mut line = Text::new();
        let _ = write!(line, "    #{number} {pc:#x}");
        if let Some(place) = place(pc as usize) {
            if let Some(function) = place.function {
                let _ = write!(line, " in {}", text(function));
            }
            let _ = write!(line, " ({}+{:#x})", text(place.module), place.offset);
        }
        real::write_stderr(line.as_bytes());
        real::write_stderr(b"\n");
    }
}

/// Copies text and the zero behind it, as much as there is room for.
///
/// # Safety
/// `to` has room for `bytes` bytes.
unsafe fn copy_out(said: &[u8], to: *mut c_char, bytes: usize) {
    let Some(room) = bytes.checked_sub(1).filter(|_| !to.is_null()) else { return };
    let used = said.len().min(room);
    // SAFETY: by contract; `used` leaves room for the zero.
    unsafe {
        core::ptr::copy_nonoverlapping(said.as_ptr(), to.cast(), used);
        *to.add(used) = 0;
    }
}

/// `%p`, `%f`, `%m`, `%o` and `%%` of ThreadSanitizer's format; lines and columns are 0, source files unknown.
fn describe(pc: usize, format: &[u8]) -> Text {
    let place = place(pc);
    let module = place.as_ref().map_or("<unknown module>", |place| text(place.module));
    let function = place.as_ref().and_then(|place| place.function).map_or("<unknown function>", text);
    let mut said = Text::new();
    let mut rest = format.iter();
    while let Some(&byte) = rest.next() {
        let _ = match (byte, (byte == b'%').then(|| rest.next()).flatten()) {
            (b'%', Some(b'p')) => write!(said, "{pc:#x}"),
            (b'%', Some(b'f' | b'F')) => said.write_str(function),
            (b'%', Some(b'm' | b'M')) => said.write_str(module),
            (b'%', Some(b'o')) => write!(said, "{:#x}", place.as_ref().map_or(0, |place| place.offset)),
            (b'%', Some(b'l' | b'c' | b'n')) => said.write_char('0'),
            (b'%', Some(b'%')) => said.write_char('%'),
            (b'%', _) => said.write_str("<unknown>"),
            _ => said.write_char(byte as char),
        };
    }
    said
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_symbolize_pc(
    pc: usize,
    format: *const c_char,
    to: *mut c_char,
    bytes: usize,
) {
    // SAFETY: a string, as the header asks.
    let format = if format.is_null() { c"%f" } else { unsafe { CStr::from_ptr(format) } };
    // SAFETY: as the header asks.
    unsafe { copy_out(describe(pc, format.to_bytes()).as_bytes(), to, bytes) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_symbolize_global(
    address: usize,
    _format: *const c_char,
    to: *mut c_char,
    bytes: usize,
) {
    // SAFETY: as the header asks.
    unsafe { copy_out(describe(address, b"%f").as_bytes(), to, bytes) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_get_module_and_offset_for_pc(
    pc: usize,
    to: *mut c_char,
    bytes: usize,
    offset: *mut usize,
) -> c_int {
    let Some(place) = place(pc) else { return 0 };
    // SAFETY: as the header asks.
    unsafe {
        copy_out(place.module.to_bytes(), to, bytes);
        if !offset.is_null() {
            *offset = place.offset;
        }
    }
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_set_death_callback(callback: Option<extern "C" fn()>) {
    message::set_death_callback(callback);
}

/// The first who asks gets it.
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_acquire_crash_state() -> c_int {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    c_int::from(!TAKEN.swap(true, Ordering::AcqRel))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_report_error_summary(summary: *const c_char) {
    if !summary.is_null() {
        // SAFETY: a string, as the header asks.
        let summary = unsafe { CStr::from_ptr(summary) };
        real::write_stderr(b"SUMMARY: ");
        real::write_stderr(summary.to_bytes());
        real::write_stderr(b"\n");
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_get_report_path() -> *const c_char {
    c"stderr".as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_get_allocated_size(memory: *const c_void) -> usize {
    if memory.is_null() {
        return 0;
    }
    // SAFETY: a block that is allocated, as the header asks.
    unsafe { real::usable_size(memory as usize) }
}

/// 1 for what an allocation function returned, which the runtime does not keep apart from other addresses.
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_get_ownership(memory: *const c_void) -> c_int {
    c_int::from(!memory.is_null())
}

#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_get_estimated_allocated_size(bytes: usize) -> usize {
    bytes
}

/// Functions that do nothing: they return 0, where they return anything. They are here so that programs link.
macro_rules! silent {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> usize {
            0
        }
    )*};
}

silent! {
    __sanitizer_set_report_path __sanitizer_set_report_fd __sanitizer_sandbox_on_notify
    __sanitizer_get_current_allocated_bytes __sanitizer_get_free_bytes __sanitizer_get_heap_size
    __sanitizer_get_unmapped_bytes __sanitizer_install_malloc_and_free_hooks __tsan_check_no_mutexes_held
    __sanitizer_cov_8bit_counters_init __sanitizer_cov_bool_flag_init __sanitizer_cov_dump __sanitizer_cov_pcs_init
    __sanitizer_cov_reset __sanitizer_cov_trace_cmp __sanitizer_cov_trace_cmp1 __sanitizer_cov_trace_cmp2
    __sanitizer_cov_trace_cmp4 __sanitizer_cov_trace_cmp8 __sanitizer_cov_trace_const_cmp1
    __sanitizer_cov_trace_const_cmp2 __sanitizer_cov_trace_const_cmp4 __sanitizer_cov_trace_const_cmp8
    __sanitizer_cov_trace_div4 __sanitizer_cov_trace_div8 __sanitizer_cov_trace_gep __sanitizer_cov_trace_pc
    __sanitizer_cov_trace_pc_guard __sanitizer_cov_trace_pc_guard_init __sanitizer_cov_trace_pc_indir
    __sanitizer_cov_trace_switch __sanitizer_dump_coverage __sanitizer_dump_trace_pc_guard_coverage
}

fn access(address: usize, bytes: usize, aux: u8) {
    let thread = thread::current();
    if thread.access.are_enabled() && !thread.is_busy() {
        observe::range(thread, thread.caller_pc(), aux, address, bytes);
    }
}

macro_rules! unaligned {
    ($($load:ident $store:ident $word:ty;)*) => {$(
        extern "C" fn $load(address: *const $word) -> $word {
            access(address as usize, size_of::<$word>(), 0);
            // SAFETY: as the program asks.
            unsafe { address.read_unaligned() }
        }

        extern "C" fn $store(address: *mut $word, value: $word) {
            access(address as usize, size_of::<$word>(), WRITE);
            // SAFETY: as the program asks.
            unsafe { address.write_unaligned(value) };
        }
    )*};
}

unaligned! {
    load16 store16 u16;
    load32 store32 u32;
    load64 store64 u64;
}

export_with_pc! {
    __sanitizer_print_stack_trace => print_stack_trace;
    __sanitizer_unaligned_load16 => load16;
    __sanitizer_unaligned_load32 => load32;
    __sanitizer_unaligned_load64 => load64;
    __sanitizer_unaligned_store16 => store16;
    __sanitizer_unaligned_store32 => store32;
    __sanitizer_unaligned_store64 => store64;
}
