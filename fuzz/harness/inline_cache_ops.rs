//! Operations on an inline cache, and on a `Cache` for comparison: those of `tests/inline_cache`, chosen by the input.

#[path = "../../tests/inline_cache/pair.rs"]
mod pair;

use std::hash::BuildHasher;

use koel::Policy;

use super::common::hashers::{CONSTANT, ONE_BIT};
use super::common::seeded;
use super::input::Input;
use pair::{Pair, Request};

/// Mostly loads on a miss.
const REQUESTS: [Request; 12] = [
    Request::ReadThrough,
    Request::ReadThrough,
    Request::Load,
    Request::GetMany,
    Request::Insert,
    Request::Remove,
    Request::RemoveIf,
    Request::Compute,
    Request::Peek,
    Request::Contains,
    Request::Retain,
    Request::Clear,
];
/// Inputs that would take long teach nothing new.
const STEPS: u64 = 600;

/// The first byte selects the hash function.
pub(crate) fn inline_cache_ops(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => run(input, ONE_BIT),
        1 => run(input, CONSTANT),
        n => run(input, seeded(u64::from(n))),
    }
}

/// The next two bytes select the kind of caches, and each two bytes after them a request and its key.
fn run(mut input: Input<'_>, hasher: impl BuildHasher + Clone) {
    let mut choose = |from: usize| usize::from(input.byte()) % from;
    let capacity = [1, 2, 3, 5, 7, 20, 100, 3000][choose(8)];
    let policy = [Policy::Adaptive, Policy::Clock, Policy::Local][choose(3)];
    let pair = Pair::new(policy, capacity, hasher);
    for value in 0..STEPS {
        if input.is_empty() {
            break;
        }
        let request = REQUESTS[usize::from(input.byte()) % REQUESTS.len()];
        pair.both(request, u64::from(input.byte()), value);
    }
    pair.end();
}
