//! The filter in a file. All numbers are little-endian.
//!
//! | offset | bytes | what |
//! | --- | --- | --- |
//! | 0 | 8 | `koelgs` and CR LF |
//! | 8 | 4 | version: 1 |
//! | 12 | 4 | filter: 1 cuckoo, 2 Bloom |
//! | 16 | 16 | generation: lineage |
//! | 32 | 8 | generation: count |
//! | 40 | 8 | seed of the hash function |
//! | 48 | 8 | false-positive rate, as bits |
//! | 56 | 8 | bytes of the body |
//! | 64 | | the body: 1,024 bytes, one for each stripe: 1 if it is crowded, else 0; the filter |
//! | | 8 | XXH3-64 of all bytes before |
//!
//! The stripe of a key is `(hash >> 10) % 1024`, by the hash of its bytes with the seed: with another seed, marks would stand
//! for other keys, and the keys that they were made for would be denied.
//!
//! The filter is what `ScalableCuckooFilter::to_bytes` returns; or, for a Bloom filter, four numbers of eight bytes (hashes per
//! key, keys it was made for, inserted keys, deleted keys) and its words.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use twox_hash::XxHash3_64;

use super::error::{Error, SnapshotError};
use super::filter::{Active, Filter, Plan};
use super::shared::Shared;
use super::store::{Generation, Store};
use crate::file::{self, NewFile};
use crate::filter::{FilterError, Xxh3};

const MAGIC: [u8; 8] = *b"koelgs\r\n";
const VERSION: u32 = 1;
const HEADER_LEN: usize = 64;

fn number_of(filter: Filter) -> u32 {
    match filter {
        Filter::None => 0,
        Filter::Cuckoo => 1,
        Filter::Bloom => 2,
    }
}

fn header(plan: Plan, generation: Generation, body_len: usize) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&number_of(plan.filter).to_le_bytes());
    header[16..32].copy_from_slice(&generation.lineage.to_le_bytes());
    header[32..40].copy_from_slice(&generation.count.to_le_bytes());
    header[40..48].copy_from_slice(&plan.hasher.seed().to_le_bytes());
    header[48..56].copy_from_slice(&plan.rate.to_bits().to_le_bytes());
    header[56..64].copy_from_slice(&(body_len as u64).to_le_bytes());
    header
}

/// Reads a file that begins as a snapshot does and is as long as its header says. Of other files only the beginning is read:
/// they may be large, or endless.
fn contents(file: &Path) -> Result<Vec<u8>, SnapshotError> {
    let of_file = |error: io::Error| naming(file, &error);
    let input = file::open(file).map_err(of_file)?;
    let mut bytes = Vec::new();
    (&input).take(HEADER_LEN as u64).read_to_end(&mut bytes).map_err(of_file)?;
    if bytes.len() < HEADER_LEN {
        return Err(SnapshotError::Damaged("it ends early"));
    }
    if bytes[..8] != MAGIC {
        return Err(SnapshotError::Damaged("not a snapshot"));
    }
    if word(&bytes, 8) as u32 != VERSION {
        return Err(SnapshotError::Damaged("a version that is not known"));
    }
    let rest = word(&bytes, 56).saturating_add(size_of::<u64>() as u64);
    if input.metadata().map_err(of_file)?.len() != rest.saturating_add(HEADER_LEN as u64) {
        return Err(SnapshotError::Damaged("its length is wrong"));
    }
    bytes
        .try_reserve_exact(usize::try_from(rest).unwrap_or(usize::MAX))
        .map_err(|error| of_file(error.into()))?;
    input.take(rest).read_to_end(&mut bytes).map_err(of_file)?;
    Ok(bytes)
}

/// A number in a header.
fn word(header: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*header[at..].first_chunk().expect("within the header"))
}

/// Reads the filter in a file, if it is of this plan and of a store at this generation; and its hash function.
pub(super) fn read(file: &Path, plan: Plan, generation: Generation) -> Result<(Active, Xxh3), SnapshotError> {
    let bytes = contents(file)?;
    let (content, checksum) = bytes.split_last_chunk::<8>().ok_or(SnapshotError::Damaged("it ends early"))?;
    let (header, body) =
        content.split_at_checked(HEADER_LEN).ok_or(SnapshotError::Damaged("it ends early"))?;
    let word = |at| word(header, at);
    if word(56) != body.len() as u64 || XxHash3_64::oneshot(content) != u64::from_le_bytes(*checksum) {
        return Err(SnapshotError::Damaged("its checksum or its length is wrong"));
    }
    let lineage = u128::from(word(24)) << 64 | u128::from(word(16));
    if (Generation { lineage, count: word(32) }) != generation {
        return Err(SnapshotError::OtherGeneration);
    }
    if (word(8) >> 32) as u32 != number_of(plan.filter) || word(48) != plan.rate.to_bits() {
        return Err(SnapshotError::OtherFilter);
    }
    let hasher = Xxh3::with_seed(word(40));
    let filter = Active::from_bytes(plan, body).map_err(|error| match error {
        // The file itself may be intact.
        FilterError::OutOfMemory { .. } => naming(file, &io::ErrorKind::OutOfMemory.into()),
        _ => SnapshotError::Damaged("its filter is none"),
    })?;
    match filter.filter(|filter| filter.has_hasher(hasher)) {
        Some(filter) => Ok((filter, hasher)),
        None => Err(SnapshotError::Damaged("its filter is none")),
    }
}

