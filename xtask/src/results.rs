//! `cargo xtask results`: makes `docs/results.md` from the results that `cargo xtask bench --save` kept.

use crate::bench::Outcome;
use crate::project;
use anyhow::{Context, bail};

const HEAD: &str = "# Results\n\nMade by `cargo xtask results` from `benches/results/*.json`; do not edit. Each file there is one run of \
`cargo xtask bench GROUP --save`. Times are CPU times, the minimum of several interleaved rounds; ratios are to the first subject of a case.\n\n";

pub fn run() -> anyhow::Result<()> {
    let folder = project::root().join("benches/results");
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
    let page = project::root().join("docs/results.md");
    std::fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))?;
    println!("wrote {}", page.display());
    Ok(())
}
