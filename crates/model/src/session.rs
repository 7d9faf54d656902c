//! The consumer's session: one opening, then capability-checked use until expiry (spec 12, 13.2).
//!
//! A state machine without IO. The caller brings what it learned (time, revocation, whether a
//! receipt became durable) and gets receipts to store. Each step that needs a durable receipt is a
//! value that yields its result only when told what became of the receipt.

use serde_json::{Value, json};

use crate::digest::Digest;
use crate::envelope::VerifiedBundle;
use crate::json::read::ToJson;
use crate::object::{Outcome, ScopedContextBundle};
use crate::opaque::opaque_debug;
use crate::policy::Preflight;
use crate::receipt::{BUNDLE_CONSUME, Draft};
use crate::record::Record;
use crate::refusal::{Code, Refusal};
use crate::scalar::Name;
use crate::time::UnixTime;
use crate::urn::BundleId;

/// What is known of a bundle's revocation at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revocation {
    /// It stands.
    Clear,
    /// It was revoked.
    Revoked,
    /// The check failed, or its answer was malformed.
    Unknown,
}

impl Revocation {
    fn check(self) -> Result<(), Refusal> {
        match self {
            Self::Clear => Ok(()),
            Self::Revoked => Err(Code::BundleRevoked.into()),
            Self::Unknown => Err(Code::RevocationCheckFailed.into()),
        }
    }
}

/// The circumstances of one step, as the caller found them just before it.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances {
    /// The time.
    pub now: UnixTime,
    /// What revocation says.
    pub revocation: Revocation,
    /// Whether the receipt store is ready.
    pub preflight: Preflight,
}

impl Circumstances {
    fn check_preflight(&self) -> Result<(), Refusal> {
        match self.preflight {
            Preflight::Available => Ok(()),
            Preflight::Absent | Preflight::Unavailable => Err(Code::ReceiptPreflightFailed.into()),
        }
    }
}

/// What became of a receipt that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is durable.
    Durable,
    /// The store already has a successful consumption of this bundle by this actor.
    ReplayConflict,
    /// It is not known to be durable.
    Failed,
}

/// An opening whose consume receipt is to be stored.
#[derive(Debug)]
pub struct Opening {
    bundle: VerifiedBundle,
    receipt: Record,
}

impl Opening {
    /// Begins to open a verified bundle for `recipient`.
    ///
    /// `is_consumed` says whether the receipt store already knows a successful consumption; the
    /// store's own uniqueness decides between openings at the same moment.
    ///
    /// # Errors
    ///
    /// In this order: [`Code::BundleExpired`], [`Code::BundleRecipientMismatch`],
    /// [`Code::BundleRevoked`] or [`Code::RevocationCheckFailed`], [`Code::BundleReplay`],
    /// [`Code::ReceiptPreflightFailed`].
    pub fn begin(
        bundle: VerifiedBundle,
        recipient: &str,
        is_consumed: bool,
        at: Circumstances,
    ) -> Result<Self, Refusal> {
        bundle.check_use(recipient, at.now)?;
        at.revocation.check()?;
        if is_consumed {
            return Err(Code::BundleReplay.into());
        }
        at.check_preflight()?;
        let output = json!({"consumer": recipient, "state": "opened"});
        let receipt = draft(
            bundle.bundle(),
            BUNDLE_CONSUME,
            Outcome::Success,
            "The recipient opened a scoped context bundle.",
            at.now,
        )
        .with_digests(bundle.digest(), Digest::of_json(&output))
        .finish()?;
        Ok(Self { bundle, receipt })
    }

    /// The consume receipt.
    pub const fn receipt(&self) -> &Record {
        &self.receipt
    }

    /// The session, once the receipt is durable.
    ///
    /// # Errors
    ///
    /// [`Code::BundleReplay`] or [`Code::BundleConsumeReceiptFailed`].
    pub fn settle(self, stored: Stored) -> Result<Session, Refusal> {
        match stored {
            Stored::Durable => Ok(Session {
                bundle: self.bundle,
                unsettled: None,
            }),
            Stored::ReplayConflict => Err(Code::BundleReplay.into()),
            Stored::Failed => Err(Code::BundleConsumeReceiptFailed.into()),
        }
    }
}