/// A growing buffer, which reports an error if there is no memory.
struct Bytes(Vec<u8>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_reserve(bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A snapshot in memory.
struct Copied {
    bytes: Vec<u8>,
    /// How often another scan had been asked for by then; each time, the filter is taken away.
    asked: u64,
}

impl<S: Store> Shared<S, S::Error> {
    pub(super) fn write_snapshot(&self, file: &Path) -> Result<(), Error<S::Error>> {
        let _one_at_a_time = self.snapshot.lock();
        let copied = self.copy()?;
        self.put_in_place(&copied, file).map_err(Error::Snapshot)
    }

    fn copy(&self) -> Result<Copied, Error<S::Error>> {
        let no_memory = |error| Error::Snapshot(SnapshotError::Io(error));
        let mut bytes = Bytes(vec![0; HEADER_LEN]);
        // Filter and generation belong together [D7].
        let frozen = self.stripes.freeze();
        // First: if somebody writes around the guard now, the snapshot does not fit.
        let generation = self.store.generation().map_err(Error::Store)?;
        let (active, asked) = {
            let again = self.again.lock();
            (self.active(), again.asked)
        };
        active.ok_or(Error::Snapshot(SnapshotError::NoFilter))?.write_to(&mut bytes).map_err(no_memory)?;
        drop(frozen);
        let header = header(self.plan, generation, bytes.0.len() - HEADER_LEN);
        bytes.0[..HEADER_LEN].copy_from_slice(&header);
        let checksum = XxHash3_64::oneshot(&bytes.0).to_le_bytes();
        bytes.write_all(&checksum).map_err(no_memory)?;
        Ok(Copied { bytes: bytes.0, asked })
    }

    /// Writes a new file next to the old one and replaces the old one when the new one is on disk.
    fn put_in_place(&self, copied: &Copied, file: &Path) -> Result<(), SnapshotError> {
        let of_file = |error: io::Error| naming(file, &error);
        may_be_replaced(file).map_err(of_file)?;
        let (mut new, out) = NewFile::beside(file).map_err(of_file)?;
        fill(out, &copied.bytes).map_err(of_file)?;
        self.give_name(copied.asked, || new.rename().map_err(of_file))?;
        // If the name is lost, the old snapshot does not fit the store.
        new.sync_name().map_err(of_file)
    }

    /// Renames a snapshot of a filter, unless the filter has been taken away since the number of requests for another scan was
    /// `asked`.
    fn give_name(
        &self,
        asked: u64,
        rename: impl FnOnce() -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        // Held: a request for another scan has been made already, or waits until the snapshot is in its place. Nobody else
        // waits for this: a disk may be slow.
        let _naming = self.naming.lock();
        if self.again.lock().asked != asked {
            return Err(SnapshotError::NoFilter);
        }
        rename()
    }
}

/// Fails unless there is no file, an empty one, or one that begins as a snapshot does: any other belongs to somebody, and may
/// be the database.
fn may_be_replaced(file: &Path) -> io::Result<()> {
    let mut begin = Vec::new();
    match file::open(file) {
        Ok(other) => other.take(MAGIC.len() as u64).read_to_end(&mut begin)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if begin.is_empty() || begin == MAGIC {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file is there that is not a snapshot"))
}

/// An error that names its file.
fn naming(file: &Path, error: &io::Error) -> SnapshotError {
    file::naming(file, error).into()
}

/// Writes all of a new file, and syncs it to disk.
fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::guard::{Guarded, HashMapStore};
    use crate::sync::{AtomicBool, Ordering, thread};

    #[test]
    fn a_filter_that_is_taken_away_while_its_snapshot_is_written_has_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("filter");
        let store = Arc::new(HashMapStore::new());
        let guarded = Guarded::open(Arc::clone(&store)).expect("a thread");
        guarded.wait_until_ready().expect("a store that cannot fail");
        let shared = &guarded.shared;
        let copied = shared.copy().expect("a filter");
        // Somebody has put a key around the guard before, and reports it now; a scan that knows of it may be over before the
        // disk is done.
        guarded.rebuild().expect("a thread");
        guarded.wait_until_ready().expect("a store that cannot fail");
        let error = shared.put_in_place(&copied, &file).expect_err("it is wrong");
        assert!(matches!(error, SnapshotError::NoFilter), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
        guarded.snapshot(&file).expect("the next one is right");
        drop(guarded);
        let guarded = Guarded::builder(store).snapshot(&file).open().expect("a thread");
        assert!(guarded.rejected_snapshot().is_none());
    }

    /// Of all other threads, only one that finds that the filter is wrong waits until the snapshot has its name, and nobody
    /// asks that filter meanwhile.
    #[test]
    fn a_disk_that_takes_long_to_rename_holds_up_neither_scans_nor_writes() {
        let guarded = Guarded::open(HashMapStore::new()).expect("a thread");
        guarded.wait_until_ready().expect("a store that cannot fail");
        let (shared, asked) = (&guarded.shared, guarded.shared.again.lock().asked);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let renamed = shared.give_name(asked, || {
                guarded.start_scan().expect("a thread");
                guarded.wait_until_ready().expect("it is published");
                guarded.put(b"ada", b"1815").expect("a store that cannot fail");
                scope.spawn(|| {
                    guarded.rebuild().expect("a thread");
                    is_over.store(true, Ordering::Relaxed);
                });
                while !shared.active.is_empty() {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_millis(20));
                assert!(!is_over.load(Ordering::Relaxed), "it may be a snapshot of that filter");
                Ok(())
            });
            renamed.expect("it was asked for later");
        });
        let refused = shared.give_name(asked, || unreachable!("the filter was wrong"));
        assert!(matches!(refused, Err(SnapshotError::NoFilter)));
    }
}
