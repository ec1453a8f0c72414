//! Charts as inline SVG: bars with their spread, and lines over quantiles on a logarithmic scale.

use std::fmt::Write;

use super::marks::{Stroke, draw};
use super::significant;

/// One bar: a median and the range of the measurements.
#[derive(Debug)]
pub(super) struct Bar<'a> {
    pub(super) label: &'a str,
    pub(super) value: f64,
    /// The whisker's ends.
    pub(super) range: Option<(f64, f64)>,
    /// The style's class for the bar.
    pub(super) class: &'static str,
    /// The text next to the bar, after the value.
    pub(super) note: String,
}

/// One line: a value at each tick.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) label: &'a str,
    pub(super) values: Vec<f64>,
    pub(super) color: &'static str,
    pub(super) is_koel: bool,
}

impl Line<'_> {
    pub(super) fn stroke(&self) -> Stroke<'_> {
        Stroke { label: self.label, color: self.color, is_koel: self.is_koel, is_computed: false }
    }
}

// Lines stand out from the page's cards, light and dark: contrasts are at least 3 to 1, as WCAG 2.1 requires of graphics
// (1.4.11).

/// The colors of lines that are not koel's, taken in turn.
pub(super) const PEER_COLORS: [&str; 6] = ["#d97706", "#059669", "#db2777", "#ef4444", "#65a30d", "#78716c"];

/// The colors of koel's lines, taken in turn: as many as it has caches.
pub(super) const KOEL_COLORS: [&str; 5] = ["#3b82f6", "#a855f7", "#0284c7", "#6366f1", "#d946ef"];

/// The colors of exact policies' lines, taken in turn.
pub(super) const EXACT_COLORS: [&str; 3] = ["#78716c", "#6b8299", "#93803f"];

/// The unit of bars of throughput.
pub(super) const MOPS: &str = "million operations a second, all threads together";

const BAR_HEIGHT: f64 = 17.0;
const BAR_STEP: f64 = 24.0;
/// Widths of the texts next to a bar: at least these, and as wide as the longest text.
const LABEL_WIDTH: f64 = 142.0;
const NOTE_WIDTH: f64 = 96.0;
const PLOT_WIDTH: f64 = 200.0;
/// The width of a character, and of the space between a text and its bar.
const CHAR_WIDTH: f64 = 6.8;
const GAP: f64 = 8.0;
const UNIT_HEIGHT: f64 = 22.0;

/// Horizontal bars, the longest value or whisker as wide as the plot; their unit is below them.
pub(super) fn bars(unit: &str, bars: &[Bar<'_>]) -> String {
    let longest = bars.iter().map(|bar| bar.range.map_or(bar.value, |(_, max)| max)).fold(0.0, f64::max);
    let scale = if longest > 0.0 { PLOT_WIDTH / longest } else { 0.0 };
    let notes: Vec<String> = bars
        .iter()
        .map(|bar| format!("{} {}", significant(bar.value), bar.note).trim_end().to_owned())
        .collect();
    let left = width_of(bars.iter().map(|bar| bar.label), LABEL_WIDTH);
    let right = width_of(notes.iter().map(String::as_str), NOTE_WIDTH);
    let below = BAR_STEP * bars.len() as f64 + 3.0;
    let mut svg = open_svg(left + PLOT_WIDTH + right, below + UNIT_HEIGHT, unit);
    for (position, (bar, note)) in bars.iter().zip(&notes).enumerate() {
        let top = 3.0 + BAR_STEP * position as f64;
        let middle = top + BAR_HEIGHT / 2.0;
        text(&mut svg, left - GAP, middle + 4.0, "label end", bar.label);
        push(
            &mut svg,
            format_args!(
                r#"<rect class="{}" x="{left:.1}" y="{top:.1}" width="{:.1}" height="{BAR_HEIGHT}" rx="2"/>"#,
                bar.class,
                bar.value * scale
            ),
        );
        let mut end = bar.value * scale;
        if let Some((min, max)) = bar.range {
            whisker(&mut svg, left + min * scale, left + max * scale, middle);
            end = end.max(max * scale);
        }
        text(&mut svg, left + end + GAP, middle + 4.0, "value", note);
    }
    text(&mut svg, left, below + 14.0, "axis", unit);
    svg.push_str("</svg>");
    svg
}

fn width_of<'a>(texts: impl Iterator<Item = &'a str>, least: f64) -> f64 {
    texts.map(|text| GAP + CHAR_WIDTH * text.chars().count() as f64).fold(least, f64::max)
}

fn whisker(svg: &mut String, from: f64, to: f64, middle: f64) {
    let (top, bottom) = (middle - 4.0, middle + 4.0);
    push(
        svg,
        format_args!(
            r#"<path class="whisker" d="M{from:.1} {middle:.1}H{to:.1}M{from:.1} {top:.1}V{bottom:.1}M{to:.1} {top:.1}V{bottom:.1}"/>"#
        ),
    );
}

