//! From what the vault found to messages.

use cl_model::time::UnixTime;
use cl_wire::vault::v1 as wire;
use cl_wire::vault::v1::capture_outcome::Result as WireResult;
use prost_types::Timestamp;

use super::parse::write_page_token;
use crate::core::claim::TRUST;
use crate::service::capture::Outcome;
use crate::service::memory::Pending;
use crate::service::owner::{Evidence, ExplainedClaim, ListedClaim, Page};
use crate::service::resolve::{Answer, ResolvedClaim};
use crate::store::StoredEvent;

impl From<Outcome> for wire::CaptureOutcome {
    fn from(outcome: Outcome) -> Self {
        let event = |event_ref, claims| wire::CapturedEvent { event_ref, claims };
        let result = match outcome {
            Outcome::Captured(id, claims) => WireResult::Captured(event(id, claims)),
            Outcome::Duplicate(id, claims) => WireResult::Duplicate(event(id, claims)),
            Outcome::Refused(code) => WireResult::RefusedCode(code),
        };
        Self {
            result: Some(result),
        }
    }
}

impl From<Answer> for wire::ResolveClaimsResponse {
    fn from(answer: Answer) -> Self {
        let fingerprints = answer.fingerprints.iter().map(|print| wire::Fingerprint {
            length: u32::try_from(print.length).unwrap_or(u32::MAX),
            rolling: print.rolling,
            tag: print.tag.to_vec(),
        });
        Self {
            withheld: answer.withheld,
            leak_guard: Some(wire::LeakGuard {
                key: answer.leak_key.to_vec(),
                fingerprints: fingerprints.collect(),
            }),
            claims: answer.claims.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<ResolvedClaim> for wire::ResolvedClaim {
    fn from(resolved: ResolvedClaim) -> Self {
        let claim = &resolved.claim;
        let value = claim.value().map(cl_model::canonical::to_text);
        let handles = resolved.handles.iter();
        Self {
            predicate: claim.predicate.as_str().to_owned(),
            value: value.unwrap_or_default().into_bytes(),
            datatype: claim.datatype.as_str().to_owned(),
            confidence: claim.confidence().get(),
            status: resolved.status.as_str().to_owned(),
            trust: TRUST.as_str().to_owned(),
            label: claim.label.as_str().to_owned(),
            valid_from: claim.valid_from().map(timestamp),
            valid_until: claim.valid_until().map(timestamp),
            provenance_handles: handles.map(|handle| handle.as_str().to_owned()).collect(),
        }
    }
}

impl From<Page<StoredEvent>> for wire::ListEventsResponse {
    fn from(page: Page<StoredEvent>) -> Self {
        let contents = page.entries.into_iter().filter_map(|event| event.content);
        let events = contents.map(|content| wire::EventEntry {
            event: content.document,
            marks: content
                .marks
                .iter()
                .map(|mark| mark.as_str().to_owned())
                .collect(),
            claims: u32::try_from(content.claims.len()).unwrap_or(u32::MAX),
            label: content.label.as_str().to_owned(),
            further_provenance: content.ways,
        });
        Self {
            events: events.collect(),
            next_page_token: page.next.map(write_page_token).unwrap_or_default(),
            total_size: page.total,
        }
    }
}

impl From<Page<ListedClaim>> for wire::ListClaimsResponse {
    fn from(page: Page<ListedClaim>) -> Self {
        let claims = page.entries.into_iter().map(|claim| wire::ClaimEntry {
            claim: claim.document,
            marks: claim.marks,
            derived_at: Some(timestamp(claim.derived_at)),
        });
        Self {
            claims: claims.collect(),
            next_page_token: page.next.map(write_page_token).unwrap_or_default(),
            total_size: page.total,
        }
    }
}

impl From<ExplainedClaim> for wire::ExplainClaimResponse {
    fn from(explained: ExplainedClaim) -> Self {
        Self {
            claim: explained.document,
            evidence: explained.evidence.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Evidence> for wire::ClaimEvidence {
    fn from(evidence: Evidence) -> Self {
        let marks = evidence.marks.into_iter();
        Self {
            event_ref: evidence.support.event.as_str().to_owned(),
            words: evidence.words,
            rule: evidence.support.rule.as_str().to_owned(),
            reason: evidence.reason.unwrap_or_default().to_owned(),
            confidence: evidence.support.confidence.get(),
            marks: marks
                .map(|(mark, meaning)| wire::ExplainedMark {
                    mark,
                    meaning: meaning.unwrap_or_default().to_owned(),
                })
                .collect(),
        }
    }
}

impl From<Pending> for wire::SubmitProposalResponse {
    fn from(pending: Pending) -> Self {
        Self {
            proposal_ref: pending.id.as_str().to_owned(),
            proposal: pending.document,
            expires_at: Some(timestamp(pending.expires_at)),
        }
    }
}

fn timestamp(time: UnixTime) -> Timestamp {
    let milliseconds = time.milliseconds();
    // Below 1,000, so that it fits and the product does too.
    let rest = i32::try_from(milliseconds.rem_euclid(1000)).unwrap_or(0);
    Timestamp {
        seconds: milliseconds.div_euclid(1000),
        nanos: rest * 1_000_000,
    }
}
