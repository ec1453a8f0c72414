//! Readers on all cores and one writer, for some seconds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::console::STOP;
use crate::data::{Plan, Request};

/// What is measured.
pub(crate) trait Subject: Sync {
    /// Whether there is such a key.
    fn read(&self, key: &[u8]) -> Result<bool, Failure>;

    /// Puts a value, or deletes.
    fn write(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), Failure>;
}

/// The result of a pass.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) lookups: u64,
    pub(crate) writes: u64,
    pub(crate) seconds: f64,
}

/// Runs one pass. Checks every answer about a key's presence: keys that the writer leaves alone stay present or absent. Values
/// are not checked: in a database of somebody else's they may be anything.
pub(crate) fn run(subject: &impl Subject, plan: &Plan, seconds: f64) -> Result<Pass, Failure> {
    let over = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let readers: Vec<_> =
            plan.readers.iter().map(|requests| scope.spawn(|| read(subject, requests, &over))).collect();
        let writer = scope.spawn(|| write(subject, &plan.writer, &over));
        let length = Duration::from_secs_f64(seconds);
        while start.elapsed() < length && !STOP.load(Ordering::Relaxed) && !writer.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        over.store(true, Ordering::Relaxed);
        let mut pass = Pass::default();
        for reader in readers {
            pass.lookups += reader.join().map_err(|_| "a reader panicked".to_owned())??;
        }
        pass.seconds = start.elapsed().as_secs_f64();
        pass.writes = writer.join().map_err(|_| "the writer panicked".to_owned())??;
        Ok(pass)
    })
}

fn read(subject: &impl Subject, requests: &[Request], over: &AtomicBool) -> Result<u64, Failure> {
    let mut lookups = 0;
    loop {
        for some in requests.chunks(64) {
            for Request { key, present } in some {
                if subject.read(key)? != *present {
                    let name = String::from_utf8_lossy(key);
                    let truth = if *present { "there" } else { "absent" };
                    let message = format!("a wrong answer: `{name}` is {truth}, and it said otherwise");
                    return Err(Failure::WrongAnswer(message));
                }
            }
            lookups += some.len() as u64;
            if over.load(Ordering::Relaxed) {
                return Ok(lookups);
            }
        }
    }
}

/// Puts new keys, overwrites and deletes them; leaves none behind.
fn write(subject: &impl Subject, prefix: &str, over: &AtomicBool) -> Result<u64, Failure> {
    let mut writes = 0;
    for number in 0_u64.. {
        let key = format!("{prefix}{}", number / 3);
        subject.write(key.as_bytes(), (number % 3 < 2).then_some(b"value"))?;
        writes += 1;
        if number % 3 == 2 && over.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(writes)
}
