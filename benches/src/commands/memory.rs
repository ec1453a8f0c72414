//! `koel-bench memory`: bytes per entry.

use super::contestants;
use crate::cli::{MemoryArgs, Output};
use crate::console::Console;
use crate::contestants::Id;
use crate::entrant::entrant;
use crate::error::Error;
use crate::report::{MemoryCell, MemoryRow, Report, memory_table};

/// Runs the command.
pub(super) fn run(args: &MemoryArgs, console: &Console, report: &mut Report) -> Result<Output, Error> {
    let output = args.output.create()?;
    let maps = contestants(&args.maps, |id| !id.is_held());
    measure(&args.keys, &maps, console, report)?;
    report.memory.iter().for_each(|cell| console.say(&memory_table(cell)));
    Ok(output)
}

/// Measures `maps` with each number of keys, both built for them and grown to them, and adds that to `report`.
pub(super) fn measure(
    keys: &[u64],
    maps: &[Id],
    console: &Console,
    report: &mut Report,
) -> Result<(), Error> {
    console.expect(keys.len() * 2 * maps.len());
    for &keys in keys {
        for (built, capacity) in [("built with_capacity", keys as usize), ("grown from empty", 0)] {
            let mut rows = Vec::with_capacity(maps.len());
            for &id in maps {
                console.begin(built, id.name());
                rows.push(row(id, capacity, keys).map_err(|failure| failure.during(built))?);
                console.done();
            }
            report.memory.push(MemoryCell { built: built.to_owned(), keys, rows });
        }
    }
    Ok(())
}

fn row(id: Id, capacity: usize, keys: u64) -> Result<MemoryRow, crate::error::CheckError> {
    let footprint = entrant(id).footprint(capacity, keys)?;
    let per_entry = |bytes: f64| bytes / keys as f64;
    Ok(MemoryRow {
        contestant: id.name(),
        is_koel: id.is_koel(),
        requested: per_entry(footprint.requested as f64),
        allocated: per_entry(footprint.taken as f64),
        own: footprint.own.map(|bytes| per_entry(bytes as f64)),
    })
}
