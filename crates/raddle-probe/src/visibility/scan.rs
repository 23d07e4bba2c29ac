//! One pass over the instructions of an image: what each function calls, whose address it takes, whether it is instrumented, and whether
//! it holds instructions that are there to synchronise.
//!
//! Functions are decoded from their first byte to their last one. Compilers put no data between instructions on x86-64, and what
//! does not decode is skipped byte by byte, so the pass is linear in the size of the code.
//!
//! # What a rebuilt function has
//!
//! gcc and clang turn every atomic operation into a call of `__tsan_atomic*` and every plain access that another thread could see into
//! one with a call of `__tsan_read*` or `__tsan_write*` before it (their ThreadSanitizer pass). So neither leaves a locked
//! instruction, an `xchg` with memory, or a fence in a rebuilt function; if there is one, somebody wrote it. The instructions
//! that count are [`Sign`]s.

use super::interfaces::Constants;
use super::runtimes;
use crate::image::{Function, FunctionIx, Image, NameIx, Slot};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashMap;

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Own(FunctionIx),
    Name(NameIx),
}

impl From<Slot> for Target {
    fn from(slot: Slot) -> Target {
        match slot {
            Slot::Own(ix) => Target::Own(ix),
            Slot::Name(ix) => Target::Name(ix),
        }
    }
}

/// A call or a jump that leaves the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The address behind the instruction: what a call puts onto the stack.
    pub returns_to: u64,
    /// None for a call through a pointer.
    pub target: Option<Target>,
    pub arguments: Constants,
}

/// An instruction that nobody needs who does not synchronise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// With a `lock` prefix, or `xchg` with memory.
    Locked,
    Fence,
    SystemCall,
    Transaction,
}

/// What one function does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub calls: Vec<Call>,
    /// Functions whose address it takes for some other purpose than starting a thread.
    pub takes: Vec<Target>,
    /// It calls hooks for plain accesses.
    pub is_instrumented: bool,
    /// It calls hooks of any kind.
    pub has_hooks: bool,
    /// The first synchronising instruction.
    pub sign: Option<(u64, Sign)>,
    pub pauses: bool,
    /// Stretches of code that are run again, from the target of a jump backwards to the jump.
    pub loops: Vec<(u64, u64)>,
}

/// What is special about a function that is called by name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Callee {
    Ordinary,
    /// Of the compilers' interface; is it for a plain access?
    Hook {
        access: bool,
    },
    /// Starts a thread at the address in this register.
    Starts(Register),
}

fn callee(name: &str) -> Callee {
    match name {
        "pthread_create" => Callee::Starts(Register::RDX),
        "thrd_create" => Callee::Starts(Register::RSI),
        _ if runtimes::is_hook(name) => Callee::Hook { access: runtimes::is_access_hook(name) },
        _ => Callee::Ordinary,
    }
}

/// The facts of all functions, in their order. Raddle's own are left empty.
pub fn scan(image: &Image) -> Vec<Facts> {
    let mut scanner = Scanner::new(image);
    image
        .functions()
        .iter()
        .map(
            |function| {
                if runtimes::is_raddle(function) { Facts::default() } else { scanner.function(function) }
            },
        )
        .collect()
}

/// Does the code hold any synchronising instruction or spin?
pub fn has_sign(image: &Image) -> bool {
    let mut instruction = Instruction::default();
    image.code.iter().any(|code| {
        let mut decoder = Decoder::with_ip(64, code.bytes, code.start, DecoderOptions::NONE);
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if sign(&instruction).is_some() || instruction.mnemonic() == Mnemonic::Pause {
                return true;
            }
        }
        false
    })
}

struct Scanner<'image, 'data> {
    image: &'image Image<'data>,
    own: Vec<Callee>,
    names: Vec<Callee>,
    stubs: FxHashMap<u64, Option<Target>>,
    /// Addresses of functions in registers since the last call.
    held: Vec<(Register, Target)>,
}

impl<'image, 'data> Scanner<'image, 'data> {
    fn new(image: &'image Image<'data>) -> Scanner<'image, 'data> {
        let own = |function: &Function| {
            if runtimes::is_raddle(function) {
                function.name.map_or(Callee::Ordinary, callee)
            } else {
                Callee::Ordinary
            }
        };
        Scanner {
            image,
            own: image.functions().iter().map(own).collect(),
            names: image.imports().iter().map(|name| callee(name)).collect(),
            stubs: FxHashMap::default(),
            held: Vec::new(),
        }
    }

