//! x86_64 Linux.

use crate::shadow;
use crate::thread::Thread;
use core::arch::x86_64::{_mm_loadu_si128, _mm_storeu_si128};
use core::arch::{asm, global_asm};
use core::sync::atomic::AtomicU32;

// The thread pointer lives in a thread-local slot with the initial-exec model: one load from the GOT (which the static
// linker turns into an immediate) and one fs-relative load. It starts out as the address of a thread that ignores
// everything, so that no access path needs a null check.
global_asm!(
    ".section .tdata.raddle_thread,\"awT\",@progbits",
    ".hidden raddle_thread_slot",
    ".globl raddle_thread_slot",
    ".type raddle_thread_slot,@object",
    ".size raddle_thread_slot,8",
    ".p2align 3",
    "raddle_thread_slot:",
    ".quad {idle}",
    ".text",
    idle = sym crate::thread::IDLE,
);

#[inline(always)]
pub fn current() -> *const Thread {
    let thread: *const Thread;
    // SAFETY: reads the calling thread's own slot, which always holds a valid pointer.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + raddle_thread_slot@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) thread,
            options(nostack, readonly, preserves_flags, pure)
        );
    }
    thread
}

pub fn set_current(thread: &'static Thread) {
    // SAFETY: writes the calling thread's own slot.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + raddle_thread_slot@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _,
            in(reg) core::ptr::from_ref(thread),
            options(nostack, preserves_flags)
        );
    }
}

