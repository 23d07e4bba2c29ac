//! Starting programs under observation. This is the only crate that starts processes, and these are the files that do it.
//!
//! [`target`] turns what the user wrote into a [`Launch`] (compiling source files on the way), [`inspect`] looks into the
//! program before it is started and refuses what cannot work, [`process`] starts it and stays out of its way,
//! [`recording`] does all of it and keeps the trace.

pub mod demo;
pub mod detecting;
pub mod exploring;
pub mod inspect;
pub mod process;
pub mod recording;
pub mod server;
pub mod shared_sites;
pub mod shrinking;
pub mod steering;
pub mod target;

use crate::compiler::Refusal;
use raddle_trace::region::{Region, RegionConfig};
use std::ffi::OsString;
use std::path::PathBuf;

/// The memory shared with the program, or what to do to get it.
pub fn create_region(config: &RegionConfig) -> Result<Region, Refusal> {
    Region::create(config).map_err(|error| {
        let remedy = match error.raw_os_error() {
            Some(libc::EFBIG) => "`ulimit -f` (the size of files)",
            _ => "`ulimit -v`",
        };
        Refusal(format!(
            "cannot create the memory shared with the program ({error}); raise or remove {remedy}"
        ))
    })
}

/// A program and how it is to be started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Path of the program, found in `PATH` already.
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// Start it with addresses that are the same each time.
    pub fixed_addresses: bool,
    /// Load the runtime into it, because it carries none.
    pub preload: bool,
}

impl Launch {
    /// Program and arguments, for the trace and for messages.
    pub fn words(&self) -> Vec<String> {
        std::iter::once(self.program.as_os_str())
            .chain(self.arguments.iter().map(OsString::as_os_str))
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }
}
