//! What is added to one call of rustc.
//!
//! cargo calls `raddle` as `RUSTC_WRAPPER`. A call is a unit *of the target* if it names one (`--target`): with `--target` on cargo's
//! own command line, build scripts and proc macros are compiled without it. It is cargo's and not a build script's if
//! `CARGO_CRATE_NAME` is in the environment: what a build script finds out about the compiler must be true of the compiler as
//! it is, or crates would switch features on that stable Rust does not have.
//!
//! Only units of the target get flags, and only for them `RUSTC_BOOTSTRAP` is set. Executables get the runtime in front of every
//! library, because libc's `pthread_create` would win otherwise.

use crate::sysroot::INSTRUMENTED;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What the wrapper has to know; it is handed over in the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The runtime as one object.
    pub object: PathBuf,
    /// The names that an executable exports to libraries.
    pub exports: PathBuf,
    /// The runtime as a library, for host programs with C code that was instrumented for the target.
    pub shared: PathBuf,
    /// The instrumented standard library; none where the target has one.
    pub sysroot: Option<PathBuf>,
}

const OBJECT: &str = "RADDLE_RUSTC_OBJECT";
const EXPORTS: &str = "RADDLE_RUSTC_EXPORTS";
const SHARED: &str = "RADDLE_RUSTC_SHARED";
const SYSROOT: &str = "RADDLE_RUSTC_SYSROOT";

impl Settings {
    /// The environment that hands them over.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let mut list = vec![
            (OBJECT, self.object.clone().into()),
            (EXPORTS, self.exports.clone().into()),
            (SHARED, self.shared.clone().into()),
        ];
        list.extend(self.sysroot.clone().map(|sysroot| (SYSROOT, sysroot.into())));
        list
    }

    /// What was handed over, if this process is to be a wrapper.
    pub fn from_environment() -> Option<Settings> {
        Some(Settings {
            object: std::env::var_os(OBJECT)?.into(),
            exports: std::env::var_os(EXPORTS)?.into(),
            shared: std::env::var_os(SHARED)?.into(),
            sysroot: std::env::var_os(SYSROOT).map(PathBuf::from),
        })
    }
}

/// What becomes of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub arguments: Vec<OsString>,
    /// Does the compiler have to accept unstable flags?
    pub bootstrap: bool,
}

/// The whole argument list for rustc. `by_cargo`: the call compiles a unit of the build.
pub fn call(settings: &Settings, arguments: Vec<OsString>, by_cargo: bool) -> Call {
    let request = Request::read(&arguments);
    if !by_cargo || !request.compiles {
        return Call { arguments, bootstrap: false };
    }
    if !request.target {
        let mut arguments = arguments;
        if request.links_host {
            arguments.extend(host_link(&settings.shared));
        }
        return Call { arguments, bootstrap: false };
    }
    let mut list: Vec<OsString> = INSTRUMENTED.map(OsString::from).to_vec();
    if let Some(sysroot) = &settings.sysroot {
        list.extend(["--sysroot".into(), sysroot.into()]);
    }
    if !request.debug_info {
        list.push("-Cdebuginfo=line-tables-only".into());
    }
    if request.executable {
        list.push(joined("-Zpre-link-arg=", &settings.object));
        list.push(joined("-Zpre-link-arg=-Wl,--dynamic-list=", &settings.exports));
        // Names of functions and variables are what reports are made of.
        list.push("-Cstrip=none".into());
    }
    // Ours come first: what the user says later wins, and the crate's file stays where it is.
    list.extend(if request.executable { unstripped(arguments) } else { arguments });
    Call { arguments: list, bootstrap: true }
}

/// A library that is looked at only if C code of a host program asks for it.
fn host_link(shared: &Path) -> Vec<OsString> {
    let folder = shared.parent().unwrap_or(Path::new("/"));
    vec![
        "-Clink-arg=-Wl,--push-state,--as-needed".into(),
        joined("-Clink-arg=", shared),
        "-Clink-arg=-Wl,--pop-state".into(),
        joined("-Clink-arg=-Wl,-rpath,", folder),
    ]
}

