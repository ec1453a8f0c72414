//! Code that the integration tests share: one interface for both maps, the configurations they run in, and small tools.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "every test binary compiles all of it and uses a part"
)]

mod any_hash_map;
mod any_inline_map;
mod any_map;
mod at_end;
mod catch;
mod config;
pub(crate) mod counting;
pub(crate) mod fuse;
pub(crate) mod hashers;
mod laws;
mod ledger;
mod noted;
#[cfg(feature = "metrics")]
pub(crate) mod recorder;
mod rng;

use core::cell::RefCell;
use core::fmt::Debug;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

pub(crate) use any_map::AnyMap;
pub(crate) use at_end::SetAtEnd;
pub(crate) use catch::catch;
pub(crate) use config::{Config, Room, fixed_configs, growing_configs};
pub(crate) use hashers::{Seeded, seeded};
pub(crate) use laws::{Words, ignore, laws};
pub(crate) use ledger::{Counted, Ledger};
pub(crate) use noted::Noted;
pub(crate) use rng::{Rng, seed};

/// Reports that something was not tested, and why: directly on standard error, as the harness shows the output of tests only
/// when they fail.
pub(crate) fn not_run(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "NOT RUN: {why}");
}

/// A number from the environment, for longer runs: `KOEL_HISTORIES=2000 cargo test --release --test linearizability`.
pub(crate) fn env_number(name: &str, otherwise: usize) -> usize {
    let number = env(name).unwrap_or(otherwise);
    assert!(number > 0, "{name}=0: nothing would be tested");
    number
}

fn env(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text:?}")))
}

/// Polls a future once, on another thread.
fn poll_elsewhere<F: Future<Output: Send> + Send>(future: Pin<&mut F>) -> Poll<F::Output> {
    let poll = || future.poll(&mut Context::from_waker(Waker::noop()));
    std::thread::scope(|scope| scope.spawn(poll).join().unwrap())
}

/// Returns the error of a load, whose loader calls its argument. Meanwhile another caller waits for it, which must get the same
/// error.
pub(crate) fn shared_with_who_waits<E: Debug + PartialEq + Send>(
    waits: impl Future<Output = E> + Send,
    load: impl FnOnce(&dyn Fn()) -> E,
) -> E {
    let waits = pin!(waits);
    let waits = RefCell::new(waits);
    let look = || poll_elsewhere(waits.borrow_mut().as_mut());
    let failed = load(&|| assert!(look().is_pending()));
    let Poll::Ready(shared) = look() else { panic!("it waits still") };
    assert_eq!(shared, failed);
    failed
}

/// A source of values, with a load that has read it and has not ended when the source is written to.
pub(crate) struct Source {
    value: AtomicU64,
    has_read: Barrier,
    is_over: Barrier,
}

impl Source {
    pub(crate) fn new(value: u64) -> Self {
        Source { value: AtomicU64::new(value), has_read: Barrier::new(2), is_over: Barrier::new(2) }
    }

    /// Reads the value, and waits until the load may end.
    pub(crate) fn load(&self) -> u64 {
        let value = self.value.load(Ordering::Relaxed);
        self.has_read.wait();
        self.is_over.wait();
        value
    }

    /// Writes another value, once the load has read the old one.
    pub(crate) fn write(&self, value: u64) {
        self.has_read.wait();
        self.value.store(value, Ordering::Relaxed);
    }

    /// Lets the load end.
    pub(crate) fn let_go(&self) {
        self.is_over.wait();
    }
}

/// Makes a closure panic that decides about a key of a cache, and may have changed the source. Meanwhile a load is under way,
/// which began before, and itself calls the closure, or which begins while the closure runs. `load` calls its argument in its
/// loader, `decide` in its closure.
pub(crate) fn panics_beside_a_load(
    begins_meanwhile: bool,
    load: impl Fn(&dyn Fn()) + Sync,
    decide: impl Fn(&dyn Fn() -> bool),
) {
    let (begun, decided) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        let panics = || {
            if begins_meanwhile {
                scope.spawn(|| {
                    load(&|| {
                        begun.wait();
                        decided.wait();
                    });
                });
                begun.wait();
            }
            panic!("the source has changed")
        };
        let decide = || assert!(catch(|| decide(&panics)).is_err());
        if begins_meanwhile {
            decide();
            decided.wait();
        } else {
            load(&decide);
        }
    });
}

/// The size of the buffer of a [`large`] loader, in bytes.
pub(crate) const LARGE: usize = 10_000;

/// A loader that keeps a buffer.
pub(crate) fn large<T>(value: T) -> impl Future<Output = T> {
    let buffer = [0_u8; LARGE];
    async move {
        std::hint::black_box(&buffer);
        value
    }
}

/// Runs `body(thread)` on this many threads at once, and returns what they return, in order.
pub(crate) fn on_threads<T: Send>(threads: usize, body: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        let spawn = |thread| {
            let (start, body) = (&start, &body);
            scope.spawn(move || {
                start.wait();
                body(thread)
            })
        };
        let handles: Vec<_> = (0..threads).map(spawn).collect();
        handles.into_iter().map(|handle| handle.join().expect("a thread of the test panicked")).collect()
    })
}
