//! Calls of the kernel and the C library by which one thread can make another wait or go on.
//!
//! What pthreads, C11 threads and semaphores offer is not here: the runtime stands before all of it. Here is the rest, with what a call
//! does for the order of threads: it *sends* (what happened before it happens before the return of some other call) or
//! *receives*, through a [`Channel`]. Only a sender in one thread and a receiver in the other can order the two.
//!
//! The runtime follows most of these calls (`raddle-rt`, `interpose/channel.rs`), in online detection and in traces alike. A pair is
//! invisible unless both of its ends are followed.
//!
//! Left out on purpose: calls on regular files and folders. A lock file made with `open(O_EXCL)` or `mkdir` does order threads, but
//! nearly every program opens files in several threads and means nothing by it.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Through what threads reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Pipes, sockets, event counters, timers with descriptors.
    Descriptors,
    Signals,
    /// `semop` and its kin.
    SystemVSemaphores,
    SystemVQueues,
    PosixQueues,
    /// `flock`, `lockf`, locks of `fcntl`.
    FileLocks,
    /// The lock of a `FILE`, taken by name.
    StreamLocks,
    /// Who waits for a child waits for what its parent did before it was started.
    Processes,
    AsynchronousFiles,
    /// Memory that is mapped twice, or that the kernel writes: atomics at one address do not meet those at the other.
    SharedMemory,
    /// `syscall` with a number that is not followed.
    RawSystemCall,
}

/// What a call does for the order of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Sends,
    Receives,
    Both,
}

impl Direction {
    pub fn sends(self) -> bool {
        self != Direction::Receives
    }

    pub fn receives(self) -> bool {
        self != Direction::Sends
    }
}

/// One function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Interface {
    pub name: &'static str,
    pub channel: Channel,
    pub direction: Direction,
    /// The runtime follows it.
    pub is_followed: bool,
    /// It concerns every thread, whoever calls it: a signal handler runs in whichever thread the signal hits.
    pub is_process_wide: bool,
    needs: Needs,
}

/// Without this in the program the call orders nothing: descriptors are then files and terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Needs {
    Nothing,
    /// Something makes a pipe, a socket or an event counter.
    Channel,
    /// Something makes a `FILE` of a descriptor.
    Stream,
}

/// Functions that make descriptors through which threads of one process can reach each other.
const CHANNEL_MAKERS: &[&str] = &[
    "pipe",
    "pipe2",
    "socketpair",
    "socket",
    "eventfd",
    "mkfifo",
    "mkfifoat",
    "mknod",
    "mknodat",
    "timerfd_create",
    "signalfd",
    "inotify_init",
    "inotify_init1",
    "fanotify_init",
    "openpty",
    "forkpty",
    "posix_openpt",
    "getpt",
    "popen",
    "userfaultfd",
    "pidfd_open",
    "mq_open",
];

const STREAM_MAKERS: &[&str] = &["fdopen", "popen", "fopencookie"];

/// With one of these in the program, what is sent by a signal may be read from a descriptor.
const SIGNALS_BY_DESCRIPTOR: &[&str] = &["signalfd"];

/// With one of these, a message sent to a queue may arrive as a signal.
const QUEUES_BY_SIGNAL: &[&str] = &["mq_notify"];

const fn interface(name: &'static str, channel: Channel, direction: Direction) -> Interface {
    Interface { name, channel, direction, is_followed: false, is_process_wide: false, needs: Needs::Nothing }
}

/// A call on a descriptor.
const fn descriptor(name: &'static str, direction: Direction) -> Interface {
    Interface { needs: Needs::Channel, ..interface(name, Channel::Descriptors, direction) }
}

/// A call that the runtime follows.
const fn followed(interface: Interface) -> Interface {
    Interface { is_followed: true, ..interface }
}

/// A call on a `FILE`: the C library reads and writes the descriptor itself, behind the runtime's back.
const fn stream(name: &'static str, direction: Direction) -> Interface {
    Interface { needs: Needs::Stream, ..interface(name, Channel::Descriptors, direction) }
}

const fn handler(name: &'static str) -> Interface {
    Interface { is_process_wide: true, ..interface(name, Channel::Signals, Direction::Receives) }
}

use Channel::*;
use Direction::*;

