//! Diagrams of the growth measurements.

use super::Report;
use crate::Result;
use plotters::prelude::*;
use std::path::Path;

/// The quantity that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Connections.
    Connections,
    /// Credentials of one organization.
    Credentials,
    /// Organizations that save concurrently.
    Organizations,
}

impl Axis {
    /// Returns the label of the axis.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Credentials => "credentials in one organization",
            Self::Organizations => "organizations",
        }
    }
}

/// One point of a curve.
pub(crate) struct Point {
    /// The measured operation.
    pub(crate) what: &'static str,
    /// The quantity that grows.
    pub(crate) axis: Axis,
    /// Its value.
    pub(crate) at: f64,
    /// The rate at this value, in responses per second.
    pub(crate) rate: f64,
}

/// Draws the curves of all reports, with one diagram for each axis.
pub(crate) fn draw(reports: &[Report], path: &Path) -> Result<()> {
    const COLOURS: [RGBColor; 4] =
        [RGBColor(0, 90, 160), RGBColor(0, 150, 110), RGBColor(190, 80, 0), RGBColor(140, 40, 120)];
    let root = SVGBackend::new(path, (820, 1_020)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, axis) in
        root.split_evenly((3, 1)).iter().zip([Axis::Connections, Axis::Credentials, Axis::Organizations])
    {
        let points = || reports.iter().flat_map(|report| &report.points).filter(|point| point.axis == axis);
        let (most, fastest) = points().fold((1.0_f64, 1.0_f64), |(x, y), point| (x.max(point.at), y.max(point.rate)));
        let least = points().fold(most, |x, point| x.min(point.at));
        let mut chart = ChartBuilder::on(area)
            .caption(format!("answers a second by {}", axis.name()), ("sans-serif", 18))
            .margin(14)
            .x_label_area_size(34)
            .y_label_area_size(64)
            .build_cartesian_2d((least..most * 1.01).log_scale(), 0.0..fastest * 1.1)?;
        let whole = |number: &f64| format!("{number:.0}");
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).x_desc(axis.name()).x_label_formatter(&whole).y_label_formatter(&whole);
        mesh.draw()?;
        for (place, (report, what)) in
            reports.iter().flat_map(|report| [(report, "save"), (report, "list")]).enumerate()
        {
            let curve: Vec<_> = report.points.iter().filter(|point| point.axis == axis && point.what == what).collect();
            if curve.is_empty() {
                continue;
            }
            let colour = COLOURS[place % COLOURS.len()];
            let line = LineSeries::new(curve.iter().map(|point| (point.at, point.rate)), colour.stroke_width(2));
            let label = if what == "list" { "list of 100" } else { "save" };
            chart
                .draw_series(line)?
                .label(format!("{label}, {}", report.database))
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
            chart.draw_series(curve.iter().map(|point| Circle::new((point.at, point.rate), 3, colour.filled())))?;
        }
        let place =
            if axis == Axis::Organizations { SeriesLabelPosition::UpperRight } else { SeriesLabelPosition::LowerRight };
        let mut legend = chart.configure_series_labels();
        legend.position(place).background_style(WHITE.mix(0.8)).border_style(BLACK.mix(0.3)).draw()?;
    }
    root.present()?;
    Ok(())
}
