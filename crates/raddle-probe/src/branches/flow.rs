//! The control flow of each function, and what its instructions do to shared memory and locks.

use crate::image::{Function, FunctionIx, Image, Slot};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet};

/// What is known about the address of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Address {
    /// In the numbering of the file.
    Constant(u64),
    /// In the function's own frame, on the stack of its thread.
    Frame,
    Any,
}

/// What an instruction does that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    /// A hook of the compilers' race detection interface.
    Accesses {
        pc: u64,
        address: Address,
        bytes: u32,
        reads: bool,
        writes: bool,
        atomic: bool,
    },
    Acquires(Option<u64>),
    Releases(Option<u64>),
    /// Waits for the end of a thread; does anybody want its result?
    Joins {
        ignores_result: bool,
    },
    Calls(FunctionIx),
    /// Through a pointer.
    CallsAny,
    /// A function of another module that nobody knows.
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub effect: Effect,
    /// Where it may go on in this function.
    pub next: Vec<u64>,
    /// It may be the function's last.
    pub returns: bool,
}

/// A function.
pub struct Flow {
    pub start: u64,
    pub steps: BTreeMap<u64, Step>,
    /// Somebody takes its address: it may run as a thread, or be called by anybody.
    pub is_taken: bool,
    /// It was compiled with hooks: it is the user's.
    pub has_hooks: bool,
}

/// Functions of other modules that access nothing of the program's own, or only what their caller has just computed.
const HARMLESS: [&str; 46] = [
    "pthread_create",
    "pthread_join",
    "pthread_self",
    "pthread_mutex_init",
    "pthread_mutex_destroy",
    "pthread_cond_init",
    "pthread_cond_destroy",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_attr_init",
    "pthread_attr_destroy",
    "pthread_barrier_wait",
    "pthread_barrier_init",
    "pthread_barrier_destroy",
    "pthread_exit",
    "sem_init",
    "sem_wait",
    "sem_post",
    "sem_destroy",
    "sem_trywait",
    "sched_yield",
    "usleep",
    "sleep",
    "nanosleep",
    "printf",
    "puts",
    "putchar",
    "fprintf",
    "fflush",
    "perror",
    "exit",
    "_exit",
    "abort",
    "__assert_fail",
    "malloc",
    "calloc",
    "atoi",
    "rand",
    "srand",
    "time",
    "__stack_chk_fail",
    "__cxa_finalize",
    "__printf_chk",
    "__fprintf_chk",
];
/// Functions that do not come back.
const ENDING: [&str; 6] = ["exit", "_exit", "abort", "__assert_fail", "__stack_chk_fail", "pthread_exit"];

/// Constants in registers.
#[derive(Clone, Default)]
struct Registers {
    known: Vec<(Register, u64)>,
    /// Registers that hold an address of the function's own frame.
    frame: Vec<Register>,
    /// The frame pointer is one in this function.
    has_frame_pointer: bool,
}

impl Registers {
    fn get(&self, register: Register) -> Option<u64> {
        let full = register.full_register();
        self.known.iter().find(|(known, _)| *known == full).map(|&(_, value)| value)
    }

    fn address(&self, register: Register) -> Address {
        match self.get(register) {
            Some(value) => Address::Constant(value),
            None if self.frame.contains(&register.full_register()) => Address::Frame,
            None => Address::Any,
        }
    }

    fn is_frame(&self, register: Register) -> bool {
        register == Register::RSP
            || register == Register::RBP && self.has_frame_pointer
            || self.frame.contains(&register.full_register())
    }

    /// Nothing is known any more, at a place where ways meet or behind a call.
    fn forget(&mut self) {
        self.known.clear();
        self.frame.clear();
    }

    fn set(&mut self, register: Register, value: Option<u64>) {
        let full = register.full_register();
        self.frame.retain(|known| *known != full);
        self.known.retain(|(known, _)| *known != full);
        self.known.extend(value.map(|value| (full, value)));
    }