/// Sorted by channel; [`find`] looks names up.
pub static INTERFACES: &[Interface] = &[
    followed(descriptor("read", Receives)),
    followed(descriptor("readv", Receives)),
    followed(descriptor("recv", Receives)),
    followed(descriptor("recvfrom", Receives)),
    followed(descriptor("recvmsg", Receives)),
    followed(descriptor("accept", Receives)),
    followed(descriptor("accept4", Receives)),
    followed(descriptor("epoll_wait", Receives)),
    followed(descriptor("epoll_pwait", Receives)),
    followed(descriptor("write", Sends)),
    followed(descriptor("writev", Sends)),
    followed(descriptor("send", Sends)),
    followed(descriptor("sendto", Sends)),
    followed(descriptor("sendmsg", Sends)),
    followed(descriptor("connect", Sends)),
    followed(descriptor("shutdown", Sends)),
    followed(descriptor("close", Sends)),
    followed(descriptor("epoll_ctl", Sends)),
    descriptor("poll", Receives),
    descriptor("ppoll", Receives),
    descriptor("select", Receives),
    descriptor("pselect", Receives),
    descriptor("epoll_pwait2", Receives),
    descriptor("recvmmsg", Receives),
    descriptor("preadv2", Receives),
    descriptor("__read_chk", Receives),
    descriptor("__recv_chk", Receives),
    descriptor("__recvfrom_chk", Receives),
    descriptor("__poll_chk", Receives),
    descriptor("eventfd_read", Receives),
    descriptor("timerfd_gettime", Receives),
    descriptor("sendmmsg", Sends),
    descriptor("pwritev2", Sends),
    descriptor("dprintf", Sends),
    descriptor("vdprintf", Sends),
    descriptor("__dprintf_chk", Sends),
    descriptor("eventfd_write", Sends),
    followed(descriptor("timerfd_settime", Sends)),
    followed(descriptor("sendfile", Sends)),
    followed(descriptor("sendfile64", Sends)),
    descriptor("splice", Both),
    descriptor("tee", Both),
    descriptor("vmsplice", Both),
    descriptor("dup2", Sends),
    descriptor("dup3", Sends),
    stream("fread", Receives),
    stream("fgets", Receives),
    stream("fgetc", Receives),
    stream("getc", Receives),
    stream("getline", Receives),
    stream("getdelim", Receives),
    stream("fscanf", Receives),
    stream("__isoc99_fscanf", Receives),
    stream("fwrite", Sends),
    stream("fputs", Sends),
    stream("fputc", Sends),
    stream("putc", Sends),
    stream("fprintf", Sends),
    stream("__fprintf_chk", Sends),
    stream("vfprintf", Sends),
    stream("fflush", Sends),
    stream("fclose", Sends),
    stream("pclose", Both),
    followed(interface("kill", Signals, Sends)),
    interface("killpg", Signals, Sends),
    interface("tgkill", Signals, Sends),
    followed(interface("pthread_kill", Signals, Sends)),
    followed(interface("sigqueue", Signals, Sends)),
    followed(interface("pthread_sigqueue", Signals, Sends)),
    interface("pidfd_send_signal", Signals, Sends),
    interface("timer_settime", Signals, Sends),
    interface("setitimer", Signals, Sends),
    interface("alarm", Signals, Sends),
    interface("ualarm", Signals, Sends),
    followed(interface("sigwait", Signals, Receives)),
    followed(interface("sigwaitinfo", Signals, Receives)),
    followed(interface("sigtimedwait", Signals, Receives)),
    interface("sigsuspend", Signals, Receives),
    interface("sigpause", Signals, Receives),
    interface("sigpending", Signals, Receives),
    interface("pause", Signals, Receives),
    handler("sigaction"),
    handler("signal"),
    handler("bsd_signal"),
    handler("sysv_signal"),
    handler("ssignal"),
    handler("sigset"),
    handler("timer_create"),
    followed(interface("semop", SystemVSemaphores, Both)),
    followed(interface("semtimedop", SystemVSemaphores, Both)),
    followed(interface("semctl", SystemVSemaphores, Both)),
    followed(interface("msgsnd", SystemVQueues, Sends)),
    followed(interface("msgrcv", SystemVQueues, Receives)),
    interface("msgctl", SystemVQueues, Both),
    followed(interface("mq_send", PosixQueues, Sends)),
    followed(interface("mq_timedsend", PosixQueues, Sends)),
    followed(interface("mq_receive", PosixQueues, Receives)),
    followed(interface("mq_timedreceive", PosixQueues, Receives)),
    interface("mq_getattr", PosixQueues, Receives),
    interface("mq_notify", PosixQueues, Receives),
    followed(interface("flock", FileLocks, Both)),
    interface("lockf", FileLocks, Both),
    interface("lockf64", FileLocks, Both),
    followed(interface("fcntl", FileLocks, Both)),
    followed(interface("fcntl64", FileLocks, Both)),
    interface("flockfile", StreamLocks, Both),
    interface("ftrylockfile", StreamLocks, Both),
    interface("funlockfile", StreamLocks, Both),
    interface("fork", Processes, Sends),
    interface("vfork", Processes, Sends),
    interface("posix_spawn", Processes, Sends),
    interface("posix_spawnp", Processes, Sends),
    interface("wait", Processes, Receives),
    interface("wait3", Processes, Receives),
    interface("wait4", Processes, Receives),
    interface("waitpid", Processes, Receives),
    interface("waitid", Processes, Receives),
    interface("aio_read", AsynchronousFiles, Sends),
    interface("aio_write", AsynchronousFiles, Sends),
    interface("aio_fsync", AsynchronousFiles, Sends),
    interface("lio_listio", AsynchronousFiles, Both),
    interface("aio_error", AsynchronousFiles, Receives),
    interface("aio_return", AsynchronousFiles, Receives),
    interface("aio_suspend", AsynchronousFiles, Receives),
    interface("shmat", SharedMemory, Both),
    interface("shm_open", SharedMemory, Both),
    interface("memfd_create", SharedMemory, Both),
    interface("remap_file_pages", SharedMemory, Both),
    interface("process_vm_writev", SharedMemory, Both),
    interface("process_vm_readv", SharedMemory, Both),
    interface("ptrace", SharedMemory, Both),
    interface("clone", RawSystemCall, Both),
    interface("io_setup", RawSystemCall, Both),
    interface("syscall", RawSystemCall, Both),
];

