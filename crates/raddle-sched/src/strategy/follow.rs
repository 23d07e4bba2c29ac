//! `follow`: along a given prefix of threads, then on without preemption. Not for users: it is how a systematic search runs a
//! program (`raddle_explore::systematic`).
//!
//! A search asks for a run as the sequence of threads that take the first turns. After that the thread that went last goes on
//! while it can, then the next one in order of creation. Threads that are *asleep* (Godefroid's sleep sets) are left alone until
//! somebody performs an operation that is dependent on theirs; when only such are left, the run goes on as it likes, and the
//! search finds that out.
//!
//! A choice is no turn: an operation that would block is tried in vain and its thread set aside, and the place in the prefix
//! stays the same. A prefix that cannot be followed is not followed; the search finds that out as well.
//!
//! The blob: length of the prefix, the place in it at which threads fall asleep, how many they are; the path hashes of the
//! prefix; for each sleeper its path hash and its operation in three words.

use super::Strategy;
use crate::dependence::{Operation, dependent};
use crate::roster::ThreadIx;
use crate::view::{Tools, View};

const SLEEPER_WORDS: usize = 4;
/// Sleepers beyond so many are awake from the beginning; the search then sees a blocked run more.
const SLEEPERS_MAX: usize = u64::BITS as usize;

pub struct Follow<'t> {
    prefix: &'t [u64],
    asleep_at: usize,
    asleep: &'t [[u64; SLEEPER_WORDS]],
    /// Bit k: sleeper k has been woken.
    woken: u64,
    turns: usize,
}

impl<'t> Follow<'t> {
    /// A blob that does not fit its own counts is followed as far as it goes.
    pub fn new(blob: &'t [u64]) -> Follow<'t> {
        let (head, rest) = blob.split_at(blob.len().min(3));
        let number = |at: usize| head.get(at).map_or(0, |&word| word as usize);
        let (prefix, rest) = rest.split_at(number(0).min(rest.len()));
        let (sleepers, _) = rest.as_chunks();
        let asleep = &sleepers[..number(2).min(sleepers.len()).min(SLEEPERS_MAX)];
        Follow { prefix, asleep_at: number(1), asleep, woken: 0, turns: 0 }
    }

    fn is_asleep(&self, path: u64) -> bool {
        let mut sleepers = self.asleep.iter().enumerate();
        sleepers.any(|(at, sleeper)| sleeper[0] == path && self.woken >> at & 1 == 0)
    }
}

impl Strategy for Follow<'_> {
    fn looks_ahead(&self) -> bool {
        true
    }

    fn is_exhaustive(&self) -> bool {
        true
    }

    /// Loops that wait are found in another way ([`crate::waiting_loop`]).
    fn spin_turns_max(&self) -> u32 {
        u32::MAX
    }

    fn is_bound(&self) -> bool {
        self.turns < self.prefix.len()
    }

    fn pick(&mut self, view: &View<'_, '_>, _tools: &mut Tools<'_>) -> ThreadIx {
        if let Some(&path) = self.prefix.get(self.turns)
            && let Some(found) = view.candidates().find(|&ix| view.roster[ix].path == path)
        {
            return found;
        }
        let last = view.progress.last;
        let awake = |ix: &ThreadIx| !self.is_asleep(view.roster[*ix].path);
        let from_last = || view.candidates().filter(|&ix| last.is_nobody() || ix >= last);
        let in_turn = || from_last().chain(view.candidates());
        in_turn().find(awake).or_else(|| in_turn().next()).unwrap_or(ThreadIx(0))
    }

    fn finished(&mut self, view: &View<'_, '_>, _tools: &mut Tools<'_>, thread: ThreadIx) -> bool {
        if self.turns >= self.asleep_at {
            let operation = view.roster[thread].operation;
            for (at, &[path, words @ ..]) in self.asleep.iter().enumerate() {
                let own = path == view.roster[thread].path;
                if own || dependent(&Operation::unpack(words), &operation) {
                    self.woken |= 1 << at;
                }
            }
        }
        self.turns += 1;
        false
    }
}
