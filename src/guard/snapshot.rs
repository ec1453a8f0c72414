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
//! | 64 | | the body: 1,024 bytes that say which stripes are crowded; the filter |
//! | | 8 | XXH3-64 of all before |
//!
//! The filter is what `ScalableCuckooFilter::to_bytes` gives; or, of a Bloom filter, four numbers of eight bytes (hashes a
//! key, keys it was made for, keys that went in, keys that went out) and its words.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use twox_hash::XxHash3_64;

use super::beside::{behind_links, new_beside, sync_names_beside};
use super::error::{Error, SnapshotError};
use super::filter::{Active, Filter, Plan};
use super::shared::Shared;
use super::store::{Generation, Store};
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

/// The filter in a file, if it is of this plan and of a store at this generation; and its hash function.
pub(super) fn read(file: &Path, plan: Plan, generation: Generation) -> Result<(Active, Xxh3), SnapshotError> {
    let bytes = std::fs::read(file).map_err(|error| naming(file, &error))?;
    let (content, checksum) = bytes.split_last_chunk::<8>().ok_or(SnapshotError::Damaged("it ends early"))?;
    let (header, body) =
        content.split_at_checked(HEADER_LEN).ok_or(SnapshotError::Damaged("it ends early"))?;
    let word = |at: usize| u64::from_le_bytes(*header[at..].first_chunk().expect("within the header"));
    if header[..8] != MAGIC {
        return Err(SnapshotError::Damaged("not a snapshot"));
    }
    if word(8) as u32 != VERSION {
        return Err(SnapshotError::Damaged("a version that is not known"));
    }
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
        // The file may be whole.
        FilterError::OutOfMemory { .. } => naming(file, &io::ErrorKind::OutOfMemory.into()),
        _ => SnapshotError::Damaged("its filter is none"),
    })?;
    match filter.filter(|filter| filter.has_hasher(hasher)) {
        Some(filter) => Ok((filter, hasher)),
        None => Err(SnapshotError::Damaged("its filter is none")),
    }
}

impl<S: Store> Shared<S, S::Error> {
    pub(super) fn write_snapshot(&self, file: &Path) -> Result<(), Error<S::Error>> {
        let _one_at_a_time = self.snapshot.lock();
        let mut bytes = vec![0; HEADER_LEN];
        {
            // Filter and generation belong together [D7].
            let _frozen = self.stripes.freeze();
            // First: if somebody writes around the guard now, it does not fit.
            let generation = self.store.generation().map_err(Error::Store)?;
            let active = self.active().ok_or(Error::Snapshot(SnapshotError::NoFilter))?;
            active.append_bytes(&mut bytes);
            let header = header(self.plan, generation, bytes.len() - HEADER_LEN);
            bytes[..HEADER_LEN].copy_from_slice(&header);
        }
        bytes.extend(XxHash3_64::oneshot(&bytes).to_le_bytes());
        write_whole(file, &bytes).map_err(|error| Error::Snapshot(naming(file, &error)))
    }
}

/// An error that names its file.
fn naming(file: &Path, error: &io::Error) -> SnapshotError {
    io::Error::new(error.kind(), format!("{}: {error}", file.display())).into()
}

/// Writes beside the file and puts that in its place when it is on disk.
fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = behind_links(file)?;
    let new = new_beside(&file);
    let out = File::create(&new)?;
    if let Err(error) = fill(out, bytes).and_then(|()| std::fs::rename(&new, &file)) {
        // A part of a snapshot is of use to nobody, and the disk may be full.
        let _ = std::fs::remove_file(&new);
        return Err(error);
    }
    // The name, too. If it is lost, the old snapshot does not fit the store.
    sync_names_beside(&file)
}

/// Writes all of a new file, to the disk.
fn fill(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}
