//! One request as Cedar sees it.

use std::collections::{HashMap, HashSet};

use cedar_policy::{Context, Entities, Entity, EntityUid, Request, RestrictedExpression};
use cl_model::policy::{Answer, Assurance, Delegated, Question, Scope};

use crate::entity::{Kind, action};
use crate::policy::CedarPolicy;

/// What Cedar could not be asked, or could not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

/// What is the same for every selector and action of a request.
pub(crate) struct Inquiry<'a> {
    question: &'a Question<'a>,
    principal: EntityUid,
    members: Vec<(String, RestrictedExpression)>,
    /// The context where no approval says anything.
    unanswered: Context,
    /// The entities that this request can reach and those that policies name, with all their
    /// ancestors.
    pub(crate) entities: Entities,
}

impl<'a> Inquiry<'a> {
    /// Prepares a request; `None` if it lacks something that every policy may ask for, which the
    /// evaluation denies for reasons of its own.
    pub(crate) fn of(
        policy: &CedarPolicy,
        question: &'a Question<'a>,
    ) -> Result<Option<Self>, Failed> {
        let Some(named) = Named::of(question) else {
            return Ok(None);
        };
        let principal = Kind::Agent.named(named.requester);
        let members = named.members(policy, question)?;
        let entities = [
            principal.clone(),
            Kind::Client.named(named.client),
            Kind::Subject.named(named.subject),
            Kind::Recipient.named(named.recipient),
        ];
        Ok(Some(Self {
            entities: reachable(policy, question, &entities)?,
            unanswered: context(&members, Answer::None)?,
            principal,
            members,
            question,
        }))
    }

    /// The question about one item, where an approval gives this answer about it.
    pub(crate) fn about(
        &self,
        scope: Scope,
        name: &str,
        answer: Answer,
    ) -> Result<Request, Failed> {
        let context = match answer {
            Answer::None => self.unanswered.clone(),
            Answer::Granted | Answer::Declined => context(&self.members, answer)?,
        };
        Request::new(
            self.principal.clone(),
            Kind::Action.named(action(scope)),
            Kind::of(scope).named(name),
            context,
            None,
        )
        .map_err(|_| Failed)
    }

    pub(crate) fn answer(&self, scope: Scope, name: &str) -> Answer {
        self.question.answer(scope, name)
    }
}

/// The parts of a request that must be there.
struct Named<'a> {
    requester: &'a str,
    client: &'a str,
    authenticated_by: &'a str,
    subject: &'a str,
    recipient: &'a str,
    onward_disclosure: &'a str,
    purpose: &'a str,
    expires_at: String,
}

impl<'a> Named<'a> {
    fn of(question: &Question<'a>) -> Option<Self> {
        Some(Self {
            requester: question.requester()?,
            client: question.client()?,
            authenticated_by: question.authenticated_by()?,
            subject: question.subject()?,
            recipient: question.recipient()?,
            onward_disclosure: question.onward_disclosure()?,
            purpose: question.purpose_code()?,
            expires_at: question.expires_at()?.to_string(),
        })
    }

