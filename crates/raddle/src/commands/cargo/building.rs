//! The environment in which cargo builds programs that can be watched.
//!
//! Everything lies in `TARGET/raddle`: what cargo builds, and `bin` with links to this program under the names by which it is called:
//! `raddle-rustc` around the compiler, `raddle-cc` and `raddle-c++` as the compilers of build scripts. cargo sees no flag of ours, so
//! it cannot know when they change: the file `key` does, and another key empties the folder.

use super::super::{Ctx, Exit};
use crate::compiler::Refusal;
use crate::runtime_files::{self, RuntimeFiles};
use anyhow::{Context, bail};
use raddle_cargo::sysroot::{self, Std};
use raddle_cargo::toolchain::Toolchain;
use raddle_cargo::wrapper::Settings;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How cargo is called.
pub struct Building {
    target: String,
    folder: PathBuf,
    settings: Settings,
}

impl Building {
    /// Takes `--std` from the words, builds what is missing, and hands back cargo's words.
    pub fn prepare(words: Vec<OsString>, ctx: &Ctx) -> anyhow::Result<(Building, Vec<OsString>)> {
        let (wanted, words) = take_std(words)?;
        for word in before_dashes(&words) {
            let text = word.to_string_lossy();
            if text == "--target" || text.starts_with("--target=") || text.starts_with("--target-dir") {
                return Err(Refusal(format!(
                    "{text} cannot be chosen: programs are built for this machine, in target/raddle"
                ))
                .into());
            }
        }
        let toolchain = Toolchain::find()?;
        toolchain.check_host()?;
        let files = RuntimeFiles::unpack()?;
        let (sysroot, target) = standard_library(&toolchain, wanted, ctx)?;
        let manifest = manifest(&words);
        let folder = target_folder(manifest.as_deref())?.join("raddle");
        let settings =
            Settings { object: files.object(), exports: files.exports(), shared: files.shared(), sysroot };
        let building = Building { target, folder, settings };
        building.make_folder()?;
        Ok((building, words))
    }

    pub fn target(&self) -> &str {
        &self.target
    }

