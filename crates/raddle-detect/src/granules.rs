//! The memory of the tested program in granules of 8 bytes, and which variable each of them is.
//!
//! Every access looks its granule up, so this table decides how fast a pass can be. It has two levels: pages of
//! [`PAGE_GRANULES`] granules, 8 bytes each, and an index of pages. Programs access few pages at a time, so a small
//! direct-mapped cache in front of the index answers nearly always, and what is touched for an access is one line of
//! that cache and one of the page. A granule is a packed word: unknown, *whole* (always accessed with the same bounds so
//! far), or *cut* into bytes.

use crate::step::VarIx;
use rustc_hash::FxHashMap;

/// Bytes of a granule.
pub const GRANULE_BYTES: u64 = 8;

const PAGE_GRANULES: u64 = 64;
const CACHE_PAGES: usize = 1024;

/// What is known about a granule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granule {
    Unknown,
    /// Always accessed with these bounds so far.
    Whole {
        first: u8,
        len: u8,
        var: VarIx,
    },
    /// Cut: the variable of byte 0; the others follow.
    Bytes {
        base: VarIx,
    },
}

/// A [`Granule`] in one word: the variable below, the length at bit 32 (0 for an unknown one, 15 for a cut one), the first
/// byte at bit 36.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Packed(u64);

const LEN_CUT: u64 = 15;

impl Packed {
    #[inline(always)]
    const fn whole(first: u64, len: u64, var: VarIx) -> Packed {
        Packed(first << 36 | len << 32 | var.0 as u64)
    }

    fn pack(granule: Granule) -> Packed {
        match granule {
            Granule::Unknown => Packed(0),
            Granule::Whole { first, len, var } => Packed::whole(u64::from(first), u64::from(len), var),
            Granule::Bytes { base } => Packed::whole(0, LEN_CUT, base),
        }
    }

    fn unpack(self) -> Granule {
        let (first, len, var) = ((self.0 >> 36) as u8, self.0 >> 32 & 15, VarIx(self.0 as u32));
        match len {
            0 => Granule::Unknown,
            LEN_CUT => Granule::Bytes { base: var },
            len => Granule::Whole { first, len: len as u8, var },
        }
    }
}

type Page = [Packed; PAGE_GRANULES as usize];

/// The table; see the module's text.
#[derive(Clone, Debug)]
pub struct Granules {
    pages: Vec<Page>,
    index: FxHashMap<u64, u32>,
    /// By the low bits of the page's number: number and place in `pages`.
    cache: Vec<(u64, u32)>,
}

impl Default for Granules {
    fn default() -> Granules {
        Granules {
            pages: Vec::new(),
            index: FxHashMap::default(),
            // No address has such a page number.
            cache: vec![(u64::MAX, 0); CACHE_PAGES],
        }
    }
}

impl Granules {
    /// The variable of an access that has the usual bounds of its granule.
    #[inline(always)]
    pub fn usual(&self, addr: u64, size: u64) -> Option<VarIx> {
        let (key, first) = (addr / GRANULE_BYTES, addr % GRANULE_BYTES);
        let number = key / PAGE_GRANULES;
        let (cached, place) = self.cache[number as usize % CACHE_PAGES];
        if cached != number || size > GRANULE_BYTES {
            return None;
        }
        let packed = self.pages[place as usize][(key % PAGE_GRANULES) as usize];
        let var = VarIx(packed.0 as u32);
        (packed == Packed::whole(first, size, var) && size > 0).then_some(var)
    }

    /// The granule with this number.
    pub fn get(&mut self, key: u64) -> Granule {
        self.page(key / PAGE_GRANULES)[(key % PAGE_GRANULES) as usize].unpack()
    }

    pub fn set(&mut self, key: u64, granule: Granule) {
        self.page(key / PAGE_GRANULES)[(key % PAGE_GRANULES) as usize] = Packed::pack(granule);
    }

