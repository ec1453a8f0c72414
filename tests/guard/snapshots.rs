//! Snapshots: used if they fit, and never if they do not.

use std::path::Path;
use std::sync::Arc;

use koel::guard::{
    Builder, Error, Filter, FjallStore, Guarded, HashMapStore, Phase, RedbStore, SnapshotError, Store, Write,
};

use crate::common::{finds, key, ready};
use crate::scripted::sure;

const KEYS: u64 = 2000;

fn builder<S: Store>(store: S, filter: Filter, file: &Path) -> Builder<S> {
    Guarded::builder(store).filter(filter).snapshot(file)
}

fn is_right<S: Store>(guarded: &Guarded<S>, keys: std::ops::Range<u64>) {
    for number in 0..2 * KEYS {
        assert_eq!(finds(guarded, &key(number)), keys.contains(&number), "{number}");
    }
}

/// A store with keys, a snapshot of its filter, and the guard that made both.
fn with_snapshot(filter: Filter, file: &Path) -> (Arc<HashMapStore>, Guarded<Arc<HashMapStore>>) {
    let store = Arc::new(HashMapStore::new());
    let guarded = Guarded::builder(Arc::clone(&store)).filter(filter).open().unwrap();
    guarded.wait_until_ready().unwrap();
    for number in 0..KEYS {
        guarded.put(&key(number), b"").unwrap();
    }
    guarded.wait_until_ready().unwrap();
    guarded.snapshot(file).unwrap();
    (store, guarded)
}

#[test]
fn a_snapshot_that_fits_is_loaded_and_nothing_is_scanned() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let (store, first) = with_snapshot(filter, &file);
        drop(first);
        let guarded = builder(store, filter, &file).open().unwrap();
        assert_eq!(guarded.progress().phase, Phase::Ready);
        assert_eq!((guarded.progress().scanned, guarded.stats().filter_keys), (0, KEYS));
        assert!(guarded.rejected_snapshot().is_none());
        is_right(&guarded, 0..KEYS);
        assert!(guarded.stats().blocked > KEYS / 2);
        // The guard goes on from there.
        for number in 0..KEYS / 2 {
            assert!(guarded.delete(&key(number)).unwrap());
        }
        is_right(&guarded, KEYS / 2..KEYS);
        assert_eq!(guarded.verify(usize::MAX).unwrap().false_negatives, 0);
    }
}

/// A filter that has grown before and after its snapshot has four tables at the same size as any other.
#[test]
fn a_filter_from_a_snapshot_wears_as_if_it_had_never_been_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    let (store, first) = with_snapshot(Filter::Cuckoo, &file);
    for number in KEYS..10_000 {
        first.put(&key(number), b"").unwrap();
    }
    assert_eq!(first.progress().scanned, 0, "it has grown");
    first.snapshot(&file).unwrap();
    drop(first);
    let guarded = builder(store, Filter::Cuckoo, &file).open().unwrap();
    assert!(guarded.rejected_snapshot().is_none());
    for number in 10_000..40_000 {
        guarded.put(&key(number), b"").unwrap();
    }
    guarded.wait_until_ready().unwrap();
    assert!(guarded.progress().scanned > 10_000, "it was built anew: {:?}", guarded.progress());
}

