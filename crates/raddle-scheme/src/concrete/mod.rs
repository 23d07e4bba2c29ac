//! The concrete machine: what a program really does under a given schedule, and under every schedule.

pub mod canon;
pub mod dpor;
mod environment;
pub mod explore;
pub mod live;
pub mod number;
pub mod prims;
pub mod run;
pub mod schedule;
mod show;
pub mod state;
pub mod step;
pub mod symmetry;
pub mod walk;
