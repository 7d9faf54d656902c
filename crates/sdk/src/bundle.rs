//! An opened bundle in use: within its capabilities, with evidence, until it ends.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use cl_model::delivery::VerifiedDelivery;
use cl_model::document::Verified;
use cl_model::memory::ProposalDraft;
use cl_model::notes::DisclosureNotes;
use cl_model::object::{MemoryOperation, ScopedContextBundle};
use cl_model::policy::Preflight;
use cl_model::refusal::Code;
use cl_model::scalar::Name;
use cl_model::session::{ActionOutput, Circumstances, Opening, Revocation, Session, Stored};
use cl_model::time::UnixTime;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard};
use tokio_util::task::AbortOnDropHandle;

use crate::client::Client;
use crate::error::Error;
use crate::fact::Fact;

/// The longest time between two looks at the clock.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// An opened bundle.
///
/// Every call checks expiry by the clock and revocation by asking. At expiry the content is wiped
/// from memory, and every later call fails with `BUNDLE_EXPIRED`. Actions run one after another.
#[derive(Debug)]
pub struct OpenBundle {
    shared: Arc<Shared>,
    _wiper: AbortOnDropHandle<()>,
}

struct Shared {
    client: Client,
    bundle_ref: String,
    notes: Verified<DisclosureNotes>,
    session: Arc<Mutex<Option<Session>>>,
}

impl OpenBundle {
    pub(crate) async fn open(client: Client, delivery: VerifiedDelivery) -> Result<Self, Error> {
        let bundle_ref = delivery.bundle.bundle().id.as_str().to_owned();
        let ends = delivery.bundle.bundle().expires_at.instant();
        let checked = client.check(&bundle_ref).await;
        let at = circumstances(client.now(), checked.revocation);
        let opening = Opening::begin(delivery.bundle, client.recipient(), checked.is_consumed, at)?;
        let receipt = opening.receipt().text();
        let stored = client.store_receipt(&bundle_ref, receipt).await;
        let session = Arc::new(Mutex::new(Some(opening.settle(stored)?)));
        let wiper = tokio::spawn(wipe_at(ends, client.clone(), Arc::clone(&session)));
        Ok(Self {
            shared: Arc::new(Shared {
                client,
                bundle_ref,
                notes: delivery.notes,
                session,
            }),
            _wiper: AbortOnDropHandle::new(wiper),
        })
    }

    /// The bundle's URN.
    pub fn bundle_ref(&self) -> &str {
        &self.shared.bundle_ref
    }

    /// The disclosed facts. They are data of unknown intent, and no instructions.
    ///
    /// # Errors
    ///
    /// `BUNDLE_EXPIRED`, `BUNDLE_REVOKED`, `REVOCATION_CHECK_FAILED`.
    pub async fn facts(&self) -> Result<Vec<Fact>, Error> {
        self.read(|bundle, notes| {
            let context = bundle.context.iter();
            context.map(|item| Fact::new(item, notes)).collect()
        })
        .await
    }

    /// What the authority asks of whoever uses the bundle.
    ///
    /// # Errors
    ///
    /// As [`OpenBundle::facts`].
    pub async fn instructions(&self) -> Result<Vec<String>, Error> {
        self.read(|bundle, _| {
            let instructions = bundle.instructions.iter();
            instructions
                .map(|instruction| instruction.as_str().to_owned())
                .collect()
        })
        .await
    }

    /// The actions that the bundle grants.
    ///
    /// # Errors
    ///
    /// As [`OpenBundle::facts`].
    pub async fn capabilities(&self) -> Result<Vec<String>, Error> {
        self.read(|bundle, _| {
            let capabilities = bundle.capabilities.iter();
            capabilities
                .map(|capability| capability.as_str().to_owned())
                .collect()
        })
        .await
    }

