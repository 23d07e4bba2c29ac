//! The runtime's one message channel: a few entries in the shared region, read by the `raddle` process.
//!
//! Without a region there is nobody to talk to; only an error that ends the program is then written to standard error.

use crate::{arch, real, run};
use core::fmt::Write;
use core::sync::atomic::{AtomicUsize, Ordering};
use raddle_wire::Header;
use raddle_wire::region::{MESSAGE_TEXT_MAX, MESSAGES_MAX, MESSAGES_OFFSET, MessageEntry, message_level};

/// Text of bounded length, built without allocating.
pub struct Text {
    bytes: [u8; MESSAGE_TEXT_MAX],
    used: usize,
}

impl Text {
    pub const fn new() -> Text {
        Text { bytes: [0; MESSAGE_TEXT_MAX], used: 0 }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

impl Default for Text {
    fn default() -> Self {
        Text::new()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let room = (MESSAGE_TEXT_MAX - self.used).min(text.len());
        self.bytes[self.used..self.used + room].copy_from_slice(&text.as_bytes()[..room]);
        self.used += room;
        Ok(())
    }
}

pub fn note(arguments: core::fmt::Arguments<'_>) {
    send(message_level::NOTE, arguments);
}

pub fn warning(arguments: core::fmt::Arguments<'_>) {
    send(message_level::WARNING, arguments);
}

/// What the program wants to be called when the runtime ends it (`__sanitizer_set_death_callback`); an address, 0 for nothing.
static DEATH_CALLBACK: AtomicUsize = AtomicUsize::new(0);

pub fn set_death_callback(callback: Option<extern "C" fn()>) {
    DEATH_CALLBACK.store(callback.map_or(0, |callback| callback as usize), Ordering::Release);
}

fn call_death_callback() {
    let callback = DEATH_CALLBACK.swap(0, Ordering::AcqRel);
    if callback != 0 {
        // SAFETY: only `set_death_callback` stores here, and what it stores is such a function.
        let callback = unsafe { core::mem::transmute::<usize, extern "C" fn()>(callback) };
        callback();
    }
}

/// Says why the runtime cannot go on, and ends the program with status 2.
pub fn fatal(arguments: core::fmt::Arguments<'_>) -> ! {
    let mut text = Text::new();
    let _ = text.write_fmt(arguments);
    if !post(message_level::ERROR, &text) {
        real::write_stderr(b"raddle: error: ");
        real::write_stderr(text.as_bytes());
        real::write_stderr(b"\n");
    }
    call_death_callback();
    if let Some(header) = run::header() {
        header.state.store(raddle_wire::region::state::REFUSED, Ordering::Release);
    }
    real::exit_group(2)
}

/// A bug in the runtime itself.
pub fn internal_error(info: &core::panic::PanicInfo<'_>) {
    let mut text = Text::new();
    let _ = write!(text, "the runtime failed: {info}; please report this");
    if !post(message_level::ERROR, &text) {
        real::write_stderr(b"raddle: ");
        real::write_stderr(text.as_bytes());
        real::write_stderr(b"\n");
    }
}

fn send(level: u32, arguments: core::fmt::Arguments<'_>) {
    let mut text = Text::new();
    let _ = text.write_fmt(arguments);
    post(level, &text);
}

/// A warning of a process that has no region of its own, in that of the process it was forked from.
pub fn warning_in(header: &Header, arguments: core::fmt::Arguments<'_>) {
    let mut text = Text::new();
    let _ = text.write_fmt(arguments);
    post_in(header, message_level::WARNING, &text);
}

fn post(level: u32, text: &Text) -> bool {
    let Some(header) = run::header() else { return false };
    post_in(header, level, text);
    true
}

fn post_in(header: &Header, level: u32, text: &Text) {
    let index = header.messages.fetch_add(1, Ordering::Relaxed) as usize;
    if index >= MESSAGES_MAX {
        return;
    }
    let base = core::ptr::from_ref(header) as usize;
    let entry = (base + MESSAGES_OFFSET + index * size_of::<MessageEntry>()) as *mut MessageEntry;
    // SAFETY: the entry lies in the mapped region and the counter gave this index to us alone; the reader looks at the
    // text only after the level has been stored.
    unsafe {
        arch::copy_forward((&raw mut (*entry).text).cast(), text.bytes.as_ptr(), text.used);
        (&raw mut (*entry).bytes).write(text.used as u32);
        (*entry).level.store(level, Ordering::Release);
    }
}
