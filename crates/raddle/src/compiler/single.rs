//! Source files given where a program is expected: `raddle hunt bank.c` compiles `bank.c` by itself.
//!
//! The program lands in the cache folder under a name that depends on the files and the flags, so that it is still there
//! when a schedule is replayed tomorrow, and so that two different programs never share a path. It is built anew each time
//! (an included header may have changed) beside the old one and then renamed over it, because the old one may be running.
//!
//! Default flags are `-O0 -g -pthread`: without optimisation every access of the source is an event, and a finding names
//! the line that the user wrote.

use super::Refusal;
use super::choice::{Compiler, Language};
use crate::runtime_files;
use anyhow::Context;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Flags of every compilation, before the user's.
const DEFAULT_FLAGS: &[&str] = &["-O0", "-pthread"];

/// Is this word a source file rather than a program?
pub fn is_source(path: &Path) -> bool {
    Language::of_file(path).is_some()
}

/// Compiles and links the files to one program and says where it is. `recorded` names the compiler that a schedule speaks of; if it is not there
/// any more, or there is no schedule, the environment says which one is taken.
pub fn build(files: &[PathBuf], flags: &[String], recorded: Option<&str>) -> anyhow::Result<PathBuf> {
    let choose = |language| match recorded.and_then(|name| Compiler::recorded(name, language)) {
        Some(compiler) => Ok(compiler),
        None => Compiler::choose(language),
    };
    for file in files {
        check(file)?;
    }
    let program = program_path(files, flags, &choose(language_of(files))?)?;
    let folder = program.parent().expect("the program lies in a folder");
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let scratch = tempfile::Builder::new()
        .prefix(".building-")
        .tempdir_in(folder)
        .with_context(|| format!("cannot write to {}", folder.display()))?;
    let mut objects = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let language = Language::of_file(file).expect("the caller passes source files");
        let object = scratch.path().join(format!("{index}.o"));
        let mut words = base_flags(flags);
        words.extend(["-c".into(), file.into(), "-o".into(), (&object).into()]);
        run(&choose(language)?, words, file)?;
        objects.push(object);
    }
    let linked = scratch.path().join("program");
    let mut words: Vec<OsString> = objects.into_iter().map(OsString::from).collect();
    words.extend(["-o".into(), (&linked).into()]);
    // Behind the objects, so that `-lm` among the user's flags works.
    words.extend(base_flags(flags));
    words.push("-lm".into());
    run(&choose(language_of(files))?, words, &files[0])?;
    if !linked.exists() {
        let compiler = choose(language_of(files))?.name();
        return Err(Refusal(format!(
            "{compiler} reports success and has made no program; it is no C compiler (RADDLE_CC names another one)"
        ))
        .into());
    }
    std::fs::rename(&linked, &program).with_context(|| format!("cannot write {}", program.display()))?;
    Ok(program)
}

/// Refuses what is no source, so that the compiler's complaints about it are spared.
fn check(file: &Path) -> anyhow::Result<()> {
    const ELF: &[u8] = b"\x7fELF";
    let shown = file.display();
    let opened = std::fs::File::open(file).with_context(|| format!("cannot read {shown}"))?;
    if opened.metadata().is_ok_and(|found| found.is_dir()) {
        return Err(Refusal(format!("{shown} is a folder, not a source file")).into());
    }
    let mut start = Vec::new();
    opened.take(SHORT_BYTES).read_to_end(&mut start).with_context(|| format!("cannot read {shown}"))?;
    if start.starts_with(ELF) {
        return Err(Refusal(format!(
            "{shown} is a binary, not a source file; to run a program, name it behind `--`: `-- ./{}`",
            file.file_name().unwrap_or_default().display()
        ))
        .into());
    }
    if start.iter().all(u8::is_ascii_whitespace) && (start.len() as u64) < SHORT_BYTES {
        return Err(Refusal(format!("{shown} is empty; there is nothing to compile")).into());
    }
    Ok(())
}

/// So many bytes of a file are looked at before the compiler does.
const SHORT_BYTES: u64 = 4096;

/// What the files are compiled with, for those who want to do it again.
pub fn compiler_name(files: &[PathBuf]) -> String {
    Compiler::choose(language_of(files)).map(|compiler| compiler.name()).unwrap_or_default()
}

/// The language whose driver links the program.
fn language_of(files: &[PathBuf]) -> Language {
    let cxx = files.iter().any(|file| Language::of_file(file) == Some(Language::Cxx));
    if cxx { Language::Cxx } else { Language::C }
}

fn base_flags(flags: &[String]) -> Vec<OsString> {
    DEFAULT_FLAGS.iter().map(OsString::from).chain(flags.iter().map(OsString::from)).collect()
}

fn run(compiler: &Compiler, words: Vec<OsString>, file: &Path) -> anyhow::Result<()> {
    let mut command = super::command_of(compiler, words)?;
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
    if !status.success() {
        return Err(Refusal(format!(
            "{} did not compile; the compiler's messages are above",
            file.display()
        ))
        .into());
    }
    Ok(())
}

fn program_path(files: &[PathBuf], flags: &[String], compiler: &Compiler) -> anyhow::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    for file in files {
        std::path::absolute(file).context("cannot tell the current folder")?.hash(&mut hasher);
    }
    flags.hash(&mut hasher);
    compiler.name().hash(&mut hasher);
    let stem = files[0].file_stem().expect("a source file has a name");
    let base = runtime_files::writable_cache_folder()?;
    Ok(base.join("programs").join(format!("{:016x}", hasher.finish())).join(stem))
}
