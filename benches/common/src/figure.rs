//! Line charts as SVG files: panels with a common x axis, one above the other.

use std::error::Error;
use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// The scale of an x axis.
#[derive(Clone, Copy)]
pub enum Scale {
    Linear,
    Logarithmic,
}

/// A figure: a title, an x axis and its panels.
pub struct Figure<'a> {
    pub title: &'a str,
    pub x_label: &'a str,
    pub x_scale: Scale,
    pub panels: Vec<Panel<'a>>,
}

/// A y axis and its lines.
pub struct Panel<'a> {
    pub y_label: &'a str,
    pub y: std::ops::Range<f64>,
    pub lines: Vec<Line<'a>>,
}

/// A named line through points. A line whose name begins with [`PUBLISHED`] is drawn as crosses
/// that are not connected.
pub struct Line<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// The beginning of the names of published points.
pub const PUBLISHED: &str = "published";

/// The stroke of a line.
#[derive(Clone, Copy)]
pub struct Stroke {
    pub color: RGBColor,
    pub width: u32,
    pub is_dashed: bool,
}

/// Colours that are distinct with colour blindness, too.
pub const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];
const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 300;
const TITLE_HEIGHT: u32 = 50;
/// Lines with fewer points than this have a marker at each point.
const DENSE: usize = 60;

impl Figure<'_> {
    /// Draws the figure into an SVG file.
    pub fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let height = TITLE_HEIGHT + PANEL_HEIGHT * self.panels.len() as u32;
        let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE)?;
        let area = area.titled(self.title, ("sans-serif", 22))?;
        let (low, high) = x_range(&self.panels);
        for (area, panel) in area.split_evenly((self.panels.len(), 1)).iter().zip(&self.panels) {
            let (y, stroke) = (panel.y.clone(), |at, _: &str| Stroke::of(at, 2));
            match self.x_scale {
                Scale::Linear => draw_panel(area, panel, self.x_label, low..high, y, stroke, true)?,
                Scale::Logarithmic => {
                    let ticks = powers(low, high);
                    let x = (low..high).log_scale().with_key_points(ticks);
                    draw_panel(area, panel, self.x_label, x, y, stroke, true)?;
                }
            }
        }
        Ok(area.present()?)
    }
}

/// Returns the powers of ten and their doubles and fivefolds between two numbers.
fn powers(low: f64, high: f64) -> Vec<f64> {
    let tens = (0..12).map(|power| 10_f64.powi(power));
    let all = tens.flat_map(|ten| [ten, 2.0 * ten, 5.0 * ten]);
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

impl Stroke {
    /// Returns the stroke of line `at`: all colours solid, then all colours dashed.
    pub fn of(at: usize, width: u32) -> Self {
        Self { color: COLORS[at % COLORS.len()], width, is_dashed: at / COLORS.len() % 2 == 1 }
    }
}

/// Returns the least and the greatest x of all lines.
pub fn x_range(panels: &[Panel<'_>]) -> (f64, f64) {
    let all = || panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
    let low = all().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let high = all().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    (low, high)
}

/// Draws a panel with any axes. `stroke` maps the index and the name of a line to its stroke.
pub fn draw_panel<X, Y>(
    area: &Area<'_>,
    panel: &Panel<'_>,
    x_label: &str,
    x: X,
    y: Y,
    stroke: impl Fn(usize, &str) -> Stroke,
    has_legend: bool,
) -> Result<(), Box<dyn Error>>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(45)
        .y_label_area_size(75)
        .build_cartesian_2d(x, y)?;
    chart
        .configure_mesh()
        .x_desc(x_label)
        .y_desc(panel.y_label)
        .x_label_formatter(&|x| thousands(*x))
        .y_label_formatter(&|y| if y.fract() == 0.0 { thousands(*y) } else { format!("{y:.2}") })
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 16))
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    for (at, line) in panel.lines.iter().enumerate() {
        let Stroke { color, width, is_dashed } = stroke(at, line.name);
        let (points, style) = (line.points.iter().copied(), color.stroke_width(width));
        if line.name.starts_with(PUBLISHED) {
            let cross = |point| Cross::new(point, 6, BLACK.stroke_width(2));
            let series = chart.draw_series(points.map(cross))?;
            series
                .label(line.name)
                .legend(|(x, y)| Cross::new((x + 10, y), 5, BLACK.stroke_width(2)));
            continue;
        }
        let series = if is_dashed {
            chart.draw_series(DashedLineSeries::new(points, 6, 4, style))?
        } else {
            chart.draw_series(LineSeries::new(points, style))?
        };
        if has_legend {
            series
                .label(line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
        }
        if line.points.len() < DENSE {
            let dots =
                line.points.iter().map(|point| Circle::new(*point, 1 + width, color.filled()));
            chart.draw_series(dots)?;
        }
    }
    if has_legend {
        chart
            .configure_series_labels()
            .position(emptiest_corner(panel))
            .background_style(WHITE.mix(0.8))
            .label_font(("sans-serif", 14))
            .draw()?;
    }
    Ok(())
}

/// Returns the corner for the legend: that with the fewest points. A point is placed by its rank in
/// its line, which does not depend on the scale of the axis.
fn emptiest_corner(panel: &Panel<'_>) -> SeriesLabelPosition {
    let middle = f64::midpoint(panel.y.start, panel.y.end);
    let mut counts = [0_usize; 4];
    for line in &panel.lines {
        for (rank, point) in line.points.iter().enumerate() {
            let is_right = 2 * rank >= line.points.len().max(2);
            counts[2 * usize::from(is_right) + usize::from(point.1 < middle)] += 1;
        }
    }
    let corner = (0..counts.len()).min_by_key(|corner| counts[*corner]).unwrap_or(0);
    [
        SeriesLabelPosition::UpperLeft,
        SeriesLabelPosition::LowerLeft,
        SeriesLabelPosition::UpperRight,
        SeriesLabelPosition::LowerRight,
    ][corner]
        .clone()
}

pub type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// Formats a whole number below a thousand millions, with spaces between thousands.
pub fn thousands(number: f64) -> String {
    let number = number.round() as u64;
    match (number / 1_000_000, number / 1000 % 1000, number % 1000) {
        (0, 0, ones) => ones.to_string(),
        (0, thousands, ones) => format!("{thousands} {ones:03}"),
        (millions, thousands, ones) => format!("{millions} {thousands:03} {ones:03}"),
    }
}
