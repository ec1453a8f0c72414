//! Files that appear whole: made under another name first.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Opens a file; nothing else that may have that name: to open a pipe is to wait for who writes to it.
pub(crate) fn open(file: &Path) -> io::Result<File> {
    if !std::fs::metadata(file)?.is_file() {
        return Err(not_a_file());
    }
    File::open(file)
}

/// What a folder, a device or a pipe is.
fn not_a_file() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "not a file")
}

/// The same error, with the file's name.
pub(crate) fn naming(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

/// Puts what is written in the place of a file, when all of it is on the disk, or makes that file; its errors name it. Whatever
/// happens before, the file stays as it is.
pub(crate) fn replace(file: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let replace = || {
        let (mut new, mut out) = NewFile::beside(file)?;
        write(&mut out)?;
        out.sync_all()?;
        // Not all systems rename what is open.
        drop(out);
        new.rename()?;
        new.sync_name()
    };
    replace().map_err(|error| naming(file, &error))
}

/// A file beside another one whose place it is to take. It is removed if it has not when this is dropped: a part of a file is
/// of use to nobody, and the disk may be full.
pub(crate) struct NewFile {
    new: PathBuf,
    place: PathBuf,
    is_in_place: bool,
}

impl NewFile {
    /// An empty one, to be written to. If the other is a link, beside what that leads to.
    pub(crate) fn beside(file: &Path) -> io::Result<(Self, File)> {
        let place = behind_links(file)?;
        match std::fs::metadata(&place) {
            Ok(other) if !other.is_file() => return Err(not_a_file()),
            _ => {}
        }
        let new = own_beside(&place);
        // No link of somebody else's leads elsewhere, and nobody else writes the same file.
        let out = File::create_new(&new)?;
        Ok((NewFile { new, place, is_in_place: false }, out))
    }

    /// Puts it in the other one's place. All of it should be on the disk.
    pub(crate) fn rename(&mut self) -> io::Result<()> {
        std::fs::rename(&self.new, &self.place)?;
        self.is_in_place = true;
        Ok(())
    }

    /// Puts its name on the disk: until then the old one may come back.
    pub(crate) fn sync_name(&self) -> io::Result<()> {
        sync_names_beside(&self.place)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_in_place {
            let _ = std::fs::remove_file(&self.new);
        }
    }
}

/// 128 random bits, others each time.
pub(crate) fn draw() -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_else(|before| before.duration());
    draw_by(&RandomState::new(), std::process::id(), now)
}

/// Processes that were forked from one thread have the same random keys: so it counts which one this is, and when.
fn draw_by(keys: &RandomState, process: u32, now: Duration) -> u128 {
    let half = |number: u8| u128::from(keys.hash_one((number, process, now)));
    half(0) << 64 | half(1)
}

/// Bytes of a name to which more are added: most file systems have 255 for all.
const MOST_NAME_BYTES: usize = 200;

/// The name under which a file is made that is to appear whole, beside that: with `.new-` and 16 random digits at its end; only
/// these, where a name is so long that there might be no room for more. No other file has that name, of anybody else or of a
/// process that was killed.
pub(crate) fn own_beside(file: &Path) -> PathBuf {
    let name = file.file_name().filter(|name| name.len() <= MOST_NAME_BYTES);
    let mut new = name.unwrap_or_default().to_owned();
    new.push(format!(".new-{:016x}", draw() as u64));
    file.with_file_name(new)
}

/// Links, one behind the other, that are followed: as many as Linux does.
const MOST_LINKS: usize = 40;

/// The name to which a link leads, that of no file or of one: else what is made would take the link's place.
pub(crate) fn behind_links(file: &Path) -> io::Result<PathBuf> {
    let mut file = file.to_owned();
    for _ in 0..=MOST_LINKS {
        let Ok(to) = std::fs::read_link(&file) else { return Ok(file) };
        // An absolute one stands for itself.
        file = file.parent().unwrap_or(Path::new("")).join(to);
    }
    Err(io::Error::other("too many links"))
}

/// Puts the names in a file's folder on the disk, where folders can be synced: not all file systems do that, and not everybody
/// who may make a file in a folder may read it.
pub(crate) fn sync_names_beside(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::fs::File::open(folder.unwrap_or(Path::new(".")));
        let cannot = [ErrorKind::InvalidInput, ErrorKind::Unsupported, ErrorKind::PermissionDenied];
        match folder.and_then(|folder| folder.sync_all()) {
            Err(error) if !cannot.contains(&error.kind()) => return Err(error),
            _ => {}
        }
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

#[cfg(all(test, target_os = "linux", not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_draws_other_bits() {
        let (keys, now) = (RandomState::new(), Duration::from_secs(1_764_000_000));
        let parents = draw_by(&keys, 7, now);
        assert_ne!(parents, draw_by(&keys, 8, now));
        // One that has the number of one that has ended.
        assert_ne!(parents, draw_by(&keys, 7, now + Duration::from_nanos(1)));
        assert_ne!(parents >> 64, parents & u128::from(u64::MAX));
    }

    #[test]
    fn what_was_not_written_to_the_end_leaves_the_file_as_it_was() {
        use std::io::Write;

        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        replace(&file, |out| out.write_all(b"old")).expect("a file");
        let begin = |out: &mut File| out.write_all(b"new");
        let error = replace(&file, |out| begin(out).and(Err(ErrorKind::StorageFull.into()))).unwrap_err();
        assert!(error.kind() == ErrorKind::StorageFull && error.to_string().contains("file"), "{error}");
        let panic =
            std::panic::catch_unwind(|| replace(&file, |out| begin(out).map(|()| panic!("a user's"))));
        assert!(panic.is_err());
        assert_eq!(std::fs::read(&file).expect("the old one"), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    /// As those of some network file systems.
    #[test]
    fn a_folder_that_cannot_be_synced_is_no_error() {
        assert_eq!(
            std::fs::File::open("/proc").unwrap().sync_all().unwrap_err().kind(),
            ErrorKind::InvalidInput
        );
        sync_names_beside(Path::new("/proc/file")).unwrap();
        assert!(sync_names_beside(Path::new("/no such folder/file")).is_err());
    }
}
