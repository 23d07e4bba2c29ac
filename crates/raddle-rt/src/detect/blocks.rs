//! Where memory was allocated, for reports: the last allocations by address, in a table of fixed size.
//!
//! A block that shares its place in the table with a later one is forgotten: the report then does not say where the
//! memory comes from. Looking up an address in the middle of a block reads the whole table, which is fine for something
//! that happens once a report.

use super::locks::frames;
use crate::arena;
use crate::thread::Thread;
use core::sync::atomic::{AtomicUsize, Ordering};

pub const BLOCK_FRAMES: usize = 12;
const BLOCKS: usize = 1 << 15;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct Block {
    pub start: usize,
    pub bytes: usize,
    pub thread: u32,
    pub frames: [u64; BLOCK_FRAMES],
}

static TABLE: AtomicUsize = AtomicUsize::new(0);

pub fn reserve() -> bool {
    match arena::map(BLOCKS * size_of::<Block>()) {
        Some(start) => {
            TABLE.store(start as usize, Ordering::Release);
            true
        }
        None => false,
    }
}

fn entry(ix: usize) -> *mut Block {
    (TABLE.load(Ordering::Relaxed) + ix * size_of::<Block>()) as *mut Block
}

/// Notes an allocation. Entries may be torn by two threads at once; a report then names one of the two.
pub fn note(thread: &Thread, pc: u64, start: usize, bytes: usize) {
    if TABLE.load(Ordering::Relaxed) == 0 {
        return;
    }
    let at = entry((start >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49);
    // SAFETY: inside the table; plain data.
    unsafe { at.write_volatile(Block { start, bytes, thread: thread.index(), frames: frames(thread, pc) }) };
}

/// The block that holds an address.
pub fn find(address: usize) -> Option<Block> {
    if TABLE.load(Ordering::Relaxed) == 0 {
        return None;
    }
    (0..BLOCKS).find_map(|ix| {
        // SAFETY: inside the table; plain data.
        let block = unsafe { entry(ix).read_volatile() };
        (block.start != 0 && block.start <= address && address < block.start.saturating_add(block.bytes))
            .then_some(block)
    })
}
