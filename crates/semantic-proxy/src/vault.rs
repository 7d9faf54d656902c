//! The vault, as the proxy needs it.

use cl_host::client::PeerChannel;
use cl_host::deadline::Deadline;
use cl_model::alias::AliasScheme;
use cl_model::canonical;
use cl_model::grant::VerifiedGrant;
use cl_model::json::{self, Limits};
use cl_model::leak::{Fingerprint, LeakGuard, LeakKey, MAX_FINGERPRINTS, MAX_LENGTH, MIN_LENGTH};
use cl_model::object::ClaimStatus;
use cl_model::part::{Label, Trust};
use cl_model::scalar::{Confidence, Handle, Name, Predicate};
use cl_model::time::UnixTime;
use cl_wire::grant::REFUSALS;
use cl_wire::time;
use cl_wire::vault::v1::vault_service_client::VaultServiceClient;
use cl_wire::vault::v1::{self as wire, ResolveClaimsRequest, ResolveClaimsResponse};
use prost_types::Timestamp;
use tonic::{Code, Request, Status};

use crate::core::claim::{MAX_CLAIMS, MAX_HANDLES, RawClaim, Resolved, Validity, Violation};

/// The largest value of one claim, in bytes of canonical JSON.
const MAX_VALUE_BYTES: usize = 16 * 1024;

/// The largest answer of the vault: every claim and every fingerprint that it may send.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;

/// The port to the vault.
///
/// **Who retries?** The caller: a repeat resolves again, and leaves another receipt of the vault's.
#[tonic::async_trait]
pub trait Vault: Send + Sync {
    /// Resolves the claims that a grant allows.
    async fn resolve(
        &self,
        request: ResolveClaimsRequest,
        deadline: Option<Deadline>,
    ) -> Result<ResolveClaimsResponse, Status>;
}

/// The vault over gRPC.
#[derive(Clone, Debug)]
pub struct GrpcVault {
    client: VaultServiceClient<PeerChannel>,
}

impl GrpcVault {
    /// Calls the vault over `channel`.
    pub fn new(channel: PeerChannel) -> Self {
        Self {
            client: VaultServiceClient::new(channel).max_decoding_message_size(MAX_ANSWER_BYTES),
        }
    }
}

#[tonic::async_trait]
impl Vault for GrpcVault {
    async fn resolve(
        &self,
        request: ResolveClaimsRequest,
        deadline: Option<Deadline>,
    ) -> Result<ResolveClaimsResponse, Status> {
        let mut request = Request::new(request);
        if let Some(deadline) = deadline {
            deadline.limit(&mut request);
        }
        Ok(self
            .client
            .clone()
            .resolve_claims(request)
            .await?
            .into_inner())
    }
}

/// Why the vault gave no claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VaultRefusal {
    /// It does not accept the grant.
    #[error("the vault refused the grant: {0}")]
    Grant(&'static str),
    /// It cannot write its receipt.
    #[error("the vault cannot write its receipt")]
    Receipts,
    /// It is away, or failed.
    #[error("the vault failed")]
    Unavailable,
}

impl VaultRefusal {
    /// What a status of the vault's means here. Only codes that this process knows are passed on.
    pub fn of(status: &Status) -> Self {
        let reason = cl_wire::status::reason(status).unwrap_or_default();
        let known = REFUSALS.into_iter().find(|code| *code == reason);
        match (status.code(), known) {
            (Code::PermissionDenied, Some(code)) => Self::Grant(code),
            (Code::Unavailable, _) if reason == "RECEIPT_STORE_UNAVAILABLE" => Self::Receipts,
            _ => Self::Unavailable,
        }
    }
}

