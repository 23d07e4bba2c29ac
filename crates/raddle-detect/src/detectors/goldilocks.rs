//! `goldilocks`: happens-before by locksets that grow.
//!
//! **Definition** (Elmas, Qadeer, Tasiran, *Goldilocks: a race and transaction-aware Java runtime*, PLDI 2007). The
//! lockset of an access contains everything that knows of it: threads, locks, channels. After an access by `t` it is
//! `{t}`. Each synchronisation passes knowledge on: a release by a member thread makes the lock a member, an
//! acquisition of a member lock makes the thread a member, and likewise for forks, joins, sends and receives. A later
//! conflicting access is ordered exactly if its thread is a member then.
//!
//! **Precise up to the first race of each variable**, like [`super::fasttrack`], with which it agrees there. Grade
//! *unordered*, for the same reason: its locksets pass on all that happens-before does, atomics of any order included.
//!
//! **Lazy evaluation**, as in the paper: synchronisation goes into one list, an access remembers its place in it, and
//! its lockset is computed when another thread asks, from that place on. The short cut: the same thread needs no
//! lockset. When the list gets long, the locksets of all remembered accesses are brought up to its end and the list
//! starts anew; that bounds memory.
//!
//! **Deviations**: one remembered write and one remembered read for each thread; a read-write lock is two members, one
//! for what writers released and one for what readers released.
//!
//! **Cost**: the synchronisation since the last access of the variable, for accesses by another thread.

use crate::detector::{Detector, End};
use crate::race::{Races, Site};
use crate::report::Report;
use crate::step::{ChannelIx, LockIx, Step, Sync, VarIx};
use raddle_findings::Basis;
use raddle_trace::ThreadIx;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

pub const NAME: &str = "goldilocks";

/// What can know of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Thread(ThreadIx),
    Written(LockIx),
    ReadUnlocked(LockIx),
    Channel(ChannelIx),
}

type Members = SmallVec<[Member; 6]>;

/// An access whose lockset is known up to some place of the list.
#[derive(Clone, Debug)]
struct Remembered {
    members: Members,
    place: usize,
    site: Site,
}

#[derive(Clone, Debug, Default)]
struct Variable {
    write: Option<Remembered>,
    reads: Vec<Remembered>,
}

/// The list is folded into the locksets when it has this many entries.
const LIST_MAX: usize = 1 << 14;

#[derive(Debug)]
pub struct Goldilocks {
    list: Vec<(ThreadIx, Sync)>,
    variables: FxHashMap<VarIx, Variable>,
    races: Races,
}

impl Default for Goldilocks {
    fn default() -> Goldilocks {
        Goldilocks {
            list: Vec::new(),
            variables: FxHashMap::default(),
            races: Races::new(NAME, Basis::unordered()),
        }
    }
}

impl Remembered {
    fn new(step: &Step<'_>, place: usize) -> Remembered {
        Remembered { members: smallvec![Member::Thread(step.thread())], place, site: Site::of(step) }
    }

    /// Does a thread know of the access?
    fn known_to(&mut self, thread: ThreadIx, list: &[(ThreadIx, Sync)]) -> bool {
        if self.site.thread == thread || self.members.contains(&Member::Thread(thread)) {
            return true;
        }
        self.catch_up(list);
        self.members.contains(&Member::Thread(thread))
    }

    fn catch_up(&mut self, list: &[(ThreadIx, Sync)]) {
        for &(thread, sync) in &list[self.place..] {
            let me = Member::Thread(thread);
            match sync {
                Sync::None => {}
                Sync::Acquire { lock, read } => {
                    self.pass(Member::Written(lock), me);
                    if !read {
                        self.pass(Member::ReadUnlocked(lock), me);
                    }
                }
                Sync::Release { lock, read: true } => self.pass(me, Member::ReadUnlocked(lock)),
                Sync::Release { lock, read: false } => self.pass(me, Member::Written(lock)),
                Sync::Fork(child) => self.pass(me, Member::Thread(child)),
                Sync::Join(child) => self.pass(Member::Thread(child), me),
                Sync::Receive(channel) => self.pass(Member::Channel(channel), me),
                Sync::Send(channel) => self.pass(me, Member::Channel(channel)),
                Sync::Exchange(channel) => {
                    self.pass(Member::Channel(channel), me);
                    self.pass(me, Member::Channel(channel));
                }
            }
        }
        self.place = list.len();
    }

    fn pass(&mut self, from: Member, to: Member) {
        if self.members.contains(&from) && !self.members.contains(&to) {
            self.members.push(to);
        }
    }
}

impl Goldilocks {
    pub fn keep_all() -> Goldilocks {
        Goldilocks { races: Races::new(NAME, Basis::unordered()).keep_all(), ..Goldilocks::default() }
    }

    pub fn races(&self) -> &Races {
        &self.races
    }

    fn fold(&mut self) {
        for variable in self.variables.values_mut() {
            for remembered in variable.write.iter_mut().chain(&mut variable.reads) {
                remembered.catch_up(&self.list);
                remembered.place = 0;
            }
        }
        self.list.clear();
    }
}

impl Detector for Goldilocks {
    fn step(&mut self, step: &Step<'_>) {
        for &(old, new) in step.splits {
            if let Some(variable) = self.variables.get(&old).cloned() {
                self.variables.insert(new, variable);
            }
        }
        for var in step.reborn {
            self.variables.remove(var);
        }
        let Some(write) = step.plain_access() else {
            if step.sync != Sync::None {
                self.list.push((step.thread(), step.sync));
            }
            if self.list.len() >= LIST_MAX {
                self.fold();
            }
            return;
        };
        let thread = step.thread();
        for &var in step.vars {
            let variable = self.variables.entry(var).or_default();
            if let Some(last) = &mut variable.write
                && !last.known_to(thread, &self.list)
            {
                self.races.race(var, last.site, step);
            }
            if write {
                if let Some(read) = variable.reads.iter_mut().find_map(|read| {
                    let known = read.known_to(thread, &self.list);
                    (!known).then_some(read.site)
                }) {
                    self.races.race(var, read, step);
                }
                variable.reads.clear();
                variable.write = Some(Remembered::new(step, self.list.len()));
            } else {
                variable.reads.retain(|read| read.site.thread != thread);
                variable.reads.push(Remembered::new(step, self.list.len()));
            }
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
