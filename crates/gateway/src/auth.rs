//! Who is calling, by an access token or a client certificate. Sans-IO: bytes and `now` come in.
//!
//! A token that is shown decides alone; a certificate on the same connection then only proves that
//! a token bound to it is in the right hands. Every token that does not verify is refused in the
//! same way, whatever is wrong with it.

mod caller;
mod certificate;
mod claims;
mod header;
pub mod jwks;
mod jws;
mod scope;
mod watermark;

use cl_host::identity::PeerId;
use http::HeaderMap;

pub use self::caller::{Caller, Method, TenantName};
pub use self::claims::{LEEWAY_SECONDS, TokenPolicy};
pub use self::header::Bearer;
pub use self::jwks::KeySet;
pub use self::scope::Scope;
pub use self::watermark::{Moment, Watermark};

/// Why a caller is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Neither a token nor a certificate.
    #[error("no credential")]
    NoCredential,
    /// The token, or the header that holds it, is not good.
    #[error("token: {0}")]
    Token(#[from] InvalidToken),
    /// The token is good, and has not the scope that this needs.
    #[error("the token lacks the scope")]
    Scope(Scope),
    /// The certificate is good, and is no client's.
    #[error("the certificate is no client's")]
    Certificate,
}

/// What is wrong with a token: for a metric, never for its bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidToken {
    /// The `Authorization` header is not one bearer token.
    #[error("header")]
    Header,
    /// No issuer is configured.
    #[error("not_configured")]
    NotConfigured,
    /// Not three plain parts, or too long.
    #[error("form")]
    Form,
    /// The token's own header is not allowed.
    #[error("token_header")]
    TokenHeader,
    /// No such key, or not for this algorithm.
    #[error("key")]
    Key,
    /// The signature does not verify.
    #[error("signature")]
    Signature,
    /// The payload is not strict JSON, or a claim has the wrong type.
    #[error("claims")]
    Claims,
    /// Another issuer or audience.
    #[error("issuer_or_audience")]
    IssuerOrAudience,
    /// Too old, too new, or without an end.
    #[error("time")]
    Time,
    /// Bound to a key that this connection did not prove.
    #[error("binding")]
    Binding,
}

/// Decides who is calling.
#[derive(Clone, Debug)]
pub struct Authenticator {
    /// The gateway's own trust domain.
    pub trust_domain: String,
    /// Which tokens count; none without it.
    pub tokens: Option<TokenPolicy>,
}

impl Authenticator {
    /// The caller behind a call's headers and connection.
    pub fn caller(
        &self,
        headers: &HeaderMap,
        peer: Option<&PeerId>,
        keys: &KeySet,
        now: Moment,
    ) -> Result<Caller, Refused> {
        let Some(bearer) = Bearer::find(headers)? else {
            let peer = peer.ok_or(Refused::NoCredential)?;
            return certificate::caller(peer, &self.trust_domain);
        };
        let policy = self.tokens.as_ref();
        let policy = policy.ok_or(InvalidToken::NotConfigured)?;
        let thumbprint = peer.map(|peer| &peer.thumbprint);
        Ok(verify(bearer.token(), policy, keys, thumbprint, now)?)
    }
}

/// Verifies an access token (RFC 9068, within the bounds of RFC 8725).
pub fn verify(
    token: &str,
    policy: &TokenPolicy,
    keys: &KeySet,
    certificate: Option<&[u8; 32]>,
    now: Moment,
) -> Result<Caller, InvalidToken> {
    let payload = jws::verified_payload(token, keys)?;
    claims::caller(&payload, policy, certificate, now)
}
