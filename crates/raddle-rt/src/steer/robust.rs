//! What the kernel does with the robust mutexes of a thread that ends, done in the thread's last turn.
//!
//! A thread may end while it holds robust mutexes; the next one to take such a mutex is told that its owner died. The kernel marks them
//! when the thread is really gone, which is some time after its last turn: whoever tried before that would be set aside for
//! a mutex that nobody will ever release. So the list that the thread has told the kernel (`set_robust_list`) is walked
//! here, each mutex on it is marked as the kernel would mark it, and the list is left empty.

use crate::real;
use core::sync::atomic::{AtomicU32, Ordering};

/// The kernel gives up after so many, too.
const MUTEXES_MAX: usize = 2048;
const TID_MASK: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;
/// Bit of an entry's address: the mutex inherits priorities.
const INHERITS: usize = 1;

/// `struct robust_list_head` of the kernel's interface.
#[repr(C)]
struct Head {
    next: usize,
    futex_offset: isize,
    pending: usize,
}

/// Marks what the calling thread still holds, and says of each mutex that it was released.
pub fn abandon(mut released: impl FnMut(usize)) {
    let (mut head, mut bytes) = (0usize, 0usize);
    // SAFETY: room for both answers.
    let failed = unsafe {
        real::syscall(
            libc::SYS_get_robust_list,
            [0, &raw mut head as usize, &raw mut bytes as usize, 0, 0, 0],
        )
    };
    if failed != 0 || head == 0 || bytes != size_of::<Head>() {
        return;
    }
    let me = real::gettid();
    // SAFETY: the list is the calling thread's own, and nobody else writes it.
    unsafe {
        let list = head as *mut Head;
        let mut entry = (*list).next;
        for _ in 0..MUTEXES_MAX {
            let place = entry & !INHERITS;
            if place == head || place == 0 {
                break;
            }
            let word = place.wrapping_add_signed((*list).futex_offset);
            let futex = &*(word as *const AtomicU32);
            let value = futex.load(Ordering::Relaxed);
            if value & TID_MASK == me {
                futex.store(value & WAITERS | OWNER_DIED, Ordering::Release);
                // The word is the mutex's first.
                released(word);
            }
            entry = *(place as *const usize);
        }
        (*list).next = head;
        (*list).pending = 0;
    }
}
