//! Memory intervals (§5.2.2) and the reductions that go with them (§5.5.1, §5.5.3).
//!
//! Accesses have addresses and sizes; whether two of them touch the same memory is decided once, here. The bytes that
//! accesses begin or end at cut memory into *intervals*: every access covers an interval whole or not at all, so two
//! accesses overlap exactly if they have an interval in common.
//!
//! Dropped on the way, each if its reduction is on:
//!
//! * *redundant* accesses: the same code location touches the same bytes in the same way within one thread segment;
//! * intervals that cannot race: touched by one thread only, or with no conflicting accesses by two;
//! * intervals accessed by the same code, called from the same places, in the same segments as another one: what holds for that one
//!   holds for them.
//!
//! # Deviation from the paper
//!
//! Figure 5.4 fuses neighbouring intervals that the same threads access in the same way. If `x` is protected by one mutex
//! and its neighbour `y` by another, that makes an access to `x` conflict with one to `y`. Here intervals are merged by
//! the third rule only, which looks at the very segments and sites, so no reduction changes what is predicted.

use crate::clocks::ReadEdge;
use crate::ids::{LockIx, LocksetIx, Pos};
use crate::options::Reductions;
use crate::prediction::Stats;
use crate::program::{Access, AccessKind, Accesses, Need, Program};
use crate::sites::{SiteIx, Sites};
use raddle_trace::model::EventIx;
use raddle_trace::{Event, LocationIx, MemoryTrace, ThreadIx};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// An interval of memory; numbered in the order of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IntervalIx(pub u32);

impl IntervalIx {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An access to an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub thread: ThreadIx,
    pub site: SiteIx,
    pub kind: AccessKind,
    pub lockset: LocksetIx,
    pub pos: Pos,
    pub event: EventIx,
}

/// An interval and who accesses it.
#[derive(Clone, Debug)]
pub struct Interval {
    pub start: u64,
    pub end: u64,
    /// Sorted by everything that makes entries alike (thread, site, kind, locks held), then by position. None if
    /// another interval stands for this one.
    pub entries: Vec<Entry>,
    /// Another interval stands for this one.
    pub merged_into: Option<IntervalIx>,
}

/// Entries of an interval that are alike but for their position.
pub type Group<'a> = &'a [Entry];

impl Interval {
    pub fn groups(&self) -> impl Iterator<Item = Group<'_>> {
        let alike = |a: &Entry, b: &Entry| {
            (a.thread, a.site, a.kind, a.lockset) == (b.thread, b.site, b.kind, b.lockset)
        };
        self.entries.chunk_by(alike)
    }

    /// One lock protects every access: all writes hold it exclusively, and all others hold it somehow.
    pub fn is_protected(&self, program: &Program) -> bool {
        let mut common: Option<Vec<LockIx>> = None;
        let mut last: Option<(LocksetIx, bool)> = None;
        for entry in &self.entries {
            let profile = (entry.lockset, entry.kind.writes());
            if last == Some(profile) {
                continue;
            }
            last = Some(profile);
            let held = &program.locksets[entry.lockset.index()];
            let protects = |lock: &LockIx| {
                held.iter().any(|(other, shared)| other == lock && !(*shared && entry.kind.writes()))
            };
            match &mut common {
                None => {
                    let locks = held.iter().map(|(lock, _)| *lock).filter(protects);
                    common = Some(locks.collect());
                }
                Some(common) => common.retain(protects),
            }
            if common.as_ref().is_some_and(Vec::is_empty) {
                return false;
            }
        }
        true
    }

    /// Has the same segment just made the same access? With nobody else in between, nothing depends on the second one,
    /// and [`Intervals::sort`] would drop it.
    fn repeats(&self, entry: &Entry) -> bool {
        let same_segment = |old: &&Entry| (old.thread, old.pos) == (entry.thread, entry.pos);
        let recent = self.entries.iter().rev().take(RECENT).take_while(same_segment);
        recent
            .into_iter()
            .any(|old| (old.site, old.kind, old.lockset) == (entry.site, entry.kind, entry.lockset))
    }

    /// Two threads access it, and in a conflicting way.
    fn can_race(&self) -> bool {
        // Reads, writes, atomic reads, atomic writes, releases: which threads do each?
        let mut by_kind: [Option<(ThreadIx, bool)>; 5] = [None; 5];
        for entry in &self.entries {
            let seen = &mut by_kind[entry.kind as usize];
            match seen {
                None => *seen = Some((entry.thread, false)),
                Some((thread, several)) => *several |= *thread != entry.thread,
            }
        }
        const KINDS: [AccessKind; 5] = [
            AccessKind::Read,
            AccessKind::Write,
            AccessKind::AtomicRead,
            AccessKind::AtomicWrite,
            AccessKind::Free,
        ];
        let pairs = KINDS.iter().flat_map(|a| KINDS.iter().map(move |b| (*a, *b)));
        pairs.filter(|(a, b)| a.conflicts(*b)).any(|(a, b)| {
            match (by_kind[a as usize], by_kind[b as usize]) {
                (Some((first, several)), Some((second, more))) => several || more || first != second,
                _ => false,
            }
        })
    }
}

