//! A chart's lines, and their legend. Points have marks, whose shapes tell lines apart for readers who cannot tell colors
//! apart.

use super::chart::{push, text};

const LEGEND_STEP: f64 = 20.0;

/// A line's style, and its name in the legend.
#[derive(Debug)]
pub(super) struct Stroke<'a> {
    pub(super) label: &'a str,
    pub(super) color: &'a str,
    /// Such a line is thicker.
    pub(super) is_koel: bool,
    /// Such a line is dashed, and has no marks.
    pub(super) is_computed: bool,
}

/// Shapes around a point, in the order of lines: first all of them filled, then all of them hollow.
const SHAPES: [&str; 6] = [
    "m-2.9 0a2.9 2.9 0 1 0 5.8 0a2.9 2.9 0 1 0-5.8 0z",
    "m-2.6-2.6h5.2v5.2h-5.2z",
    "m0-3.6l3.5 6h-7z",
    "m0-3.8l3.8 3.8l-3.8 3.8l-3.8-3.8z",
    "m0 3.6l3.5-6h-7z",
    "m-3-3h6l-6 6h6z",
];

/// Draws the line with index `position` through these points, and its part of the legend, whose corner is given.
pub(super) fn draw(
    svg: &mut String,
    position: usize,
    stroke: &Stroke<'_>,
    points: &[(f64, f64)],
    (left, top): (f64, f64),
) {
    let Stroke { label, color, is_koel, is_computed } = *stroke;
    let width = if is_koel { 2.5 } else { 1.5 };
    let dashes = if is_computed { r#" stroke-dasharray="5 4""# } else { "" };
    let style = format!(r#"stroke="{color}" stroke-width="{width}"{dashes}"#);
    let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    push(
        svg,
        format_args!(
            r#"<polyline points="{}" fill="none" {style} stroke-linejoin="round"/>"#,
            path.join(" ")
        ),
    );
    let at = top + 8.0 + LEGEND_STEP * position as f64;
    push(svg, format_args!(r#"<path d="M{left:.1} {at:.1}h18" {style}/>"#));
    if !is_computed {
        points.iter().chain([&(left + 9.0, at)]).for_each(|&point| mark(svg, position, point, color));
    }
    text(svg, left + 25.0, at + 4.0, "label", label);
}

/// The mark of the line with index `position`, in its color.
fn mark(svg: &mut String, position: usize, (x, y): (f64, f64), color: &str) {
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
