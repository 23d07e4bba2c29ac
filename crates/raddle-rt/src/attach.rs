//! Finding the region of this process.
//!
//! The environment names a region. It is this process's own if nobody has claimed it yet, or if this process did before it
//! became another program with `exec`. Otherwise the process applies for one ([`raddle_wire::follow`]), and runs unobserved
//! if there is none for it.

use crate::{message, real};
use core::ffi::CStr;
use core::fmt::Write;
use core::sync::atomic::Ordering;
use raddle_wire::follow::Application;
use raddle_wire::region::{HEADER_BYTES, Header, MAGIC, bytes_of};

/// How long a process waits for its region before it goes on unobserved: far longer than making one takes.
const ANSWER_MS_MAX: u64 = 10_000;
/// How often it looks whether the `raddle` process still lives.
const LOOK_US: u64 = 100_000;

/// The region that this process is to write to.
pub fn region(path: &CStr) -> Option<&'static Header> {
    let named = open(path)?;
    if claim(named) {
        return Some(named);
    }
    let descriptor = apply(named);
    let raddle = named.collector_pid;
    close(named);
    let own = open(path_of(raddle, descriptor?).as_cstr()?)?;
    claim(own).then_some(own)
}

/// Makes the region this process's own, unless it is another's.
fn claim(header: &Header) -> bool {
    let pid = real::getpid();
    let claimed = header.claimed_pid.compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire);
    claimed.map_or_else(|owner| owner == pid, |_| true)
}

/// Asks for a region and waits for the answer.
fn apply(header: &Header) -> Option<u32> {
    let until_ms = real::now_ms() + ANSWER_MS_MAX;
    let waits = || {
        let answered = header.follows.load(Ordering::Acquire) != 0;
        answered && real::now_ms() < until_ms && lives(header.collector_pid)
    };
    let pid = real::getpid();
    while waits() {
        let Some(entry) = header.applications.iter().find(|entry| entry.ask(pid)) else {
            real::sleep_us(LOOK_US / 100);
            continue;
        };
        header.applicants.fetch_add(1, Ordering::Release);
        real::futex_wake(&header.applicants, 1);
        while waits() {
            if let Some(answer) = entry.take_answer() {
                return answer;
            }
            wait_for_answer(entry);
        }
        return None;
    }
    None
}

fn wait_for_answer(entry: &Application) {
    real::futex_wait(&entry.state, raddle_wire::follow::state::ASKED, Some(LOOK_US));
}

fn lives(pid: u32) -> bool {
    // SAFETY: sends nothing.
    let answer = unsafe { real::syscall(libc::SYS_kill, [pid as usize, 0, 0, 0, 0, 0]) };
    answer != -(libc::ESRCH as isize)
}

/// A path in a buffer of its own: nothing can be allocated here.
struct Path {
    bytes: [u8; Path::BYTES],
    used: usize,
}

impl Path {
    /// More than two numbers of ten digits and the words between them need.
    const BYTES: usize = 48;

    fn as_cstr(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).ok()
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // The last byte stays zero.
        let space = self.bytes.get_mut(self.used..Path::BYTES - 1).ok_or(core::fmt::Error)?;
        space.get_mut(..text.len()).ok_or(core::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}

fn path_of(pid: u32, descriptor: u32) -> Path {
    let mut path = Path { bytes: [0; Path::BYTES], used: 0 };
    // It fits.
    let _ = write!(path, "/proc/{pid}/fd/{descriptor}");
    path
}

/// Maps a region. `None`: the `raddle` process is gone, or this program runs in another sandbox.
fn open(path: &CStr) -> Option<&'static Header> {
    // SAFETY: opens and maps a file; the mapping is new.
    let (address, bytes) = unsafe {
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
        let fd = real::syscall(
            libc::SYS_openat,
            [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0],
        );
        if fd < 0 {
            return None;
        }
        let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let map = |bytes| {
            real::syscall(libc::SYS_mmap, [0, bytes, prot, libc::MAP_SHARED as usize, fd as usize, 0])
        };
        // The first page says how large the whole is.
        let mut address = map(HEADER_BYTES);
        let mut bytes = HEADER_BYTES;
        if !(-4095..0).contains(&address) {
            let head = address as *const Header;
            check(&*head);
            bytes = bytes_of(&*head);
            address = map(bytes);
            real::syscall(libc::SYS_munmap, [head as usize, HEADER_BYTES, 0, 0, 0, 0]);
        }
        real::syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
        (address, bytes)
    };
    if (-4095..0).contains(&address) {
        message::fatal(format_args!(
            "cannot map the shared region ({} MiB): the address space is limited; raise or remove `ulimit -v`",
            bytes >> 20
        ));
    }
    // SAFETY: mapped whole, read and write.
    Some(unsafe { &*(address as *const Header) })
}

fn check(header: &Header) {
    if header.magic != MAGIC || header.version != raddle_wire::WIRE_VERSION {
        message::fatal(format_args!(
            "this program was built by another version of raddle (wire version {}, expected {}); rebuild it with `raddle cc`",
            header.version,
            raddle_wire::WIRE_VERSION
        ));
    }
}

/// Gives back a region that is another's.
fn close(header: &'static Header) {
    // SAFETY: mapped by `open` with this size, and nobody has heard of it.
    unsafe {
        real::syscall(libc::SYS_munmap, [core::ptr::from_ref(header) as usize, bytes_of(header), 0, 0, 0, 0]);
    }
}
