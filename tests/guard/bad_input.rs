//! Databases that cannot be opened, and keys that are too long: an error that says so, and nothing lost.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use koel::guard::{Error, FjallError, FjallStore, Guarded, RedbError, RedbStore, Store};

use crate::common::finds;

#[test]
fn a_database_that_is_open_already_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let _first = RedbStore::open(&a).unwrap();
    assert!(RedbStore::open(&a).unwrap_err().to_string().contains("open"), "redb");
    let _first = FjallStore::open(&b).unwrap();
    assert!(FjallStore::open(&b).is_err(), "fjall");
}

#[test]
fn a_file_that_is_no_database_is_an_error_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    for len in [1, 100, 10_000] {
        let text = b"not a database. ".repeat(len);
        std::fs::write(&file, &text).unwrap();
        assert!(RedbStore::open(&file).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), text);
    }
    assert!(RedbStore::open(folder.path()).is_err(), "a folder");
    assert!(RedbStore::open(folder.path().join("no/such/folder")).is_err());
    assert!(FjallStore::open(&file).is_err(), "a file");
}

/// A copy that is incomplete, or was damaged on the way.
#[test]
fn a_database_that_is_cut_short_is_an_error_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    RedbStore::open(&file).unwrap().put(b"a", b"1").unwrap();
    let whole = std::fs::read(&file).unwrap();
    // The length in the header is damaged, too.
    let damaged = [&whole[..16], &[0xFF; 4], &whole[20..]].concat();
    for bytes in [&whole[..100], &whole[..1000], &whole[..whole.len() - 1], &damaged] {
        std::fs::write(&file, bytes).unwrap();
        assert!(RedbStore::open(&file).is_err(), "{} of {} bytes", bytes.len(), whole.len());
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(RedbStore::open(&file).unwrap().get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// A killed process has left the second name that a new database has for a moment: it remains a name of the old one.
#[test]
fn a_new_database_is_empty_whatever_lies_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let [db, new, old] = ["db", "db.new", "old"].map(|name| folder.path().join(name));
    RedbStore::open(&db).unwrap().put(b"a", b"1").unwrap();
    std::fs::hard_link(&db, &new).unwrap();
    std::fs::rename(&db, &old).unwrap();
    let store = RedbStore::open(&db).unwrap();
    assert_eq!(store.get(b"a").unwrap(), None);
    store.put(b"b", b"2").unwrap();
    assert_eq!(RedbStore::open(&old).unwrap().get(b"b").unwrap(), None);
}

/// The disk where it is to be has more room.
#[cfg(unix)]
#[test]
fn a_new_database_is_made_where_a_link_says() {
    let folder = tempfile::tempdir().unwrap();
    let [link, other, db] = ["link", "other", "disk/db"].map(|name| folder.path().join(name));
    std::fs::create_dir(folder.path().join("disk")).unwrap();
    std::os::unix::fs::symlink("disk/db", &other).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    RedbStore::open(&link).unwrap().put(b"a", b"1").unwrap();
    assert!(link.is_symlink() && other.is_symlink() && db.is_file() && !db.is_symlink());
    assert!(RedbStore::open(&db).unwrap().get(b"a").unwrap().is_some());
}

#[test]
fn a_new_database_leaves_other_files_alone_and_nothing_else_behind() {
    let folder = tempfile::tempdir().unwrap();
    let [db, new] = ["db", "db.new"].map(|name| folder.path().join(name));
    std::fs::write(&new, "not a database").unwrap();
    drop(RedbStore::open(&db).unwrap());
    assert_eq!(std::fs::read(&new).unwrap(), b"not a database");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    // Nor where none can be made.
    assert!(RedbStore::open(folder.path().join("db/below")).is_err());
}

/// The process that created it was killed before it was complete, or after some of its parts had been moved into place.
#[test]
fn a_database_that_was_being_made_is_made_to_the_end() {
    let parts = ["0.jnl", "keyspaces", "lock", "version"];
    for moved in 0..=parts.len() {
        let folder = tempfile::tempdir().unwrap();
        let [new, whole] = ["koel.new", "koel.whole"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(new.join("keyspaces/1")).unwrap();
        drop(FjallStore::open(folder.path()).unwrap());
        assert!(!new.exists() && !whole.exists());
        std::fs::create_dir(&whole).unwrap();
        for part in &parts[moved..] {
            std::fs::rename(folder.path().join(part), whole.join(part)).unwrap();
        }
        let store = FjallStore::open(folder.path()).unwrap();
        assert!(!whole.exists() && parts.iter().all(|part| folder.path().join(part).exists()));
        store.put(b"a", b"1").unwrap();
        assert_eq!((store.scan_keys().unwrap().count(), store.generation().unwrap().count), (1, 2));
    }
}

/// The process that created it was killed before it moved any part, and somebody has created another one there, without koel.
/// Once some part has been moved, fjall creates none.
#[test]
fn a_database_that_was_being_made_gives_way_to_one_that_was_made_meanwhile() {
    let parts = ["0.jnl", "keyspaces", "lock", "version"];
    let make = |folder: &Path| fjall::Database::builder(folder).open().map(FjallStore::with_database);
    for moved in 0..parts.len() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("koel.whole");
        drop(FjallStore::open(folder.path()).unwrap());
        std::fs::create_dir(&whole).unwrap();
        for part in &parts[moved..] {
            std::fs::rename(folder.path().join(part), whole.join(part)).unwrap();
        }
        match make(folder.path()) {
            Ok(others) => {
                others.unwrap().put(b"a", b"1").unwrap();
                assert_eq!(moved, 0);
            }
            Err(error) => assert!(moved > 0, "{error}"),
        }
        for _ in 0..2 {
            let store = FjallStore::open(folder.path()).unwrap();
            assert_eq!(store.get(b"a").unwrap().is_some(), moved == 0);
            assert!(!whole.exists());
        }
    }
}

/// As fjall leaves them itself.
#[test]
fn files_of_others_in_the_folder_of_a_new_database_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("lock"), "precious").unwrap();
    FjallStore::open(folder.path()).unwrap().put(b"a", b"1").unwrap();
    assert_eq!(std::fs::read(folder.path().join("lock")).unwrap(), b"precious");
    assert!(FjallStore::open(folder.path()).unwrap().get(b"a").unwrap().is_some());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("keyspaces"), "a list").unwrap();
    assert!(FjallStore::open(folder.path()).is_err());
    assert_eq!(std::fs::read(folder.path().join("keyspaces")).unwrap(), b"a list");
    assert!(!folder.path().join("koel.whole").exists());
}

