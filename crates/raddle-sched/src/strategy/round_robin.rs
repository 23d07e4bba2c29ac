//! `round-robin`: threads take one visible operation each, in order of creation.

use super::Strategy;
use crate::courtesy::Yields;
use crate::roster::ThreadIx;
use crate::view::{Tools, View};

pub struct RoundRobin;

impl Strategy for RoundRobin {
    fn pick(&mut self, view: &View<'_, '_>, _tools: &mut Tools<'_>) -> ThreadIx {
        view.next_after(view.progress.last)
    }
    fn yields(&self) -> Yields {
        Yields::Always
    }
}
