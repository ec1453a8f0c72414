//! Filters on the HTML page.

use super::chart::{self, Bar, MOPS, escape};
use super::curves::curves;
use super::filter::{FilterCell, FilterRow, FilterSizeCell, FilterSizeRow, percent};
use super::filter_table::{aims, looser_in_words};
use super::html::{absent, add, close_table, groups, judged, number, open_panels, open_table, panel};
use super::paper::PaperTable;
use super::table::{median, range, range_or_none, ratio};
use super::{grouped, lost_in_words, significant};
use crate::filters::Id;

/// All throughput of filters: a section for each workload.
pub(super) fn throughput(html: &mut String, cells: &[FilterCell]) {
    html.push_str(
        "<h2>Filters: throughput</h2>\n<p>Millions of operations a second, all threads together. Bars are medians, \
         whiskers reach from the slowest to the fastest round. Ratios are to the best other cuckoo or quotient filter. A \
         filter with a false negative is out; false positives were counted.</p>\n",
    );
    summary(html, cells);
    aims_table(html, cells);
    for (workload, group) in groups(cells, |cell| &cell.workload) {
        open_panels(html, workload, &group[0].about);
        for cell in &group {
            let bars: Vec<Bar<'_>> = cell.rows.iter().map(throughput_bar).collect();
            panel(html, &cell.conditions(), &chart::bars(MOPS, &bars));
        }
        html.push_str("</div>\n");
        for cell in &group {
            for told in cell.rows.iter().filter_map(|row| lost_in_words(row.filter, row.lost_reads)) {
                add(html, format_args!("<p>{}: {}.</p>\n", escape(&cell.conditions()), escape(&told)));
            }
            absent(html, &cell.conditions(), &cell.absent);
        }
        details(html, &group);
        html.push_str("</section>\n");
    }
}

fn class(filter: &str, is_koel: bool) -> &'static str {
    match is_koel {
        true if filter == Id::KoelSemiSorted.name() => "koel inline",
        true if [Id::KoelScalable, Id::KoelGrown, Id::KoelFixed].iter().any(|id| id.name() == filter) => {
            "koel held"
        }
        true => "koel",
        false => "peer",
    }
}

fn throughput_bar(row: &FilterRow) -> Bar<'_> {
    let by = median(row.by_best_rival.as_ref()).filter(|_| row.is_koel);
    Bar {
        label: row.filter,
        value: row.mops.median,
        range: Some((row.mops.min, row.mops.max)),
        class: if row.is_koel || row.is_rival { class(row.filter, row.is_koel) } else { "peer held" },
        note: by.map_or(String::new(), |by| format!("({by:.2}x)")),
    }
}

fn summary(html: &mut String, cells: &[FilterCell]) {
    let headings = [
        "Workload",
        "#Keys",
        "#Bits",
        "#Threads",
        "#koel",
        "#Best rival",
        "",
        "#koel by best",
        "#Semi-sorted by best",
        "#Scalable by best",
    ];
    open_table(html, &headings);
    for cell in cells {
        let best = cell.best_rival();
        let mops = |row: Option<&FilterRow>| row.map_or("-".to_owned(), |row| significant(row.mops.median));
        add(html, format_args!("<tr><td>{}</td>", escape(&cell.workload)));
        number(html, &grouped(cell.keys));
        number(html, &cell.bits.to_string());
        number(html, &cell.threads.to_string());
        number(html, &mops(cell.row(Id::Koel)));
        number(html, &mops(best));
        add(html, format_args!("<td>{}</td>", escape(best.map_or("", |row| row.filter))));
        for id in [Id::Koel, Id::KoelSemiSorted, Id::KoelScalable] {
            judged(html, median(cell.row(id).and_then(|row| row.by_best_rival.as_ref())));
        }
        html.push_str("</tr>\n");
    }
    close_table(html);
}

/// koel's aims.
fn aims_table(html: &mut String, cells: &[FilterCell]) {
    if aims(cells).next().is_none() {
        return;
    }
    html.push_str("<h3>Aims</h3>\n<p>Medians of the ratios of single rounds.</p>\n");
    open_table(
        html,
        &["Workload", "#Keys", "#Bits", "#Threads", "", "Beside", "#Ratio", "#Min .. max", "#Aim"],
    );
    for (cell, aim) in aims(cells) {
        add(html, format_args!("<tr><td>{}</td>", escape(&cell.workload)));
        number(html, &grouped(cell.keys));
        number(html, &cell.bits.to_string());
        number(html, &cell.threads.to_string());
        add(html, format_args!("<td>{}</td><td>{}</td>", escape(aim.filter), escape(&aim.beside)));
        let class = if aim.is_met() { "number ahead" } else { "number behind" };
        add(html, format_args!("<td class=\"{class}\">{}</td>", ratio(Some(aim.ratio.median))));
        number(html, &range(&aim.ratio));
        number(html, &ratio(Some(aim.aim)));
        html.push_str("</tr>\n");
    }
    close_table(html);
}

