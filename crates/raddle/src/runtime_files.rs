//! The runtime's files: embedded in this binary, unpacked to the cache folder when they are first needed.
//!
//! `build.rs` puts them here compressed; see there for what each of them is. They are unpacked to
//! `$XDG_CACHE_HOME/raddle/HASH/` (or `~/.cache/raddle/HASH/`), where HASH depends on nothing but their contents: two
//! versions of Raddle never disturb each other, and a program linked against the shared runtime keeps finding the
//! version it was linked with.
//!
//! A parallel build runs many `raddle cc` at once. Each file is written under a name of its own and then renamed into
//! place, so that nobody ever sees half a file, whoever wins. A file that is there with the right length is complete;
//! one that was deleted or cut by somebody else is simply written again.

use anyhow::{Context, bail};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// An embedded file.
pub struct File {
    /// Path relative to the unpacked folder.
    pub name: &'static str,
    /// Length after unpacking.
    pub bytes: usize,
    /// Contents, compressed.
    pub packed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The unpacked files.
#[derive(Clone, Debug)]
pub struct RuntimeFiles {
    folder: PathBuf,
}

impl RuntimeFiles {
    /// Unpacks what is not there yet.
    pub fn unpack() -> anyhow::Result<RuntimeFiles> {
        if FILES.is_empty() {
            bail!("this raddle was built without its runtime; build it again from a complete source tree");
        }
        let mut first_error = None;
        for base in cache_folders() {
            match unpack_to(&base.join(CONTENT_HASH)) {
                Ok(files) => return Ok(files),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.expect("there is at least one cache folder"))
            .context("cannot unpack the runtime; point XDG_CACHE_HOME at a folder that can be written")
    }

    /// The relocatable object that executables link.
    pub fn object(&self) -> PathBuf {
        self.folder.join("raddle_rt.o")
    }

    /// The shared library, for `LD_PRELOAD` and `RADDLE_LINK=shared`.
    pub fn shared(&self) -> PathBuf {
        self.folder.join("libraddle_rt.so")
    }

    /// Dynamic list of the names that an executable exports to libraries.
    pub fn exports(&self) -> PathBuf {
        self.folder.join("exports.list")
    }

    /// Folder with `raddle.h`.
    pub fn include(&self) -> PathBuf {
        self.folder.join("include")
    }

    /// Folder in which gcc finds empty files instead of its own runtime.
    pub fn gcc(&self) -> PathBuf {
        self.folder.join("gcc")
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Where to try, best first. A build daemon has no home folder; then a private folder among the temporary files does.
pub fn cache_folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    match std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from) {
        Some(cache) if cache.is_absolute() => folders.push(cache.join("raddle")),
        _ => {
            if let Some(home) = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
            {
                folders.push(home.join(".cache/raddle"));
            }
            folders
                .push(std::env::temp_dir().join(format!("raddle-{}", rustix::process::geteuid().as_raw())));
        }
    }
    folders
}

/// The first of the cache folders that can be created and written.
pub fn writable_cache_folder() -> anyhow::Result<PathBuf> {
    let mut first_error = None;
    for base in cache_folders() {
        let attempt = fs::DirBuilder::new().recursive(true).mode(0o700).create(&base);
        match attempt.and_then(|()| tempfile::tempfile_in(&base)) {
            Ok(_) => return Ok(base),
            Err(error) => {
                let error = anyhow::Error::new(error).context(format!("cannot write to {}", base.display()));
                first_error = first_error.or(Some(error));
            }
        }
    }
    Err(first_error.expect("there is at least one cache folder"))
        .context("no cache folder; point XDG_CACHE_HOME at a folder that can be written")
}

fn unpack_to(folder: &Path) -> anyhow::Result<RuntimeFiles> {
    let mut checked_owner = false;
    for file in FILES {
        let path = folder.join(file.name);
        if !checked_owner || !complete(&path, file) {
            let parent = path.parent().expect("a file lies in a folder");
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)
                .with_context(|| format!("cannot create {}", parent.display()))?;
            refuse_strangers(folder)?;
            checked_owner = true;
        }
        if !complete(&path, file) {
            write_file(&path, file).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(RuntimeFiles { folder: folder.to_owned() })
}

fn complete(path: &Path, file: &File) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == file.bytes as u64)
}

/// What lies here will be linked into the user's programs: nobody else may own it.
fn refuse_strangers(folder: &Path) -> anyhow::Result<()> {
    let owner = fs::metadata(folder).with_context(|| format!("cannot look at {}", folder.display()))?.uid();
    if owner != rustix::process::geteuid().as_raw() {
        bail!("{} belongs to another user (id {owner})", folder.display());
    }
    Ok(())
}

fn write_file(path: &Path, file: &File) -> anyhow::Result<()> {
    let contents = zstd::bulk::decompress(file.packed, file.bytes)?;
    let parent = path.parent().expect("a file lies in a folder");
    let mut temporary = tempfile::Builder::new().prefix(".unpacking-").tempfile_in(parent)?;
    temporary.write_all(&contents)?;
    temporary.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_processes_may_unpack_at_once() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("cache");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| unpack_to(&folder).unwrap());
            }
        });
        for file in FILES {
            assert!(complete(&folder.join(file.name), file), "{} is there", file.name);
        }
        let left_over = fs::read_dir(&folder)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".unpacking-"))
            .count();
        assert_eq!(left_over, 0);
    }

    #[test]
    fn a_damaged_file_is_written_again() {
        let scratch = tempfile::tempdir().unwrap();
        let files = unpack_to(scratch.path()).unwrap();
        fs::write(files.object(), b"cut").unwrap();
        unpack_to(scratch.path()).unwrap();
        assert!(fs::metadata(files.object()).unwrap().len() > 3);
    }

    #[test]
    fn a_file_in_the_way_is_an_error_that_names_it() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("taken");
        fs::write(&folder, b"").unwrap();
        let error = format!("{:#}", unpack_to(&folder).unwrap_err());
        assert!(error.contains("taken"), "{error}");
    }
}
