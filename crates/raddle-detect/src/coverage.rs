//! Coverage of interleavings over a set of runs.
//!
//! **What is counted.** *Synchronisation pairs* (Bron et al., *Applications of synchronization coverage*, PPoPP 2005): a
//! place that passed something on and the place of another thread that took it over next. That is a release and an
//! acquisition of a lock; a signal, post, barrier entry, end of a one-time initialiser, atomic store or annotation and
//! what receives it; a fork and the child's first event; a thread's last event and its join. *iRoots* (Yu, Narayanasamy,
//! Pereira, Pokam, *Maple: a coverage-driven testing tool*, OOPSLA 2012): patterns of dependent accesses of two threads,
//! by the places of the accesses. With `a -> b` for "b is the next access of another thread to the variable or lock, and
//! conflicts with a":
//!
//! | idiom | pattern |
//! | --- | --- |
//! | 1 | `a -> b` |
//! | 2 | `a -> b`, `b -> c` with a, c in one thread, all on one object |
//! | 3 | `a -> b` and `c -> d` with a, c in one thread and b, d in the other, a not after c and b not after d, on one object |
//! | 4 | the same on two objects |
//! | 5 | `a -> b`, later `c -> d`, with a, d in one thread and b, c in the other, on two objects |
//!
//! The two dependencies of idioms 2 to 5 must lie within a window ([`WINDOW`], Maple's vulnerability window) of their
//! thread's events. Whether coverage has *saturated* is seen in a plot of how many different ones the runs have shown so far.
//!
//! **Deviations**: Maple counts instructions in the window, we count events. Lock operations take part like writes.

use crate::step::{PerVar, Step, Sync};
use crate::training::{PlaceName, place_name};
use raddle_trace::{LocationIx, Tables, ThreadIx};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Events of a thread between the two dependencies of an iRoot.
pub const WINDOW: u64 = 1_000;

/// Dependencies of a pair of threads that are kept to be combined.
const RECENT_MAX: usize = 16;

/// A thing that has been covered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Covered {
    SyncPair(PlaceName, PlaceName),
    /// Idiom and places.
    Root(u8, Vec<PlaceName>),
}

#[derive(Clone, Copy, Debug, Default)]
struct Access {
    thread: ThreadIx,
    location: LocationIx,
    write: bool,
    /// How many events its thread had made.
    at: u64,
}

/// `a -> b`.
#[derive(Clone, Copy, Debug)]
struct Dependency {
    from: Access,
    to: Access,
    object: u64,
}

#[derive(Clone, Debug, Default)]
struct Object {
    writer: Option<Access>,
    /// Reads since the last write, one a thread.
    readers: Vec<Access>,
}

/// Collects the coverage of one run.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    events: Vec<u64>,
    variables: PerVar<Object>,
    locks: FxHashMap<u32, Object>,
    /// Who last released each lock, and sent over each channel.
    releases: FxHashMap<u32, Access>,
    sends: FxHashMap<u32, Access>,
    /// Forks of threads that have not acted yet, and the last event of each thread.
    forks: FxHashMap<ThreadIx, Access>,
    lasts: Vec<Access>,
    recent: FxHashMap<(ThreadIx, ThreadIx), VecDeque<Dependency>>,
    pairs: FxHashSet<(LocationIx, LocationIx)>,
    roots: FxHashSet<(u8, [LocationIx; 4])>,
}

impl Coverage {
    pub fn new() -> Coverage {
        Coverage::default()
    }