/// A system call that does not touch `errno`.
///
/// # Safety
/// As the system call asks.
#[inline]
pub unsafe fn syscall6(n: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller vouches for the arguments; the kernel keeps all registers but rax, rcx, r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") n as isize => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

// System calls that the runtime makes for itself go through one place. A worker that keeps its process between runs has the kernel
// hand it every system call made anywhere else (`steer::kept::calls`). Behind it is the return from a handler of signals, for the
// same reason.
global_asm!(
    ".text",
    ".p2align 4",
    ".hidden raddle_gate",
    ".globl raddle_gate",
    ".type raddle_gate,@function",
    "raddle_gate:",
    ".cfi_startproc",
    "syscall",
    "ret",
    ".cfi_endproc",
    ".size raddle_gate, .-raddle_gate",
    ".hidden raddle_gate_return",
    ".globl raddle_gate_return",
    ".type raddle_gate_return,@function",
    "raddle_gate_return:",
    "mov eax, 15",
    "syscall",
    "ud2",
    ".size raddle_gate_return, .-raddle_gate_return",
    ".hidden raddle_gate_end",
    ".globl raddle_gate_end",
    "raddle_gate_end:",
);

unsafe extern "C" {
    fn raddle_gate();
    fn raddle_gate_return();
    fn raddle_gate_end();
}

/// Where the runtime's own system calls are made: start and length of the code.
pub fn gate() -> (usize, usize) {
    let start = raddle_gate as *const () as usize;
    (start, raddle_gate_end as *const () as usize - start)
}

/// The address that a handler of signals returns to.
pub fn gate_return() -> usize {
    raddle_gate_return as *const () as usize
}

/// As [`syscall6`], through the gate.
///
/// # Safety
/// As the system call asks.
#[inline]
pub unsafe fn own_syscall6(n: usize, a: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: as for `syscall6`; the call pushes one word, for which the compiler leaves room.
    unsafe {
        asm!(
            "call {gate}",
            gate = sym raddle_gate,
            inlateout("rax") n as isize => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

pub mod fiber;

pub fn pause() {
    core::hint::spin_loop();
}

pub fn abort() -> ! {
    // SAFETY: ud2 raises SIGILL; nothing runs afterwards.
    unsafe { asm!("ud2", options(noreturn, nomem, nostack)) }
}

/// Approximate stack pointer of the caller, for telling live frames from dead ones.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags)) }
    sp
}

/// # Safety
/// `dst` and `src` are valid for `n` bytes and do not overlap, or `dst` is before `src`.
#[inline]
pub unsafe fn copy_forward(dst: *mut u8, src: *const u8, n: usize) {
    // SAFETY: by contract. Of up to 32 bytes, first and last parts are read before anything is written, so that they
    // may overlap.
    unsafe {
        match n {
            0 => return,
            8..=16 => {
                let (first, last) =
                    (src.cast::<u64>().read_unaligned(), src.add(n - 8).cast::<u64>().read_unaligned());
                dst.cast::<u64>().write_unaligned(first);
                return dst.add(n - 8).cast::<u64>().write_unaligned(last);
            }
            17..=32 => {
                let first = _mm_loadu_si128(src.cast());
                let last = _mm_loadu_si128(src.add(n - 16).cast());
                _mm_storeu_si128(dst.cast(), first);
                return _mm_storeu_si128(dst.add(n - 16).cast(), last);
            }
            // The string instruction below takes dozens of cycles to begin, whatever the length.
            _ => {}
        }
    }
    // SAFETY: by contract.
    unsafe {
        asm!("rep movsb", inout("rcx") n => _, inout("rdi") dst => _, inout("rsi") src => _,
             options(nostack, preserves_flags));
    }
}

/// # Safety
/// `dst` is valid for `n` bytes.
#[inline(always)]
pub unsafe fn fill(dst: *mut u8, byte: u8, n: usize) {
    // SAFETY: by contract.
    unsafe {
        asm!("rep stosb", inout("rcx") n => _, inout("rdi") dst => _, in("al") byte, options(nostack, preserves_flags));
    }
}

/// Compare-exchange of sixteen bytes: the value found.
///
/// # Safety
/// `at` is valid and 16-byte aligned, and the processor has the instruction (every one made since 2006).
#[inline]
pub unsafe fn compare_exchange_16(at: *mut u128, expected: u128, value: u128) -> u128 {
    let (mut low, mut high) = (expected as u64, (expected >> 64) as u64);
    // SAFETY: by contract. rbx is reserved by the compiler, so the new low half travels in another register.
    unsafe {
        asm!(
            "xchg {new_low}, rbx",
            "lock cmpxchg16b xmmword ptr [rdi]",
            "mov rbx, {new_low}",
            new_low = inout(reg) value as u64 => _,
            in("rdi") at,
            in("rcx") (value >> 64) as u64,
            inout("rax") low,
            inout("rdx") high,
            options(nostack)
        );
    }
    u128::from(low) | u128::from(high) << 64
}

/// What unwinding asks about each Rust frame, named in unwind tables. There are no handlers in the runtime, so the answer
/// is always the same, go on: that lets exceptions, `pthread_exit` and cancellation pass its frames.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() -> core::ffi::c_int {
    CONTINUE_UNWIND
}

/// A frame that calls a routine and wants to know when an exception, `pthread_exit` or a cancellation passes it: then it calls `$unwound`.
/// Its personality does what has to be done itself and lets the unwinding go on, so no landing pad is needed.
#[macro_export]
macro_rules! once_frame {
    ($unwound:path) => {
        core::arch::global_asm!(
            ".text",
            ".p2align 4",
            ".hidden raddle_once_frame",
            ".globl raddle_once_frame",
            ".type raddle_once_frame,@function",
            "raddle_once_frame:",
            ".cfi_startproc",
            ".cfi_personality 0x1b, {personality}",
            "sub rsp, 8",
            ".cfi_def_cfa_offset 16",
            "call rdi",
            "add rsp, 8",
            ".cfi_def_cfa_offset 8",
            "ret",
            ".cfi_endproc",
            ".size raddle_once_frame, .-raddle_once_frame",
            personality = sym once_personality,
        );

        unsafe extern "C" {
            fn raddle_once_frame(routine: extern "C" fn());
        }

        /// Runs the routine; if it is left by unwinding, that is told on the way.
        fn call_once_routine(routine: extern "C" fn()) {
            // SAFETY: the routine is the program's and takes no argument.
            unsafe { raddle_once_frame(routine) }
        }

        /// Called by the unwinder, first to look for a handler, then to clean up.
        extern "C" fn once_personality(
            _version: core::ffi::c_int,
            actions: core::ffi::c_int,
        ) -> core::ffi::c_int {
            const CLEANUP_PHASE: core::ffi::c_int = 2;
            if actions & CLEANUP_PHASE != 0 {
                $unwound();
            }
            $crate::arch::CONTINUE_UNWIND
        }
    };
}

/// `_URC_CONTINUE_UNWIND`.
pub const CONTINUE_UNWIND: core::ffi::c_int = 8;

/// The entry of a handler of crashes, which is `$target`. It goes over to the thread's own stack, unless the kernel has put it there already; a thread that the runtime
/// does not know has none, and stays where it is.
#[macro_export]
macro_rules! crash_entry {
    ($name:ident, $target:path) => {
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rbp",
                ".cfi_def_cfa_offset 16",
                ".cfi_offset rbp, -16",
                "mov rbp, rsp",
                ".cfi_def_cfa_register rbp",
                "mov rax, qword ptr [rip + raddle_thread_slot@GOTTPOFF]",
                "mov rax, qword ptr fs:[rax]",
                "mov rax, qword ptr [rax + {base}]",
                "test rax, rax",
                "jz 2f",
                "mov rcx, rsp",
                "sub rcx, rax",
                "cmp rcx, {bytes}",
                "jb 2f",
                "lea rsp, [rax + {bytes}]",
                "2: and rsp, -16",
                "call {target}",
                "leave",
                ".cfi_def_cfa rsp, 8",
                "ret",
                ".cfi_endproc",
                base = const core::mem::offset_of!($crate::thread::Thread, dying.stack),
                bytes = const $crate::thread::CRASH_STACK_BYTES,
                target = sym $target,
            )
        }
    };
}

