//! Every question looks at few policies. Here each policy is asked alone about each item, by Cedar
//! itself and with all entities: the answers have to be the same.

use cedar_policy::{
    Authorizer, Context, Entities, EntityUid, Policy, PolicyId, PolicySet, Request,
    RestrictedExpression, Schema,
};
use cl_model::object::{ContextRequest, ProtocolObject};
use cl_model::policy::{
    ApprovalRule, Asked, Assurance, Evaluation, Preflight, PresentedApproval, Treatment,
    VerifierOutcome,
};
use cl_model::time::UnixTime;
use cl_policy_cedar::{CompiledSnapshot, SCHEMA};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use crate::support::{ACTIONS, NOW, PREDICATES, document, read, request};

fn scope() -> impl Strategy<Value = String> {
    let principal = select(vec![
        "principal",
        "principal",
        "principal == Agent::\"urn:agent:a\"",
        "principal == Agent::\"urn:agent:b\"",
        "principal in Group::\"agents\"",
        "principal in Group::\"all\"",
        "principal in Group::\"others\"",
        "principal is Agent in Group::\"agents\"",
    ]);
    let rest = select(vec![
        "action, resource",
        "action, resource",
        "action == Action::\"disclose\", resource",
        "action == Action::\"act\", resource",
        "action in [Action::\"disclose\", Action::\"act\"], resource",
        "action == Action::\"disclose\", resource == Predicate::\"city\"",
        "action, resource == Predicate::\"budget\"",
        "action, resource == Operation::\"pay\"",
        "action == Action::\"act\", resource == Operation::\"draft\"",
        "action, resource in Group::\"facts\"",
        "action, resource in Group::\"all\"",
        "action, resource in Predicate::\"date\"",
        "action, resource is Predicate",
        "action == Action::\"act\", resource is Operation",
    ]);
    (principal, rest).prop_map(|(principal, rest)| format!("{principal}, {rest}"))
}

fn condition() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "",
        "when { context.purpose == \"draft.response\" }",
        "when { context.assurance_level >= 3 }",
        "unless { context.client in Group::\"desks\" }",
        "when { principal.hasTag(\"team\") && principal.getTag(\"team\").contains(\"red\") }",
        "when { resource in Group::\"facts\" }",
        "when { action == Action::\"act\" }",
        "when { context.approval == ApprovalAnswer::\"granted\" }",
        "unless { context.approval == ApprovalAnswer::\"declined\" }",
        "when { Agent::\"urn:agent:b\" has suspended && Agent::\"urn:agent:b\".suspended }",
        "when { Operation::\"pay\".side_effect == SideEffect::\"irreversible\" }",
        "when { Operation::\"send\" in Group::\"all\" }",
        "when { context.now < datetime(\"2027-03-01T09:00:01Z\") }",
    ])
}

fn policy() -> impl Strategy<Value = String> {
    let head = select(vec![
        "permit",
        "permit",
        "@reason(\"NO\") forbid",
        "@approval @reason(\"ASK\") forbid",
        "@max_retention(\"60\") @reason(\"SHORT\") forbid",
    ]);
    (head, scope(), condition())
        .prop_map(|(head, scope, condition)| format!("{head} ({scope}) {condition};"))
}

/// The entities of the snapshot, with groups in groups.
fn entities() -> Value {
    let uid = |kind: &str, id: &str| json!({"type": kind, "id": id});
    let group = |id: &str| uid("Group", id);
    json!([
        {"uid": uid("Agent", "urn:agent:a"), "attrs": {}, "parents": [group("agents")],
         "tags": {"team": ["red"]}},
        {"uid": uid("Agent", "urn:agent:b"), "attrs": {"suspended": true}, "parents": []},
        {"uid": group("agents"), "attrs": {}, "parents": [group("all")]},
        {"uid": group("others"), "attrs": {}, "parents": []},
        {"uid": group("desks"), "attrs": {}, "parents": []},
        {"uid": uid("Client", "urn:device:d"), "attrs": {}, "parents": [group("desks")]},
        {"uid": uid("Predicate", "city"), "attrs": {}, "parents": [group("facts")]},
        {"uid": uid("Predicate", "contact"), "attrs": {}, "parents": [group("facts")]},
        {"uid": group("facts"), "attrs": {}, "parents": [group("all")]},
        {"uid": uid("Operation", "draft"), "parents": [group("all")],
         "attrs": {"side_effect": {"type": "SideEffect", "id": "none"}}},
    ])
}

/// Cedar itself, with everything there is to know.
struct Alone {
    policies: Vec<(Policy, PolicySet)>,
    entities: Entities,
    authorizer: Authorizer,
}

/// What policies say about one item.
#[derive(Debug, PartialEq)]
struct Verdict {
    is_granted: bool,
    needs_approval: bool,
}

