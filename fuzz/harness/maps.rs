//! Operations on the maps, against `std::collections::HashMap`: those of `tests/model`, chosen by the input.

use koel::{HashMap, InlineMap};

use super::common::hashers::{CONSTANT, ONE_BIT, Through};
use super::common::{Config, Seeded, fixed_configs, growing_configs, seeded};
use super::driver::{Driver, Subject};
use super::input::Input;
use super::ops::{Decision, Op};

/// The most keys, and the most keys of one range.
#[derive(Clone, Copy)]
struct Most(u32, u32);

const MANY: Most = Most(4096, 1024);
/// With colliding keys each look-up meets all others.
const COLLIDING: Most = Most(256, 64);

/// Operations on a `HashMap`.
pub(crate) fn map_ops(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 5 {
        0 => run::<HashMap<u64, u64, Seeded>>(input, seeded(1), MANY),
        1 => run::<HashMap<String, String, Seeded>>(input, seeded(2), MANY),
        2 => run::<HashMap<u64, (), Seeded>>(input, seeded(3), MANY),
        3 => run::<HashMap<u64, String, Through>>(input, ONE_BIT, COLLIDING),
        _ => run::<HashMap<u64, u64, Through>>(input, CONSTANT, COLLIDING),
    }
}

/// Operations on an `InlineMap`.
pub(crate) fn inline_map_ops(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 7 {
        0 => run::<InlineMap<u64, u64, Seeded>>(input, seeded(1), MANY),
        1 => run::<InlineMap<u64, [u64; 3], Seeded>>(input, seeded(2), MANY),
        2 => run::<InlineMap<[u8; 3], [u8; 5], Seeded>>(input, seeded(3), MANY),
        3 => run::<InlineMap<u32, [u32; 3], Seeded>>(input, seeded(4), MANY),
        4 => run::<InlineMap<u64, (), Seeded>>(input, seeded(5), MANY),
        5 => run::<InlineMap<u64, [u64; 3], Through>>(input, ONE_BIT, COLLIDING),
        _ => run::<InlineMap<u64, u64, Through>>(input, CONSTANT, COLLIDING),
    }
}

fn run<M: Subject>(mut input: Input<'_>, hasher: M::Hasher, Most(keys, range): Most) {
    let configs: [Config; 16] =
        [growing_configs(), fixed_configs(100), fixed_configs(7), [Config::room_for(300); 4]]
            .concat()
            .try_into()
            .expect("four times four");
    let config = configs[usize::from(input.byte() % 16)];
    // Few keys in half of the inputs, so that many operations meet.
    let most = Most(if input.byte() % 2 == 0 { 24 } else { keys }, range);
    let mut driver = Driver::<M>::new(config, hasher);
    // Inputs that would take long teach nothing new.
    let mut turns = 150;
    while !input.is_empty() && turns > 0 {
        turns -= 1;
        let op = operation(&mut input, most);
        driver.apply(&op);
    }
    driver.check_everything();
    driver.finish();
}

fn operation(input: &mut Input<'_>, Most(keys, range): Most) -> Op {
    let code = input.byte();
    let mut key = || input.number() % keys;
    match code % 32 {
        0 | 1 => Op::Insert(key(), u32::from(code)),
        2 | 3 => Op::CheckedInsert(key(), u32::from(code)),
        4 => Op::TryInsert(key(), u32::from(code)),
        5 | 6 => Op::Remove(key()),
        7 => Op::RemoveEntry(key()),
        8 => Op::RemoveIf(key(), code >= 128),
        9 => Op::Read(key()),
        10 => Op::ReadMany((0..u32::from(code) / 4).map(|i| (key() + i) % keys).collect()),
        11 if code < 128 => Op::GetOrInsert(key(), 1),
        11 => Op::GetOrInsertDefault(key()),
        12 if code / 32 == 4 => Op::TryInsertWith(key(), 2),
        12 => match code / 32 % 4 {
            0 => Op::GetOrInsertWith(key(), 2),
            1 => Op::GetOrInsertWithRef(key(), 2),
            n => Op::TryGetOrInsertWith(key(), (n == 2).then_some(2)),
        },
        13 => Op::Update(key(), 3),
        14 => Op::UpdateOrInsert(key(), 4),
        15 => Op::UpdateOrInsertWith(key(), 5),
        16 => Op::Compute(key(), Decision::Insert(6)),
        17 => Op::Compute(key(), Decision::Remove),
        18 => Op::Compute(key(), [Decision::RemoveAnyway, Decision::Abort][usize::from(code / 128)]),
        19 => Op::Retain(input.number() % 17),
        20 if code < 64 => Op::Clear,
        20 | 21 => Op::Drain(many(input.number())),
        22 => Op::Walk(many(input.number())),
        23 => Op::KeysAndValues,
        24 => Op::Reserve(input.number() as usize % 1024),
        25 | 26 => Op::ShrinkToFit,
        27 => Op::Extend((0..u32::from(code) / 4).map(|i| ((key() + i) % keys, i)).collect()),
        28 => Op::Clone,
        29 | 30 => {
            let (start, len) = (input.number() % keys, input.number() % range);
            if code % 32 == 29 {
                Op::InsertRange(start..start + len)
            } else {
                Op::RemoveRange(start..start + len)
            }
        }
        _ => Op::CheckEverything,
    }
}

/// A few, or all.
fn many(number: u32) -> usize {
    if number > 1 << 15 { usize::MAX } else { number as usize }
}
