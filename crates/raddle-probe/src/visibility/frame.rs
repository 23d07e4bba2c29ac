//! Does a function touch memory that others could see?
//!
//! A rebuilt function may well have no call of the compilers' hooks: one that only computes with its arguments and its own local
//! variables needs none. What tells it from a function that was not rebuilt is an access to anything else. So for each register it
//! is worked out whether it holds an address in the function's own frame, one of constant memory, or anything else, by a forward
//! data-flow analysis over the function's blocks. The lattice has two levels, so each block is visited a bounded number of times. An
//! access through a register of the third kind settles the question, which for code that was not rebuilt is mostly within the first
//! few instructions.
//!
//! Not counted: the thread's own block (`fs:`: the stack protector, thread-local variables), constant memory (literals, tables of
//! jumps, the dynamic linker's tables), and [`Sign`](super::scan::Sign)s, which are judged by themselves.
//!
//! Where the analysis loses track (an address in the frame that was stored in the frame and loaded again) it says *yes*. Compilers
//! instrument accesses through such variables, so a rebuilt function hardly ever gets that far. The exception that is known: gcc writes a
//! structure that a function returns through a hidden pointer without telling anybody, so a function that does nothing else, and
//! calls nobody, is taken for one that was not rebuilt, of the weaker strength.

use super::scan;
use crate::image::{Function, Image};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};
use rustc_hash::FxHashMap;

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Frame,
    Constant,
    Other,
}

/// The sixteen general registers, by their number.
type State = [Value; 16];

/// Larger functions are not followed but taken to touch everything.
const INSTRUCTIONS_MAX: usize = 1 << 16;

fn entry() -> State {
    let mut state = [Value::Other; 16];
    state[Register::RSP.number()] = Value::Frame;
    state
}

