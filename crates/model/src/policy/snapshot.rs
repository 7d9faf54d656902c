//! The production policy snapshot: a policy in one of two forms, and everything it is read with.

use std::collections::HashSet;

use serde_json::Value;

use super::registry::{
    Approver, RegisteredClient, RegisteredPredicate, RequestLimits, RequestRate, ResolveLimits,
};
use super::{CedarDocument, CedarForm, Limits, ListPolicy};
use crate::digest::Digest;
use crate::json::read::{Expected, FromJson, Mismatch, Nullable, constant, object};
use crate::list::{Dictionary, List};
use crate::part::PolicySnapshot;
use crate::refusal::{Code, Refusal};
use crate::scalar::{AnyJson, Predicate, Reference, Text};
use crate::time::{Timestamp, UnixTime};

/// The most entries of each registry.
const MAX_ENTRIES: usize = 4096;

/// What the list-style policy inside a snapshot may say. Its version is the snapshot's own.
const POLICY_MEMBERS: &[&str] = &[
    "allowed_actions",
    "allowed_authentication_methods",
    "allowed_clients",
    "allowed_onward_disclosure",
    "allowed_purpose_codes",
    "allowed_recipients",
    "allowed_requesters",
    "allowed_selectors",
    "allowed_subjects",
    "allowed_tasks",
    "anomaly_state",
    "approval_required_actions",
    "approval_required_selectors",
    "bundle_instructions",
    "decision_ttl_seconds",
    "issuer",
    "maximum_retention",
    "rate_limit_ok",
    "require_receipts",
    "transforms",
];

constant! {
    /// The version of the snapshot document.
    pub struct SnapshotVersion = 1;
}

object! {
    /// The document as a whole.
    pub struct SnapshotDocument {
        /// The version of this document's form.
        snapshot_version: SnapshotVersion,
        /// The version that the tenant gives it, 1 to 240 characters.
        version: Text<1, 240>,
        /// The list-style policy; this or `cedar`.
        policy: Option<AnyJson>,
        /// The policy in Cedar; this or `policy`.
        cedar: Option<CedarDocument>,
        /// The predicate registry.
        predicates: Dictionary<Predicate, RegisteredPredicate, 0, MAX_ENTRIES>,
        /// Limits on what may be resolved, for predicates that depart from the defaults.
        resolve: Dictionary<Predicate, ResolveLimits, 0, MAX_ENTRIES>,
        /// The registered clients.
        clients: List<RegisteredClient, 0, MAX_ENTRIES>,
        /// Who may approve for whom.
        approvers: List<Approver, 0, MAX_ENTRIES>,
        /// Limits of a single request.
        limits: RequestLimits,
        /// Encryption keys of recipients: none can be registered yet.
        recipient_keys: Option<AnyJson>,
        /// When it stops being usable; null for never.
        expires_at: Nullable<Timestamp>,
    }
    check = SnapshotDocument::has_one_policy;
}

impl SnapshotDocument {
    fn has_one_policy(&self) -> Result<(), Mismatch> {
        if self.policy.is_some() != self.cedar.is_some() {
            return Ok(());
        }
        Err(Expected::Rule("expected either a list-style policy or one in Cedar").into())
    }
}

/// The forms of a policy. The documents differ; what evaluates them is the same.
#[derive(Clone, Debug)]
pub enum PolicyForm {
    /// What is allowed by name.
    List(Box<ListPolicy>),
    /// Texts in Cedar, which nobody has read yet.
    Cedar(Box<CedarForm>),
}

/// A policy snapshot whose parts agree with each other. Only [`Snapshot::read`] makes one.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) document: SnapshotDocument,
    policy: PolicyForm,
}

impl Snapshot {
    /// Reads a snapshot document; the digest covers all of it, and members that the form does not
    /// know refuse it.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidPolicy`] if it departs from its form, if a predicate of the policy, or with
    /// limits, is not registered, or if an allowed client is not; [`Code::RecipientKeyUnsupported`];
    /// and those of [`ListPolicy::read`], without a place inside the policy.
    pub fn read(value: &Value) -> Result<Self, Refusal> {
        let read = Self::read_form(value)?;
        read.check_registries()?;
        Ok(read)
    }

    /// Whether the document has the form that its JSON Schema states; its parts may still
    /// disagree.
    ///
    /// # Errors
    ///
    /// As [`Self::read`], except for what is not registered.
    pub fn check_form(value: &Value) -> Result<(), Refusal> {
        Self::read_form(value).map(|_| ())
    }

