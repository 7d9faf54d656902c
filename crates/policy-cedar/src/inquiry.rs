//! One request as Cedar sees it.

use std::collections::{HashMap, HashSet};

use cedar_policy::{Context, Entities, Entity, EntityUid, Request, RestrictedExpression};
use cl_model::policy::{Answer, Assurance, Delegated, Question, Scope};

use crate::entity::{Kind, action};
use crate::policy::CedarPolicy;
use crate::slices::Lineage;

/// What Cedar could not be asked, or could not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

/// What is the same for every selector and action of a request.
pub(crate) struct Inquiry<'a> {
    question: &'a Question<'a>,
    principal: EntityUid,
    /// The principal with its groups.
    pub(crate) lineage: Lineage,
    /// The context where no approval says anything.
    unanswered: Context,
    /// The contexts of what an approval grants and declines, where it does.
    granted: Option<Context>,
    declined: Option<Context>,
    known: &'a Entities,
    /// What the request can reach, if that is more than what is known.
    reached: Option<Entities>,
}

impl<'a> Inquiry<'a> {
    /// Prepares a request; `None` if it lacks something that every policy may ask for, which the
    /// evaluation denies for reasons of its own.
    pub(crate) fn of(
        policy: &'a CedarPolicy,
        question: &'a Question<'a>,
    ) -> Result<Option<Self>, Failed> {
        let Some(named) = Named::of(question) else {
            return Ok(None);
        };
        let principal = Kind::Agent.named(named.requester);
        let members = named.members(policy, question)?;
        let named = [
            principal.clone(),
            Kind::Client.named(named.client),
            Kind::Subject.named(named.subject),
            Kind::Recipient.named(named.recipient),
        ];
        let answered = |answer| {
            let is_given = gives(question, answer);
            is_given.then(|| context(&members, answer)).transpose()
        };
        Ok(Some(Self {
            lineage: Lineage::of(&principal, policy.entities()),
            unanswered: context(&members, Answer::None)?,
            granted: answered(Answer::Granted)?,
            declined: answered(Answer::Declined)?,
            known: policy.entities(),
            reached: reached(policy, question, &named)?,
            principal,
            question,
        }))
    }

    /// The entities that policies can look at.
    pub(crate) fn entities(&self) -> &Entities {
        self.reached.as_ref().unwrap_or(self.known)
    }

    /// The question about one item, where an approval gives this answer about it.
    pub(crate) fn about(
        &self,
        scope: Scope,
        item: EntityUid,
        answer: Answer,
    ) -> Result<Request, Failed> {
        let context = match answer {
            Answer::None => Some(&self.unanswered),
            Answer::Granted => self.granted.as_ref(),
            Answer::Declined => self.declined.as_ref(),
        };
        Request::new(
            self.principal.clone(),
            Kind::Action.named(action(scope)),
            item,
            context.ok_or(Failed)?.clone(),
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

/// Whether an approval says this about any item of a request.
fn gives(question: &Question<'_>, answer: Answer) -> bool {
    let gives = |scope, names: &[String]| {
        let mut names = names.iter();
        names.any(|name| question.answer(scope, name) == answer)
    };
    gives(Scope::Selectors, question.selectors()) || gives(Scope::Actions, question.actions())
}

/// What policies can look at where a request names an operation of which nothing is known, which is
/// irreversible: the entities of the request, and those that a condition names, each with all its
/// ancestors. `None` if everything is known.
fn reached(
    policy: &CedarPolicy,
    question: &Question<'_>,
    named: &[EntityUid],
) -> Result<Option<Entities>, Failed> {
    let known = policy.entities();
    let operations = question.actions().iter();
    let operations = operations.map(|name| Kind::Operation.named(name));
    let (described, unknown): (Vec<_>, Vec<_>) =
        operations.partition(|uid| known.get(uid).is_some());
    if unknown.is_empty() {
        return Ok(None);
    }
    let selectors = question.selectors().iter();
    let selectors = selectors.map(|name| Kind::Predicate.named(name));
    let described = named.iter().cloned().chain(selectors).chain(described);
    let described: HashSet<EntityUid> = described
        .chain(policy.named_in_conditions().cloned())
        .collect();
    let entities = described.iter().filter_map(|uid| known.get(uid).cloned());
    let mut entities: Vec<Entity> = entities.collect();
    for uid in unknown {
        entities.push(unknown_operation(uid)?);
    }
    let entities = Entities::from_entities(entities, None);
    entities.map(Some).map_err(|_| Failed)
}

pub(crate) fn unknown_operation(uid: EntityUid) -> Result<Entity, Failed> {
    let side_effect = Kind::SideEffect.named("irreversible");
    let side_effect = RestrictedExpression::new_entity_uid(side_effect);
    let attributes = HashMap::from([("side_effect".to_owned(), side_effect)]);
    Entity::new(uid, attributes, HashSet::new()).map_err(|_| Failed)
}
