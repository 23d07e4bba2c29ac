//! The Rust toolchain that cargo would use in this folder.

use anyhow::{Context, bail, ensure};
use rustc_version::VersionMeta;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first version whose `sys::sync` has the files that are replaced.
const OLDEST: (u64, u64) = (1, 85);

/// A compiler, and what it says about itself.
#[derive(Clone, Debug)]
pub struct Toolchain {
    pub rustc: PathBuf,
    pub version: VersionMeta,
    /// Where the compiler's own standard library lies.
    pub sysroot: PathBuf,
}

impl Toolchain {
    /// Asks the compiler that `RUSTC` names, or `rustc`.
    pub fn find() -> anyhow::Result<Toolchain> {
        let rustc = PathBuf::from(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        let version = VersionMeta::for_command(Command::new(&rustc)).with_context(|| {
            format!("cannot ask {} for its version; install Rust, or set RUSTC", rustc.display())
        })?;
        let oldest = OLDEST;
        ensure!(
            (version.semver.major, version.semver.minor) >= oldest,
            "Rust {} is too old; {}.{} and later are supported",
            version.semver,
            oldest.0,
            oldest.1
        );
        let output = Command::new(&rustc).args(["--print", "sysroot"]).output()?;
        let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Ok(Toolchain { rustc, version, sysroot })
    }

    /// The target that programs are built for: the host itself.
    pub fn host(&self) -> &str {
        &self.version.host
    }

    /// Refuses hosts that the runtime does not know.
    pub fn check_host(&self) -> anyhow::Result<()> {
        if self.host() != "x86_64-unknown-linux-gnu" {
            bail!("programs for {} cannot be watched yet; only x86_64-unknown-linux-gnu can", self.host());
        }
        Ok(())
    }

    /// The source of the standard library, if it is installed.
    pub fn library(&self) -> Option<PathBuf> {
        let library = self.sysroot.join("lib/rustlib/src/rust/library");
        library.join("std/Cargo.toml").exists().then_some(library)
    }

    /// A target whose standard library is instrumented already, if this toolchain has it.
    pub fn instrumented_target(&self) -> Option<String> {
        let target = format!("{}tsan", self.host());
        let library = self.sysroot.join("lib/rustlib").join(&target).join("lib");
        has_std(&library).then_some(target)
    }

    /// The sentence for people without the source.
    pub fn how_to_get_library(&self) -> String {
        let rustup = self.sysroot.components().any(|part| part.as_os_str() == "toolchains");
        match rustup {
            true => "install it with `rustup component add rust-src`".to_owned(),
            false => format!(
                "install it from where {} comes from (Debian: the package rust-src or rust-web-src)",
                self.rustc.display()
            ),
        }
    }
}

fn has_std(library: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(library) else { return false };
    entries.flatten().any(|entry| {
        let name: OsString = entry.file_name();
        name.to_string_lossy().starts_with("libstd-")
    })
}
