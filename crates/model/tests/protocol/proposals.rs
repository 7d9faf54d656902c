//! Memory proposals.

use cl_model::canonical::to_text;
use cl_model::digest::Digest;
use cl_model::memory::{self, ProposalDraft};
use cl_model::policy::Preflight;
use cl_model::receipt;
use cl_model::record::{self, Record};
use cl_model::refusal::{Code, Refusal};
use cl_model::session::{Circumstances, Revocation, Session};
use cl_model::urn::ProposalId;
use serde_json::{Value, json};

use crate::fixture::{
    CANARY, Exchange, RECIPIENT, at, circumstances, open, refused, rehashed, remove, session,
    session_of,
};

type Change = fn(&mut Value);

fn parts() -> Value {
    json!({
        "operation": "add",
        "proposed_claims": [{
            "predicate": "trip.destination",
            "object": {"value": "Trondheim", "datatype": "text"},
            "confidence": 0.8,
        }],
        "rationale": "The letter says so.",
    })
}

fn handles() -> Vec<String> {
    let bundle = Exchange::new().bundle();
    let provenance = bundle["provenance"].as_object().expect("an object");
    provenance.keys().cloned().collect()
}

fn propose(
    session: &Session,
    parts: &Value,
    handles: &[String],
    at: Circumstances,
) -> Result<Record, Refusal> {
    let draft = ProposalDraft::read(parts, handles)?;
    session.propose(&draft, at)?.settle(true)
}

fn proposal() -> Value {
    let record = propose(&session(), &parts(), &handles(), circumstances());
    record.expect("a proposal").into_value()
}

#[test]
fn reading_the_parts_finds_each_fault() {
    let rows: &[(Code, Change)] = &[
        (Code::InvalidMemoryOperation, |it| {
            it["operation"] = json!("supersede")
        }),
        (Code::InvalidMemoryOperation, |it| {
            it["operation"] = json!("delete")
        }),
        (Code::InvalidMemoryOperation, |it| {
            it["operation"] = Value::Null
        }),
        (Code::ProposedClaimsRequired, |it| {
            remove(it, "proposed_claims")
        }),
        (Code::ProposedClaimsRequired, |it| {
            it["proposed_claims"] = json!([])
        }),
        (Code::ProposedClaimsRequired, |it| {
            it["proposed_claims"] = json!({})
        }),
        (Code::InvalidString, |it| remove(it, "rationale")),
        (Code::InvalidString, |it| it["rationale"] = json!("")),
        (Code::InvalidString, |it| it["rationale"] = json!(1)),
        (Code::InvalidObject, |it| *it = json!("add")),
        (Code::InvalidMemoryProposal, |it| {
            it["status"] = json!("committed")
        }),
        (Code::MemoryProposalContainsForbiddenMaterial, |it| {
            it["raw_vault_write"] = json!(true);
        }),
    ];
    for (index, (code, change)) in rows.iter().enumerate() {
        let mut changed = parts();
        assert_eq!(refused(ProposalDraft::read(&changed, &[])), None);
        change(&mut changed);
        assert_eq!(
            refused(ProposalDraft::read(&changed, &[])),
            Some(*code),
            "row {index}"
        );
    }
}

#[test]
fn proposes_with_every_member_in_place() {
    let bundle = Exchange::new().bundle();
    let handles = handles();
    let references: Vec<_> = handles
        .iter()
        .map(|handle| bundle["provenance"][handle]["ref"].clone())
        .collect();
    let expected = json!({
        "spec_version": "context-layer/0.2-draft",
        "type": "memory_update_proposal",
        "created_at": "2031-05-04T09:30:00.000Z",
        "issuer": {"id": RECIPIENT},
        "subject_ref": bundle["subject_alias"],
        "bundle_ref": bundle["id"],
        "operation": "add",
        "proposed_claims": parts()["proposed_claims"],
        "provenance_refs": references,
        "rationale": "The letter says so.",
        "submitted_by": RECIPIENT,
        "status": "pending_validation",
        "approval_requirement": ["user_confirm"],
        "expires_at": bundle["expires_at"],
    });
    let expected = record::finalize(expected, ProposalId::PREFIX).expect("a record");
    assert_eq!(proposal(), expected.into_value());
}