    /// What an instruction leaves in its registers.
    fn follow(&mut self, instruction: &Instruction) {
        let writes_first = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register;
        match instruction.mnemonic() {
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push | Mnemonic::Nop | Mnemonic::Endbr64 => return,
            Mnemonic::Xchg
            | Mnemonic::Cmpxchg
            | Mnemonic::Xadd
            | Mnemonic::Mul
            | Mnemonic::Div
            | Mnemonic::Idiv
            | Mnemonic::Cdq
            | Mnemonic::Cqo
            | Mnemonic::Cpuid => self.forget(),
            _ => {}
        }
        if !writes_first {
            // Strings and multiplications write registers that they do not name.
            if instruction.op_count() == 0 || instruction.is_string_instruction() {
                self.forget();
            }
            return;
        }
        let to = instruction.op0_register();
        let value = match (instruction.mnemonic(), instruction.op_count()) {
            (Mnemonic::Lea, 2) if instruction.is_ip_rel_memory_operand() => {
                Some(instruction.memory_displacement64())
            }
            (Mnemonic::Lea, 2) if instruction.memory_index() == Register::None => self
                .get(instruction.memory_base())
                .map(|base| base.wrapping_add(instruction.memory_displacement64())),
            (Mnemonic::Mov, 2) => match instruction.op1_kind() {
                OpKind::Register => self
                    .get(instruction.op1_register())
                    .filter(|&value| to.size() == 8 || to.size() == 4 && value <= u64::from(u32::MAX)),
                OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                    Some(instruction.immediate(1))
                }
                _ => None,
            },
            (Mnemonic::Xor, 2)
                if instruction.op1_kind() == OpKind::Register && instruction.op1_register() == to =>
            {
                Some(0)
            }
            (Mnemonic::Add, 2) if to.size() == 8 => match instruction.op1_kind() {
                OpKind::Immediate8to64 | OpKind::Immediate32to64 => {
                    self.get(to).map(|value| value.wrapping_add(instruction.immediate(1)))
                }
                _ => None,
            },
            _ => None,
        };
        let in_frame = match instruction.mnemonic() {
            Mnemonic::Lea => {
                instruction.memory_index() == Register::None && self.is_frame(instruction.memory_base())
            }
            Mnemonic::Mov => {
                instruction.op1_kind() == OpKind::Register
                    && to.size() == 8
                    && self.is_frame(instruction.op1_register())
            }
            _ => false,
        };
        self.set(to, value);
        if in_frame && value.is_none() {
            self.frame.push(to.full_register());
        }
    }
}

/// Does the function keep its frame's address in the register that is there for it, and nothing else?
fn has_frame_pointer(instructions: &[Instruction]) -> bool {
    let is_set = |instruction: &Instruction| {
        instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register() == Register::RBP
            && instruction.op1_kind() == OpKind::Register
            && instruction.op1_register() == Register::RSP
    };
    let writes = |instruction: &Instruction| {
        instruction.op_count() > 0
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().full_register() == Register::RBP
            && !matches!(
                instruction.mnemonic(),
                Mnemonic::Push | Mnemonic::Pop | Mnemonic::Cmp | Mnemonic::Test
            )
    };
    instructions.iter().take(4).any(is_set) && instructions.iter().filter(|i| writes(i)).all(is_set)
}

/// The flows of all functions that are the program's own.
pub fn all(image: &Image) -> BTreeMap<FunctionIx, Flow> {
    let mut taken: BTreeSet<FunctionIx> = BTreeSet::new();
    for slot in image.addresses_in_data() {
        if let Slot::Own(ix) = slot {
            taken.insert(*ix);
        }
    }
    let mut flows = BTreeMap::new();
    for (ix, function) in image.functions().iter().enumerate() {
        if function.name.is_some_and(is_runtime) {
            continue;
        }
        flows.insert(FunctionIx(ix as u32), flow(image, function, &mut taken));
    }
    for ix in taken {
        if let Some(flow) = flows.get_mut(&ix) {
            flow.is_taken = true;
        }
    }
    flows
}

/// What the runtime, which an executable carries, brings along: nobody has to look into it.
fn is_runtime(name: &str) -> bool {
    name.starts_with("__tsan_")
        || name.starts_with("raddle_")
        || name.starts_with("_R")
        || name.starts_with("_ZN")
}

/// Where a jump or call leads: a function of this image, or a name.
enum Target<'data> {
    Own(FunctionIx),
    Name(&'data str),
    Unknown,
}

