//! Variable-length integers (LEB128) and zigzag, as the trace file uses them.

/// Longest encoding of a 64-bit number.
pub const VARINT_BYTES_MAX: usize = 10;

pub fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Takes a number from the front of `bytes`; `None` if it is cut off or does not fit into 64 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    // Nearly all numbers have one or two bytes.
    match **bytes {
        [one @ 0..=0x7f, ref rest @ ..] => {
            *bytes = rest;
            Some(one.into())
        }
        [low, high @ 0..=0x7f, ref rest @ ..] => {
            *bytes = rest;
            Some(u64::from(low & 0x7f) | u64::from(high) << 7)
        }
        _ => take_long(bytes),
    }
}

fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (ix, &byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        let low = u64::from(byte & 0x7f);
        if ix == VARINT_BYTES_MAX - 1 && low > 1 {
            return None;
        }
        value |= low << (7 * ix);
        if byte < 0x80 {
            *bytes = &bytes[ix + 1..];
            return Some(value);
        }
    }
    None
}

/// Small magnitudes, whatever their sign, become small numbers.
#[inline(always)]
pub const fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

#[inline(always)]
pub const fn unzigzag(code: u64) -> u64 {
    (code >> 1) ^ (code & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_survive(value: u64) {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            bytes.push(0xff);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest), Some(value));
            prop_assert_eq!(rest, &[0xff][..]);
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn cut_and_overlong_numbers_are_refused() {
        assert_eq!(take(&mut &[0x80u8][..]), None);
        assert_eq!(take(&mut &[0xffu8; 16][..]), None);
        assert_eq!(take(&mut &[][..]), None);
        assert_eq!(zigzag(1u64.wrapping_neg()), 1);
    }
}
