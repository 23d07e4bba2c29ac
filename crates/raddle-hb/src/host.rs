//! What this crate asks of whoever runs it: memory, and patience.

use core::ptr::NonNull;

/// The surroundings. Functions without a receiver: the choice is made at compile time and costs nothing.
///
/// # Safety
/// What [`Host::map`] returns is zeroed, aligned to 64 bytes, valid for as long as the process lives, and nobody else's.
pub unsafe trait Host {
    /// Memory for ever, or none when there is no more.
    fn map(bytes: usize) -> Option<NonNull<u8>>;

    /// A lock was found taken so many times in a row: let its holder run.
    fn relax(tries: u32);
}
