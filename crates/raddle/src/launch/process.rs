//! Starting a program and staying out of its way.
//!
//! The program inherits the three standard streams, the folder and the environment as they are; only `RADDLE_REGION` is
//! added, and `LD_PRELOAD` when the runtime has to be loaded into it.
//!
//! # Signals
//!
//! Raddle has to live until the program is gone, or the end of the trace is lost. So it catches SIGINT, SIGTERM, SIGHUP and
//! SIGQUIT and leaves it to the program what they mean: one sent to Raddle by another process is passed on; one that
//! comes from the terminal (the kernel is its sender) has reached the program already, because a terminal signals the
//! whole foreground group.

use super::{Launch, Streams};
use crate::interrupt;
use crate::runtime_files::RuntimeFiles;
use anyhow::Context;
use raddle_trace::region::Region;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A program that runs.
pub struct Running {
    child: Child,
    forwarding: Forwarding,
}

/// Passes signals on to a program.
pub struct Forwarding {
    signals: signal_hook::iterator::Handle,
    /// Gives back what it listened to: closing it writes to a pipe, and a pipe without a reader would end Raddle.
    thread: JoinHandle<SignalsInfo<WithOrigin>>,
}

/// Signals that are caught for a program which has not been started yet: none may end Raddle while the program lives.
pub struct Caught(SignalsInfo<WithOrigin>);

impl Caught {
    pub fn now() -> anyhow::Result<Caught> {
        SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])
            .context("cannot catch signals")
            .map(Caught)
    }

    /// The program runs: signals are passed on to it from here.
    pub fn pass_to(self, child: &Child) -> Forwarding {
        let mut signals = self.0;
        let handle = signals.handle();
        let pid = Pid::from_child(child);
        let thread = std::thread::spawn(move || {
            for origin in &mut signals {
                if origin.cause != Cause::Kernel
                    && let Some(signal) = Signal::from_named_raw(origin.signal)
                {
                    // The program may be gone by now; then there is nobody to tell.
                    let _ = kill_process(pid, signal);
                }
            }
            signals
        });
        Forwarding { signals: handle, thread }
    }
}

impl Forwarding {
    /// The program is gone.
    pub fn end(self) {
        self.signals.close();
        let _ = self.thread.join();
    }
}

/// Bytes of the region's path: more than any process and descriptor need.
const REGION_PATH_BYTES: usize = 40;

/// Where the program finds the region. Always of one length: the environment lies above the program's stack, so the addresses
/// of its variables would depend on how many digits this process's number has.
pub fn region_path(region: &Region) -> String {
    format!("{:/>REGION_PATH_BYTES$}", region.env_value())
}

/// Starts the program with the region in its environment.
pub fn start(launch: &Launch, region: &Region, streams: Streams) -> anyhow::Result<Running> {
    let mut command = launch.command(region, streams)?;
    let caught = Caught::now()?;
    let child = launch.spawn(&mut command)?;
    let forwarding = caught.pass_to(&child);
    Ok(Running { child, forwarding })
}

impl Running {
    /// Waits for the program to end. `look` is called now and then.
    pub fn wait(mut self, mut look: impl FnMut()) -> anyhow::Result<ExitStatus> {
        let status = wait_while(&mut self.child, |_| {
            look();
            Ok(())
        });
        self.done(status)
    }

    /// Waits for a program that nobody watches; after `timeout` it is ended, and when Raddle is to stop.
    pub fn wait_within(mut self, timeout: Duration) -> anyhow::Result<ExitStatus> {
        let started = Instant::now();
        let status = wait_while(&mut self.child, |child| {
            match started.elapsed() > timeout || interrupt::signal().is_some() {
                true => child.kill(),
                false => Ok(()),
            }
        });
        self.done(status)
    }

    fn done(self, status: std::io::Result<ExitStatus>) -> anyhow::Result<ExitStatus> {
        let status = status.context("cannot wait for the program")?;
        self.forwarding.end();
        Ok(status)
    }
}

fn wait_while(
    child: &mut Child,
    mut look: impl FnMut(&mut Child) -> std::io::Result<()>,
) -> std::io::Result<ExitStatus> {
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        look(child)?;
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// A program whose supervisor is killed must not go on: under steering it might wait, or spin, for ever.
pub fn die_with_us(command: &mut Command) {
    // SAFETY: `prctl` is a bare system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == -1 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// Our library first, then what was there.
pub fn with_preload(runtime: &RuntimeFiles) -> OsString {
    let mut value = runtime.shared().into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    value
}

/// Starts the program with addresses that are the same each time.
pub fn fix_addresses_of(command: &mut Command) {
    // SAFETY: `personality` is a bare system call, which is allowed between fork and exec.
    unsafe { command.pre_exec(fix_addresses) };
}

fn fix_addresses() -> std::io::Result<()> {
    // SAFETY: the call takes no pointers.
    let before = unsafe { libc::personality(0xffff_ffff) };
    // SAFETY: as above.
    let after = unsafe { libc::personality((before | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong) };
    if before == -1 || after == -1 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

/// The status a shell would report: the program's own, or 128 and the signal's number.
pub fn shell_status(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => 128u8.wrapping_add(signal as u8),
        (None, None) => 255,
    }
}

/// How the program ended, as the end of a sentence.
pub fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => {
            let core = if status.core_dumped() { " (core dumped)" } else { "" };
            format!("was ended by {}{core}", raddle_trace::file::meta::signal_name(signal))
        }
        (None, None) => "ended in an unknown way".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_trace::region::RegionConfig;

    #[test]
    fn the_path_of_a_region_has_one_length_and_leads_to_it() {
        let region = Region::create(&RegionConfig::default()).unwrap();
        let path = region_path(&region);
        assert_eq!(path.len(), REGION_PATH_BYTES);
        assert!(std::fs::File::open(path).is_ok());
    }
}
