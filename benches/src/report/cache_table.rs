//! Tables of caches for the terminal.

use comfy_table::{Attribute, Cell as Field};

use super::cache::{CacheAim, CacheReport, CacheSpeedCell, HitRatioCell, HitRatioMeans};
use super::columns::Columns;
use super::table::{median, name_field, number_field, range, range_or_none, ratio, ratio_field};
use super::{absent_in_words, grouped, significant};
use crate::caches::Id;
use crate::stats::Spread;

/// Caches and exact policies, in the order of the cells.
pub(super) fn columns<'a>(cells: impl Iterator<Item = &'a HitRatioCell>) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    for cell in cells {
        let of_cell = cell.rows.iter().map(|row| row.cache).chain(cell.exact.iter().map(|exact| exact.0));
        for name in of_cell {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}

/// The hit ratio of `name` in a cell, in words; with a star if it holds more than it was to hold.
pub(super) fn hit_ratio_of(cell: &HitRatioCell, name: &str) -> String {
    if let Some(row) = cell.rows.iter().find(|row| row.cache == name) {
        return format!("{:.2}{}", 100.0 * row.hit_ratio, if row.holds_too_much { "*" } else { "" });
    }
    let exact = cell.exact.iter().find(|exact| exact.0 == name);
    exact.map_or("-".to_owned(), |(_, hit_ratio)| format!("{:.2}", 100.0 * hit_ratio))
}

/// The name of the best rival.
pub(super) fn best_of(cell: &HitRatioCell) -> &'static str {
    cell.best_rival().map_or("", |row| row.cache)
}

/// A difference in percentage points, with its sign.
pub(super) fn points(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:+.2}"))
}

/// Hit ratios with one kind of bound, and their means: a line for each set of requests and size.
pub fn hit_ratio_table(cells: &[HitRatioCell], by_bytes: bool) -> String {
    let cells = || cells.iter().filter(|cell| cell.by_bytes == by_bytes && !cell.for_curves);
    if cells().next().is_none() {
        return String::new();
    }
    let names = columns(cells());
    let mut headings = vec!["requests", "keys", "size"];
    headings.extend(&names);
    headings.extend(["best rival", "koel - best", "clock - best"]);
    let mut table = Columns::new(&headings).with_names(3);
    for cell in cells() {
        let mut fields = vec![
            Field::new(&cell.requests),
            number_field(grouped(cell.keys)),
            number_field(cell.capacity_in_words()),
        ];
        fields.extend(names.iter().map(|name| number_field(hit_ratio_of(cell, name))));
        fields.push(Field::new(best_of(cell)));
        fields.extend([Id::Koel, Id::KoelClock].map(|id| points_field(cell.minus_best(id))));
        table.add_row(fields);
    }
    let bound = if by_bytes { "bytes" } else { "entries" };
    let absent: String = cells()
        .filter(|cell| !cell.absent.is_empty())
        .map(|cell| {
            format!("{}, {}: {}", cell.requests, cell.capacity_in_words(), absent_in_words(&cell.absent))
        })
        .collect();
    format!(
        "Hit ratios in percent, caches bounded by {bound}; every value was checked\n{table}\n{}{absent}",
        too_much_in_words(cells()).map_or(String::new(), |told| told + "\n")
    )
}

fn points_field(value: Option<f64>) -> Field {
    let field = number_field(points(value));
    if value.is_some_and(|value| value >= -0.005) { field.add_attribute(Attribute::Bold) } else { field }
}

/// Says which caches hold more than they were to hold, if any.
pub(super) fn too_much_in_words<'a>(cells: impl Iterator<Item = &'a HitRatioCell>) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for row in cells.flat_map(|cell| &cell.rows).filter(|row| row.holds_too_much) {
        if !names.contains(&row.cache) {
            names.push(row.cache);
        }
    }
    (!names.is_empty()).then(|| {
        format!(
            "* holds a twentieth more than it was told to, or still more, and is not compared with: {}.",
            names.join(", ")
        )
    })
}

