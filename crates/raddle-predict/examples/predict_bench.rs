//! Times prediction and prints JSON: `cargo run --release -p raddle-predict --example predict_bench [EVENTS]`.
//!
//! The same cases as `cargo xtask bench predict`, without rounds and in a process of its own, so that its peak memory is
//! that of the prediction.

use raddle_predict::bench_traces::{figure_5_17, workers};
use raddle_predict::{Options, predict};
use std::time::Instant;

fn main() {
    let events: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    println!("[");
    for n in [10, 50, 100, 150, 200, 1_000, 10_000, 100_000] {
        let trace = figure_5_17(n);
        let start = Instant::now();
        let prediction = predict(&trace, &Options::default());
        let seconds = start.elapsed().as_secs_f64();
        println!(
            r#"  {{"case": "figure 5.17", "n": {n}, "seconds": {seconds:.6}, "candidates": {}}},"#,
            prediction.candidates.len()
        );
    }
    let trace = workers(events, 1);
    let start = Instant::now();
    let prediction = predict(&trace, &Options::default());
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("").trim().to_owned();
    let kinds: Vec<&str> = prediction.candidates.iter().map(|candidate| candidate.kind.word()).collect();
    println!(
        r#"  {{"case": "workers", "events": {}, "seconds": {seconds:.3}, "peak": "{peak}", "candidates": {kinds:?}, "states": {}}}"#,
        trace.events.len(),
        prediction.stats.states
    );
    println!("]");
    eprintln!("{:?}\n{:?}", prediction.stats, prediction.unexplored);
}