/// All intervals of a program that are left to look at.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    pub intervals: Vec<Interval>,
}

/// Memory is looked at in units of this many bytes when deciding what is shared at all.
const GRANULE: u64 = 8;
/// Accesses of more bytes than this are looked at in pages of [`PAGE`] bytes instead.
const LONG: u32 = 4096;
const PAGE: u64 = 1 << 16;

impl Intervals {
    pub fn new(
        program: &mut Program,
        trace: &MemoryTrace,
        reductions: Reductions,
        stats: &mut Stats,
    ) -> Intervals {
        let events = &trace.events;
        let sites = Sites::new(&trace.tables);
        // From here on memory is known by its intervals; the accesses themselves are not needed again.
        let mut accesses: Accesses = std::mem::take(&mut program.accesses);
        let redundant =
            if reductions.redundant { redundant(&accesses, events, program.thread_count()) } else { 0 };
        stats.after_redundant = program.synchronisation + accesses.len() as u64 - redundant;
        if reductions.intervals {
            drop_private(&mut accesses, events);
        }
        let bounds = bounds(&accesses);
        let mut intervals: Vec<Interval> = bounds
            .windows(2)
            .map(|pair| Interval { start: pair[0], end: pair[1], entries: Vec::new(), merged_into: None })
            .collect();
        for access in accesses.drain() {
            let first = bounds.partition_point(|&bound| bound < access.start);
            let end = access.start.saturating_add(u64::from(access.size));
            let Access { kind, pos, event, .. } = access;
            let Event { thread, location, context, .. } = events[event.index()];
            let site = sites.of(location, context);
            let lockset = program.threads[thread.index()].locksets[pos as usize];
            let entry = Entry { thread, site, kind, lockset, pos, event };
            for interval in &mut intervals[first..] {
                if interval.start >= end {
                    break;
                }
                if !(reductions.redundant && interval.repeats(&entry)) {
                    interval.entries.push(entry);
                }
            }
        }
        intervals.retain(|interval| !interval.entries.is_empty());
        if reductions.intervals {
            intervals.retain(Interval::can_race);
        }
        stats.intervals = intervals.len() as u64;
        Intervals { intervals }
    }

    /// Who wrote what a thread read, across threads; needs the entries in observed order, so it comes before
    /// [`Intervals::sort`].
    pub fn read_edges(&self, program: &Program) -> Vec<ReadEdge> {
        // The writer has left the segment it wrote in: then it has written, wherever in the segment that was.
        let left = |thread: ThreadIx, pos: Pos| (pos + 1).min(program.steps(thread).len() as Pos);
        let mut edges: Vec<ReadEdge> = Vec::new();
        let mut known = 0;
        for interval in &self.intervals {
            if edges.len() > 2 * known + (1 << 20) {
                compact(&mut edges);
                known = edges.len();
            }
            let mut writer: Option<(ThreadIx, Pos)> = None;
            for entry in &interval.entries {
                if let Some((from, pos)) = writer
                    && from != entry.thread
                    && matches!(entry.kind, AccessKind::Read)
                {
                    edges.push(ReadEdge {
                        from: Need { thread: from, pos },
                        thread: entry.thread,
                        pos: entry.pos,
                    });
                }
                if entry.kind.writes() {
                    writer = Some((entry.thread, left(entry.thread, entry.pos)));
                }
            }
        }
        compact(&mut edges);
        edges
    }

