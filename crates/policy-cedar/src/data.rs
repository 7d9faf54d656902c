//! What a snapshot knows about entities, checked against the schema once.

use std::collections::{BTreeMap, HashMap, HashSet};

use cedar_policy::{Entities, EntityUid, Policy, PrincipalConstraint, ResourceConstraint};
use cl_model::json::read::ToJson;
use cl_model::part::Label;
use cl_model::policy::{CedarForm, EntityData, RegisteredPredicate, Snapshot};
use cl_model::scalar::Predicate;
use serde_json::{Value, json};

use crate::entity::{DESCRIBED, Kind};
use crate::fault::{Fault, Finding, Place};
use crate::inquiry::{Failed, unknown_operation};
use crate::schema;

/// The entities of a snapshot, and the names that its policies may refer to.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) entities: Entities,
    groups: HashSet<String>,
    predicates: HashSet<String>,
    clients: HashSet<String>,
    /// The known entities that policies name, but for those that a scope asks the request to be
    /// about.
    pub(crate) named_in_conditions: HashSet<EntityUid>,
}

impl Data {
    /// Reads what is said about entities, and adds what the registries say about predicates.
    pub(crate) fn read(snapshot: &Snapshot, form: &CedarForm) -> Result<Self, Vec<Finding>> {
        let clients = snapshot.clients().iter();
        let mut data = Self {
            entities: Entities::empty(),
            groups: HashSet::new(),
            predicates: snapshot
                .predicates()
                .map(|(name, _)| name.as_str().to_owned())
                .collect(),
            clients: clients
                .map(|client| client.client_instance.as_str().to_owned())
                .collect(),
            named_in_conditions: HashSet::new(),
        };
        let described = &form.document().entities;
        let mut findings = Vec::new();
        for (index, entity) in described.iter().enumerate() {
            if let Err((fault, detail)) = data.take(entity) {
                findings.push(Finding {
                    place: Place::Entity(index),
                    fault,
                    detail,
                });
            }
        }
        if !findings.is_empty() {
            return Err(findings);
        }
        let documents = documents(snapshot, described);
        let entities = Entities::from_json_value(documents, Some(&schema::PARSED));
        data.entities = entities.map_err(|error| {
            vec![Finding {
                place: Place::Entities,
                fault: Fault::Entity,
                detail: chain(&error),
            }]
        })?;
        Ok(data)
    }

    /// Checks one entity, and notes the groups that it makes known.
    fn take(&mut self, entity: &EntityData) -> Result<(), (Fault, String)> {
        let kind = entity.uid.kind.as_str();
        let kind = DESCRIBED.into_iter().find(|known| known.as_str() == kind);
        let kind = kind.ok_or_else(|| {
            (
                Fault::Entity,
                "nothing can be said about entities of this type".to_owned(),
            )
        })?;
        let id = entity.uid.id.as_str();
        if kind == Kind::Predicate && !entity.attrs.is_empty() {
            let detail = "the attributes of a predicate come from `predicates`";
            return Err((Fault::Entity, detail.to_owned()));
        }
        if !self.knows(kind, id) && kind != Kind::Group {
            return Err((Fault::Unregistered, format!("{id} is not registered")));
        }
        if kind == Kind::Group {
            self.groups.insert(id.to_owned());
        }
        for parent in entity.parents.iter() {
            if parent.kind.as_str() != Kind::Group.as_str() {
                return Err((Fault::Entity, "only a group has members".to_owned()));
            }
            self.groups.insert(parent.id.as_str().to_owned());
        }
        Ok(())
    }

    /// Whether a policy may name this entity. A name that the snapshot lacks can only be a mistake
    /// where the snapshot has to have it.
    pub(crate) fn may_name(&self, uid: &EntityUid) -> bool {
        let id: &str = uid.id().as_ref();
        [Kind::Predicate, Kind::Client, Kind::Group]
            .into_iter()
            .find(|kind| kind.is_of(uid))
            .is_none_or(|kind| self.knows(kind, id))
    }

    /// Notes what a policy names: operations of which nothing is said are irreversible, and so need
    /// not be made up for each request that asks for one.
    pub(crate) fn note(&mut self, policies: &[&Policy]) -> Result<(), Failed> {
        let mut operations = HashMap::new();
        for policy in policies {
            let mut named: HashSet<EntityUid> = policy.entity_literals().into_iter().collect();
            let unknown = named.iter().filter(|uid| Kind::Operation.is_of(uid));
            for uid in unknown.filter(|uid| self.entities.get(uid).is_none()) {
                operations.insert(uid.clone(), unknown_operation(uid.clone())?);
            }
            if let PrincipalConstraint::Eq(uid) = policy.principal_constraint() {
                named.remove(&uid);
            }
            if let ResourceConstraint::Eq(uid) = policy.resource_constraint() {
                named.remove(&uid);
            }
            let known = named
                .into_iter()
                .filter(|uid| self.entities.get(uid).is_some() || operations.contains_key(uid));
            self.named_in_conditions.extend(known);
        }
        let entities = self.entities.clone();
        let entities = entities.add_entities(operations.into_values(), None);
        self.entities = entities.map_err(|_| Failed)?;
        Ok(())
    }

    pub(crate) fn has_predicate(&self, name: &str) -> bool {
        self.predicates.contains(name)
    }

    fn knows(&self, kind: Kind, id: &str) -> bool {
        match kind {
            Kind::Predicate => self.predicates.contains(id),
            Kind::Client => self.clients.contains(id),
            Kind::Group => self.groups.contains(id),
            Kind::Action
            | Kind::Agent
            | Kind::ApprovalAnswer
            | Kind::Assurance
            | Kind::Label
            | Kind::OnwardDisclosure
            | Kind::Operation
            | Kind::ReceiptLevel
            | Kind::Recipient
            | Kind::RetentionMode
            | Kind::SideEffect
            | Kind::Subject => true,
        }
    }
}

/// The place of a label among the others, as policies compare it.
fn sensitivity(label: Label) -> usize {
    Label::ALL
        .iter()
        .take_while(|lower| **lower < label)
        .count()
}

/// All entities as Cedar reads them: the described ones, and every registered predicate.
fn documents(snapshot: &Snapshot, described: &[EntityData]) -> Value {
    let mut predicates: BTreeMap<&Predicate, Value> = snapshot
        .predicates()
        .map(|(name, registered)| (name, predicate(name, registered)))
        .collect();
    let mut documents = Vec::new();
    for entity in described {
        let known = Predicate::new(entity.uid.id.as_str());
        let known = known.filter(|_| entity.uid.kind.as_str() == Kind::Predicate.as_str());
        match known.and_then(|name| predicates.get_mut(&name)) {
            Some(document) => {
                document["parents"] = entity.parents.to_json();
                document["tags"] = entity.tags.as_ref().map_or(json!({}), ToJson::to_json);
            }
            None => documents.push(entity.to_json()),
        }
    }
    documents.extend(predicates.into_values());
    Value::Array(documents)
}

fn predicate(name: &Predicate, registered: &RegisteredPredicate) -> Value {
    let label = registered.label.unwrap_or(Label::Restricted);
    json!({
        "uid": {"type": Kind::Predicate.as_str(), "id": name.as_str()},
        "attrs": {
            "label": {"type": Kind::Label.as_str(), "id": label.as_str()},
            "sensitivity": sensitivity(label),
            "datatype": registered.datatype.as_str(),
        },
        "parents": [],
        "tags": {},
    })
}

/// An error with everything that caused it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