/// An opened bundle in use. Expiry and revocation are checked at every step.
#[derive(Debug)]
pub struct Session {
    bundle: VerifiedBundle,
    unsettled: Option<Record>,
}

impl Session {
    /// The disclosed context.
    ///
    /// # Errors
    ///
    /// [`Code::BundleExpired`], [`Code::BundleRevoked`], [`Code::RevocationCheckFailed`].
    pub fn read(
        &self,
        now: UnixTime,
        revocation: Revocation,
    ) -> Result<&ScopedContextBundle, Refusal> {
        self.check_active(now, revocation)?;
        Ok(self.bundle.bundle())
    }

    /// The bundle this session opened, for checks that release no content.
    pub const fn verified(&self) -> &VerifiedBundle {
        &self.bundle
    }

    /// A receipt that must be stored before the session goes on, if an action's own receipt was
    /// not durable (spec 11.9).
    pub const fn unsettled(&self) -> Option<&Record> {
        self.unsettled.as_ref()
    }

    /// Records that the unsettled receipt is durable now.
    pub fn settle_late(&mut self) {
        self.unsettled = None;
    }

    /// Begins an action that the bundle grants.
    ///
    /// # Errors
    ///
    /// In this order: [`Code::CapabilityNotGranted`], [`Code::CapabilityReceiptNotAuthorized`],
    /// [`Code::OutcomePending`], [`Code::BundleExpired`], [`Code::BundleRevoked`] or
    /// [`Code::RevocationCheckFailed`], [`Code::ReceiptPreflightFailed`].
    pub fn begin_action(&self, capability: &str, at: Circumstances) -> Result<Action, Refusal> {
        self.check_capability(capability)?;
        let contract = &self.bundle.bundle().receipt_contract.required_operations;
        if !contract
            .iter()
            .any(|operation| operation.as_str() == capability)
        {
            return Err(Code::CapabilityReceiptNotAuthorized.into());
        }
        self.check_ready(at)?;
        Ok(Action {
            bundle: self.bundle.bundle().id.clone(),
            capability: capability.to_owned(),
            input: action_input(self.bundle.bundle(), capability),
            started_at: at.now,
        })
    }

    pub(crate) fn check_capability(&self, capability: &str) -> Result<(), Refusal> {
        let capabilities = &self.bundle.bundle().capabilities;
        if capabilities
            .iter()
            .any(|granted| granted.as_str() == capability)
        {
            return Ok(());
        }
        Err(Code::CapabilityNotGranted.into())
    }

    pub(crate) fn check_ready(&self, at: Circumstances) -> Result<(), Refusal> {
        if self.unsettled.is_some() {
            return Err(Code::OutcomePending.into());
        }
        self.check_active(at.now, at.revocation)?;
        at.check_preflight()
    }

    fn check_active(&self, now: UnixTime, revocation: Revocation) -> Result<(), Refusal> {
        if self.bundle.bundle().expires_at.instant() <= now {
            return Err(Code::BundleExpired.into());
        }
        revocation.check()
    }
}

/// An action that may be performed now.
pub struct Action {
    bundle: BundleId,
    capability: String,
    input: Value,
    started_at: UnixTime,
}

/// What an action's handler came back with.
pub enum ActionOutput {
    /// It succeeded and returned nothing.
    Nothing,
    /// It succeeded with a JSON value.
    Json(Value),
    /// It succeeded with bytes.
    Bytes(Vec<u8>),
    /// It succeeded, but its output cannot be represented.
    Unrepresentable,
    /// It failed without an effect. Only the kind of error is kept, never its text.
    Failed {
        /// The kind of error.
        error_type: Name,
    },
}

opaque_debug!(Action, ActionOutput, Completion);

impl Action {
    /// What the handler gets: context, instructions and the one capability.
    pub const fn input(&self) -> &Value {
        &self.input
    }

