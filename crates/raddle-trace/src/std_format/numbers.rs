//! Dense numbers for the names of an STD trace.
//!
//! Most traces call things by a letter and a number (`T1`, `V23`, `L4`). Such names are looked up in a table by their
//! number; others, short ones as one integer, in a map. The table only ever answers what the map would.

use rustc_hash::FxHashMap;

/// A name that is one letter and a decimal number without leading zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    pub letter: u8,
    pub number: u32,
}

/// Digits of the numbers that are looked up by table: they fit into 32 bits.
const DIGITS_MAX: usize = 9;

/// The table has room for numbers below this in any case.
const TABLE_MIN: usize = 1 << 12;

/// Takes a name of a letter and a number from the front of `text`.
#[inline(always)]
pub fn take_numbered(text: &[u8]) -> Option<(Numbered, &[u8])> {
    let (&letter, rest) = text.split_first()?;
    if !letter.is_ascii_alphabetic() {
        return None;
    }
    let (number, rest) = take_decimal(rest)?;
    Some((Numbered { letter, number }, rest))
}

/// Takes a number without leading zeros from the front of `text`.
#[inline(always)]
pub fn take_decimal(text: &[u8]) -> Option<(u32, &[u8])> {
    let mut number = 0;
    let mut count = 0;
    for &byte in text.iter().take(DIGITS_MAX + 1) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        // Too many digits are refused below.
        number = u32::wrapping_mul(number, 10).wrapping_add(u32::from(digit));
        count += 1;
    }
    if count == 0 || count > DIGITS_MAX || (count > 1 && text[0] == b'0') {
        return None;
    }
    Some((number, &text[count..]))
}

/// Dense numbers for names. Names of up to 8 bytes, nearly all, are looked up as one integer.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    short: FxHashMap<u64, u32>,
    long: FxHashMap<Box<[u8]>, u32>,
    names: Vec<String>,
    last: (u64, u32),
    /// The letter of the first name that is a letter and a number.
    letter: u8,
    /// Of names with that letter, by their number: one more than the dense number; 0 for none.
    table: Vec<u32>,
}

impl Numbers {
    /// What the dense numbers stand for.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The dense number of a name that was seen before, if it is in the table.
    #[inline]
    pub fn known(&self, name: Numbered) -> Option<u32> {
        if name.letter != self.letter {
            return None;
        }
        self.table.get(name.number as usize)?.checked_sub(1)
    }

    /// The dense number of a name, a new one if it is new.
    #[inline]
    pub fn number(&mut self, name: &[u8]) -> u32 {
        let known = self.names.len();
        let number = self.number_by_map(name);
        if self.names.len() > known {
            self.enter(name, number);
        }
        number
    }

    /// Puts a new name into the table, if it belongs there.
    fn enter(&mut self, name: &[u8], number: u32) {
        let Some((numbered, [])) = take_numbered(name) else { return };
        if self.letter == 0 {
            self.letter = numbered.letter;
        }
        let place = numbered.number as usize;
        // A table that would be mostly empty is not worth its memory.
        if self.letter == numbered.letter && place < TABLE_MIN.max(8 * self.names.len()) {
            if self.table.len() <= place {
                self.table.resize(place + 1, 0);
            }
            self.table[place] = number + 1;
        }
    }

    fn number_by_map(&mut self, name: &[u8]) -> u32 {
        if name.len() > 8 {
            return self.long_number(name);
        }
        // Names contain no zero byte (they are printable), so that the packed form is unique, and zero is none of them.
        let packed = name.iter().fold(0, |packed, &byte| packed << 8 | u64::from(byte));
        if packed == self.last.0 {
            return self.last.1;
        }
        let next = self.names.len() as u32;
        let number = *self.short.entry(packed).or_insert(next);
        if number == next {
            self.names.push(String::from_utf8_lossy(name).into_owned());
        }
        self.last = (packed, number);
        number
    }

    fn long_number(&mut self, name: &[u8]) -> u32 {
        if let Some(&number) = self.long.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.long.insert(name.into(), number);
        self.names.push(String::from_utf8_lossy(name).into_owned());
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_table_answers_what_the_map_would() {
        let mut numbers = Numbers::default();
        let mut naive: BTreeMap<String, u32> = BTreeMap::new();
        let mut rng = crate::generate::Rng::new(3);
        for _ in 0..20_000 {
            let letter = ["V", "V", "V", "W", "", "VV"][rng.below(6) as usize];
            let zero = ["", "", "", "0"][rng.below(4) as usize];
            let number = if rng.percent(95) { rng.below(3_000) } else { rng.below(u32::MAX) };
            let name = format!("{letter}{zero}{number}");
            if let Some((numbered, [])) = take_numbered(name.as_bytes()) {
                let known = numbers.known(numbered);
                assert!(known.is_none() || known == naive.get(&name).copied(), "{name}");
            }
            let next = naive.len() as u32;
            assert_eq!(numbers.number(name.as_bytes()), *naive.entry(name.clone()).or_insert(next), "{name}");
        }
        assert!(numbers.table.len() > 1_000, "most names should be in the table");
    }

    #[test]
    fn numbers_are_taken_from_the_front() {
        assert_eq!(take_decimal(b"12|x"), Some((12, &b"|x"[..])));
        assert_eq!(take_decimal(b"0)"), Some((0, &b")"[..])));
        assert_eq!(take_decimal(b"012"), None);
        assert_eq!(take_decimal(b"4294967296"), None);
        assert_eq!(take_decimal(b"x"), None);
        assert_eq!(take_numbered(b"7"), None);
    }
}
