//! Files that appear whole: made under another name first.

use std::io;
#[cfg(unix)]
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::store::Generation;

/// Bytes of a name to which more are added: most file systems have 255 for all.
const MOST_NAME_BYTES: usize = 200;

/// The name under which a file is made that is to appear whole, beside that: with `.new-` and 16 random digits at its end; only
/// these, where a name is so long that there might be no room for more. No other file has that name, of anybody else or of a
/// process that was killed.
pub(super) fn own_beside(file: &Path) -> PathBuf {
    let name = file.file_name().filter(|name| name.len() <= MOST_NAME_BYTES);
    let mut new = name.unwrap_or_default().to_owned();
    new.push(format!(".new-{:016x}", Generation::new_lineage() as u64));
    file.with_file_name(new)
}

/// Links, one behind the other, that are followed: as many as Linux does.
const MOST_LINKS: usize = 40;

/// The name to which a link leads, that of no file or of one: else what is made would take the link's place.
pub(super) fn behind_links(file: &Path) -> io::Result<PathBuf> {
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
pub(super) fn sync_names_beside(file: &Path) -> io::Result<()> {
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
