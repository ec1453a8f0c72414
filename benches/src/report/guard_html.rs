//! Guarded stores on the page.

use super::chart::{self, Bar, escape};
use super::html::{add, close_table, groups, judged, number, open_panels, open_table, panel};
use super::table::range;
use super::{GuardCell, GuardRow, grouped, keys_in_words, significant, threads_in_words};

/// All workloads on all stores: a section for each.
pub(super) fn guard(html: &mut String, cells: &[GuardCell]) {
    html.push_str(
        "<h2>Guarded stores</h2>\n<p>Millions of look-ups a second, all threads together. Bars are medians, whiskers reach \
         from the slowest to the fastest round; ratios are medians of those of single rounds; every answer was checked.</p>\n",
    );
    for ((store, workload), group) in groups(cells, |cell| (cell.store, cell.workload)) {
        open_panels(html, &format!("{store}: {workload}"), group[0].about);
        for cell in &group {
            let bars: Vec<Bar<'_>> = cell.rows.iter().map(bar).collect();
            panel(html, &conditions(cell), &chart::bars("million look-ups a second", &bars));
        }
        html.push_str("</div>\n");
        details(html, &group);
        html.push_str("</section>\n");
    }
}

fn conditions(cell: &GuardCell) -> String {
    format!("{}, {}", keys_in_words(cell.keys), threads_in_words(cell.threads))
}

fn bar(row: &GuardRow) -> Bar<'_> {
    let note = if row.is_guarded() { format!("({:.2}x)", row.by_bare.median) } else { String::new() };
    Bar {
        label: row.entrant,
        value: row.mops.median,
        range: Some((row.mops.min, row.mops.max)),
        class: if row.is_guarded() { "koel" } else { "peer" },
        note,
    }
}

fn details(html: &mut String, cells: &[&GuardCell]) {
    html.push_str("<details><summary>Numbers</summary>\n");
    let headings = [
        "Conditions",
        "Entrant",
        "#Mops",
        "#Min .. max",
        "#By bare",
        "#Min .. max",
        "#Reach the store",
        "#False positives",
        "#Bytes",
    ];
    open_table(html, &headings);
    for cell in cells {
        for row in &cell.rows {
            let (conditions, name) = (escape(&conditions(cell)), escape(row.entrant));
            add(html, format_args!("<tr><td>{conditions}</td><td>{name}</td>"));
            number(html, &significant(row.mops.median));
            number(html, &range(&row.mops));
            judged(html, Some(row.by_bare.median));
            number(html, &range(&row.by_bare));
            number(html, &row.reach_in_words());
            number(html, &row.false_positives_in_words());
            number(html, &grouped(row.bytes));
            html.push_str("</tr>\n");
        }
    }
    close_table(html);
    html.push_str("</details>\n");
}