/// After a write of any kind, an earlier snapshot is of another generation.
fn refuses_what_is_from_before_a_write<S: Store<Error: std::error::Error>>(store: S, file: &Path) {
    let store = Arc::new(store);
    let keys: Vec<_> = (0..=KEYS).map(key).collect();
    let (first, new) = (&keys[..KEYS as usize], &keys[KEYS as usize]);
    store.write_many(&first.iter().map(|key| Write::Put(key, b"")).collect::<Vec<_>>()).unwrap();
    for way in 0..4 {
        let open = || builder(Arc::clone(&store), Filter::Cuckoo, file).open().unwrap();
        let guarded = open();
        guarded.wait_until_ready().unwrap();
        guarded.snapshot(file).unwrap();
        assert!(open().rejected_snapshot().is_none(), "way {way}: it fits before");
        let existed = match way {
            0 => guarded.put(new, b"").unwrap(),
            1 => guarded.delete(new).unwrap(),
            2 => guarded.write_many(&[Write::Put(new, b"")]).unwrap()[0],
            _ => guarded.write_many(&[Write::Delete(new)]).unwrap()[0],
        };
        assert_eq!(existed, way % 2 == 1);
        drop(guarded);
        let guarded = open();
        let rejected = guarded.rejected_snapshot();
        assert!(matches!(rejected, Some(SnapshotError::OtherGeneration)), "way {way}: {rejected:?}");
        let keys = if existed { KEYS } else { KEYS + 1 };
        is_right(&guarded, 0..keys);
        guarded.wait_until_ready().unwrap();
        is_right(&guarded, 0..keys);
    }
}

#[test]
fn a_snapshot_from_before_a_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("filter"), folder.path().join("data"));
    refuses_what_is_from_before_a_write(HashMapStore::new(), &file);
    refuses_what_is_from_before_a_write(RedbStore::open(data.with_extension("redb")).unwrap(), &file);
    refuses_what_is_from_before_a_write(FjallStore::open(&data).unwrap(), &file);
}

#[test]
fn a_foreign_snapshot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    let (_, _others) = with_snapshot(Filter::Cuckoo, &file);
    // As many writes as the other store has seen.
    let store = HashMapStore::new();
    for number in KEYS..2 * KEYS {
        sure(store.put(&key(number), b""));
    }
    let guarded = builder(store, Filter::Cuckoo, &file).open().unwrap();
    assert!(matches!(guarded.rejected_snapshot(), Some(SnapshotError::OtherGeneration)));
    guarded.wait_until_ready().unwrap();
    is_right(&guarded, KEYS..2 * KEYS);
}

#[test]
fn a_snapshot_of_another_filter_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    let (store, _first) = with_snapshot(Filter::Cuckoo, &file);
    let other_kind = builder(Arc::clone(&store), Filter::Bloom, &file);
    let other_rate = builder(store, Filter::Cuckoo, &file).false_positive_rate(0.001);
    for builder in [other_kind, other_rate] {
        let guarded = builder.open().unwrap();
        assert!(matches!(guarded.rejected_snapshot(), Some(SnapshotError::OtherFilter)));
        guarded.wait_until_ready().unwrap();
        is_right(&guarded, 0..KEYS);
    }
}

#[test]
fn a_snapshot_that_is_missing_cut_flipped_or_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    for filter in [Filter::Cuckoo, Filter::Bloom] {
        let (store, _first) = with_snapshot(filter, &file);
        let whole = std::fs::read(&file).unwrap();
        let refuses = |bytes: Option<&[u8]>| {
            match bytes {
                Some(bytes) => std::fs::write(&file, bytes).unwrap(),
                None => std::fs::remove_file(&file).unwrap(),
            }
            let guarded = builder(Arc::clone(&store), filter, &file).open().unwrap();
            assert!((0..50).all(|number| finds(&guarded, &key(number))));
            guarded.rejected_snapshot().expect("it is none").to_string()
        };
        refuses(None);
        for len in (0..whole.len()).step_by(whole.len() / 61).chain(0..80) {
            refuses(Some(&whole[..len]));
        }
        for bit in (0..whole.len() * 8).step_by(whole.len() * 8 / 151).chain(0..64 * 8) {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            refuses(Some(&bytes));
        }
        refuses(Some(&[&whole[..], &[0]].concat()));
        for (at, why) in [(0, "not a snapshot"), (8, "a version that is not known")] {
            let mut bytes = whole.clone();
            bytes[at] += 1;
            let told = refuses(Some(&bytes));
            assert!(told.contains(why), "{told}");
        }
        // The file as it was is a snapshot.
        std::fs::write(&file, &whole).unwrap();
        assert!(builder(store, filter, &file).open().unwrap().rejected_snapshot().is_none());
    }
}