    fn page(&mut self, number: u64) -> &mut Page {
        let next = self.pages.len() as u32;
        let place = *self.index.entry(number).or_insert(next);
        if place == next {
            self.pages.push([Packed(0); PAGE_GRANULES as usize]);
        }
        self.cache[number as usize % CACHE_PAGES] = (number, place);
        &mut self.pages[place as usize]
    }

    /// Forgets the granules from `from` to `to`, both included; `forgotten` gets each that was known.
    pub fn forget(&mut self, from: u64, to: u64, mut forgotten: impl FnMut(Granule)) {
        let (low, high) = (from / PAGE_GRANULES, to / PAGE_GRANULES);
        let numbers: Vec<(u64, u32)> = if high - low >= self.index.len() as u64 {
            let mut known: Vec<(u64, u32)> =
                self.index.iter().map(|(&number, &place)| (number, place)).collect();
            known.retain(|(number, _)| (low..=high).contains(number));
            known.sort_unstable();
            known
        } else {
            (low..=high).filter_map(|number| self.index.get(&number).map(|&place| (number, place))).collect()
        };
        for (number, place) in numbers {
            let start = number * PAGE_GRANULES;
            for (offset, packed) in self.pages[place as usize].iter_mut().enumerate() {
                if (from..=to).contains(&(start + offset as u64)) && packed.0 != 0 {
                    forgotten(packed.unpack());
                    *packed = Packed(0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_trace::generate::Rng;
    use std::collections::BTreeMap;

    /// Against a map, on addresses that share cache lines, at both ends of memory.
    #[test]
    fn it_is_a_map() {
        let mut rng = Rng::new(5);
        let (mut granules, mut map) = (Granules::default(), BTreeMap::new());
        let key = |rng: &mut Rng| {
            let offset = u64::from(rng.below(200));
            match rng.below(4) {
                0 => offset,
                1 => offset + PAGE_GRANULES * CACHE_PAGES as u64,
                2 => offset + 7 * PAGE_GRANULES * CACHE_PAGES as u64,
                _ => u64::MAX / GRANULE_BYTES - offset,
            }
        };
        for step in 0..20_000 {
            let at = key(&mut rng);
            match rng.below(10) {
                0 => {
                    let to = at.saturating_add(u64::from(rng.below(90))).min(u64::MAX / GRANULE_BYTES);
                    let to = if rng.below(20) == 0 { u64::MAX / GRANULE_BYTES } else { to };
                    let mut seen = Vec::new();
                    granules.forget(at, to, |granule| seen.push(granule));
                    let gone: Vec<u64> = map.range(at..=to).map(|(&key, _)| key).collect();
                    assert_eq!(seen, gone.iter().map(|key| map[key]).collect::<Vec<_>>(), "step {step}");
                    map.retain(|key, _| !gone.contains(key));
                }
                1..=4 => {
                    let (first, len) = (rng.below(4) as u8, 1 + rng.below(4) as u8);
                    let granule = match rng.below(4) {
                        0 => Granule::Bytes { base: VarIx(step) },
                        _ => Granule::Whole { first, len, var: VarIx(step) },
                    };
                    granules.set(at, granule);
                    map.insert(at, granule);
                }
                _ => {
                    let expected = map.get(&at).copied().unwrap_or(Granule::Unknown);
                    let (first, len) = (u64::from(rng.below(4)), 1 + u64::from(rng.below(9)));
                    let mut usual = None;
                    if let Granule::Whole { first: f, len: l, var } = expected
                        && (u64::from(f), u64::from(l)) == (first, len)
                    {
                        usual = Some(var);
                    }
                    let found = granules.usual(at * GRANULE_BYTES + first, len);
                    // The cache may not know the page; it never invents.
                    assert!(found.is_none() || found == usual, "step {step}");
                    assert_eq!(granules.get(at), expected, "step {step}");
                    assert_eq!(granules.usual(at * GRANULE_BYTES + first, len), usual, "step {step}");
                }
            }
        }
    }
}
