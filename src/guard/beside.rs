//! Files that appear whole: made under another name first.

use std::io;
use std::path::{Path, PathBuf};

/// The name under which a file is made that is to appear whole: with `.new` at its end.
pub(super) fn new_beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    file.with_file_name(name)
}

/// Puts the names in a file's folder on the disk, where folders can be synced.
pub(super) fn sync_names_beside(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}
