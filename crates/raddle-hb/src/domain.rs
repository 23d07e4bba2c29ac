//! What all threads of a program share: the generations of slots, memory for clocks, release sequences and stores, and the
//! threads' last `seq_cst` operations.

use crate::clock::{Clock, Generations};
use crate::host::Host;
use crate::location::Sequence;
use crate::object_clock::Blocks;
use crate::pool::Pool;
use crate::spin::Spin;
use crate::stores::Store;

pub struct Domain<H> {
    pub generations: Generations,
    pub(crate) blocks: Spin<Blocks, H>,
    pub(crate) sequences: Pool<Sequence, H>,
    pub(crate) stores: Pool<Store, H>,
    pub(crate) seq_cst: Spin<SeqCst, H>,
}

/// What the threads' last `seq_cst` operations were (`S_F` and `S_W` of the thesis).
pub(crate) struct SeqCst {
    pub fences: Clock,
    pub stores: Clock,
}

impl<H: Host> Domain<H> {
    pub const fn new() -> Domain<H> {
        Domain {
            generations: Generations::new(),
            blocks: Spin::new(Blocks::new()),
            sequences: Pool::new(),
            stores: Pool::new(),
            seq_cst: Spin::new(SeqCst { fences: Clock::EMPTY, stores: Clock::EMPTY }),
        }
    }

    /// In a child process: whoever held a lock does not exist here.
    pub fn reset_after_fork(&self) {
        self.blocks.reset_after_fork();
        self.sequences.reset_after_fork();
        self.stores.reset_after_fork();
        self.seq_cst.reset_after_fork();
    }
}

impl<H: Host> Default for Domain<H> {
    fn default() -> Self {
        Domain::new()
    }
}
