//! What must have happened: for each position of each thread, how far the others must have come.
//!
//! Vector clocks (Fidge, Mattern) over the steps of a [`Program`], from a chosen set of edges:
//!
//! * [`Clocks::must`]: edges of every reordering. Forks, joins, signals, life cycles of objects, values with one source;
//!   RaceQuest's weak happens-before (§5.5.2), plus two kinds of edge that hold just as surely: the rounds of a barrier
//!   used by exactly as many threads as it waits for, and posts without which a semaphore cannot have been positive.
//! * [`Clocks::observed`]: these, and who met whom in the observed run.
//! * the same with the writers of plain reads added, for reorderings in which every thread reads what it read; or, with
//!   [`Clocks::keeping_earlier_reads`], in which it does so up to the segment that it is in: what two racing segments read
//!   of each other cannot be kept when both are held before it.
//!
//! Clocks change at few positions, so a thread's clocks are kept as a list of changes.

use crate::build::ObservedEdge;
use crate::ids::Pos;
use crate::program::{Action, Need, Program};
use raddle_trace::ThreadIx;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Clocks {
    width: usize,
    threads: Vec<Changes>,
}

#[derive(Clone, Debug, Default)]
struct Changes {
    positions: Vec<Pos>,
    /// `width` entries for each position.
    clocks: Vec<Pos>,
}

/// A read saw what another thread wrote.
#[derive(Clone, Copy, Debug)]
pub struct ReadEdge {
    /// At least here must the writer be: behind the segment that it wrote in.
    pub from: Need,
    pub thread: ThreadIx,
    /// Position of the segment that reads.
    pub pos: Pos,
}

impl Clocks {
    /// Orders of every reordering.
    pub fn must(program: &Program) -> Clocks {
        let mut edges = barrier_edges(program);
        edges.extend(semaphore_edges(program));
        Clocks::compute(program, edges, Vec::new())
    }

    /// Orders of the observed run, except those that locks made; with `reads`, those of plain memory too.
    pub fn observed(program: &Program, edges: &[ObservedEdge], reads: Vec<ReadEdge>) -> Clocks {
        let mut all = barrier_edges(program);
        all.extend_from_slice(edges);
        Clocks::compute(program, all, reads)
    }

    /// Orders of the observed run and of the plain reads that lie before the segment that a thread is in.
    pub fn keeping_earlier_reads(
        program: &Program,
        edges: &[ObservedEdge],
        mut reads: Vec<ReadEdge>,
    ) -> Clocks {
        for read in &mut reads {
            read.pos += 1;
        }
        Clocks::observed(program, edges, reads)
    }

    /// How far each thread must be when this one has come to a position. The entry of the thread itself is 0.
    pub fn at(&self, thread: ThreadIx, pos: Pos) -> &[Pos] {
        let changes = &self.threads[thread.index()];
        let place = changes.positions.partition_point(|&change| change <= pos) - 1;
        &changes.clocks[place * self.width..(place + 1) * self.width]
    }

    /// Can the two threads be at these positions at the same time, as far as these orders go?
    pub fn parallel(&self, (a, a_pos): (ThreadIx, Pos), (b, b_pos): (ThreadIx, Pos)) -> bool {
        self.at(a, a_pos)[b.index()] <= b_pos && self.at(b, b_pos)[a.index()] <= a_pos
    }

    fn compute(program: &Program, mut edges: Vec<ObservedEdge>, mut reads: Vec<ReadEdge>) -> Clocks {
        let width = program.thread_count();
        let first = Changes { positions: vec![0], clocks: vec![0; width] };
        let mut clocks = Clocks { width, threads: vec![first; width] };
        edges.sort_unstable_by_key(|edge| (edge.thread, edge.pos));
        reads.sort_unstable_by_key(|edge| (edge.thread, edge.pos));
        let mut next_edge = starts_of(&edges, width, |edge| edge.thread);
        let mut next_read = starts_of(&reads, width, |edge| edge.thread);
        let mut at: Vec<Pos> = vec![0; width];
        let mut gathered: Vec<Need> = Vec::new();
        for &thread in &program.order {
            let index = thread.index();
            let pos = at[index];
            clocks.add_reads(&reads, &mut next_read[index], thread, pos);
            let step = &program.steps(thread)[pos as usize];
            gathered.clear();
            gathered.extend_from_slice(program.needs_of(step));
            while let Some(edge) =
                edges.get(next_edge[index]).filter(|edge| edge.thread == thread && edge.pos <= pos)
            {
                next_edge[index] += 1;
                if edge.pos == pos {
                    gathered.push(edge.from);
                }
            }
            at[index] += 1;
            clocks.join(thread, pos + 1, &gathered);
        }
        for thread in program.thread_ids() {
            clocks.add_reads(&reads, &mut next_read[thread.index()], thread, at[thread.index()]);
        }
        clocks
    }

