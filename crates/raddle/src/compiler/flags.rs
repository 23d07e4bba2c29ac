//! What Raddle adds to a compiler command line.
//!
//! Both compilers already know how to mark memory accesses: their ThreadSanitizer pass puts calls to `__tsan_*` into the
//! code. Raddle asks for that pass and brings its own definitions of those functions. So a *compilation* gets
//! `-fsanitize=thread` and a *link* must get Raddle's runtime and not the compiler's.
//!
//! Raddle's flags come first, so that whatever the user says later wins (`-g0`, `-fno-sanitize=thread`).
//!
//! # Keeping the compiler's own runtime out
//!
//! *clang*: the driver links its runtime when it sees `-fsanitize=thread` while linking. When one call both compiles and
//! links, the flag goes past the driver to the compiler proper (`-Xclang`); when it only links, no flag is
//! needed. A `-fsanitize=thread` of the user's is taken off such a line, with a note.
//!
//! *gcc* has no way past its driver, and with `-flto` the pass runs while linking, so the flag has to stay. But gcc
//! looks for `libtsan` in the folders given with `-B` first, and there it finds an empty one.
//!
//! # Executables and libraries
//!
//! The runtime exists once in a process, in the executable, which exports its names (`--dynamic-list`). A shared library
//! is linked with those names left open, which is why `-z defs` is taken back for it (`-z undefs`).
//!
//! # Flags by compiler
//!
//! | flag | why |
//! | --- | --- |
//! | clang `-tsan-distinguish-volatile`, gcc `--param tsan-distinguish-volatile=1` | volatile accesses get their own event |
//! | clang `-tsan-instrument-read-before-write` | `x++` is a read, then a write: the lost update needs both |
//! | gcc `-fno-builtin-memcpy`, ... | gcc opens these functions up into moves that it does not mark |
//! | gcc `-fno-ipa-reference` | gcc takes the hooks of atomics for calls that cannot touch a static variable, and moves plain accesses across them |
//! | gcc `-fno-ipa-icf` | gcc makes one of functions with equal code, and nobody can tell any more which of them was called |

use super::Refusal;
use super::arguments::{Product, Request, Stage};
use super::choice::{Compiler, Family};
use super::response;
use crate::runtime_files::RuntimeFiles;
use std::ffi::OsString;
use std::path::Path;

/// How executables get the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linking {
    /// The localised object, inside the executable.
    Object,
    /// The shared library in the cache folder (`RADDLE_LINK=shared`).
    Shared,
}

impl Linking {
    pub fn from_environment() -> anyhow::Result<Linking> {
        match std::env::var("RADDLE_LINK").as_deref() {
            Err(_) | Ok("" | "object" | "static") => Ok(Linking::Object),
            Ok("shared") => Ok(Linking::Shared),
            Ok(other) => {
                Err(Refusal(format!("RADDLE_LINK is {other:?}; it can be `object` or `shared`")).into())
            }
        }
    }
}

/// Sanitizers that bring a runtime which fights with Raddle's for the same functions or the same memory.
const RIVALS: &[&str] = &[
    "address",
    "kernel-address",
    "hwaddress",
    "kernel-hwaddress",
    "memory",
    "kernel-memory",
    "leak",
    "dataflow",
    "realtime",
    "type",
    "numerical",
    "memtag",
    "memtag-stack",
    "memtag-heap",
    "safe-stack",
];

/// Functions that gcc replaces by unmarked moves. `strlen` and its like stay: their value for a literal is a constant
/// that programs use to initialise variables.
const GCC_MARKED_CALLS: &[&str] = &[
    "memcpy", "memmove", "memset", "mempcpy", "memcmp", "strcpy", "stpcpy", "strncpy", "strcat", "strncat",
    "strcmp", "strncmp",
];

/// First gcc that can mark volatile accesses.
const GCC_VOLATILE_VERSION: u32 = 11;

/// The whole argument list for the compiler.
pub fn arguments(
    compiler: &Compiler,
    request: &Request,
    user: Vec<OsString>,
    runtime: &RuntimeFiles,
    linking: Linking,
) -> anyhow::Result<Vec<OsString>> {
    refuse(request)?;
    let mut list = Vec::new();
    let mut tail = Vec::new();
    if request.compiles {
        compile_flags(compiler, request, runtime, &mut list);
    }
    if request.links() {
        link_flags(compiler, request, runtime, linking, &mut list, &mut tail);
    }
    let foreign_runtime = request.links() && request.sanitizers.iter().any(|name| name == "thread");
    if foreign_runtime {
        eprintln!(
            "raddle: note: -fsanitize=thread on a link line is ignored: the program gets Raddle's runtime instead of the compiler's"
        );
    }
    if foreign_runtime && compiler.family == Family::Clang {
        list.extend(response::expand(&user).into_iter().filter_map(without_thread));
    } else {
        list.extend(user);
    }
    list.extend(tail);
    Ok(list)
}

