//! Sites: a code location together with the calls that lead to it.
//!
//! A line of a helper that many places call (`inc(&a)`, `std::mutex::lock`, `std::vector::push_back`) belongs to as many errors as it has
//! callers, so the location alone does not tell errors apart. Calls beyond the innermost [`CALLS_MAX`] are not looked at: they hardly
//! say what the program is about there, and a recursion would make a site of each depth.

use raddle_trace::{ContextIx, LocationIx, Tables};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// Calls that tell sites apart. Containers and lock guards of C++ come to about eight of the library's own without optimisation.
const CALLS_MAX: usize = 12;

/// A site; 0: the location is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteIx(pub u32);

impl SiteIx {
    pub const UNKNOWN: SiteIx = SiteIx(0);
}

/// Numbers sites in the order in which they are asked for.
pub struct Sites<'a> {
    tables: &'a Tables,
    numbers: RefCell<Numbers>,
}

#[derive(Default)]
struct Numbers {
    known: FxHashMap<(LocationIx, ContextIx), SiteIx>,
    by_calls: FxHashMap<Vec<LocationIx>, SiteIx>,
}

impl<'a> Sites<'a> {
    pub fn new(tables: &'a Tables) -> Sites<'a> {
        Sites { tables, numbers: RefCell::default() }
    }

    pub fn of(&self, location: LocationIx, context: ContextIx) -> SiteIx {
        if location == LocationIx::UNKNOWN {
            return SiteIx::UNKNOWN;
        }
        let mut numbers = self.numbers.borrow_mut();
        if let Some(&site) = numbers.known.get(&(location, context)) {
            return site;
        }
        let mut calls = vec![location];
        calls.extend(self.tables.calls(context).take(CALLS_MAX));
        let next = SiteIx(u32::try_from(numbers.by_calls.len() + 1).expect("fewer than 2^32 sites"));
        let site = *numbers.by_calls.entry(calls).or_insert(next);
        numbers.known.insert((location, context), site);
        site
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_trace::Location;

    #[test]
    fn callers_tell_sites_apart_and_deep_recursion_does_not() {
        let mut tables = Tables::default();
        let [line, first, second, recursion] =
            [1, 2, 3, 4].map(|number| tables.intern_location(Location::Foreign(number)));
        let one = tables.intern_context(ContextIx::ROOT, first);
        let two = tables.intern_context(ContextIx::ROOT, second);
        let mut deep = [one, two];
        for context in &mut deep {
            for _ in 0..CALLS_MAX {
                *context = tables.intern_context(*context, recursion);
            }
        }
        let sites = Sites::new(&tables);
        assert_eq!(sites.of(LocationIx::UNKNOWN, one), SiteIx::UNKNOWN);
        let site = sites.of(line, one);
        assert_ne!(site, SiteIx::UNKNOWN);
        assert_eq!(sites.of(line, one), site);
        assert_ne!(sites.of(line, two), site);
        assert_ne!(sites.of(line, ContextIx::ROOT), site);
        assert_eq!(sites.of(line, deep[0]), sites.of(line, deep[1]));
    }
}
