//! Who the threads are, for reports: their parents, names, and where they were created.
//!
//! Kept by thread number in a table of fixed size, so that it can be told of threads that have ended; of very many
//! threads only the last ones are known.

use super::locks::frames;
use crate::arena;
use crate::thread::Thread;
use core::sync::atomic::{AtomicUsize, Ordering};

pub const CREATED_FRAMES: usize = 12;
const PEOPLE: usize = 1 << 12;
const NAME_BYTES: usize = 16;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Person {
    /// One more than the thread's number.
    number: u32,
    pub parent: u32,
    /// It is its parent's n-th child, from 1.
    pub ordinal: u32,
    pub name: [u8; NAME_BYTES],
    pub frames: [u64; CREATED_FRAMES],
}

static TABLE: AtomicUsize = AtomicUsize::new(0);

pub fn reserve() -> bool {
    match arena::map(PEOPLE * size_of::<Person>()) {
        Some(start) => {
            TABLE.store(start as usize, Ordering::Release);
            true
        }
        None => false,
    }
}

fn entry(index: u32) -> *mut Person {
    (TABLE.load(Ordering::Relaxed) + (index as usize % PEOPLE) * size_of::<Person>()) as *mut Person
}

pub fn created(parent: &Thread, child: u32, ordinal: u32, pc: u64) {
    if TABLE.load(Ordering::Relaxed) == 0 {
        return;
    }
    let person = Person {
        number: child + 1,
        parent: parent.index,
        ordinal,
        name: [0; NAME_BYTES],
        frames: frames(parent, pc),
    };
    // SAFETY: inside the table; plain data.
    unsafe { entry(child).write_volatile(person) };
}

pub fn named(index: u32, name: &[u8]) {
    if let Some(mut person) = find(index) {
        person.name = [0; NAME_BYTES];
        let used = name.len().min(NAME_BYTES);
        person.name[..used].copy_from_slice(&name[..used]);
        // SAFETY: inside the table; plain data.
        unsafe { entry(index).write_volatile(person) };
    }
}

pub fn find(index: u32) -> Option<Person> {
    if TABLE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    // SAFETY: inside the table; plain data.
    let person = unsafe { entry(index).read_volatile() };
    (person.number == index + 1).then_some(person)
}