/// Without `-C strip=...`, which a profile may ask for.
fn unstripped(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut list: Vec<OsString> = Vec::with_capacity(arguments.len());
    for word in arguments {
        let text = word.to_str().unwrap_or("");
        if text.starts_with("strip=") && list.last().is_some_and(|last| last == "-C") {
            list.pop();
        } else if !text.starts_with("-Cstrip=") {
            list.push(word);
        }
    }
    list
}

fn joined(prefix: &str, path: &Path) -> OsString {
    let mut word = OsString::from(prefix);
    word.push(path);
    word
}

/// What a call is about.
#[derive(Default)]
struct Request {
    compiles: bool,
    target: bool,
    executable: bool,
    /// A build script or a proc macro.
    links_host: bool,
    debug_info: bool,
}

impl Request {
    fn read(arguments: &[OsString]) -> Request {
        let mut request = Request::default();
        let words: Vec<&str> = arguments.iter().map(|word| word.to_str().unwrap_or("")).collect();
        for (position, word) in words.iter().enumerate() {
            let next = words.get(position + 1).copied().unwrap_or("");
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if word.starts_with("--") => (name, value),
                _ => (*word, next),
            };
            match name {
                "--crate-name" => request.compiles = true,
                "--target" => request.target = true,
                "--test" => request.executable = true,
                "--crate-type" => {
                    request.executable |= value == "bin";
                    request.links_host |= matches!(value, "bin" | "proc-macro");
                }
                "-C" | "--codegen" => {
                    request.debug_info |= value.starts_with("debuginfo=") && value != "debuginfo=0"
                }
                "-g" => request.debug_info = true,
                _ => request.debug_info |= word.starts_with("-Cdebuginfo=") && *word != "-Cdebuginfo=0",
            }
        }
        // Asking what would be done is not compiling.
        request.compiles &= !words.iter().any(|word| *word == "-" || word.starts_with("--print"));
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            object: "/c/rt.o".into(),
            exports: "/c/exports.list".into(),
            shared: "/c/librt.so".into(),
            sysroot: Some("/c/sysroot".into()),
        }
    }

    fn check(line: &str, by_cargo: bool, expected: &str, bootstrap: bool) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let call = call(&settings(), words, by_cargo);
        let found: Vec<_> = call.arguments.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!((found.join(" "), call.bootstrap), (expected.to_owned(), bootstrap), "{line}");
    }

    const FLAGS: &str = "-Zsanitizer=thread -Zexternal-clangrt -Cllvm-args=-tsan-instrument-read-before-write=1 -Cllvm-args=-tsan-distinguish-volatile=1 --sysroot /c/sysroot";

    #[test]
    fn units_of_the_target_are_instrumented() {
        let line =
            "--crate-name a src/lib.rs --crate-type lib -C debuginfo=2 --target x86_64-unknown-linux-gnu";
        check(line, true, &format!("{FLAGS} {line}"), true);
    }

    #[test]
    fn executables_carry_the_runtime_and_their_names() {
        let line = "--crate-name a src/main.rs --test -C strip=debuginfo --target=x86_64-unknown-linux-gnu";
        let expected = format!(
            "{FLAGS} -Cdebuginfo=line-tables-only -Zpre-link-arg=/c/rt.o -Zpre-link-arg=-Wl,--dynamic-list=/c/exports.list -Cstrip=none --crate-name a src/main.rs --test --target=x86_64-unknown-linux-gnu"
        );
        check(line, true, &expected, true);
    }

    #[test]
    fn host_units_questions_and_probes_are_left_alone() {
        check("-vV", false, "-vV", false);
        check(
            "- --crate-name ___ --print=cfg --target t",
            true,
            "- --crate-name ___ --print=cfg --target t",
            false,
        );
        check("--crate-name probe --target t p.rs", false, "--crate-name probe --target t p.rs", false);
        check("--crate-name a --crate-type lib a.rs", true, "--crate-name a --crate-type lib a.rs", false);
    }

    #[test]
    fn host_programs_may_contain_instrumented_c() {
        let words =
            "--crate-name build_script_build build.rs --crate-type bin".split(' ').map(OsString::from);
        let call = call(&settings(), words.collect(), true);
        assert!(!call.bootstrap);
        assert!(call.arguments.contains(&"-Clink-arg=/c/librt.so".into()));
        assert!(!call.arguments.iter().any(|word| word.to_string_lossy().contains("sanitizer")));
    }
}