/// System calls that `syscall` may be given without ordering anything, or whose order is followed (`futex`): their numbers on x86-64.
const HARMLESS_NUMBERS: &[u32] = &[
    24,  // sched_yield
    35,  // nanosleep
    39,  // getpid
    96,  // gettimeofday
    102, // getuid
    186, // gettid
    201, // time
    202, // futex
    203, // sched_setaffinity
    204, // sched_getaffinity
    228, // clock_gettime
    230, // clock_nanosleep
    309, // getcpu
    318, // getrandom
];

/// Commands of `fcntl` that lock: `F_SETLK`, `F_SETLKW`, `F_OFD_SETLK`, `F_OFD_SETLKW`.
const LOCK_COMMANDS: &[u32] = &[6, 7, 37, 38];

/// The first two arguments of a call, where the code loads constants into their registers right before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Constants {
    pub first: Option<u32>,
    pub second: Option<u32>,
}

impl Interface {
    /// Do these arguments rule out that the call orders threads unseen? What is not known does not.
    pub fn is_harmless(&self, arguments: Constants) -> bool {
        match self.name {
            "syscall" => arguments.first.is_some_and(|number| HARMLESS_NUMBERS.contains(&number)),
            "fcntl" | "fcntl64" => arguments.second.is_some_and(|command| !LOCK_COMMANDS.contains(&command)),
            _ => false,
        }
    }
}

/// The interface of this name.
pub fn find(name: &str) -> Option<&'static Interface> {
    static NAMES: LazyLock<FxHashMap<&str, &Interface>> =
        LazyLock::new(|| INTERFACES.iter().map(|interface| (interface.name, interface)).collect());
    NAMES.get(name).copied()
}

/// What in the program makes calls meaningful that otherwise order nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Makers {
    channels: bool,
    streams: bool,
    signals_by_descriptor: bool,
    queues_by_signal: bool,
}

impl Makers {
    /// The program uses this function.
    pub fn note(&mut self, name: &str) {
        self.channels |= CHANNEL_MAKERS.contains(&name);
        self.streams |= STREAM_MAKERS.contains(&name);
        self.signals_by_descriptor |= SIGNALS_BY_DESCRIPTOR.contains(&name);
        self.queues_by_signal |= QUEUES_BY_SIGNAL.contains(&name);
    }

    /// Can this call order anything in this program?
    pub fn allow(&self, interface: &Interface) -> bool {
        match interface.needs {
            Needs::Nothing => true,
            Needs::Channel => self.channels,
            Needs::Stream => self.streams && self.channels,
        }
    }

    /// Can what this sender does arrive through this channel?
    fn leads(&self, from: Channel, to: Channel) -> bool {
        from == to
            || self.signals_by_descriptor && (from, to) == (Signals, Descriptors)
            || self.queues_by_signal && (from, to) == (PosixQueues, Signals)
    }

    /// Can the first call, in one thread, order it before the second one, in another, unseen?
    pub fn orders(&self, sender: &Interface, receiver: &Interface) -> bool {
        sender.direction.sends()
            && receiver.direction.receives()
            && self.leads(sender.channel, receiver.channel)
            && !are_followed(sender, receiver)
    }
}

