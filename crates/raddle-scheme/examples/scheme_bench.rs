//! CPU time of the default analysis: `scheme_bench FILE.scm...` prints one line for each, and the most memory that all of them needed.
//!
//! `cargo xtask bench scheme` has the bars; this is for profilers, and for programs that are not in the corpus.

use raddle_scheme::analyze::{Options, analyze};
use raddle_scheme::limits::Clock;
use raddle_scheme::{Source, parse};

/// Seconds of processor time of this process, and its largest size so far in KiB.
fn used() -> Result<(f64, String), Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    // Fields 14 and 15 of the whole line, in ticks of 10 ms.
    let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    Ok((ticks / 100.0, peak.trim().to_owned()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let program = parse(Source::new(path.as_str(), std::fs::read_to_string(&path)?))
            .map_err(|errors| format!("{path}: {errors:?}"))?;
        let before = used()?.0;
        let report = analyze(&program, &Options::default(), &Clock::unlimited(), &mut |_| {});
        let (after, peak) = used()?;
        println!("{path}: {:.2} s, {:?}, peak so far {peak}", after - before, report.verdict);
    }
    Ok(())
}
