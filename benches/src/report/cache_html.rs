//! Caches on the page.

use clap::ValueEnum;

use super::cache::{
    CacheAim, CacheMemoryRow, CacheReport, CacheSpeedCell, CacheSpeedRow, HitRatioCell, HitRatioMeans,
};
use super::cache_chart::hit_ratio_curves;
use super::cache_table::{
    aim_in_words, best_of, columns, hit_ratio_of, points, too_much_in_words, with_unit,
};
use super::chart::{self, Bar, EXACT_COLORS, KOEL_COLORS, Line, PEER_COLORS, escape};
use super::html::{absent, add, close_table, groups, judged, number, open_panels, open_table, panel};
use super::table::{median, range, range_or_none, ratio};
use super::{grouped, significant};
use crate::caches::Id;

/// All measurements of caches.
pub(super) fn caches(html: &mut String, report: &CacheReport) {
    if !report.hit_ratios.is_empty() {
        hit_ratios(html, &report.hit_ratios, &report.means);
    }
    if !report.throughput.is_empty() {
        throughput(html, &report.throughput);
    }
    if !report.memory.is_empty() {
        memory(html, report);
    }
    if !report.aims.is_empty() {
        aims(html, &report.aims);
    }
}

fn hit_ratios(html: &mut String, cells: &[HitRatioCell], means: &[HitRatioMeans]) {
    html.push_str(
        "<h2>Hit ratios of caches</h2>\n<p>Hits by requests in percent, against what the cache may hold. What is missing is \
         inserted. Every value was checked. Thick lines are koel's.</p>\n",
    );
    html.push_str("<section>\n<div class=\"panels\">\n");
    for ((requests, by_bytes), mut group) in groups(cells, |cell| (&cell.requests, cell.by_bytes)) {
        group.sort_by_key(|cell| cell.capacity);
        let unit = if by_bytes { "by bytes" } else { "by entries" };
        panel(html, &format!("{requests}, {unit} ({})", group[0].about), &curves(&group));
    }
    html.push_str("</div>\n</section>\n");
    for by_bytes in [false, true] {
        hit_ratio_numbers(html, cells, by_bytes);
        for means in means.iter().filter(|means| means.by_bytes == by_bytes) {
            means_in_words(html, means);
        }
    }
}

fn curves(group: &[&HitRatioCell]) -> String {
    let ticks: Vec<String> = group.iter().map(|cell| cell.capacity_in_words()).collect();
    let (mut koel, mut rivals, mut exact) =
        (KOEL_COLORS.iter().cycle(), PEER_COLORS.iter().cycle(), EXACT_COLORS.iter().cycle());
    let line = |label: &'static str| -> Line<'static> {
        let is_koel = Id::value_variants().iter().any(|id| id.is_koel() && id.name() == label);
        let is_exact = group.iter().any(|cell| cell.exact.iter().any(|exact| exact.0 == label));
        let colors = if is_koel {
            koel.next()
        } else if is_exact {
            exact.next()
        } else {
            rivals.next()
        };
        let value = |cell: &&HitRatioCell| {
            let row = cell.rows.iter().find(|row| row.cache == label).map(|row| row.hit_ratio);
            let exact = cell.exact.iter().find(|exact| exact.0 == label).map(|exact| exact.1);
            row.or(exact).map_or(f64::NAN, |hit_ratio| 100.0 * hit_ratio)
        };
        Line {
            label,
            values: group.iter().map(value).collect(),
            color: colors.copied().unwrap_or_default(),
            is_koel,
        }
    };
    let lines: Vec<Line<'_>> = columns(group.iter().copied()).into_iter().map(line).collect();
    hit_ratio_curves(&ticks, &lines)
}

fn hit_ratio_numbers(html: &mut String, cells: &[HitRatioCell], by_bytes: bool) {
    let cells = || cells.iter().filter(|cell| cell.by_bytes == by_bytes && !cell.for_curves);
    if cells().next().is_none() {
        return;
    }
    let names = columns(cells());
    let mut headings: Vec<String> = ["Requests", "#Keys", "#Size"].map(str::to_owned).to_vec();
    headings.extend(names.iter().map(|name| format!("#{name}")));
    headings.extend(["Best rival", "#koel - best", "#clock - best"].map(str::to_owned));
    html.push_str("<section>\n");
    add(
        html,
        format_args!("<h3>Hit ratios, bounded by {}</h3>\n", if by_bytes { "bytes" } else { "entries" }),
    );
    open_table(html, &headings.iter().map(String::as_str).collect::<Vec<_>>());
    for cell in cells() {
        add(html, format_args!("<tr><td>{}</td>", escape(&cell.requests)));
        number(html, &grouped(cell.keys));
        number(html, &cell.capacity_in_words());
        names.iter().for_each(|name| number(html, &hit_ratio_of(cell, name)));
        add(html, format_args!("<td>{}</td>", escape(best_of(cell))));
        [Id::Koel, Id::KoelClock].into_iter().for_each(|id| number(html, &points(cell.minus_best(id))));
        html.push_str("</tr>\n");
    }
    close_table(html);
    if let Some(told) = too_much_in_words(cells()) {
        add(html, format_args!("<p>{}</p>\n", escape(&told)));
    }
    for cell in cells() {
        absent(html, &format!("{}, {}", cell.requests, cell.capacity_in_words()), &cell.absent);
    }
    html.push_str("</section>\n");
}

