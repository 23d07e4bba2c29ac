//! How long an analysis may take, and how it is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A deadline and a flag that an interrupt handler may set. Cheap to ask.
#[derive(Clone, Debug)]
pub struct Clock {
    deadline: Option<Instant>,
    budget: Option<Duration>,
    stop: Arc<AtomicBool>,
}

impl Clock {
    pub fn unlimited() -> Clock {
        Clock { deadline: None, budget: None, stop: Arc::default() }
    }

    pub fn new(budget: Option<Duration>, stop: Arc<AtomicBool>) -> Clock {
        Clock { deadline: budget.map(|budget| Instant::now() + budget), budget, stop }
    }

    /// A clock that also ends after `budget` from now.
    pub fn at_most(&self, budget: Duration) -> Clock {
        let deadline = Instant::now() + budget;
        let deadline = self.deadline.map_or(deadline, |old| old.min(deadline));
        Clock { deadline: Some(deadline), budget: self.budget.or(Some(budget)), stop: self.stop.clone() }
    }

    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    pub fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn reason(&self) -> String {
        if self.interrupted() {
            return "interrupted".to_owned();
        }
        match self.budget {
            Some(budget) => format!("the time limit of {} s was reached", budget.as_secs_f64()),
            None => "out of time".to_owned(),
        }
    }
}
