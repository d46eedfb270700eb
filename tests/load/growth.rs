//! Rates as a function of the number of connections, credentials and organizations.

use crate::Options;
use crate::bench::{Bench, LIST, VAULT, save};
use crate::engine::{Sample, run};
use crate::report::Row;
use plotters::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const AXES: [&str; 3] = ["connections", "credentials in one organization", "organizations"];
/// Number of connections while another number grows.
const USUAL: usize = 64;

/// Measures all curves.
pub(crate) fn measure(options: &Options, bench: &Bench<'_>) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let saves = |connections, tokens: &[String]| {
        run(&bench.api, connections, Some(options.length()), |caller| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let token = &tokens[number % tokens.len()];
                caller.send("PATCH", VAULT, token, Some(&save(number)))?.expect(201);
            }
        })
    };
    let lists = |connections, token: &str| {
        run(&bench.api, connections, Some(options.length()), |caller| {
            loop {
                caller.send("GET", LIST, token, None)?.expect(200);
            }
        })
    };
    let point = |what: &str, sample: Sample, axis: usize, at: usize| {
        let mut row = sample.row(bench.name(&format!("{what}, {at} {}", AXES[axis])));
        row.values.push((AXES[axis], at as f64));
        row
    };
    let mut rows = Vec::new();
    let one = bench.editor("Growth");
    let mut filled = bench.fill(&one, 1_000).len();
    let saving = [bench.editor("GrowthSaves")];
    for connections in [1, 4, 16, 64, 256] {
        rows.push(point("list", lists(connections, &one), 0, connections));
        rows.push(point("save", saves(connections, &saving), 0, connections));
    }
    for size in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|size| *size <= options.rows.max(1_000)) {
        filled += bench.fill(&one, size.saturating_sub(filled)).len();
        rows.push(point("list", lists(USUAL, &one), 1, size));
        rows.push(point("save", saves(USUAL, std::slice::from_ref(&one)), 1, size));
    }
    let mut editors = Vec::new();
    for count in [1, 8, 64, 256, 1_024, 10_000].into_iter().filter(|count| *count <= options.organizations) {
        editors.extend(bench.editors("Growth", editors.len()..count));
        rows.push(point("save", saves(USUAL, &editors), 2, count));
    }
    rows
}

/// Draws the curves, with one diagram for each axis.
pub(crate) fn draw(rows: &[Row], path: &Path) {
    try_draw(rows, path).expect("the diagram can be drawn");
}

fn try_draw(rows: &[Row], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    const COLOURS: [RGBColor; 4] =
        [RGBColor(0, 90, 160), RGBColor(0, 150, 110), RGBColor(190, 80, 0), RGBColor(140, 40, 120)];
    let root = SVGBackend::new(path, (820, 1_020)).into_drawing_area();
    root.fill(&WHITE)?;
    for (area, axis) in root.split_evenly((3, 1)).iter().zip(AXES) {
        // Label, position and rate of each point.
        let points: Vec<(String, f64, f64)> = rows
            .iter()
            .filter_map(|row| {
                let value = |wanted: &str| Some(row.values.iter().find(|(name, _)| *name == wanted)?.1);
                let (what, database) = (row.name.split(',').next()?, row.name.rsplit(", ").next()?);
                Some((format!("{what}, {database}"), value(axis)?, value("per s")?))
            })
            .collect();
        let (most, fastest) = points.iter().fold((1.0_f64, 1.0_f64), |(x, y), point| (x.max(point.1), y.max(point.2)));
        let least = points.iter().fold(most, |x, point| x.min(point.1));
        let mut chart = ChartBuilder::on(area)
            .caption(format!("responses per second by {axis}"), ("sans-serif", 18))
            .margin(14)
            .x_label_area_size(34)
            .y_label_area_size(64)
            .build_cartesian_2d((least..most * 1.01).log_scale(), 0.0..fastest * 1.1)?;
        let whole = |number: &f64| format!("{number:.0}");
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).x_desc(axis).x_label_formatter(&whole).y_label_formatter(&whole).draw()?;
        let labels: std::collections::BTreeSet<_> = points.iter().map(|point| &point.0).collect();
        for (label, colour) in labels.into_iter().zip(COLOURS) {
            let curve: Vec<_> = points.iter().filter(|point| point.0 == *label).map(|(_, x, y)| (*x, *y)).collect();
            chart
                .draw_series(LineSeries::new(curve.iter().copied(), colour.stroke_width(2)))?
                .label(label)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
            chart.draw_series(curve.into_iter().map(|point| Circle::new(point, 3, colour.filled())))?;
        }
        let mut legend = chart.configure_series_labels();
        legend.position(SeriesLabelPosition::LowerRight).background_style(WHITE.mix(0.8)).draw()?;
    }
    root.present()?;
    Ok(())
}
