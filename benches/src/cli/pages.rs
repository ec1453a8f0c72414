//! Options that choose which tables have huge pages.

use clap::Args;

use crate::pages::Pages;

/// Options that choose which tables have huge pages.
#[derive(Debug, Args, Default)]
pub struct PagesArgs {
    /// Measure without huge pages: by default koel's tables ask for them if they are large (maps and caches that are made for
    /// half a million slots, or have grown to many, filters of 4 MiB), and other libraries' tables do not
    #[arg(long)]
    pub small_pages: bool,
    /// Ask for huge pages for all tables: for each block of 4 MiB and more that is allocated
    #[arg(long, conflicts_with = "small_pages")]
    pub huge_pages: bool,
}

impl PagesArgs {
    /// The choice that the options make.
    pub fn chosen(&self) -> Pages {
        match (self.small_pages, self.huge_pages) {
            (true, _) => Pages::Small,
            (false, true) => Pages::Huge,
            (false, false) => Pages::AsAsked,
        }
    }
}