    fn read_form(value: &Value) -> Result<Self, Refusal> {
        let document = SnapshotDocument::from_json(value)
            .map_err(|mismatch| mismatch.refuse(Code::InvalidPolicy))?;
        if document.recipient_keys.as_ref().is_some_and(registers) {
            return Err(Refusal::at_member(
                Code::RecipientKeyUnsupported,
                "recipient_keys",
            ));
        }
        let snapshot = PolicySnapshot {
            version: document.version.clone(),
            digest: Digest::of_json(value),
        };
        let policy = match (&document.policy, &document.cedar) {
            (Some(policy), None) => {
                check_policy_members(&policy.0)?;
                let policy = ListPolicy::within(&policy.0, snapshot, projected(&document))
                    .map_err(|refusal| Refusal::at(refusal.code(), under_policy(&refusal)))?;
                PolicyForm::List(Box::new(policy))
            }
            (None, Some(cedar)) => {
                PolicyForm::Cedar(Box::new(CedarForm::new(cedar.clone(), snapshot)?))
            }
            (Some(_), Some(_)) | (None, None) => return Err(Code::InvalidPolicy.into()),
        };
        Ok(Self { document, policy })
    }

    /// The version and digest of the whole document.
    pub fn identity(&self) -> &PolicySnapshot {
        match &self.policy {
            PolicyForm::List(policy) => policy.snapshot(),
            PolicyForm::Cedar(form) => &form.terms().snapshot,
        }
    }

    /// The policy, in the form that the document has.
    pub const fn policy(&self) -> &PolicyForm {
        &self.policy
    }

    /// The predicates that the tenant knows.
    pub fn predicates(&self) -> impl Iterator<Item = (&Predicate, &RegisteredPredicate)> {
        self.document.predicates.iter()
    }

    /// The registered clients.
    pub fn clients(&self) -> &[RegisteredClient] {
        &self.document.clients
    }

    /// Whether claims of a predicate leave in a form that no transform states.
    pub fn is_projected(&self, predicate: &Predicate) -> bool {
        let limits = self.document.resolve.get(predicate);
        limits.is_some_and(has_projection)
    }

    /// The limits of a single request.
    pub const fn limits(&self) -> &RequestLimits {
        &self.document.limits
    }

    /// How often a requester may ask.
    pub fn rates(&self) -> &[RequestRate] {
        let rates = self.document.limits.rates.as_ref();
        rates.map_or(&[], |rates| &rates[..])
    }

    /// Whether a requester asks too often, when so many requests were counted by each rate before.
    pub fn is_over_rate(&self, counted: &[u64]) -> bool {
        let mut rates = self.rates().iter().zip(counted);
        rates.any(|(rate, counted)| *counted >= rate.max_requests.get().unsigned_abs())
    }

    /// What each rate would have counted where the rates of another snapshot counted this: as much
    /// as the one that counts the same, and nothing if none does.
    pub fn recounted(&self, other: &Self, counted: &[u64]) -> Vec<u64> {
        let counted_as = |rate: &RequestRate| {
            let mut others = other.rates().iter().zip(counted);
            others.find_map(|(it, count)| it.counts_as(rate).then_some(*count))
        };
        let rates = self.rates().iter();
        rates
            .map(|rate| counted_as(rate).unwrap_or_default())
            .collect()
    }

    /// Who may approve for whom.
    pub fn approvers(&self) -> &[Approver] {
        &self.document.approvers
    }

    /// When it stops being usable, if ever.
    pub fn expires_at(&self) -> Option<UnixTime> {
        self.document.expires_at.get().map(Timestamp::instant)
    }

    /// Whether it can no longer be used.
    pub fn is_expired(&self, now: UnixTime) -> bool {
        self.expires_at().is_some_and(|ends| ends <= now)
    }

    /// Whether the client instance is registered to act for the principal.
    pub fn is_registered(&self, client_instance: &Reference, principal: &Reference) -> bool {
        self.document.clients.iter().any(|client| {
            client.client_instance == *client_instance && client.principals.contains(principal)
        })
    }

