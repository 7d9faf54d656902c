//! Who was authenticated.

use std::fmt;

use cl_model::scalar::Reference;
use cl_wire::policy::v1::authenticated_facts::BoundKey;
use cl_wire::policy::v1::{Assurance, AuthenticatedFacts, AuthenticationMethod};
use data_encoding::BASE64URL_NOPAD;
use http::Extensions;

use super::Refused;
use super::scope::{Scope, Scopes};

/// A tenant: 1 to 63 characters of `a-z`, `0-9` and `-`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TenantName(String);

impl TenantName {
    /// The tenant of tokens that name none.
    pub(super) fn unnamed() -> Self {
        Self("default".to_owned())
    }

    /// Reads a tenant's name.
    pub fn parse(text: &str) -> Option<Self> {
        const MAX_LENGTH: usize = 63;

        let is_plain = text
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
        (is_plain && !text.is_empty() && text.len() <= MAX_LENGTH).then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How a caller authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By an access token.
    OAuth2,
    /// By a client certificate.
    Mtls,
}

/// An authenticated caller. Only this module's parents make one, from a credential that verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Caller {
    pub(super) tenant: TenantName,
    pub(super) principal: Reference,
    pub(super) client_instance: Reference,
    pub(super) method: Method,
    pub(super) certificate: Option<[u8; 32]>,
    pub(super) scopes: Scopes,
}

impl Caller {
    /// The caller that was authenticated before a call's body was read, if the credential is good
    /// for operations of this scope.
    pub(crate) fn of(extensions: &Extensions, needed: Scope) -> Result<Self, Refused> {
        let caller = extensions.get::<Self>().ok_or(Refused::NoCredential)?;
        caller.check(needed)?;
        Ok(caller.clone())
    }

    /// Whose request it is.
    pub fn tenant(&self) -> &TenantName {
        &self.tenant
    }

    /// Who asks.
    pub fn principal(&self) -> &Reference {
        &self.principal
    }

    /// What it uses to ask.
    pub fn client_instance(&self) -> &Reference {
        &self.client_instance
    }

    /// How it authenticated.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Whether the credential is good for operations of this scope.
    pub fn check(&self, needed: Scope) -> Result<(), Refused> {
        if self.scopes.contains(needed) {
            return Ok(());
        }
        Err(Refused::Scope(needed))
    }

    /// What the policy engine is told. Nobody here knows how the credential was given out beyond
    /// that its issuer checks to whom, so the assurance is the middle one for both methods.
    pub fn facts(&self) -> AuthenticatedFacts {
        let method = match self.method {
            Method::OAuth2 => AuthenticationMethod::Oauth2,
            Method::Mtls => AuthenticationMethod::Mtls,
        };
        let certificate = self.certificate.as_ref();
        AuthenticatedFacts {
            principal: self.principal.as_str().to_owned(),
            client_instance: self.client_instance.as_str().to_owned(),
            method: method.into(),
            assurance: Assurance::Substantial.into(),
            bound_key: certificate.map(|thumbprint| {
                BoundKey::CertificateThumbprint(BASE64URL_NOPAD.encode(thumbprint))
            }),
        }
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
