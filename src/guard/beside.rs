//! Files that appear whole: made under another name first.

use std::path::{Path, PathBuf};

/// The name under which a file is made that is to appear whole: with `.new` at its end.
pub(super) fn new_beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    file.with_file_name(name)
}
