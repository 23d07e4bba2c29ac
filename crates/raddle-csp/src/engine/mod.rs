//! The refinement engine.
//!
//! ```text
//! term --firing--> leaf machines --bisimulation--> components --rules--> combinator --search--> verdict
//! ```
//!
//! The way in is `check(&mut Processes, &mut dyn Definitions, &Assertion, &CheckOptions) -> Result<Outcome, CheckError>`.

pub mod bisimulation;
pub mod combinator;
pub mod compile;
pub mod compress;
pub mod describe;
pub mod explicate;
pub mod firing;
pub mod layout;
pub mod machine;
pub mod model;
pub mod rules;
pub mod verdict;
