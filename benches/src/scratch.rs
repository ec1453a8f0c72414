//! A folder for databases, which is there no longer in the end: after an error and Ctrl-C neither.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::error::Error;

/// What Ctrl-C removes. Held by whoever removes it.
static IN_USE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// A store that is still at work may make a file while its folder is being removed.
const ATTEMPTS: usize = 100;

/// What shells have for a program that Ctrl-C has ended.
const STOPPED: i32 = 130;

/// An empty folder; one at a time.
#[derive(Debug)]
pub struct Scratch(Option<TempDir>);

impl Scratch {
    /// In `place`, or where the system has temporary files.
    ///
    /// # Errors
    ///
    /// If there can be none in that place, or if Ctrl-C cannot be handled.
    pub fn new(place: Option<&Path>) -> Result<Self, Error> {
        // Before there is anything to be removed.
        static HANDLED: OnceLock<Result<(), String>> = OnceLock::new();
        HANDLED
            .get_or_init(|| ctrlc::set_handler(stop).map_err(|error| error.to_string()))
            .clone()
            .map_err(|error| Error::Input(format!("Ctrl-C cannot be handled: {error}")))?;
        let mut in_use = IN_USE.lock();
        let folder = match place {
            Some(place) => tempfile::tempdir_in(place)
                .map_err(|error| Error::Input(format!("--folder {}: {}", place.display(), error.kind()))),
            None => tempfile::tempdir().map_err(|error| Error::Input(error.to_string())),
        }?;
        *in_use = Some(folder.path().to_owned());
        Ok(Scratch(Some(folder)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut in_use = IN_USE.lock();
        drop(self.0.take());
        *in_use = None;
    }
}

/// Ends the program. What is in use stays locked: there will be no other.
fn stop() {
    let in_use = IN_USE.lock();
    let removed = in_use.as_ref().is_none_or(|folder| {
        (0..ATTEMPTS).any(|_| std::fs::remove_dir_all(folder).is_ok() || !folder.exists())
    });
    let left = in_use.as_ref().filter(|_| !removed);
    let told = left.map_or(String::new(), |folder| format!("; {} is left", folder.display()));
    let _ = writeln!(std::io::stderr(), "\nkoel-bench: stopped{told}");
    std::process::exit(STOPPED);
}
