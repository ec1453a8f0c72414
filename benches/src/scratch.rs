//! A folder for databases, which is removed in the end, also after an error or Ctrl-C.

use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::{Error, name_of};

/// The folder that Ctrl-C removes if it ends the program at once. Locked by the thread that removes it.
static IN_USE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// A store that is still at work may create a file while its folder is being removed.
const ATTEMPTS: usize = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// An empty folder; one at a time.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder in `place`, or where the system has temporary files.
    ///
    /// # Errors
    ///
    /// If none can be created there.
    pub fn new(place: Option<&Path>) -> Result<Self, Error> {
        let mut in_use = IN_USE.lock();
        let folder = match place {
            Some(place) => tempfile::tempdir_in(place)
                .map_err(|error| Error::Input(format!("--folder {}: {}", name_of(place), error.kind()))),
            None => tempfile::tempdir().map_err(|error| Error::Input(error.to_string())),
        }?;
        let folder = folder.keep();
        *in_use = Some(folder.clone());
        Ok(Scratch(folder))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut in_use = IN_USE.lock();
        removed(&self.0);
        *in_use = None;
    }
}

/// Removes the folder that is in use, for good: there will be no other. Returns its path if it could not be removed.
pub fn remove() -> Option<PathBuf> {
    let in_use = IN_USE.lock();
    let left = in_use.as_ref().filter(|folder| !removed(folder)).cloned();
    std::mem::forget(in_use);
    left
}

/// Removes the folder. Returns whether it is gone.
fn removed(folder: &Path) -> bool {
    (0..ATTEMPTS).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        std::fs::remove_dir_all(folder).is_ok() || !folder.exists()
    })
}