/// Registers that a called function may change.
const SCRATCH: &[Register] = &[
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

/// Does the function access memory other than its frame and constants?
pub fn touches_others(image: &Image, function: &Function) -> bool {
    let bytes = image.bytes_of(function);
    let decoder = Decoder::with_ip(64, bytes, function.start, DecoderOptions::NONE);
    let instructions: Vec<Instruction> = decoder.into_iter().take(INSTRUCTIONS_MAX).collect();
    if instructions.len() == INSTRUCTIONS_MAX || instructions.is_empty() {
        return !instructions.is_empty();
    }
    Analysis { image, instructions: &instructions, factory: InstructionInfoFactory::new() }.run()
}

struct Analysis<'a, 'data> {
    image: &'a Image<'data>,
    instructions: &'a [Instruction],
    factory: InstructionInfoFactory,
}

impl Analysis<'_, '_> {
    fn run(&mut self) -> bool {
        let index: FxHashMap<u64, usize> =
            self.instructions.iter().enumerate().map(|(at, instruction)| (instruction.ip(), at)).collect();
        let mut known: FxHashMap<usize, State> = FxHashMap::default();
        let mut reached = vec![false; self.instructions.len()];
        let mut work = Vec::new();
        let mut first_unreached = 0;
        known.insert(0, entry());
        work.push(0);
        let elsewhere = self.entered_elsewhere();
        loop {
            let Some(mut at) = work.pop() else {
                while reached.get(first_unreached) == Some(&true) {
                    first_unreached += 1;
                }
                if first_unreached >= self.instructions.len() {
                    return false;
                }
                known.insert(first_unreached, elsewhere);
                work.push(first_unreached);
                continue;
            };
            let mut state = known[&at];
            loop {
                reached[at] = true;
                let instruction = self.instructions[at];
                if self.is_access(&instruction, &state) {
                    return true;
                }
                self.step(&instruction, &mut state);
                let (goes_on, jumps) = successors(&instruction);
                if let Some(target) = jumps.and_then(|target| index.get(&target))
                    && meet(&mut known, *target, &state)
                {
                    work.push(*target);
                }
                at += 1;
                if !goes_on || at >= self.instructions.len() {
                    break;
                }
                // Somebody jumps here, or has been here: states meet.
                if known.contains_key(&at) || reached[at] {
                    if meet(&mut known, at, &state) {
                        work.push(at);
                    }
                    break;
                }
            }
        }
    }

    /// What is known where a landing pad of exceptions or a case of a `switch` begins, which no jump in sight leads to: the frame,
    /// and the frame pointer if the function has one.
    fn entered_elsewhere(&self) -> State {
        let mut state = entry();
        let sets_frame_pointer = self.instructions.iter().any(|instruction| {
            instruction.op_count() == 2
                && instruction.op0_kind() == OpKind::Register
                && instruction.op0_register() == Register::RBP
                && match instruction.mnemonic() {
                    Mnemonic::Mov => {
                        instruction.op1_kind() == OpKind::Register
                            && instruction.op1_register() == Register::RSP
                    }
                    Mnemonic::Lea => instruction.memory_base() == Register::RSP,
                    _ => false,
                }
        });
        if sets_frame_pointer {
            state[Register::RBP.number()] = Value::Frame;
        }
        state
    }

    fn is_access(&self, instruction: &Instruction, state: &State) -> bool {
        use Mnemonic::{Endbr64, Lea, Nop, Prefetchnta, Prefetcht0, Prefetcht1, Prefetcht2, Prefetchw};
        if instruction.is_invalid()
            || matches!(
                instruction.mnemonic(),
                Lea | Nop | Endbr64 | Prefetchnta | Prefetcht0 | Prefetcht1 | Prefetcht2 | Prefetchw
            )
            || scan::sign(instruction).is_some()
        {
            return false;
        }
        (0..instruction.op_count()).any(|op| match instruction.op_kind(op) {
            OpKind::Memory => self.memory(instruction, state) == Value::Other,
            OpKind::MemorySegRSI => state[Register::RSI.number()] == Value::Other,
            OpKind::MemorySegRDI | OpKind::MemoryESRDI => state[Register::RDI.number()] == Value::Other,
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI => true,
            _ => false,
        })
    }

    /// Where a memory operand leads.
    fn memory(&self, instruction: &Instruction, state: &State) -> Value {
        if matches!(instruction.segment_prefix(), Register::FS | Register::GS) {
            return Value::Frame;
        }
        let fixed =
            |address: u64| if self.image.is_constant(address) { Value::Constant } else { Value::Other };
        if instruction.is_ip_rel_memory_operand() {
            return fixed(instruction.memory_displacement64());
        }
        let value = |register: Register| match register {
            Register::None => Value::Other,
            register if register.is_gpr64() => state[register.number()],
            _ => Value::Other,
        };
        let (base, index) = (value(instruction.memory_base()), value(instruction.memory_index()));
        match (base, index) {
            (Value::Frame, _) | (_, Value::Frame) => Value::Frame,
            (Value::Constant, _) | (_, Value::Constant) => Value::Constant,
            _ if instruction.memory_base() == Register::None => fixed(instruction.memory_displacement64()),
            _ => Value::Other,
        }
    }

    fn step(&mut self, instruction: &Instruction, state: &mut State) {
        if instruction.flow_control() == FlowControl::Call
            || instruction.flow_control() == FlowControl::IndirectCall
        {
            for register in SCRATCH {
                state[register.number()] = Value::Other;
            }
            return;
        }
        let result = self.result(instruction, state);
        for used in self.factory.info(instruction).used_registers() {
            let writes = matches!(
                used.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            let register = used.register().full_register();
            // Whatever is done to the stack pointer, it points into the stack.
            if writes && register.is_gpr64() && register != Register::RSP {
                state[register.number()] = Value::Other;
            }
        }
        if let Some((register, value)) = result
            && register != Register::RSP
        {
            state[register.number()] = value;
        }
    }

    /// What an instruction that computes addresses leaves in its first operand.
    fn result(&self, instruction: &Instruction, state: &State) -> Option<(Register, Value)> {
        if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
            return None;
        }
        let to = instruction.op0_register();
        if !to.is_gpr64() {
            return None;
        }
        let from = |op: u32| match instruction.op_kind(op) {
            OpKind::Register if instruction.op_register(op).is_gpr64() => {
                state[instruction.op_register(op).number()]
            }
            _ => Value::Other,
        };
        let value = match instruction.mnemonic() {
            Mnemonic::Mov => from(1),
            Mnemonic::Lea => self.memory(instruction, state),
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Or | Mnemonic::Inc | Mnemonic::Dec => {
                match (
                    state[to.number()],
                    instruction.op_count() > 1 && instruction.mnemonic() == Mnemonic::Add,
                ) {
                    (Value::Other, true) => from(1),
                    (value, _) => value,
                }
            }
            _ => return None,
        };
        Some((to, value))
    }
}

/// Does execution go on behind the instruction, and where else?
fn successors(instruction: &Instruction) -> (bool, Option<u64>) {
    let near = || match instruction.op0_kind() {
        OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16 => {
            Some(instruction.near_branch_target())
        }
        _ => None,
    };
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch => (false, near()),
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => (true, near()),
        FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception => (false, None),
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall | FlowControl::Interrupt => {
            (true, None)
        }
    }
}

/// Lets a state flow to an instruction; true if that changes what is known there.
fn meet(known: &mut FxHashMap<usize, State>, at: usize, new: &State) -> bool {
    let Some(old) = known.get_mut(&at) else {
        known.insert(at, *new);
        return true;
    };
    let mut changed = false;
    for (old, &new) in old.iter_mut().zip(new) {
        if *old != new && *old != Value::Other {
            *old = Value::Other;
            changed = true;
        }
    }
    changed
}
