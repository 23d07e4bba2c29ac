//! Keeping the children of the fork server warm: they find their memory in place instead of asking for it page by page.
//!
//! Most of what a run of a small program costs is page faults: a fault is several microseconds, and a child takes seventy of
//! them. There are two kinds, and both can be had for less:
//!
//! - *Code.* A fork does not copy the page tables of file mappings that nobody has written to; it lets the child fault
//!   them in again. The kernel decides that by whether a mapping has private pages at all. So the server gives each
//!   mapping of code one (it writes a byte of it over itself) and maps all of it in; the tables are then copied.
//! - *Data.* Every page that a child writes is copied at the first write. Which pages these are hardly differs between runs. The
//!   first run tells (`/proc/self/pagemap` knows which pages are the process's own by now), and later ones have all of
//!   them copied by a few calls at their start.
//!
//! None of this changes what any page holds. Where the kernel does not know a call, or does not allow it, children are as
//! slow as they were.

use crate::{arena, real};
use core::sync::atomic::{AtomicUsize, Ordering};

const PAGE_BYTES: usize = 4096;
/// Larger mappings are reserved rather than used.
const MAPPING_BYTES_MAX: usize = 64 << 20;
/// Of code no more than this is mapped in at once.
const CODE_BYTES_MAX: usize = 8 << 20;
const RANGES_MAX: usize = 256;
/// Pages between two written ones that are copied along rather than ask twice.
const GAP_PAGES: usize = 1;

pub const MADV_POPULATE_READ: usize = 22;
const MADV_POPULATE_WRITE: usize = 23;

const PRESENT: u64 = 1 << 63;
const OWN: u64 = 1 << 56;

/// What the first run tells, in memory that server and children share: how many ranges, then start and length of each.
static SHARED: AtomicUsize = AtomicUsize::new(0);
const SHARED_BYTES: usize = (1 + 2 * RANGES_MAX) * 8;

/// The server's own copy.
static RANGES: [[AtomicUsize; 2]; RANGES_MAX] = [const { [const { AtomicUsize::new(0) }; 2] }; RANGES_MAX];
static RANGE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// In the server, before the first fork.
pub fn prepare() {
    each_mapping(|mapping| {
        let bytes = mapping.end - mapping.start;
        if mapping.file && !mapping.writable && bytes <= MAPPING_BYTES_MAX {
            give_private_page(mapping);
            advise(mapping.start, bytes.min(CODE_BYTES_MAX), MADV_POPULATE_READ);
        }
    });
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    if let Some(shared) = arena::map_with(SHARED_BYTES, flags) {
        SHARED.store(shared as usize, Ordering::Relaxed);
    }
}

/// Writes the first byte of a mapping over itself, so that the mapping has a page of its own.
fn give_private_page(mapping: &Mapping) {
    let protect = |protection: i32| {
        let arguments = [mapping.start, mapping.end - mapping.start, protection as usize, 0, 0, 0];
        // SAFETY: the mapping exists; code in it can be run all the time.
        unsafe { real::own_syscall(libc::SYS_mprotect, arguments) == 0 }
    };
    let before = libc::PROT_READ | if mapping.executable { libc::PROT_EXEC } else { 0 };
    if mapping.readable && protect(before | libc::PROT_WRITE) {
        let byte = mapping.start as *mut u8;
        // SAFETY: readable and, for now, writable; the process has one thread.
        unsafe { byte.write_volatile(byte.read_volatile()) };
        protect(before);
    }
}

pub fn advise(start: usize, bytes: usize, advice: usize) {
    // SAFETY: changes no contents; a range that is not mapped is refused.
    unsafe { real::own_syscall(libc::SYS_madvise, [start, bytes, advice, 0, 0, 0]) };
}

/// In the server, after a run: takes over what it told.
pub fn learn() {
    let shared = SHARED.load(Ordering::Relaxed);
    if shared == 0 || RANGE_COUNT.load(Ordering::Relaxed) != 0 {
        return;
    }
    // SAFETY: mapped by `prepare`; the child is gone.
    let word = |at: usize| unsafe { (shared as *const usize).add(at).read_volatile() };
    let count = word(0).min(RANGES_MAX);
    for (at, range) in RANGES[..count].iter().enumerate() {
        range[0].store(word(1 + 2 * at), Ordering::Relaxed);
        range[1].store(word(2 + 2 * at), Ordering::Relaxed);
    }
    RANGE_COUNT.store(count, Ordering::Relaxed);
}

/// In a child, at its start.
pub fn populate(header: usize) {
    advise(header, PAGE_BYTES, MADV_POPULATE_WRITE);
    for range in &RANGES[..RANGE_COUNT.load(Ordering::Relaxed)] {
        advise(range[0].load(Ordering::Relaxed), range[1].load(Ordering::Relaxed), MADV_POPULATE_WRITE);
    }
}

