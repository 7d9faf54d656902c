//! Operations that issue, open and use bundles, against a receipt store in memory.

use std::collections::HashSet;

use cl_model::alias::AliasScheme;
use cl_model::canonical;
use cl_model::envelope::{TrustedAuthority, VerifiedBundle};
use cl_model::issue::{DEFAULT_ISSUER, Issuance};
use cl_model::key::{MacKey, PublicKey, Seed, SigningKey};
use cl_model::log::LogState;
use cl_model::memory::ProposalDraft;
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::part::Issuer;
use cl_model::policy::{Preflight, PresentedApproval, VerifiedDecision, VerifierOutcome};
use cl_model::record::Record;
use cl_model::refusal::Code;
use cl_model::scalar::KeyId;
use cl_model::session::{Circumstances, Opening, Revocation, Session, Stored};
use serde_json::{Value, json};

use super::{Answer, Failure, Input, evaluate};

pub(super) fn issue_bundle(input: &Input) -> Answer {
    let now = input.clock()?;
    let claims = input.any("claims").as_array().ok_or(Code::InvalidClaims)?;
    let seed = Seed::from_hex(input.text("synthetic_seed_hex")?)?;
    let key = SigningKey::from_seed(key_id(input)?, &seed)?;
    let decision = evaluate(
        input,
        &PresentedApproval::None,
        VerifierOutcome::Absent,
        Preflight::Available,
    )?;
    if !matches!(
        decision.value()["decision"].as_str(),
        Some("allow" | "allow_with_reductions")
    ) {
        return Err(Code::DecisionDoesNotAuthorizeBundle.into());
    }
    let request = ContextRequest::read(input.any("request"))?;
    let decision = VerifiedDecision::verify(decision.value(), &request)?;
    let pending = Issuance {
        request: &request,
        decision: &decision,
        claims,
        issuer: &Issuer::new(DEFAULT_ISSUER).ok_or(Failure::INPUT)?,
        aliases: &AliasScheme::Parity,
        key: &key,
        preflight: Preflight::Available,
        latest_end: None,
        now,
    }
    .issue()?;
    let is_durable = match pending.receipt() {
        Some(receipt) => MemoryReceipts::new().store(receipt) == Stored::Durable,
        None => true,
    };
    let (envelope, _) = pending.release(is_durable)?;
    serde_json::from_str(&envelope).map_err(|_| Failure::INPUT)
}

pub(super) fn verify_envelope(input: &Input) -> Answer {
    open(input, &mut MemoryReceipts::new())?;
    Ok(json!({"accepted": true}))
}

pub(super) fn replay(input: &Input) -> Answer {
    let mut receipts = MemoryReceipts::new();
    open(input, &mut receipts)?;
    let second = open(input, &mut receipts);
    // A restarted consumer knows only what the receipt store knows.
    let mut restarted = MemoryReceipts(receipts.0.clone());
    let restart = open(input, &mut restarted);
    let code = |result: Result<Session, Failure>| result.err().map(|failure| failure.code());
    Ok(json!({
        "first_accepted": true,
        "second_error": code(second),
        "restart_error": code(restart),
    }))
}

pub(super) fn memory_proposal(input: &Input) -> Answer {
    let mut receipts = MemoryReceipts::new();
    let session = open(input, &mut receipts)?;
    let at = circumstances(input)?;
    session.check_may_propose(at)?;
    let proposal = input.any("proposal");
    let handles = handles(&proposal["provenance_handles"])?;
    let pending = session.propose(&ProposalDraft::read(proposal, &handles)?, at)?;
    let is_durable = receipts.store(pending.receipt()) == Stored::Durable;
    Ok(pending.settle(is_durable)?.into_value())
}

/// Distinct handles in the order given; absent means none.
fn handles(value: &Value) -> Result<Vec<String>, Failure> {
    let elements = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(elements) => elements,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return Err(Code::InvalidStringList.into());
        }
    };
    let mut seen = HashSet::new();
    let mut handles = Vec::new();
    for element in elements {
        let handle = element.as_str().filter(|handle| !handle.is_empty());
        let handle = handle.ok_or(Code::InvalidStringList)?;
        if seen.insert(handle) {
            handles.push(handle.to_owned());
        }
    }
    Ok(handles)
}

/// Opens the input's envelope as its recipient.
fn open(input: &Input, receipts: &mut MemoryReceipts) -> Result<Session, Failure> {
    let at = circumstances(input)?;
    let recipient = input.text("recipient")?;
    let envelope = match input.any("envelope").as_str() {
        Some(serialized) => serialized.to_owned(),
        None => canonical::to_text(input.any("envelope")),
    };
    let bundle = VerifiedBundle::open_profile(envelope.as_bytes(), &authority(input)?)?;
    let is_consumed = receipts
        .0
        .is_consumed(recipient, bundle.bundle().id.as_str());
    let opening = Opening::begin(bundle, recipient, is_consumed, at)?;
    let stored = receipts.store(opening.receipt());
    Ok(opening.settle(stored)?)
}

fn authority(input: &Input) -> Result<TrustedAuthority, Failure> {
    let key = PublicKey::from_hex(key_id(input)?, input.text("public_key_hex")?)?;
    let authority = TrustedAuthority::new(key);
    if *input.any("legacy_hmac") != true {
        return Ok(authority);
    }
    let secret = Seed::from_hex(input.text("synthetic_legacy_key_hex")?)?;
    Ok(authority.with_retired_hmac(MacKey::from_seed(&secret)))
}

fn circumstances(input: &Input) -> Result<Circumstances, Failure> {
    Ok(Circumstances {
        now: input.clock()?,
        revocation: match input.any("revocation").as_str() {
            Some("clear") => Revocation::Clear,
            Some("revoked") => Revocation::Revoked,
            Some(_) | None => Revocation::Unknown,
        },
        preflight: Preflight::Available,
    })
}

fn key_id(input: &Input) -> Result<KeyId, Failure> {
    let kid = input.any("key_id").as_str().and_then(KeyId::new);
    kid.ok_or_else(|| Code::InvalidKeyId.into())
}

/// A receipt store for one process: the portable log's rules, kept in memory.
struct MemoryReceipts(LogState);

impl MemoryReceipts {
    fn new() -> Self {
        Self(LogState::empty())
    }

    fn store(&mut self, receipt: &Record) -> Stored {
        match self.0.append(receipt) {
            Ok(_) => Stored::Durable,
            Err(refusal) if refusal.code() == Code::ReceiptReplayConflict => Stored::ReplayConflict,
            Err(_) => Stored::Failed,
        }
    }
}