    fn function(&mut self, function: &Function) -> Facts {
        let mut facts = Facts::default();
        let bytes = self.image.bytes_of(function);
        let mut decoder = Decoder::with_ip(64, bytes, function.start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut arguments = Constants::default();
        let mut load_fence = None;
        let mut reads_clock = false;
        self.held.clear();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                continue;
            }
            match instruction.mnemonic() {
                Mnemonic::Pause => facts.pauses = true,
                Mnemonic::Lfence => load_fence = load_fence.or(Some(instruction.ip())),
                Mnemonic::Rdtsc | Mnemonic::Rdtscp => reads_clock = true,
                _ => {}
            }
            if facts.sign.is_none() {
                facts.sign = sign(&instruction).map(|sign| (instruction.ip(), sign));
            }
            match instruction.flow_control() {
                FlowControl::Next => {
                    self.note_addresses(&instruction);
                    note_constant(&instruction, &mut arguments);
                }
                FlowControl::Return | FlowControl::Interrupt | FlowControl::Exception => {}
                FlowControl::XbeginXabortXend => {}
                _ => {
                    let call = self.leave(function, &instruction, &mut facts);
                    if let Some(target) = call {
                        self.called(&mut facts, target, arguments, &instruction);
                        arguments = Constants::default();
                    }
                }
            }
        }
        facts.takes.extend(self.held.drain(..).map(|(_, target)| target));
        facts.takes.sort_by_key(|target| match target {
            Target::Own(ix) => (0, ix.0),
            Target::Name(ix) => (1, ix.0),
        });
        facts.takes.dedup();
        // `lfence` also keeps the reading of a clock in its place.
        if facts.sign.is_none() && !reads_clock {
            facts.sign = load_fence.map(|address| (address, Sign::Fence));
        }
        facts
    }

    /// Where a call or jump leads, if it may leave the function: inner None for a pointer.
    fn leave(
        &mut self,
        function: &Function,
        instruction: &Instruction,
        facts: &mut Facts,
    ) -> Option<Option<Target>> {
        match instruction.op0_kind() {
            OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16 => {
                let to = instruction.near_branch_target();
                let is_call = instruction.flow_control() == FlowControl::Call;
                if !is_call && (function.start..function.end).contains(&to) {
                    if to <= instruction.ip() {
                        facts.loops.push((to, instruction.next_ip()));
                    }
                    return None;
                }
                self.resolve(to).map(Some)
            }
            OpKind::Memory => {
                let address = fixed_address(instruction);
                let slot = address.and_then(|address| self.image.slot(address));
                // A table of jumps within the function lies in constant memory and is no slot.
                let is_jump = instruction.flow_control() == FlowControl::IndirectBranch;
                match slot {
                    Some(slot) => Some(Some(slot.into())),
                    None if is_jump && self.is_table(instruction) => None,
                    None => Some(None),
                }
            }
            // `jmp *%rax` ends a `switch` as often as a function: whose table it was cannot be told here.
            OpKind::Register => Some(None),
            _ => None,
        }
    }

    fn is_table(&self, instruction: &Instruction) -> bool {
        instruction.memory_index() != Register::None
            && instruction.memory_base() == Register::None
            && self.image.is_constant(instruction.memory_displacement64())
    }

    /// The function at this address, or the one that the stub there leads to.
    fn resolve(&mut self, to: u64) -> Option<Target> {
        if self.image.code_at(to).is_some_and(|code| code.is_linkage) {
            let image = self.image;
            return *self.stubs.entry(to).or_insert_with(|| stub(image, to));
        }
        self.image.function_at(to).map(Target::Own)
    }

    fn called(
        &mut self,
        facts: &mut Facts,
        target: Option<Target>,
        arguments: Constants,
        instruction: &Instruction,
    ) {
        let callee = match target {
            Some(Target::Own(ix)) => self.own[ix.0 as usize],
            Some(Target::Name(ix)) => self.names[ix.0 as usize],
            None => Callee::Ordinary,
        };
        // Hooks keep nothing, so what is held stays held: compilers load arguments before them too.
        if let Callee::Hook { access } = callee {
            facts.is_instrumented |= access;
            facts.has_hooks = true;
            return;
        }
        if let Callee::Starts(register) = callee {
            self.held.retain(|&(holder, _)| holder != register);
        }
        facts.takes.extend(self.held.drain(..).map(|(_, target)| target));
        facts.calls.push(Call { returns_to: instruction.next_ip(), target, arguments });
    }

    /// Notes the address of a function that an instruction puts somewhere.
    fn note_addresses(&mut self, instruction: &Instruction) {
        let taken = match instruction.mnemonic() {
            Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
                self.image.function_from(instruction.memory_displacement64()).map(Target::Own)
            }
            Mnemonic::Mov
                if instruction.op1_kind() == OpKind::Register
                    && instruction.op0_kind() == OpKind::Register =>
            {
                let (to, from) = (instruction.op0_register(), instruction.op1_register());
                if let Some(&(_, target)) = self.held.iter().find(|&&(holder, _)| holder == from) {
                    self.held.retain(|&(holder, _)| holder != to && holder != from);
                    self.held.push((to, target));
                }
                None
            }
            // Also comparisons, pushes: whoever reads a slot may keep what is in it.
            _ if (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory) => {
                let address = fixed_address(instruction);
                address
                    .and_then(|address| self.image.slot(address))
                    .map(Target::from)
                    .or_else(|| self.immediate(instruction))
            }
            _ => self.immediate(instruction),
        };
        if let Some(target) = taken {
            let holder = match instruction.op0_kind() {
                OpKind::Register => instruction.op0_register().full_register(),
                _ => Register::None,
            };
            self.held.push((holder, target));
        }
    }

    /// In programs with fixed addresses a function's address may be a plain number.
    fn immediate(&self, instruction: &Instruction) -> Option<Target> {
        if !self.image.is_fixed {
            return None;
        }
        let last = instruction.op_count().checked_sub(1)?;
        match instruction.op_kind(last) {
            OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64 => {
                self.image.function_from(instruction.immediate(last)).map(Target::Own)
            }
            _ => None,
        }
    }
}

