//! Files that reports go into.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, name_of};

/// A file that a report goes into, opened before anything is measured: a path that cannot be written to is known at once,
/// not after an hour. What was in it stays until the report is there: a run may fail.
#[derive(Debug)]
pub struct Destination {
    name: String,
    file: File,
    /// A file that was not there before, as long as no report is in it.
    new: Option<PathBuf>,
}

impl Destination {
    /// Opens the file in `path`, or creates it.
    ///
    /// # Errors
    ///
    /// A message with the file's name.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let name = name_of(path);
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
        match replace(&mut self.file, text.as_bytes()) {
            Ok(()) => {
                self.new = None;
                Ok(std::mem::take(&mut self.name))
            }
            Err(e) => Err(Error::Input(format!("{}: {e}", self.name))),
        }
    }
}

/// No empty file is left where there was none, nor a part of a report.
impl Drop for Destination {
    fn drop(&mut self) {
        if let Some(path) = self.new.take() {
            // If it stays, it is empty, or has part of a report, and that is all.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What was there is given up when what the report is longer than that has found room: a disk may be full. (Where to write over
/// something takes room as well, as in a compressed file, it may be lost.) Where tables are printed to, they stay, and the
/// report comes after them.
fn replace(file: &mut File, report: &[u8]) -> io::Result<()> {
    let there = file.metadata()?;
    if let Some(mut output) = printed_to(&there) {
        return output.write_all(report);
    }
    // A pipe has nothing to be taken away.
    if !there.is_file() {
        return file.write_all(report);
    }
    let kept = usize::try_from(there.len()).map_or(report.len(), |len| len.min(report.len()));
    let (head, tail) = report.split_at(kept);
    file.seek(SeekFrom::End(0))?;
    if let Err(e) = file.write_all(tail) {
        let _ = file.set_len(there.len());
        return Err(e);
    }
    file.rewind()?;
    file.write_all(head)?;
    file.set_len(report.len() as u64)?;
    // Some file systems say only now that there was no room.
    file.sync_data()
}

/// Standard output, if it is this file, as it is if that was opened as `/dev/stdout`: what goes there after what was printed
/// must go through the same position in it.
#[cfg(unix)]
fn printed_to(file: &Metadata) -> Option<File> {
    use std::os::fd::AsFd;

    let output = File::from(io::stdout().as_fd().try_clone_to_owned().ok()?);
    let is_it = output.metadata().is_ok_and(|of| are_of_one_file(&of, file));
    is_it.then_some(output)
}

/// Nothing tells files apart.
#[cfg(not(unix))]
fn printed_to(_: &Metadata) -> Option<File> {
    None
}

/// Whether both are of one file, by whatever names it was found.
#[cfg(unix)]
pub fn are_of_one_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Nothing tells files apart.
#[cfg(not(unix))]
pub fn are_of_one_file(_: &Metadata, _: &Metadata) -> bool {
    false
}
