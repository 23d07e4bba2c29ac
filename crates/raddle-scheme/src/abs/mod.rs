//! The abstract machine.

pub mod explore;
pub mod gc;
pub mod space;
pub mod step;
pub mod trie;
pub mod twins;
pub mod value;
