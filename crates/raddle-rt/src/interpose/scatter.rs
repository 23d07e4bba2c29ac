//! Scattered reads: `readv` and `recvmsg` fill several pieces of memory, and a message brings more than its bytes (who sent it,
//! ancillary data, flags). A demo holds all of it.
//!
//! Descriptors that arrive with a message (`SCM_RIGHTS`) lead outside; in a replay something has to stand for them.

use super::system::{answer, inside, patience_of, raw, steered};
use crate::demo::descriptors::{self, Leads};
use crate::demo::{self, Room};
use crate::steer;
use crate::thread::Thread;
use core::ffi::{c_int, c_long};

/// Most pieces that the kernel takes (`UIO_MAXIOV`).
const PIECES_MAX: usize = 1024;

/// Names the pieces that a result of so many bytes has filled. More bytes than there is room for (a cut datagram with
/// `MSG_TRUNC`) fill everything.
fn fill(pieces: usize, count: usize, result: isize, each: &mut dyn FnMut(Room)) {
    let mut left = result.max(0) as usize;
    for at in 0..count.min(PIECES_MAX) {
        // SAFETY: the program passes this many pieces.
        let piece = unsafe { *(pieces as *const libc::iovec).add(at) };
        let bytes = piece.iov_len.min(left);
        if bytes == 0 && left == 0 {
            return;
        }
        each((piece.iov_base as usize, bytes));
        left -= bytes;
    }
}

/// A call on a pipe of the program's own, or one that matters to nobody.
fn plain(fd: usize, number: c_long, arguments: [usize; 6]) -> Option<isize> {
    let Some(thread) = steered() else { return Some(raw(number, arguments)) };
    match descriptors::leads(fd as c_int) {
        Leads::Outside => None,
        Leads::Inside if steer::orders_calls() => Some(inside(thread, fd, libc::POLLIN, number, arguments)),
        Leads::Inside | Leads::Nowhere => Some(raw(number, arguments)),
    }
}

pub extern "C" fn readv(fd: usize, pieces: usize, count: usize) -> isize {
    let arguments = [fd, pieces, count, 0, 0, 0];
    if let Some(result) = plain(fd, libc::SYS_readv, arguments) {
        return answer(result);
    }
    let Some(thread) = steered() else { return answer(raw(libc::SYS_readv, arguments)) };
    answer(demo::outside_pieces(
        thread,
        libc::SYS_readv as u32,
        patience_of(fd, libc::POLLIN),
        || raw(libc::SYS_readv, arguments),
        |result, each| fill(pieces, count, result, each),
        |_| (),
    ))
}

pub extern "C" fn recvmsg(fd: usize, message: usize, flags: usize) -> isize {
    let arguments = [fd, message, flags, 0, 0, 0];
    if let Some(result) = plain(fd, libc::SYS_recvmsg, arguments) {
        return answer(result);
    }
    let Some(thread) = steered() else { return answer(raw(libc::SYS_recvmsg, arguments)) };
    let header = message as *mut libc::msghdr;
    // SAFETY: the program passes a valid message. What it has room for is known before the call only.
    let room = unsafe { core::ptr::read(header) };
    let result = demo::outside_pieces(
        thread,
        libc::SYS_recvmsg as u32,
        patience_of(fd, libc::POLLIN),
        || raw(libc::SYS_recvmsg, arguments),
        |result, each| {
            if result < 0 {
                return;
            }
            // SAFETY: as above; these are the fields that the kernel writes.
            unsafe {
                each((&raw mut (*header).msg_namelen as usize, size_of_val(&room.msg_namelen)));
                each((&raw mut (*header).msg_controllen as usize, size_of_val(&room.msg_controllen)));
                each((&raw mut (*header).msg_flags as usize, size_of_val(&room.msg_flags)));
                // The lengths are in place by now, in a replay too: pieces are named and filled one by one.
                let named = ((*header).msg_namelen as usize).min(room.msg_namelen as usize);
                each((room.msg_name as usize, if room.msg_name.is_null() { 0 } else { named }));
                each((room.msg_control as usize, (*header).msg_controllen.min(room.msg_controllen)));
            }
            fill(room.msg_iov as usize, room.msg_iovlen, result, each);
        },
        |result| {
            if result >= 0 && demo::on() {
                open_received(thread, header);
            }
        },
    );
    answer(result)
}

/// Descriptors that came with the message.
fn open_received(thread: &Thread, header: *const libc::msghdr) {
    // SAFETY: a message that the kernel, or the record, has just filled; the macros stay inside its ancillary data.
    unsafe {
        let mut part = libc::CMSG_FIRSTHDR(header);
        while !part.is_null() {
            let about = &*part;
            let head = libc::CMSG_LEN(0) as usize;
            if about.cmsg_level == libc::SOL_SOCKET
                && about.cmsg_type == libc::SCM_RIGHTS
                && about.cmsg_len >= head
            {
                let fds = libc::CMSG_DATA(part).cast::<c_int>();
                for at in 0..(about.cmsg_len - head) / size_of::<c_int>() {
                    demo::opened(thread, fds.add(at).read_unaligned());
                }
            }
            part = libc::CMSG_NXTHDR(header, part);
        }
    }
}