/// In a child, at its end: which pages were written?
pub fn tell() {
    let shared = SHARED.load(Ordering::Relaxed);
    if shared == 0 || RANGE_COUNT.load(Ordering::Relaxed) != 0 {
        return;
    }
    let Some(pagemap) = File::open(c"/proc/self/pagemap") else { return };
    let mut ranges = [[0usize; 2]; RANGES_MAX];
    let mut count = 0;
    each_mapping(|mapping| {
        if !mapping.private || !mapping.writable || mapping.end - mapping.start > MAPPING_BYTES_MAX {
            return;
        }
        let mut entries = [0u64; 512];
        let mut page = mapping.start / PAGE_BYTES;
        while page < mapping.end / PAGE_BYTES {
            let wanted = (mapping.end / PAGE_BYTES - page).min(entries.len());
            let found = pagemap.read_at(&mut entries[..wanted], page * 8);
            for (at, &entry) in entries[..found].iter().enumerate() {
                let start = (page + at) * PAGE_BYTES;
                if entry & (PRESENT | OWN) == PRESENT | OWN {
                    add(&mut ranges, &mut count, start);
                }
            }
            if found == 0 {
                return;
            }
            page += found;
        }
    });
    // SAFETY: mapped by the server; only the first run writes it.
    unsafe {
        let words = shared as *mut usize;
        for (at, range) in ranges[..count].iter().enumerate() {
            words.add(1 + 2 * at).write_volatile(range[0]);
            words.add(2 + 2 * at).write_volatile(range[1]);
        }
        words.write_volatile(count);
    }
}

fn add(ranges: &mut [[usize; 2]; RANGES_MAX], count: &mut usize, start: usize) {
    if let Some(last) = count.checked_sub(1).and_then(|last| ranges.get_mut(last))
        && start <= last[0] + last[1] + GAP_PAGES * PAGE_BYTES
    {
        last[1] = start + PAGE_BYTES - last[0];
    } else if *count < RANGES_MAX {
        ranges[*count] = [start, PAGE_BYTES];
        *count += 1;
    }
}

pub struct File(usize);

impl File {
    pub fn open(path: &core::ffi::CStr) -> Option<File> {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags, 0, 0, 0];
        // SAFETY: the path is a C string.
        let fd = unsafe { real::own_syscall(libc::SYS_openat, arguments) };
        usize::try_from(fd).ok().map(File)
    }

    /// Words read at an offset in bytes.
    pub fn read_at(&self, words: &mut [u64], offset: usize) -> usize {
        let arguments = [self.0, words.as_mut_ptr() as usize, size_of_val(words), offset, 0, 0];
        // SAFETY: the buffer is valid for its length.
        let bytes = unsafe { real::own_syscall(libc::SYS_pread64, arguments) };
        bytes.max(0) as usize / 8
    }

    pub fn number(&self) -> usize {
        self.0
    }

    fn read(&self, buffer: &mut [u8]) -> usize {
        let arguments = [self.0, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0];
        // SAFETY: the buffer is valid for its length.
        unsafe { real::own_syscall(libc::SYS_read, arguments).max(0) as usize }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: our own descriptor.
        unsafe { real::own_syscall(libc::SYS_close, [self.0, 0, 0, 0, 0, 0]) };
    }
}

pub struct Mapping {
    pub start: usize,
    pub end: usize,
    pub readable: bool,
    pub writable: bool,
    pub executable: bool,
    pub private: bool,
    pub file: bool,
    /// The main thread's stack, which grows by itself.
    pub stack: bool,
}

/// Visits all mappings of the process, as they were when it began.
pub fn each_mapping(mut visit: impl FnMut(&Mapping)) {
    const TEXT_BYTES: usize = 256 << 10;
    // Shared, because a private mapping may become one with its neighbour, which would then not be visited.
    let Some(text) = arena::map_with(TEXT_BYTES, libc::MAP_SHARED | libc::MAP_ANONYMOUS) else { return };
    let Some(maps) = File::open(c"/proc/self/maps") else { return };
    // SAFETY: just mapped, and nobody else's.
    let buffer = unsafe { core::slice::from_raw_parts_mut(text, TEXT_BYTES) };
    let mut filled = 0;
    loop {
        let bytes = maps.read(&mut buffer[filled..]);
        filled += bytes;
        if bytes == 0 || filled == TEXT_BYTES {
            break;
        }
    }
    for line in buffer[..filled].split(|&byte| byte == b'\n') {
        if let Some(mapping) = parse(line)
            && mapping.start != text as usize
        {
            visit(&mapping);
        }
    }
    // SAFETY: mapped above.
    unsafe { arena::unmap(text, TEXT_BYTES) };
}

/// `7f00-7f01 r-xp 00000000 08:01 1234 /lib/libc.so.6`
fn parse(line: &[u8]) -> Option<Mapping> {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let mut ends = words.next()?.split(|&byte| byte == b'-').map(hexadecimal);
    let (start, end) = (ends.next()??, ends.next()??);
    let rights = words.next().filter(|rights| rights.len() == 4)?;
    let path = words.nth(3);
    Some(Mapping {
        start,
        end,
        readable: rights[0] == b'r',
        writable: rights[1] == b'w',
        executable: rights[2] == b'x',
        private: rights[3] == b'p',
        file: path.is_some_and(|path| path.first() == Some(&b'/')),
        stack: path == Some(b"[stack]"),
    })
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0usize, |value, &digit| {
        let digit = (digit as char).to_digit(16)?;
        Some(value << 4 | digit as usize)
    })
}
