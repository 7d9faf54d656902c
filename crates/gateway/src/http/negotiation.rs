//! Protocol version and media type (spec 10.1).

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

use crate::error::Binding;

/// The media type of bodies in both directions.
pub(super) const MEDIA_TYPE: &str = "application/vnd.context-layer+json";

/// The version that is served.
pub(crate) const VERSION: &str = "0.2-draft";

/// The header that names the version.
pub(super) const VERSION_HEADER: HeaderName = HeaderName::from_static("context-layer-version");

pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Binding> {
    let mut values = headers.get_all(VERSION_HEADER).iter();
    match (values.next(), values.next()) {
        (None, _) => Err(Binding::VersionMissing),
        (Some(value), None) if value == VERSION => Ok(()),
        (Some(_), _) => Err(Binding::VersionUnsupported),
    }
}

/// Parameters, such as a charset, change nothing about JSON and are let pass.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Binding> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(Binding::MediaType);
    };
    let text = value.to_str().map_err(|_| Binding::MediaType)?;
    if essence(text).eq_ignore_ascii_case(MEDIA_TYPE) {
        return Ok(());
    }
    Err(Binding::MediaType)
}

/// Refuses only a header that leaves the media type out. Of several ranges that match, the most
/// specific one counts (RFC 9110 section 12.5.1).
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), Binding> {
    let mut best: Option<(u8, bool)> = None;
    let mut is_asked = false;
    for value in headers.get_all(ACCEPT) {
        let text = value.to_str().map_err(|_| Binding::NotAcceptable)?;
        for range in text.split(',').filter(|range| !range.trim().is_empty()) {
            is_asked = true;
            let Some(specificity) = specificity(essence(range)) else {
                continue;
            };
            let is_better = best.is_none_or(|(found, _)| specificity > found);
            if is_better {
                best = Some((specificity, !is_zero_weight(range)));
            }
        }
    }
    match best {
        Some((_, true)) => Ok(()),
        None if !is_asked => Ok(()),
        Some((_, false)) | None => Err(Binding::NotAcceptable),
    }
}

fn essence(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

fn specificity(range: &str) -> Option<u8> {
    if range.eq_ignore_ascii_case(MEDIA_TYPE) {
        return Some(2);
    }
    match range {
        "*/*" => Some(0),
        range if range.eq_ignore_ascii_case("application/*") => Some(1),
        _ => None,
    }
}

fn is_zero_weight(range: &str) -> bool {
    range.split(';').skip(1).any(|parameter| {
        let Some((name, weight)) = parameter.split_once('=') else {
            return false;
        };
        let is_zero = weight.trim().parse().is_ok_and(|weight: f64| weight <= 0.0);
        name.trim().eq_ignore_ascii_case("q") && is_zero
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, HeaderValue::try_from(*value).unwrap());
        }
        headers
    }

    #[test]
    fn the_version_is_named_once_and_exactly() {
        let check = |values: &[&str]| check_version(&headers(VERSION_HEADER, values));
        assert_eq!(check(&["0.2-draft"]), Ok(()));
        assert_eq!(check(&[]), Err(Binding::VersionMissing));
        for values in [
            &["0.2"][..],
            &[""],
            &["0.2-DRAFT"],
            &["0.2-draft", "0.2-draft"],
        ] {
            assert_eq!(
                check(values),
                Err(Binding::VersionUnsupported),
                "{values:?}"
            );
        }
    }

    #[test]
    fn the_content_type_may_have_parameters() {
        let check = |values: &[&str]| check_content_type(&headers(CONTENT_TYPE, values));
        for good in [
            MEDIA_TYPE,
            "Application/Vnd.Context-Layer+JSON",
            "application/vnd.context-layer+json; charset=utf-8",
            "application/vnd.context-layer+json;charset=\"utf-8\"",
        ] {
            assert_eq!(check(&[good]), Ok(()), "{good}");
        }
        for bad in [
            &[][..],
            &["application/json"],
            &[""],
            &["text/plain"],
            &[MEDIA_TYPE; 2],
        ] {
            assert_eq!(check(bad), Err(Binding::MediaType), "{bad:?}");
        }
    }

    #[test]
    fn accept_counts_by_the_most_specific_range() {
        let check = |values: &[&str]| check_accept(&headers(ACCEPT, values)).is_ok();
        for good in [
            &[][..],
            &[""],
            &["*/*"],
            &["application/*;q=0.1"],
            &["text/html, application/vnd.context-layer+json;q=0.5"],
            &["text/html", "*/*"],
            &["*/*;q=0, application/vnd.context-layer+json"],
            &["application/vnd.context-layer+json; q=1.0; version=1"],
        ] {
            assert!(check(good), "{good:?}");
        }
        for bad in [
            &["text/html"][..],
            &["application/json"],
            &["*/*;q=0"],
            &["*/*, application/vnd.context-layer+json;q=0"],
            &["application/vnd.context-layer+json;q=0.000, application/*"],
        ] {
            assert!(!check(bad), "{bad:?}");
        }
    }
}
