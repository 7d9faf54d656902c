//! Names a member of a message or document without repeating anything the sender wrote.

use std::fmt::{self, Display, Formatter};

use cl_model::scalar::PolicyName;

/// A path to one member, as `BadRequest` writes it: `selectors[3].predicate`.
///
/// It is built from names known at compile time, from positions, and from the names that operators
/// give to their policies, so that an error cannot carry other text of the input back to its sender
/// or into a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(&'static str),
    Index(usize),
    Policy(PolicyName),
}

impl FieldPath {
    /// The member of the outermost message or document with this name.
    pub fn new(field: &'static str) -> Self {
        Self {
            steps: vec![Step::Field(field)],
        }
    }

    /// The member with this name inside.
    #[must_use]
    pub fn field(mut self, field: &'static str) -> Self {
        self.steps.push(Step::Field(field));
        self
    }

    /// The element at this position inside, counted from 0.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.steps.push(Step::Index(index));
        self
    }

    /// The policy with this name inside.
    #[must_use]
    pub fn entry(mut self, name: &PolicyName) -> Self {
        self.steps.push(Step::Policy(name.clone()));
        self
    }
}

impl From<&'static str> for FieldPath {
    fn from(field: &'static str) -> Self {
        Self::new(field)
    }
}

impl Display for FieldPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, step) in self.steps.iter().enumerate() {
            match step {
                Step::Field(field) if position == 0 => f.write_str(field)?,
                Step::Field(field) => write!(f, ".{field}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Policy(name) => write!(f, "[{name}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_with_dots_and_brackets() {
        assert_eq!(FieldPath::from("tenant").to_string(), "tenant");
        let path = FieldPath::new("request")
            .field("selectors")
            .index(3)
            .field("predicate");
        assert_eq!(path.to_string(), "request.selectors[3].predicate");
    }
}
