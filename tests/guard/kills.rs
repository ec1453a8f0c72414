//! A process that is killed at any moment loses no write that it had acknowledged, and its files reopen without a false
//! "absent".
//!
//! A child, this program again, writes to a real database and reports what it has done; the parent kills it after a random
//! time, does something to the snapshot, opens the database and looks up every key. 200 kills; 2,000 with `KOEL_GUARD_LONG=1`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use koel::guard::{FjallStore, Guarded, RedbStore, SnapshotError, Store};

use crate::common::{Rng, finds, key, long, seed};

const KEYS: u64 = 400;
/// Keys that nobody touches: scanning them takes a child some time, in which it is killed as well.
const FIXED: u64 = 20_000;
/// A child lives less than this, or less than this beyond its first operations.
const PATIENCE_US: u64 = 60_000;
/// The seed of a child that writes nothing.
const IDLE: u64 = u64::MAX;
const CHILD: &str = "KOEL_GUARD_CHILD";

/// What the store should hold: the number of each key's value, after the acknowledged writes.
type Known = BTreeMap<u64, u64>;

fn open(folder: &Path) -> Guarded<RedbStore> {
    let store = RedbStore::open(folder.join("db")).expect("the database");
    Guarded::builder(store).snapshot(folder.join("filter")).open().expect("a guard")
}

