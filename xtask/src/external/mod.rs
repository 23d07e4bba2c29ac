//! Real programs: Debian source packages, built with `raddle cc` and `raddle c++`, run natively and recorded on a real workload, and
//! compared byte for byte. Opt-in, because it downloads sources and takes its time.
//!
//! Sources come from wherever this machine's own packages come from ([`source`]). Each program is one entry of
//! [`PROGRAMS`]: how it is configured and built, and a workload that returns bytes. Native and recorded bytes must be equal.

mod demo;
mod source;
pub mod workload;

use crate::project;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Take the Debian source packages, build them with raddle, and compare native and recorded runs.
#[derive(clap::Args)]
pub struct Args {
    /// Only these (default: pbzip2, memcached, sqlite3, x264).
    programs: Vec<String>,
    /// The compiler behind raddle and for the native build (default: as `raddle cc` chooses).
    #[arg(long, value_name = "COMPILER")]
    compiler: Option<String>,
    /// Instead: record demos of them under `queue` and `random`, and replay each so many times.
    #[arg(long, value_name = "N", conflicts_with = "hunt")]
    demo: Option<u32>,
    /// Hunt in the programs too: their findings are kept beside the builds, and told.
    #[arg(long)]
    hunt: bool,
    /// Run the programs under `raddle run` too: output is compared, and what is reported is kept beside the builds, and told.
    #[arg(long)]
    detect: bool,
}

/// How to run a program: the words in front of it (none, or `raddle record ... --`).
pub(crate) type Prefix<'a> = &'a [PathBuf];

type Workload = fn(program: &Path, prefix: Prefix<'_>, scratch: &Path) -> anyhow::Result<Vec<u8>>;

struct Program {
    name: &'static str,
    /// Debian packages that its build needs.
    needs: &'static [&'static str],
    /// Shell commands run in the source folder with CC and CXX set.
    build: &'static str,
    binary: &'static str,
    workload: Workload,
    demo: Option<demo::Plan>,
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "pbzip2",
        needs: &["libbz2-dev"],
        build: "make CXX=\"$CXX\" CXXFLAGS='-O2 -g -std=gnu++98 -D_LARGEFILE64_SOURCE -D_FILE_OFFSET_BITS=64 -pthread -D_POSIX_PTHREAD_SEMANTICS -DUSE_STACKSIZE_CUSTOMIZATION' pbzip2",
        binary: "pbzip2",
        workload: workload::pbzip2,
        demo: Some(demo::Plan {
            build: ":",
            binary: "pbzip2",
            options: &[],
            workload: workload::pbzip2_large,
        }),
    },
    Program {
        name: "memcached",
        needs: &["libevent-dev"],
        build: "./configure -q --disable-docs && make -s memcached",
        binary: "memcached",
        workload: workload::memcached,
        demo: Some(demo::Plan {
            build: ":",
            binary: "memcached",
            options: &[],
            workload: workload::memcached,
        }),
    },
    Program {
        name: "sqlite3",
        needs: &["tcl"],
        build: "./configure -q --disable-tcl --disable-readline --disable-shared CFLAGS='-O2 -g -DSQLITE_MAX_WORKER_THREADS=8' && make -s sqlite3",
        binary: "sqlite3",
        workload: workload::sqlite3,
        demo: Some(demo::Plan {
            build: "$CC -O2 -g -pthread -DHAVE_USLEEP=1 -I. test/threadtest5.c sqlite3.c -o threadtest5 -ldl -lm",
            binary: "threadtest5",
            options: &["--stable-memory"],
            workload: workload::sqlite3_threads,
        }),
    },
    Program {
        name: "x264",
        needs: &[],
        build: "./configure --disable-asm --disable-opencl --disable-lavf --disable-swscale --disable-gpac --disable-lsmash && make -s x264",
        binary: "x264",
        workload: workload::x264,
        demo: None,
    },
];