/// The address of a memory operand that has no register but the instruction pointer.
fn fixed_address(instruction: &Instruction) -> Option<u64> {
    let is_fixed = instruction.is_ip_rel_memory_operand()
        || instruction.memory_base() == Register::None && instruction.memory_index() == Register::None;
    is_fixed.then(|| instruction.memory_displacement64())
}

/// Instructions in a stub before its jump: `endbr64`, and a push in lazily bound ones.
const STUB_INSTRUCTIONS_MAX: usize = 4;

fn stub(image: &Image, at: u64) -> Option<Target> {
    let code = image.code_at(at)?;
    let bytes = code.bytes.get((at - code.start) as usize..)?;
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    for _ in 0..STUB_INSTRUCTIONS_MAX {
        let instruction = decoder.can_decode().then(|| decoder.decode())?;
        if instruction.flow_control() == FlowControl::IndirectBranch {
            return image.slot(fixed_address(&instruction)?).map(Target::from);
        }
        if instruction.is_invalid() {
            return None;
        }
    }
    None
}

fn note_constant(instruction: &Instruction, arguments: &mut Constants) {
    if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
        return;
    }
    let register = instruction.op0_register();
    let place = match register.full_register() {
        Register::RDI => &mut arguments.first,
        Register::RSI => &mut arguments.second,
        _ => return,
    };
    *place = match (instruction.mnemonic(), instruction.op_count()) {
        (Mnemonic::Mov, 2) => match instruction.op1_kind() {
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                u32::try_from(instruction.immediate(1)).ok()
            }
            _ => None,
        },
        (Mnemonic::Xor, 2)
            if instruction.op1_kind() == OpKind::Register && instruction.op1_register() == register =>
        {
            Some(0)
        }
        _ => None,
    };
}

pub(super) fn sign(instruction: &Instruction) -> Option<Sign> {
    if instruction.has_lock_prefix() {
        return Some(Sign::Locked);
    }
    match instruction.mnemonic() {
        // Both operands are registers in what compilers make.
        Mnemonic::Xchg
            if instruction.op0_kind() == OpKind::Memory || instruction.op1_kind() == OpKind::Memory =>
        {
            Some(Sign::Locked)
        }
        Mnemonic::Mfence | Mnemonic::Sfence => Some(Sign::Fence),
        Mnemonic::Syscall | Mnemonic::Sysenter => Some(Sign::SystemCall),
        Mnemonic::Int if instruction.immediate8() == 0x80 => Some(Sign::SystemCall),
        Mnemonic::Xbegin => Some(Sign::Transaction),
        _ => None,
    }
}
