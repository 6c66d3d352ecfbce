//! Plots: curves over the number of entries, or bars where there is one number.

use std::error::Error;
use std::path::Path;

use bench_common::figure::{Area, Line, Panel, Stroke, draw_panel, x_range};
use plotters::prelude::*;

use super::format::number;
use super::recorded::{RecordedResults, unique};
use super::sections::Plot;
use crate::results::{Comparison, Outcome};

const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 44;
/// Panels per row.
const PANELS_PER_ROW: usize = 2;
const CURVES_HEIGHT: u32 = 300;
/// The size of a name in the legend.
const NAME_WIDTH: u32 = 235;
const NAME_HEIGHT: u32 = 22;
/// The height of a bar with the space below it.
const BAR_HEIGHT: u32 = 20;
/// The space on the left of the bars, for names, and on the right of the longest one.
const BAR_MARGINS: (u32, u32) = (190, 80);
/// Axes over a greater range than this have ticks at powers of ten only.
const DENSE_TICKS_RANGE: f64 = 200.0;
const OURS: RGBColor = RGBColor(0, 114, 178);
const PEER: RGBColor = RGBColor(190, 190, 190);

/// The contents of a panel: subjects, and their figures by the number of entries.
struct PanelData<'a> {
    bench: &'a str,
    unit: &'a str,
    lines: Vec<PlotLine<'a>>,
}

struct PlotLine<'a> {
    name: &'a str,
    is_ours: bool,
    points: Vec<(f64, f64)>,
}

impl PanelData<'_> {
    /// The benchmark, with the unit unless it is part of the name.
    fn label(&self) -> String {
        match self.bench.contains(self.unit) {
            true => self.bench.into(),
            false => format!("{}, {}", self.bench, self.unit),
        }
    }
}

/// Draws a plot into an SVG file. Returns false if there are no figures for it.
pub(crate) fn draw(
    plot: &Plot,
    recorded: &[&RecordedResults],
    path: &Path,
) -> Result<bool, Box<dyn Error>> {
    let panels: Vec<_> =
        plot.benches.iter().filter_map(|bench| panel_data(plot, recorded, bench)).collect();
    let is_one_size =
        panels.iter().flat_map(|panel| &panel.lines).all(|line| line.points.len() == 1);
    match (panels.is_empty(), is_one_size) {
        (true, _) => return Ok(false),
        (false, true) => bars(&plot.title, &panels, path)?,
        (false, false) => curves(&plot.title, &panels, path)?,
    }
    Ok(true)
}

fn panel_data<'a>(
    plot: &Plot,
    recorded: &[&'a RecordedResults],
    bench: &'a str,
) -> Option<PanelData<'a>> {
    let comparisons = recorded
        .iter()
        .flat_map(|results| &results.comparisons)
        .filter(|comparison| comparison.bench == bench && comparison.key == plot.key);
    let unit = &comparisons.clone().next()?.unit;
    let ours = comparisons.clone().map(|comparison| (comparison.ours_name.as_str(), true));
    let peers = comparisons.clone().map(|comparison| (comparison.peer_name.as_str(), false));
    let lines = unique(ours.chain(peers)).into_iter();
    // A row of the best peers duplicates the others.
    let lines = lines.filter(|(name, _)| !name.starts_with("best of "));
    let line = |(name, is_ours)| {
        let point = |comparison: &Comparison| {
            let Comparison { ours_name, ours, peer_name, peer, n, .. } = comparison;
            let (row, figure) = if is_ours { (ours_name, *ours) } else { (peer_name, *peer) };
            (row == name).then_some((*n as f64, figure))
        };
        let points = comparisons.clone().filter_map(point).filter(|(n, _)| *n > 0.0);
        PlotLine { name, is_ours, points: unique(points) }
    };
    Some(PanelData { bench, unit, lines: lines.map(line).collect() })
}

