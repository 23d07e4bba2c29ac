//! `cargo xtask results`: makes `docs/results.md` from the results that `cargo xtask bench --save` kept, and from the table of
//! strategies (`cargo xtask results --strategies LIMIT`).

use crate::bench::Outcome;
use crate::{project, strategies};
use anyhow::{Context, bail};

const HEAD: &str = "# Results\n\nMade by `cargo xtask results` from `benches/results/*.json`; do not edit. Each file there is one run of \
`cargo xtask bench GROUP --save`. Times are CPU times, the minimum of several interleaved rounds; ratios are to the first subject of a case.\n\n";

/// What is made.
#[derive(clap::Args)]
pub struct Args {
    /// Try all strategies on the programs again, with at most so many schedules a trial (this takes a while), and keep the
    /// table.
    #[arg(long, value_name = "LIMIT")]
    strategies: Option<u64>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = project::root().join("benches/results");
    let table = folder.join("strategies.md");
    if let Some(limit) = args.strategies {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(&table, strategies::table(limit)?)
            .with_context(|| format!("cannot write {}", table.display()))?;
    }
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .with_context(|| {
            format!("no results in {}; make some with `cargo xtask bench --save`", folder.display())
        })?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    paths.sort();
    if paths.is_empty() {
        bail!("no results in {}; make some with `cargo xtask bench --save`", folder.display());
    }
    let mut text = HEAD.to_owned();
    for path in paths {
        text.push_str(&Outcome::read(&path)?.markdown());
        text.push('\n');
    }
    if table.exists() {
        text.push_str(&std::fs::read_to_string(&table)?);
    }
    let page = project::root().join("docs/results.md");
    std::fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))?;
    println!("wrote {}", page.display());
    Ok(())
}
