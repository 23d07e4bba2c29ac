//! `Condvar`: a signal that can come too early, and the loop that makes it right; waiting with a time limit.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

#[test]
fn signal_lost() {
    let pair = Arc::new((Mutex::new(()), Condvar::new()));
    let others = pair.clone();
    let guard = pair.0.lock().unwrap();
    let other = thread::spawn(move || {
        let _guard = others.0.lock().unwrap();
        others.1.notify_one();
    });
    drop(guard);
    // Here the other thread may have been and gone.
    let guard = pair.0.lock().unwrap();
    drop(pair.1.wait(guard).unwrap());
    other.join().unwrap();
}

#[test]
fn right_signal_with_a_flag() {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let others = pair.clone();
    let other = thread::spawn(move || {
        *others.0.lock().unwrap() = true;
        others.1.notify_one();
    });
    let ready = pair.1.wait_while(pair.0.lock().unwrap(), |ready| !*ready).unwrap();
    assert!(*ready);
    drop(ready);
    other.join().unwrap();
}

#[test]
fn right_time_limit() {
    let pair = (Mutex::new(false), Condvar::new());
    let (ready, result) = pair.1.wait_timeout(pair.0.lock().unwrap(), Duration::from_millis(5)).unwrap();
    assert!(!*ready);
    // A wake-up without a reason is allowed and does not happen here.
    assert!(result.timed_out());
}