/// The child: writes until it is killed. Each line of its output is one operation that is over.
#[test]
fn the_child() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let folder = Path::new(&folder);
    let seed = std::env::var("KOEL_GUARD_SEED").expect("a seed").parse().expect("a number");
    let mut rng = Rng::new(seed);
    let guarded = open(folder);
    let mut out = std::io::stdout();
    // The test's name is on this line.
    writeln!(out).expect("the parent listens");
    if seed == IDLE {
        loop {
            writeln!(out).expect("the parent listens");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    loop {
        let (number, value) = (rng.below(KEYS), rng.next());
        let line = match rng.below(8) {
            0..4 => {
                writeln!(out, "? put {number} {value}").expect("the parent listens");
                guarded.put(&key(number), &value.to_le_bytes()).expect("a put");
                format!("put {number} {value}")
            }
            4..7 => {
                writeln!(out, "? delete {number} 0").expect("the parent listens");
                guarded.delete(&key(number)).expect("a delete");
                format!("delete {number} 0")
            }
            // Sometimes there is no filter yet.
            _ => {
                let _ = guarded.snapshot(folder.join("filter"));
                "snapshot 0 0".to_owned()
            }
        };
        writeln!(out, "! {line}").expect("the parent listens");
    }
}

fn spawn(folder: &Path, seed: u64) -> Child {
    spawn_test("kills::the_child", CHILD, folder, seed)
}

fn spawn_test(test: &str, variable: &str, folder: &Path, seed: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env(variable, folder).env("KOEL_GUARD_SEED", seed.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a child")
}

/// Kills the child, some time after it has reported that this many operations are over. Returns what it has reported.
fn killed(mut child: Child, operations: u64, time: Duration) -> Vec<String> {
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut said = Vec::new();
    for _ in 0..operations {
        let end = lines.by_ref().find(|line| {
            said.push(line.clone());
            line.starts_with('!')
        });
        end.expect("the child writes until it is killed");
    }
    std::thread::sleep(time);
    child.kill().expect("SIGKILL");
    child.wait().expect("an end");
    said.extend(lines);
    said
}

/// Kills the child some time after it has reported that it has done this up to `number`. Returns the last number that it has
/// reported.
fn killed_after(mut child: Child, done: &str, number: u64) -> u64 {
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut numbers = lines.filter_map(|line| line.strip_prefix(done)?.parse().ok());
    assert!(numbers.any(|said| said == number), "the child goes on until it is killed");
    child.kill().expect("SIGKILL");
    child.wait().expect("an end");
    numbers.last().unwrap_or(number)
}

/// Applies the child's reports: operations that are over. Returns the one that may or may not be.
fn apply(said: &[String], known: &mut Known) -> Option<(u64, Option<u64>)> {
    let mut open = None;
    for line in said {
        let words: Vec<&str> = line.split(' ').collect();
        let [mark @ ("?" | "!"), verb, number, value] = words[..] else { continue };
        let (Ok(number), Ok(value)) = (number.parse(), value.parse()) else { continue };
        let result = match verb {
            "put" => Some(value),
            "delete" => None,
            _ => continue,
        };
        if mark == "?" {
            open = Some((number, result));
            continue;
        }
        open = None;
        match result {
            Some(value) => known.insert(number, value),
            None => known.remove(&number),
        };
    }
    open
}

/// Damages a snapshot, or replaces it.
fn damage(file: &Path, folder: &Path, rng: &mut Rng) {
    let Ok(mut bytes) = std::fs::read(file) else { return };
    let write = |bytes: &[u8]| std::fs::write(file, bytes).expect("the snapshot");
    match rng.below(6) {
        0 => write(&bytes[..rng.below(bytes.len() as u64) as usize]),
        1 => {
            let bit = rng.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
            write(&bytes);
        }
        // One keeps this snapshot; the other brings back one that was kept.
        2 => write_to(&folder.join("kept"), &bytes),
        3 => drop(std::fs::copy(folder.join("kept"), file)),
        4 => drop(std::fs::copy(folder.join("foreign"), file)),
        _ => {}
    }
}

fn write_to(file: &Path, bytes: &[u8]) {
    std::fs::write(file, bytes).expect("a file");
}

fn foreign_snapshot(folder: &Path) {
    let guarded = Guarded::open(RedbStore::open(folder.join("other")).expect("a database")).expect("a guard");
    guarded.wait_until_ready().expect("a filter");
    guarded.put(b"foreign", b"").expect("a put");
    guarded.snapshot(folder.join("foreign")).expect("a snapshot");
}

/// Checks that every present key is found, and no absent one; at once, and again when the filter is ready.
fn check(guarded: &Guarded<RedbStore>, known: &mut Known, open: Option<(u64, Option<u64>)>) {
    if let Some((number, result)) = open {
        let value = guarded.store().get(&key(number)).expect("a look-up");
        let found = value.map(|value| u64::from_le_bytes(value[..].try_into().expect("eight bytes")));
        assert!(found == result || found == known.get(&number).copied(), "{number} is {found:?}");
        match found {
            Some(found) => known.insert(number, found),
            None => known.remove(&number),
        };
    }
    for ready in [false, true] {
        if ready {
            guarded.wait_until_ready().expect("a filter");
        }
        for number in 0..KEYS {
            let value = guarded.get(&key(number)).expect("a look-up");
            let expected = known.get(&number).map(|value| value.to_le_bytes());
            assert_eq!(value.as_deref(), expected.as_ref().map(|bytes| &bytes[..]), "key {number}");
        }
    }
    assert_eq!(guarded.stats().filter_keys, known.len() as u64 + FIXED);
    assert_eq!(guarded.verify(usize::MAX).expect("a scan").false_negatives, 0);
    assert!(!finds(guarded, b"foreign"));
}

#[test]
fn a_process_that_is_killed_loses_nothing_and_reopens_without_a_false_absent() {
    let kills = if long() { 2000 } else { 200 };
    let seed = seed();
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    foreign_snapshot(folder);
    let fixed = (0..FIXED).map(|number| (key(1_000_000 + number), b""));
    RedbStore::open(folder.join("db")).expect("a database").load(fixed).expect("a load");
    let (mut rng, mut known) = (Rng::new(seed), Known::new());
    let (mut loaded, mut other, mut damaged, mut writes) = (0, 0, 0, 0);
    let mut is_idle = false;
    for kill in 0..kills {
        let child = spawn(folder, if is_idle { IDLE } else { seed.wrapping_add(kill) });
        // Not all are killed by the clock: on a slow machine none might have begun.
        let operations = if is_idle || rng.one_in(2) { 0 } else { rng.below(16) };
        let said = killed(child, operations, Duration::from_micros(rng.below(PATIENCE_US)));
        let open = apply(&said, &mut known);
        damage(&folder.join("filter"), folder, &mut rng);
        let guarded = open_counted(folder, [&mut loaded, &mut other, &mut damaged]);
        check(&guarded, &mut known, open);
        writes = guarded.store().generation().expect("a generation").count;
        is_idle = rng.below(3) == 0;
        if is_idle {
            // The next child leaves it alone, and it fits.
            guarded.snapshot(folder.join("filter")).expect("a snapshot");
        }
    }
    println!(
        "{kills} kills, {writes} writes; snapshots: {loaded} used, {other} of other moments, {damaged} damaged"
    );
    assert!(writes > kills && loaded > 5 && other > 5 && damaged > 5, "{writes} {loaded} {other} {damaged}");
}

fn open_counted(folder: &Path, counts: [&mut u64; 3]) -> Guarded<RedbStore> {
    let guarded = open(folder);
    let [loaded, other, damaged] = counts;
    match guarded.rejected_snapshot() {
        None => *loaded += 1,
        Some(SnapshotError::OtherGeneration) => *other += 1,
        Some(_) => *damaged += 1,
    }
    guarded
}

const FJALL_CHILD: &str = "KOEL_GUARD_FJALL_CHILD";

/// Puts keys, not durably, until it is killed, and reports each.
#[test]
fn the_child_with_fjall() {
    let Some(folder) = std::env::var_os(FJALL_CHILD) else { return };
    let guarded =
        Guarded::open(FjallStore::open(folder).expect("the keyspace").durable(false)).expect("a guard");
    let mut out = std::io::stdout();
    for number in 0.. {
        guarded.put(&key(number), b"").expect("a put");
        write!(out, "\nput {number}\n").expect("the parent listens");
    }
}

/// Only a crash of the system may lose writes that were not made durable.
#[test]
fn a_process_that_is_killed_loses_nothing_that_fjall_has_taken_though_not_durably() {
    for kill in 0..if long() { 100 } else { 5 } {
        let folder = tempfile::tempdir().expect("a folder");
        let child = spawn_test("kills::the_child_with_fjall", FJALL_CHILD, folder.path(), kill);
        let last = killed_after(child, "put ", 100 + 10 * kill);
        let store = FjallStore::open(folder.path()).expect("the keyspace");
        assert!((0..=last).all(|number| store.get(&key(number)).expect("a look-up").is_some()), "{last}");
    }
}

const SYNC_CHILD: &str = "KOEL_GUARD_SYNC_CHILD";

fn open_not_durable(folder: &Path) -> Guarded<RedbStore> {
    let store = RedbStore::open(folder.join("db")).expect("the database").durable(false);
    Guarded::builder(store).snapshot(folder.join("filter")).open().expect("a guard")
}

/// Puts keys into redb, not durably, and syncs now and then, until it is killed, and reports each.
#[test]
fn the_child_that_syncs() {
    let Some(folder) = std::env::var_os(SYNC_CHILD) else { return };
    let folder = Path::new(&folder);
    let guarded = open_not_durable(folder);
    let mut out = std::io::stdout();
    for number in 0.. {
        guarded.put(&key(number), b"").expect("a put");
        if number % 50 == 0 {
            guarded.store().sync().expect("a sync");
            write!(out, "\nsynced {number}\n").expect("the parent listens");
        }
        // It fits no state that is on the disk.
        if number % 50 == 25 {
            let _ = guarded.snapshot(folder.join("filter"));
        }
    }
}

/// All writes from some moment on are lost, and the guard knows what is left.
#[test]
fn a_process_that_is_killed_loses_nothing_that_redb_has_synced() {
    for kill in 0..if long() { 100 } else { 5 } {
        let folder = tempfile::tempdir().expect("a folder");
        let child = spawn_test("kills::the_child_that_syncs", SYNC_CHILD, folder.path(), kill);
        let synced = killed_after(child, "synced ", 100 + 50 * kill);
        let guarded = open_not_durable(folder.path());
        let is_there = |number: &u64| guarded.store().contains_key(&key(*number)).expect("a look-up");
        let kept = (0..).take_while(is_there).count() as u64;
        assert!(kept > synced, "{kept}: {synced} was synced");
        assert!(!(kept..kept + 1000).any(|number| is_there(&number)), "from {kept} on nothing is there");
        guarded.wait_until_ready().expect("a filter");
        assert!((0..kept + 1000).all(|number| finds(&guarded, &key(number)) == (number < kept)));
    }
}

const NEW_CHILD: &str = "KOEL_GUARD_NEW_CHILD";

fn is_made<S: Store>(store: Result<S, S::Error>) {
    store.expect("a new database, or a whole one").put(b"a", b"1").expect("a put");
}

/// Makes databases, until it is killed.
#[test]
fn the_child_that_makes_databases() {
    let Some(folder) = std::env::var_os(NEW_CHILD) else { return };
    let folder = Path::new(&folder);
    for number in 0_u64.. {
        drop(FjallStore::open(folder.join(format!("fjall {number}"))).expect("a keyspace"));
        drop(RedbStore::open(folder.join(format!("redb {number}"))).expect("a database"));
    }
}

#[test]
fn a_process_that_is_killed_while_it_makes_a_database_leaves_none_that_cannot_be_opened() {
    let mut rng = Rng::new(seed());
    for kill in 0..if long() { 1000 } else { 20 } {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = spawn_test("kills::the_child_that_makes_databases", NEW_CHILD, folder.path(), kill);
        while !folder.path().join("fjall 0").exists() {
            std::thread::sleep(Duration::from_micros(100));
        }
        std::thread::sleep(Duration::from_micros(rng.below(20_000)));
        child.kill().expect("SIGKILL");
        child.wait().expect("an end");
        let last =
            (0_u64..).take_while(|number| folder.path().join(format!("fjall {number}")).exists()).last();
        let last = last.expect("the first one");
        is_made(FjallStore::open(folder.path().join(format!("fjall {last}"))));
        is_made(RedbStore::open(folder.path().join(format!("redb {last}"))));
    }
}
