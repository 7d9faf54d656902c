//! Which peer may call which RPC: one table a service, deny by default.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};

use crate::identity::{self, PeerId, SpiffeId};
use crate::status;

/// The callers of one service: full method path to the SPIFFE ids that may use it.
///
/// A method without a row is refused to everyone, so a new RPC is closed until somebody opens it.
#[derive(Clone, Debug)]
pub struct CallerTable {
    trust_domain: String,
    rows: BTreeMap<String, Vec<CallerPattern>>,
    /// Prefixes of the paths of plain HTTP.
    prefixes: BTreeMap<String, Vec<CallerPattern>>,
}

impl CallerTable {
    /// An empty table: nobody may call anything. Only peers of `trust_domain` can be allowed.
    pub fn new(trust_domain: &str) -> Result<Self, InvalidCallerTable> {
        identity::check_trust_domain(trust_domain)
            .map_err(|_| InvalidCallerTable::TrustDomain(trust_domain.to_owned()))?;
        Ok(Self {
            trust_domain: trust_domain.to_owned(),
            rows: BTreeMap::new(),
            prefixes: BTreeMap::new(),
        })
    }

    /// Opens `method` (`/package.Service/Method`) to `callers`.
    ///
    /// A caller is the path of a SPIFFE id, such as `exchange/cl-policy-engine`. A segment after
    /// the first may be `*`, which stands for exactly one segment: `owner/*`, `client/acme/*`.
    pub fn allow(mut self, method: &str, callers: &[&str]) -> Result<Self, InvalidCallerTable> {
        if !is_method(method) {
            return Err(InvalidCallerTable::Method(method.to_owned()));
        }
        if self
            .rows
            .insert(method.to_owned(), patterns(callers)?)
            .is_some()
        {
            return Err(InvalidCallerTable::Repeated(method.to_owned()));
        }
        Ok(self)
    }

    /// Opens all paths of plain HTTP below `prefix` (`/name/`) to `callers`, as for
    /// [`allow`](Self::allow). No name of a service can begin like it: those have a dot.
    pub fn allow_under(
        mut self,
        prefix: &str,
        callers: &[&str],
    ) -> Result<Self, InvalidCallerTable> {
        let name = prefix
            .strip_prefix('/')
            .and_then(|rest| rest.strip_suffix('/'));
        if !name.is_some_and(|name| identity::is_segment(name) && !name.contains('.')) {
            return Err(InvalidCallerTable::Method(prefix.to_owned()));
        }
        if self
            .prefixes
            .insert(prefix.to_owned(), patterns(callers)?)
            .is_some()
        {
            return Err(InvalidCallerTable::Repeated(prefix.to_owned()));
        }
        Ok(self)
    }

    /// The methods that have a row.
    pub fn methods(&self) -> impl Iterator<Item = &str> {
        self.rows.keys().map(String::as_str)
    }

    fn patterns(&self, path: &str) -> Option<&Vec<CallerPattern>> {
        let below = || {
            let mut prefixes = self.prefixes.iter();
            prefixes.find(|(prefix, _)| path.starts_with(prefix.as_str()))
        };
        self.rows
            .get(path)
            .or_else(|| below().map(|(_, patterns)| patterns))
    }

    /// Whether `peer` may call `method`, or ask for that path.
    pub fn check(&self, method: &str, peer: Option<&PeerId>) -> Result<(), Refused> {
        let peer = peer.ok_or(Refused::NoCertificate)?;
        let patterns = self.patterns(method).ok_or(Refused::NotAllowed)?;
        if peer.id.trust_domain() != self.trust_domain
            || !patterns.iter().any(|pattern| pattern.matches(&peer.id))
        {
            return Err(Refused::NotAllowed);
        }
        Ok(())
    }
}

fn patterns(callers: &[&str]) -> Result<Vec<CallerPattern>, InvalidCallerTable> {
    let patterns = callers.iter().map(|caller| CallerPattern::parse(caller));
    patterns.collect()
}

