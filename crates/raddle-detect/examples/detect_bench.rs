//! Speed of the detectors on generated traces: `detect_bench EVENTS [NAME...]` prints one JSON line for each.
//!
//! `std:NAME` reads the trace from an STD file (written to a temporary folder first), `NAME` runs on events that are
//! generated before the clock starts, in batches that fit the cache.

use raddle_detect::registry::{Settings, create};
use raddle_detect::run::run;
use raddle_trace::generate::{Generator, Shape};
use raddle_trace::std_format::{Dialect, StdReader, write_std};
use raddle_trace::{Event, EventSource, MemoryTrace, Tables, TraceError};
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
        names = ["std:fasttrack", "fasttrack", "wcp", "syncp", "spd"].map(String::from).to_vec();
    }
    let mut shape = Shape::bench(events);
    if std::env::var_os("WILD").is_some() {
        // No discipline at all: every variable is accessed by everybody under any lock.
        shape = Shape { guarded_percent: 0, private_percent: 0, ..shape };
    }
    let folder = std::env::temp_dir();
    for name in &names {
        let (std_file, detector) = match name.strip_prefix("std:") {
            Some(rest) => (true, rest),
            None => (false, name.as_str()),
        };
        let mut detectors = vec![create(detector, &Settings::default()).ok_or("no such detector")?];
        let memory = name.starts_with("mem:");
        assert!(!memory);
        let (seconds, outcome) = if std_file {
            let path = folder.join(format!("raddle-bench-{}.std", std::process::id()));
            let mut out = std::io::BufWriter::new(std::fs::File::create(&path)?);
            write_std(&mut Generator::new(shape.clone(), 1), &mut out, Dialect::Strict)?;
            drop(out);
            let file = std::fs::File::open(&path)?;
            let start = Instant::now();
            let outcome = run(&mut StdReader::new(file, "bench", None), &mut detectors, &mut |_, _| true)?;
            let seconds = start.elapsed().as_secs_f64();
            std::fs::remove_file(&path)?;
            (seconds, outcome)
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

fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0)
}
