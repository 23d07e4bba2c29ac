//! Whose code a frame is in: the user's, or that of a library.
//!
//! The source file decides where it is known: a specialisation of `std::hash` that the user wrote is the user's, a
//! template of `/usr/include` that was instantiated for the user is the library's. Otherwise the name decides, and then
//! the module.

/// Whose code it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Origin {
    #[default]
    User,
    /// The standard libraries, the system's libraries, a package that the user depends on, or this tool's runtime.
    Library,
}

const FOLDERS: [&str; 5] = ["/usr/include/", "/usr/lib/", "/usr/local/include/", "/usr/share/", "/rustc/"];

const PARTS: [&str; 18] = [
    "/include/c++/",
    "/libstdc++-v3/",
    "/libgcc/",
    "/libcxx/",
    "/libcxxabi/",
    "/compiler-rt/",
    "/glibc-",
    "/glibc/",
    "/sysdeps/",
    "/lib/clang/",
    "/rustlib/src/rust/",
    "/library/std/src/",
    "/library/core/src/",
    "/library/alloc/src/",
    "/.cargo/registry/",
    "/.cargo/git/",
    "/cargo/registry/src/",
    "/raddle-rt/src/",
];

const NAMES: [&str; 9] = [
    "std::",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "core::",
    "alloc::",
    "raddle_rt::",
    "__libc_",
    "__rust_",
    "_dl_",
];

/// Code that compilers and the C library add to every program.
const START_NAMES: [&str; 9] = [
    "_start",
    "_init",
    "_fini",
    "frame_dummy",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
    "__tls_init",
    "_Unwind_Resume",
];

const MODULE_FOLDERS: [&str; 4] = ["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"];

const MODULES: [&str; 16] = [
    "libc.so",
    "libc-",
    "libm.so",
    "libpthread",
    "librt.so",
    "libdl.so",
    "ld-linux",
    "libstdc++",
    "libc++",
    "libgcc_s",
    "libgomp",
    "libomp",
    "libiomp",
    "libtsan",
    "libraddle",
    "[vdso]",
];

/// Whose code a place is in.
pub fn origin(file: Option<&str>, function: Option<&str>, module: &str) -> Origin {
    let library = match (file, function) {
        _ if is_system_module(module) => true,
        (Some(file), _) => is_library_file(file),
        (None, Some(function)) => is_library_name(function),
        (None, None) => false,
    };
    if library { Origin::Library } else { Origin::User }
}

fn is_library_file(file: &str) -> bool {
    FOLDERS.iter().any(|folder| file.starts_with(folder)) || PARTS.iter().any(|part| file.contains(part))
}

fn is_library_name(function: &str) -> bool {
    // Demangled templates begin with their result: `void std::__invoke_impl<...>(...)`.
    let head = function.split(['(', '<']).next().unwrap_or(function);
    let path = head.rsplit(' ').next().unwrap_or(head);
    // `<alloc::vec::Vec<T> as core::ops::Drop>::drop` is of the type's library.
    let path = if path.is_empty() { function.trim_start_matches(['<', '&', '*']) } else { path };
    NAMES.iter().any(|name| path.starts_with(name)) || START_NAMES.contains(&path)
}

fn is_system_module(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or(module);
    MODULE_FOLDERS.iter().any(|folder| module.starts_with(folder))
        || MODULES.iter().any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_from_programs() {
        const PROGRAM: &str = "/home/me/bank";
        for (file, function, module) in [
            (Some("/usr/include/c++/12/bits/std_mutex.h"), Some("std::mutex::lock()"), PROGRAM),
            (Some("/usr/lib/llvm-22/include/c++/v1/mutex"), Some("lock"), PROGRAM),
            (Some("/rustc/abc/library/std/src/thread/mod.rs"), Some("bank::f"), PROGRAM),
            (Some("/home/me/.cargo/registry/src/x/rayon/lib.rs"), Some("rayon::join"), PROGRAM),
            (None, Some("std::thread::_M_start_thread()"), PROGRAM),
            (None, Some("void std::__invoke_impl<void, main::{lambda()#1}>()"), PROGRAM),
            (None, Some("<alloc::vec::Vec<bank::A> as core::ops::Drop>::drop"), PROGRAM),
            (None, Some("_start"), PROGRAM),
            (None, Some("pthread_mutex_lock"), "/lib/x86_64-linux-gnu/libc.so.6"),
            (None, None, "/usr/lib/x86_64-linux-gnu/libgomp.so.1"),
            (Some("./nptl/pthread_create.c"), Some("start_thread"), "/opt/glibc/libc.so.6"),
        ] {
            assert_eq!(origin(file, function, module), Origin::Library, "{file:?} {function:?} {module}");
        }
        for (file, function) in [
            (Some("/home/me/bank.cc"), Some("std::hash<Key>::operator()(Key) const")),
            (Some("/home/me/bank.cc"), Some("main")),
            (None, Some("main")),
            (None, Some("bank::run(std::thread&)")),
            (None, Some("<bank::Account as core::ops::Drop>::drop")),
            (None, None),
        ] {
            assert_eq!(origin(file, function, PROGRAM), Origin::User, "{file:?} {function:?}");
        }
    }
}
