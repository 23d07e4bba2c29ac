//! The functions of the C library whose results a demo can hold, by name. The place of a name in [`CALLS`] is its bit in
//! [`crate::Header::calls_left_out`].

pub const CALLS: [&str; 47] = [
    "read",
    "write",
    "readv",
    "writev",
    "recv",
    "recvfrom",
    "recvmsg",
    "send",
    "sendto",
    "sendmsg",
    "socket",
    "accept",
    "accept4",
    "connect",
    "bind",
    "listen",
    "shutdown",
    "setsockopt",
    "getsockopt",
    "getsockname",
    "getpeername",
    "ioctl",
    "close",
    "pipe",
    "pipe2",
    "socketpair",
    "eventfd",
    "poll",
    "ppoll",
    "select",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "clock_gettime",
    "gettimeofday",
    "time",
    "getrandom",
    "getentropy",
    "getpid",
    "pause",
    "sigwait",
    "sigwaitinfo",
    "sigtimedwait",
    "sendfile",
    "sendfile64",
];

const _: () = assert!(CALLS.len() <= 64);

/// The bit of a function, as a number; `None`: a demo does not know it.
pub const fn index_of(name: &str) -> Option<u32> {
    let mut at = 0;
    while at < CALLS.len() {
        if equal(CALLS[at].as_bytes(), name.as_bytes()) {
            return Some(at as u32);
        }
        at += 1;
    }
    None
}

const fn equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_own_bit() {
        for (at, name) in CALLS.iter().enumerate() {
            assert_eq!(index_of(name), Some(at as u32));
        }
        assert_eq!((index_of("rea"), index_of("reads"), index_of("")), (None, None, None));
    }
}
