//! What browsers send, read strictly.

use std::time::Duration;

use axum::body::Body;
use data_encoding::BASE64URL_NOPAD;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use zeroize::Zeroizing;

use crate::error::Error;

/// The longest form: an attestation of 16 KiB in base64url, and what is beside it.
pub(crate) const MAX_FORM_BYTES: usize = 64 * 1024;

/// The most fields of a form: a request has up to 64 selectors and 64 actions.
const MAX_FIELDS: usize = 192;

const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// The fields of a form, in their order. They may hold assertions, and do not print.
pub(crate) struct Form(Vec<(String, String)>);

/// Whether a body is a form. Anything else could be sent across sites without a browser asking first.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else {
        return false;
    };
    let value = value.to_str().unwrap_or_default();
    let (essence, parameters) = value.split_once(';').unwrap_or((value, ""));
    let parameters = parameters.trim();
    essence.trim().eq_ignore_ascii_case(MEDIA_TYPE)
        && (parameters.is_empty() || parameters.eq_ignore_ascii_case("charset=utf-8"))
}

impl Form {
    /// Reads a body whole, within bounds of size and time.
    pub(crate) async fn read(
        headers: &HeaderMap,
        body: Body,
        max_time: Duration,
    ) -> Result<Self, Error> {
        let announced = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        let limit = u64::try_from(MAX_FORM_BYTES).unwrap_or(u64::MAX);
        if announced.is_some_and(|length| length > limit) {
            return Err(Error::FormTooLarge);
        }
        let collected = Limited::new(body, MAX_FORM_BYTES).collect();
        match tokio::time::timeout(max_time, collected).await {
            Ok(Ok(whole)) => Self::parse(&whole.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Error::FormTooLarge),
            Ok(Err(_)) | Err(_) => Err(Error::FormIncomplete),
        }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut fields = Vec::new();
        for (name, value) in form_urlencoded::parse(bytes) {
            // What is not UTF-8 arrives as this character, which no field of ours has.
            if fields.len() == MAX_FIELDS || name.contains('\u{fffd}') || value.contains('\u{fffd}')
            {
                return Err(Error::Form("form"));
            }
            fields.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(fields))
    }

    /// A field that is there once.
    pub(crate) fn one(&self, name: &'static str) -> Result<&str, Error> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value),
            (None | Some(_), _) => Err(Error::Form(name)),
        }
    }

    /// A field that is there at most once.
    pub(crate) fn optional(&self, name: &'static str) -> Result<Option<&str>, Error> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(Error::Form(name)),
        }
    }

    /// All values of a field.
    pub(crate) fn all<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a str> {
        let named = move |(found, _): &&(String, String)| found == name;
        self.0.iter().filter(named).map(|(_, value)| value.as_str())
    }

    /// A field of bytes in unpadded base64url, from `min` to `max` of them.
    pub(crate) fn bytes(
        &self,
        name: &'static str,
        min: usize,
        max: usize,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let decoded = BASE64URL_NOPAD.decode(self.one(name)?.as_bytes());
        let bytes = Zeroizing::new(decoded.map_err(|_| Error::Form(name))?);
        if (min..=max).contains(&bytes.len()) {
            return Ok(bytes);
        }
        Err(Error::Form(name))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn is_form_type(value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        is_form(&headers)
    }

    #[test]
    fn only_forms_are_forms() {
        assert!(is_form_type("application/x-www-form-urlencoded"));
        assert!(is_form_type(
            "Application/X-WWW-Form-Urlencoded; charset=UTF-8"
        ));
        for other in [
            "",
            "text/plain",
            "application/json",
            "multipart/form-data; boundary=a",
            "application/x-www-form-urlencoded, text/plain",
            "application/x-www-form-urlencoded; charset=utf-16",
        ] {
            assert!(!is_form_type(other), "{other}");
        }
        assert!(!is_form(&HeaderMap::new()));
    }

    #[test]
    fn a_field_is_there_once_or_refused() {
        let form = Form::parse(b"a=1&b=2&b=3&c=QUI&d=QUJ").unwrap();
        assert_eq!(form.one("a").unwrap(), "1");
        assert!(form.one("b").is_err());
        assert!(form.optional("b").is_err());
        assert_eq!(form.all("b").collect::<Vec<_>>(), ["2", "3"]);
        assert_eq!(form.optional("x").unwrap(), None);
        assert!(form.one("x").is_err());
        assert_eq!(&**form.bytes("c", 1, 2).unwrap(), b"AB");
        assert!(form.bytes("c", 3, 4).is_err());
        assert!(form.bytes("d", 1, 2).is_err(), "trailing bits");
    }

    #[test]
    fn what_no_browser_sends_is_refused() {
        assert!(Form::parse(b"a=%ff").is_err());
        let many = "a=1&".repeat(MAX_FIELDS + 1);
        assert!(Form::parse(many.as_bytes()).is_err());
        assert!(Form::parse(&many.as_bytes()[4..]).is_ok());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            if let Ok(form) = Form::parse(&bytes) {
                let _ = form.bytes("a", 0, 10);
                prop_assert!(form.0.len() <= MAX_FIELDS);
            }
        }

        #[test]
        fn what_a_browser_writes_reads_back(
            fields in proptest::collection::vec(("[a-z]{1,8}", "[^\u{fffd}]{0,40}"), 0..20),
        ) {
            let mut text = form_urlencoded::Serializer::new(String::new());
            text.extend_pairs(&fields);
            let form = Form::parse(text.finish().as_bytes()).unwrap();
            prop_assert_eq!(form.0, fields);
        }
    }
}
