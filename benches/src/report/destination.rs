//! Files that reports go into.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A file that a report goes into, opened before anything is measured: a path that cannot be written to is known at once,
/// not after an hour. What was in it stays until the report is there: a run may fail.
#[derive(Debug)]
pub struct Destination {
    name: String,
    file: File,
    /// A file that was not there before, as long as nothing is in it.
    new: Option<PathBuf>,
}

impl Destination {
    /// Opens the file in `path`, or creates it.
    ///
    /// # Errors
    ///
    /// A message with the file's name.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let opened = match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(file) => Ok((file, Some(path.to_owned()))),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                // A link may lead to where no file is yet.
                let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
                file.map(|file| (file, None))
            }
            Err(e) => Err(e),
        };
        let (file, new) = opened.map_err(|e| Error::Input(format!("{name}: {e}")))?;
        Ok(Destination { name, file, new })
    }

    /// Writes the report in the place of what was there; returns the file's name.
    ///
    /// # Errors
    ///
    /// A message with the file's name.
    pub fn write(mut self, text: &str) -> Result<String, Error> {
        self.new = None;
        match replace(&mut self.file, text) {
            Ok(()) => Ok(std::mem::take(&mut self.name)),
            Err(e) => Err(Error::Input(format!("{}: {e}", self.name))),
        }
    }
}

/// No empty file is left where there was none.
impl Drop for Destination {
    fn drop(&mut self) {
        if let Some(path) = self.new.take() {
            // If it stays, it is empty, and that is all.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn replace(file: &mut File, text: &str) -> io::Result<()> {
    // A pipe has nothing to be taken away.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())
}
