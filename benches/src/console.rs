//! Tables on standard output, a progress bar on standard error.

use std::io::Write;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Where a command tells how far it is and what it found.
#[derive(Debug)]
pub struct Console {
    bar: ProgressBar,
}

impl Console {
    /// With a progress bar, if standard error is a terminal.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} (left: {eta}) {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Console { bar }
    }

    /// Adds steps to the bar's length.
    pub fn expect(&self, steps: usize) {
        self.bar.inc_length(steps as u64);
    }

    /// Tells which step begins.
    pub fn begin(&self, what: &str, who: &str) {
        self.bar.set_message(format!("{what}: {who}"));
        self.bar.tick();
    }

    /// Moves the bar by one step.
    pub fn done(&self) {
        self.bar.inc(1);
    }

    /// Prints `text` and a line end, above the bar.
    pub fn say(&self, text: &str) {
        // Nobody may be listening any more, as in `koel-bench | head`: that is no reason to fail.
        self.bar.suspend(|| {
            let _ = writeln!(std::io::stdout(), "{text}");
        });
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Default for Console {
    fn default() -> Self {
        Console::new()
    }
}
