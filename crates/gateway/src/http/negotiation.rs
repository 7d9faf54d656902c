//! Protocol version and media type (spec 10.1).

use cl_model::delivery;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

use crate::error::Binding;
use crate::waiting::Wait;

/// The media type of bodies in both directions.
pub(super) const MEDIA_TYPE: &str = "application/vnd.context-layer+json";

/// The version that is served.
pub(crate) const VERSION: &str = "0.2-draft";

/// The header that names the version.
pub(super) const VERSION_HEADER: HeaderName = HeaderName::from_static("context-layer-version");

const PREFER: HeaderName = HeaderName::from_static("prefer");

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

/// Refuses only a header that leaves the media type out.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), Binding> {
    let wanted = wanted(headers, MEDIA_TYPE)?;
    if wanted.weight > 0.0 {
        return Ok(());
    }
    Err(Binding::NotAcceptable)
}

/// How long the caller prefers to wait for a final state (RFC 7240 section 4.3). A preference that is
/// not understood is none, and the first of several counts.
pub(super) fn wait(headers: &HeaderMap) -> Option<Wait> {
    let values = headers.get_all(PREFER).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let mut preferences = texts.flat_map(|text| text.split(','));
    let seconds = preferences.find_map(|preference| {
        let (name, value) = essence(preference).split_once('=')?;
        let is_wait = name.trim().eq_ignore_ascii_case("wait");
        is_wait.then(|| value.trim().trim_matches('"').to_owned())
    })?;
    let is_number = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Wait::at_most(seconds.parse().unwrap_or(u64::MAX)))
}

/// The two forms of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundleForm {
    /// The envelope alone, in the protocol's media type.
    Envelope,
    /// All of the delivery, in its own media type.
    Delivery,
}

/// Which form a caller wants: the delivery only if it is named, and not less wanted.
pub(super) fn bundle_form(headers: &HeaderMap) -> Result<BundleForm, Binding> {
    let envelope = wanted(headers, MEDIA_TYPE)?;
    let delivery = wanted(headers, delivery::MEDIA_TYPE)?;
    if delivery.is_named && delivery.weight > 0.0 && delivery.weight >= envelope.weight {
        return Ok(BundleForm::Delivery);
    }
    if envelope.weight > 0.0 {
        return Ok(BundleForm::Envelope);
    }
    Err(Binding::NotAcceptable)
}

/// How much a media type is wanted.
struct Wanted {
    /// 0 means not at all.
    weight: f64,
    /// By its own name, and not by a range.
    is_named: bool,
}

/// Of several ranges that match, the most specific one counts (RFC 9110 section 12.5.1).
fn wanted(headers: &HeaderMap, media_type: &str) -> Result<Wanted, Binding> {
    let mut best: Option<(u8, f64)> = None;
    let mut is_asked = false;
    for value in headers.get_all(ACCEPT) {
        let text = value.to_str().map_err(|_| Binding::NotAcceptable)?;
        for range in text.split(',').filter(|range| !range.trim().is_empty()) {
            is_asked = true;
            let Some(specificity) = specificity(essence(range), media_type) else {
                continue;
            };
            if best.is_none_or(|(found, _)| specificity > found) {
                best = Some((specificity, weight(range)));
            }
        }
    }
    // Without a header, everything will do.
    let (specificity, weight) = best.unwrap_or((0, if is_asked { 0.0 } else { 1.0 }));
    Ok(Wanted {
        weight,
        is_named: specificity == NAMED,
    })
}

/// How specific a range is that is a media type's own name.
const NAMED: u8 = 2;

fn essence(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim()
}

fn specificity(range: &str, media_type: &str) -> Option<u8> {
    if range.eq_ignore_ascii_case(media_type) {
        return Some(NAMED);
    }
    match range {
        "*/*" => Some(0),
        range if range.eq_ignore_ascii_case("application/*") => Some(1),
        _ => None,
    }
}

/// The range's `q`, at most 1; one that cannot be read does not count.
fn weight(range: &str) -> f64 {
    let parameters = range.split(';').skip(1);
    let weights = parameters.filter_map(|parameter| {
        let (name, weight) = parameter.split_once('=')?;
        let weight: f64 = weight.trim().parse().ok()?;
        name.trim().eq_ignore_ascii_case("q").then_some(weight)
    });
    weights.fold(1.0, f64::min)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn waits_are_read_as_preferences_are() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(PREFER, HeaderValue::from_static(value));
            }
            wait(&headers).map(Wait::seconds)
        };
        for (values, seconds) in [
            (&["wait=10"][..], Some(10)),
            (&["respond-async, Wait = 7"], Some(7)),
            (&["respond-async", "wait=7"], Some(7)),
            (&["wait=\"9\"; x=1"], Some(9)),
            (&["wait=3, wait=50"], Some(3)),
            (&["wait=61"], Some(60)),
            (&["wait=99999999999999999999999"], Some(60)),
            (&["wait=0"], Some(0)),
            (&[], None),
            (&["wait"], None),
            (&["wait="], None),
            (&["wait=-1"], None),
            (&["wait=+1"], None),
            (&["wait=1.5"], None),
            (&["waiting=5"], None),
        ] {
            assert_eq!(of(values), seconds, "{values:?}");
        }
    }

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

    #[test]
    fn a_delivery_is_given_to_who_names_it() {
        let form = |values: &[&str]| bundle_form(&headers(ACCEPT, values));
        let named = delivery::MEDIA_TYPE;
        for wanted in [
            &[named][..],
            &[MEDIA_TYPE, named],
            &["Application/Vnd.Context-Layer.Delivery+JSON;q=0.5"],
            &["*/*;q=0.1", named],
            &[
                "application/vnd.context-layer+json;q=0.2",
                "application/vnd.context-layer.delivery+json;q=0.3",
            ],
            &["application/vnd.context-layer+json;q=0", named],
        ] {
            assert_eq!(form(wanted), Ok(BundleForm::Delivery), "{wanted:?}");
        }
        for wanted in [
            &[][..],
            &["*/*"],
            &["application/*"],
            &[MEDIA_TYPE],
            &[
                MEDIA_TYPE,
                "application/vnd.context-layer.delivery+json;q=0.9",
            ],
            &["application/vnd.context-layer.delivery+json;q=0, */*"],
        ] {
            assert_eq!(form(wanted), Ok(BundleForm::Envelope), "{wanted:?}");
        }
        for wanted in [
            &["text/html"][..],
            &["application/vnd.context-layer.delivery+json;q=0"],
            &["*/*;q=0"],
        ] {
            assert_eq!(form(wanted), Err(Binding::NotAcceptable), "{wanted:?}");
        }
    }
}
