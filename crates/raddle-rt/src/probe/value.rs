//! What an event carries: looked up when it happens.

use super::plan::{self, Event, Plan, Value};
use super::trampolines::Frame;
use crate::real;
use core::fmt::Write;
use raddle_wire::probe::{global_place, holds, source, widened};

/// Where an event looks for its values.
#[derive(Clone, Copy, Default)]
pub struct Situation<'a> {
    /// Registers at a call or at the beginning of a function.
    pub frame: Option<&'a Frame>,
    pub returned: u64,
    /// An access to memory.
    pub address: usize,
    pub bytes: usize,
}

/// Most bytes of an event's text; longer words are cut.
const TEXT_BYTES: usize = 480;

/// The text of an event: its name and, in parentheses, its fields.
pub struct Text {
    bytes: [u8; TEXT_BYTES],
    used: usize,
}

impl Text {
    pub const fn new() -> Text {
        Text { bytes: [0; TEXT_BYTES], used: 0 }
    }

    fn push(&mut self, more: &[u8]) {
        let now = more.len().min(TEXT_BYTES - self.used);
        self.bytes[self.used..self.used + now].copy_from_slice(&more[..now]);
        self.used += now;
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// Reads memory that may not be there.
fn read(address: u64, bytes: usize) -> Option<u64> {
    let mut value = 0u64;
    let local = libc::iovec { iov_base: (&raw mut value).cast(), iov_len: bytes };
    let remote = libc::iovec { iov_base: address as *mut core::ffi::c_void, iov_len: bytes };
    // SAFETY: writes at most eight bytes to the local value; the kernel answers with an error where there is no memory.
    let got = unsafe {
        real::syscall(
            libc::SYS_process_vm_readv,
            [real::getpid() as usize, (&raw const local) as usize, 1, (&raw const remote) as usize, 1, 0],
        )
    };
    (got == bytes as isize).then_some(value)
}

impl Situation<'_> {
    /// `None`: it cannot be read.
    fn value(&self, value: Value) -> Option<i64> {
        let register = |frame: &Frame, number: u64| {
            [frame.rdi, frame.rsi, frame.rdx, frame.rcx, frame.r8, frame.r9].get(number as usize).copied()
        };
        let own = match value.source {
            source::NUMBER => value.which,
            source::GLOBAL => {
                let (module, address) = global_place(value.which);
                (plan::bias(module)? as u64).wrapping_add(address)
            }
            source::REGISTER => register(self.frame?, value.which)?,
            source::STACK => {
                let stack = core::ptr::from_ref(self.frame?) as u64 + size_of::<Frame>() as u64;
                read(stack.wrapping_add(value.which.wrapping_mul(8)), 8)?
            }
            source::RETURN => self.returned,
            source::SIZE => self.bytes as u64,
            source::ADDRESS => self.address as u64,
            source::ACCESSED => read(self.address as u64, self.bytes.min(8))?,
            source::THREAD => super::own_handle(),
            source::CALLER => self.frame?.return_address,
            _ => return None,
        };
        let mut word = own;
        for left in (0..value.dereferences).rev() {
            word = read(word, if left == 0 { usize::from(value.bytes).clamp(1, 8) } else { 8 })?;
        }
        Some(widened(word, value.bytes, value.signed))
    }

    /// The object that a model is about: the first field.
    pub fn object(&self, event: Event) -> Option<usize> {
        self.value(event.fields().next()?).map(|value| value as usize)
    }

    pub fn meets(&self, event: Event) -> bool {
        event.conditions().all(|(left, relation, right)| {
            matches!((self.value(left), self.value(right)), (Some(left), Some(right)) if holds(relation, left, right))
        })
    }

    pub fn write(&self, plan: Plan, event: Event, text: &mut Text) {
        text.push(plan.text(event.name));
        text.push(b"(");
        for (number, field) in event.fields().enumerate() {
            if number > 0 {
                text.push(b",");
            }
            if field.is_word() {
                text.push(plan.text(field.which));
                continue;
            }
            match self.value(field) {
                Some(value) => _ = write!(text, "{value}"),
                None => text.push(b"unreadable"),
            }
        }
        text.push(b")");
    }
}
