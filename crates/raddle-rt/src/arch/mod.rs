//! Everything that knows the processor: system calls, thread-local storage, fast paths, layouts of C library objects.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use x86_64::*;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("raddle-rt supports x86_64 Linux only");
