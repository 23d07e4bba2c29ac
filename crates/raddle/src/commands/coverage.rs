//! `raddle coverage`: which interleavings a set of runs has shown.

use super::detect::progress_bar;
use super::{Ctx, Exit};
use anyhow::Context;
use raddle_detect::Feed;
use raddle_detect::coverage::{COLUMNS, Coverage, Saturation};
use raddle_trace::open::OpenTrace;
use raddle_trace::std_format::InputDialect;
use raddle_trace::{EventSource, Tables};
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
    /// Take STD text as this dialect: auto, rapid, sunhang, rff-c, rv-predict.
    #[arg(long, value_name = "NAME", default_value_t)]
    dialect: InputDialect,
    /// Print the counts as JSON.
    #[arg(long)]
    json: bool,
}

/// A module: its path and what its linker calls this build of it.
type Built = (String, Vec<u8>);

fn built(tables: &Tables) -> Vec<Built> {
    tables.modules.iter().map(|module| (module.path.clone(), module.build_id.clone())).collect()
}

/// Do two traces come from different programs? The first module is the program; of the others, only those that both loaded
/// matter, since what is loaded may depend on the run. Programs that their linker has not named are told apart by their paths.
fn differ(a: &[Built], b: &[Built]) -> bool {
    let programs = (a.first(), b.first());
    let other_program = match programs {
        (Some((path, a)), Some((other, b))) => a != b || a.is_empty() && path != other,
        (None, None) => false,
        _ => true,
    };
    other_program || a.iter().any(|(path, build)| b.iter().any(|(other, id)| path == other && build != id))
}

pub fn run(args: Args, ctx: &Ctx) -> anyhow::Result<Exit> {
    let mut saturation = Saturation::default();
    let mut first: Option<(&PathBuf, Vec<Built>)> = None;
    for path in &args.traces {
        let mut source = OpenTrace::open_as(path, args.dialect)?;
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
        if !ctx.quiet {
            for remark in source.remarks() {
                eprintln!("raddle: note: {}: {remark}", path.display());
            }
        }
        let built = built(source.tables());
        match &first {
            None => first = Some((path, built)),
            Some((reference, wanted)) if differ(wanted, &built) => eprintln!(
                "raddle: warning: {} and {} are not of the same build of one program; places that have the same address \
                 there are counted as the same",
                reference.display(),
                path.display()
            ),
            Some(_) => {}
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_different_programs_differ() {
        let module = |path: &str, id: u8| (path.to_owned(), vec![id]);
        let run = [module("a", 1), module("libc", 2)];
        assert!(!differ(&run, &run));
        assert!(!differ(&run, &[module("a", 1)]), "a library may be loaded later");
        assert!(!differ(&run, &[module("moved/a", 1), module("libc", 2)]), "the same build elsewhere");
        assert!(differ(&run, &[module("a", 9), module("libc", 2)]), "another build");
        assert!(differ(&run, &[module("a", 1), module("libc", 9)]), "another library");
        let nameless = |path: &str| [(path.to_owned(), Vec::new())];
        assert!(differ(&nameless("a"), &nameless("b")), "neither has a name but its path");
        assert!(!differ(&nameless("a"), &nameless("a")));
        assert!(differ(&run, &[]), "a recorded run and a foreign one");
        assert!(!differ(&[], &[]), "foreign traces have no modules");
    }
}
