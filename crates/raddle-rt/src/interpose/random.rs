//! Random numbers that libraries take from the processor or the kernel by ways of their own: `arc4random` and `std::random_device`.
//!
//! `getrandom` and `getentropy` are in [`super::clock_queries`].

use crate::demo::{self, Length};
use crate::{real_fn, steer, thread};
use core::ffi::c_uint;

// C++ has its own way with names.
#[allow(non_snake_case)]
mod c {
    use super::*;
    real_fn! {
        fn arc4random() -> c_uint;
        fn arc4random_buf(buffer: usize, bytes: usize);
        fn _ZNSt13random_device9_M_getvalEv(device: usize) -> c_uint;
    }
}

/// Where the seed decides everything the number is the program's own; a demo holds it.
fn number(real: impl FnOnce() -> c_uint) -> c_uint {
    let Some(thread) = thread::observed().filter(|_| steer::on()) else { return real() };
    if steer::clock::on() {
        let mut bytes = [0; 4];
        steer::dice::fill(&mut bytes);
        return c_uint::from_ne_bytes(bytes);
    }
    let perform = || real() as isize;
    demo::outside(thread, libc::SYS_getrandom as u32, Length::Short, perform, |_| [(0, 0)]) as c_uint
}

pub extern "C" fn arc4random() -> usize {
    // SAFETY: no arguments.
    number(|| unsafe { c::arc4random() }) as usize
}

/// Without the bias of a remainder: what lies in the incomplete last round is drawn again.
pub extern "C" fn arc4random_uniform(bound: usize) -> usize {
    let bound = bound as u32;
    if bound < 2 {
        return 0;
    }
    let rest = bound.wrapping_neg() % bound;
    loop {
        let drawn = arc4random() as u32;
        if drawn >= rest {
            return (drawn % bound) as usize;
        }
    }
}

pub extern "C" fn arc4random_buf(buffer: usize, bytes: usize) {
    // SAFETY: as the program asks.
    let real = || unsafe { c::arc4random_buf(buffer, bytes) };
    let Some(thread) = thread::observed().filter(|_| steer::on()) else { return real() };
    if steer::clock::on() {
        // SAFETY: the program passes room for so many bytes.
        return steer::dice::fill(unsafe { core::slice::from_raw_parts_mut(buffer as *mut u8, bytes) });
    }
    let perform = || {
        real();
        0
    };
    demo::outside(thread, libc::SYS_getrandom as u32, Length::Short, perform, |_| [(buffer, bytes)]);
}

/// `std::random_device` of libstdc++, which may ask the processor. That of libc++ reads a file or calls `getentropy`.
pub extern "C" fn random_device(device: usize) -> usize {
    // SAFETY: as the program asks.
    number(|| unsafe { c::_ZNSt13random_device9_M_getvalEv(device) }) as usize
}
