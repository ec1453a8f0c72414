//! The `koel-bench` program: see `koel-bench --help`.

use std::io::Write;
use std::process::ExitCode;

use koel_bench::cli::Cli;
use koel_bench::commands;
use koel_bench::error::Error;
use koel_bench::heap::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    match commands::run(&Cli::of_program()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ Error::Unheard) => error.exit_code(),
        Err(error) => {
            // If this fails, the exit code still reports the error.
            let _ = writeln!(std::io::stderr(), "koel-bench: {error}");
            error.exit_code()
        }
    }
}
