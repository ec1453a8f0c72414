//! Files that reports go into.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, name_of};

/// A file for a report, opened before anything is measured: so a path that cannot be written to is noticed at once, not after
/// an hour. The file's old content stays until the report is there: a run may fail.
#[derive(Debug)]
pub struct Destination {
    name: String,
    file: File,
    /// The path of a file that was not there before, as long as no report is in it.
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
                // A link may lead to a place where there is no file yet.
                let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
                file.map(|file| (file, None))
            }
            Err(e) => Err(e),
        };
        let (file, new) = opened.map_err(|e| Error::Input(format!("{name}: {e}")))?;
        Ok(Destination { name, file, new })
    }

    /// Replaces the old content by the report; returns the file's name.
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

/// Where there was no file, no empty file and no part of a report is left.
impl Drop for Destination {
    fn drop(&mut self) {
        if let Some(path) = self.new.take() {
            // If this fails, a file stays that is empty or has part of a report: no harm beyond that.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Replaces the old content. It is given up only when there is room for the part of the report that exceeds its length: a disk
/// may be full. (If overwriting takes room as well, as in a compressed file, the old content may be lost.) If tables are
/// printed to this file, they stay, and the report comes after them.
fn replace(file: &mut File, report: &[u8]) -> io::Result<()> {
    let there = file.metadata()?;
    if let Some(mut output) = printed_to(&there) {
        return output.write_all(report);
    }
    // A pipe has no old content.
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
    // Some file systems report only now that there was no room.
    file.sync_data()
}

/// Standard output, if it is this file, as it is for `/dev/stdout`: a report that follows the printed text must go through the
/// same file position.
#[cfg(unix)]
fn printed_to(file: &Metadata) -> Option<File> {
    use std::os::fd::AsFd;

    let output = File::from(io::stdout().as_fd().try_clone_to_owned().ok()?);
    let is_it = output.metadata().is_ok_and(|of| are_of_one_file(&of, file));
    is_it.then_some(output)
}

/// Files cannot be told apart here.
#[cfg(not(unix))]
fn printed_to(_: &Metadata) -> Option<File> {
    None
}

/// Whether both are of one file, under whatever names it was found.
#[cfg(unix)]
pub fn are_of_one_file(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Files cannot be told apart here.
#[cfg(not(unix))]
pub fn are_of_one_file(_: &Metadata, _: &Metadata) -> bool {
    false
}
