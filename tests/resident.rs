//! Large tables take memory from the system as they fill, and ask for huge pages as configured.

#![cfg(target_os = "linux")]

mod common;

use std::process::Command;

use common::{Config, Seeded, Words, seeded};
use koel::{CuckooFilter, HashMap, InlineMap};

/// The resident bytes of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let told = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("how much is resident");
    kilobytes(told) * 1024
}

fn kilobytes(told: &str) -> usize {
    let number = told.trim().strip_suffix(" kB").and_then(|number| number.parse().ok());
    number.expect("a number of kilobytes")
}

/// The bytes of this process's address space for which huge pages were requested.
fn advised() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("Linux tells");
    let (mut size, mut sum) = (0, 0);
    for line in text.lines() {
        if let Some(told) = line.strip_prefix("Size:") {
            size = kilobytes(told) * 1024;
        } else if let Some(flags) = line.strip_prefix("VmFlags:") {
            sum += if flags.split(' ').any(|flag| flag == "hg") { size } else { 0 };
        }
    }
    sum
}

/// Why a child's measurements would prove nothing here.
fn why_not() -> Option<&'static str> {
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    match huge {
        Ok(huge) if huge.contains("[always]") => Some("tests/resident.rs: here a touched page brings 2 MiB"),
        Ok(_) => None,
        Err(_) => Some("tests/resident.rs: here are no huge pages to be asked for"),
    }
}

const CASE: &str = "KOEL_RESIDENT";

/// Runs each case in a process that has freed nothing yet: glibc requests large blocks directly from the system, and raises the
/// threshold for that to the size of blocks that were freed; smaller blocks are cut from a thread's arena, where it writes the
/// zeros itself.
fn each_in_a_child(test: &str, cases: &[(&str, fn())]) {
    if let Some(why) = why_not() {
        return common::not_run(why);
    }
    if let Ok(name) = std::env::var(CASE) {
        let case = cases.iter().find(|(case, _)| *case == name);
        return (case.expect("one of these").1)();
    }
    for (case, _) in cases {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", test, "--test-threads=1"]);
        let output = command.env(CASE, case).output().expect("a child");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{case}: {said}");
    }
}

fn takes_memory_as_it_fills<M: Words>() {
    let before = resident();
    // With large segments: small ones are cut from memory that the allocator may have used before.
    let map = M::build(Config::fixed(20_000_000), seeded(3));
    let now = resident().saturating_sub(before);
    let most = map.memory_usage() / 2;
    assert!(now < most, "{}: {now} of {} bytes are resident", M::NAME, map.memory_usage());
    assert_eq!((map.insert(1, 2), map.get(&1)), (None, Some(2)));
}

#[test]
fn large_maps_take_memory_as_they_fill() {
    let cases: [(&str, fn()); 2] = [
        ("HashMap", takes_memory_as_it_fills::<HashMap<u64, u64, Seeded>>),
        ("InlineMap", takes_memory_as_it_fills::<InlineMap<u64, u64, Seeded>>),
    ];
    each_in_a_child("large_maps_take_memory_as_they_fill", &cases);
}

/// Pages that were never written to stay untouched also when the filter is emptied.
fn filter_takes_memory_as_it_fills(bits: u32, semi_sorted: bool) {
    let before = resident();
    let builder =
        CuckooFilter::builder().capacity(20_000_000).fingerprint_bits(bits).semi_sorted(semi_sorted);
    let filter = builder.huge_pages(false).build().expect("a filter");
    let check = |when: &str| {
        let (now, all) = (resident().saturating_sub(before), filter.memory_usage());
        assert!(now < all / 2, "{when}: {now} of {all} bytes are resident");
    };
    check("empty");
    (0..100_u64).for_each(|key| filter.insert(&key).expect("there is room"));
    filter.clear();
    assert!(filter.is_empty() && !(0..100_u64).any(|key| filter.contains(&key)));
    check("emptied");
}

#[test]
fn large_filters_take_memory_as_they_fill() {
    let cases: [(&str, fn()); 3] = [
        ("one word", || filter_takes_memory_as_it_fills(8, false)),
        ("torn", || filter_takes_memory_as_it_fills(12, false)),
        ("semi-sorted", || filter_takes_memory_as_it_fills(13, true)),
    ];
    each_in_a_child("large_filters_take_memory_as_they_fill", &cases);
}

/// How many bytes of a filter for this many keys, of 8 bits each, are in blocks for which huge pages are requested.
fn advised_for(capacity: usize, huge_pages: Option<bool>) -> usize {
    let builder = CuckooFilter::builder().capacity(capacity).fingerprint_bits(8);
    let builder = match huge_pages {
        Some(yes) => builder.huge_pages(yes),
        None => builder,
    };
    let before = advised();
    let filter = builder.build().expect("a filter");
    let advised = advised() - before;
    assert!(filter.memory_usage() > capacity);
    advised
}

#[test]
fn filters_ask_for_huge_pages_from_4_mib_on_or_as_they_are_told() {
    const LARGE: usize = 20_000_000;
    /// A filter of 3.9 MiB: there may be no whole huge page in it, so that the option may change nothing.
    const SMALL: usize = 3_900_000;
    let cases: [(&str, fn()); 4] = [
        ("large", || assert!(advised_for(LARGE, None) >= 16 << 20)),
        ("large, told to", || assert!(advised_for(LARGE, Some(true)) >= 16 << 20)),
        ("large, told not to", || assert_eq!(advised_for(LARGE, Some(false)), 0)),
        ("small", || assert_eq!(advised_for(SMALL, None), 0)),
    ];
    each_in_a_child("filters_ask_for_huge_pages_from_4_mib_on_or_as_they_are_told", &cases);
}
