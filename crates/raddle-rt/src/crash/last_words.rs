//! What a program says when it ends itself: the assertion that failed, or what the C library aborted it for.
//!
//! Functions of failed assertions leave their arguments with their thread (`interpose::assertion`). What the C library itself says
//! when it aborts a program (a corrupt heap, an overflowing buffer, a smashed stack) it keeps for debuggers in `__abort_msg`.

use super::memory;
use crate::thread::Thread;
use core::ffi::{c_int, c_uint};
use core::sync::atomic::{AtomicUsize, Ordering};
use raddle_wire::crash::{TEXT_MAX, Writer, text};

/// Where the C library keeps a pointer to its last words: their size, and they themselves.
static MESSAGE: AtomicUsize = AtomicUsize::new(0);

/// Looked up beforehand: a handler must not.
pub fn find_message() {
    // SAFETY: the names are C strings.
    let found =
        unsafe { libc::dlvsym(libc::RTLD_DEFAULT, c"__abort_msg".as_ptr(), c"GLIBC_PRIVATE".as_ptr()) };
    MESSAGE.store(found as usize, Ordering::Relaxed);
}

/// Puts what the thread died of into the report.
pub fn tell(thread: &Thread, writer: &mut Writer<'_>) {
    let failed = thread.dying.assertion.get();
    let mut room = [0u8; TEXT_MAX];
    if !failed.is_none() {
        let (first, rest) = room.split_at_mut(TEXT_MAX / 2);
        let (second, third) = rest.split_at_mut(TEXT_MAX / 4);
        let expression = match failed.expression {
            0 => error_text(failed.error, first),
            at => memory::text(at, first),
        };
        let texts = [expression, memory::text(failed.file, second), memory::text(failed.function, third)];
        return writer.texts(text::ASSERTION, failed.line, texts);
    }
    let at = MESSAGE.load(Ordering::Relaxed);
    let message = if at == 0 { None } else { memory::word(at).filter(|&message| message != 0) };
    if let Some(message) = message {
        let said = memory::text(message as usize + size_of::<c_uint>(), &mut room);
        if !said.is_empty() {
            writer.texts(text::MESSAGE, 0, [said.trim_ascii_end(), &[], &[]]);
        }
    }
}

/// As `error 2`.
fn error_text(error: c_int, into: &mut [u8]) -> &[u8] {
    const WORD: &[u8] = b"error ";
    into[..WORD.len()].copy_from_slice(WORD);
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    let mut rest = error.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let number = &digits[at..];
    into[WORD.len()..WORD.len() + number.len()].copy_from_slice(number);
    &into[..WORD.len() + number.len()]
}
