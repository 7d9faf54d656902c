//! Snapshots that operators have to sign.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cl_host::trust::Trust;
use cl_model::key::{Seed, SigningKey};
use cl_model::policy::SnapshotSignature;
use cl_model::scalar::KeyId;
use cl_policy_engine::signers::Signers;
use cl_testbed::{refusal, refused};
use cl_wire::policy::v1 as wire;
use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::{Code, Status};

use crate::documents::{TENANT, bytes, operation, snapshot};
use crate::support::{Running, World};

/// Whose signatures count.
struct Operators {
    folder: TempDir,
    trust: Arc<Trust>,
}

fn key(name: &str, byte: u8) -> SigningKey {
    let kid = KeyId::new(format!("urn:cl:key:policy-snapshot:{name}")).unwrap();
    SigningKey::from_seed(kid, &Seed::new(&[byte; 32]).unwrap()).unwrap()
}

fn ann() -> SigningKey {
    key("ann", 21)
}

impl Operators {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "policy-snapshot", Value::Null, false);
        let trust = Trust::load(folder.path().join("trust.json")).unwrap();
        Self { folder, trust }
    }

    fn change(&self, purpose: &str, ends: Value, is_revoked: bool) {
        write(self.folder.path(), purpose, ends, is_revoked);
        self.trust.reload().unwrap();
    }

    fn signers(&self) -> Option<Signers> {
        Some(Signers::new(Arc::clone(&self.trust)))
    }
}

/// A file that trusts Ann's key.
fn write(folder: &Path, purpose: &str, ends: Value, is_revoked: bool) {
    let trust = json!({"keys": [{
        "kid": ann().kid().as_str(),
        "purpose": purpose,
        "alg": "Ed25519",
        "x": BASE64URL_NOPAD.encode(ann().public_key().as_bytes()),
        "not_before": null,
        "not_after": ends,
        "revoked": is_revoked,
    }]});
    fs::write(folder.join("trust.json"), trust.to_string()).unwrap();
}

async fn put(
    running: &Running,
    snapshot: &Value,
    by: Option<&SigningKey>,
    number: u32,
) -> Result<String, Status> {
    let bytes = bytes(snapshot);
    let signed = by.map(|key| SnapshotSignature::make(&bytes, key));
    put_with(running, bytes, signed, number).await
}

async fn put_with(
    running: &Running,
    snapshot: Vec<u8>,
    signed: Option<SnapshotSignature>,
    number: u32,
) -> Result<String, Status> {
    let message = wire::PutSnapshotRequest {
        tenant: TENANT.to_owned(),
        snapshot,
        operation_id: operation(number),
        signature: signed.map(|signed| wire::SnapshotSignature {
            kid: signed.kid.to_string(),
            signature: signed.signature.as_bytes().to_vec(),
        }),
    };
    let answer = running.admin.clone().put_snapshot(message).await?;
    Ok(answer.into_inner().digest)
}

async fn signed_by(running: &Running, digest: &str) -> Option<String> {
    let message = wire::GetSnapshotRequest {
        tenant: TENANT.to_owned(),
        digest: Some(digest.to_owned()),
    };
    let answer = running.admin.clone().get_snapshot(message).await.unwrap();
    answer.into_inner().info.unwrap().signed_by
}

fn untrusted() -> (Code, String) {
    refused(Code::PermissionDenied, "SNAPSHOT_SIGNER_UNTRUSTED")
}

fn unsigned() -> (Code, String) {
    refused(Code::FailedPrecondition, "SNAPSHOT_UNSIGNED")
}

#[tokio::test]
async fn only_what_a_trusted_operator_signed_is_stored_and_activated() {
    let operators = Operators::new();
    let mut world = World::new().await;
    world.signers = operators.signers();
    let running = world.start().await;
    let document = snapshot("v1");
    assert_eq!(refusal(put(&running, &document, None, 1).await), unsigned());
    let stranger = key("eve", 22);
    let foreign = put(&running, &document, Some(&stranger), 2).await;
    assert_eq!(refusal(foreign), untrusted());
    // Another key under Ann's name, and Ann's signature of another snapshot.
    let forged = put(&running, &document, Some(&key("ann", 22)), 3).await;
    let invalid = refused(Code::PermissionDenied, "SNAPSHOT_SIGNATURE_INVALID");
    assert_eq!(refusal(forged), invalid);
    let other = SnapshotSignature::make(&bytes(&snapshot("v2")), &ann());
    let moved = put_with(&running, bytes(&document), Some(other), 4).await;
    assert_eq!(refusal(moved), invalid);
    assert!(world.receipts.log().is_empty());

    let digest = put(&running, &document, Some(&ann()), 5).await.unwrap();
    let again = put(&running, &document, Some(&ann()), 6).await.unwrap();
    assert_eq!(again, digest);
    assert_eq!(world.receipts.of("policy.put_snapshot").len(), 1);
    let signer = signed_by(&running, &digest).await;
    assert_eq!(signer.as_deref(), Some(ann().kid().as_str()));
    running.activate(TENANT, &digest, None, 7).await.unwrap();
    // It starts again with what is signed.
    running.kill().await;
    let running = world.start().await;
    assert!(running.activate(TENANT, &digest, None, 7).await.is_ok());
}

