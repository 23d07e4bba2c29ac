//! Signals that ask Raddle itself to stop.
//!
//! A signal while the tested program runs is the program's: it is passed on or has reached it already
//! (`launch/process.rs`), and Raddle goes on to look at what the run has shown; that is how people end a program that hangs.
//! A signal after that ends what is going on: replays are killed, what was found is stored and shown. Where nothing can
//! be stopped halfway, a further signal ends Raddle at once.

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Signals so far, and the last of them.
struct Heard {
    signal: Arc<AtomicUsize>,
    /// How many of them were for the program.
    passed: AtomicUsize,
    count: Arc<AtomicUsize>,
}

static HEARD: OnceLock<Heard> = OnceLock::new();

/// From now on signals are noted instead of ending this process.
pub fn watch() -> anyhow::Result<()> {
    let heard = HEARD.get_or_init(|| Heard {
        signal: Arc::new(AtomicUsize::new(0)),
        passed: AtomicUsize::new(0),
        count: Arc::new(AtomicUsize::new(0)),
    });
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        let (count, last) = (Arc::clone(&heard.count), Arc::clone(&heard.signal));
        let number = usize::try_from(signal).unwrap_or_default();
        let note = move || {
            last.store(number, Ordering::Release);
            let so_far = count.fetch_add(1, Ordering::AcqRel);
            if so_far >= SIGNALS_MAX {
                // SAFETY: `_exit` may be called in a handler.
                unsafe { libc::_exit(128 + signal) };
            }
        };
        // SAFETY: the action stores two numbers or leaves the process, which a handler may do.
        unsafe { signal_hook::low_level::register(signal, note) }.context("cannot catch signals")?;
    }
    Ok(())
}

/// From now on signals are noted, and `stop` is set by each.
pub fn stop_at_signals(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    watch()?;
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(stop)).context("cannot catch signals")?;
    }
    Ok(())
}

/// Who insists is let go.
const SIGNALS_MAX: usize = 3;

/// The program has ended. Signals until now were for it; says which came, if one did.
pub fn program_ended() -> Option<i32> {
    let heard = HEARD.get()?;
    let count = heard.count.load(Ordering::Acquire);
    let before = heard.passed.swap(count, Ordering::AcqRel);
    (count > before).then(|| signal_number(heard))
}

/// Is Raddle to stop? The signal that says so.
pub fn signal() -> Option<i32> {
    let heard = HEARD.get()?;
    let more = heard.count.load(Ordering::Acquire) > heard.passed.load(Ordering::Acquire);
    more.then(|| signal_number(heard))
}

fn signal_number(heard: &Heard) -> i32 {
    i32::try_from(heard.signal.load(Ordering::Acquire)).unwrap_or(SIGINT)
}

/// The exit status of a command that was interrupted before it found anything.
pub fn status(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(130)
}
