//! Tables that fit the terminal: no word in them is broken, and columns that do not fit get a table of their own.

use std::fmt;
use std::ops::Range;

use comfy_table::modifiers::UTF8_ROUND_CORNERS;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell as Field, ColumnConstraint, ContentArrangement, Table, Width};
use unicode_width::UnicodeWidthStr;

/// Headings of columns that stay next to the previous one, as they say more about it.
const OF_THE_ONE_BEFORE: [&str; 3] = ["", "min .. max", "which"];

/// The width around a column's words: a line and two blanks.
const AROUND: usize = 3;

/// Rows under headings. A table is as wide as its content, but no wider than the terminal, if it is shown on one: there cells
/// have several lines, and if not even their longest words fit side by side, there are several tables, one below the other.
/// Words are broken only if they do not fit even with one column, and those that stay next to it, after the names.
#[derive(Debug)]
pub(super) struct Columns {
    table: Table,
    headings: Vec<String>,
    /// How many columns come first in each table: they name the subject of a line.
    names: usize,
}

impl Columns {
    pub(super) fn new(headings: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_preset(UTF8_FULL_CONDENSED).apply_modifier(UTF8_ROUND_CORNERS).set_header(headings);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        Columns { table, headings: headings.iter().map(|&heading| heading.to_owned()).collect(), names: 1 }
    }

    /// Sets how many columns name the subject of a line: one by default.
    pub(super) fn with_names(mut self, columns: usize) -> Self {
        self.names = columns;
        self
    }

    pub(super) fn add_row(&mut self, fields: impl IntoIterator<Item = Field>) {
        self.table.add_row(fields.into_iter().collect::<Vec<_>>());
    }

    /// The length of the longest word of each column, which cannot be narrower.
    fn narrowest(&self) -> Vec<usize> {
        let longest = |text: &str| text.split_whitespace().map(UnicodeWidthStr::width).max().unwrap_or(0);
        (0..self.headings.len())
            .map(|column| {
                let fields =
                    self.table.column_cells_iter(column).flatten().map(|field| longest(&field.content()));
                fields.chain([longest(&self.headings[column])]).max().unwrap_or(0)
            })
            .collect()
    }

    /// Whether these columns fit next to the names.
    fn fits(&self, columns: Range<usize>, narrowest: &[usize], room: usize) -> bool {
        let shown = narrowest[..self.names].iter().chain(&narrowest[columns]);
        shown.map(|word| word + AROUND).sum::<usize>() < room
    }

