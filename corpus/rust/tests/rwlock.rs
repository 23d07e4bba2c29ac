//! `RwLock`: writing under a read lock, two locks in two orders, readers and writers as they should be.

use corpus_rust::Shared;
use std::sync::{Arc, RwLock};
use std::thread;

#[test]
fn race_two_writers_that_read_lock() {
    static DATA: Shared<u64> = Shared::new(0);
    static LOCK: RwLock<()> = RwLock::new(());
    let other = thread::spawn(|| {
        let _reader = LOCK.read().unwrap();
        DATA.set(DATA.get() + 1);
    });
    {
        let _reader = LOCK.read().unwrap();
        DATA.set(DATA.get() + 1);
    }
    other.join().unwrap();
}

#[test]
fn right_writers_and_readers() {
    static DATA: Shared<u64> = Shared::new(0);
    static LOCK: RwLock<()> = RwLock::new(());
    let other = thread::spawn(|| {
        let _writer = LOCK.write().unwrap();
        DATA.set(DATA.get() + 1);
    });
    let seen = {
        let _reader = LOCK.read().unwrap();
        DATA.get()
    };
    other.join().unwrap();
    assert!(seen <= 1);
}

#[test]
fn deadlock_two_orders() {
    let locks = Arc::new((RwLock::new(0), RwLock::new(0)));
    let others = locks.clone();
    let other = thread::spawn(move || {
        let mut first = others.0.write().unwrap();
        *first += *others.1.read().unwrap();
    });
    {
        let mut second = locks.1.write().unwrap();
        *second += *locks.0.read().unwrap();
    }
    other.join().unwrap();
}

#[test]
fn right_one_order() {
    let locks = Arc::new((RwLock::new(1), RwLock::new(1)));
    let others = locks.clone();
    let other = thread::spawn(move || {
        let mut first = others.0.write().unwrap();
        *first += *others.1.read().unwrap();
    });
    {
        let first = locks.0.read().unwrap();
        *locks.1.write().unwrap() += *first;
    }
    other.join().unwrap();
}
