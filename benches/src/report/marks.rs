//! What stands at the points of a line, and in its legend: shapes tell lines apart for who does not see colors apart.

use super::chart::push;

/// Around the point, in the order of lines: first all of them filled, then all of them hollow.
const SHAPES: [&str; 6] = [
    "m-2.9 0a2.9 2.9 0 1 0 5.8 0a2.9 2.9 0 1 0-5.8 0z",
    "m-2.6-2.6h5.2v5.2h-5.2z",
    "m0-3.6l3.5 6h-7z",
    "m0-3.8l3.8 3.8l-3.8 3.8l-3.8-3.8z",
    "m0 3.6l3.5-6h-7z",
    "m-3-3h6l-6 6h6z",
];

/// The mark of the line at `position`, in its color.
pub(super) fn mark(svg: &mut String, position: usize, (x, y): (f64, f64), color: &str) {
    let shape = SHAPES[position % SHAPES.len()];
    let is_hollow = position / SHAPES.len() % 2 == 1;
    let class = if is_hollow { "mark hollow" } else { "mark" };
    let fill = if is_hollow { String::new() } else { format!(r#" fill="{color}""#) };
    push(svg, format_args!(r#"<path class="{class}" d="M{x:.1} {y:.1}{shape}" stroke="{color}"{fill}/>"#));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twelve_lines_are_told_apart_without_colors() {
        let drawn = |position| {
            let mut svg = String::new();
            mark(&mut svg, position, (1.0, 2.0), "#123456");
            svg
        };
        let marks: Vec<String> = (0..2 * SHAPES.len()).map(drawn).collect();
        assert!(marks.iter().enumerate().all(|(i, one)| !marks[..i].contains(one)), "{marks:?}");
    }
}
