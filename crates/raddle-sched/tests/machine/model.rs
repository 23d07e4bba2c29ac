//! Programs of `threads.c` without threads: all their outcomes by enumeration, and the probability of each under a strategy that
//! chooses among the threads that can go. The naive twin of the runtime.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// How a program can end: what it prints, or not at all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    Prints(String),
    Deadlock,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    at: Vec<usize>,
    registers: Vec<i32>,
    variables: [i32; 4],
    holders: [Option<usize>; 2],
    notes: String,
}

impl State {
    fn new(threads: usize) -> State {
        State {
            at: vec![0; threads],
            registers: vec![0; threads],
            variables: [0; 4],
            holders: [None; 2],
            notes: String::new(),
        }
    }

    fn next(&self, words: &[&str], thread: usize) -> Option<char> {
        words[thread].chars().nth(self.at[thread])
    }

    fn can_go(&self, words: &[&str], thread: usize) -> bool {
        match self.next(words, thread) {
            None => false,
            Some('l') => self.holders[0].is_none(),
            Some('m') => self.holders[1].is_none(),
            Some(_) => true,
        }
    }

    fn go(&self, words: &[&str], thread: usize) -> State {
        let mut after = self.clone();
        after.at[thread] += 1;
        match self.next(words, thread) {
            Some('l') => after.holders[0] = Some(thread),
            Some('m') => after.holders[1] = Some(thread),
            Some('u') => after.holders[0] = None,
            Some('v') => after.holders[1] = None,
            Some('o') => after.notes.push_str(&(thread + 1).to_string()),
            Some(c @ 'a'..='d') => after.registers[thread] = self.variables[c as usize - 'a' as usize],
            Some(c @ 'A'..='D') => after.variables[c as usize - 'A' as usize] = self.registers[thread] + 1,
            _ => {}
        }
        after
    }

    fn end(&self, words: &[&str]) -> Option<End> {
        let done = (0..words.len()).all(|thread| self.next(words, thread).is_none());
        let stuck = (0..words.len()).all(|thread| !self.can_go(words, thread));
        match (done, stuck) {
            (true, _) => {
                let numbers: Vec<String> =
                    self.variables.iter().chain(&self.registers).map(i32::to_string).collect();
                Some(End::Prints(format!("{} {}\n", numbers.join(" "), self.notes)))
            }
            (false, true) => Some(End::Deadlock),
            (false, false) => None,
        }
    }
}

/// Every end that some order of the operations leads to.
pub fn outcomes(words: &[&str]) -> BTreeSet<End> {
    let mut ends = BTreeSet::new();
    let mut seen = HashSet::new();
    let mut todo = vec![State::new(words.len())];
    while let Some(state) = todo.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        match state.end(words) {
            Some(end) => {
                ends.insert(end);
            }
            None => {
                todo.extend((0..words.len()).filter(|&t| state.can_go(words, t)).map(|t| state.go(words, t)))
            }
        }
    }
    ends
}

/// How many interleavings end in which way.
pub fn interleavings(words: &[&str]) -> BTreeMap<End, u64> {
    fn count(
        words: &[&str],
        state: &State,
        known: &mut HashMap<State, BTreeMap<End, u64>>,
    ) -> BTreeMap<End, u64> {
        if let Some(end) = state.end(words) {
            return BTreeMap::from([(end, 1)]);
        }
        if let Some(known) = known.get(state) {
            return known.clone();
        }
        let mut all = BTreeMap::new();
        for thread in (0..words.len()).filter(|&t| state.can_go(words, t)) {
            for (end, ways) in count(words, &state.go(words, thread), known) {
                *all.entry(end).or_default() += ways;
            }
        }
        known.insert(state.clone(), all.clone());
        all
    }
    count(words, &State::new(words.len()), &mut HashMap::new())
}

/// A random walk: main creates the threads and joins them in order, each thread begins, does its letters and ends. Every
/// thread that can go is equally likely. A join that has to wait is found out by trying it, after which main is out of
/// the draw until the thread has ended. For words without locks.
pub fn random_walk(words: &[&str]) -> BTreeMap<End, f64> {
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Walk {
        main: usize,
        waits: bool,
        /// Steps taken: begin, letters, end.
        children: Vec<usize>,
        state: State,
    }
    let count = words.len();
    let length = |thread: usize| words[thread].len() + 2;
    let mut now: HashMap<Walk, f64> = HashMap::new();
    now.insert(Walk { main: 0, waits: false, children: Vec::new(), state: State::new(count) }, 1.0);
    let mut ends: BTreeMap<End, f64> = BTreeMap::new();
    while !now.is_empty() {
        let mut after: HashMap<Walk, f64> = HashMap::new();
        for (walk, probability) in now {
            if walk.main == 2 * count {
                let end = walk.state.end(words).expect("all threads were joined");
                *ends.entry(end).or_default() += probability;
                continue;
            }
            let mut next: Vec<Walk> = Vec::new();
            if !walk.waits {
                let mut to = walk.clone();
                if walk.main < count {
                    to.main += 1;
                    to.children.push(0);
                } else if walk.children[walk.main - count] == length(walk.main - count) {
                    to.main += 1;
                } else {
                    to.waits = true;
                }
                next.push(to);
            }
            for thread in 0..walk.children.len() {
                if walk.children[thread] == length(thread) {
                    continue;
                }
                let mut to = walk.clone();
                to.children[thread] += 1;
                let letters = 1..=words[thread].len();
                if letters.contains(&walk.children[thread]) {
                    to.state = walk.state.go(words, thread);
                }
                if to.children[thread] == length(thread) && walk.waits && walk.main - count == thread {
                    to.waits = false;
                }
                next.push(to);
            }
            let share = probability / next.len() as f64;
            for to in next {
                *after.entry(to).or_default() += share;
            }
        }
        now = after;
    }
    ends
}