fn target<'data>(image: &Image<'data>, to: u64) -> Target<'data> {
    let named = |slot: Slot| match slot {
        Slot::Own(ix) => own(image, ix),
        Slot::Name(ix) => Target::Name(image.import(ix)),
    };
    if image.code_at(to).is_some_and(|code| code.is_linkage) {
        return through_stub(image, to).map_or(Target::Unknown, named);
    }
    image.function_from(to).map_or(Target::Unknown, |ix| own(image, ix))
}

/// The slot that a stub of the procedure linkage table jumps through.
fn through_stub(image: &Image, at: u64) -> Option<Slot> {
    let code = image.code_at(at)?;
    let bytes = code.bytes.get((at - code.start) as usize..)?;
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    // `endbr64`, and a push in lazily bound ones, come before the jump.
    for _ in 0..4 {
        let instruction = decoder.can_decode().then(|| decoder.decode())?;
        if instruction.flow_control() == FlowControl::IndirectBranch {
            return image.slot(instruction.memory_displacement64());
        }
    }
    None
}

fn own<'data>(image: &Image<'data>, ix: FunctionIx) -> Target<'data> {
    match image.function(ix).name {
        // The runtime is linked in: its functions go by the names of what they stand for.
        Some(name) if is_runtime(name) || is_interposed(name) => Target::Name(name),
        _ => Target::Own(ix),
    }
}

fn is_interposed(name: &str) -> bool {
    name.starts_with("pthread_") || name.starts_with("sem_") || HARMLESS.contains(&name)
}

fn flow(image: &Image, function: &Function, taken: &mut BTreeSet<FunctionIx>) -> Flow {
    let mut steps = BTreeMap::new();
    let mut instructions: Vec<Instruction> = Vec::new();
    let bytes = image.bytes_of(function);
    let mut decoder = Decoder::with_ip(64, bytes, function.start, DecoderOptions::NONE);
    while decoder.can_decode() {
        instructions.push(decoder.decode());
    }
    let inside = |to: u64| (function.start..function.end).contains(&to);
    let is_direct = |instruction: &Instruction| {
        matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16)
    };
    let targets: BTreeSet<u64> = instructions
        .iter()
        .filter(|instruction| {
            matches!(
                instruction.flow_control(),
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
            ) && is_direct(instruction)
        })
        .map(Instruction::near_branch_target)
        .filter(|&to| inside(to))
        .collect();
    let mut registers =
        Registers { has_frame_pointer: has_frame_pointer(&instructions), ..Registers::default() };
    let mut has_hooks = false;
    for instruction in &instructions {
        let (at, after) = (instruction.ip(), instruction.next_ip());
        if targets.contains(&at) {
            registers.forget();
        }
        let mut step = Step { effect: Effect::Nothing, next: vec![after], returns: false };
        if instruction.is_invalid() {
            step.effect = Effect::Unknown;
        }
        match instruction.flow_control() {
            FlowControl::Next => {
                note_taken(image, instruction, taken);
                registers.follow(instruction);
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                let called = match is_direct(instruction) {
                    true => target(image, instruction.near_branch_target()),
                    false => through_slot(image, instruction),
                };
                has_hooks |= matches!(called, Target::Name(name) if hook(name).is_some());
                let (effect, ends) = effect(called, after, &registers);
                step.effect = effect;
                if ends {
                    step.next.clear();
                }
                registers.forget();
            }
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch if is_direct(instruction) => {
                let to = instruction.near_branch_target();
                let falls = instruction.flow_control() == FlowControl::ConditionalBranch;
                step.next.retain(|_| falls);
                match inside(to) {
                    true => step.next.push(to),
                    // A tail call: what it does is done here, and then the function is over.
                    false => {
                        let (effect, ends) = effect(target(image, to), after, &registers);
                        step.effect = effect;
                        step.returns = !ends;
                    }
                }
            }
            FlowControl::Return => {
                step.next.clear();
                step.returns = true;
            }
            FlowControl::IndirectBranch => {
                // A `switch`, or a tail call through a pointer: it may go anywhere.
                step.effect = match through_slot(image, instruction) {
                    Target::Unknown => Effect::CallsAny,
                    called => effect(called, after, &registers).0,
                };
                step.next.clear();
                step.returns = true;
            }
            FlowControl::Exception => step.next.clear(),
            _ => step.effect = Effect::Unknown,
        }
        steps.insert(at, step);
    }
    Flow { start: function.start, steps, is_taken: false, has_hooks }
}

