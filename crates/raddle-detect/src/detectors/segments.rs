//! `segments`: cycles in the lock graph whose threads can be there at the same time.
//!
//! **Definition** (Bensalem, Havelund, *Dynamic deadlock analysis of multi-threaded programs*, 2005; the survey's §6).
//! A thread's run is cut into *segments* by the forks and joins that it takes part in. Segments are ordered: what a
//! thread did before a fork comes before the child, and a child comes before what follows its join. A cycle of
//! [`super::goodlock`] counts only if no two of its acquisitions are in segments that are ordered.
//!
//! **Complete** for lock cycles of at most [`super::goodlock::THREADS_MAX`] threads that forks and joins do not order,
//! **not sound**: other synchronisation may order them. Grade *suspected*.
//!
//! **Deviations**: the paper labels the edges of the graph with segments and searches paths; here an abstract
//! acquisition carries the clock of its segment, and the cycles of `goodlock` are filtered.
//!
//! **Cost**: constant an event; one abstract acquisition for each segment in which it occurs.

use super::goodlock::{Goodlock, cycle_key, learn_lock, requested, tell};
use crate::clock::Clock;
use crate::detector::{Detector, End};
use crate::lockgraph::{Ask, LockGraph};
use crate::report::{Remark, Report, Reports};
use crate::step::{LockIx, Step, Sync};
use raddle_findings::Kind;
use raddle_trace::{ObjectId, ThreadIx};
use rustc_hash::FxHashMap;

pub const NAME: &str = "segments";

#[derive(Clone, Debug, Default)]
pub struct Segments {
    /// Acquisitions of each segment apart.
    graphs: FxHashMap<(ThreadIx, u32), LockGraph>,
    locks: FxHashMap<ObjectId, LockIx>,
    /// By thread: the number of its segment, and of those of other threads that came before it.
    clocks: Vec<Clock>,
    /// The clocks of segments in which something was acquired.
    segments: FxHashMap<(ThreadIx, u32), Clock>,
}

impl Segments {
    fn clock(&mut self, thread: ThreadIx) -> &mut Clock {
        while self.clocks.len() <= thread.index() {
            let mut clock = Clock::default();
            clock.set(ThreadIx(self.clocks.len() as u32), 1);
            self.clocks.push(clock);
        }
        &mut self.clocks[thread.index()]
    }

    /// What came before one segment comes before another one, and the first thread begins a new one.
    fn pass_on(&mut self, from: ThreadIx, to: ThreadIx) {
        let known = self.clock(from).clone();
        self.clock(from).tick(from);
        let clock = self.clock(to);
        clock.join(&known);
        clock.tick(to);
    }
}

impl Detector for Segments {
    fn step(&mut self, step: &Step<'_>) {
        if step.plain_access().is_some() {
            return;
        }
        learn_lock(&mut self.locks, step);
        let thread = step.thread();
        match step.sync {
            Sync::Fork(child) => self.pass_on(thread, child),
            Sync::Join(child) => self.pass_on(child, thread),
            Sync::None
            | Sync::Acquire { .. }
            | Sync::Release { .. }
            | Sync::Receive(_)
            | Sync::Send(_)
            | Sync::Exchange(_) => {
                if step.held.is_empty() {
                    return;
                }
                let clock = self.clock(thread).clone();
                let segment = (thread, clock.get(thread));
                self.segments.entry(segment).or_insert(clock);
                let graph = self.graphs.entry(segment).or_default();
                graph.step(step, || requested(&self.locks, step));
            }
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Vec<Report> {
        let mut asks: Vec<(Ask, (ThreadIx, u32))> = Vec::new();
        for (&segment, graph) in &self.graphs {
            asks.extend(graph.asks().iter().map(|ask| (ask.clone(), segment)));
        }
        asks.sort_by_key(|(ask, _)| ask.first.position);
        let segment_at: FxHashMap<u64, (ThreadIx, u32)> =
            asks.iter().map(|(ask, segment)| (ask.first.position, *segment)).collect();
        let asks: Vec<Ask> = asks.into_iter().map(|(ask, _)| ask).collect();
        let before = |a: &Ask, b: &Ask| {
            let ((thread, number), later) = (segment_at[&a.first.position], segment_at[&b.first.position]);
            self.segments[&later].get(thread) >= number
        };
        let mut reports = Reports::default();
        let complete = Goodlock::cycles(&asks, |cycle| {
            let ordered = cycle.iter().any(|a| cycle.iter().any(|b| a.thread != b.thread && before(a, b)));
            if !ordered {
                reports.add(cycle_key(cycle), || tell(NAME, Kind::Deadlock, cycle, end.names));
            }
        });
        let mut list = reports.take();
        if !complete && let Some(last) = list.last_mut() {
            last.remarks.push(Remark::CyclesCut);
        }
        list
    }
}
