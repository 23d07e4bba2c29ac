//! How Rust programs are built so that Raddle can watch them.
//!
//! rustc has the same ThreadSanitizer pass as clang. Three things stand between it and a useful tool:
//!
//! 1. *The standard library is compiled already*, without the pass. What its slow paths order (a contended `Mutex`, a `Condvar`,
//!    `park`) would be invisible, and correct programs would be accused. So an instrumented copy is built once for each toolchain
//!    from the user's own `rust-src` ([`sysroot`]) and kept in the cache folder.
//! 2. *std's locks are words that atomics change.* A predictor cannot know that two such words exclude each other. Three files
//!    of the copy are replaced by ones that use the C library's locks in place ([`std_locks`]), which the runtime sees as locks.
//! 3. *The pass is behind `-Z`*, and `RUSTC_BOOTSTRAP` in the environment would change what build scripts find out about the
//!    compiler. So the flags are added by a wrapper around rustc ([`wrapper`]) to units of the target alone: neither build scripts,
//!    nor proc macros, nor cargo itself see any of it.
//!
//! **Architecture Invariant:** starts compilers and nothing else; never the program under test.

pub mod artifacts;
pub mod std_locks;
pub mod sysroot;
pub mod toolchain;
pub mod wrapper;