#[test]
fn keeps_the_order_of_handles() {
    let mut handles = handles();
    assert_eq!(handles.len(), 2);
    handles.reverse();
    let reversed = propose(&session(), &parts(), &handles, circumstances()).expect("a proposal");
    let mut references = proposal()["provenance_refs"]
        .as_array()
        .expect("an array")
        .clone();
    references.reverse();
    assert_eq!(reversed.value()["provenance_refs"], Value::from(references));
}

#[test]
fn asks_for_a_source_where_none_is_named() {
    let unsourced = propose(&session(), &parts(), &[], circumstances()).expect("a proposal");
    let requirement = &unsourced.value()["approval_requirement"];
    assert_eq!(*requirement, json!(["source_required", "user_confirm"]));
    assert_eq!(unsourced.value()["provenance_refs"], json!([]));
}

#[test]
fn the_operation_has_a_default_and_three_values() {
    for (operation, expected) in [
        (None, "add_or_contradict"),
        (Some("add"), "add"),
        (Some("add_or_contradict"), "add_or_contradict"),
        (Some("retract"), "retract"),
    ] {
        let mut parts = parts();
        match operation {
            Some(operation) => parts["operation"] = json!(operation),
            None => remove(&mut parts, "operation"),
        }
        let record = propose(&session(), &parts, &[], circumstances()).expect("a proposal");
        assert_eq!(record.value()["operation"], expected);
    }
}

/// Each step adds an earlier fault to those before it.
#[test]
fn proposing_finds_faults_in_order() {
    let session = session();
    let mut parts = parts();
    let mut handles = handles();
    let mut at_step = circumstances();
    assert_eq!(refused(propose(&session, &parts, &handles, at_step)), None);
    parts["proposed_claims"][0]["confidence"] = json!(2);
    let code = refused(propose(&session, &parts, &handles, at_step));
    assert_eq!(code, Some(Code::InvalidMemoryProposal));
    parts["proposed_claims"][0]["raw_vault_write"] = json!(1);
    let code = refused(propose(&session, &parts, &handles, at_step));
    assert_eq!(code, Some(Code::MemoryProposalContainsForbiddenMaterial));
    handles.push("prov_unknown".to_owned());
    let code = refused(propose(&session, &parts, &handles, at_step));
    assert_eq!(code, Some(Code::UnknownProvenanceHandle));
    at_step.preflight = Preflight::Absent;
    let code = refused(propose(&session, &parts, &handles, at_step));
    assert_eq!(code, Some(Code::ReceiptPreflightFailed));
    at_step.revocation = Revocation::Revoked;
    let code = refused(propose(&session, &parts, &handles, at_step));
    assert_eq!(code, Some(Code::BundleRevoked));
    at_step.now = at("2031-05-04T09:35:00Z");
    let code = refused(propose(&session, &parts, &handles, at_step));
    assert_eq!(code, Some(Code::BundleExpired));
    let without = Exchange::new().with(|it| it.case.ask(&["trip.dates"], &["letter.draft"]));
    let without = session_of(open(&without.envelope()).expect("a bundle"));
    let code = refused(propose(&without, &parts, &handles, at_step));
    assert_eq!(code, Some(Code::CapabilityNotGranted));
}

