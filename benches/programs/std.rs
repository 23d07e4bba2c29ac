//! The standard library's own primitives in one small program: threads, a mutex, a condition variable, a channel.

use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

fn main() {
    let shared = Arc::new((Mutex::new(0u32), Condvar::new()));
    let (sender, receiver) = channel();
    let workers: Vec<_> = (0..2u32)
        .map(|number| {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            thread::spawn(move || {
                let (count, changed) = &*shared;
                *count.lock().unwrap() += 1;
                changed.notify_one();
                sender.send(number).unwrap();
            })
        })
        .collect();
    drop(sender);
    let (count, changed) = &*shared;
    let mut seen = count.lock().unwrap();
    while *seen < 2 {
        seen = changed.wait(seen).unwrap();
    }
    drop(seen);
    let order: Vec<u32> = receiver.iter().collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    println!("{order:?}");
}
