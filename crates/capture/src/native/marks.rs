//! Marks of the reader: what was odd about a message.

/// The most marks of one message (the contract's bound).
const MAX_MARKS: usize = 64;

/// Marks, each once, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(Vec<String>);

impl Marks {
    /// Adds a mark: lower-case words joined by `.`, `_` or `-`.
    pub(crate) fn add(&mut self, mark: &str) {
        debug_assert!(cl_model::scalar::is_name(mark), "{mark}");
        if self.0.len() < MAX_MARKS && !self.has(mark) {
            self.0.push(mark.to_owned());
        }
    }

    pub(crate) fn add_if(&mut self, is_so: bool, mark: &str) {
        if is_so {
            self.add(mark);
        }
    }

    pub(crate) fn has(&self, mark: &str) -> bool {
        self.0.iter().any(|it| it == mark)
    }

    pub(crate) fn into_list(self) -> Vec<String> {
        self.0
    }
}
