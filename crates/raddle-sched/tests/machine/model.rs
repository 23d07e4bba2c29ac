//! Programs of words without threads: all their outcomes by enumeration, and the probability of each under a strategy that
//! chooses among the threads that can go. The naive twin of the runtime.
//!
//! The letters of `threads.c` (`l u`, `m v`: two mutexes; `a`-`d`, `A`-`D`: loads and stores; `o`: a note; `x`: something else), and
//! some that only the machine has: `p` begins to wait for the condition, `q` is woken or waits on, `y` is woken or gives up, `s` and `t` signal
//! and broadcast, `e` and `f` enter and leave the barrier of all words that have an `e`, `w` is a loop that waits until somebody has stored to `a`.

use raddle_sched::Random;
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
    /// Who waits for the condition, and whether it has been woken.
    waits: Vec<Option<bool>>,
    /// Threads at the barrier, its round, and the round that each thread entered.
    arrived: usize,
    round: usize,
    entered: Vec<usize>,
    notes: String,
}

/// Two or three short words that lock, wait, signal and meet.
pub fn random_words(random: &mut Random) -> Vec<String> {
    let threads = 2 + random.below(2);
    let most = if threads == 2 { 4 } else { 2 };
    (0..threads)
        .map(|_| {
            let letters = 1 + random.below(most);
            let body: String = (0..letters).map(|_| b"abAB"[random.below(4)] as char).collect();
            let all = [
                ("", ""),
                ("", ""),
                ("l", "u"),
                ("m", "v"),
                ("lm", "vu"),
                ("ml", "uv"),
                ("pq", ""),
                ("py", ""),
                ("s", ""),
                ("", "t"),
                ("ef", ""),
            ];
            let (open, close) = all[random.below(all.len())];
            format!("{open}{body}{close}")
        })
        .collect()
}

/// What a thread finds in its register that gave up waiting.
pub const GAVE_UP: i32 = 70;

/// How many threads the barrier waits for.
pub fn barrier_count(words: &[&str]) -> usize {
    words.iter().filter(|word| word.contains('e')).count()
}

impl State {
    fn new(threads: usize) -> State {
        State {
            at: vec![0; threads],
            registers: vec![0; threads],
            variables: [0; 4],
            holders: [None; 2],
            waits: vec![None; threads],
            arrived: 0,
            round: 0,
            entered: vec![0; threads],
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
            Some('q') => self.waits[thread] == Some(true),
            Some('f') => self.entered[thread] != self.round,
            Some('w') => self.variables[0] != 0,
            Some(_) => true,
        }
    }

    /// What a thread's next operation can lead to: more than one state where a signal chooses among waiters.
    fn go(&self, words: &[&str], thread: usize) -> Vec<State> {
        let mut after = self.clone();
        after.at[thread] += 1;
        match self.next(words, thread) {
            Some('p') => after.waits[thread] = Some(false),
            Some('q') => after.waits[thread] = None,
            Some('y') => {
                let woken = after.waits[thread].take();
                if woken == Some(false) {
                    after.registers[thread] = GAVE_UP;
                }
            }
            Some('s') => {
                let waiters = (0..words.len()).filter(|&t| self.waits[t] == Some(false));
                let woken = |waiter: usize| {
                    let mut after = after.clone();
                    after.waits[waiter] = Some(true);
                    after
                };
                let all: Vec<State> = waiters.map(woken).collect();
                return if all.is_empty() { vec![after] } else { all };
            }
            Some('t') => after.waits.iter_mut().flatten().for_each(|woken| *woken = true),
            Some('e') => {
                after.entered[thread] = self.round;
                after.arrived += 1;
                if after.arrived == barrier_count(words) {
                    (after.arrived, after.round) = (0, self.round + 1);
                }
            }
            Some('l') => after.holders[0] = Some(thread),
            Some('m') => after.holders[1] = Some(thread),
            Some('u') => after.holders[0] = None,
            Some('v') => after.holders[1] = None,
            Some('o') => after.notes.push_str(&(thread + 1).to_string()),
            Some(c @ 'a'..='d') => after.registers[thread] = self.variables[c as usize - 'a' as usize],
            Some(c @ 'A'..='D') => after.variables[c as usize - 'A' as usize] = self.registers[thread] + 1,
            _ => {}
        }
        vec![after]
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
            None => todo.extend(
                (0..words.len()).filter(|&t| state.can_go(words, t)).flat_map(|t| state.go(words, t)),
            ),
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
            for after in state.go(words, thread) {
                for (end, ways) in count(words, &after, known) {
                    *all.entry(end).or_default() += ways;
                }
            }
        }
        known.insert(state.clone(), all.clone());
        all
    }
    count(words, &State::new(words.len()), &mut HashMap::new())
}

