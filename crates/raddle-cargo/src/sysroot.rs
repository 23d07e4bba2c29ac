//! The instrumented standard library: built once for each toolchain, kept in the cache folder.
//!
//! A sysroot lies in `CACHE/sysroots/KEY`, where KEY depends on the compiler's commit and version, the flags and the replaced files,
//! and on nothing else: another version of the runtime does not build it again. `rustc-build-sysroot` does the building and
//! the installing by rename; a lock file serialises processes that want the same one.

use crate::std_locks;
use crate::toolchain::Toolchain;
use anyhow::{Context, ensure};
use rustc_build_sysroot::{BuildMode, SysrootBuilder, SysrootConfig};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::fs;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which standard library programs get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Std {
    /// Instrumented, with locks of the C library.
    #[default]
    Locks,
    /// Instrumented, otherwise as it is.
    Plain,
}

/// Flags that mark memory accesses, for the standard library and for programs alike.
pub const INSTRUMENTED: [&str; 4] = [
    "-Zsanitizer=thread",
    "-Zexternal-clangrt",
    // `x += 1` is a read, then a write: the lost update needs both.
    "-Cllvm-args=-tsan-instrument-read-before-write=1",
    "-Cllvm-args=-tsan-distinguish-volatile=1",
];

/// Where the sources of the sysroot are said to lie: the same place on every machine, recognised as the library's.
const SOURCES: &str = "/rustc/raddle/library";

/// The folder for `--sysroot`, built first if it is not there. `announce` is called before a build.
pub fn build(
    toolchain: &Toolchain,
    library: &Path,
    std: Std,
    cache: &Path,
    announce: &dyn Fn(),
) -> anyhow::Result<PathBuf> {
    let folder = cache.join("sysroots").join(key(toolchain, std));
    let done = folder.join("complete");
    if done.exists() {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let lock = fs::File::create(folder.join("lock"))?;
    lock.lock().with_context(|| format!("cannot lock {}", folder.display()))?;
    if done.exists() {
        return Ok(folder);
    }
    announce();
    let sources = tempfile::Builder::new().prefix(".sources-").tempdir_in(&folder)?;
    let copy = sources.path().join("library");
    copy_tree(library, &copy)?;
    if let Some(parent) =
        library.parent().map(|parent| parent.join("Cargo.lock")).filter(|lock| lock.exists())
    {
        fs::copy(parent, sources.path().join("Cargo.lock"))?;
    }
    if std == Std::Locks {
        std_locks::apply(&copy)?;
    }
    let mut flags: Vec<String> = INSTRUMENTED.map(str::to_owned).to_vec();
    flags.push("-Cdebuginfo=line-tables-only".into());
    flags.push("--cap-lints=warn".into());
    flags.push("-Awarnings".into());
    flags.push(format!("--remap-path-prefix={}={SOURCES}", copy.display()));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", &toolchain.rustc).arg("--quiet");
    // The folder of the user's project has a say in none of this.
    cargo.current_dir(sources.path());
    for name in [
        "RUSTFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_TARGET",
    ] {
        cargo.env_remove(name);
    }
    SysrootBuilder::new(&folder, toolchain.host())
        .build_mode(BuildMode::Build)
        .sysroot_config(SysrootConfig::WithStd {
            std_features: vec!["panic-unwind".into(), "backtrace".into()],
        })
        .rustflags(flags)
        .cargo(cargo)
        .rustc_version(toolchain.version.clone())
        .build_from_source(&copy)
        .context("cannot build an instrumented standard library; the network is needed the first time")?;
    let libraries = folder.join("lib/rustlib").join(toolchain.host()).join("lib");
    ensure!(libraries.is_dir(), "the instrumented standard library is not in {}", libraries.display());
    fs::write(&done, b"")?;
    Ok(folder)
}

/// What makes one sysroot different from another.
pub fn key(toolchain: &Toolchain, std: Std) -> String {
    let mut hasher = SipHasher13::new();
    (&toolchain.version.short_version_string, &toolchain.version.commit_hash, toolchain.host())
        .hash(&mut hasher);
    (std == Std::Locks).hash(&mut hasher);
    INSTRUMENTED.hash(&mut hasher);
    if std == Std::Locks {
        std_locks::REPLACED.hash(&mut hasher);
    }
    let hash = hasher.finish128().as_u128();
    format!("{}-{:032x}", toolchain.version.semver, hash)
}

/// Copies a folder; files are copied, never linked, because some will be replaced.
fn copy_tree(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in walkdir::WalkDir::new(from).follow_links(true) {
        let entry = entry.with_context(|| format!("cannot read {}", from.display()))?;
        let target = to.join(entry.path().strip_prefix(from).expect("an entry lies in its folder"));
        if entry.file_type().is_dir() {
            fs::create_dir_all(&target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}
