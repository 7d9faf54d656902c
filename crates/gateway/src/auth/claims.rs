//! What a signed token says, and whether it says it to this gateway, now.

use cl_model::scalar::Reference;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::InvalidToken;
use super::caller::{Caller, Method, TenantName};
use super::scope::Scopes;
use super::watermark::Moment;

/// How far the clocks of issuer and gateway may be apart, the same for `exp`, `nbf` and `iat`.
pub const LEEWAY_SECONDS: i64 = 30;

const LEEWAY_MS: i64 = LEEWAY_SECONDS * 1000;

/// The last second of the year 9999. A time beyond it is a mistake, mostly of its unit.
const LAST_SECOND: f64 = 253_402_300_799.0;

const CERTIFICATE_THUMBPRINT: &str = "x5t#S256";

/// Which tokens count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPolicy {
    /// The one issuer.
    pub issuer: String,
    /// The audience that names this gateway.
    pub audience: String,
}

type Claims = Map<String, Value>;

pub(super) fn caller(
    claims: &Claims,
    policy: &TokenPolicy,
    certificate: Option<&[u8; 32]>,
    now: Moment,
) -> Result<Caller, InvalidToken> {
    if text(claims, "iss")? != Some(policy.issuer.as_str()) || !is_for(claims, &policy.audience) {
        return Err(InvalidToken::IssuerOrAudience);
    }
    check_times(claims, now)?;
    Ok(Caller {
        certificate: bound_certificate(claims, certificate)?,
        tenant: tenant(claims)?,
        principal: reference(claims, "sub")?.ok_or(InvalidToken::Claims)?,
        client_instance: client_instance(claims)?,
        method: Method::OAuth2,
        scopes: Scopes::parse(text(claims, "scope")?.unwrap_or_default()),
    })
}

/// Equality with the one string, or with one string of an array of strings (RFC 7519 4.1.3).
fn is_for(claims: &Claims, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Value::String(only)) => only == audience,
        Some(Value::Array(several)) => {
            several.iter().all(Value::is_string) && several.iter().any(|one| one == audience)
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    }
}

fn check_times(claims: &Claims, now: Moment) -> Result<(), InvalidToken> {
    let now = now.unix_ms();
    let expires = unix_ms(claims, "exp")?.ok_or(InvalidToken::Time)?;
    let not_before = unix_ms(claims, "nbf")?;
    let issued = unix_ms(claims, "iat")?;
    let begun = |from: Option<i64>| from.is_none_or(|from| from <= now.saturating_add(LEEWAY_MS));
    let is_ordered = not_before.is_none_or(|from| from <= expires);
    if now < expires + LEEWAY_MS && begun(not_before) && begun(issued) && is_ordered {
        return Ok(());
    }
    Err(InvalidToken::Time)
}

/// A NumericDate, which may have a fraction.
fn unix_ms(claims: &Claims, name: &str) -> Result<Option<i64>, InvalidToken> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let seconds = value.as_f64().ok_or(InvalidToken::Time)?;
    if !(0.0..=LAST_SECOND).contains(&seconds) {
        return Err(InvalidToken::Time);
    }
    // Within its range, as checked; what is below a millisecond does not count.
    Ok(Some((seconds * 1000.0) as i64))
}

/// The certificate that a token is bound to (RFC 8705), which must be the connection's. A token
/// bound in any other way is refused, since nothing here could check it.
fn bound_certificate(
    claims: &Claims,
    certificate: Option<&[u8; 32]>,
) -> Result<Option<[u8; 32]>, InvalidToken> {
    let Some(confirmation) = claims.get("cnf") else {
        return Ok(None);
    };
    let named = confirmation
        .as_object()
        .filter(|members| members.len() == 1)
        .and_then(|members| members.get(CERTIFICATE_THUMBPRINT)?.as_str())
        .and_then(|text| BASE64URL_NOPAD.decode(text.as_bytes()).ok())
        .ok_or(InvalidToken::Binding)?;
    match certificate {
        Some(shown) if named == shown => Ok(Some(*shown)),
        Some(_) | None => Err(InvalidToken::Binding),
    }
}

fn tenant(claims: &Claims) -> Result<TenantName, InvalidToken> {
    match text(claims, "tenant")? {
        None => Ok(TenantName::unnamed()),
        Some(name) => TenantName::parse(name).ok_or(InvalidToken::Claims),
    }
}

/// `client_instance`, else `client_id`, else the subject itself, as for a client certificate.
fn client_instance(claims: &Claims) -> Result<Reference, InvalidToken> {
    for name in ["client_instance", "client_id", "sub"] {
        if let Some(reference) = reference(claims, name)? {
            return Ok(reference);
        }
    }
    Err(InvalidToken::Claims)
}

fn reference(claims: &Claims, name: &str) -> Result<Option<Reference>, InvalidToken> {
    text(claims, name)?
        .map(|text| Reference::new(text).ok_or(InvalidToken::Claims))
        .transpose()
}

fn text<'a>(claims: &'a Claims, name: &str) -> Result<Option<&'a str>, InvalidToken> {
    claims
        .get(name)
        .map(|value| value.as_str().ok_or(InvalidToken::Claims))
        .transpose()
}
