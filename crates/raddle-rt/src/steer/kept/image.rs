//! The memory of a worker as it was before its first run, and putting it back.
//!
//! A worker is a fork, so at first it shares every page with the server, and the processor is told to report writes. The first write to
//! a page is a page fault, after which the page is the worker's own. Two facts follow, and they are all that is used here:
//!
//! - if the process has had no page fault since the last look, no page was written for the first time;
//! - a page that was written is the worker's own, which `/proc/self/pagemap` tells (bit 56).
//!
//! So the pages that were ever written are known, and after each run they are copied back from copies made at the beginning. They
//! stay the worker's own, so a later run writes them without a fault; after a run or two there are no faults any more, and no look
//! either. That a page is counted which nobody wrote (the server has changed its own since) costs a copy and nothing else.
//!
//! Kept with each page: where its copy is, or that it did not exist, and is zeroes. Copies are made of everything that can be written
//! and is there; the copies themselves cannot be written. Large mappings, of which only a few pages are there (shadow cells), are looked
//! through with `PAGEMAP_SCAN`, which skips what is not there.

use super::super::warm::{self, File};
use crate::arch::fiber::{clear_page, copy_page};
use crate::{arena, real};

pub const PAGE_BYTES: usize = 4096;
/// Larger mappings are looked through by what is there.
const LARGE_BYTES: usize = 64 << 20;
/// So far down the main thread's stack can grow.
const STACK_BYTES: usize = 8 << 20;
const RANGES_MAX: usize = 1024;
/// With more pages than that, those that did not exist at first are given back after a run.
const KEPT_PAGES: usize = 1024;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OWN: u64 = 1 << 56;

#[derive(Clone, Copy)]
struct Range {
    start: usize,
    end: usize,
    large: bool,
}

/// A page that is put back: where it is, and where its copy is (0: it is zeroes).
#[derive(Clone, Copy)]
struct Page {
    at: usize,
    copy: usize,
}

pub struct Pages {
    ranges: [Range; RANGES_MAX],
    range_count: usize,
    written: [Page; super::PAGES_MAX],
    written_count: usize,
    /// Copies, one behind the other, and the addresses of their pages, in order.
    copies: usize,
    addresses: usize,
    copied: usize,
    faults: u64,
}

/// Faults of the process so far.
fn faults() -> u64 {
    // SAFETY: plain data.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    let arguments = [libc::RUSAGE_SELF as usize, &raw mut usage as usize, 0, 0, 0, 0];
    // SAFETY: the structure is valid for the call.
    unsafe { real::own_syscall(libc::SYS_getrusage, arguments) };
    (usage.ru_minflt + usage.ru_majflt) as u64
}

impl Pages {
    /// Remembers all memory as it is. Called on a stack that is not part of it.
    pub fn take(&mut self) -> bool {
        self.range_count = 0;
        let mut failed = false;
        let (ranges, count) = (&mut self.ranges, &mut self.range_count);
        let here = crate::arch::stack_pointer();
        warm::each_mapping(|mapping| {
            let in_it = (mapping.start..mapping.end).contains(&here);
            if !mapping.private || !mapping.writable || in_it {
                return;
            }
            let large = mapping.end - mapping.start > LARGE_BYTES;
            if !large && mapping.file {
                // What was never touched would be the file's, which is not copied.
                warm::advise(mapping.start, mapping.end - mapping.start, warm::MADV_POPULATE_READ);
            }
            let start = if mapping.stack {
                mapping.end.saturating_sub(STACK_BYTES).min(mapping.start)
            } else {
                mapping.start
            };
            match ranges.get_mut(*count) {
                Some(range) => {
                    *range = Range { start, end: mapping.end, large };
                    *count += 1;
                }
                None => failed = true,
            }
        });
        !failed && self.copy() && self.look()
    }