/// It may be a database, and larger than memory. On Windows files are not sparse by default, and the disk has no room.
#[cfg(unix)]
#[test]
fn a_large_file_that_is_no_snapshot_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    let (store, _first) = with_snapshot(Filter::Cuckoo, &file);
    let whole = std::fs::read(&file).unwrap();
    for content in [&whole[..], b"none"] {
        std::fs::write(&file, content).unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_len(1 << 40).unwrap();
        let guarded = builder(Arc::clone(&store), Filter::Cuckoo, &file).open().unwrap();
        let rejected = guarded.rejected_snapshot();
        assert!(matches!(rejected, Some(SnapshotError::Damaged(_))), "{rejected:?}");
    }
}

/// The counts of a history that a backup has undone occur again; its snapshots do not fit.
#[test]
fn a_snapshot_of_a_history_that_was_undone_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [db, backup, file] = ["db", "backup", "filter"].map(|name| folder.path().join(name));
    let write = |number: u64| {
        let guarded = Guarded::open(RedbStore::open(&db).unwrap()).unwrap();
        guarded.wait_until_ready().unwrap();
        guarded.put(&key(number), b"").unwrap();
        guarded
    };
    drop(write(1));
    std::fs::copy(&db, &backup).unwrap();
    let undone = write(2);
    undone.snapshot(&file).unwrap();
    let count = undone.store().generation().unwrap().count;
    drop(undone);
    std::fs::copy(&backup, &db).unwrap();
    drop(write(3));
    let store = RedbStore::open(&db).unwrap();
    assert_eq!(store.generation().unwrap().count, count);
    let guarded = builder(store, Filter::Cuckoo, &file).open().unwrap();
    assert!(matches!(guarded.rejected_snapshot(), Some(SnapshotError::OtherGeneration)));
    assert!(finds(&guarded, &key(1)) && !finds(&guarded, &key(2)) && finds(&guarded, &key(3)));
}

/// The generation of a database goes back with it; no later generation has been there before.
#[test]
fn a_snapshot_of_a_history_that_a_savepoint_has_undone_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [db, file] = ["db", "filter"].map(|name| folder.path().join(name));
    let store = Arc::new(RedbStore::open(db).unwrap());
    let begin = || store.database().begin_write().unwrap();
    // Before any write of this store, and after one.
    for first in [false, true] {
        if first {
            store.put(&key(1), b"").unwrap();
        }
        let saving = begin();
        let savepoint = saving.ephemeral_savepoint().unwrap();
        saving.commit().unwrap();
        let undone = ready(Arc::clone(&store));
        undone.put(&key(2), b"").unwrap();
        undone.snapshot(&file).unwrap();
        drop(undone);
        let mut restoring = begin();
        restoring.restore_savepoint(&savepoint).unwrap();
        restoring.commit().unwrap();
        ready(Arc::clone(&store)).put(&key(3), b"").unwrap();
        let guarded = builder(Arc::clone(&store), Filter::Cuckoo, &file).open().unwrap();
        assert!(matches!(guarded.rejected_snapshot(), Some(SnapshotError::OtherGeneration)));
        assert!(finds(&guarded, &key(3)) && !finds(&guarded, &key(2)));
    }
}

/// The disk where it is to be has more room.
#[cfg(unix)]
#[test]
fn a_snapshot_is_written_where_a_link_says() {
    let folder = tempfile::tempdir().unwrap();
    let [link, disk, file] = ["link", "disk", "disk/filter"].map(|name| folder.path().join(name));
    std::fs::create_dir(&disk).unwrap();
    std::os::unix::fs::symlink("disk/filter", &link).unwrap();
    let (store, guarded) = with_snapshot(Filter::Cuckoo, &link);
    let first = std::fs::read(&file).unwrap();
    guarded.put(b"late", b"").unwrap();
    guarded.snapshot(&link).unwrap();
    assert!(link.is_symlink() && file.is_file() && std::fs::read(&file).unwrap() != first);
    assert_eq!(std::fs::read_dir(&disk).unwrap().count(), 1, "nothing is left beside it");
    let guarded = builder(store, Filter::Cuckoo, &link).open().unwrap();
    assert!(guarded.rejected_snapshot().is_none() && finds(&guarded, b"late"));
    // One that leads nowhere stays as well.
    let round = folder.path().join("round");
    std::os::unix::fs::symlink("round", &round).unwrap();
    guarded.snapshot(&round).unwrap_err();
    assert!(round.is_symlink());
}

