//! CSP: the language CSPM and a refinement checker for it.

pub mod lang;
