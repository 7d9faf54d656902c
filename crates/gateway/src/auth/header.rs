//! The `Authorization` header (RFC 6750 section 2.1).

use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::InvalidToken;

const SCHEME: &str = "bearer";

/// A bearer token as a call showed it. It never prints.
#[derive(Clone, Copy)]
pub struct Bearer<'a>(&'a str);

impl<'a> Bearer<'a> {
    /// The one bearer token of a call, if it shows any credential in its headers.
    pub fn find(headers: &'a HeaderMap) -> Result<Option<Self>, InvalidToken> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => {
                let text = value.to_str().map_err(|_| InvalidToken::Header)?;
                Self::parse(text).map(Some)
            }
            (Some(_), Some(_)) => Err(InvalidToken::Header),
        }
    }

    /// Reads a header's value: the scheme in any letter case, one space, and the token.
    pub fn parse(value: &'a str) -> Result<Self, InvalidToken> {
        let (scheme, token) = value.split_once(' ').ok_or(InvalidToken::Header)?;
        if !scheme.eq_ignore_ascii_case(SCHEME) || !is_token68(token) {
            return Err(InvalidToken::Header);
        }
        Ok(Self(token))
    }

    pub(super) fn token(&self) -> &'a str {
        self.0
    }
}

impl fmt::Debug for Bearer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer")
    }
}

fn is_token68(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty()
        && body
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_one_token_with_its_scheme_in_any_case() {
        for value in ["Bearer a.b.c", "bearer a.b.c", "BEARER a.b.c"] {
            assert_eq!(Bearer::parse(value).unwrap().token(), "a.b.c");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for value in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer  a",
            " Bearer a",
            "Bearer a ",
            "Bearer a b",
            "Bearer a,b",
            "Bearer\ta",
            "Basic YTpi",
            "DPoP a.b.c",
            "a.b.c",
            "Bearer =",
            "Bearer a=b",
            "Bearer \u{e9}",
        ] {
            assert!(Bearer::parse(value).is_err(), "{value:?}");
        }
    }

    #[test]
    fn two_headers_are_none() {
        let mut headers = HeaderMap::new();
        assert!(Bearer::find(&headers).unwrap().is_none());
        headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        assert!(Bearer::find(&headers).unwrap().is_some());
        headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        assert_eq!(Bearer::find(&headers).err(), Some(InvalidToken::Header));
    }

    proptest! {
        #[test]
        fn foreign_text_never_panics_and_what_is_read_has_no_space(text in "(?s).{0,64}") {
            if let Ok(bearer) = Bearer::parse(&text) {
                prop_assert!(!bearer.token().contains(' '));
            }
        }
    }
}
