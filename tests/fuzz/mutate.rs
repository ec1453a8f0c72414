//! Mutated inputs, as made by a fuzzer without feedback about coverage.

use crate::harness::common::Rng;

/// Longest input.
const MOST: usize = 8192;

/// One of the seeds, changed in a few places.
pub(crate) fn mutated(seeds: &[(String, Vec<u8>)], rng: &mut Rng) -> Vec<u8> {
    let one = |rng: &mut Rng| &seeds[rng.below(seeds.len() as u64) as usize].1;
    let mut input = one(rng).clone();
    for _ in 0..=rng.below(8) {
        let part = part(&input, rng);
        match rng.below(6) {
            0 => input[part].iter_mut().for_each(|byte| *byte ^= 1 << rng.below(8)),
            1 => input[part].iter_mut().for_each(|byte| *byte = rng.next() as u8),
            2 => drop(input.drain(part)),
            3 => input.extend_from_within(part),
            4 => {
                let other = one(rng);
                let from = self::part(other, rng);
                input.splice(part, other[from].iter().copied());
            }
            _ => {
                let len = 1 << rng.below(9);
                input.splice(part.start..part.start, (0..len).map(|_| rng.next() as u8));
            }
        }
    }
    input.truncate(MOST);
    input
}

/// A range of an input's bytes, mostly a short one.
fn part(input: &[u8], rng: &mut Rng) -> core::ops::Range<usize> {
    let begin = rng.below(input.len() as u64 + 1) as usize;
    let bits = rng.below(9);
    let len = rng.below(1 << bits) as usize;
    begin..(begin + len).min(input.len())
}
