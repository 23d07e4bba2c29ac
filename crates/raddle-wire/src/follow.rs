//! How a process that finds the region taken gets one of its own.
//!
//! A region belongs to the process that attached first. Every other instrumented process of the tree, whether a script, a build
//! tool or the program itself has started it, *applies* through the same region: it takes an entry, leaves its number there,
//! and waits. While it stands still before its `main`, `raddle` reads what it needs to know of it from `/proc`, makes
//! a region, and answers with the descriptor under which the process can open it (`/proc/PID/fd/N` of the `raddle` process).
//!
//! States go `FREE -> TAKEN -> ASKED -> ANSWERED | REFUSED -> FREE`; the applicant makes all steps but the answer. An
//! entry whose applicant has died is freed by `raddle`.

use core::sync::atomic::{AtomicU32, Ordering};

/// Processes that can apply at the same time; one more waits for an entry.
pub const APPLICATIONS_MAX: usize = 16;

/// Value of [`crate::Header::claimed_pid`] in a region that is for applications only.
pub const CLAIMED_BY_NOBODY: u32 = u32::MAX;

/// Values of [`Application::state`].
pub mod state {
    pub const FREE: u32 = 0;
    pub const TAKEN: u32 = 1;
    pub const ASKED: u32 = 2;
    pub const ANSWERED: u32 = 3;
    pub const REFUSED: u32 = 4;
}

#[repr(C)]
#[derive(Debug)]
pub struct Application {
    /// A futex word.
    pub state: AtomicU32,
    pub pid: AtomicU32,
    /// The descriptor of the new region.
    pub descriptor: AtomicU32,
}

impl Application {
    pub const fn new() -> Application {
        Application {
            state: AtomicU32::new(state::FREE),
            pid: AtomicU32::new(0),
            descriptor: AtomicU32::new(0),
        }
    }

    /// The applicant leaves its number. False: the entry is somebody else's.
    pub fn ask(&self, pid: u32) -> bool {
        let taken = self
            .state
            .compare_exchange(state::FREE, state::TAKEN, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if taken {
            self.pid.store(pid, Ordering::Relaxed);
            self.state.store(state::ASKED, Ordering::Release);
        }
        taken
    }

    /// Who waits for an answer, if somebody does.
    pub fn applicant(&self) -> Option<u32> {
        (self.state.load(Ordering::Acquire) == state::ASKED).then(|| self.pid.load(Ordering::Relaxed))
    }

    /// `raddle` answers; `None`: there is no region for this process. Whoever waits has to be woken.
    pub fn answer(&self, descriptor: Option<u32>) {
        self.descriptor.store(descriptor.unwrap_or(0), Ordering::Relaxed);
        let state = if descriptor.is_some() { state::ANSWERED } else { state::REFUSED };
        self.state.store(state, Ordering::Release);
    }

    /// The applicant takes its answer, once there is one, and frees the entry.
    pub fn take_answer(&self) -> Option<Option<u32>> {
        let answer = match self.state.load(Ordering::Acquire) {
            state::ANSWERED => Some(self.descriptor.load(Ordering::Relaxed)),
            state::REFUSED => None,
            _ => return None,
        };
        self.state.store(state::FREE, Ordering::Release);
        Some(answer)
    }
}

impl Default for Application {
    fn default() -> Self {
        Application::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_serves_one_process_after_the_other() {
        let entry = Application::new();
        assert_eq!(entry.applicant(), None);
        assert!(entry.ask(7) && !entry.ask(8));
        assert_eq!((entry.applicant(), entry.take_answer()), (Some(7), None));
        entry.answer(Some(33));
        assert_eq!((entry.applicant(), entry.ask(8)), (None, false));
        assert_eq!(entry.take_answer(), Some(Some(33)));
        assert!(entry.ask(8));
        entry.answer(None);
        assert_eq!(entry.take_answer(), Some(None));
        assert_eq!(entry.take_answer(), None);
    }
}