    fn check_registries(&self) -> Result<(), Refusal> {
        let limited = self.document.resolve.keys();
        if !limited
            .clone()
            .all(|name| self.document.predicates.contains_key(name))
        {
            return Err(Refusal::at_member(Code::InvalidPolicy, "predicates"));
        }
        let rates = self.rates();
        let is_repeated = |(index, rate): (usize, &RequestRate)| {
            rates[..index].iter().any(|other| other.counts_as(rate))
        };
        if rates.iter().enumerate().any(is_repeated) {
            return Err(Refusal::at_member(Code::InvalidPolicy, "limits"));
        }
        let mut clients = HashSet::new();
        for client in self.document.clients.iter() {
            if !clients.insert(client.client_instance.as_str()) {
                return Err(Refusal::at_member(Code::InvalidPolicy, "clients"));
            }
        }
        match &self.policy {
            PolicyForm::List(policy) => self.check_lists(policy, &clients),
            PolicyForm::Cedar(form) => form.check_entities(),
        }
    }

    fn check_lists(&self, policy: &ListPolicy, clients: &HashSet<&str>) -> Result<(), Refusal> {
        let selectors = &policy.selectors;
        let mut named = selectors.ordinary.iter().chain(&selectors.gated);
        if !named.all(|name| self.document.predicates.contains_key(name.as_str())) {
            return Err(Refusal::at_member(Code::InvalidPolicy, "predicates"));
        }
        let mut allowed = policy.clients.iter();
        if !allowed.all(|client| clients.contains(client.as_str())) {
            return Err(Refusal::at_member(Code::InvalidPolicy, "clients"));
        }
        let has_rules = self.document.predicates.keys().all(|predicate| {
            let limits = Limits {
                transforms: policy.transforms_of(predicate.as_str()),
                ..Limits::default()
            };
            self.resolve_rule(predicate, &limits).is_some()
        });
        if !has_rules {
            return Err(Refusal::at_member(Code::UnsupportedTransform, "policy"));
        }
        Ok(())
    }
}

/// Only an empty object registers nothing.
fn registers(keys: &AnyJson) -> bool {
    keys.0.as_object().is_none_or(|keys| !keys.is_empty())
}

fn check_policy_members(policy: &Value) -> Result<(), Refusal> {
    let is_closed = policy.as_object().is_some_and(|members| {
        members
            .keys()
            .all(|name| POLICY_MEMBERS.contains(&name.as_str()))
    });
    if is_closed {
        return Ok(());
    }
    Err(Refusal::at_member(Code::InvalidPolicy, "policy"))
}

fn under_policy(refusal: &Refusal) -> crate::refusal::Place {
    refusal
        .place()
        .cloned()
        .unwrap_or_default()
        .under_member("policy")
}

fn has_projection(limits: &ResolveLimits) -> bool {
    let projections = limits.projections.as_ref();
    projections.is_some_and(|projections| !projections.is_empty())
}

