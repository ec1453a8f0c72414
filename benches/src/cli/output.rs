//! Options that name files to write, and the files.

use std::path::PathBuf;

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
        // As far as names tell.
        let whole = |path: &PathBuf| std::path::absolute(path).ok();
        let outputs: Vec<_> = [&self.json, &self.html].into_iter().flatten().filter_map(whole).collect();
        if outputs.len() == 2 && outputs[0] == outputs[1] {
            return Some("--json and --html name one file: the page would overwrite the numbers");
        }
        let read = traces.iter().filter_map(whole).any(|trace| outputs.contains(&trace));
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
