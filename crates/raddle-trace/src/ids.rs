//! Newtypes for everything that is numbered in a trace.

macro_rules! id {
    ($(#[$meta:meta])* $name:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub $inner);

        impl $name {
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A thread of the trace, dense, in order of creation; 0 is the main thread.
    ThreadIx(u32)
);
id!(
    /// A code location, an index into the trace's location table; 0 is "unknown".
    LocationIx(u32)
);
id!(
    /// A node of the trace's tree of call contexts; 0 is the empty stack.
    ContextIx(u32)
);
id!(
    /// An entry of the trace's text table; 0 is the empty text.
    TextIx(u32)
);
id!(
    /// A synchronisation object. In recorded traces its address, in converted ones a dense number.
    ObjectId(u64)
);
id!(
    /// An address of the tested program. In converted traces a dense number times eight.
    Addr(u64)
);

impl ThreadIx {
    pub const MAIN: ThreadIx = ThreadIx(0);
}

impl LocationIx {
    pub const UNKNOWN: LocationIx = LocationIx(0);
}

impl ContextIx {
    pub const ROOT: ContextIx = ContextIx(0);
}