    pub fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let thread = step.thread();
        if self.events.len() <= thread.index() {
            self.events.resize(thread.index() + 1, 0);
        }
        self.events[thread.index()] += 1;
        let mut access =
            Access { thread, location: step.event.location, write: true, at: self.events[thread.index()] };
        let fork = self.forks.remove(&thread);
        self.pair(fork, access);
        if self.lasts.len() <= thread.index() {
            self.lasts.resize(thread.index() + 1, Access::default());
        }
        self.lasts[thread.index()] = access;
        if let Some(write) = step.plain_access() {
            access.write = write;
            for &var in step.vars {
                let object = std::mem::take(self.variables.get_mut(var));
                *self.variables.get_mut(var) = self.touch(object, access, u64::from(var.0));
            }
            return;
        }
        match step.sync {
            Sync::Acquire { lock, .. } => {
                self.pair(self.releases.get(&lock.0).copied(), access);
                let object = self.locks.remove(&lock.0).unwrap_or_default();
                let object = self.touch(object, access, u64::from(lock.0) | 1 << 40);
                self.locks.insert(lock.0, object);
            }
            Sync::Release { lock, .. } => {
                self.releases.insert(lock.0, access);
            }
            Sync::Receive(channel) => self.pair(self.sends.get(&channel.0).copied(), access),
            Sync::Send(channel) => {
                self.sends.insert(channel.0, access);
            }
            Sync::Exchange(channel) => {
                let sent = self.sends.insert(channel.0, access);
                self.pair(sent, access);
            }
            Sync::Fork(child) => {
                self.forks.insert(child, access);
            }
            Sync::Join(child) => {
                let last = self.lasts.get(child.index()).copied().filter(|last| last.at > 0);
                self.pair(last, access);
            }
            Sync::None => {}
        }
    }

    /// One place passed something on, and this one took it over.
    fn pair(&mut self, from: Option<Access>, to: Access) {
        if let Some(from) = from.filter(|from| from.thread != to.thread) {
            self.pairs.insert((from.location, to.location));
        }
    }

    fn touch(&mut self, mut object: Object, access: Access, id: u64) -> Object {
        if let Some(writer) = object.writer
            && writer.thread != access.thread
        {
            self.depend(Dependency { from: writer, to: access, object: id });
        }
        if access.write {
            for reader in std::mem::take(&mut object.readers) {
                if reader.thread != access.thread {
                    self.depend(Dependency { from: reader, to: access, object: id });
                }
            }
            object.writer = Some(access);
        } else {
            object.readers.retain(|reader| reader.thread != access.thread);
            object.readers.push(access);
        }
        object
    }

    fn depend(&mut self, new: Dependency) {
        let (from, to) = (new.from, new.to);
        let none = LocationIx::UNKNOWN;
        self.roots.insert((1, [from.location, to.location, none, none]));
        let near = |early: Access, late: Access| early.at <= late.at && late.at - early.at <= WINDOW;
        // Dependencies the other way round: old.to is in from's thread, old.from in to's.
        if let Some(old) = self.recent.get(&(to.thread, from.thread)) {
            for old in old {
                if old.object == new.object && old.to.at == from.at && near(old.from, to) {
                    self.roots.insert((2, [old.from.location, from.location, to.location, none]));
                } else if old.object != new.object && near(old.to, from) && near(old.from, to) {
                    let places = [old.from.location, old.to.location, from.location, to.location];
                    self.roots.insert((5, places));
                }
            }
        }
        // The same way round.
        let recent = self.recent.entry((from.thread, to.thread)).or_default();
        for old in recent.iter() {
            if near(old.from, from) && near(old.to, to) && (old.from.at, old.to.at) != (from.at, to.at) {
                let idiom = if old.object == new.object { 3 } else { 4 };
                let places = [old.from.location, old.to.location, from.location, to.location];
                self.roots.insert((idiom, places));
            }
        }
        if recent.len() == RECENT_MAX {
            recent.pop_front();
        }
        recent.push_back(new);
    }

    /// What the run covered, in names that other runs share.
    pub fn covered(&self, tables: &Tables) -> FxHashSet<Covered> {
        let name = |location: &LocationIx| place_name(tables, *location);
        let pairs = self.pairs.iter().map(|(a, b)| Covered::SyncPair(name(a), name(b)));
        let roots = self.roots.iter().map(|(idiom, places)| {
            let len = match idiom {
                1 => 2,
                2 => 3,
                _ => 4,
            };
            Covered::Root(*idiom, places[..len].iter().map(name).collect())
        });
        pairs.chain(roots).collect()
    }
}

/// How much a row of runs has covered after each of them.
#[derive(Clone, Debug, Default)]
pub struct Saturation {
    seen: FxHashSet<Covered>,
    /// After each run: synchronisation pairs, and iRoots of each idiom.
    pub runs: Vec<[usize; 6]>,
}

/// What the six columns of [`Saturation::runs`] are.
pub const COLUMNS: [&str; 6] =
    ["synchronisation pairs", "iRoots 1", "iRoots 2", "iRoots 3", "iRoots 4", "iRoots 5"];

impl Saturation {
    pub fn add(&mut self, covered: FxHashSet<Covered>) {
        self.seen.extend(covered);
        let mut counts = [0; 6];
        for covered in &self.seen {
            match covered {
                Covered::SyncPair(..) => counts[0] += 1,
                Covered::Root(idiom, _) => counts[usize::from(*idiom)] += 1,
            }
        }
        self.runs.push(counts);
    }

    /// A plot of all columns over the runs.
    pub fn svg(&self) -> String {
        const WIDTH: f64 = 640.0;
        const HEIGHT: f64 = 360.0;
        const MARGIN: f64 = 48.0;
        const COLORS: [&str; 6] = ["#1b6ca8", "#c8553d", "#588157", "#8e5572", "#bc8034", "#3d405b"];
        let most = self.runs.iter().flatten().copied().max().unwrap_or(0).max(1) as f64;
        let runs = self.runs.len().max(1) as f64;
        let x = |run: usize| MARGIN + (WIDTH - 2.0 * MARGIN) * (run as f64) / (runs - 1.0).max(1.0);
        let y = |count: usize| HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * count as f64 / most;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <path d=\"M{MARGIN} {MARGIN}V{bottom}H{right}\" fill=\"none\" stroke=\"#444\"/>\n\
             <text x=\"{MARGIN}\" y=\"{top}\">{most} covered</text>\n\
             <text x=\"{right}\" y=\"{below}\" text-anchor=\"end\">{runs} runs</text>\n",
            bottom = HEIGHT - MARGIN,
            right = WIDTH - MARGIN,
            top = MARGIN - 8.0,
            below = HEIGHT - MARGIN + 18.0,
        );
        for (column, name) in COLUMNS.iter().enumerate() {
            let points: Vec<String> = self
                .runs
                .iter()
                .enumerate()
                .map(|(run, counts)| format!("{:.1},{:.1}", x(run), y(counts[column])))
                .collect();
            let color = COLORS[column];
            svg.push_str(&format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n\
                 <text x=\"{}\" y=\"{}\" fill=\"{color}\">{name}: {}</text>\n",
                points.join(" "),
                MARGIN + 12.0,
                MARGIN + 8.0 + 14.0 * column as f64,
                self.runs.last().map_or(0, |counts| counts[column]),
            ));
        }
        svg.push_str("</svg>\n");
        svg
    }
}