impl Alone {
    fn new(texts: &[String]) -> Self {
        let schema = Schema::from_cedarschema_str(SCHEMA).unwrap().0;
        let mut known = entities();
        let known_list = known.as_array_mut().unwrap();
        for (index, (name, label)) in PREDICATES.iter().enumerate() {
            let attributes = json!({
                "label": {"type": "Label", "id": label},
                "sensitivity": index,
                "datatype": "text",
            });
            let described = known_list
                .iter_mut()
                .find(|it| it["uid"] == json!({"type": "Predicate", "id": name}));
            match described {
                Some(described) => described["attrs"] = attributes,
                None => known_list.push(json!({
                    "uid": {"type": "Predicate", "id": name}, "attrs": attributes, "parents": [],
                })),
            }
        }
        for name in ["send", "pay"] {
            known_list.push(json!({
                "uid": {"type": "Operation", "id": name},
                "attrs": {"side_effect": {"type": "SideEffect", "id": "irreversible"}},
                "parents": [],
            }));
        }
        let policies = texts.iter().enumerate().map(|(index, text)| {
            let id = PolicyId::new(format!("p{index}"));
            let policy = Policy::parse(Some(id), text).unwrap();
            let set = PolicySet::from_policies([policy.clone()]).unwrap();
            (policy, set)
        });
        Self {
            policies: policies.collect(),
            entities: Entities::from_json_value(known, Some(&schema)).unwrap(),
            authorizer: Authorizer::new(),
        }
    }

    fn ask(&self, action: &str, kind: &str, item: &str, asked: &Case, answer: &str) -> Verdict {
        let request = Request::new(
            uid("Agent", &asked.agent),
            uid("Action", action),
            uid(kind, item),
            asked.context(answer),
            None,
        )
        .unwrap();
        let (mut is_permitted, mut is_forbidden, mut needs_approval) = (false, false, false);
        for (policy, set) in &self.policies {
            let response = self.authorizer.is_authorized(&request, set, &self.entities);
            assert_eq!(response.diagnostics().errors().count(), 0, "{policy}");
            if response.diagnostics().reason().next().is_none() {
                continue;
            }
            let is_demand = policy.annotation("max_retention").is_some();
            match policy.effect() {
                cedar_policy::Effect::Permit => is_permitted = true,
                cedar_policy::Effect::Forbid if policy.annotation("approval").is_some() => {
                    needs_approval = true;
                }
                cedar_policy::Effect::Forbid => is_forbidden |= !is_demand,
            }
        }
        Verdict {
            is_granted: is_permitted && !is_forbidden,
            needs_approval,
        }
    }
}

fn uid(kind: &str, id: &str) -> EntityUid {
    EntityUid::from_json(json!({"type": kind, "id": id})).unwrap()
}

/// One request, and who asks how.
#[derive(Clone, Debug)]
struct Case {
    agent: String,
    selectors: Vec<&'static str>,
    actions: Vec<&'static str>,
    assurance: Assurance,
}

impl Case {
    fn context(&self, answer: &str) -> Context {
        let entity = |kind, id| RestrictedExpression::new_entity_uid(uid(kind, id));
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let level = match self.assurance {
            Assurance::Low => 1,
            Assurance::Substantial => 2,
            Assurance::High => 3,
        };
        let members = [
            ("client", entity("Client", "urn:device:d")),
            ("authenticated_by", text("oauth2")),
            ("assurance", entity("Assurance", self.assurance.as_str())),
            ("assurance_level", RestrictedExpression::new_long(level)),
            ("subject", entity("Subject", "vault://subjects/s")),
            ("recipient", entity("Recipient", "urn:model:m")),
            ("onward_disclosure", entity("OnwardDisclosure", "forbidden")),
            ("purpose", text("draft.response")),
            ("task", text("draft_only")),
            ("retention_mode", entity("RetentionMode", "ephemeral")),
            ("retention_seconds", RestrictedExpression::new_long(600)),
            (
                "expires_at",
                RestrictedExpression::new_datetime("2027-03-01T09:10:00Z"),
            ),
            ("approval", entity("ApprovalAnswer", answer)),
            ("receipt_level", entity("ReceiptLevel", "operation")),
            ("receipts_available", RestrictedExpression::new_bool(true)),
            ("rate_limited", RestrictedExpression::new_bool(false)),
            ("anomaly_state", text("normal")),
            ("now", RestrictedExpression::new_datetime(NOW)),
        ];
        let members = members.map(|(name, value)| (name.to_owned(), value));
        Context::from_pairs(members).unwrap()
    }

