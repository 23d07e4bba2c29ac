//! What `raddle run` does with what the runtime reports: names ([`finding`]), lock orders ([`lock_order`]) and settings ([`options`]).

pub mod finding;
pub mod lock_order;
pub mod options;
