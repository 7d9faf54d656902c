//! Which components are open at a line. What is never closed ends with what is around it, or where a
//! component begins that it cannot hold; an end of nothing that is open says nothing.

/// The most components in each other that are followed.
pub(super) const MAX_DEPTH: usize = 8;

/// The longest name that is told from others.
const MAX_NAME_BYTES: usize = 64;

/// Components that stand in a calendar and in nothing else.
const IN_A_CALENDAR: &[&[u8]] = &[b"VEVENT", b"VTODO", b"VJOURNAL", b"VFREEBUSY", b"VTIMEZONE"];

const CALENDAR: &[u8] = b"VCALENDAR";

/// The names of the open components, the outermost first.
#[derive(Default)]
pub(super) struct Nesting(Vec<Vec<u8>>);

/// What the begin of a component comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// It is open, and so many that were open have ended before it.
    After(usize),
    /// It is nested too deep, and is not followed.
    TooDeep,
}

impl Nesting {
    /// How many components are open.
    pub(super) fn depth(&self) -> usize {
        self.0.len()
    }

    /// A component begins.
    pub(super) fn begin(&mut self, name: &[u8]) -> Begun {
        let name = plain(name);
        let keeps = if name == CALENDAR {
            0
        } else if IN_A_CALENDAR.contains(&name.as_slice()) {
            usize::from(self.0.first().is_some_and(|outer| outer == CALENDAR))
        } else {
            self.depth()
        };
        if keeps == MAX_DEPTH {
            return Begun::TooDeep;
        }
        let ended = self.depth() - keeps;
        self.0.truncate(keeps);
        self.0.push(name);
        Begun::After(ended)
    }

    /// A component ends: how many end with it, itself included.
    pub(super) fn end(&mut self, name: &[u8]) -> usize {
        let name = plain(name);
        let at = self.0.iter().rposition(|open| *open == name);
        let ended = at.map_or(0, |at| self.depth() - at);
        self.0.truncate(self.depth() - ended);
        ended
    }
}

fn plain(name: &[u8]) -> Vec<u8> {
    name[..name.len().min(MAX_NAME_BYTES)].to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_ends_with_what_is_around_it() {
        let mut nesting = Nesting::default();
        for name in ["VCALENDAR", "vevent", "VALARM"] {
            assert_eq!(nesting.begin(name.as_bytes()), Begun::After(0));
        }
        assert_eq!(nesting.end(b"VTODO"), 0);
        assert_eq!(nesting.end(b"VEVENT"), 2);
        assert_eq!(nesting.depth(), 1);
        assert_eq!(nesting.begin(b"VEVENT"), Begun::After(0));
        assert_eq!(nesting.begin(b"VEVENT"), Begun::After(1));
        assert_eq!(nesting.begin(b"VCALENDAR"), Begun::After(2));
        assert_eq!(nesting.end(b"vcalendar"), 1);
        assert_eq!(nesting.depth(), 0);
    }

    #[test]
    fn depth_is_bounded() {
        let mut nesting = Nesting::default();
        for _ in 0..MAX_DEPTH {
            assert_eq!(nesting.begin(b"A"), Begun::After(0));
        }
        assert_eq!(nesting.begin(b"A"), Begun::TooDeep);
        assert_eq!(nesting.begin(b"VEVENT"), Begun::After(MAX_DEPTH));
        assert_eq!(nesting.depth(), 1);
    }
}
