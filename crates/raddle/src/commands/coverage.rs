//! `raddle coverage`: which interleavings a set of runs has shown.

use super::detect::progress_bar;
use super::{Ctx, Exit};
use anyhow::Context;
use raddle_detect::Feed;
use raddle_detect::coverage::{COLUMNS, Coverage, Saturation};
use raddle_trace::EventSource;
use raddle_trace::open::OpenTrace;
use std::path::PathBuf;

/// Counts what a set of runs of one program has covered: pairs of places that synchronise, and Maple's five kinds of
/// access patterns. The plot shows whether more runs still bring anything new.
///
/// Examples:
///   raddle coverage run1.trace run2.trace run3.trace
///   raddle coverage --svg saturation.svg runs/*.trace
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Traces of runs, in the order in which they were made.
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// Write the saturation plot to this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the counts as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut saturation = Saturation::default();
    for path in &args.traces {
        let mut source = OpenTrace::open(path)?;
        let bar = progress_bar(ctx, &source);
        let (mut feed, mut coverage, mut batch) = (Feed::new(), Coverage::new(), Vec::new());
        loop {
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            for event in &batch {
                coverage.step(&feed.step(event));
            }
            if let Some((done, _)) = source.progress() {
                bar.set_position(done);
            }
        }
        bar.finish_and_clear();
        saturation.add(coverage.covered(source.tables()));
    }
    if let Some(path) = &args.svg {
        std::fs::write(path, saturation.svg()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        let rows: Vec<serde_json::Value> = saturation
            .runs
            .iter()
            .zip(&args.traces)
            .map(|(counts, path)| {
                let mut row = serde_json::Map::new();
                row.insert("trace".into(), path.display().to_string().into());
                for (name, count) in COLUMNS.iter().zip(counts) {
                    row.insert((*name).into(), (*count).into());
                }
                row.into()
            })
            .collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        println!("{:>5}  {}", "runs", COLUMNS.map(|name| format!("{name:>21}")).join(" "));
        for (run, counts) in saturation.runs.iter().enumerate() {
            println!("{:>5}  {}", run + 1, counts.map(|count| format!("{count:>21}")).join(" "));
        }
    }
    Ok(Exit::Clean)
}