    /// The members of the context, but for the approval's answer.
    fn members(
        &self,
        policy: &CedarPolicy,
        question: &Question<'_>,
    ) -> Result<Vec<(String, RestrictedExpression)>, Failed> {
        let entity = |kind: Kind, id: &str| RestrictedExpression::new_entity_uid(kind.named(id));
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let long = RestrictedExpression::new_long;
        let receipts = question.receipts(policy.form().terms().requires_receipts);
        let retention = i64::try_from(question.retention_seconds()).unwrap_or(i64::MAX);
        let members = [
            ("client", entity(Kind::Client, self.client)),
            ("authenticated_by", text(self.authenticated_by)),
            (
                "assurance",
                entity(Kind::Assurance, question.assurance().as_str()),
            ),
            ("assurance_level", long(level(question.assurance()))),
            ("subject", entity(Kind::Subject, self.subject)),
            ("recipient", entity(Kind::Recipient, self.recipient)),
            (
                "onward_disclosure",
                entity(Kind::OnwardDisclosure, self.onward_disclosure),
            ),
            ("purpose", text(self.purpose)),
            ("task", text(question.task_kind())),
            (
                "retention_mode",
                entity(Kind::RetentionMode, question.retention_mode()),
            ),
            ("retention_seconds", long(retention)),
            (
                "expires_at",
                RestrictedExpression::new_datetime(&self.expires_at),
            ),
            (
                "receipt_level",
                entity(Kind::ReceiptLevel, receipts.level.as_str()),
            ),
            (
                "receipts_available",
                RestrictedExpression::new_bool(question.has_receipt_store()),
            ),
            (
                "rate_limited",
                RestrictedExpression::new_bool(policy.form().is_rate_limited()),
            ),
            (
                "anomaly_state",
                text(
                    question
                        .anomaly_state()
                        .unwrap_or(policy.form().anomaly_state()),
                ),
            ),
            (
                "now",
                RestrictedExpression::new_datetime(question.now().to_string()),
            ),
        ];
        let delegation = question.delegated().map(delegation).transpose()?;
        let delegation = delegation.map(|delegation| ("delegation", delegation));
        let named = members.into_iter().chain(delegation);
        Ok(named
            .map(|(name, value)| (name.to_owned(), value))
            .collect())
    }
}

fn delegation(delegated: &Delegated) -> Result<RestrictedExpression, Failed> {
    let predicates = delegated.predicates.iter();
    let predicates = predicates
        .map(|name| RestrictedExpression::new_entity_uid(Kind::Predicate.named(name.as_str())));
    let until = RestrictedExpression::new_datetime(delegated.until.to_string());
    let members = [
        (
            "predicates".to_owned(),
            RestrictedExpression::new_set(predicates),
        ),
        ("until".to_owned(), until),
    ];
    RestrictedExpression::new_record(members).map_err(|_| Failed)
}

const fn level(assurance: Assurance) -> i64 {
    match assurance {
        Assurance::Low => 1,
        Assurance::Substantial => 2,
        Assurance::High => 3,
    }
}

fn context(members: &[(String, RestrictedExpression)], answer: Answer) -> Result<Context, Failed> {
    let answer = match answer {
        Answer::None => "none",
        Answer::Granted => "granted",
        Answer::Declined => "declined",
    };
    let answer = RestrictedExpression::new_entity_uid(Kind::ApprovalAnswer.named(answer));
    let members = members.iter().cloned();
    let members = members.chain([("approval".to_owned(), answer)]);
    Context::from_pairs(members).map_err(|_| Failed)
}

/// What is known about the entities of a request; an operation of which nothing is known is
/// irreversible.
fn reachable(
    policy: &CedarPolicy,
    question: &Question<'_>,
    named: &[EntityUid],
) -> Result<Entities, Failed> {
    let known = policy.entities();
    let selectors = question.selectors().iter();
    let selectors = selectors.map(|name| Kind::Predicate.named(name));
    let operations = question.actions().iter();
    let operations = operations.map(|name| Kind::Operation.named(name));
    let described = named.iter().cloned().chain(selectors);
    // What a policy says of an entity that it names is about what the snapshot knows of it.
    let described = described.chain(policy.named.iter().cloned());
    let described: HashSet<EntityUid> = described.chain(operations.clone()).collect();
    let described = described.iter().filter_map(|uid| known.get(uid).cloned());
    let mut entities: Vec<Entity> = described.collect();
    let unknown: HashSet<EntityUid> = operations.filter(|uid| known.get(uid).is_none()).collect();
    for uid in unknown {
        entities.push(unknown_operation(uid)?);
    }
    Entities::from_entities(entities, None).map_err(|_| Failed)
}

fn unknown_operation(uid: EntityUid) -> Result<Entity, Failed> {
    let side_effect = Kind::SideEffect.named("irreversible");
    let side_effect = RestrictedExpression::new_entity_uid(side_effect);
    let attributes = HashMap::from([("side_effect".to_owned(), side_effect)]);
    Entity::new(uid, attributes, HashSet::new()).map_err(|_| Failed)
}
