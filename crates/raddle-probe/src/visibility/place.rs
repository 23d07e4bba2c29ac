//! Places: code that could order threads without Raddle seeing it.

use super::interfaces::{Channel, Interface};
use std::fmt;
use std::path::PathBuf;

/// How likely it is that the code synchronises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strength {
    /// It only reads and writes memory. On x86 that is enough for release and acquire, but most such code does not mean to synchronise.
    Plain,
    /// It has instructions or calls that are there to synchronise: a locked one, a fence, a system call, `pause`.
    Locked,
}

/// What makes the code invisible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A synchronising instruction in a function whose other accesses are instrumented: written in assembly, or by an intrinsic.
    InlineAssembly,
    /// A function that accesses shared memory and was not instrumented: built without `raddle cc`, or marked `no_sanitize`.
    FunctionNotInstrumented,
    /// A shared library (or an executable) of which nothing was rebuilt.
    LibraryNotRebuilt,
    /// A call of the kernel or the C library that orders threads in a way that is not followed.
    KernelInterface(&'static Interface),
}

impl Kind {
    /// Does it change or read the program's own memory unseen: instructions of the program itself, or the kernel at its request?
    pub fn acts_on_memory(self) -> bool {
        match self {
            Kind::InlineAssembly | Kind::FunctionNotInstrumented => true,
            Kind::LibraryNotRebuilt => false,
            Kind::KernelInterface(interface) => {
                matches!(interface.channel, Channel::SharedMemory | Channel::RawSystemCall)
            }
        }
    }
}

/// Where in the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
}

/// One place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// As the module was given.
    pub module: PathBuf,
    /// The name by which the library is known, or the last part of the path.
    pub module_name: String,
    /// Demangled. None for a library as a whole, and where there is no symbol.
    pub function: Option<String>,
    /// In the module's own numbering: the instruction, the function, or the call. 0 for a library as a whole.
    pub address: u64,
    pub source: Option<SourceLine>,
    pub kind: Kind,
    pub strength: Strength,
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strength::Plain => "plain",
            Strength::Locked => "locked",
        })
    }
}

/// For logs and tests; sentences for users are made elsewhere.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::InlineAssembly => f.write_str("inline assembly")?,
            Kind::FunctionNotInstrumented => f.write_str("function not instrumented")?,
            Kind::LibraryNotRebuilt => f.write_str("library not rebuilt")?,
            Kind::KernelInterface(interface) => write!(f, "kernel interface {}", interface.name)?,
        }
        write!(f, " ({}) {}", self.strength, self.module_name)?;
        if let Some(function) = &self.function {
            write!(f, " {function}")?;
        }
        if let Some(SourceLine { file, line }) = &self.source {
            write!(f, " {file}:{line}")?;
        }
        Ok(())
    }
}
