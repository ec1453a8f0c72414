//! Tables and keyspaces of the program's own, several in one database, each behind a guard.

use std::path::Path;
use std::sync::Arc;

use fjall::KeyspaceCreateOptions;
use koel::guard::{FjallError, FjallStore, Guarded, RedbError, RedbStore, Store};
use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition};

use crate::common::{finds, key, ready};

const USERS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("users");
const VISITS: TableDefinition<'_, &str, u64> = TableDefinition::new("visits");

fn database(folder: &Path) -> Arc<Database> {
    Arc::new(Database::create(folder.join("db")).unwrap())
}

fn trees(folder: &Path) -> fjall::Database {
    fjall::Database::builder(folder.join("trees")).open().unwrap()
}

fn keyspace(trees: &fjall::Database, name: &str) -> FjallStore {
    let data = trees.keyspace(name, KeyspaceCreateOptions::default).unwrap();
    FjallStore::with_keyspace(trees.clone(), data).unwrap().durable(false)
}

/// Two stores that share a database: neither sees what is written to the other.
fn are_apart<S: Store>(first: S, second: S) {
    let generation = |guarded: &Guarded<S>| guarded.store().generation().unwrap();
    let (first, second) = (ready(first), ready(second));
    let before = (generation(&first), generation(&second));
    assert_ne!(before.0, before.1);
    for number in 0..20 {
        assert!(!first.put(&key(number), b"first").unwrap());
    }
    assert_ne!(generation(&first), before.0);
    assert_eq!(generation(&second), before.1);
    assert!((0..20).all(|number| finds(&first, &key(number)) && !finds(&second, &key(number))));
    assert!(!second.put(&key(0), b"second").unwrap(), "it was not there");
    assert!(first.delete(&key(0)).unwrap());
    assert_eq!(second.get(&key(0)).unwrap().as_deref(), Some(&b"second"[..]));
    assert_eq!(
        (first.store().scan_keys().unwrap().count(), second.store().scan_keys().unwrap().count()),
        (19, 1)
    );
}

#[test]
fn tables_of_one_database_are_stores_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path());
    let table = |name| RedbStore::with_table(Arc::clone(&database), name).unwrap();
    are_apart(table("users"), table("sessions"));
    are_apart(table("koel.data"), table("data"));
    let trees = trees(folder.path());
    are_apart(keyspace(&trees, "users"), keyspace(&trees, "sessions"));
    are_apart(keyspace(&trees, "koel.data"), keyspace(&trees, "data"));
}

/// A snapshot fits its own table, when that is opened again, and no other.
fn snapshot_fits_only_its_own<S: Store>(store: impl Fn(&str) -> S, file: &Path) {
    let users = ready(store("users"));
    for number in 0..100 {
        users.put(&key(number), b"").unwrap();
    }
    users.snapshot(file).unwrap();
    drop(users);
    let users = Guarded::builder(store("users")).snapshot(file).open().unwrap();
    assert!(users.rejected_snapshot().is_none());
    assert_eq!((users.progress().scanned, users.stats().filter_keys), (0, 100));
    drop(users);
    let others = Guarded::builder(store("sessions")).snapshot(file).open().unwrap();
    assert!(others.rejected_snapshot().is_some());
    others.wait_until_ready().unwrap();
    assert!((0..100).all(|number| !finds(&others, &key(number))));
}

#[test]
fn a_snapshot_fits_the_table_that_it_is_of_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path());
    let table = |name: &str| RedbStore::with_table(Arc::clone(&database), name).unwrap();
    snapshot_fits_only_its_own(table, &folder.path().join("a"));
    let trees = trees(folder.path());
    snapshot_fits_only_its_own(|name| keyspace(&trees, name), &folder.path().join("b"));
}

#[test]
fn what_the_program_writes_to_its_other_tables_is_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path());
    let writing = database.begin_write().unwrap();
    writing.open_table(USERS).unwrap().insert(&b"ada"[..], &b"1815"[..]).unwrap();
    writing.commit().unwrap();
    let users = ready(RedbStore::with_table(Arc::clone(&database), "users").unwrap());
    let generation = users.store().generation().unwrap();
    let writing = database.begin_write().unwrap();
    writing.open_table(VISITS).unwrap().insert("ada", 1).unwrap();
    writing.commit().unwrap();
    assert!(finds(&users, b"ada"));
    assert_eq!(users.store().generation().unwrap(), generation);
    users.put(b"grace", b"1906").unwrap();
    let reading = database.begin_read().unwrap();
    assert_eq!(reading.open_table(USERS).unwrap().len().unwrap(), 2);
    assert_eq!(reading.open_table(VISITS).unwrap().len().unwrap(), 1);
}

/// Keys written through one store are read through the other, and are in the same history.
#[test]
fn the_usual_table_has_the_usual_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let store = RedbStore::open(&file).unwrap();
    store.put(b"a", b"1").unwrap();
    let generation = store.generation().unwrap();
    drop(store);
    let database = Database::create(&file).unwrap();
    let store = RedbStore::with_table(database, "koel.data").unwrap();
    assert_eq!(store.generation().unwrap(), generation);
    assert!(store.contains_key(b"a").unwrap());
    let store = FjallStore::open(folder.path().join("trees")).unwrap();
    store.put(b"a", b"1").unwrap();
    let generation = store.generation().unwrap();
    drop(store);
    let store = keyspace(&trees(folder.path()), "koel.data");
    assert_eq!(store.generation().unwrap(), generation);
    assert!(store.contains_key(b"a").unwrap());
}

/// fjall would write to the keyspace of this database that happens to have the other's number.
#[test]
fn a_keyspace_of_another_database_or_of_generations_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (trees(&folder.path().join("own")), trees(&folder.path().join("other")));
    let users = |trees: &fjall::Database| trees.keyspace("users", KeyspaceCreateOptions::default).unwrap();
    let is_refused = |keyspace| {
        let error = FjallStore::with_keyspace(own.clone(), keyspace).unwrap_err();
        assert!(matches!(error, FjallError::Keyspace { .. }), "{error}");
    };
    is_refused(users(&other));
    assert!(!own.keyspace_exists("users"));
    FjallStore::with_keyspace(own.clone(), users(&own)).unwrap();
    is_refused(users(&other));
    is_refused(own.keyspace("koel.generation", KeyspaceCreateOptions::default).unwrap());
}

#[test]
fn a_table_that_cannot_be_one_of_keys_and_values_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let database = database(folder.path());
    let open = |name| RedbStore::with_table(Arc::clone(&database), name);
    for name in ["", "koel.generation", "koel.generation.users"] {
        let error = open(name).unwrap_err();
        assert!(matches!(&error, RedbError::TableName { name: refused } if **refused == *name));
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
    }
    let writing = database.begin_write().unwrap();
    writing.open_table(VISITS).unwrap().insert("ada", 1).unwrap();
    writing.commit().unwrap();
    assert!(open("visits").unwrap_err().to_string().contains("visits"));
    // It has been left as it was.
    let reading = database.begin_read().unwrap();
    assert_eq!(reading.open_table(VISITS).unwrap().get("ada").unwrap().unwrap().value(), 1);
    assert!(open("users").is_ok());
}
