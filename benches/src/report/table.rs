//! Tables for the terminal.

use comfy_table::{Attribute, Cell as Field, CellAlignment};

use super::columns::Columns;
use super::{
    Cell, LatencyCell, MemoryCell, QUANTILES, Report, Row, absent_in_words, grouped, keys_in_words,
    lost_in_words, significant, threads_in_words,
};
use crate::contestants::Id;
use crate::stats::Spread;

/// One cell: a line for each contestant.
pub fn throughput_table(cell: &Cell) -> String {
    let headings = ["", "Mops", "min .. max", "by best peer", "min .. max", "by papaya", "min .. max"];
    let mut table = Columns::new(&headings);
    for row in &cell.rows {
        table.add_row(vec![
            name_field(row.contestant, row.is_koel),
            number_field(significant(row.mops.median)),
            number_field(range(&row.mops)),
            number_field(ratio(median(row.by_best_peer.as_ref()))),
            number_field(range_or_none(row.by_best_peer.as_ref())),
            number_field(ratio(median(row.by_papaya.as_ref()))),
            number_field(range_or_none(row.by_papaya.as_ref())),
        ]);
    }
    let limit = match cell.line_reads {
        Some(rate) => format!("; machine: {} M random lines/s", significant(rate)),
        None => String::new(),
    };
    let lost = lost(cell.rows.iter().map(|row| (row.contestant, row.lost_reads)));
    let (title, about) = (cell.title(), &cell.about);
    format!("{title}{limit}\n{about}\n{table}\n{lost}{}", absent_in_words(&cell.absent))
}

/// All throughput, of koel and the best peer: a line for each cell. Empty if there is none.
pub fn summary_table(report: &Report) -> String {
    if report.throughput.is_empty() {
        return String::new();
    }
    let mut table = Columns::new(&[
        "workload",
        "keys",
        "threads",
        "koel",
        "inline",
        "best peer",
        "which",
        "koel by best",
        "inline by best",
        "koel by papaya",
    ])
    .with_names(3);
    for cell in &report.throughput {
        let (koel, inline, best) = (cell.row(Id::Koel), cell.row(Id::KoelInline), cell.best_peer());
        let mops = |row: Option<&Row>| row.map_or("-".to_owned(), |row| significant(row.mops.median));
        table.add_row(vec![
            Field::new(format!("{}, {}", cell.workload, cell.dist)),
            number_field(grouped(cell.keys)),
            number_field(cell.threads.to_string()),
            number_field(mops(koel)),
            number_field(mops(inline)),
            number_field(mops(best)),
            Field::new(best.map_or("", |row| row.contestant)),
            ratio_field(median(koel.and_then(|row| row.by_best_peer.as_ref()))),
            ratio_field(median(inline.and_then(|row| row.by_best_peer.as_ref()))),
            ratio_field(median(koel.and_then(|row| row.by_papaya.as_ref()))),
        ]);
    }
    let limits = report.machine.line_reads.iter().map(|limit| {
        format!(
            "; {}: {} M random lines/s",
            threads_in_words(limit.threads),
            significant(limit.per_microsecond)
        )
    });
    format!("Summary, in Mops{}\n{table}\n", limits.collect::<String>())
}

/// One phase: a line for each contestant.
pub fn latency_table(cell: &LatencyCell) -> String {
    let mut headings = vec![""];
    headings.extend(QUANTILES.iter().map(|(name, _)| *name));
    headings.extend(["p99.99: min .. max", "max: min .. max"]);
    let compared = cell.rows.iter().any(|row| row.by_papaya.is_some());
    if compared {
        headings.extend(["p99.999 by papaya", "min .. max"]);
    }
    let mut table = Columns::new(&headings);
    for row in &cell.rows {
        let mut fields = vec![name_field(row.contestant, row.is_koel)];
        fields.extend((0..QUANTILES.len()).map(|index| number_field(row.quantile_in_words(index))));
        fields.extend(row.tail_ranges_in_words().map(number_field));
        if compared {
            fields.push(number_field(ratio(median(row.by_papaya.as_ref()))));
            fields.push(number_field(range_or_none(row.by_papaya.as_ref())));
        }
        table.add_row(fields);
    }
    let lost = lost(cell.rows.iter().map(|row| (row.contestant, row.lost_reads)));
    format!(
        "{}: {}, {}; the stopwatch's own {} ns are subtracted\n{table}\n{lost}{}",
        cell.phase,
        keys_in_words(cell.keys),
        threads_in_words(cell.threads),
        cell.overhead_nanos,
        absent_in_words(&cell.absent)
    )
}

/// One size: a line for each contestant.
pub fn memory_table(cell: &MemoryCell) -> String {
    let mut table = Columns::new(&["bytes per entry", "requested", "allocated", "memory_usage()"]);
    for row in &cell.rows {
        table.add_row(vec![
            name_field(row.contestant, row.is_koel),
            number_field(format!("{:.1}", row.requested)),
            number_field(format!("{:.1}", row.allocated)),
            number_field(row.own.map_or("-".to_owned(), |own| format!("{own:.1}"))),
        ]);
    }
    let absent = absent_in_words(&cell.absent);
    format!("Memory: {}, {}\n{table}\n{absent}", keys_in_words(cell.keys), cell.built)
}

/// The contestants that missed keys that were there, a line for each.
pub(super) fn lost<'a>(rows: impl Iterator<Item = (&'a str, u64)>) -> String {
    rows.filter_map(|(contestant, reads)| lost_in_words(contestant, reads)).map(|told| told + "\n").collect()
}

/// `1.25x`, or `-` where there is nothing to compare with.
pub(super) fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}x"))
}

pub(super) fn range(spread: &Spread) -> String {
    format!("{} .. {}", significant(spread.min), significant(spread.max))
}

pub(super) fn range_or_none(spread: Option<&Spread>) -> String {
    spread.map_or("-".to_owned(), range)
}

/// The figure that stands for many ratios.
pub(super) fn median(spread: Option<&Spread>) -> Option<f64> {
    spread.map(|spread| spread.median)
}

pub(super) fn name_field(name: &str, is_koel: bool) -> Field {
    let field = Field::new(name);
    if is_koel { field.add_attribute(Attribute::Bold) } else { field }
}

pub(super) fn number_field(text: String) -> Field {
    Field::new(text).set_alignment(CellAlignment::Right)
}

/// Bold where koel is ahead; a ratio that is shown as 1.00 is not behind.
pub(super) fn ratio_field(value: Option<f64>) -> Field {
    let field = number_field(ratio(value));
    if value.is_some_and(|value| value >= 0.995) { field.add_attribute(Attribute::Bold) } else { field }
}
