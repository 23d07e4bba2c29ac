//! The locks that a thread holds, and where it took them. There is no limit on their number.

use crate::arena;
use crate::thread::Thread;

/// Calls kept of the stack where a lock was taken.
pub const ACQUIRED_FRAMES: usize = 12;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct HeldLock {
    pub object: usize,
    /// Which of the objects that had this address.
    pub serial: u32,
    pub read: bool,
    /// How many times its holder took it again for reading and has not given it back.
    pub again: u16,
    /// Whoever takes it next is told if its holder has died.
    pub robust: bool,
    pub frames: [u64; ACQUIRED_FRAMES],
}

impl HeldLock {
    /// Object and mode, as one number.
    pub fn identity(&self) -> u64 {
        u64::from(self.serial) << 1 | u64::from(self.read)
    }
}

/// A list that grows by doubling in private memory.
pub struct Held {
    start: *mut HeldLock,
    len: usize,
    capacity: usize,
}

const FIRST_CAPACITY: usize = 32;

impl Held {
    pub fn clear(&mut self) {
        self.len = 0;
    }

    pub fn as_slice(&self) -> &[HeldLock] {
        if self.start.is_null() {
            return &[];
        }
        // SAFETY: entries below `len` are written.
        unsafe { core::slice::from_raw_parts(self.start, self.len) }
    }

    pub fn push(&mut self, lock: HeldLock) {
        if self.len == self.capacity && !self.grow() {
            return;
        }
        // SAFETY: below the capacity.
        unsafe { self.start.add(self.len).write(lock) };
        self.len += 1;
    }

    fn grow(&mut self) -> bool {
        let capacity = if self.capacity == 0 { FIRST_CAPACITY } else { self.capacity * 2 };
        let Some(start) = arena::map(capacity * size_of::<HeldLock>()) else { return false };
        let start = start.cast::<HeldLock>();
        if !self.start.is_null() {
            // SAFETY: the old list is valid for `len` and nobody else uses it.
            unsafe {
                core::ptr::copy_nonoverlapping(self.start, start, self.len);
                arena::unmap(self.start.cast(), self.capacity * size_of::<HeldLock>());
            }
        }
        self.start = start;
        self.capacity = capacity;
        true
    }

    /// Takes the lock off the list; none if it was not there.
    pub fn remove(&mut self, object: usize) -> Option<HeldLock> {
        let at = self.as_slice().iter().rposition(|held| held.object == object)?;
        let found = self.as_slice()[at];
        // SAFETY: moves the entries behind it down by one.
        unsafe { core::ptr::copy(self.start.add(at + 1), self.start.add(at), self.len - at - 1) };
        self.len -= 1;
        Some(found)
    }

    /// The thread takes a lock that it holds for reading again, for reading: which is legal, and given back as often.
    pub fn read_again(&mut self, object: usize) {
        if let Some(held) = self.find_mut(object).filter(|held| held.read) {
            held.again = held.again.saturating_add(1);
        }
    }

    /// The thread gives back a lock that it took more than once for reading: does it hold it still?
    pub fn still_read(&mut self, object: usize) -> bool {
        let Some(held) = self.find_mut(object).filter(|held| held.again != 0) else { return false };
        held.again -= 1;
        true
    }

    fn find_mut(&mut self, object: usize) -> Option<&mut HeldLock> {
        if self.start.is_null() {
            return None;
        }
        // SAFETY: entries below `len` are written, and only their thread reaches them.
        let list = unsafe { core::slice::from_raw_parts_mut(self.start, self.len) };
        list.iter_mut().rev().find(|held| held.object == object)
    }

    pub fn find(&self, object: usize) -> Option<&HeldLock> {
        self.as_slice().iter().rev().find(|held| held.object == object)
    }
}

/// The innermost calls of a thread, with the given place first; zeroes behind the outermost.
pub fn frames<const N: usize>(thread: &Thread, pc: u64) -> [u64; N] {
    thread.calls.innermost(pc)
}
