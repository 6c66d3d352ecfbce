//! Plots: curves over the number of entries, or bars where there is only one number.

use std::error::Error;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::sections::Plot;
use super::sheet::{Sheet, unique};
use super::text::number;
use crate::board::Figure;
use bench_common::figure::{Line, Panel, Stroke, draw_panel, x_range};

type Outcome = Result<(), Box<dyn Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 44;
/// Panels beside each other.
const ABREAST: usize = 2;
const CURVES_HEIGHT: u32 = 300;
/// A name in the legend.
const NAME_WIDTH: u32 = 235;
const NAME_HEIGHT: u32 = 22;
/// A bar, and what is between two.
const BAR_HEIGHT: u32 = 20;
/// From the left to the bars of a panel, and from the longest one to the right.
const BAR_MARGINS: (u32, u32) = (190, 80);
/// Axes over more than such a range have a tick for each power of ten only.
const FEW_TICKS: f64 = 200.0;
const OURS: RGBColor = RGBColor(0, 114, 178);
const PEER: RGBColor = RGBColor(190, 190, 190);

/// What is drawn of one job: contestants, and their figures by the number of entries.
struct Part<'a> {
    bench: &'a str,
    unit: &'a str,
    lines: Vec<Contestant<'a>>,
}

struct Contestant<'a> {
    name: &'a str,
    is_ours: bool,
    points: Vec<(f64, f64)>,
}

impl Part<'_> {
    /// The job, and the unit where that does not say it.
    fn label(&self) -> String {
        match self.bench.contains(self.unit) {
            true => self.bench.into(),
            false => format!("{}, {}", self.bench, self.unit),
        }
    }
}

/// Draws it into an SVG file. Whether there is anything to draw.
pub(crate) fn draw(plot: &Plot, sheets: &[&Sheet], path: &Path) -> Result<bool, Box<dyn Error>> {
    let parts: Vec<_> = plot.benches.iter().filter_map(|bench| part(plot, sheets, bench)).collect();
    let is_one_size = parts.iter().flat_map(|part| &part.lines).all(|line| line.points.len() == 1);
    match (parts.is_empty(), is_one_size) {
        (true, _) => return Ok(false),
        (false, true) => bars(plot.title, &parts, path)?,
        (false, false) => curves(plot.title, &parts, path)?,
    }
    Ok(true)
}

fn part<'a>(plot: &Plot, sheets: &[&'a Sheet], bench: &'a str) -> Option<Part<'a>> {
    let figures = sheets
        .iter()
        .flat_map(|sheet| &sheet.figures)
        .filter(|figure| figure.bench == bench && figure.key == plot.key);
    let unit = &figures.clone().next()?.unit;
    let ours = figures.clone().map(|figure| (figure.ours_name.as_str(), true));
    let peers = figures.clone().map(|figure| (figure.peer_name.as_str(), false));
    let lines = unique(ours.chain(peers)).into_iter();
    // That row is one of the others, once more.
    let lines = lines.filter(|(name, _)| !name.starts_with("best of "));
    let line = |(name, is_ours)| {
        let figure = |figure: &Figure| match is_ours {
            true => (figure.ours_name == name).then_some((figure.n as f64, figure.ours)),
            false => (figure.peer_name == name).then_some((figure.n as f64, figure.peer)),
        };
        let points = unique(figures.clone().filter_map(figure).filter(|(n, _)| *n > 0.0));
        Contestant { name, is_ours, points }
    };
    Some(Part { bench, unit, lines: lines.map(line).collect() })
}

/// A panel for each job, both axes logarithmic, and one legend. Ours are thick.
fn curves(title: &str, parts: &[Part<'_>], path: &Path) -> Outcome {
    let all = || parts.iter().flat_map(|part| &part.lines);
    let names = unique(all().map(|line| (line.name, line.is_ours)));
    let in_a_row = (WIDTH / NAME_WIDTH) as usize;
    let legend_height = NAME_HEIGHT * names.len().div_ceil(in_a_row) as u32;
    let rows = parts.len().div_ceil(ABREAST);
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
    for (part, area) in parts.iter().zip(below.split_evenly((rows, ABREAST))) {
        // Those that come first, ours, are drawn last: above the others.
        let lines = part.lines.iter().rev();
        let lines: Vec<_> =
            lines.map(|line| Line { name: line.name, points: above_zero(&line.points) }).collect();
        let (low, high) = y_range(&lines);
        let label = part.label();
        let panels = [Panel { y_label: &label, y: low..high, lines }];
        let (first, last) = x_range(&panels);
        let axes = [(first / 1.1, last * 1.5), (low, high)]
            .map(|(low, high)| (low..high).log_scale().with_key_points(ticks(low, high)));
        let [x, y] = axes;
        draw_panel(&area, &panels[0], "entries", x, y, stroke_of, false)?;
    }
    Ok(area.present()?)
}

/// A logarithm has no zero.
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

/// Powers of ten; where these are few, also what is twice and five times as much.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let factors: &[f64] = if high / low > FEW_TICKS { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let powers =
        (low.log10().floor() as i32..=high.log10().floor() as i32).map(|power| 10_f64.powi(power));
    let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * power));
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

/// Some more than the lines need.
fn y_range(lines: &[Line<'_>]) -> (f64, f64) {
    let all = || lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    (low / 1.2, high * 1.2)
}

/// A panel of bars for each job.
fn bars(title: &str, parts: &[Part<'_>], path: &Path) -> Outcome {
    let most = parts.iter().map(|part| part.lines.len()).max().unwrap_or(0) as u32;
    let rows = parts.len().div_ceil(ABREAST);
    let height = TITLE_HEIGHT + (BAR_HEIGHT * (most + 2)) * rows as u32;
    let area = canvas(path, title, height)?;
    for (part, area) in parts.iter().zip(area.split_evenly((rows, ABREAST))) {
        bars_of(part, &area)?;
    }
    Ok(area.present()?)
}

fn bars_of(part: &Part<'_>, area: &Area<'_>) -> Outcome {
    let (left, right) = BAR_MARGINS;
    let room = f64::from(area.dim_in_pixel().0 - left - right);
    let figures = part.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
    let highest = figures.fold(f64::MIN_POSITIVE, f64::max);
    let font = ("sans-serif", 14).into_font();
    area.draw(&Text::new(part.label(), (left as i32, 4), ("sans-serif", 16)))?;
    for (at, line) in part.lines.iter().enumerate() {
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
