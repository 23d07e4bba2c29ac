//! What the kernel knows about threads and child processes: whether they sleep, and how long they have computed.

use crate::real;
use core::ffi::c_int;
use core::fmt::Write;
use core::sync::atomic::{AtomicI32, Ordering};

/// A path in `/proc`, as a C string.
struct Path {
    bytes: [u8; 64],
    used: usize,
}

impl Path {
    fn new(path: core::fmt::Arguments<'_>) -> Path {
        let mut made = Path { bytes: [0; 64], used: 0 };
        // One that does not fit is cut, and does not exist.
        let _ = made.write_fmt(path);
        made
    }

    fn open(&self, flags: c_int) -> isize {
        let arguments = [
            libc::AT_FDCWD as usize,
            self.bytes.as_ptr() as usize,
            (flags | libc::O_RDONLY | libc::O_CLOEXEC) as usize,
            0,
            0,
            0,
        ];
        // SAFETY: the path ends with a zero.
        unsafe { real::own_syscall(libc::SYS_openat, arguments) }
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        // The last byte stays zero.
        let room = self.bytes.len() - 1 - self.used;
        let taken = text.len().min(room);
        self.bytes[self.used..self.used + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.used += taken;
        if taken == text.len() { Ok(()) } else { Err(core::fmt::Error) }
    }
}

fn read(fd: isize, number: libc::c_long, into: &mut [u8]) -> usize {
    // SAFETY: the buffer is valid for its length.
    let bytes =
        unsafe { real::own_syscall(number, [fd as usize, into.as_mut_ptr() as usize, into.len(), 0, 0, 0]) };
    bytes.max(0) as usize
}

fn close(fd: isize) {
    // SAFETY: the descriptor is our own.
    unsafe { real::own_syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// The letter that stands for a task's state, from its `stat` file.
fn state(path: &Path) -> Result<u8, isize> {
    let fd = path.open(0);
    if fd < 0 {
        return Err(fd);
    }
    let mut text = [0u8; 128];
    let bytes = read(fd, libc::SYS_read, &mut text);
    close(fd);
    let text = &text[..bytes];
    // The state follows the command name, which may itself contain anything but ends at the last bracket.
    let letter = text.iter().rposition(|&byte| byte == b')').and_then(|end| text.get(end + 2));
    letter.copied().ok_or(0)
}

/// Is the thread asleep in the kernel, or gone? One that waits for a disk is not: that ends by itself. Unknown counts as awake.
pub fn asleep(tid: u32) -> bool {
    if super::kept::on() {
        // Nobody waits in the kernel there.
        return false;
    }
    match state(&Path::new(format_args!("/proc/self/task/{tid}/stat"))) {
        // The first thread, when it has ended before the others, stays as a zombie.
        Ok(letter) => matches!(letter, b'S' | b'Z' | b'X'),
        // A thread that is gone comes to no operation any more.
        Err(error) => tid != 0 && error == -(libc::ENOENT as isize),
    }
}

/// Is a signal on its way to the thread, which its mask lets through? Unknown counts as no.
pub fn is_signalled(tid: u32) -> bool {
    let fd = Path::new(format_args!("/proc/self/task/{tid}/status")).open(0);
    if fd < 0 {
        return false;
    }
    let mut text = [0u8; 4096];
    let bytes = read(fd, libc::SYS_read, &mut text);
    close(fd);
    let lines = || text[..bytes].split(|&byte| byte == b'\n');
    let set = |name: &[u8]| lines().find_map(|line| line.strip_prefix(name)).map_or(0, signal_set);
    (set(b"SigPnd:") | set(b"ShdPnd:")) & !set(b"SigBlk:") != 0
}

/// A set of signals as the kernel writes it, in hexadecimal digits.
fn signal_set(text: &[u8]) -> u64 {
    let digits = text.iter().filter_map(|&byte| (byte as char).to_digit(16));
    digits.fold(0, |set, digit| set << 4 | u64::from(digit))
}

/// Does any thread of the process run, or wait for nothing but a processor or a disk? One that has ended counts as well, until
/// its parent has heard of it, which is at once. Unknown counts as asleep.
pub fn process_awake(pid: i32) -> bool {
    let fd = Path::new(format_args!("/proc/{pid}/task")).open(libc::O_DIRECTORY);
    if fd < 0 {
        return false;
    }
    let (mut awake, mut dead, mut asleep) = (false, false, false);
    let mut list = [0u8; 1024];
    loop {
        let bytes = read(fd, libc::SYS_getdents64, &mut list);
        if bytes == 0 || awake {
            break;
        }
        for_each_name(&list[..bytes], |name| {
            let tid = core::str::from_utf8(name).unwrap_or("");
            if tid.starts_with(|first: char| first.is_ascii_digit()) {
                let stat = Path::new(format_args!("/proc/{pid}/task/{tid}/stat"));
                match state(&stat) {
                    Ok(b'R' | b'D') => awake = true,
                    Ok(b'Z') => dead = true,
                    Ok(_) => asleep = true,
                    Err(_) => {}
                }
            }
        });
    }
    close(fd);
    awake || dead && !asleep
}

/// Names in what `getdents64` has written: each entry has its length at 16 and its name, with a zero behind it, at 19.
fn for_each_name(mut list: &[u8], mut each: impl FnMut(&[u8])) {
    const LENGTH_AT: usize = 16;
    const NAME_AT: usize = 19;
    while let Some(&[low, high]) = list.get(LENGTH_AT..LENGTH_AT + 2) {
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let Some(name) = list.get(NAME_AT..length) else { return };
        each(name.split(|&byte| byte == 0).next().unwrap_or(name));
        list = &list[length..];
    }
}

/// Processor time of a thread of this process.
pub fn processor_ms(tid: u32) -> u64 {
    // How the kernel names the clock of a thread: not of a process, and all of its time.
    let clock = (!tid << 3 | 6) as i32;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec is valid for the call.
    unsafe {
        real::own_syscall(libc::SYS_clock_gettime, [clock as usize, &raw mut time as usize, 0, 0, 0, 0]);
    }
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// The children of the program's own that were forked last, for those who wait for any.
static CHILDREN: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

pub fn remember_child(pid: c_int) {
    // The number that a process gets is as good as random here.
    CHILDREN[pid as usize % CHILDREN.len()].store(pid, Ordering::Relaxed);
}

/// Is this true of any child?
pub fn any_child(test: impl Fn(i32) -> bool) -> bool {
    let known = CHILDREN.iter().map(|child| child.load(Ordering::Relaxed));
    known.filter(|&child| child != 0).any(test)
}
