//! Tables of filters for the terminal.

use comfy_table::Cell as Field;

use super::columns::Columns;
use super::filter::{Aim, FilterCell, FilterRow, FilterSizeCell, percent};
use super::paper::PaperTable;
use super::table::{lost, median, name_field, number_field, range, range_or_none, ratio, ratio_field};
use super::{absent_in_words, grouped, significant};
use crate::filters::Id;

/// One cell: a line for each filter.
pub fn filter_table(cell: &FilterCell) -> String {
    let base = cell.base_in_words();
    let mut headings = vec!["", "Mops", "min .. max", "false positives", "by best rival", "min .. max"];
    headings.extend(base.as_deref().into_iter().flat_map(|base| [base, "min .. max"]));
    let mut table = Columns::new(&headings);
    for row in &cell.rows {
        let mut fields = vec![
            name_field(row.filter, row.is_koel),
            number_field(significant(row.mops.median)),
            number_field(range(&row.mops)),
            number_field(row.false_positive_rate.map_or("-".to_owned(), percent)),
        ];
        for by in [Some(&row.by_best_rival), base.as_ref().map(|_| &row.by_own)].into_iter().flatten() {
            fields.push(number_field(ratio(median(by.as_ref()))));
            fields.push(number_field(range_or_none(by.as_ref())));
        }
        table.add_row(fields);
    }
    let lost = lost(cell.rows.iter().map(|row| (row.filter, row.lost_reads)));
    format!("{}\n{table}\n{lost}{}", cell.title(), absent_in_words(&cell.absent))
}

/// One size and width: a line for each filter.
pub fn filter_size_table(cell: &FilterSizeCell) -> String {
    let mut table = Columns::new(&[
        "",
        "bits per key",
        "load",
        "false positives",
        "expected",
        "log2(1/rate) by bits",
        "built anew",
    ]);
    for row in &cell.rows {
        table.add_row(vec![
            name_field(row.filter, row.is_koel),
            number_field(format!("{:.2}", row.bits_per_key)),
            number_field(row.load.map_or("-".to_owned(), percent)),
            number_field(percent(row.measured_rate)),
            number_field(percent(row.expected_rate)),
            number_field(format!("{:.3}", row.efficiency)),
            number_field(row.attempts.to_string()),
        ]);
    }
    format!(
        "Memory and error rate: {}; every key was found in every filter\n{table}\n{}{}",
        cell.conditions(),
        looser_in_words(cell).map_or(String::new(), |told| told + "\n"),
        absent_in_words(&cell.absent)
    )
}

/// Says which rivals are wrong more often than koel, if any.
pub(super) fn looser_in_words(cell: &FilterSizeCell) -> Option<String> {
    let looser = cell.looser_rivals();
    (!looser.is_empty())
        .then(|| format!("Wrong more often than koel, and compared all the same: {}.", looser.join(", ")))
}

/// All throughput, of koel and the best rival: a line for each cell. Empty if there is none.
pub fn filter_summary_table(cells: &[FilterCell]) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let mut table = Columns::new(&[
        "workload",
        "keys",
        "bits",
        "threads",
        "koel",
        "semi-sorted",
        "scalable",
        "best rival",
        "",
        "koel by best",
        "semi-sorted by best",
        "scalable by best",
    ])
    .with_names(4);
    for cell in cells {
        let koel = [Id::Koel, Id::KoelSemiSorted, Id::KoelScalable].map(|id| cell.row(id));
        let best = cell.best_rival();
        let mops = |row: Option<&FilterRow>| row.map_or("-".to_owned(), |row| significant(row.mops.median));
        let mut fields = vec![
            Field::new(&cell.workload),
            number_field(grouped(cell.keys)),
            number_field(cell.bits.to_string()),
            number_field(cell.threads.to_string()),
        ];
        fields.extend(koel.iter().map(|row| number_field(mops(*row))));
        fields.push(number_field(mops(best)));
        fields.push(Field::new(best.map_or("", |row| row.filter)));
        let by_best = |row: &Option<&FilterRow>| median(row.and_then(|row| row.by_best_rival.as_ref()));
        fields.extend(koel.iter().map(|row| ratio_field(by_best(row))));
        table.add_row(fields);
    }
    format!("Summary, in Mops; rivals are other cuckoo and quotient filters\n{table}\n")
}

/// koel's aims: a line for each.
pub fn filter_aims_table(cells: &[FilterCell]) -> String {
    let mut table = Columns::new(&[
        "workload",
        "keys",
        "bits",
        "threads",
        "",
        "beside",
        "ratio",
        "min .. max",
        "aim",
        "",
    ])
    .with_names(6);
    let mut any = false;
    for (cell, aim) in aims(cells) {
        any = true;
        table.add_row(vec![
            Field::new(&cell.workload),
            number_field(grouped(cell.keys)),
            number_field(cell.bits.to_string()),
            number_field(cell.threads.to_string()),
            Field::new(aim.filter),
            Field::new(&aim.beside),
            number_field(ratio(Some(aim.ratio.median))),
            number_field(range(&aim.ratio)),
            number_field(ratio(Some(aim.aim))),
            Field::new(if aim.is_met() { "" } else { "missed" }),
        ]);
    }
    if any { format!("Aims: medians of the ratios of single rounds\n{table}\n") } else { String::new() }
}

/// All aims, with their cells.
pub(super) fn aims(cells: &[FilterCell]) -> impl Iterator<Item = (&FilterCell, &Aim)> {
    cells.iter().flat_map(|cell| cell.aims.iter().map(move |aim| (cell, aim)))
}

/// A table of the literature.
pub fn paper_table(paper: &PaperTable) -> String {
    let headings: Vec<&str> = paper.headings.iter().map(String::as_str).collect();
    let mut table = Columns::new(&headings);
    for row in &paper.rows {
        table.add_row(row.iter().map(|value| match value.number() {
            Some(_) => number_field(value.to_string()),
            None => Field::new(value.to_string()),
        }));
    }
    let notes: String = paper.notes.iter().map(|note| format!("{note}\n")).collect();
    format!("{}\n{}\n{table}\n{notes}", paper.title, paper.source)
}