/// Does the runtime order these two? It does through one channel, and where signals are read from descriptors. Who waits for several
/// descriptors by epoll is ordered behind what was done to the epoll descriptor, not behind what was written to those that it
/// watches.
fn are_followed(sender: &Interface, receiver: &Interface) -> bool {
    let is_epoll = |interface: &Interface| interface.name.starts_with("epoll_");
    let meets = sender.channel == receiver.channel
        || (sender.channel, receiver.channel) == (Signals, Descriptors) && !is_epoll(receiver);
    sender.is_followed && receiver.is_followed && meets && is_epoll(sender) == is_epoll(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(name: &str) -> &'static Interface {
        find(name).unwrap_or_else(|| panic!("{name} is an interface"))
    }

    #[test]
    fn names_are_listed_once() {
        let mut names: Vec<&str> = INTERFACES.iter().map(|interface| interface.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// The runtime says itself which calls it follows; both lists must agree.
    #[test]
    fn followed_calls_are_those_of_the_runtime() {
        let system = include_str!("../../../raddle-rt/src/interpose/system.rs");
        let list = system.rsplit_once("stand_in! {").expect("the runtime has the list").1;
        let mut followed: Vec<&str> = list
            .lines()
            .filter_map(|line| {
                let mut words = line.trim().strip_suffix(';')?.split_whitespace();
                Some((words.next()?, words.next()?))
            })
            .filter(|(name, flow)| {
                let direction = match *flow {
                    "In" => Some(Receives),
                    "Out" => Some(Sends),
                    _ => None,
                };
                assert!(direction.is_none_or(|direction| get(name).direction == direction), "{name}");
                direction.is_some() || name.starts_with("sigwait") || *name == "sigtimedwait"
            })
            .map(|(name, _)| name)
            .collect();
        let objects = include_str!("../../../raddle-rt/src/interpose/kernel_objects.rs");
        let list = objects.rsplit_once("export_with_pc! {").expect("the runtime has the list").1;
        followed.extend(list.lines().filter_map(|line| Some(line.trim().split_once(" => ")?.0)));
        followed.extend(["kill", "pthread_kill", "sigqueue", "pthread_sigqueue"]);
        let mut ours: Vec<&str> = INTERFACES
            .iter()
            .filter(|interface| interface.is_followed)
            .map(|interface| interface.name)
            .collect();
        followed.sort_unstable();
        ours.sort_unstable();
        assert_eq!(ours, followed);
    }

    #[test]
    fn a_sender_needs_a_receiver_of_its_channel() {
        let makers = Makers::default();
        assert!(makers.orders(get("flockfile"), get("flockfile")));
        assert!(makers.orders(get("aio_write"), get("aio_suspend")));
        assert!(!makers.orders(get("aio_suspend"), get("aio_write")));
        assert!(!makers.orders(get("aio_write"), get("mq_getattr")));
        for (sender, receiver) in
            [("write", "read"), ("msgsnd", "msgrcv"), ("flock", "flock"), ("semop", "semop")]
        {
            assert!(!makers.orders(get(sender), get(receiver)), "{sender} is followed at both ends");
        }
        assert!(makers.orders(get("write"), get("poll")), "followed at one end only");
        assert!(makers.orders(get("write"), get("epoll_wait")), "followed, but to another object");
        assert!(!makers.orders(get("epoll_ctl"), get("epoll_wait")));
    }

    #[test]
    fn calls_on_files_order_nothing_without_a_pipe() {
        let mut makers = Makers::default();
        assert!(!makers.allow(get("read")) && !makers.allow(get("fgets")) && makers.allow(get("kill")));
        makers.note("fopen");
        assert!(!makers.allow(get("read")));
        makers.note("pipe");
        assert!(makers.allow(get("read")) && !makers.allow(get("fgets")));
        makers.note("fdopen");
        assert!(makers.allow(get("fgets")));
    }

    #[test]
    fn signals_arrive_at_descriptors_that_were_made_for_them() {
        let mut makers = Makers::default();
        assert!(!makers.orders(get("killpg"), get("read")));
        makers.note("signalfd");
        assert!(makers.orders(get("killpg"), get("read")));
        assert!(!makers.orders(get("kill"), get("read")), "followed");
        assert!(makers.orders(get("kill"), get("epoll_wait")), "the epoll descriptor is another object");
        assert!(!makers.orders(get("mq_send"), get("sigwait")));
        makers.note("mq_notify");
        assert!(makers.orders(get("mq_send"), get("sigwait")), "followed, but to another object");
    }

    #[test]
    fn arguments_that_order_nothing() {
        let first = |first| Constants { first, second: None };
        let second = |second| Constants { first: None, second };
        assert!(!get("syscall").is_harmless(first(None)) && !get("syscall").is_harmless(first(Some(218))));
        assert!(get("syscall").is_harmless(first(Some(202))) && get("syscall").is_harmless(first(Some(186))));
        assert!(get("fcntl").is_harmless(second(Some(4))) && !get("fcntl").is_harmless(second(Some(6))));
        assert!(!get("fcntl").is_harmless(second(None)) && !get("kill").is_harmless(second(Some(4))));
    }
}
