//! Code that is not counted: runtimes whose synchronisation the interposed functions show, Raddle's own runtime, and what compilers
//! and linkers add to a program.

use crate::image::Function;
use rustc_hash::FxHashSet;
use std::sync::LazyLock;

/// Libraries by the beginning of their names, up to `.so`. What programs synchronise through in them is interposed, and what they do
/// behind it is their own affair. Others (OpenMP's, TBB, liburcu, libatomic, ...) have locks that nothing stands before.
const KNOWN_LIBRARIES: &[&str] = &[
    "ld-linux-x86-64",
    "libanl",
    "libc",
    "libc++",
    "libc++abi",
    "libdl",
    "libgcc_s",
    "libm",
    "libmvec",
    "libnsl",
    "libnss_compat",
    "libnss_dns",
    "libnss_files",
    "libpthread",
    "libraddle_rt",
    "libresolv",
    "librt",
    "libstdc++",
    "libunwind",
    "libutil",
    "linux-vdso",
    "linux-gate",
];

/// Is this a library whose synchronisation is interposed?
pub fn is_known_library(name: &str) -> bool {
    let stem = name.find(".so").map_or(name, |at| &name[..at]);
    // The C library's files were called `libc-2.31.so` once.
    let stem = stem.find("-2.").map_or(stem, |at| &stem[..at]);
    stem == "[vdso]" || KNOWN_LIBRARIES.contains(&stem) || stem == "ld"
}

/// The symbol table says this before the runtime's local symbols.
const RUNTIME_UNIT: &str = "raddle_rt.o";

/// Is this function part of Raddle's runtime, which an executable carries? Of the global names, those of the compilers' interface and of
/// Raddle are the runtime's alone; those that it interposes are weak, and a strong one is the program's own.
pub fn is_raddle(function: &Function) -> bool {
    function.unit == Some(RUNTIME_UNIT)
        || function.name.is_some_and(|name| {
            is_hook(name) || name.starts_with("raddle_") || function.is_weak && is_interposed(name)
        })
}

/// One of the functions that compilers call for every access.
pub fn is_hook(name: &str) -> bool {
    name.starts_with("__tsan_")
}

/// Does a call of this hook stand for a plain access of the function? clang puts the hooks for entering and leaving a function, and those
/// for atomics, into functions that are marked `no_sanitize` too; a function with no others has no plain accesses of its own to shared
/// memory, or they are not instrumented.
pub fn is_access_hook(name: &str) -> bool {
    const OTHERS: &[&str] =
        &["__tsan_func_", "__tsan_atomic", "__tsan_init", "__tsan_ignore_", "__tsan_mutex_"];
    is_hook(name) && !OTHERS.iter().any(|prefix| name.starts_with(prefix))
}

/// The runtime's list of exported names, one a line.
const EXPORTS: &str = include_str!("../../../raddle-rt/exports.txt");

fn is_interposed(name: &str) -> bool {
    static NAMES: LazyLock<FxHashSet<&str>> =
        LazyLock::new(|| EXPORTS.lines().map(|line| line.split('#').next().unwrap_or("").trim()).collect());
    NAMES.contains(name)
}

/// Start-up code, and what the C library adds to every program from `libc_nonshared.a`.
const ADDED: &[&str] = &[
    "_start",
    "_init",
    "_fini",
    "_dl_relocate_static_pie",
    "deregister_tm_clones",
    "register_tm_clones",
    "__do_global_dtors_aux",
    "__do_global_ctors_aux",
    "frame_dummy",
    "__libc_csu_init",
    "__libc_csu_fini",
    "__stack_chk_fail_local",
    "atexit",
    "at_quick_exit",
    "pthread_atfork",
    "__pthread_atfork",
    "stat",
    "fstat",
    "lstat",
    "stat64",
    "fstat64",
    "lstat64",
    "fstatat",
    "fstatat64",
    "mknod",
    "mknodat",
    "__clang_call_terminate",
];

/// Adjusting thunks, thread-local wrappers and their initialisers: made by the compiler, never instrumented.
const ADDED_PREFIXES: &[&str] =
    &["_ZThn", "_ZTv", "_ZTc", "_ZTW", "_ZTH", "__x86.get_pc_thunk", "__llvm_", "asan.", "tsan."];

/// Did a compiler or linker make this function by itself?
pub fn is_added(name: &str) -> bool {
    ADDED.contains(&name) || ADDED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries() {
        for known in [
            "libc.so.6",
            "ld-linux-x86-64.so.2",
            "libstdc++.so.6",
            "libm.so.6",
            "libc-2.31.so",
            "linux-vdso.so.1",
            "libgcc_s.so.1",
        ] {
            assert!(is_known_library(known), "{known}");
        }
        for other in [
            "libgomp.so.1",
            "libomp.so.5",
            "libtbb.so.12",
            "liburcu.so.8",
            "libz.so.1",
            "libcrypto.so.3",
            "libatomic.so.1",
            "plug.so",
        ] {
            assert!(!is_known_library(other), "{other}");
        }
    }

    #[test]
    fn names_of_the_runtime() {
        let function = |name, is_weak| Function { name: Some(name), start: 0, end: 1, unit: None, is_weak };
        assert!(is_raddle(&function("__tsan_read4", false)));
        assert!(is_raddle(&function("read", true)));
        assert!(!is_raddle(&function("read", false)), "the program's own");
        assert!(!is_raddle(&function("worker", true)));
        let local = Function { unit: Some("raddle_rt.o"), ..function("worker", false) };
        assert!(is_raddle(&local));
    }

    #[test]
    fn added_functions() {
        assert!(
            is_added("_start") && is_added("_ZThn8_N1A1fEv") && !is_added("main") && !is_added("_ZN1A1fEv")
        );
    }
}
