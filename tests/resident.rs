//! A large map takes memory from the system as it fills.

#![cfg(target_os = "linux")]

mod common;

use std::process::Command;

use common::{Config, Seeded, Words, seeded};
use koel::{HashMap, InlineMap};

/// Bytes of this process that are resident.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let told = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("how much is resident");
    let kilobytes = told.trim().strip_suffix(" kB").and_then(|number| number.parse::<usize>().ok());
    kilobytes.expect("a number") * 1024
}

fn takes_memory_as_it_fills<M: Words>() {
    let before = resident();
    // In large segments: small ones are cut from memory that the allocator may have used before.
    let map = M::build(Config::fixed(20_000_000), seeded(3));
    let now = resident().saturating_sub(before);
    let most = map.memory_usage() / 2;
    assert!(now < most, "{}: {now} of {} bytes are resident", M::NAME, map.memory_usage());
    assert_eq!((map.insert(1, 2), map.get(&1)), (None, Some(2)));
}

/// Each in a process that has freed nothing yet: glibc raises the size from which on it asks the system for a block of its own
/// to that of what it has seen freed; smaller blocks are cut from a thread's arena, where it writes the zeros itself.
#[test]
fn large_maps_take_memory_as_they_fill() {
    const MAP: &str = "KOEL_LARGE_MAP";
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if huge.contains("[always]") {
        return common::not_run("tests/resident.rs: here a touched page brings 2 MiB");
    }
    match std::env::var(MAP).as_deref() {
        Ok("HashMap") => return takes_memory_as_it_fills::<HashMap<u64, u64, Seeded>>(),
        Ok(_) => return takes_memory_as_it_fills::<InlineMap<u64, u64, Seeded>>(),
        Err(_) => {}
    }
    for map in ["HashMap", "InlineMap"] {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "large_maps_take_memory_as_they_fill", "--test-threads=1"]);
        let output = command.env(MAP, map).output().expect("a child");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{map}: {said}");
    }
}