    fn copy(&mut self) -> bool {
        let ranges = &self.ranges[..self.range_count];
        let mut count = 0;
        let told = each(ranges, |_, _| count += 1);
        let map = |bytes: usize| arena::map_with(bytes, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        let (copy_bytes, address_bytes) = ((count + 1) * PAGE_BYTES, (count + 1) * size_of::<usize>());
        let (Some(copies), Some(addresses)) = (map(copy_bytes), map(address_bytes)) else { return false };
        let mut at = 0;
        let told = told
            && each(ranges, |page, _| {
                if at < count {
                    // SAFETY: the page is there and can be read; there is room for `count` copies and addresses.
                    unsafe {
                        copy_page(copies as usize + at * PAGE_BYTES, page);
                        addresses.cast::<usize>().add(at).write(page);
                    }
                    at += 1;
                }
            });
        (self.copies, self.addresses, self.copied) = (copies as usize, addresses as usize, at);
        let protect = |start: *mut u8, bytes: usize| {
            let arguments = [start as usize, bytes, libc::PROT_READ as usize, 0, 0, 0];
            // SAFETY: our own mappings, from here on only read.
            unsafe { real::own_syscall(libc::SYS_mprotect, arguments) == 0 }
        };
        told && protect(copies, copy_bytes) && protect(addresses, address_bytes)
    }

    /// Where the copy of this page is; 0: it did not exist.
    fn copy_of(&self, page: usize) -> usize {
        // SAFETY: written by `copy`, in order.
        let addresses = unsafe { core::slice::from_raw_parts(self.addresses as *const usize, self.copied) };
        addresses.binary_search(&page).map_or(0, |at| self.copies + at * PAGE_BYTES)
    }

    /// Finds out which pages are the worker's own by now.
    fn look(&mut self) -> bool {
        let mut written = 0;
        let list = &mut self.written;
        let told = each(&self.ranges[..self.range_count], |page, entry| {
            if entry & (OWN | SWAPPED) != 0 {
                if let Some(place) = list.get_mut(written) {
                    *place = Page { at: page, copy: 0 };
                }
                written += 1;
            }
        });
        if !told || written > super::PAGES_MAX {
            return false;
        }
        self.written_count = written;
        for at in 0..written {
            self.written[at].copy = self.copy_of(self.written[at].at);
        }
        true
    }

    /// A run begins: faults are counted from here.
    pub fn begin(&mut self) {
        self.faults = faults();
    }

    /// Puts everything back after a run. False: it cannot be done, and the worker has to go.
    pub fn restore(&mut self) -> bool {
        if faults() != self.faults && !self.look() {
            return false;
        }
        let gives_back = self.written_count > KEPT_PAGES;
        for page in &self.written[..self.written_count] {
            // SAFETY: the page was written by the program, so it is there and can be written, unless its mapping is gone, which
            // `calls` does not let happen.
            unsafe {
                if page.copy != 0 {
                    copy_page(page.at, page.copy);
                } else if gives_back {
                    warm::advise(page.at, PAGE_BYTES, libc::MADV_DONTNEED as usize);
                } else {
                    clear_page(page.at);
                }
            }
        }
        if gives_back {
            return self.look();
        }
        true
    }

    /// Compares all memory with what it was. The first page that differs.
    pub fn verify(&self) -> Option<usize> {
        let mut different = None;
        each(&self.ranges[..self.range_count], |page, _| {
            if different.is_none() && !same(page, self.copy_of(page)) {
                different = Some(page);
            }
        });
        different
    }
}

/// Visits every page that is there, in order, with what `pagemap` says about it. False: it cannot be asked.
fn each(ranges: &[Range], mut visit: impl FnMut(usize, u64)) -> bool {
    let Some(pagemap) = File::open(c"/proc/self/pagemap") else { return false };
    let mut told = true;
    for range in ranges {
        if range.large {
            told &= large::each(&pagemap, range.start, range.end, |start, end| {
                read(&pagemap, start, end, &mut visit)
            });
        } else {
            read(&pagemap, range.start, range.end, &mut visit);
        }
    }
    told
}

/// Has the page the contents of its copy, or is it zeroes?
fn same(page: usize, copy: usize) -> bool {
    // The kernel writes there by itself: on which processor the thread runs.
    let (rseq, rseq_bytes) = rseq();
    (0..PAGE_BYTES / 8).all(|word| {
        let at = page + word * 8;
        // SAFETY: both pages are there.
        let (now, before) = unsafe {
            (
                (at as *const u64).read_volatile(),
                if copy == 0 { 0 } else { ((copy + word * 8) as *const u64).read_volatile() },
            )
        };
        now == before || at.wrapping_sub(rseq) < rseq_bytes
    })
}

unsafe extern "C" {
    /// Where the area for restartable sequences is, counted from the thread pointer.
    static __rseq_offset: isize;
}

fn rseq() -> (usize, usize) {
    const RSEQ_BYTES: usize = 32;
    // SAFETY: a constant of the C library's (2.35 and newer).
    let offset = unsafe { (&raw const __rseq_offset).read() };
    (super::fiber::main_thread_pointer().wrapping_add_signed(offset), RSEQ_BYTES)
}

/// Reads what `pagemap` says about the pages of a range, and visits those that are there.
fn read(pagemap: &File, start: usize, end: usize, visit: &mut impl FnMut(usize, u64)) {
    let mut entries = [0u64; 512];
    let mut page = start / PAGE_BYTES;
    while page < end / PAGE_BYTES {
        let wanted = (end / PAGE_BYTES - page).min(entries.len());
        let found = pagemap.read_at(&mut entries[..wanted], page * 8);
        for (at, &entry) in entries[..found].iter().enumerate() {
            if entry & (PRESENT | SWAPPED) != 0 {
                visit((page + at) * PAGE_BYTES, entry);
            }
        }
        if found == 0 {
            return;
        }
        page += found;
    }
}

mod large {
    //! `PAGEMAP_SCAN` (Linux 6.7).

