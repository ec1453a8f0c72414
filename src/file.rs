//! Files that appear whole: they are made under another name first.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::draw::draw;

/// Opens a file, and nothing else that may have that name: opening a pipe would wait for its writer.
pub(crate) fn open(file: &Path) -> io::Result<File> {
    if !std::fs::metadata(file)?.is_file() {
        return Err(not_a_file());
    }
    File::open(file)
}

/// The error for a folder, a device or a pipe.
fn not_a_file() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "not a file")
}

/// The same error, with the file's name.
pub(crate) fn naming(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

/// Replaces or creates a file by what `write` writes, when all of that is on the disk; errors name the file. Whatever happens
/// before, the file stays as it is.
pub(crate) fn replace(file: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let replace = || {
        let (mut new, mut out) = NewFile::beside(file)?;
        write(&mut out)?;
        out.sync_all()?;
        // Not all systems rename open files.
        drop(out);
        new.rename()?;
        new.sync_name()
    };
    replace().map_err(|error| naming(file, &error))
}

/// A file next to another one whose place it is to take. If it has not done so when this is dropped, it is removed: a part of a
/// file is of use to nobody, and the disk may be full.
pub(crate) struct NewFile {
    new: PathBuf,
    place: PathBuf,
    is_in_place: bool,
}

impl NewFile {
    /// Creates an empty file, to be written to. If the other one is a link, next to what that leads to.
    pub(crate) fn beside(file: &Path) -> io::Result<(Self, File)> {
        let place = behind_links(file)?;
        let other = std::fs::metadata(&place).ok();
        if other.as_ref().is_some_and(|other| !other.is_file()) {
            return Err(not_a_file());
        }
        let new = own_beside(&place);
        // So that nobody else's link leads elsewhere, and nobody else writes the same file.
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if other.is_some() {
            // So that nobody else opens it that is perhaps not permitted to read the other one.
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let out = options.open(&new)?;
        let new = NewFile { new, place, is_in_place: false };
        if let Some(other) = other {
            // Where that is not possible, as on some foreign file systems, all files have the same permissions.
            let _ = out.set_permissions(other.permissions());
        }
        // What stays because of an error is left for the next call.
        let _ = new.remove_abandoned(&out);
        Ok((new, out))
    }

    /// Removes the new files of processes that were killed, judging by names and times.
    fn remove_abandoned(&self, out: &File) -> io::Result<()> {
        // The time is that of the file system's clock, which may be another machine's.
        let now = out.metadata()?.modified()?;
        for other in std::fs::read_dir(folder_of(&self.new))? {
            let other = other?;
            if are_alike(&other.file_name(), &self.new) {
                let written = other.metadata()?.modified()?;
                if now.duration_since(written).is_ok_and(|passed| passed > ABANDONED) {
                    let _ = std::fs::remove_file(other.path());
                }
            }
        }
        Ok(())
    }

    /// Puts the new file in the other one's place. All of it should be on the disk.
    pub(crate) fn rename(&mut self) -> io::Result<()> {
        std::fs::rename(&self.new, &self.place)?;
        self.is_in_place = true;
        Ok(())
    }

    /// Puts its name on the disk: until then the old file may come back.
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

/// A file that is to take another one's place and has not been written to for so long is not being written by anybody any more.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The folder of a file.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Most bytes of a name to which more are added: most file systems allow 255 in all.
const MOST_NAME_BYTES: usize = 200;
/// Random digits at the end of a name.
const RANDOM_DIGITS: usize = 16;

/// The name under which a file that is to appear whole is made, next to it: with `.new-` and 16 random digits at its end; only
/// these, if a name is so long that there might be no room for more. No other file has that name, neither anybody else's nor
/// that of a process that was killed.
pub(crate) fn own_beside(file: &Path) -> PathBuf {
    let name = file.file_name().filter(|name| name.len() <= MOST_NAME_BYTES);
    let mut new = name.unwrap_or_default().to_owned();
    new.push(format!(".new-{:0RANDOM_DIGITS$x}", draw() as u64));
    file.with_file_name(new)
}

/// Whether [`own_beside`] may have made `name` for the same file as `new`.
fn are_alike(name: &OsStr, new: &Path) -> bool {
    let new = new.file_name().unwrap_or_default().as_encoded_bytes();
    let (name, parted) = (name.as_encoded_bytes(), new.len() - RANDOM_DIGITS);
    name.len() == new.len()
        && name[..parted] == new[..parted]
        && name[parted..].iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The number of successive links that are followed: as many as on Linux.
const MOST_LINKS: usize = 40;

/// The name to which a link leads, whether or not a file has it: otherwise the new file would take the link's place.
pub(crate) fn behind_links(file: &Path) -> io::Result<PathBuf> {
    let mut file = file.to_owned();
    for _ in 0..=MOST_LINKS {
        let Ok(to) = std::fs::read_link(&file) else { return Ok(file) };
        // An absolute target stands for itself.
        file = file.parent().unwrap_or(Path::new("")).join(to);
    }
    Err(io::Error::other("too many links"))
}

/// Puts the names in a file's folder on the disk, if the folder can be synced: not all file systems support that, and the
/// permission to make a file in a folder does not imply that to read the folder.
pub(crate) fn sync_names_beside(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = File::open(folder_of(file));
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
    use std::collections::BTreeSet;

    use super::*;

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

    #[test]
    fn what_others_have_left_goes_and_what_they_may_be_writing_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let make = |name: &str, hours: u64| {
            let file = File::create(folder.path().join(name)).expect("a file");
            let time = file.metadata().and_then(|new| new.modified()).expect("a time");
            file.set_modified(time - Duration::from_secs(hours * 3600)).expect("another time");
        };
        let stay = [("file", 9), ("other.new-0123456789abcdef", 9), ("file.new-0123456789abcdeg", 9)];
        let stay =
            stay.into_iter().chain([("file.new-0123456789abcde", 9), ("file.new-fedcba9876543210", 0)]);
        let go = [("file.new-0123456789abcdef", 2), ("file.new-0000000000000000", 1000)];
        stay.clone().chain(go).for_each(|(name, hours)| make(name, hours));
        replace(&folder.path().join("file"), |_| Ok(())).expect("a file");
        let left = std::fs::read_dir(folder.path()).expect("a folder");
        let left = left.map(|file| file.expect("a name").file_name().into_string().expect("a text"));
        let (left, stay) =
            (BTreeSet::from_iter(left), BTreeSet::from_iter(stay.map(|(name, _)| name.into())));
        assert_eq!(left, stay);
    }

    #[test]
    fn whoever_may_not_read_the_old_file_may_not_read_the_new_one() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        let mode = || std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777;
        std::fs::write(&file, b"old").expect("a file");
        for kept in [0o600, 0o640, 0o444] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(kept)).expect("a mode");
            replace(&file, |out| {
                assert_eq!(out.metadata()?.permissions().mode() & 0o777, kept, "before anything is in it");
                Ok(())
            })
            .expect("a file");
            assert_eq!(mode(), kept);
        }
    }

    /// Such as those of some network file systems.
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