/// A random walk: main creates the threads and joins them in order, each thread begins, does its letters and ends. Every
/// thread that can go is equally likely. A join that has to wait is found out by trying it, after which main is out of
/// the draw until the thread has ended. For words in which nothing else waits.
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
                    to.state = walk.state.go(words, thread).swap_remove(0);
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

/// Every order in which the threads can take their turns, as the thread of each turn: main (0) creates the others and joins them, each thread
/// begins, does its letters and ends. An order ends when nobody can go.
pub fn orders(words: &[&str]) -> BTreeSet<Vec<usize>> {
    #[derive(Clone)]
    struct Order {
        turns: Vec<usize>,
        main: usize,
        children: Vec<usize>,
        /// States in which the program can be after these turns.
        states: Vec<State>,
    }
    let count = words.len();
    let length = |thread: usize| words[thread].len() + 2;
    let first = Order { turns: Vec::new(), main: 0, children: Vec::new(), states: vec![State::new(count)] };
    let (mut all, mut todo) = (BTreeSet::new(), vec![first]);
    while let Some(order) = todo.pop() {
        let mut is_last = true;
        let forks = order.main < count;
        let joins = !forks
            && order.main < 2 * count
            && order.children[order.main - count] == length(order.main - count);
        if forks || joins {
            let mut to = order.clone();
            to.main += 1;
            to.turns.push(0);
            if forks {
                to.children.push(0);
            }
            todo.push(to);
            is_last = false;
        }
        for thread in 0..order.children.len() {
            let done = order.children[thread];
            let mut to = order.clone();
            if (1..=words[thread].len()).contains(&done) {
                let can_go = order.states.iter().filter(|state| state.can_go(words, thread));
                to.states = can_go.flat_map(|state| state.go(words, thread)).collect();
            } else if done == length(thread) {
                continue;
            }
            if !to.states.is_empty() {
                to.children[thread] += 1;
                to.turns.push(thread + 1);
                todo.push(to);
                is_last = false;
            }
        }
        if is_last {
            all.insert(order.turns);
        }
    }
    all
}

/// The strategy `period` by the letter of its description, with everything that it draws enumerated: the order of notes and the
/// probability of each. For words in which nothing waits.
pub fn periodical(words: &[&str], periods: usize, steps: u64) -> BTreeMap<String, f64> {
    let threads = words.len() + 1;
    let longest = words.iter().map(|word| word.len() + 2).max().unwrap_or(0).max(2 * words.len());
    // After so many operations a stretch ends; all that are longer than a thread are alike.
    let bits = u64::from(u64::BITS - steps.leading_zeros());
    let mut cut = vec![0.0; longest + 2];
    for most in (1..=bits).map(|bit| 1usize << bit) {
        for at in 1..=most {
            cut[at.min(longest + 1)] += 1.0 / (bits as f64 * most as f64);
        }
    }
    let mut ranks: Vec<Vec<usize>> = vec![vec![]];
    for _ in 0..threads {
        ranks = ranks
            .iter()
            .flat_map(|order| {
                (0..threads).filter(|t| !order.contains(t)).map(|t| [&order[..], &[t]].concat())
            })
            .collect();
    }
    assert!(periods <= 2, "one cut a thread is enough to enumerate");
    let cuts = |thread: usize, number: usize| {
        if periods == 1 { longest + 1 } else { number / (longest + 2).pow(thread as u32) % (longest + 2) }
    };
    let mut all = BTreeMap::new();
    let numbers = if periods == 1 { 1 } else { (longest + 2).pow(threads as u32) };
    for number in 0..numbers {
        let cuts: Vec<usize> = (0..threads).map(|thread| cuts(thread, number)).collect();
        let likely: f64 = if periods == 1 { 1.0 } else { cuts.iter().map(|&at| cut[at]).product() };
        if likely == 0.0 {
            continue;
        }
        for first in &ranks {
            for second in if periods == 1 { &ranks[..1] } else { &ranks[..] } {
                let order = in_periods(words, &cuts, periods, [first, second]);
                let orders = ranks.len() * if periods == 1 { 1 } else { ranks.len() };
                *all.entry(order).or_insert(0.0) += likely / orders as f64;
            }
        }
    }
    all
}

