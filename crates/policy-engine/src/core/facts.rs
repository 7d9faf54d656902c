//! Who the requester is, as the gateway authenticated it.

use cl_model::object::ContextRequest;
use cl_model::policy::Assurance;
use cl_model::scalar::Reference;

/// How a requester authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By an OAuth 2.0 access token.
    Oauth2,
    /// By a client certificate of the deployment.
    Mtls,
}

impl Method {
    /// The method as a request's `authenticated_by` names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oauth2 => "oauth2",
            Self::Mtls => "mtls",
        }
    }

    /// The method with this name.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Oauth2, Self::Mtls]
            .into_iter()
            .find(|method| method.as_str() == text)
    }
}

/// The key that a requester proved to hold, by its SHA-256 thumbprint in unpadded base64url.
#[derive(Clone, PartialEq, Eq)]
pub enum BoundKey {
    /// Of its certificate (`x5t#S256`).
    Certificate(String),
    /// Of its JWK.
    Jwk(String),
}

/// What was authenticated.
#[derive(Clone, PartialEq)]
pub struct Facts {
    /// The principal.
    pub principal: Reference,
    /// The client instance that it uses.
    pub client_instance: Reference,
    /// How it authenticated.
    pub method: Method,
    /// How surely the credential stands for it.
    pub assurance: Assurance,
    /// The key that it proved to hold, if any.
    pub bound_key: Option<BoundKey>,
}

impl Facts {
    /// Whether a request says the same about its requester and issuer.
    pub fn agree_with(&self, request: &ContextRequest) -> bool {
        let requester = &request.requester;
        requester.principal == self.principal
            && requester.client_instance == self.client_instance
            && requester.authenticated_by.as_str() == self.method.as_str()
            && request.issuer.id == self.principal
    }
}
