//! A wrapper for values that must not reach logs, metrics or error texts.

use std::fmt;

/// A private value: prints as `[private]`, has no `Serialize`, opens only by name.
///
/// `T` needs no trait for that, so a raw claim or a token can be wrapped as it is. Wrap
/// `Zeroizing<..>` when the bytes should also be wiped.
#[derive(Clone, Copy, Default)]
pub struct Private<T>(T);

impl<T> Private<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself; the caller takes over that it stays out of logs.
    pub const fn expose(&self) -> &T {
        &self.0
    }

    /// Unwraps the value.
    pub fn into_exposed(self) -> T {
        self.0
    }
}

impl<T> From<T> for Private<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> fmt::Debug for Private<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[private]")
    }
}

impl<T> fmt::Display for Private<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[private]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_nothing_of_the_value() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "only its Debug form is looked at")]
        struct Holder {
            token: Private<String>,
        }
        let token = Private::new("hunter2".to_owned());
        assert_eq!(
            format!("{token} {token:?} {token:#?}"),
            "[private] [private] [private]"
        );
        assert_eq!(token.expose(), "hunter2");
        let holder = Holder { token };
        assert!(!format!("{holder:?}").contains("hunter2"));
    }
}