    /// Runs `handler` for a capability of the bundle, and records what came of it before its output
    /// is released.
    ///
    /// The handler gets context, instructions and the capability as JSON. Once started it runs to
    /// its end and is recorded, even if the caller no longer waits.
    ///
    /// # Errors
    ///
    /// `CAPABILITY_NOT_GRANTED`, `CAPABILITY_RECEIPT_NOT_AUTHORIZED`, `OUTCOME_PENDING`,
    /// `BUNDLE_EXPIRED`, `BUNDLE_REVOKED`, `REVOCATION_CHECK_FAILED` before the handler runs;
    /// `ACTION_FAILED`, `ACTION_FAILURE_RECEIPT_PERSIST_FAILED`, `INDETERMINATE_OUTCOME` after it.
    pub async fn perform<H, F>(&self, capability: &str, handler: H) -> Result<Handled, Error>
    where
        H: FnOnce(Value) -> F + Send + 'static,
        F: Future<Output = Handled> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let capability = capability.to_owned();
        let run = tokio::spawn(async move { shared.perform(&capability, handler).await });
        run.await
            .unwrap_or_else(|_| Err(Code::IndeterminateOutcome.into()))
    }

    /// Proposes a memory update about the bundle's subject. Nothing changes until it is validated
    /// and approved; returns the proposal's URN.
    ///
    /// # Errors
    ///
    /// As [`OpenBundle::perform`] before the handler; `UNKNOWN_PROVENANCE_HANDLE`,
    /// `INVALID_MEMORY_PROPOSAL`, `MEMORY_PROPOSAL_CONTAINS_FORBIDDEN_MATERIAL`,
    /// `MEMORY_PROPOSAL_RECEIPT_FAILED`; those of the exchange.
    pub async fn propose(&self, proposal: &Proposal) -> Result<String, Error> {
        let shared = &self.shared;
        let mut session = shared.locked().await;
        let at = shared.settled(&mut session).await?;
        let draft = ProposalDraft {
            operation: proposal.operation,
            proposed_claims: &proposal.claims,
            provenance_handles: &proposal.provenance_handles,
            rationale: &proposal.rationale,
        };
        let pending = active(&mut session)?.propose(&draft, at)?;
        let receipt = pending.receipt().text();
        let stored = shared
            .client
            .store_receipt(&shared.bundle_ref, receipt)
            .await;
        let record = pending.settle(stored == Stored::Durable)?;
        shared.client.submit_proposal(record.text()).await
    }

    async fn read<T>(
        &self,
        take: impl FnOnce(&ScopedContextBundle, &Verified<DisclosureNotes>) -> T,
    ) -> Result<T, Error> {
        let shared = &self.shared;
        let mut session = shared.locked().await;
        // Asked only while there is something to release.
        active(&mut session)?;
        let checked = shared.client.check(&shared.bundle_ref).await;
        let bundle = active(&mut session)?.read(shared.client.now(), checked.revocation)?;
        Ok(take(bundle, &shared.notes))
    }
}

impl Shared {
    async fn locked(&self) -> MutexGuard<'_, Option<Session>> {
        self.session.lock().await
    }

    async fn perform<H, F>(&self, capability: &str, handler: H) -> Result<Handled, Error>
    where
        H: FnOnce(Value) -> F,
        F: Future<Output = Handled> + Send + 'static,
    {
        let mut session = self.locked().await;
        let at = self.settled(&mut session).await?;
        let session = active(&mut session)?;
        let action = session.begin_action(capability, at)?;
        let handled = tokio::spawn(handler(action.input().clone())).await;
        // A handler that panicked may have had its effect, and nobody can tell.
        let output = handled.map_or(ActionOutput::Unrepresentable, Handled::into_output);
        let completion = action.finish(session, output, self.client.now())?;
        let receipt = completion.receipt().text().to_owned();
        let stored = self.client.store_receipt(&self.bundle_ref, &receipt).await;
        let output = completion.settle(session, stored == Stored::Durable)?;
        Handled::of(output)
    }

    /// Stores the receipt of an earlier action that is not durable yet, and finds out the
    /// circumstances of the next step.
    async fn settled(
        &self,
        session: &mut MutexGuard<'_, Option<Session>>,
    ) -> Result<Circumstances, Error> {
        let pending = active(session)?
            .unsettled()
            .map(|record| record.text().to_owned());
        if let Some(receipt) = pending {
            let stored = self.client.store_receipt(&self.bundle_ref, &receipt).await;
            if stored == Stored::Durable {
                active(session)?.settle_late();
            }
        }
        let checked = self.client.check(&self.bundle_ref).await;
        Ok(circumstances(self.client.now(), checked.revocation))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Shared")
            .field("bundle_ref", &self.bundle_ref)
            .finish_non_exhaustive()
    }
}

