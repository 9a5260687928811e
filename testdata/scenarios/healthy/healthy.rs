// A healthy Rust program under load: see ../healthy.c for the idea.
use std::io::Read;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, RwLock};
use std::thread;
use std::time::Duration;

fn main() {
    let mutexes: Arc<Vec<Mutex<u64>>> = Arc::new((0..6).map(|_| Mutex::new(0)).collect());
    let shared = Arc::new(RwLock::new(0u64));
    let turn = Arc::new((Mutex::new(0usize), Condvar::new()));
    let (give, take) = sync_channel::<u64>(2);
    for n in 0..16usize {
        let (mutexes, shared, turn, give) = (mutexes.clone(), shared.clone(), turn.clone(), give.clone());
        thread::spawn(move || {
            let mut seed = n * 7919 + 1;
            loop {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let (a, b) = ((seed >> 33) % 6, (seed >> 43) % 6);
                if a >= b {
                    continue;
                }
                let mut first = mutexes[a].lock().unwrap();
                let second = mutexes[b].lock().unwrap();
                *first += *second + *shared.read().unwrap();
                drop(second);
                drop(first);
                if n == 0 {
                    *shared.write().unwrap() += 1;
                }
                let (lock, cond) = &*turn;
                *lock.lock().unwrap() += 1;
                cond.notify_all();
                give.send(seed as u64).unwrap();
                if n % 4 == 1 {
                    let held = lock.lock().unwrap();
                    drop(cond.wait(held).unwrap());
                }
                thread::sleep(Duration::from_micros((seed % 700) as u64));
            }
        });
    }
    thread::spawn(move || for _ in take {});
    println!("ready");
    let _ = std::io::stdin().read(&mut [0u8; 1]);
}