fn projected(document: &SnapshotDocument) -> HashSet<String> {
    let limits = document.resolve.iter();
    limits
        .filter(|(_, limits)| has_projection(limits))
        .map(|(predicate, _)| predicate.as_str().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::grant::ProjectionStep;
    use crate::part::{Label, Trust};
    use crate::policy::limits::DEFAULT_STATUSES;

    fn document() -> Value {
        json!({
            "snapshot_version": 1,
            "version": "v1",
            "policy": {
                "allowed_subjects": ["vault://subjects/a"],
                "allowed_requesters": ["urn:agent:a"],
                "allowed_clients": ["urn:device:a"],
                "allowed_recipients": ["urn:model:a"],
                "allowed_purpose_codes": ["draft.response"],
                "allowed_tasks": ["draft_only"],
                "allowed_selectors": ["delivery_date"],
                "allowed_actions": ["email.create_draft"],
                "maximum_retention": {"mode": "ephemeral", "max_seconds": 600},
            },
            "predicates": {"delivery_date": {"datatype": "date", "label": "private"}},
            "resolve": {},
            "clients": [{"client_instance": "urn:device:a", "principals": ["urn:agent:a"]}],
            "approvers": [],
            "limits": {},
            "expires_at": null,
        })
    }

    fn refusal(change: impl FnOnce(&mut Value)) -> Option<String> {
        let mut value = document();
        change(&mut value);
        Snapshot::read(&value).err().map(|refusal| {
            let place = refusal.place().map(ToString::to_string);
            format!("{} {}", refusal.code().as_str(), place.unwrap_or_default())
        })
    }

    #[test]
    fn digest_covers_the_whole_document() {
        let read = |value: &Value| Snapshot::read(value).unwrap().identity().digest;
        let one = document();
        assert_eq!(read(&one), Digest::of_json(&one));
        let mut other = one.clone();
        other["limits"]["max_selectors"] = json!(3);
        assert_ne!(read(&one), read(&other));
    }

    #[test]
    fn refuses_what_it_does_not_know_or_cannot_keep() {
        assert_eq!(refusal(|_| ()), None);
        type Change = fn(&mut Value);
        let cases: &[(&str, Change)] = &[
            ("INVALID_POLICY the document itself", |it| {
                it["delegations"] = json!([]);
            }),
            ("INVALID_POLICY /policy", |it| {
                it["policy"]["alowed_actions"] = json!([]);
            }),
            ("INVALID_POLICY /policy", |it| {
                it["policy"]["version"] = json!("v2");
            }),
            ("INVALID_POLICY /policy/allowed_actions", |it| {
                it["policy"]["allowed_actions"] = json!("email.create_draft");
            }),
            ("INVALID_POLICY /predicates", |it| {
                it["predicates"] = json!({})
            }),
            ("INVALID_POLICY /predicates", |it| {
                it["resolve"] = json!({"budget": {}});
            }),
            ("INVALID_POLICY /clients", |it| it["clients"] = json!([])),
            ("INVALID_POLICY /clients", |it| {
                let client = it["clients"][0].clone();
                it["clients"] = json!([client, client]);
            }),
            ("INVALID_POLICY /limits", |it| {
                it["limits"]["max_requests"] = json!(3);
            }),
            ("INVALID_POLICY /limits/rates/0/max_requests", |it| {
                it["limits"]["rates"] =
                    json!([{"max_requests": 0, "window_seconds": 60, "by": []}]);
            }),
            ("INVALID_POLICY /limits", |it| {
                it["limits"]["rates"] = json!([
                    {"max_requests": 1, "window_seconds": 60, "by": ["subject", "purpose"]},
                    {"max_requests": 2, "window_seconds": 60, "by": ["purpose", "subject"]},
                ]);
            }),
            ("RECIPIENT_KEY_UNSUPPORTED /recipient_keys", |it| {
                it["recipient_keys"] = json!({"urn:model:a": "AAAA"});
            }),
        ];
        for (expected, change) in cases {
            assert_eq!(refusal(change).as_deref(), Some(*expected));
        }
    }

    #[test]
    fn resolve_rules_have_defaults() {
        let predicate = Predicate::new("delivery_date").unwrap();
        let rule = |value: &Value| {
            let snapshot = Snapshot::read(value).unwrap();
            let limits = Limits {
                transforms: match snapshot.policy() {
                    PolicyForm::List(policy) => policy.transforms_of(predicate.as_str()),
                    PolicyForm::Cedar(_) => Vec::new(),
                },
                ..Limits::default()
            };
            snapshot.resolve_rule(&predicate, &limits)
        };
        let mut value = document();
        let default = rule(&value).unwrap();
        assert_eq!(default.max_label, Label::Private);
        assert_eq!(default.min_trust, Trust::Untrusted);
        assert_eq!(default.min_confidence.get(), 0.0);
        assert_eq!(*default.statuses, DEFAULT_STATUSES);
        assert!(default.projections.is_empty() && default.transforms.is_empty());
        value["predicates"]["delivery_date"] = json!({"datatype": "date"});
        assert_eq!(rule(&value).unwrap().max_label, Label::Restricted);
        value["resolve"] = json!({"delivery_date": {
            "max_label": "internal", "min_trust": "verified", "min_confidence": 0.5,
            "statuses": ["asserted"], "projections": ["generalise"],
        }});
        value["policy"]["transforms"] = json!({"delivery_date": ["redact:year", "redact:year"]});
        let limited = rule(&value).unwrap();
        assert_eq!(limited.max_label, Label::Internal);
        assert_eq!(limited.min_trust, Trust::Verified);
        assert_eq!(*limited.projections, [ProjectionStep::Generalise]);
        assert_eq!(limited.transforms.len(), 1);
    }

    #[test]
    fn clients_act_for_their_own_principals() {
        let snapshot = Snapshot::read(&document()).unwrap();
        let reference = |text: &str| Reference::new(text).unwrap();
        let client = reference("urn:device:a");
        assert!(snapshot.is_registered(&client, &reference("urn:agent:a")));
        assert!(!snapshot.is_registered(&client, &reference("urn:agent:b")));
        assert!(!snapshot.is_registered(&reference("urn:device:b"), &reference("urn:agent:a")));
    }
}
