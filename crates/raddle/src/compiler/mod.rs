//! Compilers: `raddle cc` and `raddle c++` stand in for gcc and clang and build programs that carry the runtime.
//!
//! A call goes through three steps, one file each: [`choice`] decides which compiler does the work, [`arguments`]
//! reads what the command line asks of it, and [`flags`] says what Raddle puts in front of and behind those arguments.
//! Then this process *becomes* the compiler: its output, its exit status and the signals it gets are its own.

pub mod arguments;
pub mod choice;
pub mod flags;
pub mod response;
pub mod single;

use crate::runtime_files::RuntimeFiles;
use arguments::Request;
use choice::{Compiler, Language};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Why a command line is refused, as one sentence for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// The command that compiles: the chosen compiler with Raddle's arguments around the user's.
pub fn command(language: Language, arguments: Vec<OsString>) -> anyhow::Result<Command> {
    command_of(&Compiler::choose(language)?, arguments)
}

/// The same for a compiler that is known already.
pub fn command_of(compiler: &Compiler, arguments: Vec<OsString>) -> anyhow::Result<Command> {
    let request = Request::read(&arguments);
    let arguments = if request.only_asks() {
        arguments
    } else {
        flags::arguments(
            compiler,
            &request,
            arguments,
            &RuntimeFiles::unpack()?,
            flags::Linking::from_environment()?,
        )?
    };
    let mut command = compiler.command();
    command.args(arguments);
    Ok(command)
}

/// Becomes the compiler. Returns only if it could not be started.
pub fn become_compiler(language: Language, arguments: Vec<OsString>) -> anyhow::Error {
    match command(language, arguments) {
        Ok(mut command) => {
            let error = command.exec();
            anyhow::Error::new(error)
                .context(format!("cannot start {}", command.get_program().to_string_lossy()))
        }
        Err(error) => error,
    }
}
