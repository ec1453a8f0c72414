//! The report as one self-contained HTML page.

use std::fmt::Write;

use super::chart::{self, Bar, KOEL_COLORS, Line, MOPS, PEER_COLORS, escape};
use super::table::{median, range, range_or_none, ratio};
use super::{
    Absent, Cell, LatencyCell, MemoryCell, QUANTILES, Report, Row, filter_html, grouped, guard_html,
    keys_in_words, lost_in_words, significant, threads_in_words,
};
use crate::contestants::Id;

const STYLE: &str = include_str!("style.css");

/// The page for `report`.
pub fn page(report: &Report) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>koel-bench</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>koel-bench</h1>\n\
         <p><code>{}</code></p>\n",
        escape(&report.command),
    );
    for line in report.origin_in_words() {
        add(&mut html, format_args!("<p>{}</p>\n", escape(&line)));
    }
    for failure in &report.failures {
        add(&mut html, format_args!("<p class=\"failure\">{}</p>\n", escape(failure)));
    }
    for limit in &report.machine.line_reads {
        let rate = significant(limit.per_microsecond);
        add(
            &mut html,
            format_args!(
                "<p>Random cache lines, {}: {rate} million a second.</p>\n",
                threads_in_words(limit.threads)
            ),
        );
    }
    html.push_str("</header>\n<main>\n");
    if !report.throughput.is_empty() {
        throughput(&mut html, &report.throughput);
    }
    if !report.latency.is_empty() {
        latency(&mut html, &report.latency);
    }
    if !report.memory.is_empty() {
        memory(&mut html, &report.memory);
    }
    if !report.filters.is_empty() {
        filter_html::throughput(&mut html, &report.filters);
    }
    if !report.filter_sizes.is_empty() {
        filter_html::sizes(&mut html, &report.filter_sizes);
    }
    if !report.paper.is_empty() {
        filter_html::paper(&mut html, &report.paper);
    }
    if !report.guard.is_empty() {
        guard_html::guard(&mut html, &report.guard);
    }
    super::cache_html::caches(&mut html, &report.caches);
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn throughput(html: &mut String, cells: &[Cell]) {
    html.push_str(
        "<h2>Throughput</h2>\n<p>Millions of operations a second, all threads together. Bars are medians, \
                   whiskers reach from the slowest to the fastest round; ratios are medians of those of single rounds; every \
                   answer was checked.</p>\n",
    );
    summary(html, cells);
    for (workload, group) in groups(cells, |cell| &cell.workload) {
        open_panels(html, workload, &group[0].about);
        for cell in &group {
            let bars: Vec<Bar<'_>> = cell.rows.iter().map(throughput_bar).collect();
            panel(html, &cell.conditions(), &chart::bars(MOPS, &bars));
        }
        html.push_str("</div>\n");
        for cell in &group {
            let lost = cell.rows.iter().filter_map(|row| lost_in_words(row.contestant, row.lost_reads));
            for told in lost {
                add(html, format_args!("<p>{}: {}.</p>\n", escape(&cell.conditions()), escape(&told)));
            }
            absent(html, &cell.conditions(), &cell.absent);
        }
        throughput_details(html, &group);
        html.push_str("</section>\n");
    }
}

fn throughput_bar(row: &Row) -> Bar<'_> {
    Bar {
        label: row.contestant,
        value: row.mops.median,
        range: Some((row.mops.min, row.mops.max)),
        class: match (row.is_koel, row.is_held) {
            (true, false) => koel_class(row.contestant),
            (true, true) => "koel held",
            (false, false) => "peer",
            (false, true) => "peer held",
        },
        note: median(row.by_best_peer.as_ref())
            .filter(|_| row.is_koel)
            .map_or(String::new(), |by| format!("({by:.2}x)")),
    }
}

fn koel_class(contestant: &str) -> &'static str {
    if contestant == Id::KoelInline.name() { "koel inline" } else { "koel" }
}

