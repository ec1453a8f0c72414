//! Hit ratio against the size of the cache, as inline SVG.

use super::chart::{Line, open_svg, push, text};
use super::marks::draw;

const LEFT: f64 = 46.0;
const TOP: f64 = 10.0;
const TICK_STEP: f64 = 66.0;
const HEIGHT: f64 = 240.0;
const LEGEND_WIDTH: f64 = 150.0;

/// Lines over `ticks`, which are sizes. Ticks are evenly spaced, as their steps are about even on a logarithmic scale; the
/// vertical axis is the hit ratio in percent. Values that are not numbers are left out.
pub(super) fn hit_ratio_curves(ticks: &[String], lines: &[Line<'_>]) -> String {
    let values = lines.iter().flat_map(|line| line.values.iter().copied());
    let highest = values.filter(|value| value.is_finite()).fold(1.0, f64::max);
    // Four or five lines of the grid.
    let step = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 25.0].into_iter().find(|step| highest / step <= 5.0);
    let step = step.unwrap_or(25.0);
    let top = (highest / step).ceil() * step;
    let right = LEFT + 20.0 + TICK_STEP * (ticks.len().max(1) - 1) as f64;
    let x = |tick: usize| LEFT + 10.0 + TICK_STEP * tick as f64;
    let y = |value: f64| TOP + HEIGHT * (1.0 - value / top);
    let mut svg = open_svg(right + LEGEND_WIDTH, TOP + HEIGHT + 30.0, "hit ratio, by the size of the cache");
    for number in 0..=(top / step).round() as u32 {
        let value = f64::from(number) * step;
        let at = y(value);
        push(&mut svg, format_args!(r#"<path class="grid" d="M{LEFT} {at:.1}H{right:.1}"/>"#));
        text(&mut svg, LEFT - 6.0, at + 4.0, "axis end", &format!("{value}%"));
    }
    for (tick, name) in ticks.iter().enumerate() {
        text(&mut svg, x(tick), TOP + HEIGHT + 20.0, "axis middle", name);
    }
    for (position, line) in lines.iter().enumerate() {
        let points = line.values.iter().enumerate().filter(|(_, value)| value.is_finite());
        let points: Vec<(f64, f64)> = points.map(|(tick, &value)| (x(tick), y(value))).collect();
        draw(&mut svg, position, &line.stroke(), &points, (right + 14.0, TOP));
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_hit_ratios_has_a_scale() {
        for values in [vec![], vec![0.0], vec![0.01, 0.02], vec![f64::NAN, 50.0], vec![100.0; 3]] {
            let ticks: Vec<String> = values.iter().map(f64::to_string).collect();
            let line = Line { label: "a<b", values, color: "#000", is_koel: true };
            let svg = hit_ratio_curves(&ticks, &[line]);
            let drawn = svg.replace(">NaN</text>", "");
            assert!(!drawn.contains("NaN") && !drawn.contains("inf") && svg.contains("a&lt;b"), "{svg}");
        }
    }
}
