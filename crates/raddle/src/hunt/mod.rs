//! From a recorded run to findings: predict, replay each prediction, and say what came of it.
//!
//! The algorithms live in `raddle-predict`; here its candidates are written out as schedules ([`confirm`]), replayed in
//! processes of their own, and turned into findings that a person can read ([`explain`]).

pub mod confirm;
pub mod explain;