#[test]
fn a_snapshot_that_cannot_be_written_is_an_error_and_leaves_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    let (_, guarded) = with_snapshot(Filter::Cuckoo, &file);
    let before = std::fs::read(&file).unwrap();
    guarded.put(b"late", b"").unwrap();
    let nowhere = folder.path().join("no such folder").join("filter");
    let error = guarded.snapshot(&nowhere).unwrap_err();
    assert!(matches!(error, Error::Snapshot(SnapshotError::Io(_))), "{error}");
    assert!(error.to_string().contains(&nowhere.display().to_string()), "{error}");

    // Nor is a part of it left, as on a full disk.
    let taken = folder.path().join("a folder");
    std::fs::create_dir_all(taken.join("with something in it")).unwrap();
    guarded.snapshot(&taken).unwrap_err();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    assert_eq!(std::fs::read(&file).unwrap(), before);

    let none = Guarded::builder(HashMapStore::new()).filter(Filter::None).open().unwrap();
    let error = none.snapshot(&file).unwrap_err();
    assert!(matches!(error, Error::Snapshot(SnapshotError::NoFilter)), "{error}");
}

#[test]
fn of_two_guards_that_write_one_file_either_is_in_it_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("filter");
    let [few, many] = [3, 100_000].map(|keys| {
        let guarded = ready(HashMapStore::new());
        (0..keys).for_each(|number| assert!(!guarded.put(&key(number), b"").unwrap()));
        guarded.snapshot(&file).unwrap();
        (guarded, std::fs::read(&file).unwrap())
    });
    std::thread::scope(|scope| {
        let writers = [&few, &many]
            .map(|(guarded, _)| scope.spawn(|| (0..30).for_each(|_| guarded.snapshot(&file).unwrap())));
        while !writers.iter().all(|writer| writer.is_finished()) {
            let read = std::fs::read(&file).unwrap();
            assert!(read == few.1 || read == many.1, "{} bytes", read.len());
        }
    });
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Such as the database, if its name was given for the snapshot by mistake.
#[test]
fn a_snapshot_takes_the_place_of_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("people.redb");
    let guarded = ready(RedbStore::open(&file).unwrap());
    guarded.put(b"ada", b"1815").unwrap();
    let error = guarded.snapshot(&file).unwrap_err();
    assert!(error.to_string().contains("people.redb: a file is there that is not a snapshot"), "{error}");
    drop(guarded);
    let guarded = ready(RedbStore::open(&file).unwrap());
    assert!(finds(&guarded, b"ada"));
    // Nothing is lost with these.
    let other = folder.path().join("filter");
    for begin in [&b""[..], b"koelgs\r\n", b"koelgs\r\nand more"] {
        std::fs::write(&other, begin).unwrap();
        guarded.snapshot(&other).unwrap();
    }
    for begin in [&b"k"[..], b"koelgs\r", b"koelgs\rx"] {
        std::fs::write(&other, begin).unwrap();
        guarded.snapshot(&other).unwrap_err();
        assert_eq!(std::fs::read(&other).unwrap(), begin);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// Opening a pipe would block until somebody writes to it.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_no_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (done, ended) = std::sync::mpsc::channel();
    for path in [pipe, folder.path().to_owned()] {
        let done = done.clone();
        std::thread::spawn(move || {
            let guarded = Guarded::builder(HashMapStore::new()).snapshot(path).open().unwrap();
            let _ = done.send(guarded.rejected_snapshot().map(ToString::to_string));
        });
        let why =
            ended.recv_timeout(std::time::Duration::from_secs(60)).expect("it waits for nobody").unwrap();
        assert!(why.contains("not a file"), "{why}");
    }
}
