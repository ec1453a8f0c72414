//! Writes in one transaction with the program's writes to tables of its own.

use std::sync::Arc;

use fjall::{KeyspaceCreateOptions, OwnedWriteBatch};
use koel::guard::{Error, FjallError, FjallStore, Guarded, HashMapStore, RedbError, RedbStore, Store, Write};
use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition};

use crate::common::{catch, finds, ready};

const EVENTS: TableDefinition<'_, u64, &str> = TableDefinition::new("events");

/// A guard before a table with one key, in a database that has no events yet.
fn users(folder: &std::path::Path) -> (Arc<Database>, Guarded<RedbStore>) {
    let database = Arc::new(Database::create(folder.join("db")).unwrap());
    let writing = database.begin_write().unwrap();
    writing.open_table(EVENTS).unwrap();
    writing.commit().unwrap();
    let users = ready(RedbStore::with_table(Arc::clone(&database), "users").unwrap());
    users.put(b"ada", b"1815").unwrap();
    (database, users)
}

fn events(database: &Database) -> u64 {
    database.begin_read().unwrap().open_table(EVENTS).unwrap().len().unwrap()
}

fn note(transaction: &redb::WriteTransaction, event: u64) -> Result<(), RedbError> {
    transaction.open_table(EVENTS)?.insert(event, "it came")?;
    Ok(())
}

/// Also if a key occurs twice, if nothing is written to the guard's table, and if nothing changes there.
#[test]
fn both_are_written_in_one_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let (database, users) = users(folder.path());
    let generation = users.store().generation().unwrap();
    let writes = [Write::Put(b"bob", b"1"), Write::Delete(b"ada"), Write::Put(b"bob", b"2")];
    let with = |writes: &[Write<'_>], event| {
        users.write_many_with(writes, |store, last| store.write_many_and(last, |also| note(also, event)))
    };
    assert_eq!(with(&writes, 1).unwrap(), [false, true, true]);
    assert_eq!(users.get(b"bob").unwrap().as_deref(), Some(&b"2"[..]));
    assert!(!finds(&users, b"ada"));
    assert_eq!(users.store().generation().unwrap().count, generation.count + 1);
    assert_eq!(with(&[], 2).unwrap(), []);
    assert_eq!(with(&[Write::Delete(b"nobody")], 3).unwrap(), [false]);
    assert_eq!((events(&database), users.stats().filter_keys), (3, 1));
}

#[test]
fn neither_is_written_if_one_fails_or_panics() {
    let folder = tempfile::tempdir().unwrap();
    let (database, users) = users(folder.path());
    let generation = users.store().generation().unwrap();
    let writes = [Write::Put(b"bob", b"1"), Write::Delete(b"ada")];
    let with = |writes: &[Write<'_>], also: &dyn Fn() -> Result<(), RedbError>| {
        users.write_many_with(writes, |store, last| {
            store.write_many_and(last, |transaction| {
                note(transaction, 1)?;
                also()
            })
        })
    };
    let error = with(&writes, &|| Err(RedbError::other("it is late"))).unwrap_err();
    assert!(matches!(&error, Error::Store(RedbError::Other(_))));
    assert!(error.to_string().contains("it is late"), "{error}");
    let own: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("users");
    let own = users.write_many_with(&writes, |store, last| {
        store.write_many_and(last, |also| {
            also.open_table(own)?;
            Ok(())
        })
    });
    assert!(own.unwrap_err().to_string().contains("users"), "its own table is open");
    let error = with(&writes, &|| Err(redb::Error::InvalidSavepoint.into())).unwrap_err();
    assert!(matches!(error, Error::Store(RedbError::Redb(_))));
    let long = vec![0; RedbStore::MAX_KEY_LEN + 1];
    with(&[Write::Put(&long, b"")], &|| panic!("its key is refused first")).unwrap_err();
    assert!(catch(|| with(&writes, &|| panic!("it cannot be noted"))).is_err());
    assert_eq!((events(&database), users.store().generation().unwrap()), (0, generation));
    assert!(finds(&users, b"ada") && !finds(&users, b"bob"));
    assert_eq!(users.verify(usize::MAX).unwrap().false_negatives, 0);
    with(&writes, &|| Ok(())).unwrap();
    assert!(!finds(&users, b"ada") && finds(&users, b"bob"));
}

#[test]
fn a_batch_of_fjall_has_both_or_neither() {
    let folder = tempfile::tempdir().unwrap();
    let trees = fjall::Database::builder(folder.path()).open().unwrap();
    let events = trees.keyspace("events", KeyspaceCreateOptions::default).unwrap();
    let users = ready(FjallStore::with_database(trees).unwrap().durable(false));
    type Also<'a> = dyn Fn(&mut OwnedWriteBatch) -> Result<(), FjallError> + 'a;
    let with = |writes: &[Write<'_>], also: &Also<'_>| {
        users.write_many_with(writes, |store, last| store.write_many_and(last, |batch| also(batch)))
    };
    let note = |batch: &mut OwnedWriteBatch| {
        batch.insert(&events, "1", "it came");
        Ok(())
    };
    let generation = users.store().generation().unwrap();
    let panics = |batch: &mut OwnedWriteBatch| {
        note(batch)?;
        panic!("it cannot be noted");
    };
    let fails = |batch: &mut OwnedWriteBatch| {
        note(batch)?;
        Err(FjallError::other("it is late"))
    };
    let error = with(&[Write::Put(b"ada", b"1")], &fails).unwrap_err();
    assert!(matches!(&error, Error::Store(FjallError::Other(_))) && error.to_string().contains("it is late"));
    assert!(catch(|| with(&[Write::Put(b"ada", b"1")], &panics)).is_err());
    with(&[Write::Put(b"", b"1")], &note).unwrap_err();
    assert_eq!(users.store().generation().unwrap(), generation);
    assert!(events.is_empty().unwrap() && !finds(&users, b"ada"));
    assert_eq!(with(&[Write::Delete(b"ada")], &note).unwrap(), [false]);
    assert!(events.contains_key("1").unwrap());
    assert_eq!(with(&[Write::Put(b"ada", b"1")], &|_| Ok(())).unwrap(), [false]);
    assert!(finds(&users, b"ada"));
}

/// The function may write in any way, and fail after it has written some.
#[test]
fn what_a_function_has_written_before_it_fails_is_found() {
    let users = ready(HashMapStore::new());
    let writes = [Write::Put(b"ada", b"1"), Write::Put(b"bob", b"1")];
    let answers = users.write_many_with(&writes, |store, last| {
        assert_eq!(last, writes);
        last.iter().map(|write| store.put(write.key(), b"another")).collect()
    });
    assert_eq!(answers.unwrap(), [false, false]);
    assert_eq!(users.get(b"ada").unwrap().as_deref(), Some(&b"another"[..]));
    let short = catch(|| {
        users.write_many_with(&[Write::Put(b"carol", b"1"), Write::Put(b"dan", b"1")], |store, last| {
            store.put(last[0].key(), b"1").map(|existed| vec![existed])
        })
    });
    assert!(short.is_err(), "one answer for two writes");
    assert!(finds(&users, b"carol") && !finds(&users, b"dan"));
    assert_eq!(users.verify(usize::MAX).unwrap().false_negatives, 0);
}