    /// The columns of each table, apart from those of the names: as many as fit, and at least one.
    fn parts(&self, narrowest: &[usize], room: usize) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut begin = self.names;
        while begin < self.headings.len() {
            let goes_on = |&column: &usize| OF_THE_ONE_BEFORE.contains(&self.headings[column].as_str());
            let end = begin + 1 + (begin + 1..self.headings.len()).take_while(goes_on).count();
            match parts.last_mut() {
                Some(last) if self.fits(last.start..end, narrowest, room) => last.end = end,
                _ => parts.push(begin..end),
            }
            begin = end;
        }
        if parts.is_empty() {
            // Only names.
            parts.push(begin..begin);
        }
        parts
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A terminal may report a width of zero.
        let Some(room) = self.table.width().map(usize::from).filter(|&width| width > 0) else {
            let mut table = self.table.clone();
            return write!(f, "{}", table.force_no_tty());
        };
        let narrowest = self.narrowest();
        for (number, part) in self.parts(&narrowest, room).into_iter().enumerate() {
            let fits = self.fits(part.clone(), &narrowest, room);
            let mut table = self.table.clone();
            for (column, (shown, word)) in table.column_iter_mut().zip(&narrowest).enumerate() {
                if column >= self.names && !part.contains(&column) {
                    shown.set_constraint(ColumnConstraint::Hidden);
                } else if fits {
                    shown.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(
                        (word + AROUND - 1) as u16,
                    )));
                }
            }
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{table}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADINGS: [&str; 7] =
        ["", "Mops", "min .. max", "by best peer", "min .. max", "by papaya", "min .. max"];

    fn shown(columns: &mut Columns, terminal: Option<u16>) -> String {
        match terminal {
            Some(width) => columns.table.set_width(width),
            None => columns.table.force_no_tty(),
        };
        columns.to_string()
    }

    fn width(text: &str) -> usize {
        text.lines().map(UnicodeWidthStr::width).max().expect("lines")
    }

    fn row<const N: usize>(fields: [&str; N]) -> impl Iterator<Item = Field> {
        fields.into_iter().map(Field::new)
    }

    #[test]
    fn a_table_is_no_wider_than_the_terminal_and_elsewhere_as_wide_as_it_is() {
        let mut columns = Columns::new(&HEADINGS);
        columns.add_row(row([
            "RwLock around it",
            "38.2",
            "37.9 .. 39.0",
            "1.09x",
            "1.05 .. 1.13",
            "1.22x",
            "1.18 .. 1.30",
        ]));
        let widths = [Some(80), Some(200), None].map(|terminal| width(&shown(&mut columns, terminal)));
        assert_eq!(widths, [80, 99, 99]);
    }

    #[test]
    fn no_word_is_broken_on_a_narrow_terminal() {
        let mut columns = Columns::new(&[
            "workload",
            "keys",
            "threads",
            "koel",
            "inline",
            "best peer",
            "which",
            "koel by best",
            "by papaya",
        ])
        .with_names(3);
        let fields = [
            "mix 95/5/0/0",
            "7,600,000",
            "2",
            "18.94",
            "61.1",
            "59.8",
            "RwLock<hashbrown>",
            "0.78x",
            "1.02x",
        ];
        columns.add_row(row(fields));
        for terminal in 61..=140 {
            let text = shown(&mut columns, Some(terminal));
            assert!(width(&text) <= usize::from(terminal), "{terminal}:\n{text}");
            for word in fields.iter().flat_map(|field| field.split(' ')) {
                assert!(text.contains(word), "{word} on {terminal} columns:\n{text}");
            }
            // Each table names the subjects of its lines, and the name of the best peer stays next to its figure.
            let tables = text.matches('╭').count();
            assert_eq!(
                [text.matches("7,600,000").count(), text.matches("threads").count()],
                [tables; 2],
                "{text}"
            );
            assert!(
                text.lines().any(|line| line.contains("59.8") && line.contains("RwLock<hashbrown>")),
                "{text}"
            );
        }
        assert_eq!(shown(&mut columns, Some(140)).matches('╭').count(), 1);
        assert_eq!(shown(&mut columns, None).matches('╭').count(), 1);
    }

    #[test]
    fn wide_characters_take_the_room_that_they_take() {
        let name = "追跡追跡追跡追跡追跡追跡";
        let mut columns = Columns::new(&["trace", "keys", "koel"]);
        columns.add_row(row([name, "7,600,000", "18.94"]));
        for terminal in 41..=60 {
            let text = shown(&mut columns, Some(terminal));
            assert!(width(&text) <= usize::from(terminal), "{terminal}:\n{text}");
            assert!(text.contains(name), "{terminal}:\n{text}");
        }
    }

    #[test]
    fn names_alone_are_a_table_and_a_terminal_without_columns_is_none() {
        let mut columns = Columns::new(&["trace"]);
        columns.add_row(row(["multi2"]));
        assert!(shown(&mut columns, Some(80)).contains("multi2"));
        assert_eq!(shown(&mut columns, Some(0)), shown(&mut columns, None));
    }

    #[test]
    fn what_no_terminal_holds_is_shown_all_the_same() {
        let mut columns = Columns::new(&HEADINGS);
        columns.add_row(row([
            "RwLock<hashbrown>",
            "38.2",
            "37.9 .. 39.0",
            "1.09x",
            "1.05 .. 1.13",
            "1.22x",
            "1.18",
        ]));
        for terminal in 1..60 {
            let text = shown(&mut columns, Some(terminal));
            assert!(width(&text) <= usize::from(terminal).max(24), "on {terminal} columns:\n{text}");
            assert!(terminal < 24 || text.contains("38.2"), "on {terminal} columns:\n{text}");
        }
    }
}