fn is_method(text: &str) -> bool {
    let Some((service, method)) = text.strip_prefix('/').and_then(|rest| rest.split_once('/'))
    else {
        return false;
    };
    identity::is_segment(service) && identity::is_segment(method)
}

/// A caller's path with exact segments and single-segment wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CallerPattern {
    segments: Vec<Option<String>>,
}

impl CallerPattern {
    fn parse(text: &str) -> Result<Self, InvalidCallerTable> {
        let invalid = || InvalidCallerTable::Caller(text.to_owned());
        let segments = text
            .split('/')
            .enumerate()
            .map(|(position, segment)| match segment {
                "*" if position > 0 => Ok(None),
                plain if identity::is_segment(plain) => Ok(Some(plain.to_owned())),
                _ => Err(invalid()),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if !(2..=3).contains(&segments.len()) {
            return Err(invalid());
        }
        Ok(Self { segments })
    }

    fn matches(&self, id: &SpiffeId) -> bool {
        let mut found = id.segments();
        let same = self.segments.iter().all(|expected| {
            found.next().is_some_and(|segment| {
                expected
                    .as_deref()
                    .is_none_or(|expected| expected == segment)
            })
        });
        same && found.next().is_none()
    }
}

/// A mistake in a caller table; a process with one does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCallerTable {
    /// Not a trust domain.
    #[error("not a trust domain: {0}")]
    TrustDomain(String),
    /// Not `/package.Service/Method`.
    #[error("not a method path: {0}")]
    Method(String),
    /// Not two or three segments, a stray character, or a wildcard zone.
    #[error("not a caller path: {0}")]
    Caller(String),
    /// Two rows for one method.
    #[error("two rows for {0}")]
    Repeated(String),
}

/// Why a caller table said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The connection has no client certificate.
    #[error("a client certificate is required")]
    NoCertificate,
    /// No row opens the method to this peer.
    #[error("the caller may not use this method")]
    NotAllowed,
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NoCertificate => status::refusal(
                Code::Unauthenticated,
                status::CALLER_UNAUTHENTICATED,
                "a client certificate is required",
            ),
            Refused::NotAllowed => status::refusal(
                Code::PermissionDenied,
                status::CALLER_NOT_ALLOWED,
                "the caller may not use this method",
            ),
        }
    }
}

/// Applies a [`CallerTable`] to every request before any of its body is read.
#[derive(Clone, Debug)]
pub struct CallerLayer {
    table: Arc<CallerTable>,
}

impl CallerLayer {
    /// Applies `table`.
    pub fn new(table: Arc<CallerTable>) -> Self {
        Self { table }
    }
}

impl<S> Layer<S> for CallerLayer {
    type Service = CallerService<S>;

    fn layer(&self, inner: S) -> CallerService<S> {
        CallerService {
            inner,
            table: Arc::clone(&self.table),
        }
    }
}

/// The service that [`CallerLayer`] makes.
#[derive(Clone, Debug)]
pub struct CallerService<S> {
    inner: S,
    table: Arc<CallerTable>,
}