    fn add_reads(&mut self, reads: &[ReadEdge], next: &mut usize, thread: ThreadIx, pos: Pos) {
        while let Some(read) = reads.get(*next).filter(|read| read.thread == thread && read.pos <= pos) {
            *next += 1;
            self.join(thread, read.pos, &[read.from]);
        }
    }

    /// Raises the clock of a thread from a position on.
    fn join(&mut self, thread: ThreadIx, pos: Pos, needs: &[Need]) {
        let width = self.width;
        let own = thread.index();
        let mut raised: Option<Vec<Pos>> = None;
        for need in needs.iter().filter(|need| need.thread != thread) {
            let current: &[Pos] = match &raised {
                Some(raised) => raised,
                None => {
                    let clocks = &self.threads[own].clocks;
                    &clocks[clocks.len() - width..]
                }
            };
            if current[need.thread.index()] >= need.pos {
                continue;
            }
            let mut new = current.to_vec();
            for (entry, &other) in new.iter_mut().zip(self.at(need.thread, need.pos)) {
                *entry = (*entry).max(other);
            }
            let entry = &mut new[need.thread.index()];
            *entry = (*entry).max(need.pos);
            new[own] = 0;
            raised = Some(new);
        }
        let Some(raised) = raised else { return };
        let changes = &mut self.threads[own];
        if *changes.positions.last().expect("never empty") >= pos {
            let at = changes.clocks.len() - width;
            changes.clocks[at..].copy_from_slice(&raised);
        } else {
            changes.positions.push(pos);
            changes.clocks.extend_from_slice(&raised);
        }
    }
}

/// Where the edges of each thread begin in a sorted list.
fn starts_of<T>(edges: &[T], width: usize, thread: impl Fn(&T) -> ThreadIx) -> Vec<usize> {
    (0..width).map(|index| edges.partition_point(|edge| thread(edge).index() < index)).collect()
}

/// A barrier that exactly its number of threads use: the k-th time of each is the k-th round.
fn barrier_edges(program: &Program) -> Vec<ObservedEdge> {
    let mut edges = Vec::new();
    for barrier in program.barriers.iter().filter(|barrier| barrier.is_regular()) {
        for (thread, enters) in barrier.enters.iter() {
            for (round, &enter) in enters.iter().enumerate() {
                let exit = enter + 1;
                let leaves = program.step(thread, exit).map(|step| step.action);
                if !matches!(leaves, Some(Action::BarrierExit { .. })) {
                    continue;
                }
                for (other, other_enters) in barrier.enters.iter().filter(|(other, _)| *other != thread) {
                    if let Some(&other_enter) = other_enters.get(round) {
                        let from = Need { thread: other, pos: other_enter + 1 };
                        edges.push(ObservedEdge { from, thread, pos: exit });
                    }
                }
            }
        }
    }
    edges
}

/// A wait that cannot be served by the tokens of all other threads needs posts of this one.
fn semaphore_edges(program: &Program) -> Vec<ObservedEdge> {
    let mut edges = Vec::new();
    for semaphore in &program.semaphores {
        let total: usize = semaphore.posts.iter().map(|(_, posts)| posts.len()).sum();
        for (thread, waits) in semaphore.waits.iter() {
            let own_posts = semaphore.posts.of(thread);
            for (number, &wait) in waits.iter().enumerate() {
                let own_before = own_posts.partition_point(|&post| post < wait);
                for (other, posts) in semaphore.posts.iter().filter(|(other, _)| *other != thread) {
                    let others = total - own_posts.len() - posts.len();
                    let have = semaphore.start as usize + own_before + others;
                    let needed = (number + 1).saturating_sub(have);
                    if let Some(&post) = needed.checked_sub(1).and_then(|last| posts.get(last)) {
                        let from = Need { thread: other, pos: post + 1 };
                        edges.push(ObservedEdge { from, thread, pos: wait });
                    }
                }
            }
        }
    }
    edges
}
