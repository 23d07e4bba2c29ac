//! Numbers of what a program is made of. Dense, so that state is a vector.

macro_rules! id {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            pub const NONE: $name = $name(u32::MAX);

            pub const fn index(self) -> usize {
                self.0 as usize
            }

            pub fn from_len(len: usize) -> $name {
                $name(u32::try_from(len).expect("fewer than 2^32"))
            }
        }
    };
}

id!(
    /// A mutex, spin lock or read-write lock, from its initialisation to its destruction.
    LockIx
);
id!(
    /// A semaphore, likewise.
    SemIx
);
id!(
    /// A barrier, likewise.
    BarrierIx
);
id!(
    /// A one-time initialiser.
    OnceIx
);
id!(
    /// A memory location that atomics access.
    RegisterIx
);
id!(
    /// A value of a register.
    ValueIx
);
id!(
    /// A signal or broadcast that woke somebody.
    InstanceIx
);
id!(
    /// A set of held locks.
    LocksetIx
);

/// How many steps of its thread come before: a position between two steps. A thread *at* position `p` has taken its
/// steps `0..p`; step `p` is its next one, and it may make the plain accesses between steps `p - 1` and `p`.
pub type Pos = u32;
