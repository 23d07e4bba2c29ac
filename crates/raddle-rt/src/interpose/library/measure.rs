//! How long the things are that functions of the C library touch.
//!
//! The lengths are found without hooks and without the library's own functions. What another thread changes meanwhile may make them wrong,
//! which is a race then that is told all the same.

use core::ffi::c_int;

fn byte(address: usize) -> u8 {
    // SAFETY: the program has passed the address to a function that reads there.
    unsafe { (address as *const u8).read_volatile() }
}

fn wide_at(address: usize) -> u32 {
    // SAFETY: as above; the standard asks for aligned wide characters, some programs do not care.
    unsafe { (address as *const u32).read_unaligned() }
}

/// The word that a pointer of the program points to; 0 for none.
pub fn word_at(address: usize) -> usize {
    // SAFETY: null, or a pointer that the program passes to be read.
    if address == 0 { 0 } else { unsafe { (address as *const usize).read_unaligned() } }
}

pub fn int_at(address: usize) -> usize {
    // SAFETY: as above.
    if address == 0 { 0 } else { unsafe { (address as *const c_int).read_unaligned() }.max(0) as usize }
}

/// Characters before the end of a string, at most so many.
fn characters(s: usize, most: usize) -> usize {
    if s == 0 {
        return 0;
    }
    let mut at = 0;
    while at < most && byte(s + at) != 0 {
        at += 1;
    }
    at
}

/// Characters of a string.
pub fn length(s: usize) -> usize {
    characters(s, usize::MAX)
}

/// A string with its end; nothing for no string.
pub fn text(s: usize) -> usize {
    if s == 0 { 0 } else { length(s) + 1 }
}

/// What is read of a string by a function that looks at so many characters at most.
pub fn text_up_to(s: usize, most: usize) -> usize {
    if s == 0 { 0 } else { most.min(characters(s, most).saturating_add(1)) }
}

fn folded(byte: u8, fold: bool) -> u8 {
    if fold { byte.to_ascii_lowercase() } else { byte }
}

fn compared(a: usize, b: usize, most: usize, fold: bool) -> usize {
    let mut at = 0;
    while at < most {
        let (x, y) = (byte(a + at), byte(b + at));
        at += 1;
        if folded(x, fold) != folded(y, fold) || x == 0 {
            break;
        }
    }
    at
}

/// Over how many bytes two strings are compared, the difference or the end included, when the case of letters does not matter.
pub fn alike(a: usize, b: usize, most: usize) -> usize {
    compared(a, b, most, true)
}

/// The same when it does.
pub fn same(a: usize, b: usize, most: usize) -> usize {
    compared(a, b, most, false)
}

/// Bytes from a string's begin to a place in it, that one included; to its end if there is no place.
pub fn up_to(s: usize, place: usize) -> usize {
    if place >= s && place != 0 { place - s + 1 } else { text(s) }
}

/// The same in memory of so many bytes.
pub fn within(s: usize, bytes: usize, place: usize) -> usize {
    if place >= s && place != 0 { place - s + 1 } else { bytes }
}

const WIDE: usize = 4;

fn wide_characters(s: usize, most: usize) -> usize {
    let mut at = 0;
    while s != 0 && at < most && wide_at(s + at * WIDE) != 0 {
        at += 1;
    }
    at
}

/// Bytes of a wide string without its end.
pub fn wide_length(s: usize) -> usize {
    wide_characters(s, usize::MAX) * WIDE
}

pub fn wide_text(s: usize) -> usize {
    if s == 0 { 0 } else { wide_length(s) + WIDE }
}

pub fn wide_up_to(s: usize, most: usize) -> usize {
    if s == 0 { 0 } else { most.min(wide_characters(s, most).saturating_add(1)).saturating_mul(WIDE) }
}

/// Bytes over which two wide strings are compared.
pub fn wide_same(a: usize, b: usize, most: usize) -> usize {
    let mut at = 0;
    while at < most {
        let (x, y) = (wide_at(a + at * WIDE), wide_at(b + at * WIDE));
        at += 1;
        if x != y || x == 0 {
            break;
        }
    }
    at * WIDE
}

/// Bytes from a wide string's begin to a place in it.
pub fn wide_to(s: usize, place: usize) -> usize {
    if place >= s && place != 0 { place - s + WIDE } else { wide_text(s) }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn digit(byte: u8) -> usize {
    match byte {
        b'0'..=b'9' => usize::from(byte - b'0'),
        b'a'..=b'z' => usize::from(byte - b'a') + 10,
        b'A'..=b'Z' => usize::from(byte - b'A') + 10,
        _ => usize::MAX,
    }
}

/// Bytes of a string that are read as a number of this base, and the one behind them.
pub fn number(s: usize, base: usize) -> usize {
    let mut at = s;
    while is_space(byte(at)) {
        at += 1;
    }
    if matches!(byte(at), b'+' | b'-') {
        at += 1;
    }
    let mut base = base & 0xffff_ffff;
    if byte(at) == b'0' {
        let hexadecimal = matches!(byte(at + 1), b'x' | b'X');
        if hexadecimal && matches!(base, 0 | 16) {
            (base, at) = (16, at + 2);
        } else if base == 0 {
            base = 8;
        }
    } else if base == 0 {
        base = 10;
    }
    while digit(byte(at)) < base {
        at += 1;
    }
    at - s + 1
}
