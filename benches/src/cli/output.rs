//! Options that name files to write, and the files.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::Error;
use crate::report::Destination;

/// Options that name files to write.
#[derive(Debug, Args, Default)]
pub struct OutputArgs {
    /// Write everything that was measured to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with charts to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The files of [`OutputArgs`], open.
#[derive(Debug, Default)]
pub struct Output {
    /// For JSON.
    pub json: Option<Destination>,
    /// For the page.
    pub html: Option<Destination>,
}

impl OutputArgs {
    /// Why they do not go together, with one another and with what is read.
    pub(super) fn conflict(&self, traces: &[PathBuf]) -> Option<&'static str> {
        let outputs: Vec<_> =
            [&self.json, &self.html].into_iter().flatten().filter_map(|path| whole(path)).collect();
        if outputs.len() == 2 && outputs[0] == outputs[1] {
            return Some("--json and --html name one file: the page would overwrite the numbers");
        }
        let read = traces.iter().filter_map(|path| whole(path)).any(|trace| outputs.contains(&trace));
        read.then_some("--trace and a report name one file: the report would overwrite the trace")
    }

    /// Opens the files, or creates them.
    ///
    /// # Errors
    ///
    /// A message with the name of the file that cannot be written.
    pub fn create(&self) -> Result<Output, Error> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(Destination::create).transpose();
        Ok(Output { json: create(&self.json)?, html: create(&self.html)? })
    }
}

/// The path without links, as far as it exists; of a file that does not exist yet, that of its folder, and its name.
fn whole(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let path = std::path::absolute(path).ok()?;
        Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_the_other_report_is_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let [json, html, other] = ["r.json", "r.html", "other.html"].map(|name| folder.path().join(name));
        std::fs::write(&json, "").unwrap();
        std::os::unix::fs::symlink(&json, &html).unwrap();
        let conflict = |html| OutputArgs { json: Some(json.clone()), html: Some(html) }.conflict(&[]);
        assert!(conflict(html).unwrap().contains("name one file"));
        assert_eq!(conflict(other), None);
    }
}
