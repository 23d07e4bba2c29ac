//! The run's one source of randomness (splitmix64: Steele, Lea and Flood, OOPSLA 2014).

/// How far the state moves for each number. Every state to begin with is good, also 0.
pub const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that belongs to a state.
pub const fn splitmix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// What it was made from, before the first number is drawn.
    pub const fn seed(&self) -> u64 {
        self.0
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STRIDE);
        splitmix(self.0)
    }

    /// One of the numbers below `count`, which is not 0. The remainder is as even as 64 bits make it.
    pub fn below(&mut self, count: usize) -> usize {
        (self.draw() % count as u64) as usize
    }
}
