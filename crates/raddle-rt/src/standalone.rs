//! A program that reports by itself: `RADDLE_OPTIONS=standalone=1 ./program`.
//!
//! Where nobody can put `raddle` in front (a test runner that builds its own command lines, a service manager), the program does so itself:
//! before anything of its own has run it becomes `raddle run -- PROGRAM ARGS`, which keeps the process's number, input and output and starts
//! the program anew, with a region. `standalone=1` looks for `raddle` in `PATH`; `standalone=/opt/raddle/bin/raddle` says where it is.
//! If there is none, the program runs on unwatched, and says so.

use crate::real;
use core::ffi::{CStr, c_char, c_int};

/// More words than this on a command line are not passed on.
const WORDS_MAX: usize = 1000;
const PATH_MAX: usize = 4096;

/// Text of a path, with the zero that ends it.
struct PathText {
    bytes: [u8; PATH_MAX],
    used: usize,
}

impl PathText {
    const fn new() -> PathText {
        PathText { bytes: [0; PATH_MAX], used: 0 }
    }

    /// The parts, one behind the other; nothing if there is no room for them and the zero.
    fn of(parts: &[&[u8]]) -> Option<PathText> {
        let mut path = PathText::new();
        for part in parts {
            path.bytes.get_mut(path.used..path.used + part.len())?.copy_from_slice(part);
            path.used += part.len();
        }
        (path.used < PATH_MAX).then_some(path)
    }

    fn address(&self) -> usize {
        self.bytes.as_ptr() as usize
    }
}

/// Becomes `raddle run` if the environment asks for it. Returns if it does not, or if that cannot be done.
pub fn become_raddle(argc: c_int, argv: *const *const c_char, envp: *const *const c_char) {
    let Some(wanted) = real::environment(c"RADDLE_OPTIONS").and_then(|text| wanted(text.to_bytes())) else {
        return;
    };
    // SAFETY: asks for a word that the kernel has left.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return;
    }
    let count = usize::try_from(argc).unwrap_or(0);
    let mut own = PathText::new();
    let link = c"/proc/self/exe".as_ptr() as usize;
    // SAFETY: the buffer is as long as is said, less the zero at its end.
    let length = unsafe {
        real::syscall(libc::SYS_readlink, [link, own.bytes.as_mut_ptr() as usize, PATH_MAX - 1, 0, 0, 0])
    };
    if length <= 0 || count == 0 || count > WORDS_MAX {
        return complain(b"its own path or its words are too long");
    }
    let mut words = [0usize; WORDS_MAX + 4];
    let head = [c"raddle", c"run", c"--"].map(|word| word.as_ptr() as usize);
    words[..3].copy_from_slice(&head);
    words[3] = own.address();
    for ix in 1..count {
        // SAFETY: the C library passes this many words.
        words[3 + ix] = unsafe { *argv.add(ix) } as usize;
    }
    let start = |path: &PathText| {
        // SAFETY: path and words end in zeroes; the environment is the C library's. Returns only if it fails.
        unsafe {
            real::syscall(libc::SYS_execve, [path.address(), words.as_ptr() as usize, envp as usize, 0, 0, 0])
        };
    };
    match wanted {
        Wanted::At(path) => {
            if let Some(path) = PathText::of(&[path]) {
                start(&path);
            }
        }
        Wanted::InPath => {
            let folders = real::environment(c"PATH").map_or(&b""[..], CStr::to_bytes);
            for folder in folders.split(|&byte| byte == b':').filter(|folder| !folder.is_empty()) {
                if let Some(path) = PathText::of(&[folder, b"/raddle"]) {
                    start(&path);
                }
            }
        }
    }
    complain(b"`raddle` could not be started; put it into PATH or write standalone=/path/to/raddle");
}

fn complain(why: &[u8]) {
    real::write_stderr(b"raddle: warning: this program cannot report by itself: ");
    real::write_stderr(why);
    real::write_stderr(b"\n");
}

#[derive(Debug, PartialEq)]
enum Wanted<'a> {
    InPath,
    At(&'a [u8]),
}

/// What the options say about `standalone`; the last word counts.
fn wanted(options: &[u8]) -> Option<Wanted<'_>> {
    let words = options.split(|byte| matches!(byte, b':' | b',' | b' ' | b'\t' | b'\n'));
    let value = words.filter_map(|word| word.strip_prefix(b"standalone=")).next_back()?;
    match value {
        b"" | b"0" | b"false" | b"no" => None,
        b"1" | b"true" | b"yes" => Some(Wanted::InPath),
        path => Some(Wanted::At(path)),
    }
}
