//! What hands data from one thread to another: channels, parking, `Once`, `OnceLock`, `LazyLock`, `Barrier`, scopes, `Arc`. All right,
//! and each time the data itself has no other protection; beside them a race that each of them does *not* prevent.

use corpus_rust::Shared;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, LazyLock, Mutex, Once, OnceLock, mpsc};
use std::thread;

#[test]
fn right_channel() {
    static DATA: Shared<u64> = Shared::new(0);
    let (sender, receiver) = mpsc::channel();
    let other = thread::spawn(move || {
        DATA.set(7);
        sender.send(()).unwrap();
    });
    receiver.recv().unwrap();
    assert_eq!(DATA.get(), 7);
    other.join().unwrap();
}

#[test]
fn right_bounded_channel() {
    let (sender, receiver) = mpsc::sync_channel(1);
    let other = thread::spawn(move || (0..20).for_each(|number| sender.send(Box::new(number)).unwrap()));
    assert_eq!(receiver.iter().map(|number| *number).sum::<i32>(), 190);
    other.join().unwrap();
}

#[test]
fn race_after_the_message() {
    static DATA: Shared<u64> = Shared::new(0);
    static LOG: Mutex<u64> = Mutex::new(0);
    let (sender, receiver) = mpsc::channel();
    let other = thread::spawn(move || {
        sender.send(()).unwrap();
        DATA.set(7);
        *LOG.lock().unwrap() += 1;
    });
    receiver.recv().unwrap();
    *LOG.lock().unwrap() += 1;
    DATA.set(8);
    other.join().unwrap();
}

#[test]
fn right_parking() {
    static DATA: Shared<u64> = Shared::new(0);
    static READY: AtomicBool = AtomicBool::new(false);
    let main = thread::current();
    let other = thread::spawn(move || {
        DATA.set(7);
        READY.store(true, Ordering::Release);
        main.unpark();
    });
    while !READY.load(Ordering::Acquire) {
        thread::park();
    }
    assert_eq!(DATA.get(), 7);
    other.join().unwrap();
}

#[test]
fn race_relaxed_flag() {
    static DATA: Shared<u64> = Shared::new(0);
    static READY: AtomicBool = AtomicBool::new(false);
    let other = thread::spawn(|| {
        DATA.set(7);
        READY.store(true, Ordering::Relaxed);
    });
    if READY.load(Ordering::Relaxed) {
        assert_eq!(DATA.get(), 7);
    } else {
        DATA.set(8);
    }
    other.join().unwrap();
}

#[test]
fn right_once() {
    static DATA: Shared<u64> = Shared::new(0);
    static ONCE: Once = Once::new();
    static CELL: OnceLock<u64> = OnceLock::new();
    static LAZY: LazyLock<u64> = LazyLock::new(|| 7);
    let look = || {
        ONCE.call_once(|| DATA.set(7));
        DATA.get() + CELL.get_or_init(|| 7) + *LAZY
    };
    let other = thread::spawn(look);
    assert_eq!(look(), 21);
    assert_eq!(other.join().unwrap(), 21);
}

#[test]
fn right_barrier() {
    static DATA: [Shared<u64>; 2] = [const { Shared::new(0) }; 2];
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        for own in 0..2 {
            let barrier = &barrier;
            scope.spawn(move || {
                DATA[own].set(7);
                barrier.wait();
                assert_eq!(DATA[1 - own].get(), 7);
            });
        }
    });
}

#[test]
fn right_scope_and_arc() {
    let numbers = Arc::new((0..4).map(|number| Box::new(number)).collect::<Vec<_>>());
    let sum = Mutex::new(0);
    thread::scope(|scope| {
        for place in 0..4 {
            let (numbers, sum) = (numbers.clone(), &sum);
            scope.spawn(move || *sum.lock().unwrap() += *numbers[place]);
        }
    });
    assert_eq!(sum.into_inner().unwrap(), 6);
}

#[test]
fn race_between_scoped_threads() {
    static DATA: Shared<u64> = Shared::new(0);
    thread::scope(|scope| {
        scope.spawn(|| DATA.set(1));
        scope.spawn(|| DATA.set(2));
    });
}
