//! Systematic search: every schedule of a program, up to equivalence, each once.
//!
//! The search is stateless: a program is run again and again, each time along a prefix and then on by itself, and what it did is
//! looked at afterwards. What runs it is an [`Executor`]; the search does not know whether that is a process, a fiber or a
//! model in a test. What comes back is a [`Run`]: the operations that were performed, in order, with who else could have gone.
//!
//! [`search`] holds the path of the depth-first search and drives it; a *reduction* says which alternatives have to be tried.
//! One file each: [`dpor`], [`source`], [`optimal`]; `none` and `sleep` try everybody who can go and need none. A bounded
//! search ([`bounded`]) tries cheap schedules first and recognises states by their histories.

pub mod bounded;
pub mod dpor;
pub mod history;
pub mod objects;
pub mod optimal;
pub mod reading;
pub mod run;
pub mod search;
pub mod source;
pub mod weights;

pub use run::{Executor, Order, Reduction, Run, Step, ThreadId};
pub use search::{Search, Statistics};