fn details(html: &mut String, cells: &[&FilterCell]) {
    html.push_str("<details><summary>Numbers</summary>\n");
    let headings = [
        "Conditions",
        "Filter",
        "#Mops",
        "#Min .. max",
        "#False positives",
        "#By best rival",
        "#Min .. max",
        "#By own",
        "#Min .. max",
        "Own",
    ];
    open_table(html, &headings);
    for cell in cells {
        for row in &cell.rows {
            let (conditions, name) = (escape(&cell.conditions()), escape(row.filter));
            add(html, format_args!("<tr><td>{conditions}</td><td>{name}</td>"));
            number(html, &significant(row.mops.median));
            number(html, &range(&row.mops));
            number(html, &row.false_positive_rate.map_or("-".to_owned(), percent));
            for by in [&row.by_best_rival, &row.by_own] {
                number(html, &ratio(median(by.as_ref())));
                number(html, &range_or_none(by.as_ref()));
            }
            add(html, format_args!("<td>{}</td>", escape(cell.base.as_deref().unwrap_or(""))));
            html.push_str("</tr>\n");
        }
    }
    close_table(html);
    html.push_str("</details>\n");
}

/// Memory and error rates of filters.
pub(super) fn sizes(html: &mut String, cells: &[FilterSizeCell]) {
    html.push_str(
        "<h2>Filters: memory and error rates</h2>\n<p>Bits from the allocator for each key; false positives among \
         different absent keys. Every key was found in every filter.</p>\n<section>\n<div class=\"panels\">\n",
    );
    for cell in cells {
        let bar = |row: &FilterSizeRow| -> Bar<'static> {
            Bar {
                label: row.filter,
                value: row.bits_per_key,
                range: None,
                class: class(row.filter, row.is_koel),
                note: percent(row.measured_rate),
            }
        };
        let bars: Vec<Bar<'_>> = cell.rows.iter().map(bar).collect();
        panel(html, &cell.conditions(), &chart::bars("bits per key; beside it the error rate", &bars));
    }
    html.push_str("</div>\n");
    for cell in cells {
        let conditions = cell.conditions();
        absent(html, &conditions, &cell.absent);
        if let Some(told) = looser_in_words(cell) {
            add(html, format_args!("<p>{}: {}</p>\n", escape(&conditions), escape(&told)));
        }
    }
    html.push_str("<details><summary>Numbers</summary>\n");
    let headings = [
        "#Keys",
        "#Bits",
        "Filter",
        "#Bits per key",
        "#Load",
        "#False positives",
        "#Expected",
        "#log2(1/rate) by bits",
        "#Built anew",
    ];
    open_table(html, &headings);
    for cell in cells {
        for row in &cell.rows {
            html.push_str("<tr>");
            number(html, &grouped(cell.keys));
            number(html, &cell.bits.to_string());
            add(html, format_args!("<td>{}</td>", escape(row.filter)));
            number(html, &format!("{:.2}", row.bits_per_key));
            number(html, &row.load.map_or("-".to_owned(), percent));
            number(html, &percent(row.measured_rate));
            number(html, &percent(row.expected_rate));
            number(html, &format!("{:.3}", row.efficiency));
            number(html, &row.attempts.to_string());
            html.push_str("</tr>\n");
        }
    }
    close_table(html);
    html.push_str("</details>\n</section>\n");
}

/// The tables of the literature.
pub(super) fn paper(html: &mut String, tables: &[PaperTable]) {
    html.push_str(
        "<h2>Tables of the literature</h2>\n<p>Reproduced beside the published figures; broken lines are computed or \
         published.</p>\n",
    );
    for table in tables {
        open_panels(html, &table.title, &table.source);
        for chart in &table.charts {
            panel(html, &chart.title, &curves(chart));
        }
        html.push_str("</div>\n");
        let is_number = |column: usize| table.rows.iter().any(|row| row[column].number().is_some());
        let heading = |(column, heading): (usize, &String)| {
            if is_number(column) { format!("#{heading}") } else { heading.clone() }
        };
        let headings: Vec<String> = table.headings.iter().enumerate().map(heading).collect();
        open_table(html, &headings.iter().map(String::as_str).collect::<Vec<_>>());
        for row in &table.rows {
            html.push_str("<tr>");
            for (column, value) in row.iter().enumerate() {
                if is_number(column) {
                    number(html, &value.to_string());
                } else {
                    add(html, format_args!("<td>{}</td>", escape(&value.to_string())));
                }
            }
            html.push_str("</tr>\n");
        }
        close_table(html);
        for note in &table.notes {
            add(html, format_args!("<p>{}</p>\n", escape(note)));
        }
        html.push_str("</section>\n");
    }
}
