//! Reading the program's memory without trusting it: the kernel copies, and refuses where a plain access would crash.

use crate::real;

#[repr(C)]
struct Piece {
    start: usize,
    bytes: usize,
}

/// Copies what can be read from `from` on, up to the first page that cannot; returns how much.
pub fn read(from: usize, into: &mut [u8]) -> usize {
    const PAGE: usize = 4096;
    let mut done = 0;
    while done < into.len() {
        let Some(start) = from.checked_add(done) else { break };
        // A copy that ends in a page that cannot be read is refused whole.
        let bytes = (into.len() - done).min(PAGE - start % PAGE);
        let local = Piece { start: into[done..].as_mut_ptr() as usize, bytes };
        let remote = Piece { start, bytes };
        // SAFETY: the kernel writes into the buffer alone, and no more than its length.
        let copied = unsafe {
            real::own_syscall(
                libc::SYS_process_vm_readv,
                [real::getpid() as usize, &raw const local as usize, 1, &raw const remote as usize, 1, 0],
            )
        };
        if copied != bytes as isize {
            break;
        }
        done += bytes;
    }
    done
}

pub fn word(from: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    (read(from, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
}

/// A C string, as far as it can be read and there is room.
pub fn text(from: usize, into: &mut [u8]) -> &[u8] {
    let read = if from == 0 { 0 } else { read(from, into) };
    let bytes = into[..read].iter().position(|&byte| byte == 0).unwrap_or(read);
    &into[..bytes]
}
