//! Bounds on a call's head, before anything else is looked at.

use http::{HeaderMap, Uri};
use percent_encoding::percent_decode_str;

use crate::error::Binding;

const MAX_URI_BYTES: usize = 4 * 1024;

/// A token of 8 KiB and what comes with it.
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Query parameters that carry credentials in OAuth 2.0 and its relatives (RFC 6750 section 2.3,
/// which RFC 9700 withdraws).
const CREDENTIALS: [&str; 8] = [
    "access_token",
    "authorization",
    "client_assertion",
    "client_secret",
    "id_token",
    "refresh_token",
    "token",
    "jwt",
];

const GRPC_PATHS: &str = "/contextlayer.";

pub(super) fn check(uri: &Uri, headers: &HeaderMap, is_grpc: bool) -> Result<(), Binding> {
    let address = uri.path_and_query().map_or(0, |it| it.as_str().len());
    if address > MAX_URI_BYTES {
        return Err(Binding::UriTooLong);
    }
    let sizes = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len());
    if sizes.sum::<usize>() > MAX_HEADER_BYTES {
        return Err(Binding::HeadersTooLarge);
    }
    if has_credential(uri) {
        return Err(Binding::CredentialInUrl);
    }
    if uri.path().starts_with(GRPC_PATHS) && !is_grpc {
        return Err(Binding::MediaType);
    }
    Ok(())
}

fn has_credential(uri: &Uri) -> bool {
    let authority = uri.authority().map(http::uri::Authority::as_str);
    let parameters = uri.query().unwrap_or_default().split(['&', ';']);
    let mut names = parameters.map(|parameter| parameter.split('=').next().unwrap_or_default());
    authority.is_some_and(|authority| authority.contains('@'))
        || names.any(|name| {
            let name = percent_decode_str(name).decode_utf8_lossy();
            CREDENTIALS.contains(&name.to_ascii_lowercase().as_str())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_credentials_however_they_are_spelled() {
        for uri in [
            "/context/v1/requests?access_token=abc",
            "/context/v1/requests?a=b&access_token=abc",
            "/context/v1/requests?a=b;ACCESS_TOKEN=abc",
            "/context/v1/requests?access%5Ftoken=abc",
            "/context/v1/requests?access_token",
            "https://user:secret@example.org/",
        ] {
            assert!(has_credential(&uri.parse().unwrap()), "{uri}");
        }
        for uri in [
            "/",
            "/?a=access_token",
            "https://example.org/access_token?x_token=1",
        ] {
            assert!(!has_credential(&uri.parse().unwrap()), "{uri}");
        }
    }
}
