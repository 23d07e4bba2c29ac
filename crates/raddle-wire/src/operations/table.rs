//! The lines of the table. Their columns are explained in [`super`].

/// The table. Hands its lines to the macro that is named, which makes of them what it needs: here [`SyncOp`], in `raddle-trace` the
/// events with their encoding, decoding and description.
#[macro_export]
macro_rules! operation_table {
    ($make:ident) => {
        $make! {
    //  name             no   word                object     effect      blocks  outcome order    segment step                 payload
        events {
            /// A thread began. object: start routine; arg: index of the parent thread. First event of a thread.
            Start           = 1  "start"             Thread     Begins      -       Done   Acquires ends    Start  {} {parent: Parent};
            /// object: index of the new thread. Written *before* the child can run.
            Fork            = 3  "fork"              Thread     Forks       -       Done   Releases ends    Fork   {child: Thread} {};
            /// object: index of the joined thread.
            Join            = 4  "join"              Thread     Joins       blocks  Done   Acquires ends    Join   {child: Thread} {};
            /// try/timed join that gave up. object: index of the thread.
            JoinFailed      = 5  "join-failed"       Thread     Joins       -       Failed None     -       Join   {child: Thread} {};
            Detach          = 6  "detach"            Thread     Nothing     -       Done   None     ends    Detach {child: Thread} {};
            /// object: mutex, rwlock in write mode, or spin lock; arg: [`lock`] bits.
            Lock            = 7  "lock"              Lock       Locks       blocks  Done   Acquires ends    Lock / Relock {lock: Object} {flags: LockFlags};
            LockFailed      = 8  "lock-failed"       Lock       Locks       -       Failed None     -       Lock   {lock: Object} {flags: LockFlags};
            ReadLock        = 9  "read-lock"         Lock       LocksShared blocks  Done   Acquires ends    ReadLock {lock: Object} {flags: LockFlags};
            ReadLockFailed  = 10 "read-lock-failed"  Lock       LocksShared -       Failed None     -       ReadLock {lock: Object} {flags: LockFlags};
            /// Written *before* the lock is released. arg: [`lock`] bits.
            Unlock          = 11 "unlock"            Lock       Unlocks     -       Done   Releases ends    Unlock / - {lock: Object} {flags: LockFlags};
            /// *Before* a lock operation that has to wait. arg: [`lock`] bits (READ for a read lock).
            Request         = 12 "request"           Lock       Asks        -       Done   None     -       -      {lock: Object} {flags: LockFlags, read: ReadMode};
            /// object: condition variable. Written *before* the signal is sent.
            Signal          = 13 "signal"            Condition  Signals     -       Done   Releases ends    Signal {cond: Object} {};
            Broadcast       = 14 "broadcast"         Condition  SignalsAll  -       Done   Releases ends    Broadcast {cond: Object} {};
            /// *Before* a thread waits on a condition. object: condition; arg: low 48 bits of the mutex. Follows the Unlock of that mutex.
            WaitBegin       = 15 "wait-begin"        Condition  BeginsWait  -       Done   None     ends    Wait   {cond: Object} {lock: MutexOfWait};
            /// The wait returned, was signalled. Followed by the Lock of the mutex.
            Wait            = 16 "wait"              Condition  IsWoken     blocks  Done   Acquires ends    Wake   {cond: Object} {lock: SameMutex};
            /// The wait timed out. Followed by the Lock of the mutex.
            WaitFailed      = 17 "wait-failed"       Condition  IsWoken     -       Failed None     ends    Wake   {cond: Object} {lock: SameMutex};
            /// arg: count.
            BarrierInit     = 18 "barrier-init"      Barrier    Creates     -       Done   None     ends    -      {barrier: Object} {count: Number};
            BarrierEnter    = 19 "barrier-enter"     Barrier    Enters      -       Done   Releases ends    BarrierEnter {barrier: Object} {};
            BarrierExit     = 20 "barrier-exit"      Barrier    Leaves      blocks  Done   Acquires ends    BarrierExit {barrier: Object} {};
            /// arg: value.
            SemInit         = 22 "sem-init"          Semaphore  Creates     -       Done   None     ends    -      {sem: Object} {value: Number};
            SemWait         = 23 "sem-wait"          Semaphore  Takes       blocks  Done   Acquires ends    SemWait {sem: Object} {};
            SemWaitFailed   = 24 "sem-wait-failed"   Semaphore  Takes       -       Failed None     -       SemWait {sem: Object} {};
            /// *Before* the post.
            SemPost         = 25 "sem-post"          Semaphore  Gives       -       Done   Releases ends    SemPost {sem: Object} {};
            /// *Before* a semaphore wait that has to wait.
            SemRequest      = 26 "sem-request"       Semaphore  Asks        -       Done   None     -       -      {sem: Object} {};
            /// This thread runs the initialiser. object: the once control or guard variable.
            OnceBegin       = 27 "once-begin"        Once       OnceBegins  -       Done   Acquires ends    OnceBegin {once: Object} {};
            OnceEnd         = 28 "once-end"          Once       OnceEnds    -       Done   Releases ends    OnceEnd {once: Object} {};
            /// The initialiser had been run by somebody else, and this thread now knows.
            OncePassed      = 29 "once-passed"       Once       OncePasses  blocks  Done   Acquires ends    OncePassed {once: Object} {};
            /// object: futex word; arg: number of threads woken at most.
            FutexWake       = 37 "futex-wake"        Futex      Sends       -       Done   Releases ends    FutexWake {word: Address} {count: Number};
            FutexWait       = 38 "futex-wait"        Futex      Receives    blocks  Done   Acquires ends    FutexWait {word: Address} {};
            FutexWaitFailed = 39 "futex-wait-failed" Futex      Receives    -       Failed None     ends    FutexWait {word: Address} {};
            /// A signal handler began. object: signal number.
            SignalEnter     = 40 "signal-enter"      Signal     Nothing     -       Done   None     ends    -      {signal: Number} {};
            SignalExit      = 41 "signal-exit"       Signal     Nothing     -       Done   None     ends    -      {signal: Number} {};
            /// object: process id of the child.
            ProcessFork     = 42 "process-fork"      Nothing    Nothing     -       Done   None     ends    -      {pid: Number} {};
            /// The program is about to become another one. Followed by Text: the path.
            ProcessExec     = 43 "process-exec"      Nothing    Nothing     -       Done   None     ends    -      {} {} path;
            /// object: exit status.
            ProcessExit     = 44 "process-exit"      Nothing    Nothing     -       Done   None     ends    -      {status: Status} {};
            /// `RADDLE_EVENT(name, pointer)`. object: the pointer; followed by Text: the name.
            Custom          = 46 "custom"            Annotated  Nothing     -       Done   None     ends    Custom {object: Object} {} name;
            /// `RADDLE_ATOMIC_BEGIN/END`. Followed by Text: the name, if any.
            AtomicBegin     = 47 "atomic-begin"      Nothing    Nothing     -       Done   None     ends    -      {} {} name;
            AtomicEnd       = 48 "atomic-end"        Nothing    Nothing     -       Done   None     ends    -      {} {} name;
            /// `__tsan_acquire(object)`, `AnnotateHappensAfter`.
            Acquire         = 50 "acquire"           Annotated  Receives    -       Done   Acquires ends    Acquire {object: Object} {};
            /// `__tsan_release(object)`, `AnnotateHappensBefore`.
            Release         = 51 "release"           Annotated  Sends       -       Done   Releases ends    Release {object: Object} {};
            /// pthread_cancel was called. object: index of the thread.
            Cancel          = 52 "cancel"            Thread     Nothing     -       Done   None     ends    Cancel {thread: Target} {};
            /// Through an object of the kernel, this thread's past becomes known: something is written to a pipe, a socket or a message
            /// queue, a System V semaphore is raised, a lock of a file given back, a timer set, a signal sent. Written *before* the call.
            Send            = 56 "send"              Channel    Sends       -       Done   Releases ends    -      {channel: Object} {};
            /// What was sent before is known.
            Receive         = 57 "receive"           Channel    Receives    blocks  Done   Acquires ends    -      {channel: Object} {};
            /// `AnnotateBenignRace(object, size)`; arg: size.
            BenignRace      = 53 "benign-race"       Annotated  Excuses     -       Done   None     -       -      {addr: Address} {size: Number};
        }
        bare {
            /// A thread ended. Last event of a thread.
            End             = 2  "end"               Thread     Ends        -       Done   Releases ends    End   ;
            /// `sched_yield`, `usleep`, `nanosleep`: the thread lets others go.
            Yield           = 54 "yield"             Nothing    Nothing     -       Done   None     -       -     ;
        }
        lives {
            BarrierDestroy  = 21 "destroy"           Barrier    Destroys    -       Done   None     ends    -      Destroy Barrier;
            /// object: mutex; arg: [`lock`] kind bits.
            MutexInit       = 30 "init"              Lock       Creates     -       Done   None     -       -      Init Mutex;
            MutexDestroy    = 31 "destroy"           Lock       Destroys    -       Done   None     ends    -      Destroy Mutex;
            RwlockInit      = 32 "init"              Lock       Creates     -       Done   None     -       -      Init Rwlock;
            RwlockDestroy   = 33 "destroy"           Lock       Destroys    -       Done   None     ends    -      Destroy Rwlock;
            CondInit        = 34 "init"              Condition  Creates     -       Done   None     -       -      Init Condition;
            CondDestroy     = 35 "destroy"           Condition  Destroys    -       Done   None     ends    -      Destroy Condition;
            SemDestroy      = 36 "destroy"           Semaphore  Destroys    -       Done   None     ends    -      Destroy Semaphore;
        }
        marks {
            /// A module was loaded; the module table was extended.
            ModuleLoad      = 45 "module-load"       Nothing    Nothing     -       Done   None     -       -     ;
            /// Followed by Text: the name given to the thread. object: index of the thread.
            ThreadName      = 49 "thread-name"       Thread     Nothing     -       Done   None     -       -     ;
            /// A place in the global order, and nothing more: what follows takes it.
            Other           = 55 "mark"              Nothing    Nothing     -       Done   None     ends    -     ;
        }
        }
    };
}