fn summary(html: &mut String, cells: &[Cell]) {
    let headings = [
        "Workload",
        "#Keys",
        "#Threads",
        "Drawn",
        "#koel",
        "#koel-inline",
        "#Best peer",
        "Which",
        "#koel by best",
        "#inline by best",
        "#koel by papaya",
    ];
    open_table(html, &headings);
    for cell in cells {
        let (koel, inline, best) = (cell.row(Id::Koel), cell.row(Id::KoelInline), cell.best_peer());
        let mops = |row: Option<&Row>| row.map_or("-".to_owned(), |row| significant(row.mops.median));
        add(html, format_args!("<tr><td>{}</td>", escape(&cell.workload)));
        number(html, &grouped(cell.keys));
        number(html, &cell.threads.to_string());
        add(html, format_args!("<td>{}</td>", escape(&cell.dist)));
        number(html, &mops(koel));
        number(html, &mops(inline));
        number(html, &mops(best));
        add(html, format_args!("<td>{}</td>", escape(best.map_or("", |row| row.contestant))));
        judged(html, median(koel.and_then(|row| row.by_best_peer.as_ref())));
        judged(html, median(inline.and_then(|row| row.by_best_peer.as_ref())));
        judged(html, median(koel.and_then(|row| row.by_papaya.as_ref())));
        html.push_str("</tr>\n");
    }
    close_table(html);
}

fn throughput_details(html: &mut String, cells: &[&Cell]) {
    html.push_str("<details><summary>Numbers</summary>\n");
    let headings = [
        "Conditions",
        "Map",
        "#Mops",
        "#Min .. max",
        "#By best peer",
        "#Min .. max",
        "#By papaya",
        "#Min .. max",
    ];
    open_table(html, &headings);
    for cell in cells {
        for row in &cell.rows {
            let name = escape(row.contestant);
            add(html, format_args!("<tr><td>{}</td><td>{name}</td>", escape(&cell.conditions())));
            number(html, &significant(row.mops.median));
            number(html, &range(&row.mops));
            for by in [&row.by_best_peer, &row.by_papaya] {
                number(html, &ratio(median(by.as_ref())));
                number(html, &range_or_none(by.as_ref()));
            }
            html.push_str("</tr>\n");
        }
    }
    close_table(html);
    html.push_str("</details>\n");
}

fn latency(html: &mut String, cells: &[LatencyCell]) {
    html.push_str(
        "<h2>Latency</h2>\n<p>Time of single operations at the given quantiles, on a logarithmic scale; \
                   medians over rounds. Each thread begins its next operation when the one before has ended: who waits \
                   long is counted once, however many others would have come meanwhile.</p>\n",
    );
    let ticks: Vec<&str> = QUANTILES.iter().map(|(name, _)| *name).collect();
    for cell in cells {
        let (mut koel_colors, mut peer_colors) = (KOEL_COLORS.iter().cycle(), PEER_COLORS.iter().cycle());
        let mut lines = Vec::new();
        for row in &cell.rows {
            let colors = if row.is_koel { &mut koel_colors } else { &mut peer_colors };
            lines.push(Line {
                label: row.contestant,
                // Up to the last quantile that is known.
                values: (0..QUANTILES.len()).map_while(|index| row.quantile(index)).collect(),
                color: colors.next().copied().unwrap_or_default(),
                is_koel: row.is_koel,
            });
        }
        let conditions = format!(
            "{}, {}; the stopwatch's own {} ns are subtracted",
            keys_in_words(cell.keys),
            threads_in_words(cell.threads),
            cell.overhead_nanos
        );
        add(html, format_args!("<section>\n<h3>{}</h3>\n<div class=\"panels\">\n", escape(&cell.phase)));
        panel(html, &conditions, &chart::lines(&ticks, &lines, duration_of_axis));
        html.push_str("</div>\n");
        let compared = cell.rows.iter().any(|row| row.by_papaya.is_some());
        let comparison = if compared { &["p99.999 by papaya", "min .. max"][..] } else { &[] };
        let numbers = ticks.iter().chain(&["p99.99: min .. max", "max: min .. max"]).chain(comparison);
        let numbers = numbers.map(|name| format!("#{name}"));
        let headings: Vec<String> = std::iter::once("Map".to_owned()).chain(numbers).collect();
        open_table(html, &headings.iter().map(String::as_str).collect::<Vec<_>>());
        for row in &cell.rows {
            add(html, format_args!("<tr><td>{}</td>", escape(row.contestant)));
            (0..QUANTILES.len()).for_each(|index| number(html, &row.quantile_in_words(index)));
            row.tail_ranges_in_words().iter().for_each(|range| number(html, range));
            if compared {
                number(html, &ratio(median(row.by_papaya.as_ref())));
                number(html, &range_or_none(row.by_papaya.as_ref()));
            }
            html.push_str("</tr>\n");
        }
        close_table(html);
        absent(html, &conditions, &cell.absent);
        html.push_str("</section>\n");
    }
}

