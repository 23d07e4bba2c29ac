//! What the program itself says about reports: options, suppressions, and a function that wants to hear of each one.
//!
//! These are functions of ThreadSanitizer's interface that a program may define. They are found through weak references, so that a
//! program which defines none of them links, too.

use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::Ordering;
use raddle_wire::report::ReportEntry;

macro_rules! program_function {
    ($finder:ident, $label:literal, $name:literal) => {
        global_asm!(
            concat!(".weak ", $name),
            ".text",
            concat!(".hidden ", $label),
            concat!(".globl ", $label),
            concat!(".type ", $label, ",@function"),
            concat!($label, ":"),
            concat!("mov rax, qword ptr [rip + ", $name, "@GOTPCREL]"),
            "ret",
            concat!(".size ", $label, ", . - ", $label),
        );
        unsafe extern "C" {
            #[link_name = $label]
            fn $finder() -> usize;
        }
    };
}

program_function!(find_on_report, "raddle_find_on_report", "__tsan_on_report");
program_function!(find_default_options, "raddle_find_default_options", "__tsan_default_options");
program_function!(
    find_default_suppressions,
    "raddle_find_default_suppressions",
    "__tsan_default_suppressions"
);

fn text_of(function: usize) -> Option<&'static CStr> {
    if function == 0 {
        return None;
    }
    // SAFETY: the program defines it with this signature.
    let function = unsafe { core::mem::transmute::<usize, extern "C" fn() -> *const c_char>(function) };
    let text = function();
    // SAFETY: null, or a C string that the program never releases.
    if text.is_null() { None } else { Some(unsafe { CStr::from_ptr(text) }) }
}

/// What the program says about options, if it says anything.
pub fn default_options() -> Option<&'static CStr> {
    // SAFETY: returns an address or null.
    text_of(unsafe { find_default_options() })
}

/// The program's own suppressions.
pub fn default_suppressions() -> Option<&'static CStr> {
    // SAFETY: returns an address or null.
    text_of(unsafe { find_default_suppressions() })
}

/// The report that a thread is telling the program of.
static CURRENT: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

/// Tells the program of a report.
pub fn on_report(entry: *const ReportEntry) {
    // SAFETY: returns an address or null.
    let function = unsafe { find_on_report() };
    if function != 0 {
        // SAFETY: the program defines it with this signature.
        let function = unsafe { core::mem::transmute::<usize, extern "C" fn(*const c_void)>(function) };
        CURRENT.store(entry as usize, Ordering::Release);
        function(entry.cast());
    }
}

/// The report that the program was last told of.
pub fn current_report() -> *const ReportEntry {
    CURRENT.load(Ordering::Acquire) as *const ReportEntry
}
