//! Figures: panels over one x axis, one above the other.

use std::error::Error;
use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::report::Outcome;

/// How x is spread.
#[derive(Clone, Copy)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

/// What all panels share.
pub(crate) struct Figure<'a> {
    pub(crate) title: &'a str,
    pub(crate) x_label: &'a str,
    pub(crate) x_scale: Scale,
    pub(crate) panels: Vec<Panel<'a>>,
}

/// One y axis and the lines over it.
pub(crate) struct Panel<'a> {
    pub(crate) y_label: &'a str,
    pub(crate) y: std::ops::Range<f64>,
    pub(crate) lines: Vec<Line<'a>>,
}

/// A named line through points.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Colours that stay apart for every eye.
const COLORS: [RGBColor; 7] = [
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
/// Lines with fewer points show each of them.
const DENSE: usize = 60;

impl Figure<'_> {
    /// Draws the figure into an SVG file.
    pub(crate) fn draw(&self, path: &Path) -> Outcome {
        let height = TITLE_HEIGHT + PANEL_HEIGHT * self.panels.len() as u32;
        let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE)?;
        let area = area.titled(self.title, ("sans-serif", 22))?;
        let (low, high) = self.x_range();
        for (area, panel) in area.split_evenly((self.panels.len(), 1)).iter().zip(&self.panels) {
            match self.x_scale {
                Scale::Linear => self.draw_panel(area, panel, low..high)?,
                Scale::Logarithmic => self.draw_panel(area, panel, (low..high).log_scale())?,
            }
        }
        Ok(area.present()?)
    }

    fn x_range(&self) -> (f64, f64) {
        let all =
            || self.panels.iter().flat_map(|panel| &panel.lines).flat_map(|line| &line.points);
        let low = all().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let high = all().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
        (low, high)
    }

    fn draw_panel<X>(&self, area: &Area<'_>, panel: &Panel<'_>, x: X) -> Result<(), Box<dyn Error>>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
    {
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .x_label_area_size(45)
            .y_label_area_size(75)
            .build_cartesian_2d(x, panel.y.clone())?;
        chart
            .configure_mesh()
            .x_desc(self.x_label)
            .y_desc(panel.y_label)
            .x_label_formatter(&|x| thousands(*x))
            .y_label_formatter(&|y| {
                if y.fract() == 0.0 { thousands(*y) } else { format!("{y:.2}") }
            })
            .label_style(("sans-serif", 14))
            .axis_desc_style(("sans-serif", 16))
            .light_line_style(WHITE.mix(0.0))
            .draw()?;
        for (line, color) in panel.lines.iter().zip(COLORS.into_iter().cycle()) {
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(2)))?
                .label(line.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 20, y)], color.stroke_width(2))
                });
            if line.points.len() < DENSE {
                let dots = line.points.iter().map(|point| Circle::new(*point, 3, color.filled()));
                chart.draw_series(dots)?;
            }
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .label_font(("sans-serif", 14))
            .draw()?;
        Ok(())
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// A whole number below a thousand millions, with a space between the thousands.
fn thousands(number: f64) -> String {
    let number = number.round() as u64;
    match (number / 1_000_000, number / 1000 % 1000, number % 1000) {
        (0, 0, ones) => ones.to_string(),
        (0, thousands, ones) => format!("{thousands} {ones:03}"),
        (millions, thousands, ones) => format!("{millions} {thousands:03} {ones:03}"),
    }
}