#[tokio::test]
async fn a_key_that_was_replaced_still_counts_and_one_that_was_revoked_does_not() {
    let operators = Operators::new();
    let mut world = World::new().await;
    world.signers = operators.signers();
    let running = world.start().await;
    let digest = put(&running, &snapshot("v1"), Some(&ann()), 1)
        .await
        .unwrap();
    let second = put(&running, &snapshot("v2"), Some(&ann()), 2)
        .await
        .unwrap();
    operators.change("policy-snapshot", json!("2030-01-01T12:00:00Z"), false);
    let late = put(&running, &snapshot("v3"), Some(&ann()), 3).await;
    assert_eq!(refusal(late), untrusted());
    running.activate(TENANT, &digest, None, 4).await.unwrap();
    operators.change("policy-snapshot", Value::Null, true);
    let revoked = running.activate(TENANT, &second, Some(&digest), 5).await;
    assert_eq!(refusal(revoked), untrusted());
    running.kill().await;
    let engine = Arc::new(world.memory.clone());
    let failed = world.try_start_on(engine).await.err().unwrap();
    assert!(failed.to_string().contains("not trusted"), "{failed}");
    // A key for something else is none for snapshots.
    operators.change("decision", Value::Null, false);
    let engine = Arc::new(world.memory.clone());
    assert!(world.try_start_on(engine).await.is_err());
    operators.change("policy-snapshot", Value::Null, false);
    world.start().await;
}

#[tokio::test]
async fn what_was_stored_unsigned_is_signed_before_signatures_are_required() {
    let operators = Operators::new();
    let mut world = World::new().await;
    let running = world.start().await;
    let active = running.activate_new(&snapshot("v1"), None).await;
    let second = running.put(TENANT, &snapshot("v2"), 1).await.unwrap();
    running.kill().await;
    world.signers = operators.signers();
    let engine = Arc::new(world.memory.clone());
    let failed = world.try_start_on(engine).await.err().unwrap();
    assert!(failed.to_string().contains(TENANT), "{failed}");
    assert!(failed.to_string().contains("not signed"), "{failed}");

    world.signers = None;
    let running = world.start().await;
    let signed = put(&running, &snapshot("v1"), Some(&ann()), 2).await;
    assert_eq!(signed.unwrap(), active);
    put(&running, &snapshot("v1"), Some(&ann()), 2)
        .await
        .unwrap();
    assert_eq!(world.receipts.of("policy.put_snapshot").len(), 3);
    // One that nobody has verified gives way to one that was.
    put(&running, &snapshot("v2"), Some(&key("ann", 22)), 3)
        .await
        .unwrap();
    running.kill().await;
    world.signers = operators.signers();
    let running = world.start().await;
    let expected = Some(active.as_str());
    let invalid = running.activate(TENANT, &second, expected, 4).await;
    let reason = refused(Code::PermissionDenied, "SNAPSHOT_SIGNATURE_INVALID");
    assert_eq!(refusal(invalid), reason);
    put(&running, &snapshot("v2"), Some(&ann()), 5)
        .await
        .unwrap();
    running
        .activate(TENANT, &second, expected, 6)
        .await
        .unwrap();
}

#[tokio::test]
async fn malformed_signatures_name_field_and_rule() {
    let world = World::new().await;
    let running = world.start().await;
    let whole = SnapshotSignature::make(&bytes(&snapshot("v1")), &ann());
    for (kid, length, field) in [
        ("", 64, "signature.kid"),
        ("urn:a", 63, "signature.signature"),
    ] {
        let message = wire::PutSnapshotRequest {
            tenant: TENANT.to_owned(),
            snapshot: bytes(&snapshot("v1")),
            operation_id: operation(1),
            signature: Some(wire::SnapshotSignature {
                kid: kid.to_owned(),
                signature: whole.signature.as_bytes()[..length].to_vec(),
            }),
        };
        let error = running.admin.clone().put_snapshot(message).await;
        let error = error.unwrap_err();
        assert_eq!(cl_wire::status::violations(&error)[0].field, field);
        let invalid = refused(Code::InvalidArgument, "INVALID_FIELD");
        assert_eq!(refusal::<()>(Err(error)), invalid);
    }
}
