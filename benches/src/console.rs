//! Tables on standard output, a progress bar on standard error.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::{CheckError, Error};

/// Where a command reports its progress and its results.
#[derive(Debug)]
pub struct Console {
    bar: ProgressBar,
    /// Why something could not be printed.
    lost: RefCell<Option<io::Error>>,
    /// The failures of other contestants than koel.
    failures: RefCell<Vec<CheckError>>,
    /// Whether reports of the measurements are written.
    reports: bool,
    /// Whether nobody reads standard output any more.
    unheard: Cell<bool>,
}

impl Console {
    /// A console with a progress bar, if standard error is a terminal. `reports` is whether reports are written, too.
    pub fn new(reports: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} (left: {eta}) {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Console {
            bar,
            lost: RefCell::new(None),
            failures: RefCell::default(),
            reports,
            unheard: Cell::new(false),
        }
    }

    /// Adds steps to the bar's length.
    pub fn expect(&self, steps: usize) {
        self.bar.inc_length(steps as u64);
    }

    /// Shows which step begins.
    pub fn begin(&self, what: &str, who: &str) {
        self.bar.set_message(format!("{what}: {who}"));
        self.bar.tick();
    }

    /// Moves the bar by one step.
    pub fn done(&self) {
        self.bar.inc(1);
    }

    /// Notes a failed check that does not end the run.
    pub fn failed(&self, failure: CheckError) {
        self.failures.borrow_mut().push(failure);
    }

    /// The failed checks that did not end the run.
    pub fn failures(&self) -> Vec<CheckError> {
        self.failures.borrow().clone()
    }

    /// Prints `text`, if there is any, and a line end, above the bar. Goes on if that fails: there may be reports to write.
    pub fn say(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.note(self.bar.suspend(|| writeln!(io::stdout(), "{text}")));
    }

    /// Notes whether printing succeeded.
    pub(crate) fn note(&self, said: io::Result<()>) {
        match said {
            // As in `koel-bench | head`, which is no reason to fail.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.unheard.set(true),
            Err(error) => {
                self.lost.borrow_mut().get_or_insert(error);
            }
            Ok(()) => {}
        }
    }

    /// Checks that somebody will see the results.
    ///
    /// # Errors
    ///
    /// If nobody reads standard output any more, and no report is written either.
    pub fn check(&self) -> Result<(), Error> {
        if self.unheard.get() && !self.reports { Err(Error::Unheard) } else { Ok(()) }
    }

    /// Checks that everything was printed, or that nobody was reading any more.
    ///
    /// # Errors
    ///
    /// Why printing failed: a full disk, for instance.
    pub fn all_said(&self) -> Result<(), Error> {
        match &*self.lost.borrow() {
            Some(error) => Err(Error::Input(format!("standard output: {error}"))),
            None => Ok(()),
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
