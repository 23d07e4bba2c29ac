//! What cannot be in a well-formed trace: noted with the line, and read on.
//!
//! A trace that another tool wrote may have lost lines, or be cut at both ends. Detectors and predictors say something
//! about it all the same; whoever reads their words has to know. Noted are: a lock taken while another thread has it, a
//! lock released by a thread that does not have it, an event of a thread that was joined before, a thread that is forked after it began, and a
//! thread that is forked under a name under which nothing is ever seen while another appears out of nowhere.

use crate::ids::ThreadIx;

/// Faults that are kept; the rest is counted.
const KEPT_MAX: usize = 20;

/// A line that does not fit the lines before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFault {
    pub line: u64,
    pub text: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct Owner {
    /// Thread number plus one.
    thread: u32,
    depth: u32,
    line: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    joined: u64,
    first: u64,
    forked: u64,
    told: bool,
}

/// Follows the lines of a trace.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    owners: Vec<Owner>,
    threads: Vec<Seen>,
    kept: Vec<(LineFault, Option<(u32, u32)>)>,
    more: u64,
}

impl Faults {
    fn note(&mut self, line: u64, text: String, held: Option<(u32, u32)>) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push((LineFault { line, text }, held));
        } else {
            self.more += 1;
        }
    }

    /// A thread has a line of its own. False, and only then slow, if there is something to note.
    #[inline]
    pub fn acts(&mut self, thread: ThreadIx, line: u64) -> bool {
        if self.threads.len() <= thread.index() {
            self.threads.resize(thread.index() + 1, Seen::default());
        }
        let seen = &mut self.threads[thread.index()];
        if seen.first == 0 {
            seen.first = line;
        }
        seen.joined == 0 || seen.told
    }

    pub fn acts_after_join(&mut self, thread: ThreadIx, line: u64, name: &str) {
        let seen = &mut self.threads[thread.index()];
        seen.told = true;
        let text = format!("thread {name} goes on after it was joined in line {}", seen.joined);
        self.note(line, text, None);
    }

    pub fn joined(&mut self, child: ThreadIx, line: u64) {
        self.acts_reserve(child);
        self.threads[child.index()].joined = line;
    }

    pub fn forked(&mut self, child: ThreadIx, line: u64, name: &str) {
        self.acts_reserve(child);
        let seen = self.threads[child.index()];
        self.threads[child.index()].forked = line;
        if seen.forked != 0 {
            self.note(line, format!("thread {name} is forked again; line {} did so", seen.forked), None);
        } else if seen.first != 0 {
            self.note(line, format!("thread {name} is forked after it began in line {}", seen.first), None);
        }
    }

    fn acts_reserve(&mut self, thread: ThreadIx) {
        if self.threads.len() <= thread.index() {
            self.threads.resize(thread.index() + 1, Seen::default());
        }
    }

    pub fn holds(&self, thread: ThreadIx, lock: u64) -> bool {
        self.owners.get(lock as usize).is_some_and(|owner| owner.thread == thread.0 + 1)
    }

    /// The thread takes the lock. The thread that has it, and the line where it took it, if that is another.
    #[inline]
    pub fn acquire(&mut self, thread: ThreadIx, lock: u64, line: u64) -> Option<(ThreadIx, u64)> {
        let lock = lock as usize;
        if self.owners.len() <= lock {
            self.owners.resize(lock + 1, Owner::default());
        }
        let owner = &mut self.owners[lock];
        if owner.thread == thread.0 + 1 {
            owner.depth += 1;
            return None;
        }
        let other = owner.thread.checked_sub(1).map(|holder| (ThreadIx(holder), owner.line));
        *owner = Owner { thread: thread.0 + 1, depth: 1, line };
        other
    }

    pub fn two_holders(&mut self, lock: u64, holder: ThreadIx, line: u64, text: String) {
        self.note(line, text, Some((holder.0, lock as u32)));
    }

    /// The thread gives the lock back. False if it does not have it.
    #[inline]
    pub fn release(&mut self, thread: ThreadIx, lock: u64) -> bool {
        let Some(owner) = self.owners.get_mut(lock as usize).filter(|owner| owner.thread == thread.0 + 1)
        else {
            return false;
        };
        owner.depth -= 1;
        if owner.depth == 0 {
            *owner = Owner::default();
        }
        true
    }

    pub fn not_held(&mut self, line: u64, text: String) {
        self.note(line, text, None);
    }

    /// The thread was waiting all the time: that others took the lock in between is as it should be.
    pub fn was_waiting(&mut self, thread: ThreadIx, lock: u64, line: u64) {
        self.kept.retain(|(_, held)| *held != Some((thread.0, lock as u32)));
        let lock = lock as usize;
        if self.owners.len() <= lock {
            self.owners.resize(lock + 1, Owner::default());
        }
        self.owners[lock] = Owner { thread: thread.0 + 1, depth: 1, line };
    }

    /// All faults, and how many more there are. `name` says what threads are called; the first thread needs no fork.
    pub fn told(&self, name: impl Fn(ThreadIx) -> String) -> (Vec<LineFault>, u64) {
        let mut told: Vec<LineFault> = self.kept.iter().map(|(fault, _)| fault.clone()).collect();
        let never = |seen: &&(usize, &Seen)| seen.1.forked != 0 && seen.1.first == 0;
        let stray = |seen: &&(usize, &Seen)| seen.0 != 0 && seen.1.forked == 0 && seen.1.first != 0;
        let threads: Vec<(usize, &Seen)> = self.threads.iter().enumerate().collect();
        if let (Some(silent), Some(stray)) = (threads.iter().find(never), threads.iter().find(stray)) {
            let (forked, appears) = (name(ThreadIx(silent.0 as u32)), name(ThreadIx(stray.0 as u32)));
            let text = format!(
                "thread {forked} is forked and never seen, while thread {appears} appears unforked in line {}: are \
                 they the same thread under two names?",
                stray.1.first
            );
            told.push(LineFault { line: silent.1.forked, text });
        }
        told.sort_by_key(|fault| fault.line);
        (told, self.more)
    }
}