    /// Ends the action, in the session that began it, with what its handler came back with.
    ///
    /// # Errors
    ///
    /// [`Code::CapabilityNotGranted`] in another session; else those of [`Draft::finish`].
    pub fn finish(
        self,
        session: &Session,
        output: ActionOutput,
        now: UnixTime,
    ) -> Result<Completion, Refusal> {
        if session.bundle.bundle().id != self.bundle {
            return Err(Code::CapabilityNotGranted.into());
        }
        let (outcome, digest, summary) = match &output {
            ActionOutput::Nothing => (
                Outcome::Success,
                Digest::of_json(&Value::Null),
                ACTION_COMPLETED,
            ),
            ActionOutput::Json(value) => {
                (Outcome::Success, Digest::of_json(value), ACTION_COMPLETED)
            }
            ActionOutput::Bytes(bytes) => {
                (Outcome::Success, Digest::of_bytes(bytes), ACTION_COMPLETED)
            }
            ActionOutput::Unrepresentable => (
                Outcome::Indeterminate,
                Digest::of_json(&json!({"state": "indeterminate", "reason": UNREPRESENTABLE})),
                "An allowed action ended without a representable result.",
            ),
            ActionOutput::Failed { error_type } => (
                Outcome::Failure,
                Digest::of_json(&json!({"error_type": error_type.as_str()})),
                "An allowed action failed.",
            ),
        };
        let mut draft = draft(
            session.bundle.bundle(),
            &self.capability,
            outcome,
            summary,
            now,
        )
        .started_at(self.started_at)
        .with_digests(Digest::of_json(&self.input), digest)
        .with_metadata("capability", &self.capability);
        if outcome == Outcome::Indeterminate {
            draft = draft.with_metadata("reason", UNREPRESENTABLE);
        }
        Ok(Completion {
            receipt: draft.finish()?,
            output,
        })
    }
}

const ACTION_COMPLETED: &str = "An allowed action completed.";
const UNREPRESENTABLE: &str = "output_not_serializable";

/// An action that ended and whose receipt is to be stored.
pub struct Completion {
    receipt: Record,
    output: ActionOutput,
}

impl Completion {
    /// The action's receipt.
    pub const fn receipt(&self) -> &Record {
        &self.receipt
    }

    /// The action's output, once its receipt is durable.
    ///
    /// If an effect may have taken place and the receipt is not durable, the session keeps the
    /// receipt and refuses further actions until it is stored (spec 11.9).
    ///
    /// # Errors
    ///
    /// [`Code::ActionFailed`], [`Code::ActionFailureReceiptPersistFailed`],
    /// [`Code::IndeterminateOutcome`].
    pub fn settle(self, session: &mut Session, is_durable: bool) -> Result<ActionOutput, Refusal> {
        match (&self.output, is_durable) {
            (ActionOutput::Failed { .. }, true) => Err(Code::ActionFailed.into()),
            (ActionOutput::Failed { .. }, false) => {
                Err(Code::ActionFailureReceiptPersistFailed.into())
            }
            (ActionOutput::Unrepresentable, true) => Err(Code::IndeterminateOutcome.into()),
            (_, false) => {
                session.unsettled = Some(self.receipt);
                Err(Code::IndeterminateOutcome.into())
            }
            (_, true) => Ok(self.output),
        }
    }
}

fn action_input(bundle: &ScopedContextBundle, capability: &str) -> Value {
    let mut input = json!({
        "subject_alias": bundle.subject_alias.to_json(),
        "purpose_code": bundle.purpose_code.to_json(),
        "task": bundle.task.as_ref().map_or(Value::Null, ToJson::to_json),
        "context": bundle.context.to_json(),
        "instructions": bundle.instructions.to_json(),
        "capability": capability,
        "expires_at": bundle.expires_at.to_json(),
    });
    if let Some(purpose) = &bundle.purpose {
        input["purpose"] = purpose.to_json();
    }
    input
}

/// A receipt of the bundle's recipient about the bundle.
pub(crate) fn draft<'a>(
    bundle: &'a ScopedContextBundle,
    operation: &'a str,
    outcome: Outcome,
    user_summary: &'a str,
    now: UnixTime,
) -> Draft<'a> {
    Draft::new(
        operation,
        bundle.recipient.as_str(),
        bundle.subject_alias.as_str(),
        outcome,
        user_summary,
        now,
    )
    .about(
        bundle.request_ref.as_str(),
        bundle.decision_ref.as_str(),
        bundle.id.as_str(),
    )
    .under_policy(
        bundle
            .policy_snapshot
            .as_ref()
            .map(|snapshot| snapshot.digest),
    )
}