    /// Puts alike entries side by side, drops redundant ones, and merges intervals that are accessed alike.
    pub fn sort(&mut self, reductions: Reductions, stats: &mut Stats) {
        for interval in &mut self.intervals {
            interval.entries.sort_unstable_by_key(|entry| {
                (entry.thread, entry.site, entry.kind, entry.lockset, entry.pos, entry.event)
            });
            if reductions.redundant {
                interval.entries.dedup_by_key(|e| (e.thread, e.site, e.kind, e.lockset, e.pos));
            }
            interval.entries.shrink_to_fit();
        }
        let entries: u64 = self.intervals.iter().map(|interval| interval.entries.len() as u64).sum();
        stats.after_intervals = stats.synchronisation + entries;
        if !reductions.same_segment {
            return;
        }
        let mut seen: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for index in 0..self.intervals.len() {
            let alike =
                |a: &Entry, b: &Entry| (a.thread, a.site, a.kind, a.pos) == (b.thread, b.site, b.kind, b.pos);
            let mut hasher = FxHasher::default();
            for entry in &self.intervals[index].entries {
                (entry.thread, entry.site, entry.kind, entry.pos).hash(&mut hasher);
            }
            let same = seen.entry(hasher.finish()).or_default();
            let entries = &self.intervals[index].entries;
            let representative = same.iter().copied().find(|&other| {
                let other = &self.intervals[other as usize].entries;
                other.len() == entries.len() && other.iter().zip(entries).all(|(a, b)| alike(a, b))
            });
            match representative {
                Some(other) => {
                    stats.same_segment_removed += entries.len() as u64;
                    stats.redundant_checks += 1;
                    // The other one's entries stand for these.
                    self.intervals[index].entries = Vec::new();
                    self.intervals[index].merged_into = Some(IntervalIx(other));
                }
                None => same.push(index as u32),
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (IntervalIx, &Interval)> {
        self.intervals.iter().enumerate().map(|(index, interval)| (IntervalIx(index as u32), interval))
    }
}

/// Of the edges from one thread to a place in another, the last one says it all.
fn compact(edges: &mut Vec<ReadEdge>) {
    edges.sort_unstable_by_key(|edge| {
        (edge.thread, edge.pos, edge.from.thread, std::cmp::Reverse(edge.from.pos))
    });
    edges.dedup_by_key(|edge| (edge.thread, edge.pos, edge.from.thread));
}

/// So many entries of an interval are looked at for one that makes the next one redundant.
const RECENT: usize = 8;

/// Where accesses begin and end, sorted, each once.
fn bounds(accesses: &Accesses) -> Vec<u64> {
    let mut bounds: Vec<u64> = Vec::new();
    let mut known = 0;
    for access in accesses.iter() {
        // Most are known already: what is new is never more than what is known, give or take.
        if bounds.len() > 2 * known + (1 << 20) {
            bounds.sort_unstable();
            bounds.dedup();
            known = bounds.len();
        }
        bounds.push(access.start);
        bounds.push(access.start.saturating_add(u64::from(access.size)));
    }
    bounds.sort_unstable();
    bounds.dedup();
    bounds
}

/// Sets larger than this are thrown away with their segment.
const SEGMENT_KEPT_MAX: usize = 1024;

/// What one thread accessed since its last step.
#[derive(Default)]
struct Segment {
    pos: Pos,
    seen: FxHashSet<(u64, u32, AccessKind, LocationIx)>,
}

/// Counts what the on-line cache of §5.5.1 would have kept out of the trace, without its limit of 100 entries. They are
/// dropped later, entry by entry ([`Intervals::sort`]): until then they say which write a read saw.
fn redundant(accesses: &Accesses, events: &[Event], threads: usize) -> u64 {
    let mut segments: Vec<Segment> = (0..threads).map(|_| Segment::default()).collect();
    let mut count = 0;
    for access in accesses.iter() {
        let event = &events[access.event.index()];
        let segment = &mut segments[event.thread.index()];
        if segment.pos != access.pos {
            segment.pos = access.pos;
            // Clearing costs as much as the set was ever large.
            if segment.seen.capacity() > SEGMENT_KEPT_MAX {
                segment.seen = FxHashSet::default();
            } else {
                segment.seen.clear();
            }
        }
        let new = segment.seen.insert((access.start, access.size, access.kind, event.location));
        count += u64::from(!new);
    }
    count
}

/// Drops accesses that touch only memory of one thread, or memory that nobody writes.
///
/// Long accesses (a block that is released or filled) are kept and remembered by page, so that the cost does not grow
/// with the bytes they cover; a short access to a page that another thread accessed so is kept, too.
pub(crate) fn drop_private(accesses: &mut Accesses, events: &[Event]) {
    const SEVERAL: u32 = u32::MAX;
    let units = |access: &Access, unit: u64| {
        let end = access.start.saturating_add(u64::from(access.size).saturating_sub(1));
        access.start / unit..=end / unit
    };
    let mut owners: FxHashMap<u64, (u32, bool)> = FxHashMap::default();
    let mut pages: FxHashMap<u64, u32> = FxHashMap::default();
    let thread = |access: &Access| events[access.event.index()].thread.0;
    for access in accesses.iter() {
        let by = thread(access);
        if access.size > LONG {
            for page in units(access, PAGE) {
                let owner = pages.entry(page).or_insert(by);
                if *owner != by {
                    *owner = SEVERAL;
                }
            }
            continue;
        }
        for granule in units(access, GRANULE) {
            let (owner, written) = owners.entry(granule).or_insert((by, false));
            if *owner != by {
                *owner = SEVERAL;
            }
            *written |= access.kind.writes();
        }
    }
    accesses.retain(|access| {
        access.size > LONG
            || units(access, GRANULE).any(|granule| owners[&granule] == (SEVERAL, true))
            || units(access, PAGE).any(|page| pages.get(&page).is_some_and(|&owner| owner != thread(access)))
    });
}
