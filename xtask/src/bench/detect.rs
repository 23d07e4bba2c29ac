//! Detectors: events a second, end to end from a file, on generated traces of 2 and 20 million events (8 threads, 16
//! locks, 16,000 variables).
//!
//! A subject reads the file, runs one detector and collects its reports, as `raddle detect` does. Speeds are by CPU time
//! of the whole process, so that a reader which decodes on several threads gains nothing. Peak memory is that of this
//! process over all subjects; nothing holds a trace in memory.

use super::{Bench, Limit, Outcome, Subject};
use anyhow::Context;
use raddle_detect::registry::{Settings, create};
use raddle_detect::run::run as run_detectors;
use raddle_trace::convert::write_trace;
use raddle_trace::file::ProgramInfo;
use raddle_trace::generate::{Generator, Shape};
use raddle_trace::open::OpenTrace;
use raddle_trace::std_format::{Dialect, write_std};
use std::io::Write;
use std::path::Path;

/// Detector, whether it reads STD text, and the million events a second that it must do.
const SUBJECTS: &[(&str, bool, Option<f64>)] = &[
    ("fasttrack", true, Some(5.0)),
    ("fasttrack", false, Some(20.0)),
    ("wcp", false, Some(1.0)),
    ("syncp", false, Some(0.5)),
    ("spd", false, Some(0.5)),
    ("djit", false, None),
    ("shb", false, None),
    ("eraser", false, None),
    ("aerodrome", false, None),
];

pub fn run(bench: &Bench) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::new("detect");
    let folder = tempfile::tempdir()?;
    for (million, rounds) in [(2, bench.rounds), (20, 1)] {
        let case = format!("{million} million events");
        let (text, binary) = (folder.path().join("bench.std"), folder.path().join("bench.trace"));
        let shape = Shape::bench(million * 1_000_000);
        let mut out = std::io::BufWriter::new(std::fs::File::create(&text)?);
        write_std(&mut Generator::new(shape.clone(), 1), &mut out, Dialect::Strict)?;
        out.flush()?;
        write_trace(&mut Generator::new(shape, 1), &binary, ProgramInfo::default())?;
        let mut events = vec![0; SUBJECTS.len()];
        let subjects = SUBJECTS.iter().zip(&mut events).map(|(&(name, std_text, _), events)| {
            let path = if std_text { &text } else { &binary };
            Subject::function(&subject_name(name, std_text), move || {
                *events = detect(path, name).expect("the trace can be read");
            })
        });
        let rows = Bench { rounds }.measure(&case, subjects.collect())?;
        for ((&(name, std_text, bar), row), events) in SUBJECTS.iter().zip(&rows).zip(&events) {
            let what = format!("{case}: {}, million a second", subject_name(name, std_text));
            let speed = *events as f64 / row.cpu_s / 1e6;
            match bar {
                Some(least) => outcome.bar(&what, speed, Limit::AtLeast(least)),
                None => outcome.fact(&what, speed),
            }
        }
        outcome.rows.extend(rows);
        outcome.bar(&format!("{case}: peak memory, GB"), peak_gb()?, Limit::AtMost(2.0));
    }
    outcome.note(
        "For orientation: RAPID, in Java, does 0.29 million events a second for happens-before, and did not finish \
         sync-preserving races on 200,000 such events in 150 s.",
    );
    Ok(outcome)
}

fn subject_name(detector: &str, std_text: bool) -> String {
    format!("{detector} from {}", if std_text { "STD text" } else { "a trace" })
}

fn detect(path: &Path, name: &str) -> anyhow::Result<u64> {
    let mut detectors = [create(name, &Settings::default()).context("no such detector")?];
    Ok(run_detectors(&mut OpenTrace::open(path)?, &mut detectors, &mut |_, _| true)?.events)
}

fn peak_gb() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1024.0 / 1e9)
}