const LINES_LEFT: f64 = 58.0;
const LINES_TOP: f64 = 10.0;
const TICK_STEP: f64 = 84.0;
const LINES_HEIGHT: f64 = 280.0;
const LEGEND_WIDTH: f64 = 190.0;

/// Lines over `ticks`, with a logarithmic vertical axis whose powers of ten `describe` names.
pub(super) fn lines(ticks: &[&str], lines: &[Line<'_>], describe: impl Fn(f64) -> String) -> String {
    let values = || lines.iter().flat_map(|line| line.values.iter().copied()).map(|value| value.max(1.0));
    let low = values().reduce(f64::min).unwrap_or(1.0).log10().floor();
    let high = values().fold(1.0, f64::max).log10().ceil().max(low + 1.0);
    let right = LINES_LEFT + TICK_STEP * (ticks.len() as f64 - 1.0) + 20.0;
    let x = |tick: usize| LINES_LEFT + 10.0 + TICK_STEP * tick as f64;
    let y = |value: f64| LINES_TOP + LINES_HEIGHT * (high - value.max(1.0).log10()) / (high - low);
    let about = "time of single operations, by quantile";
    let mut svg = open_svg(right + LEGEND_WIDTH, LINES_TOP + LINES_HEIGHT + 30.0, about);
    for exponent in low as i32..=high as i32 {
        let value = 10_f64.powi(exponent);
        let at = y(value);
        push(&mut svg, format_args!(r#"<path class="grid" d="M{LINES_LEFT} {at:.1}H{right:.1}"/>"#));
        text(&mut svg, LINES_LEFT - 6.0, at + 4.0, "axis end", &describe(value));
    }
    for (tick, name) in ticks.iter().enumerate() {
        text(&mut svg, x(tick), LINES_TOP + LINES_HEIGHT + 20.0, "axis middle", name);
    }
    for (position, line) in lines.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            line.values.iter().enumerate().map(|(tick, &value)| (x(tick), y(value))).collect();
        draw(&mut svg, position, &line.stroke(), &points, (right + 14.0, LINES_TOP));
    }
    svg.push_str("</svg>");
    svg
}

/// `text` with HTML's own characters replaced.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Begins a picture; `about` describes it to readers who cannot see it.
pub(super) fn open_svg(width: f64, height: f64, about: &str) -> String {
    let about = escape(about);
    format!(
        r#"<svg viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img" aria-label="{about}">"#
    )
}

pub(super) fn text(svg: &mut String, x: f64, y: f64, class: &str, content: &str) {
    push(svg, format_args!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#, escape(content)));
}

pub(super) fn push(svg: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = svg.write_fmt(piece);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_angle_brackets_are_escaped() {
        let bar = Bar {
            label: "RwLock<hashbrown>",
            value: 2.0,
            range: Some((1.0, 3.0)),
            class: "peer",
            note: String::new(),
        };
        let svg = bars("Mops", &[bar]);
        assert!(svg.contains("RwLock&lt;hashbrown&gt;") && !svg.contains("<hashbrown>"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"));
    }

    #[test]
    fn the_longest_texts_beside_a_bar_have_room() {
        let label = "scalable_cuckoo_filter-grown";
        let bar = Bar { label, value: 314.0, range: None, class: "peer", note: "(100,000 held)".to_owned() };
        let svg = bars("Mops", &[bar]);
        // 190 and 122 pixels for the texts, in addition to the bar.
        assert!(svg.starts_with(r#"<svg viewBox="0 0 529 "#), "{svg}");
        assert!(svg.contains(r#"class="label end" x="190.4""#), "{svg}");
    }

    #[test]
    fn colors_are_told_apart() {
        let all = [&PEER_COLORS[..], &KOEL_COLORS].concat();
        assert!(all.iter().enumerate().all(|(i, color)| !all[..i].contains(color)));
    }

    /// By WCAG's formula for sRGB.
    fn luminance(color: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    #[test]
    fn lines_stand_out_from_light_and_dark_cards() {
        let cards: Vec<&str> =
            include_str!("style.css").split("--card: ").skip(1).map(|rest| &rest[..7]).collect();
        assert_eq!(cards.len(), 2, "a light one and a dark one");
        for color in [&PEER_COLORS[..], &KOEL_COLORS, &EXACT_COLORS].concat() {
            for card in &cards {
                let (line, card) = (luminance(color) + 0.05, luminance(card) + 0.05);
                let contrast = line.max(card) / line.min(card);
                assert!(contrast >= 3.0, "{color}: {contrast:.2} to 1");
            }
        }
    }

    #[test]
    fn lines_of_equal_or_tiny_values_have_a_scale() {
        for values in [vec![0.0; 3], vec![1.0; 3], vec![1000.0; 3], vec![]] {
            let line = Line { label: "a", values, color: "#000", is_koel: true };
            let svg = lines(&["x", "y", "z"], &[line], |v| v.to_string());
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
