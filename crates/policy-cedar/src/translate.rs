//! From a list-style snapshot to the same snapshot in Cedar.

use cedar_policy::Expression;
use cl_model::part::{OnwardDisclosure, RetentionMode};
use cl_model::policy::{ListedPolicy, PolicyForm, Scope, Snapshot};
use cl_model::refusal::Refusal;
use cl_model::scalar::MAX_RETENTION_SECONDS;
use serde_json::{Map, Value, json};

use crate::entity::{Kind, action};

/// The longest id of an entity. No request that fits its schema has a longer one.
const MAX_ID_CHARS: usize = 512;

/// Why a snapshot is not translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untranslatable {
    /// It is no snapshot.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its policy is in Cedar already.
    #[error("the policy is in Cedar already")]
    AlreadyCedar,
}

/// The same snapshot with its policy in Cedar. It has another digest, and so should have another
/// version.
///
/// Every request that fits its schema gets the same state, the same granted and denied scope, and
/// the same retention, transforms and onward disclosure. Reasons may be fewer or other ones where
/// something is denied, since a forbid denies each item rather than the whole, and a denial does
/// not look at approvals.
///
/// # Errors
///
/// [`Untranslatable`].
pub fn translate(document: &Value) -> Result<Value, Untranslatable> {
    let snapshot = Snapshot::read(document)?;
    let policy = match snapshot.policy() {
        PolicyForm::List(policy) => policy.listed(),
        PolicyForm::Cedar(_) => return Err(Untranslatable::AlreadyCedar),
    };
    let mut members = document.as_object().cloned().unwrap_or_default();
    let listed = members.remove("policy").unwrap_or_default();
    let mut translation = Translation::default();
    translation.parties(&policy);
    translation.circumstances(&policy);
    for scope in [Scope::Selectors, Scope::Actions] {
        translation.scope(scope, &policy);
    }
    translation.transforms(&snapshot, &policy);
    members.insert("cedar".to_owned(), translation.document(&policy, &listed));
    Ok(Value::Object(members))
}

#[derive(Default)]
struct Translation {
    policies: Map<String, Value>,
    entities: Vec<Value>,
}

impl Translation {
    fn add(&mut self, name: &str, text: String) {
        self.policies.insert(name.to_owned(), text.into());
    }

    /// A forbid with a reason that applies unless the condition holds.
    fn unless(&mut self, name: &str, reason: &str, condition: Option<String>) {
        let condition = condition.map_or_else(String::new, |it| format!(" unless {{ {it} }}"));
        self.add(
            name,
            format!("@reason(\"{reason}\")\nforbid (principal, action, resource){condition};"),
        );
    }

    /// Everybody on one of the lists becomes a member of that list's group.
    fn parties(&mut self, policy: &ListedPolicy<'_>) {
        let lists = [
            (
                Kind::Agent,
                "requesters",
                "principal",
                "REQUESTER_NOT_AUTHORIZED",
                &policy.requesters,
            ),
            (
                Kind::Client,
                "clients",
                "context.client",
                "CLIENT_NOT_AUTHORIZED",
                &policy.clients,
            ),
            (
                Kind::Subject,
                "subjects",
                "context.subject",
                "SUBJECT_NOT_AUTHORIZED",
                &policy.subjects,
            ),
            (
                Kind::Recipient,
                "recipients",
                "context.recipient",
                "RECIPIENT_NOT_AUTHORIZED",
                &policy.recipients,
            ),
        ];
        for (kind, list, member, reason, names) in lists {
            let group = Kind::Group.named(list);
            self.entities.push(json!({
                "uid": {"type": Kind::Group.as_str(), "id": list},
                "attrs": {},
                "parents": [],
            }));
            let named = names
                .iter()
                .filter(|name| name.chars().count() <= MAX_ID_CHARS);
            self.entities.extend(named.map(|name| {
                json!({
                    "uid": {"type": kind.as_str(), "id": name},
                    "attrs": {},
                    "parents": [{"type": Kind::Group.as_str(), "id": list}],
                })
            }));
            self.unless(list, reason, Some(format!("{member} in {group}")));
        }
    }

