//! Each line that this prints is an address, a size and the path of an object.

use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[repr(C)]
struct Account {
    number: u32,
    balance: [i64; 3],
    pair: (u8, u32),
}

struct Shared(UnsafeCell<i32>);
unsafe impl Sync for Shared {}

static TOTAL: AtomicUsize = AtomicUsize::new(0);
static LOCK: Mutex<i32> = Mutex::new(3);
static SHARED: Shared = Shared(UnsafeCell::new(1));
static mut ACCOUNTS: [Account; 2] =
    [Account { number: 1, balance: [0; 3], pair: (1, 2) }, Account { number: 2, balance: [0; 3], pair: (1, 2) }];

mod vault {
    pub static mut OPENED: u64 = 1;
}

fn show<T>(object: *const T, path: &str) {
    println!("{object:p} {} {path}", size_of::<T>());
}

fn count() -> usize {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    show(&CALLS, "bank::count::CALLS");
    CALLS.fetch_add(1, Ordering::Relaxed)
}

fn main() {
    show(&TOTAL, "bank::TOTAL");
    show(&LOCK, "bank::LOCK");
    show(&SHARED.0, "bank::SHARED.0");
    unsafe {
        show(&raw const ACCOUNTS[1].number, "bank::ACCOUNTS[1].number");
        show(&raw const ACCOUNTS[1].balance[2], "bank::ACCOUNTS[1].balance[2]");
        show(&raw const ACCOUNTS[0].pair.1, "bank::ACCOUNTS[0].pair.1");
        show(&raw const vault::OPENED, "bank::vault::OPENED");
        ACCOUNTS[1].number += count() as u32;
        vault::OPENED += 1;
    }
    *LOCK.lock().unwrap() += 1;
    TOTAL.fetch_add(1, Ordering::Relaxed);
}