    /// What the compiled snapshot does with each name.
    fn treatments(
        &self,
        snapshot: &CompiledSnapshot,
        scope: &[&Vec<&'static str>; 2],
        member: [&str; 2],
    ) -> (Treatment, Treatment) {
        let mut request = request(&self.selectors, &self.actions);
        request["requester"]["principal"] = json!(self.agent);
        request["issuer"]["id"] = json!(self.agent);
        let request = ContextRequest::read(&request).unwrap();
        let asked = Asked::of(&request).unwrap().with_assurance(self.assurance);
        let mut approval = json!({
            "id": "urn:cl:approval:a",
            "request_digest": asked.digest().to_string(),
            "policy_digest": snapshot.identity().digest.to_string(),
            "expires_at": "2027-03-01T09:05:00Z",
            "granted_selectors": [], "granted_actions": [],
            "declined_selectors": [], "declined_actions": [],
        });
        for (member, names) in member.iter().zip(scope) {
            approval[*member] = json!(names);
        }
        let is_there = scope.iter().any(|names| !names.is_empty());
        let approval = if is_there { approval } else { Value::Null };
        Evaluation {
            request: &asked,
            policy: snapshot.policy(),
            approval: &PresentedApproval::read(&approval, ApprovalRule::GrantOrDecline),
            approval_rule: ApprovalRule::GrantOrDecline,
            verifier: if is_there {
                VerifierOutcome::Authenticated
            } else {
                VerifierOutcome::Absent
            },
            preflight: Preflight::Available,
            now: UnixTime::parse(NOW).unwrap(),
        }
        .treatments()
    }

    /// Each asked name with its action and kind.
    fn items(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let selectors = self.selectors.iter();
        let selectors = selectors.map(|name| ("disclose", "Predicate", *name));
        let actions = self.actions.iter().map(|name| ("act", "Operation", *name));
        selectors.chain(actions).collect::<Vec<_>>().into_iter()
    }
}

fn case() -> impl Strategy<Value = Case> {
    let names: Vec<_> = PREDICATES.iter().map(|(name, _)| *name).collect();
    (
        select(vec!["urn:agent:a", "urn:agent:b", "urn:agent:c"]),
        subsequence(names, 1..=5),
        subsequence(ACTIONS.to_vec(), 1..=3),
        select(Assurance::ALL.to_vec()),
    )
        .prop_map(|(agent, selectors, actions, assurance)| Case {
            agent: agent.to_owned(),
            selectors,
            actions,
            assurance,
        })
}

/// The snapshot with these policies; none if one of them can never match.
fn compiled(texts: &[String]) -> Option<CompiledSnapshot> {
    let named: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| (format!("p{index}"), text.as_str()))
        .collect();
    let named: Vec<_> = named
        .iter()
        .map(|(name, text)| (name.as_str(), *text))
        .collect();
    let mut document = document(&named);
    document["cedar"]["entities"] = entities();
    read(&document).ok()
}

/// Those of the policies that a snapshot accepts alone.
fn acceptable(texts: Vec<String>) -> Vec<String> {
    let accepted = |text: &String| compiled(std::slice::from_ref(text)).is_some();
    texts.into_iter().filter(accepted).collect()
}

fn is_in(names: &[String], name: &str) -> bool {
    names.iter().any(|it| it == name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_not_looked_at_changes_no_answer(
        texts in vec(policy(), 1..12),
        cases in vec(case(), 4),
    ) {
        let texts = acceptable(texts);
        let snapshot = compiled(&texts).expect("each is accepted");
        let alone = Alone::new(&texts);
        for case in cases {
            let (selectors, actions) =
                case.treatments(&snapshot, &[&Vec::new(), &Vec::new()], ["granted_selectors", "granted_actions"]);
            for (action, kind, name) in case.items() {
                let treated = if action == "act" { &actions } else { &selectors };
                let verdict = alone.ask(action, kind, name, &case, "none");
                prop_assert_eq!(
                    (is_in(&treated.ordinary, name), is_in(&treated.gated, name)),
                    (
                        verdict.is_granted && !verdict.needs_approval,
                        verdict.is_granted && verdict.needs_approval,
                    ),
                    "{} {} under {:#?}", action, name, texts
                );
            }
            for (answer, member) in [
                ("granted", ["granted_selectors", "granted_actions"]),
                ("declined", ["declined_selectors", "declined_actions"]),
            ] {
                let scope = [&case.selectors, &case.actions];
                let (selectors, actions) = case.treatments(&snapshot, &scope, member);
                for (action, kind, name) in case.items() {
                    let treated = if action == "act" { &actions } else { &selectors };
                    let verdict = alone.ask(action, kind, name, &case, answer);
                    let is_let_out = is_in(&treated.ordinary, name) || is_in(&treated.gated, name);
                    prop_assert_eq!(
                        is_let_out, verdict.is_granted,
                        "{} {} {} under {:#?}", answer, action, name, texts
                    );
                    let is_gated = is_in(&treated.gated, name);
                    prop_assert!(is_gated || !(verdict.is_granted && verdict.needs_approval));
                }
            }
        }
    }
}