impl<S> Service<Request<Body>> for CallerService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let peer = request.extensions().get::<PeerId>();
        match self.table.check(request.uri().path(), peer) {
            Ok(()) => Box::pin(self.inner.call(request)),
            Err(refused) => {
                let response = Status::from(refused).into_http();
                Box::pin(async move { Ok(response) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METHOD: &str = "/contextlayer.vault.v1.VaultService/ResolveClaims";

    fn peer(id: &str) -> PeerId {
        PeerId {
            id: id.parse().unwrap(),
            serial: "01".to_owned(),
            thumbprint: [0; 32],
            not_before_unix_s: 0,
            not_after_unix_s: 0,
        }
    }

    fn table(callers: &[&str]) -> CallerTable {
        CallerTable::new("example.org")
            .unwrap()
            .allow(METHOD, callers)
            .unwrap()
    }

    #[test]
    fn allows_exact_ids_only() {
        let table = table(&["exchange/cl-semantic-proxy"]);
        let check = |id: &str| table.check(METHOD, Some(&peer(id)));
        assert_eq!(
            check("spiffe://example.org/exchange/cl-semantic-proxy"),
            Ok(())
        );
        for id in [
            "spiffe://example.org/exchange/cl-semantic-proxy2",
            "spiffe://example.org/exchange/cl-semantic-proxy/x",
            "spiffe://example.org/vault/cl-semantic-proxy",
            "spiffe://example.com/exchange/cl-semantic-proxy",
        ] {
            assert_eq!(check(id), Err(Refused::NotAllowed), "{id}");
        }
    }

    #[test]
    fn a_wildcard_stands_for_one_segment() {
        let table = table(&["owner/*", "client/acme/*"]);
        let check = |id: &str| table.check(METHOD, Some(&peer(id))).is_ok();
        assert!(check("spiffe://example.org/owner/acme"));
        assert!(check("spiffe://example.org/client/acme/agent"));
        assert!(!check("spiffe://example.org/owner/acme/deeper"));
        assert!(!check("spiffe://example.org/client/acme"));
        assert!(!check("spiffe://example.org/client/other/agent"));
    }

    #[test]
    fn a_prefix_opens_the_paths_below_it() {
        let table = table(&["owner/*"]).allow_under("/files/", &["auditor/*"]);
        let table = table.unwrap();
        let auditor = peer("spiffe://example.org/auditor/ann");
        let check = |path| table.check(path, Some(&auditor));
        assert_eq!(check("/files/a/b"), Ok(()));
        for path in ["/files", "/filesystem/a", "/x/files/a", METHOD] {
            assert_eq!(check(path), Err(Refused::NotAllowed), "{path}");
        }
        assert_eq!(table.check("/files/a", None), Err(Refused::NoCertificate));
    }

    #[test]
    fn denies_unknown_methods_and_missing_certificates() {
        let table = table(&["owner/*"]);
        let owner = peer("spiffe://example.org/owner/acme");
        let unknown = "/contextlayer.vault.v1.VaultService/Other";
        assert_eq!(table.check(unknown, Some(&owner)), Err(Refused::NotAllowed));
        assert_eq!(table.check(METHOD, None), Err(Refused::NoCertificate));
        assert_eq!(table.check(unknown, None), Err(Refused::NoCertificate));
    }

    #[test]
    fn a_mistake_in_the_table_is_an_error() {
        let empty = || CallerTable::new("example.org").unwrap();
        for caller in ["*/x", "a", "", "a/b/c/d", "a/b*", "a//b", "a/b/", "/a/b"] {
            let error = empty().allow(METHOD, &[caller]).unwrap_err();
            assert_eq!(error, InvalidCallerTable::Caller(caller.to_owned()));
        }
        for prefix in ["", "/", "//", "/x", "x/", "/x/y/", "/a.b/"] {
            let error = empty().allow_under(prefix, &["a/b"]).unwrap_err();
            assert_eq!(error, InvalidCallerTable::Method(prefix.to_owned()));
        }
        for method in ["", "x", "/x", "x/y", "/x/y/z", "/x/", "//y"] {
            let error = empty().allow(method, &["a/b"]).unwrap_err();
            assert_eq!(error, InvalidCallerTable::Method(method.to_owned()));
        }
        assert!(matches!(
            table(&["a/b"]).allow(METHOD, &["a/c"]),
            Err(InvalidCallerTable::Repeated(_))
        ));
        assert!(CallerTable::new("Example.org").is_err());
    }

    #[test]
    fn refusals_carry_code_and_reason() {
        let denied = Status::from(Refused::NotAllowed);
        assert_eq!(denied.code(), Code::PermissionDenied);
        assert_eq!(
            status::reason(&denied).as_deref(),
            Some("CALLER_NOT_ALLOWED")
        );
        let anonymous = Status::from(Refused::NoCertificate);
        assert_eq!(anonymous.code(), Code::Unauthenticated);
    }
}