// Calls a handler on another stack. Unwinding passes it: the frame is found through rbp.
global_asm!(
    ".text",
    ".p2align 4",
    ".hidden raddle_call_on_stack",
    ".globl raddle_call_on_stack",
    ".type raddle_call_on_stack,@function",
    "raddle_call_on_stack:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, rcx",
    "call r8",
    "leave",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size raddle_call_on_stack, .-raddle_call_on_stack",
);

unsafe extern "C" {
    fn raddle_call_on_stack(
        signal: core::ffi::c_int,
        info: *mut libc::siginfo_t,
        context: *mut core::ffi::c_void,
        stack: usize,
        handler: extern "C" fn(core::ffi::c_int, *mut libc::siginfo_t, *mut core::ffi::c_void),
    );
}

/// Calls the handler with its stack growing down from `stack`.
///
/// # Safety
/// The memory below `stack`, which is 16-byte aligned, is free to be used.
pub unsafe fn call_on_stack(
    handler: extern "C" fn(core::ffi::c_int, *mut libc::siginfo_t, *mut core::ffi::c_void),
    signal: core::ffi::c_int,
    info: *mut libc::siginfo_t,
    context: *mut core::ffi::c_void,
    stack: usize,
) {
    // SAFETY: by contract.
    unsafe { raddle_call_on_stack(signal, info, context, stack, handler) }
}

/// Layout of glibc's `pthread_mutex_t`.
pub mod mutex {
    use super::AtomicU32;

    #[repr(C)]
    pub struct Mutex {
        pub lock: AtomicU32,
        pub count: AtomicU32,
        pub owner: AtomicU32,
        pub users: AtomicU32,
        pub kind: AtomicU32,
    }

    pub const KIND_MASK: u32 = 3;
    pub const RECURSIVE: u32 = 1;
    pub const ERRORCHECK: u32 = 2;
    pub const ROBUST: u32 = 16;

    /// Thread id of the holder, 0 if there is none.
    ///
    /// # Safety
    /// `m` is the address of a mutex.
    pub unsafe fn holder(m: usize) -> u32 {
        // SAFETY: by contract.
        unsafe { (*(m as *const Mutex)).owner.load(core::sync::atomic::Ordering::Relaxed) }
    }
}

/// Defines an exported function that notes its caller's program counter in the current thread and jumps to the Rust
/// function behind it. Works for any number of arguments, because no argument register is touched.
#[macro_export]
macro_rules! export_with_pc {
    ($($name:ident => $target:path;)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "mov r10, qword ptr [rip + raddle_thread_slot@GOTTPOFF]",
                "mov r10, qword ptr fs:[r10]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr [r10 + {pc}], r11",
                "jmp {target}",
                pc = const core::mem::offset_of!($crate::thread::Thread, caller),
                target = sym $target,
            )
        }
    )*};
}

/// Defines an exported function with any number of integer arguments: as [`export_with_pc`], but the Rust function gets
/// them as a [`Variadic`](crate::arch::Variadic), field by field.
#[macro_export]
macro_rules! export_variadic_with_pc {
    ($($name:ident => $target:path;)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "mov r10, qword ptr [rip + raddle_thread_slot@GOTTPOFF]",
                "mov r10, qword ptr fs:[r10]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr [r10 + {pc}], r11",
                "sub rsp, 56",
                "mov qword ptr [rsp], rdi",
                "mov qword ptr [rsp + 8], rsi",
                "mov qword ptr [rsp + 16], rdx",
                "mov qword ptr [rsp + 24], rcx",
                "mov qword ptr [rsp + 32], r8",
                "mov qword ptr [rsp + 40], r9",
                "mov rdi, rsp",
                // Beyond what was made room for and the return address.
                "lea rsi, [rsp + 64]",
                "call {target}",
                "add rsp, 56",
                "ret",
                pc = const core::mem::offset_of!($crate::thread::Thread, caller),
                target = sym $target,
            )
        }
    )*};
}

