//! `koel-bench memory`: bytes per entry.

use super::chosen;
use super::field::Field;
use crate::cli::{MemoryArgs, Output};
use crate::console::Console;
use crate::contestants::Id;
use crate::entrant::{Entrant, entrant};
use crate::error::{CheckError, Error};
use crate::report::{MemoryCell, MemoryRow, Report, memory_table};

/// Runs the command.
pub(super) fn run(
    args: &MemoryArgs,
    console: &Console,
    report: &mut Report,
    output: &mut Output,
) -> Result<(), Error> {
    *output = args.output.create()?;
    let maps = chosen(&args.maps, |id| !id.is_held());
    let measured = measure(&args.keys, &maps, console, report);
    report.memory.iter().for_each(|cell| console.say(&memory_table(cell)));
    measured
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
            let mut entrants = Field::new(console, maps.iter().map(|&id| (id, entrant(id))));
            let rows = entrants.each(built, |id, entrant| row(id, entrant, capacity, keys))?;
            let rows = rows.into_iter().map(|(_, row)| row).collect();
            let absent = entrants.absent();
            report.memory.push(MemoryCell { built: built.to_owned(), keys, rows, absent });
        }
    }
    Ok(())
}

fn row(id: Id, entrant: &mut dyn Entrant, capacity: usize, keys: u64) -> Result<MemoryRow, CheckError> {
    let footprint = entrant.footprint(capacity, keys)?;
    let per_entry = |bytes: f64| bytes / keys as f64;
    Ok(MemoryRow {
        contestant: id.name(),
        is_koel: id.is_koel(),
        requested: per_entry(footprint.requested as f64),
        allocated: per_entry(footprint.taken as f64),
        own: footprint.own.map(|bytes| per_entry(bytes as f64)),
    })
}
