//! The order in which faults of an envelope are found: the earlier one wins.

use cl_model::canonical::to_text;
use cl_model::envelope::{MAX_ENVELOPE_BYTES, VerifiedBundle};
use cl_model::refusal::Code;
use cl_model::urn::BundleId;
use serde_json::{Value, json};

use crate::fixture::{Exchange, authority, bundle_key, refused, rehashed, signing_key};

/// An envelope in the making, and how its last steps go.
struct Making {
    contents: Vec<fn(&mut Value)>,
    record: Vec<fn(&mut Value)>,
    envelope: Vec<fn(&mut Value)>,
    key_byte: u8,
    has_broken_text: bool,
    is_too_large: bool,
}

impl Making {
    fn new() -> Self {
        Self {
            contents: Vec::new(),
            record: Vec::new(),
            envelope: Vec::new(),
            key_byte: 0x31,
            has_broken_text: false,
            is_too_large: false,
        }
    }

    fn text(&self) -> String {
        let bundle = Exchange::new().bundle();
        let mut bundle = rehashed(&bundle, BundleId::PREFIX, |it| {
            self.contents.iter().for_each(|change| change(it));
        });
        self.record.iter().for_each(|change| change(&mut bundle));
        let key = signing_key(bundle_key().kid().as_str(), self.key_byte);
        let signature = key.sign(to_text(&bundle).as_bytes());
        let mut envelope = json!({
            "envelope_version": 1,
            "bundle": bundle,
            "authentication": {
                "algorithm": "Ed25519",
                "kid": key.kid().as_str(),
                "sig": signature.to_base64url(),
            },
        });
        self.envelope
            .iter()
            .for_each(|change| change(&mut envelope));
        let mut text = to_text(&envelope);
        if self.has_broken_text {
            text.push('}');
        }
        if self.is_too_large {
            text.push_str(&" ".repeat(MAX_ENVELOPE_BYTES));
        }
        text
    }

    fn refusal(&self) -> Option<Code> {
        refused(VerifiedBundle::open(self.text().as_bytes(), &authority()))
    }
}

type Fault = fn(&mut Making);

/// Faults that do not get into each other's way, in the documented order.
const FAULTS: &[(Code, Fault)] = &[
    (Code::BundleTooLarge, |it| it.is_too_large = true),
    (Code::InvalidBundleJson, |it| it.has_broken_text = true),
    (Code::InvalidAuthenticatedBundle, |it| {
        it.envelope.push(|it| it["envelope_version"] = json!(2));
    }),
    (Code::InvalidRecordIntegrity, |it| {
        it.record
            .push(|it| it["integrity"]["algorithm"] = json!("sha-1"));
    }),
    (Code::RecordIntegrityMismatch, |it| {
        it.record.push(|it| it["id"] = json!("urn:cl:bundle:other"));
    }),
    (Code::InvalidBundle, |it| {
        it.contents.push(|it| it["type"] = json!("receipt"))
    }),
    (Code::InvalidBundlePurposeCode, |it| {
        it.contents.push(|it| it["purpose_code"] = json!("draft"));
    }),
    (Code::InvalidBundlePurpose, |it| {
        it.contents.push(|it| it["purpose"] = json!("ab"))
    }),
    (Code::InvalidTask, |it| {
        it.contents.push(|it| it["task"] = json!({}))
    }),
    (Code::InvalidBundle, |it| {
        it.contents.push(|it| it["single_use"] = json!(false))
    }),
    (Code::InvalidBundleRestrictions, |it| {
        it.contents
            .push(|it| it["restrictions"]["memory_write"] = json!("direct"));
    }),
    (Code::BundleContainsForbiddenMaterial, |it| {
        it.contents.push(|it| it["raw_vault_object"] = json!({}));
    }),
    (Code::InvalidDateTime, |it| {
        it.contents.push(|it| it["issued_at"] = json!("2031"))
    }),
    (Code::InvalidBundleRecipient, |it| {
        it.contents.push(|it| it["recipient"] = json!(""))
    }),
    (Code::BundleProvenanceInvalid, |it| {
        it.contents
            .push(|it| it["context"][0]["provenance_handles"] = json!(["prov_x"]));
    }),
    (Code::InvalidBundle, |it| {
        it.contents.push(|it| it["surplus"] = json!(1))
    }),
    (Code::InvalidBundleAuthentication, |it| {
        it.envelope
            .push(|it| it["authentication"]["surplus"] = json!(1));
    }),
    (Code::UntrustedBundleAuthority, |it| {
        it.envelope
            .push(|it| it["authentication"]["kid"] = json!("urn:cl:key:other"));
    }),
    (Code::BundleAuthenticationFailed, |it| it.key_byte = 0x32),
];

#[test]
fn finds_each_fault_alone() {
    for (index, (code, fault)) in FAULTS.iter().enumerate() {
        let mut making = Making::new();
        assert_eq!(making.refusal(), None);
        fault(&mut making);
        assert_eq!(making.refusal(), Some(*code), "fault {index}");
    }
}

#[test]
fn of_two_faults_the_earlier_one_wins() {
    for (first, (code, earlier)) in FAULTS.iter().enumerate() {
        for (second, (_, later)) in FAULTS.iter().enumerate().skip(first + 1) {
            let mut making = Making::new();
            later(&mut making);
            earlier(&mut making);
            assert_eq!(making.refusal(), Some(*code), "faults {first} and {second}");
        }
    }
}

#[test]
fn of_all_later_faults_together_the_earliest_wins() {
    for (first, (code, _)) in FAULTS.iter().enumerate() {
        let mut making = Making::new();
        FAULTS[first..]
            .iter()
            .for_each(|(_, fault)| fault(&mut making));
        assert_eq!(making.refusal(), Some(*code), "faults from {first}");
    }
}
