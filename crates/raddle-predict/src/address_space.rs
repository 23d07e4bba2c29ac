//! Addresses that mean the same memory for the whole trace.
//!
//! An allocator hands the same bytes out again and again, to different threads. Two accesses to one address are accesses
//! to the same memory only if no allocation came between them, so each allocation gets addresses of its own here: its
//! block is moved to a range that nothing else has. In a reordering the allocator could have answered differently, and
//! what is the same memory is decided by the allocation, not by the number.

use raddle_trace::Addr;
use std::collections::BTreeMap;

/// Where blocks are moved to: above every address of a user program.
const MOVED: u64 = 1 << 56;
/// Blocks begin at multiples of this, so that they keep their alignment.
const ALIGNMENT: u64 = 64;

/// More room than any real block takes; a damaged trace may claim more.
const BLOCK_BYTES_MAX: u64 = 1 << 48;

#[derive(Clone, Copy, Debug)]
struct Block {
    end: u64,
    moved_to: u64,
}

/// The heap as it is at one moment of the observed order.
#[derive(Clone, Debug)]
pub struct AddressSpace {
    blocks: BTreeMap<u64, Block>,
    next: u64,
    /// The block of the last answer, which is very often the next one's.
    last: Option<(u64, Block)>,
}

impl Default for AddressSpace {
    fn default() -> AddressSpace {
        AddressSpace { blocks: BTreeMap::new(), next: MOVED, last: None }
    }
}

impl AddressSpace {
    pub fn allocate(&mut self, addr: Addr, size: u64) {
        self.last = None;
        let end = addr.0.saturating_add(size.max(1));
        // Whatever was there has been released without our seeing it.
        let stale: Vec<u64> = self.overlapping(addr.0, end);
        for start in stale {
            self.blocks.remove(&start);
        }
        self.blocks.insert(addr.0, Block { end, moved_to: self.next });
        let room = (end - addr.0).div_ceil(ALIGNMENT).saturating_mul(ALIGNMENT).min(BLOCK_BYTES_MAX);
        self.next = self.next.saturating_add(room);
    }

    /// Forgets the block.
    pub fn free(&mut self, addr: Addr) {
        self.last = None;
        self.blocks.remove(&addr.0);
    }

    /// Size of the block that begins at an address.
    pub fn size_of(&self, addr: Addr) -> Option<u64> {
        self.blocks.get(&addr.0).map(|block| block.end - addr.0)
    }

    /// The memory that an address means now.
    pub fn translate(&mut self, addr: Addr) -> u64 {
        if let Some((start, block)) = self.last
            && (start..block.end).contains(&addr.0)
        {
            return block.moved_to.saturating_add(addr.0 - start);
        }
        match self.blocks.range(..=addr.0).next_back() {
            Some((&start, &block)) if addr.0 < block.end => {
                self.last = Some((start, block));
                block.moved_to.saturating_add(addr.0 - start)
            }
            _ => addr.0,
        }
    }

    fn overlapping(&self, start: u64, end: u64) -> Vec<u64> {
        let before = self.blocks.range(..start).next_back().filter(|(_, block)| block.end > start);
        before.into_iter().chain(self.blocks.range(start..end)).map(|(&start, _)| start).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_allocation_is_memory_of_its_own() {
        let mut space = AddressSpace::default();
        assert_eq!(space.translate(Addr(0x1008)), 0x1008);
        space.allocate(Addr(0x1000), 16);
        let first = space.translate(Addr(0x1008));
        assert_eq!(space.translate(Addr(0x1000)) + 8, first);
        assert_eq!(space.size_of(Addr(0x1000)), Some(16));
        space.free(Addr(0x1000));
        assert_eq!(space.translate(Addr(0x1008)), 0x1008);
        space.allocate(Addr(0x1000), 16);
        assert_ne!(space.translate(Addr(0x1008)), first);
        assert_eq!(space.translate(Addr(0x1010)), 0x1010);
    }

    #[test]
    fn a_block_whose_release_was_not_seen_gives_way() {
        let mut space = AddressSpace::default();
        space.allocate(Addr(0x1000), 64);
        let old = space.translate(Addr(0x1020));
        space.allocate(Addr(0x1020), 64);
        assert_ne!(space.translate(Addr(0x1020)), old);
        assert_eq!(space.translate(Addr(0x1000)), 0x1000);
        assert_eq!(space.size_of(Addr(0x1000)), None);
    }
}