/// Means of hit ratios: a line for each kind of bound.
pub fn hit_ratio_means_table(means: &HitRatioMeans) -> String {
    let mut headings = vec!["means"];
    headings.extend(means.means.iter().map(|(name, _)| *name));
    headings.extend(["koel - best", "min .. max"]);
    let mut table = Columns::new(&headings);
    let mut fields = vec![Field::new(format!("of {} lines", means.cells))];
    fields.extend(means.means.iter().map(|(_, mean)| number_field(format!("{:.2}", 100.0 * mean))));
    fields.push(points_field(means.mean_minus_best()));
    let extent = |spread: &Spread| format!("{:+.2} .. {:+.2}", spread.min, spread.max);
    fields.push(number_field(means.koel_minus_best.as_ref().map_or("-".to_owned(), extent)));
    table.add_row(fields);
    format!("{table}\n")
}

/// One cell of throughput: a line for each cache.
pub fn cache_speed_table(cell: &CacheSpeedCell) -> String {
    let mut table = Columns::new(&[
        "",
        "Mops",
        "min .. max",
        "hit ratio",
        "koel by it",
        "min .. max",
        "inline by it",
        "min .. max",
        "by own 1 thread",
        "min .. max",
    ]);
    for row in &cell.rows {
        table.add_row(vec![
            name_field(row.cache, row.is_koel),
            number_field(significant(row.mops.median)),
            number_field(range(&row.mops)),
            number_field(format!("{:.2}%", 100.0 * row.hit_ratio.median)),
            ratio_field(median(row.koel_by_it.as_ref())),
            number_field(range_or_none(row.koel_by_it.as_ref())),
            ratio_field(median(row.inline_by_it.as_ref())),
            number_field(range_or_none(row.inline_by_it.as_ref())),
            number_field(ratio(median(row.by_one_thread.as_ref()))),
            number_field(range_or_none(row.by_one_thread.as_ref())),
        ]);
    }
    format!("{}\n{table}\n{}", cell.title(), absent_in_words(&cell.absent))
}

/// Memory: a line for each cache.
pub fn cache_memory_table(report: &CacheReport) -> String {
    let mut table = Columns::new(&[
        "bytes per entry beyond 16",
        "to hold",
        "holds",
        "requested",
        "allocated",
        "by its own word",
    ]);
    for row in &report.memory {
        table.add_row(vec![
            name_field(row.cache, row.is_koel),
            number_field(grouped(row.entries)),
            number_field(grouped(row.held)),
            number_field(format!("{:.1}", row.requested_beyond)),
            number_field(format!("{:.1}", row.allocated_beyond)),
            number_field(row.own_beyond.map_or("-".to_owned(), |own| format!("{own:.1}"))),
        ]);
    }
    let absent = absent_in_words(&report.absent_from_memory);
    format!("Memory of full caches, u64 keys and values\n{table}\n{absent}")
}

/// A figure of an aim, with its unit.
pub(super) fn with_unit(value: f64, unit: &str) -> String {
    format!("{value:.2}{unit}")
}

/// koel's aims: a line for each.
pub fn cache_aims_table(aims: &[CacheAim]) -> String {
    if aims.is_empty() {
        return String::new();
    }
    let mut table = Columns::new(&["koel", "beside", "median", "min .. max", "aim", "and", ""]).with_names(2);
    for aim in aims {
        table.add_row(vec![
            Field::new(&aim.what),
            Field::new(&aim.beside),
            number_field(with_unit(aim.value.median, aim.unit)),
            number_field(range(&aim.value)),
            number_field(aim_in_words(aim)),
            Field::new(aim.and.as_ref().map_or("", |(words, _)| words)),
            Field::new(if aim.is_met() { "" } else { "missed" }),
        ]);
    }
    format!("Aims: medians of single rounds\n{table}\n")
}

/// The aim for the figures.
pub(super) fn aim_in_words(aim: &CacheAim) -> String {
    format!("{} {}", if aim.at_most { "at most" } else { "at least" }, with_unit(aim.aim, aim.unit))
}