#[test]
fn a_folder_for_a_database_is_made_with_those_that_it_is_in() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("a/b/c");
    FjallStore::open(&below).unwrap().put(b"a", b"1").unwrap();
    assert!(FjallStore::open(&below).unwrap().get(b"a").unwrap().is_some());
}

#[test]
fn a_key_that_is_too_long_is_an_error_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (fits, too_long) = (vec![b'a'; 65_535], vec![b'a'; 65_536]);
    let redb = Guarded::open(RedbStore::open(folder.path().join("a")).unwrap()).unwrap();
    redb.wait_until_ready().unwrap();
    let generation = redb.store().generation().unwrap();
    let error = redb.put(&too_long, b"").unwrap_err();
    assert!(matches!(error, Error::Store(RedbError::KeyTooLong { len: 65_536 })), "{error}");
    assert_eq!((redb.store().generation().unwrap(), redb.stats().filter_keys), (generation, 0));
    assert!(!redb.put(&fits, b"").unwrap() && finds(&redb, &fits) && !finds(&redb, &too_long));
    assert!(!redb.delete(&too_long).unwrap() && redb.delete(&fits).unwrap());

    let fjall = Guarded::open(FjallStore::open(folder.path().join("b")).unwrap()).unwrap();
    fjall.wait_until_ready().unwrap();
    let error = fjall.put(&too_long, b"").unwrap_err();
    assert!(matches!(error, Error::Store(FjallError::KeyTooLong { len: 65_536 })), "{error}");
    assert!(matches!(fjall.put(b"", b""), Err(Error::Store(FjallError::KeyEmpty))));
    assert_eq!(fjall.stats().filter_keys, 0);
    assert!(!fjall.put(&fits, b"").unwrap() && finds(&fjall, &fits) && !finds(&fjall, &too_long));
    assert!(!finds(&fjall, b"") && !fjall.delete(&too_long).unwrap());
}

#[test]
fn a_load_with_a_bad_key_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let pairs = [(b"a".to_vec(), b""), (vec![b'a'; 70_000], b"")];
    let redb = RedbStore::open(folder.path().join("a")).unwrap();
    assert!(redb.load(pairs.clone()).is_err() && redb.get(b"a").unwrap().is_none());
    let fjall = FjallStore::open(folder.path().join("b")).unwrap();
    assert!(fjall.load(pairs).is_err() && fjall.get(b"a").unwrap().is_none());
}

/// Its pairs were read from lines during the load, and one line was malformed.
#[test]
fn a_load_that_panics_loads_nothing_and_takes_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let store = RedbStore::open(&file).unwrap();
    let pairs = (0..1000_u64).map(|number| match number {
        999 => resume_unwind(Box::new("no line")),
        _ => (number.to_le_bytes(), [0; 100]),
    });
    assert!(catch_unwind(AssertUnwindSafe(|| store.load(pairs))).is_err());
    assert_eq!(store.len_hint(), Some(0));
    store.put(b"a", b"1").unwrap();
    drop(store);
    // As it is, not after unused pages have been given back.
    assert!(redb::Database::open(&file).unwrap().check_integrity().unwrap());
}