fn through_slot<'data>(image: &Image<'data>, instruction: &Instruction) -> Target<'data> {
    if instruction.op0_kind() != OpKind::Memory || !instruction.is_ip_rel_memory_operand() {
        return Target::Unknown;
    }
    match image.slot(instruction.memory_displacement64()) {
        Some(Slot::Own(ix)) => own(image, ix),
        Some(Slot::Name(ix)) => Target::Name(image.import(ix)),
        None => Target::Unknown,
    }
}

/// The address of a function that an instruction puts somewhere.
fn note_taken(image: &Image, instruction: &Instruction, taken: &mut BTreeSet<FunctionIx>) {
    if instruction.is_ip_rel_memory_operand() {
        let address = instruction.memory_displacement64();
        let slot = image.slot(address);
        let direct = image.function_from(address).filter(|_| instruction.mnemonic() == Mnemonic::Lea);
        taken.extend(direct);
        if let Some(Slot::Own(ix)) = slot {
            taken.insert(ix);
        }
    }
    if image.is_fixed {
        for op in 0..instruction.op_count() {
            if matches!(
                instruction.op_kind(op),
                OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64
            ) {
                taken.extend(image.function_from(instruction.immediate(op)));
            }
        }
    }
}

/// What a call does, and whether it never comes back.
fn effect(called: Target<'_>, after: u64, registers: &Registers) -> (Effect, bool) {
    let name = match called {
        Target::Own(ix) => return (Effect::Calls(ix), false),
        Target::Unknown => return (Effect::CallsAny, false),
        Target::Name(name) => name,
    };
    let first = registers.get(Register::RDI);
    let effect = match name {
        "pthread_mutex_lock" | "pthread_spin_lock" | "pthread_rwlock_wrlock" => Effect::Acquires(first),
        "pthread_join" => Effect::Joins { ignores_result: registers.get(Register::RSI) == Some(0) },
        "pthread_mutex_unlock" | "pthread_spin_unlock" | "pthread_rwlock_unlock" => Effect::Releases(first),
        // Whether it has the lock is decided by its result; readers hold a lock that protects from writers only.
        "pthread_mutex_trylock" | "pthread_mutex_timedlock" | "pthread_rwlock_rdlock" => {
            Effect::Acquires(None)
        }
        _ => match hook(name) {
            Some(Hook::Nothing) => Effect::Nothing,
            Some(Hook::Access { bytes, reads, writes, atomic }) => {
                let address = registers.address(Register::RDI);
                Effect::Accesses { pc: after, address, bytes, reads, writes, atomic }
            }
            None if HARMLESS.contains(&name) => Effect::Nothing,
            None => Effect::Unknown,
        },
    };
    (effect, ENDING.contains(&name))
}

enum Hook {
    Nothing,
    Access { bytes: u32, reads: bool, writes: bool, atomic: bool },
}

/// What a function of the compilers' interface stands for.
fn hook(name: &str) -> Option<Hook> {
    let name = name.strip_prefix("__tsan_")?;
    if matches!(name, "func_entry" | "func_exit" | "init" | "ignore_thread_begin" | "ignore_thread_end") {
        return Some(Hook::Nothing);
    }
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    let number: u32 = digits.parse().unwrap_or(0);
    if let Some(rest) = name.strip_prefix("atomic") {
        // Atomics say bits, accesses bytes.
        if rest.ends_with("fence") {
            return Some(Hook::Nothing);
        }
        let (reads, writes) = (!rest.ends_with("_store"), !rest.ends_with("_load"));
        return Some(Hook::Access { bytes: number / 8, reads, writes, atomic: true });
    }
    let (reads, writes) = (name.contains("read"), name.contains("write"));
    if name.contains("range") || name.starts_with("vptr") {
        return Some(Hook::Access { bytes: 0, reads: true, writes: true, atomic: false });
    }
    (reads || writes).then_some(Hook::Access { bytes: number, reads, writes, atomic: false })
}
