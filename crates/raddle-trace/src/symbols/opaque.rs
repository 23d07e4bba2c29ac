//! Types whose inside is nobody's business: synchronisation objects and what the standard libraries define. The access
//! path of an object ends there, `lock` and not `lock.__data.__lock`, `v` and not `v._M_impl._M_start`.

/// Type names of C that hide a structure.
const OPAQUE_NAMES: [&str; 22] = [
    "sem_t",
    "mtx_t",
    "cnd_t",
    "once_flag",
    "omp_lock_t",
    "omp_nest_lock_t",
    "FILE",
    "_IO_FILE",
    "DIR",
    "jmp_buf",
    "sigjmp_buf",
    "sigset_t",
    "__sigset_t",
    "fd_set",
    "va_list",
    "__mbstate_t",
    "GMutex",
    "GCond",
    "GRWLock",
    "GRecMutex",
    "GOnce",
    "QMutex",
];

/// Namespaces of libraries. `std` is C++'s and Rust's.
const OPAQUE_NAMESPACES: [&str; 15] = [
    "std::",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "core::",
    "alloc::",
    "boost::",
    "tbb::",
    "absl::",
    "folly::",
    "parking_lot::",
    "parking_lot_core::",
    "lock_api::",
    "crossbeam_utils::",
    "once_cell::",
    "tokio::",
];

/// What a path does at a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// Members are named.
    Named,
    /// The path ends here.
    Hidden,
    /// The only member is the object itself for whoever uses it (`std::array`).
    Transparent,
}

/// How far a path goes into a type of this qualified name.
pub fn inside(qualified: &str) -> Inside {
    // All of POSIX threads' types, and C11's and liburcu's kin, are opaque by their standard.
    if qualified.starts_with("pthread_") || OPAQUE_NAMES.contains(&qualified) {
        return Inside::Hidden;
    }
    if !OPAQUE_NAMESPACES.iter().any(|namespace| qualified.starts_with(namespace)) {
        return Inside::Named;
    }
    let is = |template: &str| {
        let rest = qualified.strip_prefix("std::").map(|rest| rest.strip_prefix("__1::").unwrap_or(rest));
        rest.is_some_and(|rest| rest.starts_with(template))
    };
    match () {
        // Their members are public by the standard.
        _ if is("pair<") => Inside::Named,
        _ if is("array<") => Inside::Transparent,
        _ => Inside::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_end_at_synchronisation_and_libraries() {
        for hidden in [
            "pthread_mutex_t",
            "pthread_rwlock_t",
            "sem_t",
            "std::mutex",
            "std::atomic<int>",
            "std::vector<int, std::allocator<int> >",
            "std::__1::mutex",
            "core::sync::atomic::AtomicUsize",
            "parking_lot::Mutex",
        ] {
            assert_eq!(inside(hidden), Inside::Hidden, "{hidden}");
        }
        assert_eq!(inside("std::array<int, 4>"), Inside::Transparent);
        for named in ["std::pair<int, int>", "account", "bank::std", "stdx::thing"] {
            assert_eq!(inside(named), Inside::Named, "{named}");
        }
    }
}