/// One run of [`periodical`]: each thread's period is how many of its cuts it has passed, and among those of the least period the one
/// whose rank in it is first goes. A period is over when nobody can go in it.
fn in_periods(words: &[&str], cuts: &[usize], periods: usize, ranks: [&[usize]; 2]) -> String {
    let (count, mut now) = (words.len(), 0);
    let mut done = vec![0; count + 1];
    let (mut created, mut order) = (0, String::new());
    // What main finds when it tries to join is no turn, and it is out until the thread has ended.
    let mut joining = false;
    loop {
        let ended = |done: &[usize], child: usize| done[child] == words[child - 1].len() + 2;
        if joining && ended(&done, done[0] - count + 1) {
            joining = false;
        }
        let mut candidates: Vec<usize> = (1..=created).filter(|&child| !ended(&done, child)).collect();
        if done[0] < 2 * count && !joining {
            candidates.insert(0, 0);
        }
        let Some(&only) = candidates.first() else { return order };
        let period = |thread: usize| usize::from(periods > 1 && cuts[thread] <= done[thread]);
        let next = if candidates.len() == 1 {
            only
        } else {
            now = candidates.iter().map(|&t| period(t)).min().unwrap_or(0).max(now);
            let in_period = candidates.iter().copied().filter(|&t| period(t) <= now);
            in_period.min_by_key(|t| ranks[now].iter().position(|r| r == t)).unwrap_or(only)
        };
        if next == 0 && done[0] >= count && !ended(&done, done[0] - count + 1) {
            joining = true;
            continue;
        }
        if next == 0 {
            created += usize::from(done[0] < count);
        } else if words[next - 1].as_bytes().get(done[next].wrapping_sub(1)) == Some(&b'o') {
            order += &next.to_string();
        }
        done[next] += 1;
    }
}

/// The strategy `preempt` by its description: every choice of points among so many steps, and at each every thread that may go. For words in
/// which nothing waits.
pub fn preempted(words: &[&str], bound: usize, steps: u64) -> BTreeMap<String, f64> {
    /// Where a run is: operations done (main's first), threads created, whether main is in a join that waits, who went last.
    #[derive(Clone)]
    struct At {
        done: Vec<usize>,
        created: usize,
        joining: bool,
        last: Option<usize>,
        choices: u64,
        order: String,
    }
    let count = words.len();
    let ended = |at: &At, child: usize| at.done[child] == words[child - 1].len() + 2;
    let mut all = BTreeMap::new();
    let ways = steps.pow(bound as u32);
    for number in 0..ways {
        let points: Vec<u64> = (0..bound as u32).map(|nth| 1 + number / steps.pow(nth) % steps).collect();
        let first = At {
            done: vec![0; count + 1],
            created: 0,
            joining: false,
            last: None,
            choices: 0,
            order: String::new(),
        };
        let mut todo = vec![(first, 1.0 / ways as f64)];
        while let Some((mut at, likely)) = todo.pop() {
            if at.joining && ended(&at, at.done[0] - count + 1) {
                at.joining = false;
            }
            let mut candidates: Vec<usize> = (1..=at.created).filter(|&child| !ended(&at, child)).collect();
            if at.done[0] < 2 * count && !at.joining {
                candidates.insert(0, 0);
            }
            if candidates.is_empty() {
                *all.entry(at.order).or_insert(0.0) += likely;
                continue;
            }
            if candidates.len() > 1 {
                at.choices += 1;
                if let Some(last) = at.last.filter(|last| candidates.contains(last)) {
                    let preempts = points.contains(&at.choices);
                    candidates.retain(|&thread| (thread == last) != preempts);
                }
            }
            for &next in &candidates {
                let (mut to, likely) = (at.clone(), likely / candidates.len() as f64);
                if next == 0 && to.done[0] >= count && !ended(&to, to.done[0] - count + 1) {
                    // Trying is no turn.
                    to.joining = true;
                    todo.push((to, likely));
                    continue;
                }
                if next == 0 {
                    to.created += usize::from(to.done[0] < count);
                } else if words[next - 1].as_bytes().get(to.done[next].wrapping_sub(1)) == Some(&b'o') {
                    to.order += &next.to_string();
                }
                to.done[next] += 1;
                to.last = Some(next);
                todo.push((to, likely));
            }
        }
    }
    all
}