fn duration_of_axis(nanos: f64) -> String {
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.0} µs", n / 1e3),
        n if n < 1e9 => format!("{:.0} ms", n / 1e6),
        n => format!("{:.0} s", n / 1e9),
    }
}

fn memory(html: &mut String, cells: &[MemoryCell]) {
    html.push_str(
        "<h2>Memory</h2>\n<p>Bytes per entry that the allocator hands out, u64 keys and values.</p>\n\
                   <section>\n<div class=\"panels\">\n",
    );
    for cell in cells {
        let bar = |row: &'_ super::MemoryRow| -> Bar<'static> {
            Bar {
                label: row.contestant,
                value: row.allocated,
                range: None,
                class: if row.is_koel { koel_class(row.contestant) } else { "peer" },
                note: String::new(),
            }
        };
        let bars: Vec<Bar<'_>> = cell.rows.iter().map(bar).collect();
        panel(
            html,
            &format!("{}, {}", keys_in_words(cell.keys), cell.built),
            &chart::bars("bytes per entry", &bars),
        );
    }
    html.push_str("</div>\n");
    for cell in cells {
        absent(html, &format!("{}, {}", keys_in_words(cell.keys), cell.built), &cell.absent);
    }
    html.push_str("<details><summary>Numbers</summary>\n");
    open_table(html, &["#Keys", "Built", "Map", "#Requested", "#Allocated", "#memory_usage()"]);
    for cell in cells {
        for row in &cell.rows {
            html.push_str("<tr>");
            number(html, &grouped(cell.keys));
            add(html, format_args!("<td>{}</td><td>{}</td>", escape(&cell.built), escape(row.contestant)));
            number(html, &format!("{:.1}", row.requested));
            number(html, &format!("{:.1}", row.allocated));
            number(html, &row.own.map_or("-".to_owned(), |own| format!("{own:.1}")));
            html.push_str("</tr>\n");
        }
    }
    close_table(html);
    html.push_str("</details>\n</section>\n");
}

/// Groups of cells that have the same `name`, in the order of their first cells.
pub(super) fn groups<'c, T, N: PartialEq>(cells: &'c [T], name: impl Fn(&'c T) -> N) -> Vec<(N, Vec<&'c T>)> {
    let mut groups: Vec<(N, Vec<&T>)> = Vec::new();
    for cell in cells {
        let name = name(cell);
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, group)) => group.push(cell),
            None => groups.push((name, vec![cell])),
        }
    }
    groups
}

/// Opens a section and the place for its panels.
pub(super) fn open_panels(html: &mut String, title: &str, about: &str) {
    let (title, about) = (escape(title), escape(about));
    add(html, format_args!("<section>\n<h3>{title}</h3>\n<p>{about}</p>\n<div class=\"panels\">\n"));
}

/// Contestants that are out under some conditions.
pub(super) fn absent(html: &mut String, conditions: &str, absent: &[Absent]) {
    for absent in absent {
        add(html, format_args!("<p>{}: {}.</p>\n", escape(conditions), escape(&absent.in_words())));
    }
}

pub(super) fn panel(html: &mut String, caption: &str, svg: &str) {
    add(html, format_args!("<figure><figcaption>{}</figcaption>{svg}</figure>\n", escape(caption)));
}

/// Opens a table; a heading that begins with `#` is for a column of numbers.
pub(super) fn open_table(html: &mut String, headings: &[&str]) {
    html.push_str("<div class=\"table\"><table><thead><tr>");
    for heading in headings {
        let (class, heading) = match heading.strip_prefix('#') {
            Some(heading) => ("number", heading),
            None => ("name", *heading),
        };
        add(html, format_args!("<th class=\"{class}\">{}</th>", escape(heading)));
    }
    html.push_str("</tr></thead><tbody>\n");
}

pub(super) fn close_table(html: &mut String) {
    html.push_str("</tbody></table></div>\n");
}

pub(super) fn number(html: &mut String, text: &str) {
    add(html, format_args!("<td class=\"number\">{}</td>", escape(text)));
}

/// A ratio, marked as ahead or behind.
pub(super) fn judged(html: &mut String, value: Option<f64>) {
    let class = match value {
        // A ratio that is shown as 1.00 is not behind.
        Some(value) if value >= 0.995 => "number ahead",
        Some(_) => "number behind",
        None => "number",
    };
    add(html, format_args!("<td class=\"{class}\">{}</td>", ratio(value)));
}

pub(super) fn add(html: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = html.write_fmt(piece);
}
