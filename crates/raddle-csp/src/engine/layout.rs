//! Packing: where each leaf's state lies in the words of a state vector.
//!
//! A field of `b` bits holds a leaf with at most `2^b` states; leaves with one state take none. Fields never straddle a
//! word, so reading one is a shift and a mask, and are placed first-fit in the order of the leaves. Every leaf starts in
//! state 0, so the initial vector is all zeros.

/// A packed state vector of `W` words.
pub type Key<const W: usize> = [u64; W];

/// Where a number lies in a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Field {
    pub word: u32,
    pub shift: u32,
    /// The mask before shifting; 0 for a field without bits.
    pub mask: u64,
}

impl Field {
    #[inline(always)]
    pub fn get(self, key: &[u64]) -> u32 {
        ((key[self.word as usize] >> self.shift) & self.mask) as u32
    }

    #[inline(always)]
    pub fn set(self, key: &mut [u64], value: u32) {
        debug_assert!(u64::from(value) <= self.mask, "the value fits its field");
        let word = &mut key[self.word as usize];
        *word = (*word & !(self.mask << self.shift)) | (u64::from(value) << self.shift);
    }
}

/// Allots fields.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Bits used in each word.
    used: Vec<u32>,
    bits: usize,
}

impl Layout {
    /// A field for the numbers `0..values`.
    pub fn field(&mut self, values: usize) -> Field {
        let bits = usize::BITS - values.saturating_sub(1).leading_zeros();
        assert!(bits <= 32, "a leaf has fewer than 2^32 states");
        self.bits += bits as usize;
        if bits == 0 {
            return Field::default();
        }
        let word = match self.used.iter().position(|&u| u + bits <= 64) {
            Some(word) => word,
            None => {
                self.used.push(0);
                self.used.len() - 1
            }
        };
        let field = Field { word: word as u32, shift: self.used[word], mask: (1u64 << bits) - 1 };
        self.used[word] += bits;
        field
    }

    /// Words of a key; at least one.
    pub fn words(&self) -> usize {
        self.used.len().max(1)
    }

    /// Bits in use.
    pub fn bits(&self) -> usize {
        self.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_apart() {
        let mut layout = Layout::default();
        let sizes = [1, 2, 3, 5, 1000, 1 << 20, 1 << 31, 7, 1 << 30, 2];
        let fields: Vec<Field> = sizes.iter().map(|&n| layout.field(n)).collect();
        let mut key = vec![0u64; layout.words()];
        for (field, &n) in fields.iter().zip(&sizes) {
            field.set(&mut key, (n - 1) as u32);
        }
        for (field, &n) in fields.iter().zip(&sizes) {
            assert_eq!(field.get(&key), (n - 1) as u32);
        }
        fields[4].set(&mut key, 0);
        assert_eq!((fields[3].get(&key), fields[4].get(&key), fields[5].get(&key)), (4, 0, (1 << 20) - 1));
    }
}