/// The session, unless its content was wiped.
fn active<'a>(session: &'a mut MutexGuard<'_, Option<Session>>) -> Result<&'a mut Session, Error> {
    session.as_mut().ok_or_else(|| Code::BundleExpired.into())
}

/// An answer about revocation shows that the exchange takes receipts as well, as far as anyone
/// can know beforehand.
fn circumstances(now: UnixTime, revocation: Revocation) -> Circumstances {
    Circumstances {
        now,
        revocation,
        preflight: match revocation {
            Revocation::Clear | Revocation::Revoked => Preflight::Available,
            Revocation::Unknown => Preflight::Unavailable,
        },
    }
}

/// Lets go of the content when the bundle ends, after an action that is under way.
///
/// The clock may be set, or the machine suspended, so it is looked at again and again.
async fn wipe_at(ends: UnixTime, client: Client, session: Arc<Mutex<Option<Session>>>) {
    loop {
        let left = ends.milliseconds() - client.now().milliseconds();
        match u64::try_from(left) {
            Ok(left @ 1..) => {
                tokio::time::sleep(Duration::from_millis(left).min(LONGEST_SLEEP)).await;
            }
            Ok(0) | Err(_) => break,
        }
    }
    let mut session: OwnedMutexGuard<_> = session.lock_owned().await;
    *session = None;
}

/// What an action's handler comes back with.
pub enum Handled {
    /// It succeeded and returns nothing.
    Nothing,
    /// It succeeded with a JSON value.
    Json(Value),
    /// It succeeded with bytes.
    Bytes(Vec<u8>),
    /// It failed without an effect. Only the kind of error is recorded, never its text: a name such
    /// as `timeout` or `smtp.refused`.
    Failed(Name),
}

impl Handled {
    fn into_output(self) -> ActionOutput {
        match self {
            Self::Nothing => ActionOutput::Nothing,
            Self::Json(value) => ActionOutput::Json(value),
            Self::Bytes(bytes) => ActionOutput::Bytes(bytes),
            Self::Failed(error_type) => ActionOutput::Failed { error_type },
        }
    }

    fn of(output: ActionOutput) -> Result<Self, Error> {
        match output {
            ActionOutput::Nothing => Ok(Self::Nothing),
            ActionOutput::Json(value) => Ok(Self::Json(value)),
            ActionOutput::Bytes(bytes) => Ok(Self::Bytes(bytes)),
            ActionOutput::Failed { error_type } => Ok(Self::Failed(error_type)),
            ActionOutput::Unrepresentable => Err(Code::IndeterminateOutcome.into()),
        }
    }
}

impl fmt::Debug for Handled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Json(_) => "Json(..)",
            Self::Bytes(_) => "Bytes(..)",
            Self::Failed(_) => "Failed(..)",
        })
    }
}

/// A memory update to propose.
pub struct Proposal {
    /// What to do.
    pub operation: MemoryOperation,
    /// The claims, each `{predicate, object: {value, datatype}, confidence}`.
    pub claims: Vec<Value>,
    /// The handles of the facts that it rests on.
    pub provenance_handles: Vec<String>,
    /// Why, 1 to 1,000 characters.
    pub rationale: String,
}

impl fmt::Debug for Proposal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Proposal")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}
