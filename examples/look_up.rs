//! Looking up in both maps, as functions of their own: read their assembly with
//!
//! ```text
//! cargo rustc --release --example look_up -- --emit asm -C codegen-units=1
//! ```

use koel::{HashMap, InlineMap, Pinned};

/// A look-up through a pin that is already held.
#[inline(never)]
#[unsafe(no_mangle)]
fn koel_hash_map_get(pin: &Pinned<'_, u64, u64>, key: u64) -> u64 {
    pin.get(&key).copied().unwrap_or(0)
}

/// A look-up with a pin of its own.
#[inline(never)]
#[unsafe(no_mangle)]
fn koel_hash_map_pin_and_get(map: &HashMap<u64, u64>, key: u64) -> u64 {
    map.pin().get(&key).copied().unwrap_or(0)
}

/// A look-up that needs no pin.
#[inline(never)]
#[unsafe(no_mangle)]
fn koel_inline_map_get(map: &InlineMap<u64, u64>, key: u64) -> u64 {
    map.get(&key).unwrap_or(0)
}

fn main() {
    let entries: HashMap<u64, u64> = (1..=1000).map(|i| (i, i * i)).collect();
    let inline: InlineMap<u64, u64> = (1..=1000).map(|i| (i, i * i)).collect();
    let pin = entries.pin();
    let sum = |get: &dyn Fn(u64) -> u64| (0..2000).map(get).sum::<u64>();
    println!("HashMap, pin held: {}", sum(&|key| koel_hash_map_get(&pin, key)));
    println!("HashMap, pinned each time: {}", sum(&|key| koel_hash_map_pin_and_get(&entries, key)));
    println!("InlineMap: {}", sum(&|key| koel_inline_map_get(&inline, key)));
}