#[test]
fn refuses_claims_outside_their_schema_and_secrets() {
    let rows: &[(Code, Change)] = &[
        (Code::InvalidMemoryProposal, |it| {
            it["proposed_claims"][0] = json!("a fact")
        }),
        (Code::InvalidMemoryProposal, |it| {
            remove(&mut it["proposed_claims"][0], "object")
        }),
        (Code::InvalidMemoryProposal, |it| {
            it["proposed_claims"][0]["status"] = json!("x")
        }),
        (Code::InvalidMemoryProposal, |it| {
            it["proposed_claims"] = json!(vec![it["proposed_claims"][0].clone(); 65]);
        }),
        (Code::InvalidMemoryProposal, |it| {
            it["rationale"] = json!("x".repeat(1001))
        }),
        (Code::MemoryProposalContainsForbiddenMaterial, |it| {
            it["rationale"] = json!("See vault://events/1.");
        }),
        (Code::MemoryProposalContainsForbiddenMaterial, |it| {
            it["proposed_claims"][0]["object"]["value"] = json!({"password": "x"});
        }),
    ];
    for (index, (code, change)) in rows.iter().enumerate() {
        let mut changed = parts();
        change(&mut changed);
        let code_found = refused(propose(&session(), &changed, &[], circumstances()));
        assert_eq!(code_found, Some(*code), "row {index}");
    }
    let twice = [handles()[0].clone(), handles()[0].clone()];
    let code = refused(propose(&session(), &parts(), &twice, circumstances()));
    assert_eq!(
        code,
        Some(Code::InvalidMemoryProposal),
        "one source named twice"
    );
}

#[test]
fn the_authority_finds_each_fault_of_a_received_proposal() {
    let rows: &[(Code, Change)] = &[
        (Code::InvalidMemoryProposal, |it| {
            it["status"] = json!("approved")
        }),
        (Code::InvalidMemoryProposal, |it| {
            it["type"] = json!("context_claim")
        }),
        (Code::InvalidMemoryProposal, |it| {
            it["spec_version"] = json!("context-layer/9")
        }),
        (Code::MemoryProposalContainsForbiddenMaterial, |it| {
            it["raw_vault_write"] = json!({});
            it["approval_requirement"] = json!([]);
        }),
        (Code::MemoryProposalApprovalRequired, |it| {
            it["approval_requirement"] = json!(["source_required"]);
            it["surplus"] = json!(1);
        }),
        (Code::MemoryProposalApprovalRequired, |it| {
            remove(it, "approval_requirement")
        }),
        (Code::InvalidMemoryProposal, |it| it["surplus"] = json!(1)),
        (Code::InvalidMemoryProposal, |it| {
            it["operation"] = json!("delete")
        }),
    ];
    let valid = proposal();
    for (index, (code, change)) in rows.iter().enumerate() {
        assert_eq!(refused(memory::check(&valid)), None);
        let changed = rehashed(&valid, ProposalId::PREFIX, change);
        assert_eq!(refused(memory::check(&changed)), Some(*code), "row {index}");
    }
    let mut changed = valid.clone();
    changed["raw_vault_write"] = json!({});
    assert_eq!(
        refused(memory::check(&changed)),
        Some(Code::RecordIntegrityMismatch)
    );
    remove(&mut changed, "integrity");
    assert_eq!(
        refused(memory::check(&changed)),
        Some(Code::InvalidRecordIntegrity)
    );
    assert_eq!(
        refused(memory::check(&json!([]))),
        Some(Code::InvalidObject)
    );
}

#[test]
fn comes_out_only_with_a_durable_receipt_that_holds_no_content() {
    let mut parts = parts();
    parts["rationale"] = json!(CANARY);
    parts["proposed_claims"][0]["object"]["value"] = json!(CANARY);
    let handles = handles();
    let draft = ProposalDraft::read(&parts, &handles).expect("a draft");
    let pending = session()
        .propose(&draft, circumstances())
        .expect("a proposal");
    let record = pending.receipt().value().clone();
    assert_eq!(refused(receipt::check(&record)), None);
    assert!(!to_text(&record).contains(CANARY));
    assert!(!format!("{pending:?} {draft:?}").contains(CANARY));
    let input = json!({"operation": "add", "proposed_claim_count": 1});
    assert_eq!(record["operation"], "memory.propose");
    assert_eq!(record["input_digest"], Digest::of_json(&input).to_string());
    assert_eq!(
        refused(pending.settle(false)),
        Some(Code::MemoryProposalReceiptFailed)
    );
    let pending = session()
        .propose(&draft, circumstances())
        .expect("a proposal");
    let proposal = pending.settle(true).expect("a proposal");
    assert_eq!(record["output_digest"], proposal.digest().to_string());
    assert_eq!(
        record["metadata"],
        json!({"proposal_ref": proposal.value()["id"], "status": "pending_validation"})
    );
}
