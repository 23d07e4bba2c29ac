//! Speed of the detectors on generated traces: `detect_bench EVENTS [NAME...]` prints one JSON line for each.
//!
//! `std:NAME` reads an STD file and `file:NAME` a trace file (written to a temporary folder first), and CPU time counts;
//! `PATH:NAME` reads a file that is there already; `clocks` compares flat clocks with tree clocks;
//! `NAME` runs on events that are generated while the clock stands still. `cargo xtask bench detect` has the bars.

use raddle_detect::clock::Clock;
use raddle_detect::registry::{Settings, create};
use raddle_detect::run::run;
use raddle_detect::tree_clock::TreeClock;
use raddle_trace::convert::write_trace;
use raddle_trace::file::ProgramInfo;
use raddle_trace::generate::{Generator, Rng, Shape};
use raddle_trace::open::OpenTrace;
use raddle_trace::std_format::{Dialect, write_std};
use raddle_trace::{Event, EventSource, MemoryTrace, Tables, ThreadIx, TraceError};
use std::time::Instant;

/// Counts the time spent outside of the generator: batches are made while the clock stands still.
struct Timed<S> {
    source: S,
    spent: std::time::Duration,
}

impl<S: EventSource> EventSource for Timed<S> {
    fn next_batch(&mut self, batch: &mut Vec<Event>) -> Result<(), TraceError> {
        let start = Instant::now();
        let result = self.source.next_batch(batch);
        self.spent += start.elapsed();
        result
    }

    fn tables(&self) -> &Tables {
        self.source.tables()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let events: u64 = arguments.next().unwrap_or("2000000".into()).parse()?;
    let mut names: Vec<String> = arguments.collect();
    if names.is_empty() {
        names = ["std:fasttrack", "file:fasttrack", "file:wcp", "file:syncp", "file:spd"]
            .map(String::from)
            .to_vec();
    }
    let mut shape = Shape::bench(events);
    if std::env::var_os("WILD").is_some() {
        // No discipline at all: every variable is accessed by everybody under any lock.
        shape = Shape { guarded_percent: 0, private_percent: 0, ..shape };
    }
    let folder = std::env::temp_dir();
    for name in &names {
        if name == "clocks" {
            for threads in [8, 32, 128, 512] {
                clocks(threads, events);
            }
            continue;
        }
        let (from, detector) = name.rsplit_once(':').unwrap_or(("memory", name));
        let mut detectors = vec![create(detector, &Settings::default()).ok_or("no such detector")?];
        let (seconds, outcome) = if from == "std" || from == "file" {
            let path = folder.join(format!("raddle-bench-{}.{from}", std::process::id()));
            if from == "std" {
                let mut out = std::io::BufWriter::new(std::fs::File::create(&path)?);
                write_std(&mut Generator::new(shape.clone(), 1), &mut out, Dialect::Strict)?;
            } else {
                write_trace(&mut Generator::new(shape.clone(), 1), &path, ProgramInfo::default())?;
            }
            let start = cpu_seconds();
            let outcome = run(&mut OpenTrace::open(&path)?, &mut detectors, &mut |_, _| true)?;
            let seconds = cpu_seconds() - start;
            std::fs::remove_file(&path)?;
            (seconds, outcome)
        } else if from != "memory" {
            let start = cpu_seconds();
            let outcome = run(&mut OpenTrace::open(from.as_ref())?, &mut detectors, &mut |_, _| true)?;
            (cpu_seconds() - start, outcome)
        } else if events <= 4_000_000 {
            let trace = MemoryTrace::read(&mut Generator::new(shape.clone(), 1))?;
            let start = Instant::now();
            let outcome = run(&mut trace.source(), &mut detectors, &mut |_, _| true)?;
            (start.elapsed().as_secs_f64(), outcome)
        } else {
            let mut source = Timed { source: Generator::new(shape.clone(), 1), spent: Default::default() };
            let start = Instant::now();
            let outcome = run(&mut source, &mut detectors, &mut |_, _| true)?;
            ((start.elapsed() - source.spent).as_secs_f64(), outcome)
        };
        let peak = peak_memory_kib();
        println!(
            "{{\"detector\": \"{name}\", \"events\": {}, \"seconds\": {seconds:.3}, \"events_per_second\": {:.0}, \
             \"reports\": {}, \"peak_kib\": {peak}}}",
            outcome.events,
            outcome.events as f64 / seconds,
            outcome.reports.len()
        );
    }
    Ok(())
}

/// Flat clocks against tree clocks: threads that acquire and release one of 16 locks at random, `steps` times in all.
fn clocks(threads: u32, steps: u64) {
    const LOCKS: u32 = 16;
    let moves = || {
        let mut rng = Rng::new(1);
        (0..steps).map(move |_| (rng.below(threads) as usize, rng.below(LOCKS) as usize))
    };
    let mut flat = vec![Clock::default(); threads as usize];
    let mut locks = vec![Clock::default(); LOCKS as usize];
    let start = cpu_seconds();
    for (thread, lock) in moves() {
        flat[thread].join(&locks[lock]);
        locks[lock].copy_from(&flat[thread]);
        flat[thread].tick(ThreadIx(thread as u32));
    }
    let flat_seconds = cpu_seconds() - start;
    let mut tree: Vec<TreeClock> = (0..threads).map(|thread| TreeClock::of(ThreadIx(thread))).collect();
    tree.iter_mut().for_each(TreeClock::tick);
    let mut locks = vec![TreeClock::default(); LOCKS as usize];
    let mut owners = vec![usize::MAX; LOCKS as usize];
    let start = cpu_seconds();
    for (thread, lock) in moves() {
        if owners[lock] != thread {
            tree[thread].join(&locks[lock]);
        }
        owners[lock] = thread;
        locks[lock].copy_from_later(&tree[thread]);
        tree[thread].tick();
    }
    let tree_seconds = cpu_seconds() - start;
    let nanos = |seconds: f64| seconds / steps as f64 * 1e9;
    println!(
        "{{\"clocks\": {threads}, \"flat_ns\": {:.0}, \"tree_ns\": {:.0}}}",
        nanos(flat_seconds),
        nanos(tree_seconds)
    );
}

/// CPU time of all threads of this process, in steps of 10 ms: other load on the machine does not count.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0)
}
