//! From texts to a policy that decides.

use std::collections::BTreeMap;

use cedar_policy::{
    Authorizer, Policy, PolicyId, PolicySet, ValidationMode, ValidationWarning, Validator,
};
use cl_model::policy::{CedarForm, Limits, Snapshot};
use cl_model::scalar::PolicyName;

use crate::data::{Data, chain};
use crate::demand::Role;
use crate::extent;
use crate::fault::{Fault, Finding, InvalidPolicies, Place};
use crate::inquiry::Failed;
use crate::policy::CedarPolicy;
use crate::schema;
use crate::slices::Slices;

impl CedarPolicy {
    /// Reads the policies of a snapshot, and everything that they refer to.
    ///
    /// # Errors
    ///
    /// [`InvalidPolicies`] with all mistakes of the first step that finds any: entities, texts with
    /// their annotations and names, types.
    pub fn compile(snapshot: &Snapshot, form: &CedarForm) -> Result<Self, InvalidPolicies> {
        let refuse = |findings| InvalidPolicies { findings };
        let mut data = Data::read(snapshot, form).map_err(refuse)?;
        let read = read_all(form, &data).map_err(refuse)?;
        validate(&read).map_err(refuse)?;
        let policies: Vec<&Policy> = read.values().map(|(policy, ..)| policy).collect();
        data.note(&policies).map_err(|Failed| {
            refuse(vec![Finding {
                place: Place::Entities,
                fault: Fault::Entity,
                detail: "the operations that policies name cannot be described".to_owned(),
            }])
        })?;
        let (mut deciding, mut demanding) = (Slices::default(), Slices::default());
        let mut roles = BTreeMap::new();
        for (name, (policy, role, text)) in read {
            let slices = match &role {
                Role::Permit | Role::Forbid(_) => &mut deciding,
                Role::Demand(_) => &mut demanding,
            };
            let added = slices.add(&policy, text);
            added.map_err(|detail| refuse(vec![finding(&name, Fault::Syntax, detail)]))?;
            roles.insert(name, role);
        }
        Ok(Self {
            form: form.clone(),
            data,
            own: own_limits(snapshot),
            deciding,
            demanding,
            roles,
            authorizer: Authorizer::new(),
        })
    }
}

type Read<'a> = BTreeMap<PolicyName, (Policy, Role, &'a str)>;

fn read_all<'a>(form: &'a CedarForm, data: &Data) -> Result<Read<'a>, Vec<Finding>> {
    let mut read = Read::new();
    let mut findings = Vec::new();
    for (name, text) in form.document().policies.iter() {
        match read_one(name, text.as_str(), data) {
            Ok((policy, role)) => {
                read.insert(name.clone(), (policy, role, text.as_str()));
            }
            Err((fault, detail)) => findings.push(finding(name, fault, detail)),
        }
    }
    if findings.is_empty() {
        Ok(read)
    } else {
        Err(findings)
    }
}

fn read_one(name: &PolicyName, text: &str, data: &Data) -> Result<(Policy, Role), (Fault, String)> {
    extent::check(text).map_err(|detail| (Fault::Extent, detail.to_owned()))?;
    let policy = Policy::parse(Some(PolicyId::new(name)), text)
        .map_err(|error| (Fault::Syntax, chain(&error)))?;
    let role = Role::of(&policy).map_err(|detail| (Fault::Annotation, detail))?;
    let mut named = policy.entity_literals().into_iter();
    match named.find(|uid| !data.may_name(uid)) {
        Some(uid) => Err((Fault::Unregistered, format!("the snapshot has no {uid}"))),
        None => Ok((policy, role)),
    }
}

/// Strict validation against the schema; a policy that can never match is a mistake too.
fn validate(read: &Read<'_>) -> Result<(), Vec<Finding>> {
    let policies = read.values().map(|(policy, ..)| policy.clone());
    let set = PolicySet::from_policies(policies).map_err(|error| {
        let detail = chain(&error);
        let first = read.keys().take(1);
        let findings = first.map(|name| finding(name, Fault::Syntax, detail.clone()));
        findings.collect::<Vec<_>>()
    })?;
    let validator = Validator::new(schema::PARSED.clone());
    let result = validator.validate(&set, ValidationMode::Strict);
    let errors = result
        .validation_errors()
        .map(|error| (error.policy_id(), chain(error)));
    let never = result.validation_warnings().filter(|warning| {
        matches!(
            warning,
            ValidationWarning::ImpossiblePolicy(_) | ValidationWarning::InvalidActionApplication(_)
        )
    });
    let never = never.map(|warning| (warning.policy_id(), chain(warning)));
    let mut findings = Vec::new();
    for (id, detail) in errors.chain(never) {
        let id: &str = id.as_ref();
        let name = read.get_key_value(id).map(|(name, _)| name);
        let place = name.map_or(Place::Entities, |name| Place::Policy(name.clone()));
        findings.push(Finding {
            place,
            fault: Fault::Schema,
            detail,
        });
    }
    findings.sort_by(|one, other| (&one.place, &one.detail).cmp(&(&other.place, &other.detail)));
    if findings.is_empty() {
        Ok(())
    } else {
        Err(findings)
    }
}

fn finding(name: &PolicyName, fault: Fault, detail: String) -> Finding {
    Finding {
        place: Place::Policy(name.clone()),
        fault,
        detail,
    }
}

/// What the snapshot limits whatever its policies say.
fn own_limits(snapshot: &Snapshot) -> std::collections::HashMap<String, (Limits, bool)> {
    let predicates = snapshot.predicates();
    let own = predicates.filter_map(|(name, _)| {
        let rule = snapshot.resolve_rule(name, &Limits::default())?;
        let limits = Limits {
            transforms: Vec::new(),
            max_label: Some(rule.max_label),
            min_trust: Some(rule.min_trust),
            min_confidence: Some(rule.min_confidence),
        };
        Some((
            name.as_str().to_owned(),
            (limits, snapshot.is_projected(name)),
        ))
    });
    own.collect()
}