/// Reads the vault's answer. What is malformed refuses all of it.
pub fn read(answer: ResolveClaimsResponse, grant: &VerifiedGrant) -> Result<Resolved, Violation> {
    if answer.claims.len() > MAX_CLAIMS {
        return Err(Violation::TooManyClaims);
    }
    let names = AliasScheme::Minted(grant.plan().subject_alias.clone());
    let request = &grant.decision().decision().request_ref;
    let is_minted = |text: &str| names.provenance(text, request).is_some();
    let claims = answer.claims.into_iter();
    let claims = claims.map(|claim| read_claim(claim, is_minted));
    Ok(Resolved {
        claims: claims
            .collect::<Option<_>>()
            .ok_or(Violation::OutsidePlan)?,
        withheld: answer.withheld,
        guard: answer
            .leak_guard
            .and_then(read_guard)
            .ok_or(Violation::OutsidePlan)?,
    })
}

fn read_claim(claim: wire::ResolvedClaim, is_minted: impl Fn(&str) -> bool) -> Option<RawClaim> {
    let value = json::parse(&claim.value, Limits::network(MAX_VALUE_BYTES)).ok()?;
    if canonical::to_text(&value).as_bytes() != claim.value {
        return None;
    }
    let mut handles = Vec::with_capacity(claim.provenance_handles.len());
    for handle in claim.provenance_handles {
        let handle = Handle::new(handle).filter(|handle| is_minted(handle.as_str()))?;
        handles.push(handle);
    }
    handles.sort_unstable();
    let is_distinct = handles.windows(2).all(|pair| pair.first() != pair.last());
    ((1..=MAX_HANDLES).contains(&handles.len()) && is_distinct).then_some(())?;
    Some(RawClaim {
        predicate: Predicate::new(claim.predicate)?,
        value,
        datatype: Name::new(claim.datatype)?,
        confidence: Confidence::new(claim.confidence)?,
        status: ClaimStatus::parse(&claim.status)?,
        trust: Trust::parse(&claim.trust)?,
        label: Label::parse(&claim.label)?,
        validity: Validity {
            from: read_time(claim.valid_from)?,
            until: read_time(claim.valid_until)?,
        },
        handles,
    })
}

/// A time that may be absent; the outer `None` is for one that is malformed.
fn read_time(timestamp: Option<Timestamp>) -> Option<Option<UnixTime>> {
    match timestamp {
        None => Some(None),
        Some(found) => time::read(&found).map(Some),
    }
}

fn read_guard(guard: wire::LeakGuard) -> Option<LeakGuard> {
    if guard.fingerprints.len() > MAX_FINGERPRINTS {
        return None;
    }
    let fingerprints = guard.fingerprints.into_iter().map(|print| {
        let length = usize::try_from(print.length).ok()?;
        let tag = print.tag.try_into().ok()?;
        let is_length = (MIN_LENGTH..=MAX_LENGTH).contains(&length);
        is_length.then_some(Fingerprint {
            length,
            rolling: print.rolling,
            tag,
        })
    });
    let fingerprints = fingerprints.collect::<Option<Vec<_>>>()?;
    Some(LeakGuard::new(LeakKey::new(&guard.key).ok()?, fingerprints))
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn the_largest_answer_fits_into_a_message() {
        let claim = wire::ResolvedClaim {
            predicate: "p".repeat(128),
            value: vec![b'v'; MAX_VALUE_BYTES],
            datatype: "boolean".to_owned(),
            confidence: 0.5,
            status: "superseded".to_owned(),
            trust: "user_asserted".to_owned(),
            label: "restricted".to_owned(),
            valid_from: Some(time::to_message(UnixTime::from_milliseconds(
                1_796_083_200_999,
            ))),
            valid_until: Some(time::to_message(UnixTime::from_milliseconds(
                1_796_083_200_999,
            ))),
            provenance_handles: vec![format!("prov_{}", "0".repeat(64)); MAX_HANDLES],
        };
        let print = wire::Fingerprint {
            length: 48,
            rolling: u64::MAX,
            tag: vec![0xff; 16],
        };
        let answer = ResolveClaimsResponse {
            claims: vec![claim; MAX_CLAIMS],
            withheld: u32::MAX,
            leak_guard: Some(wire::LeakGuard {
                key: vec![0xff; 32],
                fingerprints: vec![print; MAX_FINGERPRINTS],
            }),
        };
        assert!(answer.encoded_len() <= MAX_ANSWER_BYTES);
    }
}