    use super::super::super::warm::File;
    use crate::real;

    #[repr(C)]
    #[derive(Default)]
    struct Scan {
        size: u64,
        flags: u64,
        start: u64,
        end: u64,
        walk_end: u64,
        vec: u64,
        vec_len: u64,
        max_pages: u64,
        category_inverted: u64,
        category_mask: u64,
        category_anyof_mask: u64,
        return_mask: u64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Region {
        start: u64,
        end: u64,
        categories: u64,
    }

    const PAGE_IS_PRESENT: u64 = 1 << 3;
    const PAGE_IS_SWAPPED: u64 = 1 << 4;
    /// `_IOWR('f', 16, struct pm_scan_arg)`.
    const PAGEMAP_SCAN: usize = 0xc060_6610;

    /// Visits the stretches of a range of which there are pages. False: this kernel does not tell.
    pub fn each(pagemap: &File, start: usize, end: usize, mut visit: impl FnMut(usize, usize)) -> bool {
        let mut regions = [Region::default(); 32];
        let mut from = start;
        while from < end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start: from as u64,
                end: end as u64,
                vec: regions.as_mut_ptr() as u64,
                vec_len: regions.len() as u64,
                category_anyof_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
                return_mask: PAGE_IS_PRESENT | PAGE_IS_SWAPPED,
                ..Scan::default()
            };
            let arguments = [pagemap.number(), PAGEMAP_SCAN, &raw mut scan as usize, 0, 0, 0];
            // SAFETY: the structure and what it points at are valid for the call.
            let found = unsafe { real::own_syscall(libc::SYS_ioctl, arguments) };
            let Some(found) = usize::try_from(found).ok().and_then(|found| regions.get(..found)) else {
                return false;
            };
            for region in found {
                visit(region.start as usize, region.end as usize);
            }
            if scan.walk_end as usize <= from {
                return false;
            }
            from = scan.walk_end as usize;
        }
        true
    }
}
