//! What `raddle run` does with what the runtime reports: names ([`finding`]) and what could explain it away ([`known`]), lock orders
//! ([`lock_order`]) and settings ([`options`]).

mod finding;
pub mod known;
pub mod lock_order;
pub mod options;

pub use finding::NAME;