    fn circumstances(&mut self, policy: &ListedPolicy<'_>) {
        if let Some(methods) = &policy.authentication_methods {
            let condition = is_one_of(
                "context.authenticated_by",
                methods.iter().map(|it| text(it)),
            );
            self.unless(
                "authentication-methods",
                "AUTHENTICATION_METHOD_NOT_ALLOWED",
                condition,
            );
        }
        let purposes = policy.purpose_codes.iter().map(|it| text(it));
        self.unless(
            "purposes",
            "PURPOSE_CODE_NOT_ALLOWED",
            is_one_of("context.purpose", purposes),
        );
        let tasks = policy.tasks.iter().map(|it| text(it));
        self.unless(
            "tasks",
            "TASK_NOT_ALLOWED",
            is_one_of("context.task", tasks),
        );
        self.unless(
            "rate",
            "RATE_LIMIT_EXCEEDED",
            Some("!context.rate_limited".to_owned()),
        );
        self.unless(
            "anomaly",
            "ANOMALY_STATE_BLOCKED",
            Some("context.anomaly_state == \"normal\"".to_owned()),
        );
    }

    /// One permit for each listed item, and one demand for each that needs an approval.
    fn scope(&mut self, scope: Scope, policy: &ListedPolicy<'_>) {
        let (ordinary, gated) = match scope {
            Scope::Selectors => (&policy.selectors, &policy.gated_selectors),
            Scope::Actions => (&policy.actions, &policy.gated_actions),
        };
        let head = |name: &str| {
            format!(
                "(principal, action == {}, resource == {})",
                Kind::Action.named(action(scope)),
                Kind::of(scope).named(name)
            )
        };
        let verb = action(scope);
        for (index, name) in ordinary.iter().chain(gated).enumerate() {
            let text = format!("permit {};", head(name));
            self.add(&format!("{verb}-{}", index + 1), text);
        }
        for (index, name) in gated.iter().enumerate() {
            let head = head(name);
            let text = format!("@approval\n@reason(\"GATED_BY_POLICY\")\nforbid {head};");
            self.add(&format!("approve-{verb}-{}", index + 1), text);
        }
    }

    /// One demand for each registered predicate with transforms.
    fn transforms(&mut self, snapshot: &Snapshot, policy: &ListedPolicy<'_>) {
        for (index, (name, _)) in snapshot.predicates().enumerate() {
            let transforms = policy.transforms_of(name.as_str());
            if transforms.is_empty() {
                continue;
            }
            let texts: Vec<&str> = transforms.iter().map(|it| it.as_str()).collect();
            let text = format!(
                "@transform(\"{}\")\n@reason(\"TRANSFORM_REQUIRED\")\n\
                 forbid (principal, action == {}, resource == {});",
                texts.join(","),
                Kind::Action.named(action(Scope::Selectors)),
                Kind::Predicate.named(name.as_str()),
            );
            self.add(&format!("transform-{}", index + 1), text);
        }
    }

    fn document(self, policy: &ListedPolicy<'_>, listed: &Value) -> Value {
        let terms = policy.terms;
        let longest = MAX_RETENTION_SECONDS.unsigned_abs();
        let mode: RetentionMode = terms.retention_mode;
        let onward = policy.onward_disclosure.iter();
        let onward = onward.filter(|name| OnwardDisclosure::parse(name).is_some());
        let mut document = json!({
            "policies": self.policies,
            "entities": self.entities,
            "maximum_retention": {
                "mode": mode.as_str(),
                "max_seconds": terms.max_retention_seconds.min(longest),
            },
            "allowed_onward_disclosure": onward.collect::<Vec<_>>(),
            "decision_ttl_seconds": terms.decision_ttl_seconds,
            "require_receipts": terms.requires_receipts,
            "bundle_instructions": terms
                .instructions
                .iter()
                .map(|text| text.as_str())
                .collect::<Vec<_>>(),
            "rate_limit_ok": !policy.is_rate_limited,
            "anomaly_state": if policy.is_anomalous { "anomalous" } else { "normal" },
        });
        if let Some(issuer) = listed.get("issuer") {
            document["issuer"] = issuer.clone();
        }
        document
    }
}

/// A string as Cedar writes it.
fn text(text: &str) -> String {
    Expression::new_string(text.to_owned()).to_string()
}

/// That a member is one of these; never, if there are none.
fn is_one_of(member: &str, literals: impl Iterator<Item = String>) -> Option<String> {
    let literals: Vec<String> = literals.collect();
    (!literals.is_empty()).then(|| format!("[{}].contains({member})", literals.join(", ")))
}
