//! What kind of trace is wanted.

/// What a generated trace looks like. Counts of zero leave a primitive out.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Events to aim at; the trace gets a little longer while threads release what they hold and end.
    pub events: u64,
    /// Threads in all, main included.
    pub threads: u32,
    pub variables: u32,
    pub locks: u32,
    pub rwlocks: u32,
    pub conditions: u32,
    pub barriers: u32,
    pub semaphores: u32,
    pub atomics: u32,
    pub onces: u32,
    /// Different code locations to choose from.
    pub locations: u32,
    /// A thread holds at most so many locks at once.
    pub nesting_max: u32,
    /// Share of plain accesses that write.
    pub write_percent: u32,
    /// Share of variables that are accessed only under "their" mutex (number modulo `locks`).
    pub guarded_percent: u32,
    /// Share of variables that are accessed by one thread only.
    pub private_percent: u32,
    /// How often the thread that moved last moves again.
    pub sticky_percent: u32,
    /// Share of steps that are a lock operation.
    pub lock_percent: u32,
    /// Share of steps that are one of the other synchronisation operations (if the shape has any).
    pub other_percent: u32,
    /// How often a child that holds nothing ends instead of going on, and its parent joins it.
    pub end_percent: u32,
    /// Write a `Request` before each blocking acquisition, and let the thread block there. The trace may then end in a
    /// deadlock, as a recorded one may.
    pub requests: bool,
    /// Try-locks that fail, waits that time out.
    pub failures: bool,
    /// `AtomicBegin` / `AtomicEnd` regions.
    pub regions: bool,
    /// Accesses of 1, 2, 4 and 8 bytes at any aligned offset of a variable's 8 bytes, instead of all 8.
    pub mixed_sizes: bool,
    /// Memory orders other than sequentially consistent, and fences.
    pub weak_orders: bool,
    /// `Custom` events (calls, for contracts and order detectors).
    pub calls: u32,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            events: 60,
            threads: 3,
            variables: 3,
            locks: 2,
            rwlocks: 0,
            conditions: 0,
            barriers: 0,
            semaphores: 0,
            atomics: 0,
            onces: 0,
            locations: 40,
            nesting_max: 2,
            write_percent: 50,
            guarded_percent: 0,
            private_percent: 0,
            sticky_percent: 50,
            lock_percent: 45,
            other_percent: 0,
            end_percent: 2,
            requests: false,
            failures: false,
            regions: false,
            mixed_sizes: false,
            weak_orders: false,
            calls: 0,
        }
    }
}

impl Shape {
    /// Mutexes, forks, joins and plain accesses only: the traces of the papers.
    pub fn locks_only(threads: u32, locks: u32, variables: u32, events: u64) -> Shape {
        Shape { threads, locks, variables, events, ..Shape::default() }
    }

    /// One or two of everything.
    pub fn everything(threads: u32, events: u64) -> Shape {
        Shape {
            threads,
            events,
            rwlocks: 1,
            conditions: 1,
            barriers: 1,
            semaphores: 1,
            atomics: 2,
            onces: 1,
            other_percent: 25,
            lock_percent: 30,
            failures: true,
            weak_orders: true,
            ..Shape::default()
        }
    }

    /// The traces of the detectors' speed bar: 8 threads, 16 locks, 16,000 variables.
    pub fn bench(events: u64) -> Shape {
        Shape {
            events,
            threads: 8,
            locks: 16,
            variables: 16_000,
            locations: 2_000,
            nesting_max: 3,
            write_percent: 30,
            guarded_percent: 60,
            private_percent: 35,
            sticky_percent: 90,
            lock_percent: 20,
            end_percent: 0,
            ..Shape::default()
        }
    }
}
