//! Answers: tables for people, JSON for machines.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::error::Error;

/// Where and in which form answers go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    is_json: bool,
}

impl Output {
    pub(crate) const fn new(is_json: bool) -> Self {
        Self { is_json }
    }

    /// Whether answers are for machines.
    pub(crate) const fn is_json(self) -> bool {
        self.is_json
    }

    /// Answers with a document for machines, or with text for people.
    pub(crate) fn answer(
        self,
        document: &Value,
        text: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let text = if self.is_json {
            format!("{document:#}\n")
        } else {
            text()
        };
        write_out(&text)
    }

    /// A secret that was asked for, as it is: nothing around it, so that a shell can take it.
    pub(crate) fn secret(self, document: &Value, secret: &str) -> Result<(), Error> {
        self.answer(document, || format!("{secret}\n"))
    }

    /// A document whose bytes matter: as they are, in both forms.
    pub(crate) fn exact(self, text: &str) -> Result<(), Error> {
        write_out(&format!("{text}\n"))
    }

    /// Says what goes on. Not a part of the answer.
    pub(crate) fn note(self, text: &str) {
        // Nobody is left to tell when stderr is closed.
        let _written = writeln!(io::stderr(), "{}", printable(text));
    }

    /// Says why the command failed, and what to do next.
    pub(crate) fn fail(self, error: &Error) {
        let (text, next) = (error.to_string(), error.next());
        let shown = if self.is_json {
            let mut document = json!({
                "error": {"code": error.code(), "message": text, "next": next},
            });
            if let Some(place) = error.place() {
                document["error"]["place"] = place.into();
            }
            format!("{document:#}")
        } else {
            let lines = text.lines().map(printable).collect::<Vec<_>>().join("\n");
            match next {
                Some(next) => format!("clctl: {lines}\n  next: {}", printable(&next)),
                None => format!("clctl: {lines}"),
            }
        };
        // As above.
        let _written = writeln!(io::stderr(), "{shown}");
    }
}

fn write_out(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Error::Output)
}

/// Text from elsewhere, fit for a terminal: control characters would be orders to it.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|character| {
            if character.is_control() {
                '\u{fffd}'
            } else {
                character
            }
        })
        .collect()
}

/// A table with a header. Cells come from elsewhere and are made printable.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let header = header.map(str::to_owned);
    let rows: Vec<[String; N]> = std::iter::once(header)
        .chain(rows.iter().cloned())
        .map(|row| row.map(|cell| printable(&cell)))
        .collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Names and what they stand for, one a line.
pub(crate) fn fields(fields: &[(&str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    fields
        .iter()
        .map(|(name, value)| format!("{name:width$}  {}\n", printable(value)))
        .collect()
}

/// A list in one cell.
pub(crate) fn joined<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = texts
        .into_iter()
        .map(|text| text.as_ref().to_owned())
        .collect();
    if texts.is_empty() {
        return "-".to_owned();
    }
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [
            ["ä".to_owned(), "b".to_owned()],
            ["long".to_owned(), String::new()],
        ];
        assert_eq!(table(["x", "y"], &rows), "x     y\nä     b\nlong\n");
    }

    #[test]
    fn fields_line_up() {
        let shown = fields(&[("a", "1".to_owned()), ("bcd", "2".to_owned())]);
        assert_eq!(shown, "a    1\nbcd  2\n");
        assert_eq!(joined(["a", "b"]), "a, b");
        assert_eq!(joined::<&str>([]), "-");
    }

    #[test]
    fn a_terminal_gets_no_orders() {
        let rows = [["\u{1b}[2Jx\n".to_owned()]];
        let shown = table(["h"], &rows);
        assert_eq!(shown, "h\n\u{fffd}[2Jx\u{fffd}\n");
    }
}
