//! Measures the engine on models of any size and prints a line of JSON for each.
//!
//! ```text
//! csp_bench philosophers 12 [--left-handed] | scheduler 20 | mutual-exclusion 4 | circus-d241 15 | circus-d241pre 8
//!   [--workers N] [--memory-limit BYTES] [--por] [--repeat N]
//! ```
//!
//! CPU seconds are those of the search alone, of all threads; wall seconds beside them give the parallel speed-up. The
//! models of Circus are the corpus' script at another size; reading and evaluating it counts, too, as in the seconds that
//! are published for FDR.

use std::process::ExitCode;
use std::time::Instant;

use raddle_csp::assertion::PartialOrder;
use raddle_csp::bench_models::{BenchModel, mutual_exclusion, philosophers, scheduler};
use raddle_csp::engine::{CheckOptions, Outcome, check};
use raddle_csp::lang::session::Script;

const CIRCUS: &str = include_str!("../../../corpus/csp/circus-alarm.csp");

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("csp_bench: {message}");
            eprintln!(
                "usage: csp_bench philosophers|scheduler|mutual-exclusion|circus-d241|circus-d241pre N [--left-handed] [--workers N] [--memory-limit BYTES] [--por] [--repeat N]"
            );
            ExitCode::from(2)
        }
    }
}

fn run(args: &[String]) -> Result<(), String> {
    let [kind, size, rest @ ..] = args else { return Err("which model, and how large?".into()) };
    let size: usize = size.parse().map_err(|_| format!("{size} is not a number"))?;
    let mut options = CheckOptions { every_state: true, ..CheckOptions::default() };
    let (mut left_handed, mut por, mut repeat) = (false, false, 1);
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        let mut number = || -> Result<u64, String> {
            let text = rest.next().ok_or(format!("{flag} needs a number"))?;
            text.parse().map_err(|_| format!("{text} is not a number"))
        };
        match flag.as_str() {
            "--left-handed" => left_handed = true,
            "--por" => por = true,
            "--workers" => options.workers = number()? as usize,
            "--memory-limit" => options.memory_limit_bytes = Some(number()?),
            "--repeat" => repeat = number()?,
            other => return Err(format!("unknown option {other}")),
        }
    }
    for _ in 0..repeat {
        let mut subject = match kind.as_str() {
            "philosophers" => Subject::Built(Box::new(philosophers(size, left_handed))),
            "scheduler" => Subject::Built(Box::new(scheduler(size))),
            "mutual-exclusion" => Subject::Built(Box::new(mutual_exclusion(size))),
            "circus-d241" => Subject::Circus { process: "D241", size },
            "circus-d241pre" => Subject::Circus { process: "D241Pre", size },
            other => return Err(format!("unknown model {other}")),
        };
        if let (Subject::Built(model), true) = (&mut subject, por) {
            model.assertion.partial_order = PartialOrder::Precise;
        }
        let cpu = cpu_seconds();
        let wall = Instant::now();
        let outcome = subject.check(&options)?;
        let cpu = cpu_seconds() - cpu;
        let s = &outcome.statistics;
        let bytes = s.memory_bytes_max as f64 / s.pairs as f64;
        println!(
            "{}",
            serde_json::json!({
                "model": subject.name(),
                "holds": outcome.holds,
                "workers": options.workers,
                "states": s.pairs,
                "pairs": s.pairs,
                "transitions": s.transitions,
                "plies": s.plies,
                "state_bits": s.state_bits,
                "state_bytes": s.state_bytes,
                "bytes_per_state": (bytes * 100.0).round() / 100.0,
                "spilled_bytes": s.spilled_bytes,
                "cpu_seconds": cpu,
                "wall_seconds": wall.elapsed().as_secs_f64(),
                "explore_seconds": s.explore_time.as_secs_f64(),
                "pairs_per_cpu_second": (s.pairs as f64 / cpu).round(),
            })
        );
    }
    Ok(())
}

/// What is measured.
enum Subject {
    Built(Box<BenchModel>),
    /// Deadlock freedom of a process of the corpus' script, for so many seconds in a minute.
    Circus {
        process: &'static str,
        size: usize,
    },
}

impl Subject {
    fn name(&self) -> &str {
        match self {
            Subject::Built(model) => &model.name,
            Subject::Circus { process, .. } => process,
        }
    }

    fn check(&mut self, options: &CheckOptions) -> Result<Outcome, String> {
        match self {
            Subject::Built(model) => check(&mut model.arena, &mut model.equations, &model.assertion, options)
                .map_err(|e| e.to_string()),
            Subject::Circus { process, size } => {
                let text = CIRCUS.replace("\nN = 6\n", &format!("\nN = {size}\n"));
                let mut script = Script::from_text("circus.csp", text)
                    .map_err(|refused| format!("{:?}", refused.diagnostics))?;
                let wanted = format!("{process} :[deadlock free [FD]]");
                let at = script.assertions().position(|a| a.text == wanted).ok_or("no such assertion")?;
                script.check(at, options).map_err(|diagnostic| diagnostic.message)
            }
        }
    }
}

/// User and system time of this process so far, in seconds: fields 14 and 15 of `/proc/self/stat`, in ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