    /// cargo with one of its commands. Everything but `nextest` and `run` gets its target here.
    pub fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        let bin = self.folder.join("bin");
        cargo
            .arg(command)
            .env("RUSTC_WRAPPER", bin.join("raddle-rustc"))
            .env("CARGO_TARGET_DIR", &self.folder)
            .envs(self.settings.environment());
        for (name, program) in [("CC", "raddle-cc"), ("CXX", "raddle-c++")] {
            // What is behind `raddle cc` is what would have been called.
            if let Some(own) = std::env::var_os(name).filter(|own| !own.is_empty()) {
                cargo.env(format!("RADDLE_{name}"), own);
            }
            cargo.env(name, bin.join(program));
        }
        if !matches!(command, "nextest" | "run") {
            cargo.args(["--target", &self.target]);
        }
        cargo
    }

    /// cargo's setting that puts a command of Raddle in front of programs.
    pub fn runner(&self, words: &[OsString]) -> anyhow::Result<String> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let mut list = vec![quoted(own.as_os_str())?];
        for word in words {
            list.push(quoted(word)?);
        }
        Ok(format!("target.{}.runner=[{}]", self.target, list.join(",")))
    }

    fn make_folder(&self) -> anyhow::Result<()> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let key = format!("{} {:?}\n", self.settings.object.display(), self.settings.sysroot);
        let key_file = self.folder.join("key");
        if fs::read_to_string(&key_file).is_ok_and(|found| found != key) {
            fs::remove_dir_all(&self.folder)
                .with_context(|| format!("cannot empty {}", self.folder.display()))?;
        }
        let bin = self.folder.join("bin");
        fs::create_dir_all(&bin).with_context(|| format!("cannot create {}", bin.display()))?;
        fs::write(&key_file, key).with_context(|| format!("cannot write {}", key_file.display()))?;
        for name in ["raddle-rustc", "raddle-cc", "raddle-c++"] {
            let link = bin.join(name);
            if fs::read_link(&link).is_ok_and(|found| found == own) {
                continue;
            }
            let _ = fs::remove_file(&link);
            match std::os::unix::fs::symlink(&own, &link) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(error).with_context(|| format!("cannot create {}", link.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Where the standard library is, if not where the compiler looks, and for which target it is.
fn standard_library(
    toolchain: &Toolchain,
    wanted: Option<Std>,
    ctx: &Ctx,
) -> anyhow::Result<(Option<PathBuf>, String)> {
    let host = toolchain.host().to_owned();
    let std = wanted.unwrap_or_default();
    if let Some(library) = toolchain.library() {
        let cache = runtime_files::writable_cache_folder()?;
        let announce = || {
            if !ctx.quiet {
                eprintln!(
                    "raddle: building an instrumented standard library for Rust {} (once; about a minute)",
                    toolchain.version.semver
                );
            }
        };
        let folder = sysroot::build(toolchain, &library, std, &cache, &announce)?;
        return Ok((Some(folder), host));
    }
    let how = toolchain.how_to_get_library();
    if let Some(target) = toolchain.instrumented_target() {
        if wanted == Some(Std::Locks) {
            return Err(
                Refusal(format!("--std locks needs the source of the standard library; {how}")).into()
            );
        }
        return Ok((None, target));
    }
    Err(Refusal(format!(
        "the source of the standard library is missing, and without it std's synchronisation cannot be seen; {how}"
    ))
    .into())
}

fn take_std(words: Vec<OsString>) -> anyhow::Result<(Option<Std>, Vec<OsString>)> {
    let known = [("--std".to_owned(), true)].into_iter().collect();
    let (own, rest) = super::words::split(&known, words);
    let Some(last) = own.last() else { return Ok((None, rest)) };
    let text = last.to_string_lossy();
    let std = match text.strip_prefix("--std=").unwrap_or(&text) {
        "locks" => Std::Locks,
        "plain" => Std::Plain,
        _ => bail!(Refusal("--std is followed by locks or plain".into())),
    };
    Ok((Some(std), rest))
}

fn before_dashes(words: &[OsString]) -> impl Iterator<Item = &OsString> {
    words.iter().take_while(|word| *word != "--")
}

fn manifest(words: &[OsString]) -> Option<OsString> {
    let mut words = before_dashes(words);
    while let Some(word) = words.next() {
        if word == "--manifest-path" {
            return words.next().cloned();
        }
        if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--manifest-path=")) {
            return Some(path.into());
        }
    }
    None
}

/// The project's target folder, as cargo says.
fn target_folder(manifest: Option<&OsStr>) -> anyhow::Result<PathBuf> {
    let mut command = cargo_metadata::MetadataCommand::new();
    command.no_deps();
    if let Some(path) = manifest {
        command.manifest_path(Path::new(path));
    }
    let metadata = command.exec().map_err(|error| Refusal(format!("{}", error).trim().to_owned()))?;
    Ok(metadata.target_directory.into())
}

fn quoted(word: &OsStr) -> anyhow::Result<String> {
    let text = word.to_str().context("words for cargo's runner have to be UTF-8")?;
    // TOML's basic strings escape as JSON's do.
    Ok(serde_json::to_string(text)?)
}

/// `cargo raddle clean`.
pub fn clean(words: &[OsString], ctx: &Ctx) -> anyhow::Result<Exit> {
    let folder = target_folder(manifest(words).as_deref())?.join("raddle");
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        result => {
            result.with_context(|| format!("cannot remove {}", folder.display()))?;
            if !ctx.quiet {
                eprintln!("raddle: removed {}", folder.display());
            }
        }
    }
    Ok(Exit::Clean)
}

/// Is this process called as rustc's wrapper? Then what is to be called, and how.
pub fn as_rustc(mut words: impl Iterator<Item = OsString>) -> Option<Command> {
    let name = words.next()?;
    if Path::new(&name).file_name() != Some(OsStr::new("raddle-rustc")) {
        return None;
    }
    let mut command = Command::new(words.next()?);
    let arguments = words.collect();
    let Some(settings) = Settings::from_environment() else {
        command.args::<Vec<OsString>, _>(arguments);
        return Some(command);
    };
    let call =
        raddle_cargo::wrapper::call(&settings, arguments, std::env::var_os("CARGO_CRATE_NAME").is_some());
    command.args(call.arguments);
    if call.bootstrap {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    Some(command)
}