/// Defines an exported function with arguments of any number and kind behind some that are named: the Rust function gets the named ones
/// and, in the register that follows, a [`VaList`](crate::arch::VaList) of the others. `save` and `register` go together: eight bytes for
/// each named argument, and the register behind theirs.
#[macro_export]
macro_rules! export_format_with_pc {
    ($($name:ident($save:literal, $register:literal) => $target:path;)*) => {$(
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "mov r10, qword ptr [rip + raddle_thread_slot@GOTTPOFF]",
                "mov r10, qword ptr fs:[r10]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr [r10 + {pc}], r11",
                "sub rsp, 216",
                // What C calls the register save area, behind the list.
                "mov qword ptr [rsp + 24], rdi",
                "mov qword ptr [rsp + 32], rsi",
                "mov qword ptr [rsp + 40], rdx",
                "mov qword ptr [rsp + 48], rcx",
                "mov qword ptr [rsp + 56], r8",
                "mov qword ptr [rsp + 64], r9",
                "movups xmmword ptr [rsp + 72], xmm0",
                "movups xmmword ptr [rsp + 88], xmm1",
                "movups xmmword ptr [rsp + 104], xmm2",
                "movups xmmword ptr [rsp + 120], xmm3",
                "movups xmmword ptr [rsp + 136], xmm4",
                "movups xmmword ptr [rsp + 152], xmm5",
                "movups xmmword ptr [rsp + 168], xmm6",
                "movups xmmword ptr [rsp + 184], xmm7",
                concat!("mov dword ptr [rsp], ", $save),
                "mov dword ptr [rsp + 4], 48",
                // Beyond what was made room for and the return address.
                "lea r10, [rsp + 224]",
                "mov qword ptr [rsp + 8], r10",
                "lea r10, [rsp + 24]",
                "mov qword ptr [rsp + 16], r10",
                concat!("mov ", $register, ", rsp"),
                "call {target}",
                "add rsp, 216",
                "ret",
                pc = const core::mem::offset_of!($crate::thread::Thread, caller),
                target = sym $target,
            )
        }
    )*};
}

/// C's `va_list`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct VaList {
    general: u32,
    floating: u32,
    stack: usize,
    save: usize,
}

impl VaList {
    const GENERAL_END: u32 = 48;
    const FLOATING_END: u32 = 176;

    fn take_from_stack(&mut self, bytes: usize) -> usize {
        let at = self.stack;
        self.stack += bytes;
        at
    }

    /// The next argument, an integer or a pointer.
    ///
    /// # Safety
    /// The caller has passed another one, of this kind (here and below).
    pub unsafe fn integer(&mut self) -> usize {
        let at = if self.general < VaList::GENERAL_END {
            self.general += 8;
            self.save + self.general as usize - 8
        } else {
            self.take_from_stack(8)
        };
        // SAFETY: by contract.
        unsafe { *(at as *const usize) }
    }

    /// Passes over a `double`.
    pub fn skip_double(&mut self) {
        if self.floating < VaList::FLOATING_END {
            self.floating += 16;
        } else {
            self.take_from_stack(8);
        }
    }

    /// Passes over a `long double`, which is always on the stack.
    pub fn skip_long_double(&mut self) {
        self.stack = self.stack.next_multiple_of(16) + 16;
    }
}

/// The arguments of a function with any number of them.
#[derive(Clone, Copy)]
pub struct Variadic {
    pub registers: *const [usize; 6],
    pub stack: *const usize,
}

impl Variadic {
    /// # Safety
    ///
    /// The caller must have passed at least `number + 1` arguments.
    pub unsafe fn get(self, number: usize) -> usize {
        // SAFETY: as promised.
        unsafe {
            match number.checked_sub(6) {
                None => (*self.registers)[number],
                Some(beyond) => *self.stack.add(beyond),
            }
        }
    }
}

/// Constants of the access hooks, four lanes each.
#[repr(C, align(16))]
pub struct Lanes([[u32; 4]; 3]);

/// What an old access may have that a new read has not, what it may have that a new write has not, and all but the bytes.
pub static LANES: Lanes = Lanes([[shadow::READ; 4], [0; 4], [0xffff_ff00; 4]]);

impl Lanes {
    /// Where the third constant is.
    pub const OTHERS: usize = 32;

    /// Where the constant is that a read, or a write, needs: a read does not mind whether an older access wrote.
    pub const fn ignored(read: bool) -> usize {
        if read { 0 } else { 16 }
    }
}

