//! The refinement engine.
//!
//! ```text
//! term --firing--> leaf machines --bisimulation--> components --rules--> combinator --search--> verdict
//! ```
//!
//! The way in is `check(&mut Processes, &mut dyn Definitions, &Assertion, &CheckOptions) -> Result<Outcome, CheckError>`.

pub mod verdict;
