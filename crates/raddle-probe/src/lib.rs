//! What can be known about a program from its files alone: where code is, what it calls, which of it Raddle can observe.
//!
//! [`image`] reads one ELF file: its code, its functions, the slots through which it calls others. [`visibility`] says which code of a
//! process could synchronise threads without Raddle seeing it. [`aspect`] is the language in which users name events of a program.
//!
//! **Architecture Invariant:** never runs a program. Every file is hostile: no panic, no unbounded allocation, an error that names
//! the file.

pub mod aspect;
pub mod image;
pub mod locate;
pub mod plan;
pub mod visibility;
