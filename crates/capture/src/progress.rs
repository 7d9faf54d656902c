//! How far a run is, on a terminal.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::Report;
use crate::source;

/// The look of a bar: bytes that were handed over of those that are there.
const TEMPLATE: &str = "{bar:24} {bytes} of {total_bytes}, {msg}, {eta} left";

/// A progress bar on standard error; none where that is no terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Begins at nothing of what is under a path.
    pub(crate) fn start(path: &Path) -> Self {
        if !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let target = ProgressDrawTarget::stderr();
        let bar = ProgressBar::with_draw_target(Some(source::size(path)), target);
        let style = ProgressStyle::with_template(TEMPLATE);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows how far it is.
    pub(crate) fn show(&self, report: &Report) {
        self.0.set_position(report.read_bytes);
        self.0.set_message(message(report));
    }

    /// Takes the bar off the terminal.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

fn message(report: &Report) -> String {
    format!(
        "{} captured, {} known, {} marked, {} refused",
        report.captured,
        report.duplicates,
        report.marked,
        report.refused_total()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_has_a_style_and_names_no_content() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
        let report = Report {
            captured: 3,
            duplicates: 2,
            marked: 1,
            ..Report::default()
        };
        let expected = "3 captured, 2 known, 1 marked, 0 refused";
        assert_eq!(message(&report), expected);
    }
}
