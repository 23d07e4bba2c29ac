//! Demos of real programs: recorded once under each strategy while the program does its work, then given again many times, without
//! its clients. Every replay must take all steps and print the same.

use super::{Program, Workload, build, source};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const STRATEGIES: [&str; 2] = ["queue", "random"];
/// Seconds that one replay may take on a loaded machine.
const TIMEOUT: &str = "300";

/// How a demo of a program is made.
pub struct Plan {
    /// Shell command that follows the program's own build.
    pub build: &'static str,
    pub binary: &'static str,
    /// Options of `raddle record --demo`.
    pub options: &'static [&'static str],
    pub workload: Workload,
}

/// Records and replays; prints what came of it.
pub fn run(program: &Program, raddle: &Path, folder: &Path, replays: u32) -> anyhow::Result<()> {
    let Some(plan) = &program.demo else {
        println!("{}: no demo is made of it", program.name);
        return Ok(());
    };
    source::install(program.needs)?;
    let sources = source::fetch(program.name, folder)?;
    let (cc, cxx) = (format!("{} cc", raddle.display()), format!("{} c++", raddle.display()));
    let with_demo = format!("{} && {}", program.build, plan.build);
    let built = build(&with_demo, program, &sources, folder, "demo", &cc, &cxx)?;
    let binary = built.with_file_name(plan.binary);
    for strategy in STRATEGIES {
        one(program, plan, raddle, folder, &binary, strategy, replays)
            .with_context(|| format!("under {strategy}"))?;
    }
    Ok(())
}

fn one(
    program: &Program,
    plan: &Plan,
    raddle: &Path,
    folder: &Path,
    binary: &Path,
    strategy: &str,
    replays: u32,
) -> anyhow::Result<()> {
    let demo = folder.join(format!("{}-{strategy}.demo", program.name));
    let scratch = tempfile::tempdir()?;
    let mut prefix: Vec<PathBuf> = vec![raddle.to_owned()];
    prefix.extend(["-q", "record", "--demo", "--strategy", strategy].map(PathBuf::from));
    prefix.extend(plan.options.iter().map(PathBuf::from));
    prefix.extend(["-o".into(), demo.clone(), "--".into()]);
    (plan.workload)(binary, &prefix, scratch.path()).context("recording")?;
    let bytes = std::fs::metadata(&demo).with_context(|| format!("no demo {}", demo.display()))?.len();
    let output = Command::new(raddle)
        .args(["-q", "replay", "--json", "--timeout", TIMEOUT, "--repeat", &replays.to_string()])
        .arg(&demo)
        .current_dir(scratch.path())
        .output()
        .context("cannot start raddle replay")?;
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("raddle replay said {}", String::from_utf8_lossy(&output.stderr)))?;
    println!(
        "{} under {strategy}: a demo of {bytes} bytes, the same in {} of {replays} replays",
        program.name, json["same"]
    );
    if json["same"] != replays {
        bail!("a replay differs: {}", json["failure"]);
    }
    Ok(())
}
