//! The headers of every answer: also of assets, refusals, and paths where nothing is.

use axum::response::Response;
use http::HeaderValue;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};

/// Everything that is needed is named, all from the console itself; no frame draws a page.
const CONTENT_SECURITY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Passkeys on the console's own pages; nothing else of the device.
const PERMISSIONS: &str = "publickey-credentials-get=(self), publickey-credentials-create=(self), \
     accelerometer=(), camera=(), clipboard-read=(), display-capture=(), geolocation=(), \
     gyroscope=(), hid=(), microphone=(), midi=(), payment=(), serial=(), usb=()";

/// Two years.
const TRANSPORT_SECURITY: &str = "max-age=63072000";

/// No page, or part of one, stays behind.
const NO_STORE: &str = "no-store";

/// Browsers write `Origin: null` on forms of pages whose referrer policy is `no-referrer`, and forms
/// count from the exact origin only. Other origins are told nothing with this one either.
const REFERRER: &str = "same-origin";

const ALL: [(HeaderName, &str); 8] = [
    (CONTENT_SECURITY_POLICY, CONTENT_SECURITY),
    (X_FRAME_OPTIONS, "DENY"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, REFERRER),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (HeaderName::from_static("permissions-policy"), PERMISSIONS),
    (STRICT_TRANSPORT_SECURITY, TRANSPORT_SECURITY),
];

/// Puts them on an answer. Only an asset says itself how long it may be kept.
pub(crate) fn protect(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in ALL {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static(NO_STORE));
    response
}
