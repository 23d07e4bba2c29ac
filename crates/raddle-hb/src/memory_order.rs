//! Memory orders of C and C++11, as the compilers number them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOrder {
    Relaxed,
    /// Treated as acquire, as all compilers do.
    Consume,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl MemoryOrder {
    /// From the number in a compiler's call. Numbers that no compiler makes order nothing.
    #[inline]
    pub const fn from_c(number: i32) -> MemoryOrder {
        match number {
            1 => MemoryOrder::Consume,
            2 => MemoryOrder::Acquire,
            3 => MemoryOrder::Release,
            4 => MemoryOrder::AcqRel,
            5 => MemoryOrder::SeqCst,
            _ => MemoryOrder::Relaxed,
        }
    }

    #[inline]
    pub const fn acquires(self) -> bool {
        match self {
            MemoryOrder::Consume | MemoryOrder::Acquire | MemoryOrder::AcqRel | MemoryOrder::SeqCst => true,
            MemoryOrder::Relaxed | MemoryOrder::Release => false,
        }
    }

    #[inline]
    pub const fn releases(self) -> bool {
        match self {
            MemoryOrder::Release | MemoryOrder::AcqRel | MemoryOrder::SeqCst => true,
            MemoryOrder::Relaxed | MemoryOrder::Consume | MemoryOrder::Acquire => false,
        }
    }
}