fn refuse(request: &Request) -> Result<(), Refusal> {
    if let Some(flag) = &request.foreign
        && (request.compiles || request.links())
        && request.stage != Stage::Preprocess
    {
        return Err(Refusal(format!(
            "{flag} asks for what Raddle cannot observe: it has a runtime for 64-bit x86 programs on Linux with glibc only; build without {flag}"
        )));
    }
    if let Some(rival) = request.sanitizers.iter().find(|name| RIVALS.contains(&name.as_str())) {
        return Err(Refusal(format!(
            "-fsanitize={rival} and Raddle's runtime cannot be in one program; build without that flag"
        )));
    }
    if let Some(flag) = &request.static_flag
        && request.links()
        && request.product == Product::Executable
    {
        return Err(Refusal(format!(
            "{flag} makes a fully static program, in which the runtime cannot stand in front of the C library; link without {flag}"
        )));
    }
    Ok(())
}

fn compile_flags(compiler: &Compiler, request: &Request, runtime: &RuntimeFiles, list: &mut Vec<OsString>) {
    list.push("-isystem".into());
    list.push(runtime.include().into());
    if request.stage > Stage::Preprocess {
        list.push("-g".into());
    }
    if request.uninstrumented {
        return;
    }
    match compiler.family {
        Family::Clang => {
            // A sanitizer of the user's that is linked from the same line keeps its own runtime.
            if request.links() {
                list.push("-Xclang".into());
            }
            list.push("-fsanitize=thread".into());
            if request.stage > Stage::Preprocess {
                for flag in ["-tsan-distinguish-volatile=1", "-tsan-instrument-read-before-write=1"] {
                    list.extend(["-mllvm".into(), flag.into()]);
                }
            }
        }
        Family::Gcc => {
            list.push("-fsanitize=thread".into());
            if compiler.major_version().is_none_or(|version| version >= GCC_VOLATILE_VERSION) {
                list.extend(["--param".into(), "tsan-distinguish-volatile=1".into()]);
            }
            list.push("-fno-ipa-reference".into());
            list.push("-fno-ipa-icf".into());
            list.extend(GCC_MARKED_CALLS.iter().map(|name| format!("-fno-builtin-{name}").into()));
        }
    }
}

fn link_flags(
    compiler: &Compiler,
    request: &Request,
    runtime: &RuntimeFiles,
    linking: Linking,
    list: &mut Vec<OsString>,
    tail: &mut Vec<OsString>,
) {
    if compiler.family == Family::Gcc && request.product != Product::Relocatable {
        if !request.compiles {
            list.push("-fsanitize=thread".into());
        }
        list.push(joined("-B", &runtime.gcc(), "/"));
    }
    match request.product {
        Product::Relocatable => {}
        Product::SharedLibrary => {
            if request.forbids_undefined {
                tail.push("-Wl,-z,undefs".into());
            }
        }
        Product::Executable => {
            match linking {
                Linking::Object => {
                    list.push(runtime.object().into());
                    list.push(joined("-Wl,--dynamic-list=", &runtime.exports(), ""));
                }
                Linking::Shared => {
                    list.push("-Wl,--push-state,--no-as-needed".into());
                    list.push(runtime.shared().into());
                    list.push("-Wl,--pop-state".into());
                    list.push(joined("-Wl,-rpath,", runtime.folder(), ""));
                }
            }
            if !request.without_libraries {
                // Part of the C library since glibc 2.34, of their own before.
                tail.extend(["-ldl".into(), "-lpthread".into()]);
            }
        }
    }
}

fn joined(prefix: &str, path: &Path, suffix: &str) -> OsString {
    let mut word = OsString::from(prefix);
    word.push(path);
    word.push(suffix);
    word
}

/// `-fsanitize=thread,undefined` without `thread`.
fn without_thread(word: OsString) -> Option<OsString> {
    let Some(names) = word.to_str().and_then(|text| text.strip_prefix("-fsanitize=")) else {
        return Some(word);
    };
    let rest: Vec<&str> = names.split(',').filter(|&name| name != "thread").collect();
    (!rest.is_empty()).then(|| format!("-fsanitize={}", rest.join(",")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Request {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Request::read(&words)
    }

    #[test]
    fn refusals_are_one_sentence_that_names_the_flag() {
        let refused = |line: &str| refuse(&read(line)).unwrap_err().to_string();
        assert!(refused("-static a.c").contains("link without -static"));
        assert!(refused("-static-pie a.c").contains("-static-pie"));
        assert!(refused("-m32 a.c").contains("build without -m32"));
        assert!(refused("-c a.c -target i386-linux-gnu").contains("-target i386-linux-gnu"));
        assert!(refused("--target=x86_64-linux-musl a.c").contains("--target=x86_64-linux-musl"));
        assert!(refused("-fsanitize=address -c a.c").contains("-fsanitize=address"));
        for fine in [
            "-static -c a.c",
            "-static -shared a.o",
            "-fsanitize=undefined a.c",
            "-fsanitize=thread a.c",
            "-m32 -m64 a.c",
            "--target=x86_64-pc-linux-gnu a.c",
            "-m32 -E a.c",
        ] {
            assert!(refuse(&read(fine)).is_ok(), "{fine}");
        }
    }

    #[test]
    fn thread_is_taken_off_alone() {
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(without_thread(word.into()), expected.map(OsString::from), "{word}");
        };
        check("-fsanitize=thread", None);
        check("-fsanitize=thread,undefined", Some("-fsanitize=undefined"));
        check("-fsanitize=undefined", Some("-fsanitize=undefined"));
        check("a.o", Some("a.o"));
    }
}
