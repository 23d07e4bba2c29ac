//! `Mutex`: a hidden race beside it, two locks in two orders, a lock that is tried, a poisoned one.

use corpus_rust::Shared;
use std::sync::{Arc, Mutex};
use std::thread;

#[test]
fn race_outside_the_lock() {
    static DATA: Shared<u64> = Shared::new(0);
    static LOG: Mutex<u64> = Mutex::new(0);
    let other = thread::spawn(|| {
        DATA.set(1);
        *LOG.lock().unwrap() += 1;
    });
    *LOG.lock().unwrap() += 1;
    DATA.set(2);
    other.join().unwrap();
}

#[test]
fn right_inside_the_lock() {
    static DATA: Shared<u64> = Shared::new(0);
    static LOG: Mutex<u64> = Mutex::new(0);
    let other = thread::spawn(|| {
        let mut log = LOG.lock().unwrap();
        DATA.set(DATA.get() + 1);
        *log += 1;
    });
    {
        let mut log = LOG.lock().unwrap();
        DATA.set(DATA.get() + 1);
        *log += 1;
    }
    other.join().unwrap();
    assert_eq!(DATA.get(), 2);
}

#[test]
fn deadlock_two_orders() {
    let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
    let others = locks.clone();
    let other = thread::spawn(move || {
        let mut first = others.0.lock().unwrap();
        *others.1.lock().unwrap() += 1;
        *first += 1;
    });
    {
        let mut second = locks.1.lock().unwrap();
        *locks.0.lock().unwrap() += 1;
        *second += 1;
    }
    other.join().unwrap();
}

#[test]
fn right_one_order() {
    let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
    let others = locks.clone();
    let other = thread::spawn(move || {
        let mut first = others.0.lock().unwrap();
        *others.1.lock().unwrap() += 1;
        *first += 1;
    });
    {
        let mut first = locks.0.lock().unwrap();
        *locks.1.lock().unwrap() += 1;
        *first += 1;
    }
    other.join().unwrap();
    assert_eq!((*locks.0.lock().unwrap(), *locks.1.lock().unwrap()), (2, 2));
}

#[test]
fn right_two_orders_where_one_only_tries() {
    let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
    let others = locks.clone();
    let other = thread::spawn(move || {
        let _first = others.0.lock().unwrap();
        *others.1.lock().unwrap() += 1;
    });
    {
        let _second = locks.1.lock().unwrap();
        if let Ok(mut first) = locks.0.try_lock() {
            *first += 1;
        }
    }
    other.join().unwrap();
}

#[test]
fn right_poisoned() {
    let lock = Arc::new(Mutex::new(1));
    let others = lock.clone();
    let other = thread::spawn(move || {
        let mut value = others.lock().unwrap();
        *value = 2;
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(other.join().is_err());
    assert!(lock.is_poisoned());
    assert_eq!(*lock.lock().unwrap_err().into_inner(), 2);
}