/// Defines an access hook: returns at once when the thread does not observe accesses, or when its cell already holds
/// an access of the same thread segment that covers this one; otherwise jumps to `slow_access(addr, pc, aux)`.
#[macro_export]
macro_rules! access_hook {
    ($name:ident, slow = $slow:path, mask = $mask:expr, read = $read:expr, aux = $aux:expr $(, last = $last:expr)?) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(_addr: *const u8) {
            core::arch::naked_asm!(
                ".p2align 4",
                "mov rax, qword ptr [rip + raddle_thread_slot@GOTTPOFF]",
                "mov rax, qword ptr fs:[rax]",
                "cmp dword ptr [rax + {enabled}], 0",
                "je 2f",
                "mov ecx, edi",
                "and ecx, 7",
                $(
                    // An access that is not aligned may reach into the next cell.
                    concat!("cmp ecx, ", $last),
                    "ja 3f",
                )?
                "mov edx, {mask}",
                "shl edx, cl",
                "movzx edx, dl",
                "or edx, dword ptr [rax + {state}]",
                "or edx, {read}",
                "movd xmm0, edx",
                "pshufd xmm0, xmm0, 0",
                "mov rax, qword ptr [rax + {shadow}]",
                "movabs rcx, {window}",
                "and rcx, rdi",
                "movdqa xmm1, xmmword ptr [rax + 2*rcx]",
                "por xmm1, xmmword ptr [rip + {lanes} + {ignored}]",
                // Whatever other bytes the older access touched.
                "movdqa xmm2, xmmword ptr [rip + {lanes} + {others}]",
                "por xmm2, xmm0",
                "pand xmm1, xmm2",
                "pcmpeqd xmm1, xmm0",
                "pmovmskb ecx, xmm1",
                "test ecx, ecx",
                "jz 3f",
                "2: ret",
                "3: mov rsi, qword ptr [rsp]",
                "mov edx, {aux}",
                "jmp {slow}",
                enabled = const core::mem::offset_of!($crate::thread::Thread, access.enabled),
                state = const core::mem::offset_of!($crate::thread::Thread, access.segment),
                shadow = const core::mem::offset_of!($crate::thread::Thread, access.shadow_base),
                mask = const $mask,
                read = const if $read { $crate::shadow::READ } else { 0 },
                window = const $crate::shadow::WINDOW_MASK,
                lanes = sym $crate::arch::LANES,
                ignored = const $crate::arch::Lanes::ignored($read),
                others = const $crate::arch::Lanes::OTHERS,
                aux = const $aux,
                slow = sym $slow,
            )
        }
    };
}

/// The hook of a sixteen-byte access: two whole cells, if it begins at one.
#[macro_export]
macro_rules! wide_access_hook {
    ($name:ident, slow = $slow:path, read = $read:expr, aux = $aux:expr) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(_addr: *const u8) {
            core::arch::naked_asm!(
                ".p2align 4",
                "mov rax, qword ptr [rip + raddle_thread_slot@GOTTPOFF]",
                "mov rax, qword ptr fs:[rax]",
                "cmp dword ptr [rax + {enabled}], 0",
                "je 2f",
                "test edi, 7",
                "jnz 3f",
                "mov edx, dword ptr [rax + {state}]",
                "or edx, {entry}",
                "movd xmm0, edx",
                "pshufd xmm0, xmm0, 0",
                "mov rax, qword ptr [rax + {shadow}]",
                "movabs rcx, {window}",
                "and rcx, rdi",
                "movdqa xmm2, xmmword ptr [rip + {lanes} + {ignored}]",
                "movdqa xmm1, xmmword ptr [rax + 2*rcx]",
                "movdqa xmm3, xmmword ptr [rax + 2*rcx + 16]",
                "por xmm1, xmm2",
                "por xmm3, xmm2",
                "pcmpeqd xmm1, xmm0",
                "pcmpeqd xmm3, xmm0",
                "pmovmskb ecx, xmm1",
                "pmovmskb edx, xmm3",
                "test ecx, ecx",
                "jz 3f",
                "test edx, edx",
                "jz 3f",
                "2: ret",
                "3: mov rsi, qword ptr [rsp]",
                "mov edx, {aux}",
                "jmp {slow}",
                enabled = const core::mem::offset_of!($crate::thread::Thread, access.enabled),
                state = const core::mem::offset_of!($crate::thread::Thread, access.segment),
                shadow = const core::mem::offset_of!($crate::thread::Thread, access.shadow_base),
                entry = const 0xff | if $read { $crate::shadow::READ } else { 0 },
                window = const $crate::shadow::WINDOW_MASK,
                lanes = sym $crate::arch::LANES,
                ignored = const $crate::arch::Lanes::ignored($read),
                aux = const $aux,
                slow = sym $slow,
            )
        }
    };
}
