//! Charts as inline SVG: lines over a numeric axis.

use super::chart::{KOEL_COLORS, PEER_COLORS, open_svg, push, text};
use super::marks::{Stroke, draw};
use super::paper::{Curve, Curves};
use super::significant;

const LEFT: f64 = 66.0;
const TOP: f64 = 10.0;
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
const LEGEND_WIDTH: f64 = 250.0;

/// One axis: the range of its values, as they are or as powers of ten.
struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64> + Clone, log: bool) -> Self {
        if log {
            let values = values.filter(|value| *value > 0.0);
            let low = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
            let high = values.fold(0.0, f64::max).log10().ceil();
            let (low, high) = if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) };
            return Axis { low, high: high.max(low + 1.0), log };
        }
        let low = values.clone().fold(0.0, f64::min);
        let high = values.fold(0.0, f64::max);
        Axis { low, high: if high > low { high } else { low + 1.0 }, log }
    }

    /// The position from 0 to 1; `None` for a value that a logarithmic axis cannot show.
    fn at(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.log10() } else { value };
        value.is_finite().then(|| (value - self.low) / (self.high - self.low))
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        if self.log {
            let exponents = self.low as i32..=self.high as i32;
            return exponents.map(|e| (10_f64.powi(e), format!("1e{e}"))).collect();
        }
        let rough = (self.high - self.low) / 6.0;
        let magnitude = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * magnitude).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        let describe =
            |value: f64| if value.fract() == 0.0 { format!("{value}") } else { significant(value) };
        (first..=last).map(|i| i as f64 * step).map(|value| (value, describe(value))).collect()
    }
}

/// The chart.
pub(super) fn curves(chart: &Curves) -> String {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let mut x_axis = Axis::of(points().map(|point| point.0), false);
    x_axis.low = points().map(|point| point.0).fold(x_axis.high, f64::min).min(x_axis.high - 1e-9);
    let y_axis = Axis::of(points().map(|point| point.1), chart.log_y);
    let x = |value: f64| x_axis.at(value).map(|part| LEFT + WIDTH * part);
    let y = |value: f64| y_axis.at(value).map(|part| TOP + HEIGHT * (1.0 - part));
    let mut svg = open_svg(LEFT + WIDTH + LEGEND_WIDTH, TOP + HEIGHT + 46.0, &chart.title);
    for (value, name) in y_axis.ticks() {
        let Some(at) = y(value) else { continue };
        push(&mut svg, format_args!(r#"<path class="grid" d="M{LEFT} {at:.1}h{WIDTH}"/>"#));
        text(&mut svg, LEFT - 6.0, at + 4.0, "axis end", &name);
    }
    for (value, name) in x_axis.ticks() {
        let Some(at) = x(value) else { continue };
        text(&mut svg, at, TOP + HEIGHT + 18.0, "axis middle", &name);
    }
    let caption = format!("{}; upward: {}", chart.x, chart.y);
    text(&mut svg, LEFT + WIDTH / 2.0, TOP + HEIGHT + 38.0, "axis middle", &caption);
    let (mut colors, mut koel_colors) = (PEER_COLORS.iter().cycle(), KOEL_COLORS.iter().cycle());
    for (position, line) in chart.lines.iter().enumerate() {
        let color =
            if line.is_koel { koel_colors.next() } else { colors.next() }.copied().unwrap_or_default();
        let points = line.points.iter().filter_map(|point| Some((x(point.0)?, y(point.1)?)));
        let Curve { label, is_koel, is_computed, .. } = line;
        let stroke = Stroke { label, color, is_koel: *is_koel, is_computed: *is_computed };
        draw(&mut svg, position, &stroke, &points.collect::<Vec<_>>(), (LEFT + WIDTH + 16.0, TOP));
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_logarithm_does_not_have_are_left_out() {
        for points in [vec![], vec![(1.0, 0.0)], vec![(1.0, 0.0), (2.0, 1e-6), (3.0, 0.5)]] {
            for log_y in [false, true] {
                let line =
                    Curve { label: "a<b".into(), is_koel: true, is_computed: false, points: points.clone() };
                let chart =
                    Curves { title: "t".into(), x: "x".into(), y: "y".into(), log_y, lines: vec![line] };
                let svg = curves(&chart);
                assert!(!svg.contains("NaN") && !svg.contains("inf") && svg.contains("a&lt;b"), "{svg}");
            }
        }
    }
}