fn means_in_words(html: &mut String, means: &HitRatioMeans) {
    let told: Vec<String> =
        means.means.iter().map(|(name, mean)| format!("{name} {:.2}", 100.0 * mean)).collect();
    let minus = points(means.mean_minus_best());
    add(
        html,
        format_args!(
            "<p>Means of {} lines: {}; koel less the best rival of each: {minus} points.</p>\n",
            means.cells,
            escape(&told.join(", "))
        ),
    );
}

fn throughput(html: &mut String, cells: &[CacheSpeedCell]) {
    html.push_str(
        "<h2>Throughput of caches</h2>\n<p>Millions of requests a second, all threads together. Bars are medians, whiskers \
         reach from the slowest to the fastest round; every value was checked. In brackets the hit ratio.</p>\n",
    );
    for (workload, group) in groups(cells, |cell| &cell.workload) {
        open_panels(html, workload, &group[0].about);
        for cell in &group {
            let bar = |row: &CacheSpeedRow| Bar {
                label: row.cache,
                value: row.mops.median,
                range: Some((row.mops.min, row.mops.max)),
                class: class(row.is_koel),
                note: format!("({:.1}%)", 100.0 * row.hit_ratio.median),
            };
            let bars: Vec<Bar<'_>> = cell.rows.iter().map(bar).collect();
            panel(html, &cell.title(), &chart::bars("million requests a second; in brackets hits", &bars));
        }
        html.push_str("</div>\n");
        group.iter().for_each(|cell| absent(html, &cell.title(), &cell.absent));
        html.push_str("<details><summary>Numbers</summary>\n");
        speed_numbers(html, &group);
        html.push_str("</details>\n</section>\n");
    }
}

fn class(is_koel: bool) -> &'static str {
    if is_koel { "koel" } else { "peer" }
}

fn speed_numbers(html: &mut String, cells: &[&CacheSpeedCell]) {
    open_table(
        html,
        &[
            "#Threads",
            "Cache",
            "#Mops",
            "#Min .. max",
            "#Hit ratio",
            "#koel by it",
            "#Min .. max",
            "#inline by it",
            "#Min .. max",
            "#By own 1 thread",
        ],
    );
    for cell in cells {
        for row in &cell.rows {
            html.push_str("<tr>");
            number(html, &cell.threads.to_string());
            add(html, format_args!("<td>{}</td>", escape(row.cache)));
            number(html, &significant(row.mops.median));
            number(html, &range(&row.mops));
            number(html, &format!("{:.2}%", 100.0 * row.hit_ratio.median));
            for by in [&row.koel_by_it, &row.inline_by_it] {
                judged(html, median(by.as_ref()));
                number(html, &range_or_none(by.as_ref()));
            }
            number(html, &ratio(median(row.by_one_thread.as_ref())));
            html.push_str("</tr>\n");
        }
    }
    close_table(html);
}

fn memory(html: &mut String, report: &CacheReport) {
    html.push_str(
        "<h2>Memory of caches</h2>\n<p>Bytes per entry that the allocator hands out to full caches, beyond the 16 of u64 key \
         and value.</p>\n<section>\n<div class=\"panels\">\n",
    );
    let bar = |row: &CacheMemoryRow| Bar {
        label: row.cache,
        value: row.allocated_beyond,
        range: None,
        class: class(row.is_koel),
        note: format!("({} held)", grouped(row.held)),
    };
    let bars: Vec<Bar<'_>> = report.memory.iter().map(bar).collect();
    panel(html, "Full caches", &chart::bars("bytes per entry beyond key and value", &bars));
    html.push_str("</div>\n");
    absent(html, "Full caches", &report.absent_from_memory);
    html.push_str("</section>\n");
}

fn aims(html: &mut String, aims: &[CacheAim]) {
    html.push_str("<section>\n<h3>Aims</h3>\n<p>Medians of single rounds.</p>\n");
    open_table(html, &["koel", "Beside", "#Median", "#Min .. max", "#Aim", "And", ""]);
    for aim in aims {
        let (what, beside) = (escape(&aim.what), escape(&aim.beside));
        add(html, format_args!("<tr><td>{what}</td><td>{beside}</td>"));
        number(html, &with_unit(aim.value.median, aim.unit));
        number(html, &range(&aim.value));
        number(html, &aim_in_words(aim));
        let and = escape(aim.and.as_ref().map_or("", |(words, _)| words));
        let (class, met) = if aim.is_met() { ("ahead", "") } else { ("behind", "missed") };
        add(html, format_args!("<td>{and}</td><td class=\"{class}\">{met}</td></tr>\n"));
    }
    close_table(html);
    html.push_str("</section>\n");
}