pub fn run(args: &Args) -> anyhow::Result<()> {
    let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
    if let Some(unknown) = args.programs.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("no external program {unknown:?}; there are: {}", names.join(", "));
    }
    let raddle = project::release_raddle()?;
    let folder = project::target().join("external");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let compiler =
        args.compiler.clone().or_else(|| project::newest("clang").map(|path| path.display().to_string()));
    let compiler = compiler.unwrap_or_else(|| "gcc".into());
    let mut failed = Vec::new();
    for program in PROGRAMS {
        if !args.programs.is_empty() && !args.programs.iter().any(|name| name == program.name) {
            continue;
        }
        println!("{}: building", program.name);
        if let Some(replays) = args.demo {
            if let Err(error) = demo::run(program, &raddle, &folder, replays) {
                println!("{}: FAILED: {error:#}", program.name);
                failed.push(program.name);
            }
            continue;
        }
        let checked = check(program, &raddle, &compiler, &folder);
        let further = |expected: Vec<u8>| {
            if args.detect {
                detect(program, &raddle, &folder, &expected)?;
            }
            if args.hunt {
                hunt(program, &raddle, &folder)?;
            }
            Ok(expected.len())
        };
        match checked.and_then(further) {
            Ok(bytes) => println!("{}: native and recorded output are equal ({bytes} bytes)", program.name),
            Err(error) => {
                println!("{}: FAILED: {error:#}", program.name);
                failed.push(program.name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("these do not pass: {}", failed.join(", "));
    }
    Ok(())
}

fn check(program: &Program, raddle: &Path, compiler: &str, folder: &Path) -> anyhow::Result<Vec<u8>> {
    source::install(program.needs)?;
    let sources = source::fetch(program.name, folder)?;
    let native = build(program.build, program, &sources, folder, "native", compiler, &cxx_of(compiler))?;
    let (cc, cxx) = (format!("{} cc", raddle.display()), format!("{} c++", raddle.display()));
    let recorded = build(program.build, program, &sources, folder, "recorded", &cc, &cxx)?;
    let scratch = tempfile::tempdir()?;
    let expected = (program.workload)(&native, &[], scratch.path()).context("native run")?;
    let trace = folder.join(format!("{}.trace", program.name));
    let prefix: Vec<PathBuf> = vec![raddle.to_owned(), "record".into(), "-o".into(), trace, "--".into()];
    let found = (program.workload)(&recorded, &prefix, scratch.path()).context("recorded run")?;
    if found != expected {
        bail!(
            "the recorded run's output differs from the native one's ({} and {} bytes)",
            found.len(),
            expected.len()
        );
    }
    Ok(found)
}

/// A workload may run the program several times: each run leaves a file in the folder `$0`. Findings are no failure.
const EACH_RUN: &str = r#"
n=0; while [ -e "$0/$n.json" ]; do n=$((n+1)); done
raddle=$1; shift
RADDLE_OPTIONS=exitcode=0 exec "$raddle" run --quiet --output "$0/$n.json" -- "$@""#;

/// Detects while the program does its work. Its output must be the native one.
fn detect(program: &Program, raddle: &Path, folder: &Path, expected: &[u8]) -> anyhow::Result<()> {
    let built = folder.join(format!("{}-recorded", program.name)).join(program.binary);
    let kept = folder.join(format!("{}-detected", program.name));
    let _ = std::fs::remove_dir_all(&kept);
    std::fs::create_dir_all(&kept)?;
    let prefix: Vec<PathBuf> =
        vec!["sh".into(), "-c".into(), EACH_RUN.into(), kept.clone(), raddle.to_owned()];
    let scratch = tempfile::tempdir()?;
    let found = (program.workload)(&built, &prefix, scratch.path()).context("run under detection")?;
    if found != expected {
        bail!("the output under detection differs from the native one's");
    }
    let mut reports = Vec::new();
    for entry in std::fs::read_dir(&kept)? {
        reports.extend(raddle_findings::FindingsFile::read(&entry?.path())?.findings);
    }
    println!("{}: {} reports under detection, see {}", program.name, reports.len(), kept.display());
    for report in &reports {
        println!("  {} {}", report.grade().name(), report.kind.name());
        for party in &report.parties {
            let frame = party.stack.first();
            let place = frame.and_then(|frame| Some(format!("{}:{}", frame.file.as_ref()?, frame.line?)));
            println!("    thread {} at {}", party.thread.path, place.as_deref().unwrap_or("?"));
        }
    }
    Ok(())
}

/// Hunts while the program does its work. Its output is not compared: it is that of the program and of Raddle.
fn hunt(program: &Program, raddle: &Path, folder: &Path) -> anyhow::Result<()> {
    let built = folder.join(format!("{}-recorded", program.name)).join(program.binary);
    let kept = folder.join(format!("{}-findings", program.name));
    let words = ["hunt", "--quiet", "--timeout", "10", "--keep"];
    let mut prefix: Vec<PathBuf> = vec![raddle.to_owned()];
    prefix.extend(words.map(PathBuf::from));
    prefix.extend([
        kept.clone(),
        "--output".into(),
        folder.join(format!("{}.json", program.name)),
        "--".into(),
    ]);
    let scratch = tempfile::tempdir()?;
    let started = std::time::Instant::now();
    // A hunt that finds something ends with status 1, and what it prints is not what the workload expects.
    let _ = (program.workload)(&built, &prefix, scratch.path());
    let seconds = started.elapsed().as_secs();
    let (stored, _) = raddle_findings::Store::at(&kept)
        .list()
        .with_context(|| format!("the hunt in {} left no findings", program.name))?;
    let count = |grade| stored.iter().filter(|evidence| evidence.finding.grade() == grade).count();
    println!(
        "{}: hunted for {seconds} s, at most {} MiB in one process: {} confirmed, {} predicted, see {}",
        program.name,
        usage_of_children() >> 10,
        count(raddle_findings::Grade::Confirmed),
        count(raddle_findings::Grade::Predicted),
        kept.display()
    );
    Ok(())
}

/// The largest process that was waited for so far, in KiB.
fn usage_of_children() -> u64 {
    // SAFETY: `rusage` is plain numbers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live variable of the right type.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
    u64::try_from(usage.ru_maxrss).unwrap_or(0)
}

fn cxx_of(compiler: &str) -> String {
    compiler.replace("clang", "clang++").replace("gcc", "g++")
}

/// Builds in a copy of the sources, once; a finished build is kept.
fn build(
    commands: &str,
    program: &Program,
    sources: &Path,
    folder: &Path,
    kind: &str,
    cc: &str,
    cxx: &str,
) -> anyhow::Result<PathBuf> {
    let place = folder.join(format!("{}-{kind}", program.name));
    let _ = std::fs::remove_dir_all(&place);
    project::run(Command::new("cp").arg("-a").arg(sources).arg(&place))?;
    let log = std::fs::File::create(folder.join(format!("{}-{kind}.log", program.name)))?;
    project::run(
        Command::new("sh")
            .args(["-e", "-c", commands])
            .current_dir(&place)
            .env("CC", cc)
            .env("CXX", cxx)
            .env("MAKEFLAGS", format!("-j{}", std::thread::available_parallelism().map_or(1, usize::from)))
            .stdout(log.try_clone()?)
            .stderr(log),
    )
    .with_context(|| format!("see {}-{kind}.log in {}", program.name, folder.display()))?;
    Ok(place.join(program.binary))
}
