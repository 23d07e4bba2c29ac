//! Locks that are locks: what is put in the place of three files of std.
//!
//! On Linux, std makes `Mutex`, `Condvar` and `RwLock` of futex words and inlines their fast paths. The files here have the same
//! public face (`sys::sync::{Mutex, Condvar, RwLock}`, unchanged since Rust 1.84) over `pthread_mutex_t`, `pthread_cond_t` and
//! `pthread_rwlock_t`, *in place*: no allocation, and the address of the lock is the address of the Rust object. Their initialisers
//! are all zeroes when nobody holds or waits, so a lock may be moved as Rust allows, and `new` stays `const`.
//!
//! What differs from std: the sizes (`Mutex<()>` 8 to 48 bytes, `Condvar` 4 to 48, `RwLock<()>` 12 to 72). A writer that waits
//! does not keep new readers out. `RwLock::downgrade` is an unlock and a read lock behind a flag that sends writers back, because
//! POSIX has no such operation. Everything above (`poisoning`, guards, `try_lock`) is std's own code, as it is.

use anyhow::{Context, ensure};
use std::fs;
use std::path::Path;

/// A replaced file: its path in `library`, and its new contents.
pub const REPLACED: [(&str, &str); 3] = [
    ("std/src/sys/sync/mutex/futex.rs", include_str!("mutex.rs.in")),
    ("std/src/sys/sync/condvar/futex.rs", include_str!("condvar.rs.in")),
    ("std/src/sys/sync/rwlock/futex.rs", include_str!("rwlock.rs.in")),
];

/// What each of the files must define, so that a std that has moved on is noticed before the compiler is.
const EXPECTED: [(&str, &[&str]); 3] = [
    ("pub struct Mutex", &["fn new", "fn try_lock", "fn lock", "unsafe fn unlock"]),
    (
        "pub struct Condvar",
        &["fn new", "fn notify_one", "fn notify_all", "unsafe fn wait", "unsafe fn wait_timeout"],
    ),
    (
        "pub struct RwLock",
        &[
            "fn new",
            "fn try_read",
            "fn read",
            "unsafe fn read_unlock",
            "fn try_write",
            "fn write",
            "unsafe fn write_unlock",
        ],
    ),
];

/// Replaces the files in a copy of `library`.
pub fn apply(library: &Path) -> anyhow::Result<()> {
    for ((path, contents), (structure, functions)) in REPLACED.iter().zip(EXPECTED) {
        let file = library.join(path);
        let old = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        for expected in functions.iter().copied().chain([structure]) {
            ensure!(
                old.contains(expected),
                "this standard library has no `{expected}` in {path}: its locks cannot be replaced; use --std plain"
            );
        }
        // A new file and not a new text: the old one may be a link to the toolchain's.
        fs::remove_file(&file).with_context(|| format!("cannot replace {}", file.display()))?;
        fs::write(&file, contents).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_files_have_what_is_expected_of_stds() {
        for ((path, contents), (structure, functions)) in REPLACED.iter().zip(EXPECTED) {
            for expected in functions.iter().copied().chain([structure]) {
                assert!(contents.contains(expected), "{path} has {expected}");
            }
        }
    }

    #[test]
    fn another_std_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(REPLACED[0].0);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "pub struct Mutex; fn new() {}").unwrap();
        let error = apply(folder.path()).unwrap_err().to_string();
        assert!(error.contains("fn try_lock") && error.contains("--std plain"), "{error}");
    }
}
