//! Content lines and components as they stand (RFC 5545, 3.1), read tolerantly: a line that is none
//! costs nothing but itself.

use super::nesting::{Begun, Nesting};

/// A property.
#[derive(Debug)]
pub(super) struct Property {
    /// In upper case.
    pub(super) name: String,
    /// Names in upper case, and values without quotes.
    parameters: Vec<(String, String)>,
    /// As written.
    pub(super) value: String,
}

/// A component.
#[derive(Debug, Default)]
pub(super) struct Component {
    /// In upper case.
    pub(super) name: String,
    pub(super) properties: Vec<Property>,
    pub(super) children: Vec<Component>,
    /// Its end was missing: some of it may be too.
    pub(super) is_cut: bool,
}

impl Property {
    /// Reads one unfolded line.
    fn parse(line: &str) -> Option<Self> {
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '.';
        let end = line.find(|it: char| !is_name(it))?;
        let (name, mut rest) = line.split_at(end);
        // A group in front of the name, as in cards.
        let name = name.rsplit('.').next().unwrap_or_default();
        let mut parameters = Vec::new();
        while let Some(parameter) = rest.strip_prefix(';') {
            let length = unquoted(parameter, ";:")?;
            let (parameter, after) = parameter.split_at(length);
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            parameters.push((
                name.trim().to_ascii_uppercase(),
                value.replace('"', "").trim().to_owned(),
            ));
            rest = after;
        }
        let value = rest.strip_prefix(':')?;
        (!name.is_empty()).then(|| Self {
            name: name.to_ascii_uppercase(),
            parameters,
            value: value.trim().to_owned(),
        })
    }

    /// The value of a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The value as text: without its escapes (RFC 5545, 3.3.11).
    pub(super) fn text(&self) -> String {
        let mut text = String::with_capacity(self.value.len());
        let mut characters = self.value.chars();
        while let Some(character) = characters.next() {
            if character != '\\' {
                text.push(character);
                continue;
            }
            match characters.next() {
                Some('n' | 'N') => text.push('\n'),
                Some(escaped) => text.push(escaped),
                None => text.push('\\'),
            }
        }
        text
    }
}

/// Where the first of some characters stands that is in no quotes.
fn unquoted(text: &str, stops: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.find(|it: char| {
        is_quoted ^= it == '"';
        !is_quoted && stops.contains(it)
    })
}

impl Component {
    /// Reads unfolded text to a component without a name, in which the outermost ones are.
    pub(super) fn parse(text: &str) -> Self {
        let mut nesting = Nesting::default();
        let mut open = vec![Self::default()];
        for line in text.lines() {
            let Some(property) = Property::parse(line) else {
                continue;
            };
            match property.name.as_str() {
                "BEGIN" => {
                    let Begun::After(ended) = nesting.begin(property.value.as_bytes()) else {
                        continue;
                    };
                    for _ in 0..ended {
                        close(&mut open, true);
                    }
                    open.push(Self {
                        name: property.value.to_ascii_uppercase(),
                        ..Self::default()
                    });
                }
                "END" => {
                    let ended = nesting.end(property.value.as_bytes());
                    for left in (0..ended).rev() {
                        close(&mut open, left > 0);
                    }
                }
                _ => {
                    if let Some(component) = open.last_mut() {
                        component.properties.push(property);
                    }
                }
            }
        }
        while open.len() > 1 {
            close(&mut open, true);
        }
        open.pop().unwrap_or_default()
    }

    /// The first property of a name.
    pub(super) fn find(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|it| it.name == name)
    }

    /// The properties of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Property> + 'a {
        self.properties.iter().filter(move |it| it.name == name)
    }

    /// The value of the first property of a name, in upper case.
    pub(super) fn keyword(&self, name: &str) -> Option<String> {
        self.find(name).map(|it| it.value.to_ascii_uppercase())
    }
}

fn close(open: &mut Vec<Component>, is_cut: bool) {
    if open.len() > 1
        && let Some(mut component) = open.pop()
        && let Some(around) = open.last_mut()
    {
        component.is_cut = is_cut;
        around.children.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_parameters_and_values() {
        let line = "attendee;CN=\"Doe; Jane: x\";X=1;role=CHAIR:mailto:j@b.example";
        let property = Property::parse(line).unwrap();
        assert_eq!(property.name, "ATTENDEE");
        assert_eq!(property.parameter("CN"), Some("Doe; Jane: x"));
        assert_eq!(property.parameter("ROLE"), Some("CHAIR"));
        assert_eq!(property.parameter("Y"), None);
        assert_eq!(property.value, "mailto:j@b.example");
        for line in ["", ":", "no colon", ";x:y", "A;B=\"open:c", "\u{e9}:x"] {
            assert!(Property::parse(line).is_none(), "{line}");
        }
        let text = Property::parse(r"SUMMARY:a\, b\; c\\ d\nE\")
            .unwrap()
            .text();
        assert_eq!(text, "a, b; c\\ d\nE\\");
    }

    #[test]
    fn components_end_with_what_is_around_them() {
        let root =
            Component::parse("END:X\nBEGIN:A\nP:1\nBEGIN:B\nQ:2\nEND:B\nR:3\nno line\nBEGIN:C");
        let outer = &root.children[0];
        assert_eq!((outer.name.as_str(), outer.properties.len()), ("A", 2));
        let names: Vec<_> = outer.children.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["B", "C"]);
        let cut: Vec<_> = outer.children.iter().map(|it| it.is_cut).collect();
        assert_eq!(cut, [false, true]);
        assert!(outer.is_cut);
    }
}