/// Draws a panel per benchmark with logarithmic axes, and a legend. Our lines are thick.
fn curves(title: &str, panels: &[PanelData<'_>], path: &Path) -> Outcome {
    let all = || panels.iter().flat_map(|panel| &panel.lines);
    let names = unique(all().map(|line| (line.name, line.is_ours)));
    let in_a_row = (WIDTH / NAME_WIDTH) as usize;
    let legend_height = NAME_HEIGHT * names.len().div_ceil(in_a_row) as u32;
    let rows = panels.len().div_ceil(PANELS_PER_ROW);
    let height = TITLE_HEIGHT + legend_height + CURVES_HEIGHT * rows as u32;
    let area = canvas(path, title, height)?;
    let (top, below) = area.split_vertically(legend_height);
    for (at, (name, is_ours)) in names.iter().enumerate() {
        let place = ((at % in_a_row) as u32 * NAME_WIDTH, (at / in_a_row) as u32 * NAME_HEIGHT);
        legend(&top, name, stroke(at, *is_ours), (place.0 as i32 + 20, place.1 as i32 + 10))?;
    }
    let stroke_of = |_: usize, name: &str| {
        let at = names.iter().position(|(other, _)| *other == name).unwrap_or(0);
        stroke(at, names[at].1)
    };
    for (panel, area) in panels.iter().zip(below.split_evenly((rows, PANELS_PER_ROW))) {
        // Ours, which are first, are drawn last: above the others.
        let lines = panel.lines.iter().rev();
        let lines: Vec<_> =
            lines.map(|line| Line { name: line.name, points: above_zero(&line.points) }).collect();
        let (low, high) = y_range(&lines);
        let label = panel.label();
        let panels = [Panel { y_label: &label, y: low..high, lines }];
        let (first, last) = x_range(&panels);
        let axes = [(first / 1.1, last * 1.5), (low, high)]
            .map(|(low, high)| (low..high).log_scale().with_key_points(ticks(low, high)));
        let [x, y] = axes;
        draw_panel(&area, &panels[0], "entries", x, y, stroke_of, false)?;
    }
    Ok(area.present()?)
}

/// Returns the points that a logarithmic axis can show.
fn above_zero(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    points.iter().copied().filter(|(_, figure)| *figure > 0.0).collect()
}

fn canvas<'a>(path: &'a Path, title: &str, height: u32) -> Result<Area<'a>, Box<dyn Error>> {
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE)?;
    Ok(area.titled(title, ("sans-serif", 22))?)
}

fn stroke(at: usize, is_ours: bool) -> Stroke {
    Stroke::of(at, if is_ours { 4 } else { 2 })
}

fn legend(area: &Area<'_>, name: &str, stroke: Stroke, (x, y): (i32, i32)) -> Outcome {
    let style = stroke.color.stroke_width(stroke.width);
    let pieces: &[(i32, i32)] =
        if stroke.is_dashed { &[(0, 6), (9, 15), (18, 24)] } else { &[(0, 24)] };
    for (from, to) in pieces {
        area.draw(&PathElement::new([(x + from, y), (x + to, y)], style))?;
    }
    Ok(area.draw(&Text::new(name.to_string(), (x + 32, y - 8), ("sans-serif", 15)))?)
}

/// Returns the powers of ten, on short axes also their multiples by two and five.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = if high / low > DENSE_TICKS_RANGE { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers =
        (low.log10().floor() as i32..=high.log10().floor() as i32).map(|power| 10_f64.powi(power));
    let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * power));
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

/// Returns the range of the lines with a margin.
fn y_range(lines: &[Line<'_>]) -> (f64, f64) {
    let all = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    (low / 1.2, high * 1.2)
}

/// Draws a panel of bars per benchmark.
fn bars(title: &str, panels: &[PanelData<'_>], path: &Path) -> Outcome {
    let most = panels.iter().map(|panel| panel.lines.len()).max().unwrap_or(0) as u32;
    let rows = panels.len().div_ceil(PANELS_PER_ROW);
    let height = TITLE_HEIGHT + (BAR_HEIGHT * (most + 2)) * rows as u32;
    let area = canvas(path, title, height)?;
    for (panel, area) in panels.iter().zip(area.split_evenly((rows, PANELS_PER_ROW))) {
        bars_of(panel, &area)?;
    }
    Ok(area.present()?)
}

fn bars_of(panel: &PanelData<'_>, area: &Area<'_>) -> Outcome {
    let (left, right) = BAR_MARGINS;
    let room = f64::from(area.dim_in_pixel().0 - left - right);
    let figures = panel.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let highest = figures.fold(f64::MIN_POSITIVE, f64::max);
    let font = ("sans-serif", 14).into_font();
    area.draw(&Text::new(panel.label(), (left as i32, 4), ("sans-serif", 16)))?;
    for (at, line) in panel.lines.iter().enumerate() {
        let (x, y) = (left as i32, (BAR_HEIGHT * (at as u32 + 1)) as i32 + 4);
        let end = x + (room * line.points[0].1 / highest) as i32;
        let color = if line.is_ours { OURS } else { PEER };
        let name = TextStyle::from(font.clone()).pos(plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Right,
            plotters::style::text_anchor::VPos::Top,
        ));
        area.draw(&Text::new(line.name.to_string(), (x - 8, y + 2), name))?;
        area.draw(&Rectangle::new([(x, y), (end, y + BAR_HEIGHT as i32 - 4)], color.filled()))?;
        area.draw(&Text::new(number(line.points[0].1), (end + 6, y + 2), font.clone()))?;
    }
    Ok(())
}
