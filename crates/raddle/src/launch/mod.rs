//! Starting programs under observation. This is the only crate that starts processes, and these are the files that do it.
//!
//! [`target`] turns what the user wrote into a [`Launch`] (compiling source files on the way), [`inspect`] looks into the
//! program before it is started and refuses what cannot work, [`process`] starts it and stays out of its way,
//! [`recording`] does all of it and keeps the trace.

pub mod inspect;
pub mod process;
pub mod recording;
pub mod steering;
pub mod target;

use std::ffi::OsString;
use std::path::PathBuf;

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
